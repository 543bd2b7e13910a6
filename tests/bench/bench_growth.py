#!/usr/bin/env python3
"""What an event costs, and how much memory it takes, as traces grow: `stealscope index` of simulated ones of so many events,
guests and CPUs, user and system time of all threads, the best of the rounds.  Relative: to the fewest events, guests and CPUs.
The peak is that of anonymous memory and of what is mapped of files, of which the column after it is the most that was seen.
Worlds of more guests are not the same world but larger: their vCPUs are in each other's way, and an event changes more.  So
how many intervals an event makes stands beside it, and what an event and what it makes cost together: `both` is ns of an event
or an interval, relative.

EVENTS='1M 10M' GUESTS='1 8 32 64' CPUS='4 64' ROUNDS=2 are the sizes; GROWTH=all is those with 100M events, once each,
which takes 7 GB below TMPDIR and an hour."""
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

build = os.environ.get("builddir", ".")
everything = os.environ.get("GROWTH") == "all"
events, guests, cpus = (os.environ.get(k, v).split() for k, v in
                        (("EVENTS", "1M 10M 100M" if everything else "1M 10M"), ("GUESTS", "1 8 32 64"), ("CPUS", "4 64")))
rounds = int(os.environ.get("ROUNDS", "1" if everything else "2"))
unit = {"k": 1e3, "M": 1e6}
SLOWER, MOST = 1.2, 192  # the targets: times the time of the first row, MiB


def count(text):
    return float(text[:-1]) * unit[text[-1]] if text[-1] in unit else float(text)


def mapped(pid):
    """MiB of files that the process has mapped and looked at."""
    try:
        with open(f"/proc/{pid}/status") as status:
            found = re.search(r"RssFile:\s+(\d+)", status.read())
    except OSError:
        found = None
    return int(found.group(1)) / 1024 if found else 0


def measure(command):
    """s of processor time, MiB at the peak, and MiB of mapped files, of a process that runs it."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ended, files = 0, 0
    while not ended:
        files = max(files, mapped(child.pid))
        time.sleep(0.02)
        ended, status, use = os.wait4(child.pid, os.WNOHANG)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)}: exit status {child.returncode}")
    return use.ru_utime + use.ru_stime, use.ru_maxrss / 1024, files


def row(tmp, n, g, c):
    traces, history = os.path.join(tmp, "traces"), os.path.join(tmp, "out.steal")
    subprocess.run([os.path.join(build, "stealscope-sim"), "overcommit", g, "--events", n, "--pcpus", c, "--no-truth",
                    "-o", traces], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    command = [os.path.join(build, "stealscope"), "index", traces, "-j", "2", "-o", history]
    took = [measure(command) for _ in range(rounds)]
    told = subprocess.run([command[0], "info", history, "--format", "json"], capture_output=True, check=True).stdout
    intervals = json.loads(told)["intervals"]
    subprocess.run(["rm", "-rf", traces, history], check=True)
    seconds, peak, files = min(t[0] for t in took), max(t[1] for t in took), max(t[2] for t in took)
    return seconds / count(n) * 1e9, intervals / count(n), peak, files


resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
print(f"{'events':>8} {'guests':>7} {'CPUs':>5} {'ns/event':>9} {'relative':>9} {'intervals':>9} {'both':>5} {'peak MiB':>9} "
      f"{'mapped':>7}   (targets: {SLOWER:.2f}, {MOST})")
first, rows, slow, large = None, 0, 0, 0
with tempfile.TemporaryDirectory() as scratch:
    for c in cpus:
        for g in guests:
            for n in events:
                ns, intervals, peak, files = row(scratch, n, g, c)
                first = first or (ns, ns / (1 + intervals))
                rows, slow, large = rows + 1, slow + (ns > SLOWER * first[0]), large + (peak > MOST)
                print(f"{n:>8} {g:>7} {c:>5} {ns:9.0f} {ns / first[0]:9.2f} {intervals:9.2f} "
                      f"{ns / (1 + intervals) / first[1]:5.2f} {peak:9.1f} {files:7.1f}", flush=True)
print(f"of {rows}: {slow} slower than the target, {large} larger")
