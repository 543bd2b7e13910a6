"""Clocks, end to end: guests whose beacons use the same keys, clocks that step, and their picture by `sync --plot`."""
import csv
import json
import os
import re
import shutil
import subprocess

from e2e import BUILD, DATA, check, is_brief, run, scratch, simulate, table

COLUMNS = 64
UNKNOWN = {"clock-unknown", "clock-unknown-aligned"}          # codes of src/base/note_table.h
UNPLACED = {"step-time-unknown", "setback-time-unknown"}


def reason_text(name):
    """The text of a reason in src/sync/reason_table.h."""
    with open(os.path.join(os.environ.get("srcdir", "."), "src/sync/reason_table.h"), encoding="utf-8") as f:
        return re.search(rf'"{name}",[\s\\]*"([^"]*)"', f.read())[1]


def history_info(folder, *args):
    """Indexes the folder and returns the facts about the history."""
    history = os.path.join(folder, "info.steal")
    os.path.exists(history) and os.remove(history)
    run("index", *args, folder, "-o", history)
    return json.loads(run("info", "--format", "json", history).stdout)


def note_codes(folder, *args):
    """{machine: codes of its notes}"""
    codes = {}
    for note in history_info(folder, *args)["notes"]:
        codes.setdefault(note["machine"], set()).add(note["code"])
    return codes


def plot_of(*args):
    """Returns the rows of the first guest's plot, from the clock outwards: {sign: [text]}."""
    rows = {"+": [], "-": []}
    lines = run("sync", "--plot", *args).stdout.splitlines()
    check(all(len(line) <= 80 for line in lines), "the plot fits 80 columns")
    begin = next(i for i, line in enumerate(lines) if line.startswith("clock of "))
    for line in lines[begin + 2:]:
        row = re.match(r" *(?:([+-])[0-9.]+ [mun]?s(?: \.\.)?|clock) \|(.*)\|$", line)
        if not row:
            break
        check(len(row[2]) == COLUMNS, f"a row of the plot has {COLUMNS} cells")
        if row[1] == "+":
            rows["+"].insert(0, row[2])
        elif row[1] == "-":
            rows["-"].append(row[2])
    check(len(rows["+"]) == len(rows["-"]) > 0, "as many rows above the clock as below")
    return rows


def check_bounds(rows, kinds):
    """In each column the error bound ends before the first pair that sets it."""
    for sign, side in rows.items():
        seen = "".join(side)
        check(all(kind in seen for kind in kinds), f"{sign} has {' and '.join(kinds)}")
        check(not set("ox!") - set(kinds) & set(seen), f"{sign} has nothing else")
        for i in range(COLUMNS):
            outwards = "".join(row[i] for row in side)
            if not re.fullmatch(r"\.*[-ox]?[ ox]*", outwards):
                check(False, f"{sign}, column {i}: '{outwards}' goes from the clock to its bound and to pairs beyond it")
    check(True, "the error bound ends at the first pair")


