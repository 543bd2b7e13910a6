"""Scenes for stealscope top on the real kernel: threads that are named like vCPUs, and tasks that take their CPU. A scene is
measured by top, by schedstat, and by a recording of the same seconds."""
import csv
import glob
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from e2e import PROGRAM, run

VM_PROCESS = os.path.join(os.path.dirname(PROGRAM), "tests", "vm_process")
HOG = r"""
import ctypes, os, sys
ctypes.CDLL(None).prctl(15, sys.argv[2].encode(), 0, 0, 0)
os.sched_setaffinity(0, {int(sys.argv[1])})
print("ready", flush=True)
while True:
    pass
"""
# 200 threads per second, each of which spins for about 2 ms.
SHORT = r"""
import ctypes, os, sys, threading, time
def work():
    ctypes.CDLL(None).prctl(15, b"short", 0, 0, 0)
    end = time.thread_time() + 0.002
    while time.thread_time() < end:
        pass
os.sched_setaffinity(0, {int(sys.argv[1])})
ctypes.CDLL(None).prctl(15, b"short", 0, 0, 0)
print("ready", flush=True)
n, begin = 0, time.time()
while True:
    threading.Thread(target=work, daemon=True).start()
    n += 1
    time.sleep(max(0, begin + n * 0.005 - time.time()))
"""
children, quotas = [], []


