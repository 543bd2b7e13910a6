#!/usr/bin/env python3
"""What an event costs, and how much memory it takes, as traces grow: `stealscope index` of simulated ones of so many events,
guests and CPUs, user and system time of all threads, the best of the rounds.  Relative: to the fewest events, guests and CPUs.

EVENTS='1M 10M' GUESTS='1 8 32 64' CPUS='4 64' ROUNDS=2 are the sizes; 100M events take 6 GB and some minutes."""
import os
import resource
import subprocess
import sys
import tempfile

build = os.environ.get("builddir", ".")
events, guests, cpus = (os.environ.get(k, v).split() for k, v in
                        (("EVENTS", "1M 10M"), ("GUESTS", "1 8 32 64"), ("CPUS", "4 64")))
rounds = int(os.environ.get("ROUNDS", "2"))
unit = {"k": 1e3, "M": 1e6}


def count(text):
    return float(text[:-1]) * unit[text[-1]] if text[-1] in unit else float(text)


def measure(command):
    """s of processor time, and MiB at the peak, of a process of its own that runs it."""
    child = ("import resource, subprocess, sys\n"
             "status = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
             "u = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
             "print(status, u.ru_utime + u.ru_stime, u.ru_maxrss / 1024)")
    said = subprocess.run([sys.executable, "-c", child, *command], stdout=subprocess.PIPE, check=True, text=True).stdout
    status, seconds, peak = said.split()
    if status != "0":
        sys.exit(f"{' '.join(command)}: exit status {status}")
    return float(seconds), float(peak)


def row(tmp, n, g, c):
    traces, history = os.path.join(tmp, "traces"), os.path.join(tmp, "out.steal")
    subprocess.run([os.path.join(build, "stealscope-sim"), "overcommit", g, "--events", n, "--pcpus", c, "--no-truth",
                    "-o", traces], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    command = [os.path.join(build, "stealscope"), "index", traces, "-j", "2", "-o", history]
    took = [measure(command) for _ in range(rounds)]
    subprocess.run(["rm", "-rf", traces], check=True)
    return min(s for s, _ in took) / count(n) * 1e9, max(p for _, p in took)


resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
print(f"{'events':>8} {'guests':>7} {'CPUs':>5} {'ns/event':>9} {'relative':>9} {'peak MiB':>9}   (targets: 1.20, 192)")
first = None
with tempfile.TemporaryDirectory() as scratch:
    for c in cpus:
        for g in guests:
            for n in events:
                ns, peak = row(scratch, n, g, c)
                first = first or ns
                print(f"{n:>8} {g:>7} {c:>5} {ns:9.0f} {ns / first:9.2f} {peak:9.1f}", flush=True)