def truth(folder, name):
    with open(os.path.join(folder, "truth", name), encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def world(folder, *args, scenario="overcommit"):
    subprocess.run([os.path.join(BUILD, "stealscope-sim"), scenario, *args, "-o", folder], check=True,
                   capture_output=True, timeout=300)
    return folder


def check_plot(tmp):
    fibonacci = os.path.join(DATA, "fibonacci")
    check_bounds(plot_of(fibonacci), "ox")
    check_bounds(plot_of("--sync", "containment", fibonacci), "x")
    simulate(os.path.join(tmp, "bogus"), "overcommit", "2", "--sync-bogus", "0.2")
    both = run("sync", "--plot", "--sync", "events", os.path.join(tmp, "bogus")).stdout.split("\nclock of ")
    bad = [int(line.split()[3]) for line in both[0].splitlines()[1:3]]
    marked = [part.split("\n", 2)[2].count("!") for part in both[1:]]
    check(sorted(n > 0 for n in bad) == [False, True], f"one guest of two has pairs that contradict the others: {bad}")
    check([n > 0 for n in marked] == [n > 0 for n in bad] and all(m <= n for m, n in zip(marked, bad)),
          f"the plot marks them: {marked}")


def check_silent_guest(tmp):
    """A guest whose trace is empty."""
    folder = os.path.join(tmp, "silent")
    simulate(folder, "fibonacci", "--duration", "200ms")
    channels = os.path.join(folder, "guest-Debian", "kernel")
    for name in os.listdir(channels):
        if name.startswith("ch"):
            os.truncate(os.path.join(channels, name), 0)
    p = run("sync", "--plot", folder)
    check("Debian" not in p.stdout and "clock of" not in p.stdout and
          "Debian: the trace in " + channels + " is empty" in p.stderr,
          f"a guest without events has no clock and no plot, but a note: {p}")
    history = os.path.join(folder, "silent.steal")
    run("index", folder, "-o", history)
    named = {row["vm"] for row in json.loads(run("info", "--format", "json", history).stdout)["rows"]}
    check(len(named) == 1, f"it does not become a second VM in addition to the one of the host: {named}")


def check_too_little(tmp):
    """With the best offset 3 of 29 events are outside guest mode: too few events to conclude that no offset fits."""
    folder = os.path.join(tmp, "little")
    simulate(folder, "residual_timer", "--seed", "2", "--beacon", "0", "--duration", "30ms")
    reasons = {row["guest"]: row.get("reason") for row in history_info(folder)["sync"]}
    text = reason_text("too-few-events")
    check(reasons["Debian"] == reasons["Ubuntu"] == text, f"the reason is the right one: {reasons}")


def check_identity(tmp, jitter, seed):
    """All beacons start with the same key; with long delays containment alone does not identify the VMs."""
    folder = world(os.path.join(tmp, f"keys{seed}"), "3", "--seed", seed, "--sync-jitter", jitter, "--sync-bogus", "0.05")
    want = {row["vm"]: int(row["host_pid"]) for row in truth(folder, "vcpus.csv")}
    for method in "events", "auto":
        history = os.path.join(tmp, f"{method}.steal")
        run("index", "--sync", method, "-o", history, folder)
        vms = json.loads(run("info", "--format", "json", history).stdout)["vms"]
        check({vm["vm"]: vm["host_pid"] for vm in vms} == want, f"{method}, jitter {jitter}: each guest is its own VM")


def check_step(tmp):
    """The clocks step in mid-trace; other events narrow the time of the step better than beacons every 50 ms, and also alone."""
    folder = world(os.path.join(tmp, "step"), "2", "--clock-step", "3ms", "--sync-jitter", "200us", "--sync-bogus", "0.05")
    for vm, method in ("vm00", "auto"), ("vm01", "auto"), ("vm00", "containment"), ("vm01", "containment"):
        rows = [row for row in table("sync", "--sync", method, folder) if row["guest"] == vm]
        true = [row for row in truth(folder, "clocks.csv") if row["machine"] == vm]
        check(len(rows) == len(true) == 2, f"{vm}, {method}: its clock has two segments")
        check(all(float(row["containment"]) == 1 for row in rows), f"{vm}: all of its events are contained, also at the step")
        for row, t in zip(rows, true):
            elapsed = int(row["ref_guest_ns"]) - int(t["ref_guest_ns"])
            off = int(row["ref_host_ns"]) - int(t["ref_host_ns"]) - (elapsed << 60) // ((1 << 60) + int(t["rate_2p60"]))
            check(abs(off) <= int(row["error_start_ns"]), f"{vm}: right to {off} ns, band {row['error_start_ns']} ns")


def timed_rows(folder):
    """Returns the guests of the rows that start with a time in the text of `sync`."""
    return re.findall(r"^(\w+) +\d+:\d+:\d+\.\d+ ", run("sync", folder).stdout, re.M)


def check_text(tmp):
    """The rows show the start of a segment if a clock has several, and only then."""
    for guests, step, want in ("2", "0", []), ("2", "3ms", ["vm00", "vm00", "vm01", "vm01"]), ("1", "3ms", ["vm00", "vm00"]):
        folder = world(os.path.join(tmp, f"text{guests}{step}"), guests, "--clock-step", step, "--duration", "1s")
        check(timed_rows(folder) == want, f"{guests} guests, clocks step by {step}: segments of {want}")


def check_placed(tmp):
    """A step of 20 ms fits into a single gap between events: its time is known."""
    folder = world(os.path.join(tmp, "placed"), "--seed", "900008", "--clock-step", "20ms", "--beacon", "100", "--duration",
                   "1200ms", scenario="random")
    codes = set().union(*note_codes(folder).values())
    check("clock-change" in codes and not UNPLACED & codes, f"the step is placed: {codes}")
    rows = table("sync", folder)
    check(len(rows) == 2 and all(int(row["error_end_ns"]) < 5000 for row in rows), "no event is ambiguous")


def check_rate(tmp):
    """At the ends of an ACCURATE clock only clocks of its rate are tried, not all that fit the few events there."""
    folder = world(os.path.join(tmp, "rate"), "--seed", "730001", "--duration", "800ms", "--beacon", "50", "--hotplug",
                   scenario="random")
    rows = table("sync", "--sync", "containment", folder)
    check(len(rows) == 1 and int(rows[0]["error_start_ns"]) < 1500, "the error bounds are no wider at the start than in the middle")


def check_unsure(tmp):
    """A step shorter than the gaps between events cannot be placed: there is a note, and the error bounds contain it."""
    folder = world(os.path.join(tmp, "unsure"), "--seed", "4", "--clock-step", "300us", "--beacon", "100", "--duration",
                   "1200ms", scenario="random")
    history = os.path.join(tmp, "unsure.steal")
    run("index", folder, "-o", history)
    codes = note_codes(folder)
    for vm in "Debian", "Fedora", "Ubuntu":
        check(UNPLACED & codes[vm], f"{vm}: a note says that its step cannot be placed: {codes}")
        jumps = [int(r["from_host_ns"]) for r in truth(folder, "clocks.csv") if r["machine"] == vm]
        rows = table("intervals", history, f"/Virtual Machines/{vm}/Clock Band")
        wide = [r for r in rows if r["value"] and int(r["value"]) > 250000]
        check(any(int(r["start"]) <= jumps[1] <= int(r["end"]) for r in wide), f"{vm}: its error bounds contain the step when it happens")
        lasts = sum(int(r["end"]) - int(r["start"]) + 1 for r in wide)
        check(lasts < 60e6, f"{vm}: and for {lasts / 1e6:.1f} ms around it only")


def check_foreign(tmp):
    """A guest's trace of another recording: keys match by chance, which yields no clock, no culprit and no lifetime."""
    def other(seed):
        return world(os.path.join(tmp, f"other{seed}"), "2", "--seed", str(seed), "--sync-jitter", "50us")
    own = [other(seed) for seed in range(1, 6)] + [os.path.join(DATA, "fibonacci")]
    folders = [os.path.join(tmp, f"mixed{i}") for i in range(len(own))]
    for i, folder in enumerate(folders):
        shutil.copytree(own[i], folder)
        shutil.rmtree(os.path.join(folder, "guest-vm00" if i < 5 else "guest-Debian"))
        shutil.copytree(os.path.join(own[(i + 1) % 5], "guest-vm00"), os.path.join(folder, "guest-stranger"))
    for folder in folders[4:] if is_brief() else folders:
        for method in "auto", "events":
            p = run("sync", "--sync", method, folder, "--format", "csv")
            rows = [r for r in csv.DictReader(p.stdout.splitlines()) if r["guest"] == "vm00"]
            check([r["quality"] for r in rows] == ["ABSENT"], f"{folder}, {method}: a foreign guest has no clock: {rows}")
            codes = note_codes(folder, "--sync", method)
            check(UNKNOWN & codes["vm00"], f"{folder}, {method}: a note says so: {codes}")
        history = os.path.join(tmp, "mixed.steal")
        os.path.exists(history) and os.remove(history)
        run("index", folder, "-o", history)
        named = {(r["victim"], r["culprit"]) for r in table("steal", history)}
        check(named and not any("vm00" in pair and set(pair) - {"vm00", "idle CPU"} for pair in named),
              f"{folder}: it is neither victim nor culprit: {named}")
        lost = {r["target"]: (r["lost_ns"], r["gaps"], r["vmm_ns"]) for r in table("summary", history)}
        check(lost["vm00"] == ("", "", "") and "" not in lost["host"], f"its lost time is unknown: {lost['vm00']}")
    screen = os.path.join(tmp, "mixed.txt")
    keys = os.path.join(tmp, "mixed.keys")
    with open(keys, "w", encoding="utf-8") as f:
        f.write(f":vm00/CPU0\n:screen {screen}!\n")
    run("view", history, "--script", keys, "--size", "80x24", "--glyphs", "ascii")
    with open(screen, encoding="utf-8") as f:
        lines = [line[:24] for line in f]
    first = [i for i, line in enumerate(lines) if line.startswith("v vm00")][0]
    rows = lines[first:first + 2]
    check("vCPU0" in rows[1] and "%" not in "".join(rows), f"there is no figure for an untraced vCPU: {rows}")
    # it was recorded days later, which does not make the recording days long
    span = json.loads(run("info", "--format", "json", history).stdout)
    check(span["end"] - span["begin"] < 60e9, f"both traces begin together: {span['begin']} .. {span['end']}")
    states = table("intervals", history, "/Virtual Machines/vm00/CPUs/CPU0/Status")
    check(states[-1]["value"] in ("", "UNKNOWN"), f"its state after its trace is unknown: {states[-1]}")


with scratch() as tmp:
    check_foreign(tmp)
    check_plot(tmp)
    check_silent_guest(tmp)
    check_too_little(tmp)
    check_identity(tmp, "20us", "6")
    check_identity(tmp, "200us", "4")
    check_text(tmp)
    check_step(tmp)
    check_placed(tmp)
    check_rate(tmp)
    check_unsure(tmp)
