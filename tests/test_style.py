"""The rules of HACKING that a script can check: the direction of includes, where curses and babeltrace2 may be named,
lengths of files and functions, banned calls, the man pages and shell scripts."""
import glob
import os
import re
import shutil
import subprocess

from e2e import SOURCE, check

# Folder -> folders whose headers it may include, besides its own and base/.
MAY_INCLUDE = {
    "base": set(),
    "trace": set(),
    "sync": {"trace"},
    "history": set(),
    "model": {"sync", "trace", "history"},
    "flow": {"history"},
    "latency": {"flow", "history"},
    "ui": {"flow", "history", "latency"},
    "beacon": set(),
    "cli": {"trace", "sync", "model", "history", "flow", "latency", "ui", "beacon"},
}
LONGEST_FILE = 600
LONGEST_FUNCTION = 70
WIDEST_LINE = 124     # columns, tabs of 4
MADE = {"src/trace/layout_texts.h", "src/ui/shipped.c"}  # by the build, from what we ship
CURSES_FILES = 2
BANNED = re.compile(r"\b(strcpy|strcat|sprintf|vsprintf|strtok|gets|alloca)\s*\(")


def sources(pattern):
    return sorted(glob.glob(os.path.join(SOURCE, pattern)))


def check_includes():
    wrong, curses = [], []
    for path in sources("src/*/*.[ch]"):
        folder = path.split(os.sep)[-2]
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for other, header in re.findall(r'^#include "([a-z]+)/([^"]+)"', text, re.M):
            if other not in MAY_INCLUDE[folder] | {folder, "base"}:
                wrong.append(f"{path} includes {other}/{header}")
            if other not in (folder, "base") and header not in (f"{other}.h", "beacon.h", "stealscope-mark.h"):
                wrong.append(f"{path} includes {other}/{header}, which is private")
        if re.search(r"#include <babeltrace2/", text) and folder != "trace":
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
    for path in sources("src/*/*.[ch]") + sources("tests/*.[ch]") + sources("tests/*/*.[ch]"):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        name = os.path.relpath(path, SOURCE)
        if text.count("\n") > LONGEST_FILE:
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


def check_tool(tool, *args, files):
    if not shutil.which(tool):
        print(f"     {tool} is not installed: not run")
        return
    p = subprocess.run([tool, *args, *files], capture_output=True, text=True, timeout=120)
    check(p.returncode == 0, f"{tool} on {len(files)} files {p.stdout}{p.stderr}")


def check_man():
    """Down to remarks of style; but for those about pages of others, which depend on what is installed here."""
    if not shutil.which("mandoc"):
        print("     mandoc is not installed: not run")
        return
    p = subprocess.run(["mandoc", "-Tlint", "-Wstyle", *sources("man/*.[1-9]")], capture_output=True, text=True, timeout=120)
    remarks = [x for x in p.stdout.split("\n") if x and "referenced manual not found" not in x and "mandoc.db" not in x]
    check(remarks == [], f"mandoc has no remarks {remarks}")


check_includes()
check_lengths()
check_man()
check_tool("shellcheck", "--severity=warning", files=[os.path.join(SOURCE, p) for p in ("bootstrap",)] + sources(".ci/run") + sources("tests/*.sh"))
