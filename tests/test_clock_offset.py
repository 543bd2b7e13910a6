"""Manual clock offsets in the viewer (:offset): what changes, the messages, and where offsets are saved."""
import os
import re
import shutil

from e2e import DATA, check, run, scratch, table

GUEST = "/Virtual Machines/Debian/CPUs/CPU0/Current Thread"


def view(what, *lines, size="120x30", status=0):
    """Runs the lines as a script; returns the screens of all ":screen" lines, and the process."""
    script, screens = os.path.join(TMP, "script"), []
    for i, line in enumerate(lines):
        if line == ":screen":
            screens.append(os.path.join(TMP, f"screen{i}"))
    names = iter(screens)
    with open(script, "w", encoding="utf-8") as f:
        f.writelines((f":screen {next(names)}!" if line == ":screen" else line) + "\n" for line in lines)
    p = run("view", what, "--script", script, "--size", size, "--glyphs", "ascii", status=status)
    return [read(s) for s in screens if os.path.exists(s)], p


def read(path):
    with open(path, encoding="utf-8", newline="") as f:
        return f.read()


def write(path, text):
    with open(path, "w", encoding="utf-8", newline="") as f:
        f.write(text)
    return path


def session(name, nudge):
    return write(os.path.join(TMP, name), f"""
host: {{dir: traces/host}}
guests:
  - {{name: Debian, dir: traces/guest-Debian, nudge: {nudge}}}
""")


def copy_of_traces(folder):
    """A writable copy."""
    shutil.copytree(os.path.join(DATA, "fibonacci"), folder)
    for place, _, files in os.walk(folder):
        for name in (place, *(os.path.join(place, f) for f in files)):
            os.chmod(name, os.stat(name).st_mode | 0o200)
    return folder


def foot(screen):
    return screen.rstrip("\n").split("\n")[-1].strip()


def row_of(screen, label):
    line = next(x for x in screen.split("\n") if label in x)
    return re.split(r"[|*]", line, maxsplit=1)[1]


def since(screen, attribute):
    """Start of the attribute's value in a details page (h:m:s.ns), as ns."""
    h, m, s = re.search(rf"  {attribute} +\S+ +since ([0-9:.]+),", screen).group(1).split(":")
    return (int(h) * 60 + int(m)) * 60 * 10**9 + round(float(s) * 10**9)