def start(code, *args):
    """Starts a program that prints a line when it is ready: then it has its name and its CPU."""
    p = subprocess.Popen([sys.executable, "-c", code, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         text=True)
    children.append(p)
    p.stdout.readline()
    return p


def stop(*processes):
    for p in processes:
        p.kill()
        p.wait()


def stop_all():
    stop(*children)
    children.clear()
    while quotas:
        quotas.pop().remove()


def last_cpu():
    return max(os.sched_getaffinity(0))


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def schedstat(tid):
    """Returns the time that a thread ran and waited, ns."""
    with open(f"/proc/{tid}/schedstat", encoding="utf-8") as f:
        return [int(n) for n in f.read().split()[:2]]


def steal_of(cpu):
    """Returns the steal clock of a CPU, ns, in steps of 10 ms."""
    with open("/proc/stat", encoding="utf-8") as f:
        return next(int(line.split()[8]) for line in f if line.startswith(f"cpu{cpu} ")) * 10**7


class Vcpus:
    """A process with n vCPU threads."""

    def __init__(self, cpu, seconds, n=1, *options):
        self.process = subprocess.Popen([VM_PROCESS, str(cpu), str(seconds), str(n), *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        children.append(self.process)
        self.pid, *self.tids = (int(word) for word in self.process.stdout.readline().split())

        self.wait_asleep()

    def wait_asleep(self):
        """Returns when all vCPUs sleep: from now on their counters do not change."""
        for tid in self.tids:
            while True:
                with open(f"/proc/{tid}/stat", encoding="utf-8") as f:
                    if f.read().rsplit(")", 1)[1].split()[0] == "S":
                        break
                time.sleep(0.02)

    def begin(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def wait(self):
        self.process.stdout.readline()
        self.wait_asleep()


class Top:
    """stealscope top -b of some processes; its sums when it is stopped."""

    def __init__(self, pids, *options, period=0.7):
        watch = [word for pid in pids for word in ("--pid", str(pid))]
        self.output = tempfile.TemporaryFile(mode="w+", encoding="utf-8")  # a pipe would be full before it is read
        self.process = subprocess.Popen([PROGRAM, "top", "-b", "-n", "0", "-d", str(period), "--format", "csv", *watch, *options],
                                        stdout=self.output, stderr=subprocess.DEVNULL, text=True)
        while self.process.poll() is None and os.fstat(self.output.fileno()).st_size < 500:
            time.sleep(0.05)  # until the first period is over: it collects now

    def last_time(self):
        """Returns the time of the last row, ns since the epoch. It reads without moving the file position, which top shares."""
        rows = os.pread(self.output.fileno(), os.fstat(self.output.fileno()).st_size, 0).split(b"\n")[1:-1]
        return int(rows[-1].split(b",")[0]) if rows else 0

    def stop(self):
        """Ends it once it has printed what has happened until now: on a busy machine it is late."""
        now, patience = time.time_ns(), time.monotonic() + 20
        while self.process.poll() is None and self.last_time() < now and time.monotonic() < patience:
            time.sleep(0.05)
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=300)
        self.output.seek(0)
        self.rows = rows_of(self.output.read())
        self.output.close()
        return self

    def states(self, tid):
        """Returns the sums of the states of a victim over all periods, ns."""
        periods = {r["time"]: r for r in self.rows if r["tid"] == str(tid)}.values()  # a row for each culprit
        return {k: sum(int(r[f"{k}_ns"]) for r in periods)
                for k in ("ran", "stolen", "throttled", "paused", "blocked", "unknown", "period")}

    def pairs(self, tid):
        """Returns {culprit: ns} of a victim: the TGID, of a vCPU its TID; kinds without PID by their kind."""
        sums = {}
        for r in self.rows:
            if r["tid"] == str(tid) and r["culprit_ns"]:
                key = int(r["culprit_pid"]) if r["culprit_pid"] else r["culprit_kind"]
                sums[key] = sums.get(key, 0) + int(r["culprit_ns"])
        return sums


class Recording:
    """A recording of the host; .messages and .started (CLOCK_MONOTONIC, ns) when it is stopped."""

    def __init__(self, directory, seconds="60s"):
        self.directory = directory
        self.errors = tempfile.TemporaryFile(mode="w+", encoding="utf-8")
        self.process = subprocess.Popen([PROGRAM, "record", "-t", seconds, "--host-only", "--no-index", "-o", directory],
                                        stdout=subprocess.DEVNULL, stderr=self.errors, text=True)
        self.wait_for_start()

    def read_messages(self):
        self.errors.seek(0)
        return self.errors.read()

    def wait_for_start(self):
        """Returns when the recorder records, or when it has ended. It measures the rate of events first, and clears its
        buffers; then it prints a line and switches its tracefs instance on."""
        while self.process.poll() is None:
            time.sleep(0.1)
            for path in glob.glob(f"/sys/kernel/tracing/instances/stealscope-{self.process.pid}-*/tracing_on"):
                with open(path, encoding="utf-8") as f:
                    if "recording" in self.read_messages() and f.read().strip() == "1":
                        return

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(timeout=300)
        self.messages = self.read_messages()
        self.errors.close()
        if status == 0:
            with open(os.path.join(self.directory, "host", "about.yaml"), encoding="utf-8") as f:
                self.started = int(re.search(r"started: .*monotonic: (\d+)", f.read()).group(1))
            with open(os.path.join(self.directory, "host", "saved_tgids"), encoding="utf-8") as f:
                self.tgid = dict((int(word) for word in line.split()) for line in f)
        return status

    def switches(self):
        """Returns (time, CPU, previous TID, next TID) of each switch."""
        for r in rows_of(run("events", self.directory, "--at", "50%", "--around", "60s", "--format", "csv").stdout):
            if r["event"] == "sched_switch":
                yield int(r["at"]), int(r["cpu"]), *map(int, re.match(r"prev_tid=(\d+) next_tid=(\d+)", r["fields"]).groups())

    def incomplete(self):
        """Returns the processes with threads that got a CPU more often than they lost it, since the tracer has no events of them,
        and {process: ns} for those that such a thread left the CPU to, at an unknown time."""
        times, unclear, current = {}, {}, {}
        for time_ns, cpu, prev, next_tid in self.switches():
            times[next_tid] = times.get(next_tid, 0) + 1
            times[prev] = times.get(prev, 0) - 1
            tid, since = current.get(cpu, (prev, time_ns))
            if tid != prev:
                group = self.tgid.get(prev, prev)
                unclear[group] = unclear.get(group, 0) + time_ns - since
            current[cpu] = next_tid, time_ns
        return {self.tgid.get(tid, tid) for tid, n in times.items() if n > 1}, unclear

    def unknown_time(self, cpu, tid):
        """Returns the running time of a thread before switches of a CPU from another thread than the one that the CPU had
        switched to: some kernels hide the switches of some threads, and who ran in between is unknown, ns."""
        unknown, ran, last, begin = [], [], None, None
        for at, where, prev, next_tid in self.switches():
            if where == cpu:
                if last and last[1] != prev:
                    unknown.append((last[0], at))
                last = at, next_tid
            elif next_tid == tid:
                begin = at
            elif prev == tid and begin:
                ran.append((begin, at))
        return sum(max(0, min(e, end) - max(b, start)) for b, e in unknown for start, end in ran)

    def pairs(self, tid, vcpus):
        """Returns {TGID, or TID of a vCPU, or a name: ns} of a victim. vcpus: the TIDs of its machine's vCPUs."""
        sums = {}
        for r in rows_of(run("steal", self.directory, f"host/{tid}", "--by", "thread", "--format", "csv").stdout):
            thread, vcpu = re.match(r"host/(\d+)", r["culprit"]), re.match(r"VM of TID (\d+)/vCPU(\d+)", r["culprit"])
            key = r["culprit"]
            if vcpu:
                first, number = int(vcpu.group(1)), int(vcpu.group(2))
                key = vcpus[number] if first in vcpus else self.tgid.get(first, first)
            elif thread:
                key = int(thread.group(1))
                key = key if key in vcpus else self.tgid.get(key, key)
            sums[key] = sums.get(key, 0) + int(r["ns"])
        return sums


class Quota:
    """A control group with a CPU quota in percent, version 1 or 2; .path is None if it cannot be made."""

    def __init__(self, name, percent):
        self.path = None
        for base, files in (("/sys/fs/cgroup/cpu", (("cpu.cfs_quota_us", str(percent * 1000)),)),
                            ("/sys/fs/cgroup", (("cpu.max", f"{percent * 1000} 100000"),))):
            path = os.path.join(base, name)
            try:
                os.mkdir(path)
                self.path = path
                quotas.append(self)
                for file, text in files:
                    with open(os.path.join(path, file), "w", encoding="utf-8") as f:
                        f.write(text)
                return
            except OSError:
                self.remove()

    def add(self, tid):
        threads = os.path.join(self.path, "tasks")
        with open(threads if os.path.exists(threads) else os.path.join(self.path, "cgroup.procs"), "w", encoding="utf-8") as f:
            f.write(str(tid))

    def throttled(self):
        """Returns the throttled time in cpu.stat, ns."""
        with open(os.path.join(self.path, "cpu.stat"), encoding="utf-8") as f:
            key, n = re.search(r"^throttled_(time|usec) (\d+)", f.read(), re.M).groups()
        return int(n) * (1000 if key == "usec" else 1)

    def remove(self):
        for _ in range(20):
            try:
                if self.path:
                    os.rmdir(self.path)
                break
            except OSError:
                time.sleep(0.1)
        self.path = None


def set_affinity(tid, cpu):
    os.sched_setaffinity(tid, {cpu})
