"""Guests without a host trace: the frequency of a TSC, the first sentence of every report without a source of stolen
time, and the reports of a guest with a steal clock."""
import json
import os
import re

from e2e import SHARED, SOURCE, check, codes, joined, notes, require_recordings, run, scratch, table

require_recordings()
directory = scratch()
FIRST = "note No host trace and no steal clock: time taken by the host is invisible here and counts as running"
HOG = os.path.join(SHARED, "tenant_hog", "guest-Debian")


def path(name):
    return os.path.join(directory.name, name)


def taken(history):
    return sum(int(r["ns"]) for r in table("steal", history) if r["culprit"].startswith("provider"))


def check_frequency():
    """A trace of TSC cycles without timer expirations, which a layout without their rule hides."""
    with open(os.path.join(SOURCE, "src", "trace", "layouts", "ftrace.yaml"), encoding="utf-8") as f:
        text = f.read()
    less = re.sub(r"(?m)^  - \{kind: hrtimer_entry,[^}]*\}\n", "", text)
    check(less != text, "the layout has a rule for timer expirations")
    with open(path("less.yaml"), "w", encoding="utf-8") as f:
        f.write(less)
    trace = ["--guest", "Debian=" + HOG, "--layout", path("less.yaml")]
    p = run("index", *trace, "-o", path("none.steal"), status=2)
    check("TSC cycles of unknown frequency (use --tsc-hz N" in p.stderr, f"unknown frequency: {p.stderr}")
    check(not os.path.exists(path("none.steal")), "no history without a frequency")
    for value in ("", "1", "2596.1", "-2596091635", "99999999999999999999"):
        run("index", *trace, "--tsc-hz", value, "-o", path("none.steal"), status=1)

    run("index", "--guest", "Debian=" + HOG, "-o", path("hog.steal"))
    rate = re.search(r"converted at (\d+)\.(\d{6}) MHz as its timers show", str(notes("summary", path("hog.steal"))))
    check(rate, "the frequency is measured from timer expirations")
    hz = rate[1] + rate[2]
    text = run("explain", path("hog.steal")).stdout
    check("uptime -s" in joined(text), "a request to the provider without a date asks for the time of boot")
    rows = table("gaps", path("hog.steal"), "Debian/CPU0", "--top", "1")
    start = f"{int(rows[0]['start']) / 1e9:.6f}"
    at = [run("explain", path("hog.steal"), "Debian/CPU0", "--at", f"{machine}00:00:{start}").stdout for machine in ("", "Debian@")]
    check(at[0] == at[1], "the times of a guest alone are those of its clock")
    run("index", *trace, "--tsc-hz", hz, "-o", path("given.steal"))
    check("clock-from-hz" in codes("summary", path("given.steal")), "a note shows the frequency that was given")
    measured, given = taken(path("hog.steal")), taken(path("given.steal"))
    check(measured > 1e9 and abs(given - measured) <= 0.01 * measured, f"stolen: {given} ns, measured clock {measured} ns")
    run("index", "--guest", "Debian=" + HOG, "--tsc-hz", "1000000000", "-o", path("unused.steal"))
    check(taken(path("unused.steal")) == measured, "timer expirations take precedence over --tsc-hz")

    os.mkdir(path("session"))
    session = {"tsc_hz": int(hz), "guests": [{"name": "Debian", "dir": HOG, "layout": path("less.yaml")}]}
    with open(path("session/session.yaml"), "w", encoding="utf-8") as f:
        json.dump(session, f)
    run("index", path("session/session.yaml"), "-o", path("session.steal"))  # named, so it may lead elsewhere
    check(taken(path("session.steal")) == given, "tsc_hz of a session file")
    for history in ("hog.steal", "given.steal", "session.steal"):
        events = table("events", path(history), "Debian", "--at", "50%", "--around", "20ms")
        check(len(events) > 10, f"{history}: the events of a window of a trace in TSC cycles: {len(events)}")


def reports(history):
    thread = next(r["target"] for r in table("summary", history) if re.match(r"Debian/[1-9]", r["target"]))
    return (["summary"], ["gaps"], ["steal"], ["steal", "--by", "thread"], ["explain"], ["explain", thread], ["waits"],
            ["exits"], ["flow", thread], ["flow", "Debian/CPU0"], ["path", thread])


def check_without_source(name):
    guest = os.path.join(SHARED, name, "guest-Debian")
    history = path(name + ".steal")
    run("index", "--guest", "Debian=" + guest, "-o", history)
    for command, *rest in reports(history):
        text = joined(run(command, history, *rest).stdout)
        if command == "explain" and rest:  # sentences
            check(text.startswith(FIRST.removeprefix("note ")), f"{name}: first sentence of {command} {rest}: {text[:80]}")
            continue
        first = text.find("note ")
        check(text[first:].startswith(FIRST), f"{name}: first note of {command} {rest}: {text[first:first + 80]}")
        if command == "explain":  # no json
            continue
        found = notes(command, history, *rest)
        check(found[0]["code"] == "no-steal-clock", f"{name}: first note of {command} {rest} in json")
    check(joined(run("summary", history).stdout).startswith("verdict: no host trace and no steal clock: "),
          f"{name}: verdict")
    rows = table("steal", history, "--by", "thread")
    check(not any(r["culprit"].startswith(("provider", "host")) for r in rows), f"{name}: the host is no culprit")
    p = run("whatif", history, "add CPU", status=2)
    check("needs the host's CPUs and threads (record the host, too)" in p.stderr, f"{name}: {p.stderr}")


def check_with_source():
    history = path("hog.steal")
    for command, *rest in reports(history):
        text = run(command, history, *rest).stdout
        check("no steal clock" not in joined(text), f"{command} {rest}: has a steal clock")
    lost = taken(history)
    flow = json.loads(run("flow", history, "Debian/CPU0", "--format", "json").stdout)
    text = run("flow", history, "Debian/CPU0").stdout
    check("provider: neighbour" in text, "the flow of a vCPU shows the provider")
    gaps = table("gaps", history, "--top", "0")
    total = sum(int(r["culprit_ns"]) for r in gaps if r["target"] == "Debian/vCPU0" and r["culprit_name"].startswith("provider"))
    check(abs(total - lost) <= 0.01 * lost, f"gaps of the provider: {total} ns, {lost} ns")
    check(flow["rows"], "the flow in json")
    p = run("whatif", history, "add CPU", status=2)
    check("needs the host's CPUs and threads (record the host, too)" in p.stderr, f"whatif: {p.stderr}")
    p = run("diff", history, history)
    check("No significant change" in p.stdout, "a recording does not differ from itself")


check_frequency()
for recording in sorted(os.listdir(SHARED)):
    if os.path.isdir(os.path.join(SHARED, recording, "guest-Debian")) and not recording.startswith(("tenant_", "big")):
        check_without_source(recording)
check_with_source()