def check_moves():
    """All changes from the guest's events move by exactly the offset; the view does not move."""
    run("index", FOLDER)
    cache = os.path.join(FOLDER, "stealscope.steal")
    kept = open(cache, "rb").read()
    rows = [r for r in table("intervals", cache, GUEST) if int(r["end"]) - int(r["start"]) > 20 * 10**6]
    at = [(int(r["start"]) + int(r["end"])) // 2 for r in rows[len(rows) // 3:][:3]]
    for text, ns in (("+3us", 3000), ("-1500ns", -1500), ("+2ms", 2 * 10**6)):
        lines = []
        for t in at:
            lines += [":Debian/CPU0", f":{t}", "x", ":screen", "key q"]
        screens, _ = view(FOLDER, *lines, f":offset Debian {text}", *lines)
        old, new = screens[:len(at)], screens[len(at):]
        moved = [since(b, "Current Thread") - since(a, "Current Thread") for a, b in zip(old, new)]
        check(moved == [ns] * len(at), f"{text}: changes of the guest's current thread move by {moved} ns")

    woken = [r for r in table("intervals", cache, "/Virtual Machines/Debian/Threads/149/Status")
             if r["value"] == "BLOCKED" and int(r["end"]) - int(r["start"]) > 10**7][5]
    place = [":Debian/149", f":{woken['end']}", ":zoom 83us", "(", "key p"]
    (a, b), _ = view(FOLDER, *place, ":screen", ":offset Debian +5us", ":screen")
    before, after = row_of(a, "149 beacon"), row_of(b, "149 beacon")
    cells = [len(x) - len(x.replace("|", "-").lstrip("-")) for x in (before, after)]  # |: cursor, marker
    check("1.00 us/cell" in a and cells[0] > 20 and cells[1] - cells[0] == 5,
          f"at 1 us per cell its row moves by 5 of them: {cells}")
    check(a.split("\n")[1] == b.split("\n")[1] and " A ." in b.split("\n")[0], "the window and the marker stay")
    (pane,), _ = view(FOLDER, *place, "<Enter>", ":offset Debian +5us", ":screen")
    check("flow of Debian/149 beacon" in pane and "= Debian/149" in pane, "so do the pane and the pin")
    check("Debian +5 us" in b.split("\n")[0] and "Debian +5 us" not in a, "the first line shows the offset")

    screens, p = view(FOLDER, ":offset", ":screen")
    check("no clock is shifted" in foot(screens[0]) and "indexing" not in p.stderr, "the next run shows the clock as found")
    check(open(cache, "rb").read() == kept and set(os.listdir(FOLDER)) == LISTING | {"stealscope.steal"},
          "from the same cache; no other file is left")


def check_figures():
    """The same containment as `sync` with this offset in a session file; and back."""
    for text, shown in (("+3us", "+3 us"), ("-200us", "-200 us"), ("40ms", "+40 ms")):
        row = table("sync", session("figures.yaml", text))[0]
        screens, _ = view(FOLDER, f":offset Debian {text}", ":screen", ":offset", ":screen", ":offset Debian 0", ":screen")
        want = f"Debian {shown}: containment 1.0000 -> {float(row['containment']):.4f}"
        check(foot(screens[0]).startswith(want), f"{text}: {foot(screens[0])}")
        worst = int(row["worst_violation_ns"])
        said = re.search(r"worst ([0-9.]+) (ns|us|ms)", foot(screens[0]))
        scale = {"ns": 1, "us": 1000, "ms": 10**6}
        check(worst == 0 if not said else abs(float(said[1]) * scale[said[2]] - worst) <= worst / 200,
              f"the worst violation is {worst} ns")
        check(f"Debian {shown};" in foot(screens[1]), ":offset without arguments lists it")
        check(foot(screens[2]).startswith("Debian 0: containment") and "-> 1.0000" in foot(screens[2]), "0 removes it")


def check_save_new():
    """For a directory: a new session file next to the traces, which never overwrites a file."""
    path = os.path.join(FOLDER, "stealscope.yaml")
    lines = [":Debian/CPU0", ":50%", "x", ":screen", "key q"]
    (a, b, said), _ = view(FOLDER, *lines, ":offset Debian +3us", *lines, ":offset save", ":screen")
    check(foot(said) == f"wrote {path}: Debian +3 us", foot(said))
    text = read(path)
    check("name: Debian" in text and "nudge: +3 us" in text and "name: hypervisor" in text, f"names as found:\n{text}")
    check(TMP not in text, "its directories are relative: it may move with the traces")
    (c, list_), _ = view(path, *lines, ":offset", ":screen")
    ns = since(b, "Current Thread") - since(a, "Current Thread")
    check(ns == 3000 and since(c, "Current Thread") == since(b, "Current Thread"), "opened, it shows the same again")
    check("Debian +3 us;" in foot(list_), "and lists the offset")
    screens, p = view(FOLDER, ":offset Debian +4us", ":offset save", ":screen", status=2)
    check("exists already" in p.stderr and read(path) == text, f"it is not overwritten: {p.stderr.strip()}")
    other = os.path.join(TMP, "other.yml")
    screens, _ = view(FOLDER, ":offset Debian +4us", f":offset save {other}", ":offset Debian -1ms", ":offset save",
                      ":screen")
    check("nudge: -1 ms" in read(other) and f"dir: {FOLDER}" not in read(other), "another name; saved again, it is updated")
    check(table("sync", other)[0]["containment"] == table("sync", session("same.yaml", "-1ms"))[0]["containment"],
          "it finds the traces from another directory, too")
    _, p = view(FOLDER, ":offset Debian +4us", f":offset save {TMP}/notes.txt", status=2)
    check("end in .yaml" in p.stderr and not os.path.exists(f"{TMP}/notes.txt"), p.stderr.strip())
    _, p = view(FOLDER, ":offset save", status=2)
    check("nothing to save" in p.stderr, p.stderr.strip())
    os.remove(path)


EDITS = [
    # a file written by the user, and the same file after :offset Debian +3us, :offset save
    ("""# a café, two guests\nsync: auto   # both
host: {dir: traces/host}   # rack 7
guests:
  # the victim
  - name: Debian   # wheezy
    # where it lies
    dir: traces/guest-Debian
""", """# a café, two guests\nsync: auto   # both
host: {dir: traces/host}   # rack 7
guests:
  # the victim
  - name: Debian   # wheezy
    nudge: +3 us
    # where it lies
    dir: traces/guest-Debian
"""),
    ("host: {dir: traces/host}\nguests: [{dir: 'traces/guest-Debian', 'name': \"Debian\" } ]\n",
     "host: {dir: traces/host}\nguests: [{dir: 'traces/guest-Debian', 'name': \"Debian\", nudge: +3 us } ]\n"),
    ("guests:\n- dir: traces/guest-Debian\n  nudge: 1ms   # é: by eye\n  name: Debian\nhost: {dir: traces/host}\n",
     "guests:\n- dir: traces/guest-Debian\n  nudge: +3 us   # é: by eye\n  name: Debian\nhost: {dir: traces/host}\n"),
    ("host:\r\n    dir: traces/host\r\nguests:\r\n    -   dir: traces/guest-Debian\r\n        name: Debian",
     "host:\r\n    dir: traces/host\r\nguests:\r\n    -   dir: traces/guest-Debian\r\n        name: Debian\r\n"
     "        nudge: +3 us"),
    ("\ufeffhost: {dir: traces/host}\nguests: [{name: Debian, nudge: '-2us', dir: traces/guest-Debian}]\n",
     "\ufeffhost: {dir: traces/host}\nguests: [{name: Debian, nudge: +3 us, dir: traces/guest-Debian}]\n"),
]


def check_save_in_place():
    """For a session file: only that line of the user's file changes."""
    path = os.path.join(TMP, "mine.yaml")
    for before, after in EDITS:
        write(path, before)
        os.chmod(path, 0o640)
        screens, _ = view(path, ":offset Debian +3us", ":offset save", ":screen")
        check(read(path) == after, f"{after!r}: {read(path)!r}")
        check(foot(screens[0]) == f"wrote {path}: Debian +3 us" and os.stat(path).st_mode & 0o777 == 0o640, foot(screens[0]))
        screens, _ = view(path, ":offset", ":screen", ":offset Debian 0", ":offset save", ":screen")
        check("Debian +3 us;" in foot(screens[0]) and foot(screens[1]).startswith(f"wrote {path}: no "), "and back")
        check(read(path) == after.replace("nudge: +3 us", "nudge: 0"), repr(read(path)))
    odd = "host: {dir: traces/host}\nguests:\n  - ? name\n    : Debian\n    ? dir\n    : traces/guest-Debian\n"
    write(path, odd)
    _, p = view(path, ":offset Debian +3us", ":offset save", status=2)
    check('cannot insert "nudge: +3 us"' in p.stderr and read(path) == odd, p.stderr.strip())
    check([f for f in os.listdir(TMP) if "tmp" in f] == [], "no temporary file is left")


def check_history_file():
    """For a history file: it finds its traces from any directory; without them there is an error, and no change."""
    here = copy_of_traces(os.path.join(TMP, "moving"))
    out = os.path.join(TMP, "fib.steal")
    run("index", here, "-o", out)
    lines = [":Debian/CPU0", ":50%", "x", ":screen", "key q"]
    (a, b), _ = view(out, *lines, ":offset Debian +3us", *lines)
    check(since(b, "Current Thread") - since(a, "Current Thread") == 3000, "a history file contains the location of its traces")
    (a, b), _ = view(out, ":offset Debian +3us", ":offset save", ":screen", ":offset Debian +7us", ":offset save", ":screen")
    made = os.path.join(here, "stealscope.yaml")
    check(foot(a) == f"wrote {made}: Debian +3 us" and "nudge: +7 us" in read(made), "the session file is next to them")
    with open(os.path.join(here, "host", "kernel", "ch_1"), "r+b") as f:
        f.truncate(os.path.getsize(f.name) // 2 // 4096 * 4096)
    _, p = view(out, ":offset Debian +3us", status=2)
    check("changed since it was indexed" in p.stderr, p.stderr.strip())
    shutil.move(here, here + "-gone")
    (a, b), p = view(out, ":50%", "w", ":screen", ":screen", ":offset Debian +3us", status=2)
    check(f"traces of this history cannot be read: {here}/host" in p.stderr and "No such file" in p.stderr, p.stderr.strip())
    # A directory may move together with its history.
    run("index", here + "-gone")
    shutil.move(here + "-gone", here + "-again")
    screens, p = view(here + "-again", ":offset Debian +3us", ":screen")
    check(foot(screens[0]).startswith("Debian +3 us: containment") and "indexing" not in p.stderr, "a directory may move")


def check_export():
    """Exports contain the offset; a flow fits 80 columns."""
    flow, steal = os.path.join(TMP, "flow.txt"), os.path.join(TMP, "steal.txt")
    view(FOLDER, ":offset Debian +3us", ":Debian/151", "<Enter>", f":export {flow}", "B", f":export {steal}")
    check("manual offset: +3 us\n" in read(flow), "the header of an exported flow has the offset")
    check("host/216 burnP6 " in read(steal), "an exported matrix names the culprit")
    check(max(len(line) for line in read(flow).split("\n")[1:]) <= 80, "80 columns")


def check_refusals():
    for line, says in ((":offset Fedora +3us", "no guest named"), (":offset host +3us", "no guest"),
                       (":offset Debian far", "no duration"), (":offset Debian", "no duration"),
                       (":offset Debian 61min", "more than an hour")):
        _, p = view(FOLDER, line, status=2)
        check(says in p.stderr, f"{line}: {p.stderr}")
    alone = os.path.join(FOLDER, "guest-Debian")
    _, p = view(alone, ":offset Debian +3us", status=2)
    check("cannot be adjusted" in p.stderr, p.stderr.strip())
    os.remove(os.path.join(alone, "stealscope.steal"))
    path = write(os.path.join(TMP, "host.yaml"), "host: {dir: traces/host}\nguests: [{name: Debian, vcpus: {0: 154}}]\n")
    _, p = view(path, ":offset Debian +3us", status=2)
    check("has no trace" in p.stderr, p.stderr.strip())


def check_place():
    """The history with another offset is built beside the first one, also where the user has no cache directory."""
    history = os.path.join(TMP, "beside", "x.steal")
    os.mkdir(os.path.dirname(history))
    run("index", FOLDER, "-o", history)
    cache, os.environ["XDG_CACHE_HOME"] = os.environ["XDG_CACHE_HOME"], "/dev/null/none"
    (screen,), _ = view(history, ":offset Debian +3us", ":screen")
    os.environ["XDG_CACHE_HOME"] = cache
    check("Debian +3 us" in screen.split("\n")[0], "no cache directory: the offset is shown")
    check(os.listdir(os.path.dirname(history)) == ["x.steal"], "and no other file is left")


with scratch() as TMP:
    FOLDER = copy_of_traces(os.path.join(TMP, "traces"))
    LISTING = set(os.listdir(FOLDER))
    os.environ["XDG_CACHE_HOME"] = os.path.join(TMP, "cache")
    check_moves()
    check_figures()
    check_save_new()
    check_save_in_place()
    check_history_file()
    check_export()
    check_refusals()
    check_place()
