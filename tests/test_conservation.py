"""All commands have the same figures for the same target, to the ns, in every recording."""
import os
import re

from e2e import DATA, check, recordings, require_recordings, run, scratch, simulate, slice_of, table

OUT = {"PREEMPTED", "HOST_BLOCKED", "WAKING"}  # of a vCPU: its gaps
LOST = OUT | {"VMM", "VIRT_PREEMPTED"}
MORE = {"irq", "waiting", "unknown"}  # kinds of a flow that need not be lost time
THREADS = 2          # of each recording, those that lost most


def duration(row):
    return int(row["end"]) - int(row["start"]) + 1


def by_state(history, attribute):
    ns = {}
    for row in table("intervals", history, attribute):
        ns[row["value"]] = ns.get(row["value"], 0) + duration(row)
    return ns


def lost_of(history, attribute):
    return sum(ns for state, ns in by_state(history, attribute).items() if state in LOST)


def gaps_of(history, *subject):
    """All gaps, by culprit, from the list with every culprit: they add up to the lost time."""
    rows = table("gaps", history, *subject, "--top", "0", "--all-culprits")
    return sum(int(row["culprit_ns"]) for row in rows), rows


def stolen(history, victim, *options):
    return {row["culprit"]: int(row["ns"]) for row in table("steal", history, *options) if row["victim"] == victim}


def said(text, word):
    """Finds the duration next to a word in a text: "lost 951 ms", "951 ms in total"."""
    return re.search(word, " ".join(text.split())).group(1)


def near(text, ns):
    """Returns true if the duration in the text is this one, to three figures."""
    number, unit = text.split()
    told = float(number) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}[unit]
    return abs(told - ns) <= 0.006 * ns


def machines(history, summary):
    for vm in (row for row in summary if not row["tid"] and row["machine"] != "host"):
        name, lost = vm["machine"], int(vm["lost_ns"])
        cpus = sorted({(row["vm"], row["vcpu"]) for row in table("info", history) if row["vm"] == name})
        status = "/Virtual Machines/" + name + "/CPUs/CPU%s/Status"
        if not cpus:
            continue
        check(lost == sum(lost_of(history, status % cpu) for _, cpu in cpus), f"{name} lost {lost} ns: its states say so")
        served = int(vm["vmm_ns"])
        check(served == sum(by_state(history, status % cpu).get("VMM", 0) for _, cpu in cpus), f"of these {served} ns in VMM")
        check(lost - served == gaps_of(history, name)[0], "the rest are its gaps")
        check(lost - served == sum(stolen(history, name).values()), "and the matrix")
        for _, cpu in cpus:
            subject = f"{name}/CPU{cpu}"
            told = " ".join(run("explain", history, subject).stdout.split())
            listed = run("gaps", history, subject).stdout
            if by_state(history, status % cpu).keys() - {""}:
                served_is_told = "of the lost time in VM exits" in told
                check(served_is_told == ("VMM" in by_state(history, status % cpu)), f"{subject}: explain tells served")
                check(near(said(told, r"lost ([\d.]+ \w+)"), lost_of(history, status % cpu)), "and all that is lost")
                check(served_is_told or said(told, r"lost ([\d.]+ \w+)") ==
                      (said(listed, r", ([\d.]+ \w+) in total") if "in total" in listed else "0 ns"), "else its gaps")


