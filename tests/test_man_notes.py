"""man/stealscope-notes.7 is what src/base/note_table.h generates: `python3 tests/test_man_notes.py --update` writes it."""
import os
import re
import sys

from e2e import SOURCE, check

PAGE = os.path.join(SOURCE, "man", "stealscope-notes.7")
KINDS = ("INFO", "CLOCK", "LOSS", "DAMAGE", "LIMIT")
GROUPS = (("TRACE", "READING TRACES"), ("SYNC", "CLOCKS AND VIRTUAL MACHINES"), ("MODEL", "STATES"), ("REPORT", "REPORTS AND SIMULATED CHANGES"))
LITERAL = r'"((?:[^"\\]|\\.)*)"'
GAP = r"[\s\\]*"
ROW = re.compile(rf"\bX\((\w+), {LITERAL}, (\w+),{GAP}((?:{LITERAL}{GAP})+),{GAP}((?:{LITERAL}{GAP})+)\)")
INTRO = r""".\" Generated from src/base/note_table.h by tests/test_man_notes.py --update
.Dd November 27, 2026
.Dt STEALSCOPE-NOTES 7
.Os
.Sh NAME
.Nm stealscope-notes
.Nd notes that qualify the answers of stealscope
.Sh DESCRIPTION
Notes describe how traces were read and what limits an answer.
.Xr stealscope-index 1
prints them, the history keeps them, and each report repeats those that concern
its target and window.
In json each note has a
.Cm code ,
a
.Cm kind ,
the
.Cm machine
that it concerns, its window
.Pq Cm start , Cm end ,
its
.Cm text
and the
.Cm advice .
Codes never change; texts may.
Below, N stands for a number, NAME for a name, a time or a text.
.Pp
Kinds:
.Bl -column "damage" "a part of the input could not be read"
.It Cm info Ta how the input was read; limits no answer
.It Cm clock Ta times may be wrong
.It Cm loss Ta events are missing
.It Cm damage Ta a part of the input could not be read
.It Cm limit Ta answers may be wrong or missing for another reason
.El
.Pp
A guest's clock has one of these qualities:
.Bl -tag -width "APPROXIMATE"
.It Cm ACCURATE
Sync pairs bound it from both sides, and no event contradicts it.
.It Cm APPROXIMATE
Other clocks are possible beyond the error bound, or the error bound is unknown.
.It Cm INCOMPLETE
Sync pairs bound it from one side only.
.It Cm ABSENT
The clock is unknown.
.El
"""
OUTRO = r""".Sh SEE ALSO
.Xr stealscope 1 ,
.Xr stealscope-index 1 ,
.Xr stealscope-info 1 ,
.Xr stealscope-sync 1
"""


def joined(literals):
    text = "".join(re.findall(LITERAL, literals))
    return text.replace('\\"', '"').replace("\\\\", "\\")


def table():
    """(group, name, kind, text, advice) of each row."""
    with open(os.path.join(SOURCE, "src", "base", "note_table.h"), encoding="utf-8") as f:
        source = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    for group in re.findall(r"^#define (\w+)_NOTES\(X\)", source, re.M):
        body = re.search(rf"^#define {group}_NOTES\(X\)((?:.*\\\n)*.*)", source, re.M).group(1)
        for m in ROW.finditer(body):
            yield group, m.group(2), m.group(3), joined(m.group(4)), joined(m.group(6))


def plain(text):
    """Replaces the formats of printf, and escapes what mdoc would interpret."""
    text = re.sub(r"(?<=\S)%s%s", "", re.sub(r"(?<=\s)%s%s", "%s", text))  # the last one is optional
    text = re.sub(r"%[-+0-9.]*(?:ll|l|z)?[dufx]", "N", text).replace("%s", "NAME").replace("%.*s", "NAME").replace("%%", "%")
    text = text.replace("\\", "\\e")
    return re.sub(r"^([.'])", r"\\&\1", text)


def wrapped(text):
    """One line for each clause: mdoc wants a new line after a full stop."""
    return re.sub(r"([.;:]) ", r"\1\n", text)


def page(rows):
    out = INTRO
    for group, title in GROUPS:
        out += f".Sh {title}\n.Bl -tag -width Ds\n"
        for g, name, kind, text, advice in rows:
            if g == group:
                out += f".It Cm {name} Pq {kind.lower()}\n{plain(text)[:1].upper() + plain(text)[1:]}.\n"
                if advice:
                    advice = plain(advice)
                    out += f"{advice[:1].upper() + advice[1:]}.\n"
        out += ".El\n"
    return out + OUTRO


def fill(text):
    """Breaks long lines; requests stay as they are."""
    lines = []
    for line in text.split("\n"):
        while len(line) > 78 and not line.startswith("."):
            cut = line.rfind(" ", 0, 78)
            if cut < 0 or line[cut + 1] in ".'":
                break
            lines.append(line[:cut])
            line = line[cut + 1:]
        lines.append(line)
    return "\n".join(lines)


ROWS = list(table())
NAMES = [row[1] for row in ROWS]
made = fill(page(ROWS))
if "--update" in sys.argv:
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(made)
check(len(ROWS) > 40 and {g for g, *_ in ROWS} == {g for g, _ in GROUPS}, f"{len(ROWS)} notes of all groups")
with open(os.path.join(SOURCE, "src", "base", "note_table.h"), encoding="utf-8") as f:
    check(len(re.findall(r'^\tX\(', f.read(), re.M)) == len(ROWS), "every row of the table was understood")
check(len(set(NAMES)) == len(NAMES), f"names are unique {sorted(n for n in NAMES if NAMES.count(n) > 1)}")
check("NAMENAME" not in page(ROWS), "no two names follow each other")
check([n for n in NAMES if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", n)] == [], "names are lower-case words with dashes")
check([r[1] for r in ROWS if r[2] not in KINDS or not r[3]] == [], "every note has a kind and a text")
with open(PAGE, encoding="utf-8") as f:
    check(f.read() == made, "stealscope-notes(7) is what the table generates (--update)")
