"""`stealscope events`: the events around a moment, from the traces, on the host's clock."""
import csv
import os
import re
import shutil
import subprocess

from e2e import BUILD, DATA, SHARED, check, document, on_terminal, run, scratch, table
from test_recording import make

CURRENT = "/Virtual Machines/Debian/CPUs/CPU0/Current Thread"


def copy(source, name):
    folder = shutil.copytree(source, os.path.join(TMP, name))
    for place, _, files in os.walk(folder):
        for path in (place, *(os.path.join(place, f) for f in files)):
            os.chmod(path, os.stat(path).st_mode | 0o200)
    return folder


def events(what, *args, at="0%", around="1h"):
    return table("events", what, *args, "--at", at, "--around", around)


def check_times():
    """The guest's scheduler events are at the times of the history, to the ns, and complete."""
    folder = copy(os.path.join(DATA, "fibonacci"), "times")
    run("index", folder)
    rows = events(folder)
    counts = {t["machine"]: t["events"] for t in document(folder)["traces"]}
    check(len(rows) == sum(counts.values()), f"all {len(rows)} events are told")
    check(all(int(a["at"]) <= int(b["at"]) for a, b in zip(rows, rows[1:])), "in the order of time")
    starts = {int(r["start"]) for r in table("intervals", folder, CURRENT)}
    switches = [r for r in rows if r["machine"] == "Debian" and r["event"] == "sched_switch"]
    check(len(switches) > 400 and all(int(r["at"]) in starts for r in switches),
          f"each of {len(switches)} switches of the guest begins an interval of the history")
    check(all(r["at"] == r["machine_ns"] for r in rows if r["machine"] == "host"), "the host's clock is its own")
    check(any(r["at"] != r["machine_ns"] for r in switches), "the guest's is not")
    fields = next(r["fields"] for r in switches if "next_comm=fibonacci" in r["fields"])
    check("prev_tid=" in fields and "prev_state=" in fields, f"with their fields: {fields}")
    only = events(folder, "host")
    check(only == [r for r in rows if r["machine"] == "host"], "of the host alone")
    check(events(folder, "Debian/151") == rows, "of a guest's thread: its machine and the host")
    middle = int(rows[len(rows) // 2]["at"])
    for by in (1, 20_000, 5_000_000):
        some = events(folder, at=str(middle), around=f"{by}ns")
        check(some and some == [r for r in rows if abs(int(r["at"]) - middle) <= by], f"{len(some)} within {by} ns")
    text = run("events", folder, "--at", str(middle), "--around", "50us").stdout
    check(text.split("\n")[0].split() == ["at", "machine", "CPU", "TID", "name", "event", "fields"], "and as a table")
    check_narrow(folder, ("events", folder, "--at", str(middle), "--around", "500us"))


def check_narrow(folder, words):
    """A terminal shows as many whole fields as fit, and a hint for the others."""
    told = [r["fields"] for r in table(*words)]
    for columns in (80, 400):
        lines = on_terminal(*words, columns=columns).rstrip("\n").split("\n")
        start = lines[0].index("fields")
        shown = [line[start:] for line in lines[1:len(told) + 1]]
        whole = [s == t or (s.endswith(" ~") and t.startswith(s[:-1])) or (s.endswith("~") and t.startswith(s[:-1]) and " " not in s)
                 for s, t in zip(shown, told)]
        check(all(whole) and max(map(len, lines)) <= columns, f"{columns} columns: whole fields, from the first on {shown[:2]}")
        check((shown != told) == (columns == 80) == ("--format csv" in lines[-1]), f"{columns} columns: what is left out is said")


def check_nudge():
    """A manual clock offset moves the guest's events, and no others."""
    folder = copy(os.path.join(DATA, "fibonacci"), "nudge")
    session = os.path.join(TMP, "nudged.yaml")
    with open(session, "w", encoding="utf-8") as f:
        f.write("host: {dir: nudge/host}\nguests:\n  - {name: Debian, dir: nudge/guest-Debian, nudge: 1234567 ns}\n")
    of = {what: {int(r["machine_ns"]): int(r["at"]) for r in events(what, "Debian") if r["machine"] == "Debian"}
          for what in (folder, session)}
    moved = {of[session][own] - at for own, at in of[folder].items() if own in of[session]}
    check(moved == {1234567}, f"by the nudge: {moved}")


def check_part():
    """Only the part around the moment is decoded: noise elsewhere in the trace does not matter."""
    folder = os.path.join(TMP, "packets")
    sim = os.path.join(BUILD, "stealscope-sim")
    subprocess.run([sim, "random", "--seed", "4", "--events", "60k", "--packet", "4096", "--no-truth", "-o", folder],
                   check=True, stderr=subprocess.DEVNULL)
    run("index", folder)
    whole = events(folder)
    last = int(whole[-1]["at"])
    for share in (1, 7, 33, 60, 99):
        at = int(whole[len(whole) * share // 100]["at"])
        some = events(folder, at=str(at), around="300us")
        check(some and some == [r for r in whole if abs(int(r["at"]) - at) <= 300_000], f"{len(some)} events at {share} %")
    streams = [os.path.join(place, f) for place, _, files in os.walk(os.path.join(folder, "host")) for f in files
               if f not in ("metadata", "session.yaml") and not f.endswith(".idx")]
    for path in streams:
        with open(path, "r+b") as f:
            f.seek(200)
            f.write(b"\xff" * 3000)
    end = events(folder, at=str(last), around="300us")
    check(end == [r for r in whole if int(r["at"]) >= last - 300_000], "the end, behind noise in the first packets")
    check(events(folder) != whole, "which all of the trace shows")


def check_pages():
    folder = os.path.join(TMP, "pages")
    n, m = make(folder)
    if run("index", folder, status=None).returncode:
        return  # a build without libtraceevent
    whole = events(folder)
    check(len(whole) == n + m, f"all {n + m} events of raw pages")
    for share in (0, 20, 50, 99):
        at = int(whole[len(whole) * share // 100]["at"])
        some = events(folder, at=str(at), around="3ms")
        check(some and some == [r for r in whole if abs(int(r["at"]) - at) <= 3_000_000], f"{len(some)} of them at {share} %")


def view(what, *lines, size="120x40"):
    """Returns the screen after the lines of a script, or the error."""
    script, screen = os.path.join(TMP, "script"), os.path.join(TMP, "screen")
    with open(script, "w", encoding="utf-8") as f:
        f.writelines(line + "\n" for line in (*lines, f":screen {screen}!"))
    p = run("view", what, "--script", script, "--size", size, "--glyphs", "ascii", status=None)
    if p.returncode:
        return [p.stderr]
    with open(screen, encoding="utf-8") as f:
        return f.read().rstrip("\n").split("\n")


def check_pane():
    """The viewer shows the same around its cursor, and moving in the list moves the time."""
    folder = copy(os.path.join(DATA, "fibonacci"), "pane")
    rows = events(folder, "Debian")
    switch = next(r for r in rows[len(rows) // 2:] if r["machine"] == "Debian" and r["event"] == "sched_switch")
    near = [r for r in rows if abs(int(r["at"]) - int(switch["at"])) <= 10**6]
    place = (":Debian/151", f":{switch['at']}", ":zoom 1ms", "e")
    for size in ("80x24", "120x40"):
        screen = view(folder, *place, size=size)
        title = next(i for i, x in enumerate(screen) if f" {len(near)} event{'s'[:len(near) > 1]} within 1.00 ms of " in x)
        lines = screen[title + 2:-2]
        check(len(lines) == min(len(near), len(lines)) and lines, f"{size}: {len(lines)} of {len(near)} events in the pane")
        check(re.search("fields prev_tid=|CPU 0, TID", screen[-2]), f"the cursor is on it: {screen[-2]}")
    out = os.path.join(TMP, "pane.csv")
    view(folder, *place, f":export {out}")
    with open(out, encoding="utf-8") as f:
        check(list(csv.DictReader(f)) == near, "an export has what the command prints")
    check("/151 fibonacci" in view(folder, *place, "j", "j", "q")[-2], "q goes back to the rows")
    shutil.rmtree(os.path.join(folder, "guest-Debian"))
    foot = view(os.path.join(folder, "stealscope.steal"), *place)[-1]
    check("the traces of this history cannot be read" in foot, f"where they are gone one line says so: {foot.strip()}")


def refused(what, *args, status=1):
    said = run("events", what, *args, status=status).stderr
    check(said.count("\n") == 1, f"one line: {said.strip()}")
    return said


def check_refusals():
    folder = copy(os.path.join(DATA, "fibonacci"), "gone")
    history = os.path.join(folder, "stealscope.steal")
    run("index", folder)
    some = ("--at", "50%")
    check("--at" in refused(folder), "a moment is wanted")
    refused(folder, "--at", "soon")
    refused(folder, *some, "--around", "3")
    refused(folder, "nobody", *some)
    part = os.path.join(TMP, "part.steal")
    run("cut", folder, "-o", part, "--names", "hash")
    check("a cut history does not record" in refused(part, *some, status=2), "a part that was given away does not lead to the traces")
    stream = os.path.join(folder, "host", "kernel", "ch_1")
    os.truncate(stream, os.path.getsize(stream) - 4096)
    check("ch_1 changed its size" in refused(history, *some, status=2), "a trace that changed is not read for another")
    shutil.rmtree(os.path.join(folder, "host"))
    refused(history, *some, status=2)


def check_recordings():
    """Other tracers, nested machines, clocks that jump: every switch starts an interval, on any machine's clock."""
    for name in ("fibonacci_tracecmd", "fibonacci_tca", "fibonacci_perf", "pause", "migrate"):
        source = os.path.join(SHARED, name)
        if not os.path.isdir(source):
            continue
        folder = copy(source, name)
        p = run("index", folder, status=None)
        if p.returncode:  # a build without the library that reads it
            continue
        rows, starts = events(folder), {}
        for r in rows:
            if r["event"] != "sched_switch" or r["tid"] == "":
                continue
            root = "Host" if r["machine"] == "host" else f"Virtual Machines/{r['machine']}"
            cpu = f"/{root}/CPUs/CPU{r['cpu']}/Current Thread"
            if cpu not in starts:
                starts[cpu] = {int(i["start"]) for i in table("intervals", folder, cpu)}
            starts.setdefault("seen", []).append(int(r["at"]) in starts[cpu])
        share = sum(starts["seen"]) / len(starts["seen"])
        check(share > 0.99, f"{name}: {share:.4f} of {len(starts['seen'])} switches begin an interval")


with scratch() as TMP:
    check_times()
    check_nudge()
    check_part()
    check_pages()
    check_pane()
    check_refusals()
    check_recordings()
