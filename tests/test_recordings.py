"""A directory of recordings is a list: what counts as a recording, a line per recording, the cache of the lines, and the
screen on a pty that tmux interprets."""
import glob
import json
import os
import re
import shutil
import sys

from e2e import DATA, PROGRAM, check, run, scratch
from tmux_screen import Screen, screens

FIBONACCI = os.path.join(DATA, "fibonacci")


def make_recordings(folder):
    """Two recordings with two machines, one with a session file, one in a directory of several, and a broken one."""
    for name in ("alpha", "beta", "nested/one", "nested/two"):
        shutil.copytree(FIBONACCI, f"{folder}/{name}", ignore=shutil.ignore_patterns("*.steal"))
    os.makedirs(f"{folder}/broken")
    with open(f"{folder}/broken/session.yaml", "w", encoding="ascii") as f:
        f.write("host: {dir: nowhere}\n")
    os.makedirs(f"{folder}/notes/deep/er")
    for i, name in enumerate(("alpha", "beta")):
        for path in glob.glob(f"{folder}/{name}/**", recursive=True):
            os.utime(path, (1700000000 + i, 1700000000 + i))


def lines(folder, *args):
    rows = run("view", folder, *args).stdout.splitlines()
    return {row.split()[0]: row for row in rows[1:]}


def check_list(folder):
    p = run("info", folder, status=2)
    check("5 recordings" in p.stderr and folder in p.stderr and p.stderr.count("\n") == 1, p.stderr.strip())
    listed = lines(folder)
    check(list(listed)[-1:] == ["alpha"] and set(listed) == {"alpha", "beta", "nested/one", "nested/two", "broken"}, f"{list(listed)}")
    verdict = json.loads(run("summary", f"{folder}/alpha", "--format", "json").stdout)["verdict"]["text"]
    verdict = re.sub(r" \(\d+ % of [^)]*\)", "", verdict)  # the share has its own column
    check(all(verdict in listed[name] and "1 VM" in listed[name] for name in ("alpha", "beta", "nested/two")), "the verdict of summary")
    check("nowhere" in listed["broken"], listed["broken"])
    return verdict


def check_cache(folder):
    path, = glob.glob(os.environ["XDG_CACHE_HOME"] + "/stealscope/list-*.json")
    with open(path, encoding="utf-8") as f:
        cache = json.load(f)
    check({x["name"] for x in cache["lines"]} == {"alpha", "beta", "nested/one", "nested/two"}, "unreadable recordings are not cached")
    for line in cache["lines"]:
        line["verdict"] = "cached line"
    with open(path, "w", encoding="utf-8") as f:
        json.dump(cache, f)
    check("cached line" in lines(folder)["alpha"], "an unchanged recording is not read again")
    os.utime(f"{folder}/alpha/host/kernel/metadata")
    listed = lines(folder)
    check("cached line" not in listed["alpha"] and "cached line" in listed["beta"], "a changed recording is read again")
    for text in ("", "[", '{"program": 1, "lines": 7}', "\0" * 100):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        check("cached line" not in lines(folder)["beta"], f"a damaged cache is ignored: {text[:10]!r}")


def check_single(folder):
    """Directories that are no lists: a recording, the machines of one recording, and an empty one."""
    for name in ("one", "machines"):
        check(run("info", f"{folder}/{name}").returncode == 0, f"{name} is one recording")
    p = run(cwd=f"{folder}/empty", status=1)
    check(all(word in p.stderr for word in ("top", "record", "DIR", "demo")), "without a recording the program names first steps")


def check_screen(folder, verdict):
    screen = Screen(folder, 120, 20, f"{PROGRAM} {folder}/many")
    first = screen.wait(re.escape(verdict[:40]))
    check(first and "5 recordings" in first and re.search(r"^>", first, re.M), "the first row is selected")
    screen.keys("/", "two")
    found = screen.wait(r"^>.nested/two")
    check(found and "alpha" not in found, "letters search")
    screen.keys("Enter", "Enter")
    check(screen.wait(r"host \+ 1 VM"), "Enter opens the recording")
    screen.keys("q")
    check(screen.wait(r"^>.nested/two"), "q in the viewer comes back")
    screen.keys("Escape", "g", "Space", "Space")
    check(len(re.findall(r"^.\*", screen.wait(r"^.\*.*\n.\*") or "", re.M)) == 2, "two are marked")
    screen.keys("D")
    check(screen.wait("Enter: back"), "D compares them")
    screen.keys("Enter", "s")
    check(screen.wait("sort: name"), "s sorts")
    screen.keys("/", "alpha", "Enter", "t")
    check(screen.wait("wrote alpha.html") and os.path.exists(f"{folder}/alpha.html"), "t writes a ticket")
    screen.tmux("resize-window", "-x", "60", "-y", "12")
    check(screen.wait(r"^>.alpha"), "a small screen")
    screen.keys("q")
    check(screen.wait("ended 0"), "q quits")


def main():
    with scratch() as folder:
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        make_recordings(f"{folder}/many")
        shutil.copytree(FIBONACCI, f"{folder}/one", ignore=shutil.ignore_patterns("*.steal"))
        os.makedirs(f"{folder}/empty")
        for machine in ("host", "guest-Debian"):
            shutil.copytree(f"{FIBONACCI}/{machine}", f"{folder}/machines/{machine}")
        verdict = check_list(f"{folder}/many")
        check_cache(f"{folder}/many")
        check_single(folder)
        if not shutil.which("tmux"):
            print("tmux is not installed: the screen was not tried")
            return 0
        try:
            check_screen(folder, verdict)
        finally:
            for screen in screens:
                screen.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
