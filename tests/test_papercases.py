#!/usr/bin/env python3
"""The use cases of the paper (Gebai et al. 2014, "Use cases", Fig. 3 to 15), from traces to the answer, on simulated traces
with offset and drifting clocks; and on recordings if they are available."""
import csv
import json
import os
import re
import subprocess

from e2e import BUILD, SHARED, check, run, scratch, table


def simulate(folder, scenario):
    """Returns the directory of a simulated trace and its history."""
    where = os.path.join(folder, scenario)
    subprocess.run([os.path.join(BUILD, "stealscope-sim"), scenario, "-o", where], check=True, capture_output=True)
    history = where + ".steal"
    run("index", where, "-o", history)
    return where, history


def truth_rows(where, name):
    with open(os.path.join(where, "truth", name), encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def by_machine(rows, kinds=("running", "preempting")):
    share = {}
    for r in rows:
        if r["kind"] in kinds:
            share[r["machine"]] = share.get(r["machine"], 0) + float(r["share"])
    return share


def intervals(history, path, *values):
    return [(int(r["start"]), int(r["end"])) for r in table("intervals", history, path) if r["value"] in values]


def length(intervals_):
    return sum(end - start + 1 for start, end in intervals_)


def common(a, b):
    """Returns the time that two ordered lists of intervals have in common, ns."""
    total = i = k = 0
    while i < len(a) and k < len(b):
        total += max(0, min(a[i][1], b[k][1]) - max(a[i][0], b[k][0]) + 1)
        if a[i][1] < b[k][1]:
            i += 1
        else:
            k += 1
    return total


# ---- Fig. 3 and 4: the worker's thread runs when the vCPU's thread does, once the clocks are synchronized

def coincidence(history, tid, host_tid):
    """Returns the share of the time in which the thread is current on vCPU 0 (guest's trace) that lies within the time in
    which the vCPU's thread, host_tid, is on a pCPU (host's trace).  The traces are independent of each other."""
    current = intervals(history, "/Virtual Machines/Debian/CPUs/CPU0/Current Thread", str(tid))
    on_cpu = intervals(history, f"/Host/Threads/{host_tid}/Status", "RUNNING")
    return common(current, on_cpu) / length(current)


def check_pulse(name, traces, history, tid, folder):
    host_tid = [r for r in table("info", history) if r["vm"] == "Debian" and r["vcpu"] == "0"][0]["host_tid"]
    share = coincidence(history, tid, host_tid)
    check(share > 0.999, f"{name}: synchronized, wk-pulse runs on vCPU 0 for {100 * share:.3f} % of its time (Fig. 4)")
    unsynchronized = os.path.join(folder, name.replace(" ", "-") + "-unsynchronized.steal")
    run("index", traces, "--sync", "none", "-o", unsynchronized)
    share = coincidence(unsynchronized, tid, host_tid)
    check(share < 0.5, f"{name}: not synchronized, for {100 * share:.1f} % (Fig. 3)")
    rows = table("flow", history, f"Debian/{tid}")
    ran = sum(int(r["duration_ns"]) for r in rows if r["kind"] == "running")
    lost = sum(int(r["duration_ns"]) for r in rows if r["kind"] in ("preempting", "idle-cpu"))
    check(lost < ran / 50, f"{name}: almost no time is lost ({lost / 1e6:.2f} of {ran / 1e6:.0f} ms)")


# ---- Fig. 6 to 9: a computation on an apparently idle guest takes twice as long

def check_fibonacci(name, history, target):
    rows = table("flow", history, target)
    share = by_machine(rows)
    own = sum(float(r["share"]) for r in rows if r["kind"] == "running")
    check(0.45 < own < 0.55, f"{name}: it ran for {100 * own:.1f} % of its life (Fig. 7)")
    top = [r for r in rows if r["kind"] == "preempting"][0]
    check((top["machine"], top["name"]) == ("host", "burnP6"), f"{name}: burnP6 of the host took the rest (Fig. 9)")
    check(0.45 < float(top["share"]) < 0.55 and 0.45 < share["host"] < 0.55,
          f"{name}: {100 * float(top['share']):.1f} %")
    text = run("explain", history, target).stdout
    check(re.search(r"host/\d+ burnP6", text), f"{name}: explain names it")


# ---- Fig. 10 to 14: one task per second, some of them stretched threefold

def check_critical(where, history):
    life = [(r["path"].split("/")[4], int(r["start"]), int(r["end"])) for r in truth_rows(where, "intervals.csv")
            if r["path"].startswith("/Virtual Machines/Debian/Threads/") and r["value"] == "critical_task"
            and r["path"].endswith("/Name")]
    check(len(life) == 7, "critical_task: seven executions, one per second (Fig. 10)")
    wall = [(end - start + 1) / 1e6 for _, start, end in life]
    alone = sum(wall[i] for i in (0, 1, 6)) / 3
    check(270 < alone < 295 and max(wall[0], wall[1], wall[6]) < 1.05 * alone,
          f"critical_task: undisturbed it takes {alone:.0f} ms")
    check(1.05 < wall[5] / alone < 1.5, f"critical_task: the sixth takes {wall[5] / alone:.2f} times that")
    for i in (2, 3, 4):
        check(2.7 < wall[i] / alone < 3.3, f"critical_task: execution {i + 1} takes {wall[i] / alone:.2f} times that")
        check_thirds(history, life[i][0], i + 1)
    rows = table("steal", history)
    stolen = {(r["victim"], r["culprit"]): float(r["share"]) for r in rows}
    check(abs(stolen["Debian", "Ubuntu"] - stolen["Debian", "host"]) < 0.1,
          f"critical_task: steal: Ubuntu {100 * stolen['Debian', 'Ubuntu']:.0f} %, host "
          f"{100 * stolen['Debian', 'host']:.0f} % of what Debian lost")
    check_alternation(history)
    check_gaps(history)


def tuple_of(row):
    return tuple(row.values())


def check_gaps(history):
    """Without a target: gaps of all VMs, and no others."""
    every = table("gaps", history, "--top", "0")
    unsynchronized = table("gaps", history, "Debian", "--top", "0") + table("gaps", history, "Ubuntu", "--top", "0")
    check(len(every) > 500 and sorted(map(tuple_of, every)) == sorted(map(tuple_of, unsynchronized)),
          f"gaps: the {len(every)} of all VMs are Debian's and Ubuntu's")
    check([int(r["duration_ns"]) for r in every] == sorted((int(r["duration_ns"]) for r in every), reverse=True),
          "gaps: the longest first")


def check_thirds(history, tid, number):
    """Fig. 14."""
    rows = table("flow", history, f"Debian/{tid}")
    share = by_machine(rows)
    check(all(0.31 < share[s] < 0.36 for s in ("Debian", "Ubuntu", "host")),
          f"critical_task: execution {number}: Debian {100 * share['Debian']:.1f} %, Ubuntu "
          f"{100 * share['Ubuntu']:.1f} %, host {100 * share['host']:.1f} % of the CPU")
    own = sum(int(r["duration_ns"]) for r in rows if r["kind"] == "running")
    check(268e6 < own < 284e6, f"critical_task: it ran {own / 1e6:.0f} ms")
    culprits = [(r["machine"], r["name"]) for r in rows if r["kind"] == "preempting"][:2]
    check(sorted(culprits) == [("Ubuntu", "cc"), ("host", "burnP6")], "critical_task: cc and burnP6 took the others")


def check_alternation(history):
    """Fig. 12: the two vCPUs run alternately, and sometimes both wait for others."""
    path = "/Virtual Machines/{}/CPUs/CPU{}/Status"
    one, two = path.format("Debian", 0), path.format("Ubuntu", 1)
    both = common(intervals(history, one, "RUNNING", "VMM"), intervals(history, two, "RUNNING", "VMM"))
    neither = common(intervals(history, one, "PREEMPTED"), intervals(history, two, "PREEMPTED"))
    check(both == 0, "critical_task: Debian's vCPU 0 and Ubuntu's vCPU 1 never run at once (Fig. 12)")
    check(neither > 500e6, f"critical_task: both are preempted at once for {neither / 1e6:.0f} ms")


# ---- Fig. 15: the idle task of another VM preempts because of a forgotten timer

def check_residual(where, history):
    target = "Debian/critical_task"
    first = table("flow", history, target, "--from", "10%", "--to", "48%")
    share = by_machine(first)
    check(all(0.31 < share[s] < 0.36 for s in ("Debian", "Ubuntu", "host")), "residual_timer: thirds until half-time")
    names = [(r["machine"], r["name"]) for r in first if r["kind"] == "preempting"][:2]
    check(sorted(names) == [("Ubuntu", "cc"), ("host", "burnP6")], "residual_timer: by cc and burnP6")

    rows = [r for r in table("flow", history, target, "--from", "60%") if r["kind"] == "preempting"]
    top = rows[0]
    check((top["machine"], top["tid"], top["name"]) == ("Ubuntu", "0", "swapper"),
          "residual_timer: then swapper of Ubuntu is the first of the culprits (Fig. 15)")
    begin, end = history_window(history)
    expected = truth_of_swapper(where, begin + (end - begin) * 60 // 100, end)
    off = int(top["duration_ns"]) / expected - 1
    check(abs(off) < 0.01, f"residual_timer: for {int(top['duration_ns']) / 1e6:.2f} ms, {100 * off:+.2f} % off the truth")

    periodic = table("gaps", history, "--periodic")
    culprit = periodic[0]
    check((culprit["machine"], culprit["tid"], culprit["name"]) == ("Ubuntu", "0", "swapper"),
          "residual_timer: gaps --periodic names it in one command")
    check(abs(int(culprit["period_ns"]) / 3e6 - 1) < 0.02, f"residual_timer: its period is {culprit['period_ns']} ns")
    check(int(culprit["switches"]) > 0.9 * int(culprit["wakeups"]) > 900 and int(culprit["cost_ns"]) > 0,
          f"residual_timer: {culprit['switches']} switches, {int(culprit['cost_ns']) / 1e6:.2f} ms")
    text = run("gaps", history, "--periodic").stdout
    check("swapper" in text.splitlines()[1], "residual_timer: the text does, too")


def history_window(history):
    """Returns the first and last ns of a history: those of any pCPU."""
    rows = table("intervals", history, "/Host/CPUs/CPU0/Current Thread")
    return int(rows[0]["start"]), int(rows[-1]["end"])


def truth_of_swapper(where, begin, end):
    """Returns the time in which Ubuntu's vCPU had pCPU 0 without any of its threads, less the host's interrupts, ns."""
    had = [(max(int(r["start"]), begin), min(int(r["end"]), end)) for r in truth_rows(where, "pcpus.csv")
           if (r["pcpu"], r["system"], r["tid"]) == ("0", "Ubuntu", "0") and int(r["end"]) >= begin]
    irq = [(int(r["start"]), int(r["end"])) for r in truth_rows(where, "intervals.csv")
           if r["path"] == "/Host/CPUs/CPU0/Interrupt"]
    return length(had) - common(had, irq)


def recorded(folder, name):
    """Returns directory, truth and history of a recording, or None."""
    where = os.path.join(SHARED, name)
    if not os.path.exists(os.path.join(where, "truth.json")):
        print(f"skip the recording {name}: not available")
        return None, None, None
    with open(os.path.join(where, "truth.json"), encoding="utf-8") as f:
        truth = json.load(f)
    history = os.path.join(folder, f"recorded-{name}.steal")
    run("index", where, "-o", history)
    return where, truth, history


def main():
    with scratch() as folder:
        where, history = simulate(folder, "pulse")
        tid = [r["path"].split("/")[4] for r in truth_rows(where, "intervals.csv") if r["value"] == "wk-pulse"][0]
        check_pulse("pulse", where, history, tid, folder)
        check_fibonacci("fibonacci", simulate(folder, "fibonacci")[1], "Debian/fibonacci")
        check_critical(*simulate(folder, "critical_task"))
        check_residual(*simulate(folder, "residual_timer"))

        where, truth, history = recorded(folder, "pulse")
        if truth:
            check_pulse("recorded pulse", where, history, truth["tasks"][0]["pid"], folder)
        where, truth, history = recorded(folder, "fibonacci")
        if truth:
            pid = [t["pid"] for t in truth["tasks"] if t["task"] == "fibonacci" and t["in_trace"]][0]
            check_fibonacci("recorded fibonacci", history, f"Debian/{pid}")


main()
