"""The rules of CONTRIBUTING.md that a script can check: the direction of includes, where curses and babeltrace2 may be named,
lengths of files and functions, banned calls, the man pages and shell scripts."""
import glob
import os
import re
import shutil
import subprocess

from e2e import SOURCE, check, skip

# Folder -> folders whose headers it may include, besides its own and base/.
MAY_INCLUDE = {
    "base": set(),
    "trace": set(),
    "sync": {"trace"},
    "history": set(),
    "model": {"sync", "trace", "history"},
    "index": {"trace", "sync", "model", "history", "query"},
    "query": {"history"},
    "latency": {"query", "history"},
    "compare": {"query", "history", "latency"},
    "report": {"compare", "latency", "query", "history"},
    "export": {"index", "latency", "query", "history"},
    "ui": {"live", "compare", "query", "history", "latency", "report"},
    "beacon": set(),
    "record": set(),
    "live": {"record"},
    "cli": {"trace", "sync", "model", "index", "history", "query", "latency", "compare", "report", "ui", "beacon", "record",
            "export", "live"},
}
# Subdirectories with an order among themselves -> those that each may include.
LAYERS = {
    "sync/evidence": set(),
    "sync/fit": {"evidence"},
    "sync/search": {"evidence", "fit"},
    "sync/assign": {"evidence", "fit", "search"},
}
LONGEST_FILE = 550
LONGEST_FUNCTION = 70
WIDEST_LINE = 124     # columns, tabs of 4
MADE = {"src/cli/ticket_script.h", "src/trace/layout_texts.h", "src/record/guest_text.h", "src/record/request_texts.h", "src/ui/theme_texts.h", "src/export/questions.h", "src/live/collector_object.h", "src/live/counters_object.h", "src/live/throttle_object.h"}  # by the build, from what we ship
MADE |= {"src/live/machine_object.h"}
CURSES_FILES = 2
OF_MOST = 3.97        # `of` per 100 words of comments in src/, which may only fall: 5.4 on 2026-11-28, the aim is 3
TOP = {".clang-format", ".editorconfig", ".git-blame-ignore-revs", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "COPYING", "HACKING", "Makefile.am",
       "README", "README.md", "SECURITY.md", "bootstrap", "configure.ac"}
SAME_IDEA = {"sink"}  # what each sink of export/ makes of the struct that sink.h leaves open
BANNED = re.compile(r"\b(strcpy|strcat|sprintf|vsprintf|strtok|gets|alloca)\s*\(")
missing = []  # tools that are not installed


def sources(pattern):
    return sorted(glob.glob(os.path.join(SOURCE, pattern)))


def check_noun_compounds():
    """The owner precedes the thing: VM exit reasons, not reasons of VM exits."""
    words = []
    for path in sources("src/*/*.[ch]") + sources("src/*/*/*.[ch]"):
        if os.path.relpath(path, SOURCE) not in MADE:
            with open(path, encoding="utf-8") as f:
                words += [w for c in re.findall(r"/\*.*?\*/", f.read(), re.S) for w in re.findall(r"[A-Za-z']+", c)]
    share = 100 * words.count("of") / len(words)
    check(share <= OF_MOST, f"{share:.2f} `of` in 100 words of comments, at most {OF_MOST}")


def check_includes():
    wrong, curses = [], []
    for path in sources("src/*/*.[ch]") + sources("src/*/*/*.[ch]"):
        directory, *below = os.path.relpath(os.path.dirname(path), os.path.join(SOURCE, "src")).split(os.sep)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for other, header in re.findall(r'^#include "([a-z]+)/([^"]+)"', text, re.M):
            if other not in MAY_INCLUDE[directory] | {directory, "base"}:
                wrong.append(f"{path} includes {other}/{header}")
            if other not in (directory, "base") and header not in (f"{other}.h", "beacon.h", "stealscope-mark.h"):
                wrong.append(f"{path} includes {other}/{header}, which is private")
        layer = "/".join([directory, *below])
        for other in re.findall(rf'^#include "{directory}/([a-z]+)/', text, re.M):
            if layer in LAYERS and other not in LAYERS[layer] | set(below):
                wrong.append(f"{path} includes {directory}/{other}/")
        if re.search(r"#include <babeltrace2/", text) and directory != "trace":
            wrong.append(f"{path} names babeltrace2")
        if re.search(r"#include <(ncursesw/)?(n?curses|term)\.h>", text):
            curses.append(path)
    check(wrong == [], f"includes point one way {wrong}")
    check(len(curses) <= CURSES_FILES, f"curses is in {len(curses)} files")


def function_lengths(path):
    """(name, lines) of every function: from the line before its '{' in column 0 to its '}' in column 0."""
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    start = None
    for i, line in enumerate(lines):
        if line == "{":
            start = i
        elif line == "}" and start is not None:
            yield lines[start - 1].strip(), i - start + 1
            start = None


def check_lengths():
    long_files, long_functions, wide, banned = [], [], [], []
    for path in sources("src/*/*.[ch]") + sources("src/*/*/*.[ch]") + sources("tests/*.[ch]") + sources("tests/*/*.[ch]"):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        name = os.path.relpath(path, SOURCE)
        is_public = re.fullmatch(r"src/(\w+)/\1\.h", name)  # has a table of contents instead
        if text.count("\n") > LONGEST_FILE and name not in MADE and not is_public:
            long_files.append(f"{name} {text.count(chr(10))}")
        if BANNED.search(text):
            banned.append(name)
        if name.startswith("src"):
            wide += [f"{name}:{i}" for i, line in enumerate(text.split("\n"), 1)
                     if len(line.expandtabs(4)) > WIDEST_LINE and name not in MADE]
            long_functions += [f"{name}: {f} {n}" for f, n in function_lengths(path) if n > LONGEST_FUNCTION]
    check(long_files == [], f"no file is longer than it may be {long_files}")
    check(long_functions == [], f"no function is longer than {LONGEST_FUNCTION} lines {long_functions}")
    check(wide == [], f"no line is wider than {WIDEST_LINE} {wide}")
    check(banned == [], f"no banned calls {banned}")


