#!/usr/bin/env python3
"""Time and memory of `stealscope index -j 2` per event, for simulated traces with growing numbers of events, guests and CPUs.

Columns:
- ns/event, CPU ns: elapsed time, and user and system time of all threads; medians of the rounds.
- relative: median of the ratios to the smallest trace, which is indexed alternately with that of the row because the speed
  of machines varies from minute to minute.  The first row shows the remaining error.
- intervals: per event.  With more guests vCPUs compete more, and an event changes more states.
- peak MiB: anonymous memory and mapped files; mapped: the most of the latter that a sample had.

EVENTS='1M 10M' GUESTS='1 8 32 64' CPUS='4 64' are the sizes.  ROUNDS=9 is the number of rounds up to 1M events; 10M have
three, more have one.  GROWTH=all adds 100M events, which takes 7 GB in TMPDIR and eight minutes."""
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
SLOWER, MOST = 1.2, 192  # targets: relative time, and peak in MiB


def count(text):
    return float(text[:-1]) * unit[text[-1]] if text[-1] in unit else float(text)


def mapped(pid):
    """Returns the resident mapped files of a process, MiB."""
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
    """Runs a command.  Returns elapsed time and CPU time, s, and the peaks of memory and of mapped files, MiB."""
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
        os.unlink(history)  # replacing a file takes longer than creating one
    return measure([os.path.join(build, "stealscope"), "index", traces, "-j", "2", "-o", history])


class World:
    """A simulated trace, and the results of its rounds: (ns per event, CPU ns per event, peak MiB, mapped MiB)."""

    def __init__(self, tmp, name, n, g, c):
        self.traces, self.history, self.events, self.results = os.path.join(tmp, name), f"{tmp}/{name}.steal", count(n), []
        self.rounds = min(rounds, 9 if self.events <= 1e6 else 3 if self.events <= 1e7 else 1)
        simulate(self.traces, n, g, c)

    def round(self):
        seconds, cpu, peak, files = index(self.traces, self.history)
        self.results.append((seconds / self.events * 1e9, cpu / self.events * 1e9, peak, files))

    def median(self, i):
        return statistics.median(t[i] for t in self.results)

    def intervals(self):
        info = subprocess.run([os.path.join(build, "stealscope"), "info", self.history, "--format", "json"],
                              capture_output=True, check=True).stdout
        return json.loads(info)["intervals"] / self.events


def relative(world, first, i):
    return statistics.median(a[i] / b[i] for a, b in zip(world.results, first.results))


resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
print(f"{'events':>8} {'guests':>7} {'CPUs':>5} {'ns/event':>9} {'relative':>8} {'CPU ns':>7} {'relative':>8} {'intervals':>9} "
      f"{'peak MiB':>9} {'mapped':>7}   (targets: {SLOWER:.2f}, {MOST})")
rows, slow, large = 0, 0, 0
with tempfile.TemporaryDirectory() as scratch:
    first = World(scratch, "first", events[0], guests[0], cpus[0])
    for c in cpus:
        for g in guests:
            for n in events:
                world, first.results = World(scratch, "world", n, g, c), []
                for k in range(world.rounds):
                    for one in (first, world) if k % 2 else (world, first):
                        one.round()
                slower, peak = relative(world, first, 0), max(t[2] for t in world.results)
                rows, slow, large = rows + 1, slow + (slower > SLOWER), large + (peak > MOST)
                print(f"{n:>8} {g:>7} {c:>5} {world.median(0):9.0f} {slower:8.2f} {world.median(1):7.0f} "
                      f"{relative(world, first, 1):8.2f} {world.intervals():9.2f} {peak:9.1f} "
                      f"{max(t[3] for t in world.results):7.1f}", flush=True)
                shutil.rmtree(world.traces)
                os.unlink(world.history)
print(f"of {rows}: {slow} slower than the target, {large} larger")
