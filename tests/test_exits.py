"""`stealscope exits` counts the exits of the trace like another reader of it; its parts add up."""
import collections
import re
import shutil
import subprocess

from e2e import DATA, check, recordings, require_recordings, run, scratch, skip, table

NAMES = {"96": "interrupt", "100": "vintr", "114": "cpuid", "120": "hlt", "123": "io", "124": "msr", "129": "hypercall",
         "1024": "npf", "119": "pause"}


def counted_by_babeltrace(folder, tid):
    """Exits of a host thread by reason, ns from each to the next entry, from the output of babeltrace2."""
    p = subprocess.run(["babeltrace2", "--clock-seconds", f"{folder}/host"], capture_output=True, text=True, timeout=300)
    check(p.returncode == 0, "babeltrace2 reads the host's trace")
    current, left, lengths = {}, None, collections.defaultdict(list)
    for line in p.stdout.splitlines():
        head = re.match(r"\[(\d+)\.(\d{9})\].*? (\w+): .*?cpu_id = (\d+)", line)
        ts, name, cpu = int(head[1]) * 10**9 + int(head[2]), head[3], head[4]
        if name == "sched_switch":
            current[cpu] = int(re.search(r"next_tid = (\d+)", line)[1])
        elif current.get(cpu) != tid:
            continue
        elif name == "kvm_x86_exit":
            left = (re.search(r"exit_reason = (\w+)", line)[1], ts)
            lengths[left[0]].append(None)
        elif name == "kvm_x86_entry" and left:
            lengths[left[0]][-1] = ts - left[1]
            left = None
    return lengths


def check_lossy(folder):
    """Exits between lost events are counted, too."""
    p = subprocess.run(["babeltrace2", f"{folder}/host"], capture_output=True, text=True, timeout=300)
    reasons = re.findall(r" kvm_x86_exit: .*?exit_reason = (\w+)", p.stdout)
    want = collections.Counter(NAMES.get(str(int(r, 0)), r) for r in reasons)
    with scratch() as tmp:
        run("index", folder, "-o", f"{tmp}/lost.steal")
        got = {r["reason"]: int(r["count"]) for r in table("exits", f"{tmp}/lost.steal")}
    check(want and got == want, f"{folder}, which lacks events, has {want}, said {got}")


def summed(rows, *columns):
    """Counts and times by the given columns."""
    sums = collections.Counter(), collections.Counter()
    for r in rows:
        key = tuple(r[c] for c in columns)
        sums[0][key] += int(r["count"])
        sums[1][key] += int(r["total_ns"])
    return sums


with scratch() as folder:
    history, whole = f"{folder}/fibonacci.steal", f"{DATA}/fibonacci"
    run("index", whole, "-o", history)
    rows = table("exits", history)
    tid = int(table("info", history)[0]["host_tid"])
    check({(r["machine"], r["vcpu"], r["isa"], r["tid"]) for r in rows} == {("Debian", "0", "SVM", "")}, "one vCPU of an AMD host")
    if shutil.which("babeltrace2"):
        want = counted_by_babeltrace(whole, tid)
        check({NAMES.get(str(int(k, 0)), k) for k in want} == {r["reason"] for r in rows}, "the reasons, by name")
        for reason, lengths in want.items():
            known = sorted(ns for ns in lengths if ns is not None)
            row = next(r for r in rows if r["reason"] == NAMES.get(str(int(reason, 0)), reason))
            got = [int(row[c] or 0) for c in ("count", "timed", "total_ns", "min_ns", "p99_ns", "max_ns")]
            p99 = known[(len(known) * 99 + 99) // 100 - 1]
            check(got == [len(lengths), len(known), sum(known), known[0], p99, known[-1]], f"{row['reason']}: {got}")

    by_thread = table("exits", history, "--by", "thread")
    check(summed(by_thread, "vcpu", "reason") == summed(rows, "vcpu", "reason"), "the threads' exits are the vCPU's")
    one = table("exits", history, "Debian/151")
    check(one and one == [{**r, "share": s["share"]} for r, s in zip([r for r in by_thread if r["tid"] == "151"], one)],
          "those of one thread")
    begin = int(table("intervals", history, "/Host/CPUs/CPU0/Current Thread")[0]["start"])
    end = int(table("intervals", history, "/Host/CPUs/CPU0/Current Thread")[-1]["end"])
    cuts = sorted({begin, end + 1, *(begin + (end - begin) * i // 7 for i in range(1, 7)), *(int(r["max_at"]) for r in rows)})
    parts = [r for a, b in zip(cuts, cuts[1:]) for r in table("exits", history, "--from", str(a), "--to", str(b - 1))]
    check(summed(parts, "reason") == summed(rows, "reason"), "windows that tile the history count each exit once")
    bins = table("exits", history, "--histogram")
    for r in rows:
        mine = [b for b in bins if b["reason"] == r["reason"]]
        check(sum(int(b["count"]) for b in mine) == int(r["timed"]) and int(mine[0]["from_ns"]) <= int(r["min_ns"])
              and int(mine[-1]["from_ns"]) <= int(r["max_ns"]) <= int(mine[-1]["to_ns"]), f"{r['reason']}: the histogram")

    text = run("exits", history).stdout
    check(re.search(r"^Debian +0  hlt .*%$", text, re.M) and "MSR" not in text, "text for people")
    run("exits", history, "host/CPU0", status=1)
    run("exits", history, "nobody", status=1)

    # A thread that executed another program: it has a row per name.
    with open(f"{folder}/keys", "w", encoding="utf-8") as f:
        f.write(f":Debian/152\nE\n:screen {folder}/screen!\n")
    run("view", history, "--script", f"{folder}/keys", "--size", "100x30")
    with open(f"{folder}/screen", encoding="utf-8") as f:
        lines = re.findall(r"^ Debian +0 +152 +(\S+) +(\S+) ", f.read(), re.M)
    check(len(lines) == len(set(lines)) > 3 and {("exe", "msr"), ("sh", "msr")} <= set(lines), f"the pane: {lines}")
    told = {(r["name"], r["reason"]) for r in table("exits", history, "Debian/152")}
    said = set(re.findall(r"^Debian +0  152  (\S+) +(\S+) ", run("exits", history, "Debian/152").stdout, re.M))
    check(said == told and len(told) > 3, f"the text: {said}")
    check("TID" not in run("exits", history, "Debian/151", "--from", "50%").stdout, "one name is that of whom was asked about")

    # Without the host's events the exits are unknown.
    alone = f"{folder}/alone.steal"
    run("index", "--guest", f"Debian={whole}/guest-Debian", "-o", alone, status=None)
    p = run("exits", alone, "--format", "csv")
    check(p.stdout.count("\n") == 1 and "kvm_exit" in p.stderr, f"what it would take: {p.stderr}")

    if not shutil.which("babeltrace2"):
        skip("babeltrace2 is not installed: exits were not counted independently")
    require_recordings()
    for lossy in (f for f in recordings() if f.endswith("/lost/")):
        check_lossy(lossy)
