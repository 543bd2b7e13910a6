"""Each command of `stealscope --help` has a manual page with all of its options, with examples and with references to pages
that exist. stealscope(1) refers to every page."""
import glob
import os
import re
import shutil
import subprocess

import e2e
from e2e import BUILD, SOURCE, check

PROGRAM = os.path.join(BUILD, "stealscope")
# Options documented in another page: how traces are read (index), and options of all reports.
SHARED = {"index": {"host", "guest", "for", "layout", "sync", "tsc-hz", "domain", "paper-states", "jobs"},
          "": {"from", "to", "format", "limit", "after", "help"}}
COLUMNS = 80
# Pages with output of the program that is 80 columns wide.
WIDE = {"stealscope.7"}
# Pages generated from src/base/note_table.h.
GENERATED = {"stealscope-notes.7"}


def page_of(command):
    return os.path.join(SOURCE, "man", f"stealscope-{command}.1" if command else "stealscope.1")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def help_of(*words):
    return subprocess.run([PROGRAM, *words, "--help"], capture_output=True, text=True, timeout=300).stdout


def options_in(text):
    """Returns the long options that a page documents: after Fl, and in lists of Fl with commas."""
    words = re.findall(r"^\.(?:It|Op|Nm|Fl|Pq|Po)?\b.*$", text, re.M)
    return set(re.findall(r"(?:^|[\s(])-{1,2}([a-z][a-z-]+)", "\n".join(words)))


def check_command(command):
    path = page_of(command)
    if not os.path.exists(path):
        check(False, f"{command} has a page")
        return
    text = read(path)
    check(f"Cm {command}" in text or f"stealscope {command}" in text, f"{command}: synopsis")
    check(".Sh EXAMPLES\n" in text, f"{command}: examples")
    helps = [help_of(command)]
    if command == "latency":
        helps = [help_of(command, sub) for sub in ("requests", "report", "train", "assert")]
    wanted = {o for h in helps for o in re.findall(r"^ {2,6}(?:-\w, )?--([a-z-]+)", h, re.M)}
    missing = wanted - options_in(text)
    for other, shared in SHARED.items():
        found = options_in(read(page_of(other))) | {"help"}
        check(shared <= found, f"{command}: shared options are documented {sorted(shared - found)}")
        missing -= shared
    check(missing == set(), f"{command}: the page has all options {sorted(missing)}")


def references_in(path):
    """Returns the file names of the stealscope pages that a page refers to."""
    refs = re.findall(r"^(?:\.|.* )Xr (stealscope[a-z-]*) (\d)", read(path), re.M)
    return {f"{name}.{section}" for name, section in refs}


def check_references(path, pages):
    missing = sorted(references_in(path) - pages - GENERATED)
    check(missing == [], f"{os.path.basename(path)}: all referenced pages exist {missing}")


def check_width(path):
    name = os.path.basename(path)
    p = subprocess.run(["mandoc", "-Tascii", f"-Owidth={COLUMNS}", path], capture_output=True, text=True, timeout=300)
    text = re.sub(r".\x08", "", p.stdout)
    wide = [line for line in text.split("\n") if len(line) > COLUMNS]
    check(wide == [] or name in WIDE, f"{name}: at most {COLUMNS} columns {wide[:3]}")


commands = e2e.commands()
check(len(commands) > 20, f"{len(commands)} commands")
for c in commands:
    check_command(c)
paths = sorted(glob.glob(os.path.join(SOURCE, "man", "*.[1-9]")))
names = {os.path.basename(p) for p in paths}
parts = "".join(read(p) for p in glob.glob(os.path.join(SOURCE, "src", "*", "part.mk")) + [os.path.join(SOURCE, "tests", "sim", "part.mk")])
unlisted = sorted((names | GENERATED) - references_in(page_of("")) - {"stealscope.1"})
check(unlisted == [], f"stealscope(1) refers to every page {unlisted}")
for path in paths:
    check_references(path, names)
    check(f"man/{os.path.basename(path)}" in parts, f"{os.path.basename(path)} is installed")
    if shutil.which("mandoc"):
        check_width(path)
