#!/usr/bin/env python3
"""What an event costs, and how much memory it takes, as traces grow: `stealscope index -j 2` of simulated ones of so many
events, guests and CPUs: the time that it takes, and the user and system time of all threads, each the best of the rounds.
Relative: to the fewest events, guests and CPUs.  The peak is that of anonymous memory and of what is mapped of files, of which
the column after it is the most that was seen.  Worlds of more guests are not the same world but larger: their vCPUs are in
each other's way, and an event changes more.  So how many intervals an event makes stands beside it.

EVENTS='1M 10M' GUESTS='1 8 32 64' CPUS='4 64' are the sizes, ROUNDS=5 as many rounds of 1M events at most, of 10M two, of
more one.  GROWTH=all is those with 100M events, too, which takes 7 GB below TMPDIR and six minutes."""
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time

build = os.environ.get("builddir", ".")
everything = os.environ.get("GROWTH") == "all"
events, guests, cpus = (os.environ.get(k, v).split() for k, v in
                        (("EVENTS", "1M 10M 100M" if everything else "1M 10M"), ("GUESTS", "1 8 32 64"), ("CPUS", "4 64")))
rounds = int(os.environ.get("ROUNDS", "5"))
unit = {"k": 1e3, "M": 1e6}
SLOWER, MOST = 1.2, 192  # the targets: of the time that the first row takes, MiB


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


def watch(pid, over, files):
    while not over.wait(0.02):
        files[0] = max(files[0], mapped(pid))


def measure(command):
    """s that it takes, s of processor time, MiB at the peak, and MiB of mapped files, of a process that runs it."""
    over, files, begin = threading.Event(), [0], time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    watcher = threading.Thread(target=watch, args=(child.pid, over, files))
    watcher.start()
    _, status, use = os.wait4(child.pid, 0)
    seconds = time.monotonic() - begin
    over.set()
    watcher.join()
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)}: exit status {child.returncode}")
    return seconds, use.ru_utime + use.ru_stime, use.ru_maxrss / 1024, files[0]


def row(tmp, n, g, c):
    traces, history = os.path.join(tmp, "traces"), os.path.join(tmp, "out.steal")
    subprocess.run([os.path.join(build, "stealscope-sim"), "overcommit", g, "--events", n, "--pcpus", c, "--no-truth",
                    "-o", traces], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    command = [os.path.join(build, "stealscope"), "index", traces, "-j", "2", "-o", history]
    took = []
    for _ in range(min(rounds, 5 if count(n) <= 1e6 else 2 if count(n) <= 1e7 else 1)):
        if os.path.exists(history):
            os.unlink(history)  # to replace a file takes longer than to make one
        took.append(measure(command))
    told = subprocess.run([command[0], "info", history, "--format", "json"], capture_output=True, check=True).stdout
    intervals = json.loads(told)["intervals"]
    subprocess.run(["rm", "-rf", traces, history], check=True)
    ns, cpu = (min(t[i] for t in took) / count(n) * 1e9 for i in (0, 1))
    return ns, cpu, intervals / count(n), max(t[2] for t in took), max(t[3] for t in took)


resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
print(f"{'events':>8} {'guests':>7} {'CPUs':>5} {'ns/event':>9} {'relative':>8} {'CPU ns':>7} {'relative':>8} {'intervals':>9} "
      f"{'peak MiB':>9} {'mapped':>7}   (targets: {SLOWER:.2f}, {MOST})")
first, rows, slow, large = None, 0, 0, 0
with tempfile.TemporaryDirectory() as scratch:
    for c in cpus:
        for g in guests:
            for n in events:
                ns, cpu, intervals, peak, files = row(scratch, n, g, c)
                first = first or (ns, cpu)
                rows, slow, large = rows + 1, slow + (ns > SLOWER * first[0]), large + (peak > MOST)
                print(f"{n:>8} {g:>7} {c:>5} {ns:9.0f} {ns / first[0]:8.2f} {cpu:7.0f} {cpu / first[1]:8.2f} {intervals:9.2f} "
                      f"{peak:9.1f} {files:7.1f}", flush=True)
print(f"of {rows}: {slow} slower than the target, {large} larger")