def threads(history, summary):
    rows = [row for row in summary if row["tid"] and int(row["lost_ns"])][:THREADS]
    listed = {(row["machine"], row["tid"]): row for row in table("threads", history)}
    matrix = table("steal", history, "--by", "thread")
    for row in rows:
        subject, lost = f"{row['machine']}/{row['tid']}", int(row["lost_ns"])
        again = listed[row["machine"], row["tid"]]
        check((again["ran_ns"], again["lost_ns"]) == (row["ran_ns"], row["lost_ns"]), f"{subject}: threads and summary")
        flow = table("flow", history, subject)
        total, gaps = gaps_of(history, subject)
        check(lost == total, f"{subject} lost {lost} ns: its gaps say so")
        check(said(run("gaps", history, subject).stdout, r", ([\d.]+ \w+) in total") ==
              said(run("flow", history, subject).stdout, r"lost ([\d.]+ \w+) \("), "as does its flow")
        check(lost == sum(int(cell["ns"]) for cell in matrix if cell["victim"] == row["target"]), "and the matrix")
        for who in {(g["culprit_machine"], g["culprit_tid"], g["culprit_name"]) for g in gaps}:
            entries = [e for e in flow if (e["machine"], e["tid"], e["name"]) == who]
            mine = sum(int(g["culprit_ns"]) for g in gaps if (g["culprit_machine"], g["culprit_tid"], g["culprit_name"]) == who)
            flows = sum(int(e["duration_ns"]) for e in entries if e["kind"] not in ("running", "waiting"))
            if mine != flows and not {e["kind"] for e in entries} & MORE:
                check(False, f"{subject}: {who} had {mine} ns of its gaps, and {flows} ns of its flow")


def overlap(a, b):
    """The intersection of two sorted lists of closed intervals."""
    out, i, k = [], 0, 0
    while i < len(a) and k < len(b):
        start, end = max(a[i][0], b[k][0]), min(a[i][1], b[k][1])
        if start <= end:
            out.append((start, end))
        if a[i][1] < b[k][1]:
            i += 1
        else:
            k += 1
    return out


def spans(history, attribute, values):
    return [(int(r["start"]), int(r["end"])) for r in table("intervals", history, attribute) if r["value"] in values]


def requests(history):
    """Lower bound of the provider's part: time lost by the vCPU while the request executed.  Machines with one vCPU."""
    p = run("latency", "requests", history, "--format", "csv", status=None)
    if p.returncode or p.stdout.count("\n") < 2:
        return
    rows = table("latency", "requests", history)
    for row in rows[:: max(1, len(rows) // 3)]:
        root = f"/Virtual Machines/{row['machine']}"
        mine = f"/Requests/{row['machine']}/{row['request']}/"
        executing = spans(history, mine + "State", {"running"})
        tid = {r["value"] for r in table("intervals", history, mine + "Thread")} - {""}
        if len(tid) != 1 or not executing:
            continue
        on = spans(history, f"{root}/Threads/{tid.pop()}/Status", {"RUNNING", "VIRT_PREEMPTED"})
        lost = overlap(overlap(executing, on), spans(history, root + "/CPUs/CPU0/Status", OUT))
        check(sum(b - a + 1 for a, b in lost) == int(row["provider_low_ns"]),
              f"request {row['request']}: its vCPU lost {row['provider_low_ns']} ns while it executed")


def one(name, folder, history):
    p = run("index", folder, "-o", history, status=None)
    if p.returncode:
        check(False, f"{name} is indexed: {p.stderr}")
    print(name)
    summary = table("summary", history, "--top", "0")
    if not any(row["machine"] == "host" for row in summary):
        print("no KVM host: nothing to compare")
        return
    for row in summary:
        if sum(stolen(history, row["machine"], "host").values()) != int(row["lost_ns"]) and row["target"] == "host":
            check(False, "the host: matrix and summary")
    machines(history, summary)
    threads(history, summary)
    requests(history)


with scratch() as tmp:
    one("fibonacci", os.path.join(DATA, "fibonacci"), tmp + "/fibonacci.steal")
    for kind in ("overcommit", "nested"):
        simulate(f"{tmp}/{kind}", kind, "2", "--duration", "1s")
        one(kind, f"{tmp}/{kind}", f"{tmp}/{kind}.steal")
    require_recordings()
    for folder in slice_of(recordings(), 4):
        name = os.path.basename(folder.rstrip("/"))
        one(name, folder, f"{tmp}/{name}.steal")
