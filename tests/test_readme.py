"""The screens, the report and the picture that README shows are what the program prints, and its commands about the bundled
recording run as they are pasted.  `test_readme.py --update` renews what is shown."""
import os
import re
import subprocess
import sys

from e2e import BUILD, DATA, SOURCE, check, run, scratch

README = os.path.join(SOURCE, "README")
MANUAL = os.path.join(SOURCE, "man", "stealscope.1")
SCREEN = re.compile(r"^ host \+ 1 VM.*?\n\.Ed$", re.M | re.S)
PICTURE = os.path.join(SOURCE, "man", "first-look.svg")
KEYS = "O\n:screen {0}/overview\n<Enter>\n:screen {0}/rows\n<Enter>\n:screen {0}/flow\n"
BLOCK = re.compile(r"(?:^     host \+ 1 VM.*?\? help$|^    history  demo\.steal$.*?^    left out:.*?$)", re.M | re.S)


def as_shown(text):
    """Indented by four, without trailing blanks, runs of empty lines as one."""
    lines = [("    " + line).rstrip() for line in text.rstrip("\n").split("\n")]
    return re.sub(r"\n{2,}", "\n\n", "\n".join(lines))


with open(README, encoding="utf-8") as f:
    readme = f.read()
with scratch() as folder:
    run("index", os.path.join(DATA, "fibonacci"), "-o", "demo.steal", cwd=folder)
    with open(os.path.join(folder, "keys"), "w", encoding="utf-8") as f:
        f.write(KEYS.format(folder))
    run("view", "demo.steal", "--script", "keys", "--size", "80x24", "--glyphs", "ascii", cwd=folder)
    blocks = []
    for name in ("overview", "rows", "flow"):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            blocks.append(as_shown(f.read()))
    run("picture", "demo.steal", "-o", "picture.svg", "--width", "100", cwd=folder)
    with open(os.path.join(folder, "picture.svg"), encoding="utf-8") as f:
        picture = f.read()
    said = as_shown("\n".join(run("explain", "demo.steal", "Debian/CPU0", cwd=folder).stdout.split("\n")[:5]))
    blocks.append(as_shown(run("flow", "demo.steal", "Debian/151", cwd=folder).stdout))

screen = "\n".join(line[4:] for line in blocks[1].split("\n"))
shown = BLOCK.findall(readme)
check(len(shown) == len(blocks), f"README shows {len(blocks)} blocks of output")
if "--update" in sys.argv:
    fresh = iter(blocks)
    with open(README, "w", encoding="utf-8") as f:
        f.write(BLOCK.sub(lambda _: next(fresh), readme))
    with open(MANUAL, encoding="utf-8") as f:
        manual = f.read()
    with open(MANUAL, "w", encoding="utf-8") as f:
        f.write(SCREEN.sub(lambda _: screen + "\n.Ed", manual))
    with open(PICTURE, "w", encoding="utf-8") as f:
        f.write(picture)
else:
    with scratch() as folder:
        os.symlink(os.path.abspath(os.path.join(SOURCE, "tests")), os.path.join(folder, "tests"))
        pasted = re.findall(r"^    (stealscope [a-z]+ (?:tests/data|demo\.steal).*?)(?:   .*)?$", readme, re.M)
        check(len(pasted) == 8, "README has commands about the bundled recording")
        for line in pasted:
            p = subprocess.run(line, shell=True, capture_output=True, text=True, cwd=folder, timeout=300, check=False,
                               env={**os.environ, "PATH": os.path.abspath(BUILD) + ":" + os.environ["PATH"]})
            check(p.returncode == 0 and (p.stdout or "-o " in line), f"README: {line} {p.stderr}")
    for old, new in zip(shown, blocks):
        if old != new:
            print(new)
            print("look at it; then: srcdir=... builddir=... python3 tests/test_readme.py --update")
        check(old == new, f"README shows what the program prints: {new.splitlines()[0].strip()}")
    check(said in readme, f"README ends a recording as explain does: {said}")
    with open(MANUAL, encoding="utf-8") as f:
        manual = f.read()
    with open(PICTURE, encoding="utf-8") as f:
        check(f.read() == picture, "man/first-look.svg is what stealscope picture draws")
    check(screen in manual, "stealscope(1) shows the same screen")
