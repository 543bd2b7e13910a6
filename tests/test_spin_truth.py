"""`gaps --locks` on simulated threads that spin for a lock: the suspected holder had the lock while its vCPU had no pCPU;
if there are several suspects, and so no holder, the holder is among them; and without spinning threads there are no
suspects.

Usage: test_spin_truth.py [FROM TO]   (seeds)"""
import csv
import os
import re
import subprocess
import sys

from e2e import BUILD, check, is_sanitized, run, scratch, table
from test_flow_truth import Truth

SIM = os.path.join(BUILD, "stealscope-sim")
LONG = 1_000_000  # ns of a wait that must not be missed


def simulate(scenario, seed, folder):
    world, history = os.path.join(folder, f"{scenario}{seed}"), os.path.join(folder, f"{scenario}{seed}.steal")
    subprocess.run([SIM, scenario, "-o", world, "--seed", str(seed), "--duration", "400ms", "--perfect-clocks"], check=True,
                   capture_output=True)
    run("index", world, "--sync", "none", "-o", history)
    spun = [w for w in table("gaps", history, "--locks", "--top", "0") if w["how"] == "spun"]
    return world, [(int(w["start"]), int(w["end"]), w["tid"], w["holder_tid"], re.findall(r"\d+", w["suspects"])) for w in spun]


def waits(world, *what):
    """Returns (begin, end, waiter, holder) of the true waits, as TIDs."""
    with open(os.path.join(world, "truth", "causes.csv"), newline="", encoding="utf-8") as f:
        return [(int(r["in"]), int(r["at"]), r["tid"], r["by_tid"]) for r in csv.DictReader(f) if r["what"] in what]


def overlap(a, b):
    return max(0, min(a[1], b[1]) - max(a[0], b[0]) + 1)


def out(truth, tid, window):
    """Returns the time in which others had the pCPU that the thread's vCPU waited for, ns."""
    ns, t = 0, window[0]
    while t <= window[1]:
        verdict, until = truth.verdict("Debian", int(tid), t)
        end = min(until, window[1])
        ns += (end - t + 1) * bool(verdict and verdict[0] == "preempting")
        t = end + 1
    return ns


def one(seed, folder):
    world, reported = simulate("spin", seed, folder)
    true, truth = waits(world, "spin", "spins"), Truth(world)
    all_ns = sum(s[1] - s[0] + 1 for s in reported)
    named = sum(s[1] - s[0] + 1 for s in reported if s[3])
    right = sum(overlap(s, w) for s in reported for w in true if s[2:4] == w[2:])
    other = sum(overlap(s, w) for s in reported for w in true if s[2] == w[2] and s[3] != w[3] and (s[3] or s[4] and w[3] not in s[4]))
    # A wait may be reported in parts, cut by the guest's tick or another interrupt; a preempted waiter does not spin; the
    # last wait may be reported in part, if its end was not recorded.
    must = [w for w in waits(world, "spin") if w[1] - w[0] >= LONG and out(truth, w[3], w) >= 0.9 * (w[1] - w[0]) and
            out(truth, w[2], w) < 0.5 * (w[1] - w[0])]
    found = sum(any(overlap(s, w) >= (w[1] - w[0]) / 4 and s[2] == w[2] and w[3] in [s[3], *s[4]] for s in reported) for w in must)
    check(other == 0 and right >= 0.99 * named > 0.8 * all_ns and found >= 0.9 * len(must), f"seed {seed}: of {all_ns / 1e6:.1f} "
          f"ms in {len(reported)} suspected waits {100 * right / named:.1f} % of those with a holder are for that one, {other} ns for "
          f"another one, {100 - 100 * named / all_ns:.1f} % name none; {found} of {len(must)} long ones are found")


def main():
    numbers = [int(a) for a in sys.argv[1:] if a.isdigit()]
    seeds = range(numbers[0], numbers[1] + 1) if len(numbers) == 2 else [1] if is_sanitized() else [1, 2, 3, 7400007, 7400013, 7400014, 7400028, 9100897]
    with scratch() as folder:
        for seed in seeds:
            one(seed, folder)
        check(not simulate("fibonacci", 1, folder)[1], "no thread spins next to a hog that only computes")


if __name__ == "__main__":
    main()
