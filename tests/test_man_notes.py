"""stealscope(1) explains each sentence that synchronization can say of a clock, in the program's own words, once."""
import glob
import os
import re

from e2e import check

HERE = os.environ.get("srcdir", ".")
LITERAL = r'"((?:[^"\\]|\\.)*)"'
MACRO = re.compile(r"^\.(?:It |Po |Pq |Ql |Cm |Em |Fl |Ar |Ic |Li |Sx )*")
PLACE = re.compile(r"%[-+.\d]*(?:ll|z)?[a-z]|%%")  # of a number or a name
PROGRESS = re.compile(r"(reading|looking|matching) ")
WORDS = 5  # of a sentence; what is shorter is a name


def words(text):
    return re.findall(r"[A-Za-z][A-Za-z']*", text)


def sentences():
    """What src/sync says, but for refusals: these say what would mend them."""
    for path in sorted(glob.glob(os.path.join(HERE, "src/sync/**/*.c"), recursive=True)):
        with open(path, encoding="utf-8") as f:
            source = re.sub(r"/\*.*?\*/|^#.*?$", "", f.read(), flags=re.S | re.M)
        for m in re.finditer(rf"{LITERAL}(?:\s*{LITERAL})*", source):
            text = "".join(re.findall(LITERAL, m.group(0)))
            refusal = "error_set(" in source[:m.start()].rsplit(";", 1)[-1]
            if len(words(PLACE.sub(" ", text))) >= WORDS and not refusal and not PROGRESS.match(text):
                yield os.path.basename(path), text


def parts(text):
    """Its first part, up to a colon, between what changes."""
    for part in PLACE.split(re.split(r"[:;]", text)[0]):
        if len(words(part)) > 2:
            yield " ".join(part.split()).strip(" ,.()")


def page():
    with open(os.path.join(HERE, "man/stealscope.1"), encoding="utf-8") as f:
        return " ".join(" ".join(MACRO.sub("", line).split()) for line in f)


PAGE = page()
FOUND = list(sentences())
check(len(FOUND) > 30, f"{len(FOUND)} sentences")
for name, sentence in FOUND:
    missing = [part for part in parts(sentence) if part not in PAGE]
    check(missing == [], f"{name}: {sentence}" if not missing else f"{name}: the man page lacks {missing}")
    twice = [part for part in parts(sentence) if len(words(part)) >= WORDS and PAGE.count(part) > 1]
    check(twice == [], "explained once" if not twice else f"{name}: explained twice: {twice}")
