"""The screens, reports and the picture in README and doc/tour.md are the current output of the program, and the commands
about the bundled recording run as printed. `test_readme.py --update` replaces the old output."""
import os
import re
import subprocess
import sys

from e2e import BUILD, DATA, SOURCE, check, run, scratch

MANUAL = os.path.join(SOURCE, "man", "stealscope-view.1")
SCREEN = re.compile(r"^ host \+ 1 VM.*?\n\.Ed$", re.M | re.S)
PICTURE = os.path.join(SOURCE, "doc", "first-look.svg")
KEYS = "O\n:screen {0}/overview\n<Enter>\n:screen {0}/rows\n<BS>\n<Enter>\n<Enter>\n:screen {0}/flow\n"
# Rest of an indented block of output after its beginning; the block ends before the next line that is not indented.
INDENTED = r".*\n(?:(?:    .*)?\n)*(?=\S)"
BLOCK = {
    "screen": re.compile("^     host \\+ 1 VM" + INDENTED, re.M),
    "report": re.compile("^    history  demo\\.steal" + INDENTED, re.M),
    "verdict": re.compile("^    Debian/vCPU0" + INDENTED, re.M),
}
COMMAND = re.compile(r"^    (stealscope [a-z]+ (?:tests/data|demo\.steal).*?)(?:   .*)?$", re.M)
COMMANDS = 8
VERDICT_LINES = 6
# Document -> blocks of output in it: kind, and key of the output in program_output().
SHOWN = {
    "README": [("screen", "overview"), ("verdict", "explain")],
    "doc/tour.md": [("screen", "flow"), ("report", "report")],
}


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def as_shown(text):
    """Returns text indented by four, without trailing blanks, and with consecutive empty lines joined."""
    lines = [("    " + line).rstrip() for line in text.rstrip("\n").split("\n")]
    return re.sub(r"\n{2,}", "\n\n", "\n".join(lines))


def program_output():
    """Returns the current output of the program as a dictionary of indented texts, and the picture."""
    with scratch() as folder:
        run("index", os.path.join(DATA, "fibonacci"), "-o", "demo.steal", cwd=folder)
        write(os.path.join(folder, "keys"), KEYS.format(folder))
        run("view", "demo.steal", "--script", "keys", "--size", "80x24", "--glyphs", "ascii", cwd=folder)
        out = {name: as_shown(read(os.path.join(folder, name))) for name in ("overview", "rows", "flow")}
        run("picture", "demo.steal", "-o", "picture.svg", "--width", "100", cwd=folder)
        verdict = run("explain", "demo.steal", "Debian/CPU0", cwd=folder).stdout.split("\n")[:VERDICT_LINES]
        out["explain"] = as_shown("\n".join(verdict))
        out["report"] = as_shown(run("flow", "demo.steal", "Debian/151", cwd=folder).stdout)
        return out, read(os.path.join(folder, "picture.svg"))


def check_blocks(document, text, out):
    """Checks that each block of each kind, in order, is the current output."""
    for kind, pattern in BLOCK.items():
        names = [name for k, name in SHOWN[document] if k == kind]
        shown = [block.rstrip("\n") for block in pattern.findall(text)]
        check(len(shown) == len(names), f"{document} shows {len(names)} blocks of the kind {kind}")
        for old, name in zip(shown, names):
            if old != out[name]:
                print(out[name])
                print("if this is right, update the documents: srcdir=... builddir=... python3 tests/test_readme.py --update")
            check(old == out[name], f"{document} shows what the program prints: {name}")


def update_blocks(document, text, out):
    for kind, pattern in BLOCK.items():
        names = iter([name for k, name in SHOWN[document] if k == kind])
        text = pattern.sub(lambda _: out[next(names)] + "\n\n", text)
    write(os.path.join(SOURCE, document), text)


def check_commands(texts):
    with scratch() as folder:
        os.symlink(os.path.abspath(os.path.join(SOURCE, "tests")), os.path.join(folder, "tests"))
        pasted = [line for text in texts.values() for line in COMMAND.findall(text)]
        check(len(pasted) == COMMANDS, "README has commands about the bundled recording")
        for line in pasted:
            p = subprocess.run(line, shell=True, capture_output=True, text=True, cwd=folder, timeout=300, check=False,
                               env={**os.environ, "PATH": os.path.abspath(BUILD) + ":" + os.environ["PATH"]})
            check(p.returncode == 0 and (p.stdout or "-o " in line), f"README: {line} {p.stderr}")


def check_links(document, text):
    """Checks that relative links lead to files and headings that exist."""
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        if "://" in path:
            continue
        file = os.path.normpath(os.path.join(SOURCE, os.path.dirname(document), path)) if path else os.path.join(SOURCE, document)
        check(os.path.exists(file), f"{document}: the link {target} leads to a file")
        if anchor:
            headings = re.findall(r"^#+ (.*)$", read(file), re.M)
            anchors = [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings]
            check(anchor in anchors, f"{document}: the link {target} leads to a heading")


def check_paths(document, text):
    """Checks that files and directories in backquotes exist, relative to the top, to src/ or to src/sync/."""
    for path in re.findall(r"`((?:\w+/)+[\w.-]*)`", text):
        if path.startswith("debian/"):  # not in the tarball
            continue
        exists = any(os.path.exists(os.path.join(SOURCE, start, path)) for start in (".", "src", os.path.join("src", "sync")))
        check(exists, f"{document} names {path}, which exists")


output, picture = program_output()
screen = "\n".join(line[4:] for line in output["rows"].split("\n"))
documents = {name: read(os.path.join(SOURCE, name)) for name in SHOWN}
if "--update" in sys.argv:
    for name, content in documents.items():
        update_blocks(name, content, output)
    write(MANUAL, SCREEN.sub(lambda _: screen + "\n.Ed", read(MANUAL)))
    write(PICTURE, picture)
else:
    check_commands(documents)
    for name, content in documents.items():
        check_blocks(name, content, output)
    check(read(PICTURE) == picture, "doc/first-look.svg is what stealscope picture draws")
    check(screen in read(MANUAL), "stealscope-view(1) shows the same screen")
    pages = ["README", "HACKING", *(p for p in os.listdir(SOURCE) if p.endswith(".md") and p != "README.md"),
             *(os.path.join("doc", p) for p in os.listdir(os.path.join(SOURCE, "doc")) if p.endswith(".md"))]
    for name in sorted(pages):
        check_links(name, read(os.path.join(SOURCE, name)))
        check_paths(name, read(os.path.join(SOURCE, name)))
    check(read(os.path.join(SOURCE, "README.md")) == read(os.path.join(SOURCE, "README")), "README.md is README")
