"""Questions about real-time threads, on simulated hosts: who ran on a CPU (steal host/CPUn), and how long threads waited after
their wakeups (waits --histogram), against the truth of the simulator and against each state of the history."""
import collections
import csv
import os
import subprocess

from e2e import BUILD, check, run, scratch, seeds, table
from track import Track


def truth_of(folder, path):
    with open(f"{folder}/truth/intervals.csv", encoding="utf-8", newline="") as f:
        return [(int(r["start"]), int(r["end"]), r["value"]) for r in csv.DictReader(f) if r["path"] == path]


def check_users(world, history, cpu, name):
    """Each thread had the CPU as long as it was current there, without the time of interrupts."""
    users = table("steal", history, f"host/CPU{cpu}", "--top", "0")
    window = sum(int(r["end"]) - int(r["start"]) + 1 for r in table("intervals", history, f"/Host/CPUs/CPU{cpu}/Current Thread"))
    check(sum(int(r["duration_ns"]) for r in users) == window, f"{name}: the users of CPU{cpu} tile {window} ns")
    handlers, true = Track(), collections.Counter()
    for start, end, handler in truth_of(world, f"/Host/CPUs/CPU{cpu}/Interrupt"):
        handlers.add(start, end, handler)
    for start, end, tid in truth_of(world, f"/Host/CPUs/CPU{cpu}/Current Thread"):
        true[tid] += sum(b - a + 1 for a, b, handler in handlers.within(start, end) if not handler)
    for r in users:
        if r["tid"]:
            error = abs(true[r["tid"]] - int(r["duration_ns"]))
            if error > 1000 or not int(r["longest_ns"]) * int(r["times"]) >= int(r["duration_ns"]) >= int(r["longest_ns"]):
                check(False, f"{name}: CPU{cpu}, {r['name']}: {r}, true {true[r['tid']]} ns")


def check_latencies(history, tid, name):
    """The waits after a sleep, counted one by one."""
    waits, before, at = collections.Counter(), "", 0
    for r in table("intervals", history, f"/Host/Threads/{tid}/Status"):
        length = int(r["end"]) - int(r["start"]) + 1
        if r["value"] == "PREEMPTED" and before == "BLOCKED":
            waits[length.bit_length() - 1] += 1
        at += r["value"] == "PREEMPTED"
        before = r["value"]
    bins = {int(r["from_ns"]).bit_length() - 1: int(r["count"]) for r in table("waits", history, "--histogram", f"host/{tid}")}
    check({b: n for b, n in bins.items() if n} == dict(waits), f"{name}: thread {tid}: {sum(waits.values())} wakeups of {at} waits")
    return sum(waits.values())


with scratch() as folder:
    wakeups = 0
    for seed in seeds(2, 16):
        at = os.path.join(folder, str(seed))
        subprocess.run([os.path.join(BUILD, "stealscope-sim"), "groups", "--seed", str(seed), "--quota-facts", "none", "-o", at],
                       check=True, capture_output=True)
        run("index", "--host", at + "/host", "-o", at + ".steal")
        check_users(at, at + ".steal", 0, f"seed {seed}")
        for row in table("threads", at + ".steal", "--top", "0"):
            wakeups += check_latencies(at + ".steal", row["tid"], f"seed {seed}")
    check(wakeups > 20, f"{wakeups} wakeups")
