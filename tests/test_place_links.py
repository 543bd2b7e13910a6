"""Links of a terminal: printed times lead to their place in the viewer, only on terminals, and no name leaves its link."""
import os
import re
import shutil

from e2e import DATA, check, on_terminal, rename, run, scratch

LINK = re.compile(r"\x1b\]8;;(stealscope://[A-Za-z0-9._~/%&=?-]*)\x1b\\(.*?)\x1b\]8;;\x1b\\")


def terminal(*args, term="xterm-256color", columns=100):
    return on_terminal(*args, columns=columns, rows=60, env={**os.environ, "TERM": term})


def shown(folder, *args):
    """The screen of the viewer."""
    with open(f"{folder}/keys", "w", encoding="ascii") as f:
        f.write(f":screen {folder}/screen!\n")
    run("view", *args, "--script", f"{folder}/keys", "--size", "100x30")
    with open(f"{folder}/screen", encoding="utf-8") as f:
        return f.read()


def check_links(folder, recording):
    """Each time in `gaps` and each command in `explain` is a link to the place that the command names."""
    out = terminal("gaps", recording, "--top", "5")
    found = LINK.findall(out)
    rows = [line for line in out.splitlines() if re.match(r"(\x1b.*\x1b\\)?\d\d:\d\d:", line)]
    check(len(rows) == 5 and len(found) == 6, f"{len(found)} links, of 5 rows and the command")
    check(all(re.fullmatch(r"\d\d:\d\d:\d\d\.\d{4}", text) for _, text in found[:5]), "the times are the links")
    check("\x1b" not in LINK.sub("", out), "nothing else is an escape sequence")
    check(shown(folder, found[5][0]) == shown(folder, found[0][0]), "the command shows the first row")
    out = terminal("explain", recording)
    found = LINK.findall(out)
    check(found and "\x1b" not in LINK.sub("", out), f"{len(found)} links in sentences")
    for link, command in found:
        row, at = re.search(r"--row (\S+) --at ([0-9:.]+\d)", command).groups()
        one, other = shown(folder, link), shown(folder, recording, "--row", row, "--at", at)
        differences = [pair for pair in zip(one.splitlines(), other.splitlines()) if len(set(pair)) == 2]
        check(one == other, f"the link shows what {command} does {differences or ''}")


def check_elsewhere(recording):
    for words in (("gaps", recording, "--top", "3"), ("explain", recording)):
        check("\x1b" not in run(*words).stdout, f"{words[0]}: no links into a pipe")
        for term in ("dumb", "linux", "vt100", ""):
            check("\x1b" not in terminal(*words, term=term), f"{words[0]}: no links with TERM={term}")
    check("\x1b" not in terminal("gaps", recording, "--format", "csv"), "csv has no links")
    check("\x1b" not in terminal("gaps", recording, "--format", "json"), "json has no links")


def check_refusals():
    for link in ("stealscope://", "stealscope://x", "stealscope:///%", "stealscope:///tmp%0", "stealscope:///tmp%00",
                 "stealscope:///a%zz?row=1", "stealscope://elsewhere.invalid/tmp?row=a&at=1"):
        run("view", link, status=1)


def check_absent(folder, recording):
    """A thread that did not run is said to be absent, which is not the answer to a name that nothing has."""
    plain, thread, name = (shown(folder, recording, *words).rstrip() for words in ((), ("--longest", "99999"), ("--longest", "nosuch")))
    before, message = thread.rsplit("\n", 1)
    check(plain.startswith(before) and "99999" in message, f"the screen stays where it begins: {message}")
    check(message.replace("99999", "nosuch") not in name, "a wrong name has another message")


with scratch() as tmp:
    shutil.copytree(f"{DATA}/fibonacci", f"{tmp}/plain")
    check_links(tmp, f"{tmp}/plain")
    hostile = f"{tmp}/a b\x1b]8;;http:evil\x1b\\?&=%é"
    shutil.copytree(f"{DATA}/fibonacci", hostile)
    rename(hostile, b"\x1b]8;;\x07")
    check_links(tmp, hostile)
    check_elsewhere(f"{tmp}/plain")
    check_absent(tmp, f"{tmp}/plain")
    check_refusals()
