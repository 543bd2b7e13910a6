#!/usr/bin/env python3
"""What an event costs, and how much memory it takes, as traces grow: `stealscope index -j 2` of simulated ones of so many
events, guests and CPUs: the time that it takes, and the user and system time of all threads, each the median of the rounds.
Relative: to the fewest events, guests and CPUs, indexed by turns with those of the row, since machines are faster in one
minute than in the next: the median of the rounds' ratios, of which the first row shows how far it may be off.  The peak is
that of anonymous memory and of what is mapped of files, of which the column after it is the most that was seen.  Worlds of
more guests are not the same world but larger: their vCPUs are in each other's way, and an event changes more.  So how many
intervals an event makes stands beside it.

EVENTS='1M 10M' GUESTS='1 8 32 64' CPUS='4 64' are the sizes, ROUNDS=9 as many rounds of 1M events at most, of 10M three, of
more one.  GROWTH=all is those with 100M events, too, which takes 7 GB below TMPDIR and eight minutes."""
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

build = os.environ.get("builddir", ".")
everything = os.environ.get("GROWTH") == "all"
events, guests, cpus = (os.environ.get(k, v).split() for k, v in
                        (("EVENTS", "1M 10M 100M" if everything else "1M 10M"), ("GUESTS", "1 8 32 64"), ("CPUS", "4 64")))
rounds = int(os.environ.get("ROUNDS", "9"))
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


def simulate(traces, n, g, c):
    subprocess.run([os.path.join(build, "stealscope-sim"), "overcommit", g, "--events", n, "--pcpus", c, "--no-truth",
                    "-o", traces], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def index(traces, history):
    if os.path.exists(history):
        os.unlink(history)  # to replace a file takes longer than to make one
    return measure([os.path.join(build, "stealscope"), "index", traces, "-j", "2", "-o", history])


class World:
    """Of so many events, and what they took: (ns an event, ns of processor time, MiB, MiB) of each round."""

    def __init__(self, tmp, name, n, g, c):
        self.traces, self.history, self.events, self.took = os.path.join(tmp, name), f"{tmp}/{name}.steal", count(n), []
        self.rounds = min(rounds, 9 if self.events <= 1e6 else 3 if self.events <= 1e7 else 1)
        simulate(self.traces, n, g, c)

    def round(self):
        seconds, cpu, peak, files = index(self.traces, self.history)
        self.took.append((seconds / self.events * 1e9, cpu / self.events * 1e9, peak, files))

    def median(self, i):
        return statistics.median(t[i] for t in self.took)

    def intervals(self):
        told = subprocess.run([os.path.join(build, "stealscope"), "info", self.history, "--format", "json"],
                              capture_output=True, check=True).stdout
        return json.loads(told)["intervals"] / self.events


def relative(world, first, i):
    return statistics.median(a[i] / b[i] for a, b in zip(world.took, first.took))


resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
print(f"{'events':>8} {'guests':>7} {'CPUs':>5} {'ns/event':>9} {'relative':>8} {'CPU ns':>7} {'relative':>8} {'intervals':>9} "
      f"{'peak MiB':>9} {'mapped':>7}   (targets: {SLOWER:.2f}, {MOST})")
rows, slow, large = 0, 0, 0
with tempfile.TemporaryDirectory() as scratch:
    first = World(scratch, "first", events[0], guests[0], cpus[0])
    for c in cpus:
        for g in guests:
            for n in events:
                world, first.took = World(scratch, "world", n, g, c), []
                for k in range(world.rounds):
                    for one in (first, world) if k % 2 else (world, first):
                        one.round()
                slower, peak = relative(world, first, 0), max(t[2] for t in world.took)
                rows, slow, large = rows + 1, slow + (slower > SLOWER), large + (peak > MOST)
                print(f"{n:>8} {g:>7} {c:>5} {world.median(0):9.0f} {slower:8.2f} {world.median(1):7.0f} "
                      f"{relative(world, first, 1):8.2f} {world.intervals():9.2f} {peak:9.1f} "
                      f"{max(t[3] for t in world.took):7.1f}", flush=True)
                shutil.rmtree(world.traces)
                os.unlink(world.history)
print(f"of {rows}: {slow} slower than the target, {large} larger")
