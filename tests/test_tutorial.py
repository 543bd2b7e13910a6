"""The output of commands in stealscope(7) is the current output of the program. `test_tutorial.py --update` replaces it."""
import os
import re
import shlex
import subprocess
import sys

from e2e import BUILD, DATA, SOURCE, check, scratch

PAGE = os.path.join(SOURCE, "man", "stealscope.7")
START = ".Bd -literal -offset -5n\n"  # output is up to 80 columns wide: it starts in the first column
BLOCK = re.compile(rf"^{re.escape(START)}(.*?)^\.Ed\n", re.M | re.S)


def to_mdoc(text):
    lines = text.replace("\\", "\\e").rstrip("\n").split("\n")
    return "".join(("\\&" if line[:1] in (".", "'") else "") + line.rstrip() + "\n" for line in lines)


def run_block(block, directory):
    """Returns the commands of a block, each with its output."""
    out = ""
    for command in re.findall(r"^\$ (.*)$", block, re.M):
        words = shlex.split(command)
        p = subprocess.run([os.path.join(BUILD, words[0]), *words[1:]], cwd=directory, capture_output=True, text=True,
                           timeout=300)
        out += "$ " + command + "\n" + p.stdout + p.stderr
    return to_mdoc(out)


with open(PAGE, encoding="utf-8") as f:
    page = f.read()
fresh = []
with scratch() as tmp:
    os.symlink(os.path.join(DATA, "fibonacci"), os.path.join(tmp, "fibonacci"))
    for old in BLOCK.findall(page):
        fresh.append(run_block(old, tmp))
if "--update" in sys.argv:
    blocks = iter(fresh)
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(BLOCK.sub(lambda _: START + next(blocks) + ".Ed\n", page))
else:
    check(len(fresh) >= 8, f"the tutorial has {len(fresh)} blocks of commands")
    for old, new in zip(BLOCK.findall(page), fresh):
        if old != new:
            print(new)
            print("if this output is right, update the page: srcdir=... builddir=... python3 tests/test_tutorial.py --update")
        check(old == new, f"current output of: {new.splitlines()[0]}")
