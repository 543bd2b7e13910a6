"""The examples of the manual pages can be pasted: the shell reads them, their options exist, and those about the bundled
recording run."""
import functools
import glob
import os
import re
import shlex
import shutil
import subprocess

from e2e import BUILD, DATA, PROGRAM, SOURCE, check, scratch

INDEX = {"host", "guest", "for", "layout", "sync", "tsc-hz", "domain", "paper-states", "jobs"}
OF_ALL = {"from", "to", "format", "limit", "after", "help"}
SUBCOMMANDS = {"requests", "report", "train", "assert", "traces"}


@functools.lru_cache(maxsize=None)
def options_of(*words):
    p = subprocess.run([PROGRAM, *words, "--help"], capture_output=True, text=True, timeout=300)
    return set(re.findall(r"^ {2,6}(?:-\w, )?--([a-z-]+)", p.stdout, re.M)), set(re.findall(r"^ {2,6}-(\w), --", p.stdout, re.M))


def text_of(line):
    for code, character in ((r"\-", "-"), (r"\e", "\\"), (r"\&", ""), (r"\(aq", "'"), (r"\(dq", '"')):
        line = line.replace(code, character)
    return line


def examples_of(page):
    """Returns the commands in section EXAMPLES, each as pasted."""
    with open(page, encoding="utf-8") as f:
        section = re.search(r"^\.Sh EXAMPLES\n(.*?)(?=^\.Sh |\Z)", f.read(), re.M | re.S)
    commands, literal, joined = [], False, ""
    for line in (section[1] if section else "").splitlines():
        literal = line.startswith(".Bd -literal") or (literal and not line.startswith(".Ed"))
        text = text_of(re.sub(r'^"(.*)"$', r"\1", line[4:]) if line.startswith(".Dl ") else line)
        if line.startswith(".Dl ") or (literal and not line.startswith(".")):
            joined += text
            if not joined.endswith("\\"):
                commands.append(joined)
                joined = ""
            else:
                joined += "\n"
    check(joined == "", f"{os.path.basename(page)}: the last line is not continued")
    return [c for c in commands if re.match(r"(sudo )?stealscope ", c)]


def check_options(name, command):
    words = shlex.split(command, comments=True)
    words = words[words.index("stealscope") + 1:]
    stop = next((i for i, w in enumerate(words) if w in ("|", ">", "&&", "--", "2>", ">>")), len(words))
    words = words[:stop]
    head = words[:2] if words[:1] == ["latency"] and words[1:2] and words[1] in SUBCOMMANDS else words[:1]
    known, short = options_of(*head)
    if head[0].startswith("-"):
        return
    long = {w[2:].split("=")[0] for w in words if w.startswith("--")}
    unknown = long - known - OF_ALL - INDEX
    check(unknown == set(), f"{name}: {command}: its options exist {sorted(unknown)}")
    letters = {w[1] for w in words if re.fullmatch(r"-[a-z]", w)}
    check(letters <= short | {"t"}, f"{name}: {command}: its letters exist {sorted(letters - short)}")


pages = sorted(glob.glob(os.path.join(SOURCE, "man", "*.[1-9]")))
with scratch() as tmp:
    shutil.copytree(f"{DATA}/fibonacci", f"{tmp}/tests/data/fibonacci")
    total = ran = 0
    for path in pages:
        page = os.path.basename(path)
        for example in examples_of(path):
            total += 1
            p = subprocess.run(["sh", "-n", "-c", example], capture_output=True, text=True, timeout=300)
            check(p.returncode == 0, f"{page}: the shell reads {example} {p.stderr}")
            check_options(page, example)
            missing = [w for w in re.findall(r"\|\s*(\w+)", example) if not shutil.which(w)]
            if "tests/data/fibonacci" in example and not missing and not re.match(r"sudo|stealscope (view|tests)", example):
                ran += 1
                p = subprocess.run(["sh", "-c", example], cwd=tmp, capture_output=True, text=True, timeout=300,
                                   env={**os.environ, "PATH": BUILD + ":" + os.environ["PATH"]})
                check(p.returncode in (0, 3) or "was built without" in p.stderr, f"{page}: {example} {p.stderr}")  # 3: an assertion fails
    check(total > 50 and ran > 15, f"{total} examples, of which {ran} ran")