def check_tests():
    """A test that nothing runs is none: each stands in a part.mk, and in one list of it."""
    parts = "".join(open(p, encoding="utf-8").read() for p in sources("src/*/part.mk") + sources("tests/part.mk") + sources("tests/*/part.mk"))
    lists = re.findall(r"(?m)^(?:check_PROGRAMS|TESTS|E2E_TESTS|dist_check_SCRIPTS) \+?= ((?:.*\\\n)*.*)", parts)
    words = [w for text in lists for w in text.split() if w.startswith("tests/")]
    twice = sorted({w for w in words if words.count(w) > 1})
    check(len(words) > 100 and twice == [], f"none is run twice {twice}")
    named = set(re.findall(r"tests/(?:fuzz/)?((?:test|fuzz)_\w+)", parts))
    files = sources("tests/test_*.[cps]*") + sources("tests/fuzz/fuzz_*.c")
    lost = [p for p in files if os.path.basename(p).split(".")[0] not in named]
    check(len(files) > 60 and lost == [], f"every test is run by make check {lost}")
    corpora = sources("tests/fuzz/corpus-*")
    lost = [p for p in corpora if "tests/fuzz/" + os.path.basename(p) not in parts.split()]
    check(len(corpora) > 10 and lost == [], f"each corpus is distributed {lost}")
    headers = {os.path.relpath(p, SOURCE) for p in sources("src/*/*.h") + sources("src/*/*/*.h") + sources("tests/*.h") + sources("tests/*/*.h")} - MADE
    lost = sorted(headers - set(parts.split()))
    check(len(headers) > 100 and lost == [], f"each header is distributed {lost}")


def check_top():
    """Nothing has been left at the top by accident; known only where this is a checkout."""
    if not shutil.which("git") or not os.path.exists(os.path.join(SOURCE, ".git")):
        print("     not a checkout: what lies at the top is not looked at")
        return
    p = subprocess.run(["git", "-C", SOURCE, "ls-files", ":(glob)*"], capture_output=True, text=True)
    lost = sorted(set(p.stdout.split()) - TOP)
    check(lost == [], f"the top has what belongs there {lost}")


def check_names():
    """A search for a tag finds one definition in src/ and in the shared headers of the tests."""
    tags = {}
    for path in sources("src/*/*.[ch]") + sources("src/*/*/*.[ch]") + sources("tests/*.h"):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for tag in set(re.findall(r"^[ \t]*(?:static |const )*(?:struct|union|enum) (\w+) \{", text, re.M)):
            tags.setdefault(tag, []).append(os.path.relpath(path, SOURCE))
    twice = {t: f for t, f in tags.items() if len(f) > 1 and t not in SAME_IDEA}
    check(twice == {}, f"no tag is used for two things {twice}")


def is_installed(tool):
    """Returns true if the tool is installed, which CI requires; otherwise the test ends with status 77."""
    if shutil.which(tool):
        return True
    check(os.environ.get("CI") != "true", f"{tool} is not installed: not run")
    missing.append(tool)
    return False


def check_tool(tool, *args, files):
    if not is_installed(tool):
        return
    p = subprocess.run([tool, *args, *files], capture_output=True, text=True, timeout=300)
    check(p.returncode == 0, f"{tool} on {len(files)} files {p.stdout}{p.stderr}")


def check_man():
    """Down to remarks of style; but for those about pages of others, which depend on what is installed here."""
    if not is_installed("mandoc"):
        return
    p = subprocess.run(["mandoc", "-Tlint", "-Wstyle", *sources("man/*.[1-9]")], capture_output=True, text=True, timeout=300)
    remarks = [x for x in p.stdout.split("\n") if x and "referenced manual not found" not in x and "mandoc.db" not in x]
    check(remarks == [], f"mandoc has no remarks {remarks}")


def check_schema():
    """Every attribute of a history stands in the manual."""
    schema, manual = (open(os.path.join(SOURCE, p)).read() for p in ("src/base/schema.h", "man/stealscope-states.7"))
    names = re.findall(r'^\tX\(\w+, \w+, "([^"]+)"', schema, re.M)
    manual = re.search(r"^\.Sh ATTRIBUTES\n(.*?)^\.Sh", manual, re.M | re.S).group(1)
    manual = re.sub(r"\s+", " ", manual)
    missing = [n for n in names if not re.search(r"[ /]%s(?= [|/]| \.Ed)" % re.escape(n), manual)]
    check(len(names) > 10 and missing == [], f"the attributes of base/schema.h are in stealscope-states(7) {missing}")


check_includes()
check_noun_compounds()
check_lengths()
check_schema()
check_tests()
check_top()
check_names()
check_man()
check_tool("shellcheck", "--severity=warning",
           files=sources("bootstrap") + sources("src/record/guest.sh") + sources(".ci/run") + sources("tests/*.sh") + sources("tests/cross/*.sh") + sources("share/collect/*.sh") + sources("packaging/*.sh") + sources("debian/tests/[dm]*"))
if missing:
    skip(f"not installed: {', '.join(missing)}; all other checks passed")
