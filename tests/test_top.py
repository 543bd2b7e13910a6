"""stealscope top on the real kernel: its sums against the victim's schedstat and against a recording of the same seconds."""
import csv
import glob
import io
import json
import os
import re
import signal
import subprocess
import sys
import time

from e2e import PROGRAM, check, run, scratch, skip

BURST = 2  # seconds

# A process with a thread named like a vCPU, which spins when a line arrives.
VICTIM = r"""
import ctypes, os, sys, threading, time
def vcpu():
    ctypes.CDLL(None).prctl(15, b"CPU 3/KVM", 0, 0, 0)
    os.sched_setaffinity(0, {int(sys.argv[1])})
    print(os.getpid(), threading.get_native_id(), flush=True)
    sys.stdin.readline()
    end = time.time() + float(sys.argv[2])
    while time.time() < end:
        pass
    print("done", flush=True)
    sys.stdin.readline()
t = threading.Thread(target=vcpu, daemon=True)
t.start()
t.join()
"""
HOG = r"""
import ctypes, os, sys
ctypes.CDLL(None).prctl(15, b"burnP6", 0, 0, 0)
os.sched_setaffinity(0, {int(sys.argv[1])})
while True:
    pass
"""
children = []


def start(code, *args):
    p = subprocess.Popen([sys.executable, "-c", code, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         text=True)
    children.append(p)
    return p


def run_delay(tid):
    with open(f"/proc/{tid}/schedstat", encoding="utf-8") as f:
        return int(f.read().split()[1])


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def check_exact(tmp):
    cpu = max(os.sched_getaffinity(0))
    hog, other, victim = start(HOG, cpu), start(HOG, cpu), start(VICTIM, cpu, BURST)
    pid, tid = victim.stdout.readline().split()
    time.sleep(0.2)
    delay = run_delay(tid)
    top = subprocess.Popen([PROGRAM, "top", "-b", "-n", "0", "-d", "0.7", "--format", "csv", "--pid", pid], stdout=subprocess.PIPE,
                           text=True)
    head = top.stdout.readline() + top.stdout.readline()
    trace = os.path.join(tmp, "recording")
    recorder = subprocess.Popen([PROGRAM, "record", "-t", "30s", "--host-only", "--no-index", "-o", trace],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for_pages(recorder)
    victim.stdin.write("go\n")
    victim.stdin.flush()
    victim.stdout.readline()
    time.sleep(2)
    top.terminate()
    rows = rows_of(head + top.communicate(timeout=60)[0])
    delay = run_delay(tid) - delay
    recorder.send_signal(signal.SIGINT)
    recorder.communicate(timeout=120)
    hog.kill()
    other.kill()
    check(len(rows) > 0 and {r["cpu"] for r in rows} == {"3"}, "the vCPU thread is found by its name")
    periods = {r["time"]: r for r in rows}.values()
    stolen = sum(int(r["stolen_ns"]) for r in periods)
    check(delay > BURST * 10**9 // 5, f"the victim waited ({delay / 1e6:.1f} ms)")
    check(abs(stolen - delay) <= max(0.005 * delay, 1_000_000),
          f"the stolen time is the run delay of schedstat: {stolen / 1e6:.3f} of {delay / 1e6:.3f} ms")
    pairs = {}
    for r in rows:
        if r["culprit_pid"]:
            pairs[int(r["culprit_pid"])] = pairs.get(int(r["culprit_pid"]), 0) + int(r["culprit_ns"])
    total = sum(int(r["culprit_ns"]) for r in rows if r["culprit_ns"])
    check(abs(total - stolen) <= 1000, f"the culprits add up to it: {total} of {stolen} ns")
    check(min(pairs.get(hog.pid, 0), pairs.get(other.pid, 0)) > 0.05 * stolen, "both hogs are named")
    states = sum(int(r[f"{k}_ns"]) for k in ("ran", "stolen", "throttled", "paused", "blocked", "unknown") for r in periods)
    period = sum(int(r["period_ns"]) for r in periods)
    check(abs(states - period) <= 0.01 * period, f"the states add up to the period: {states / 1e6:.1f} of {period / 1e6:.1f} ms")
    if recorder.returncode != 0:
        print("     record does not run here: not compared with a recording")
        return
    compare_with_recording(trace, rows[0]["tid"], {p: pairs[p] for p in (hog.pid, other.pid)}, delay)


def compare_with_recording(trace, tid, pairs, delay):
    """Compares these culprits, which are processes with one thread each."""
    recorded = {}
    for r in rows_of(run("steal", trace, f"host/{tid}", "--by", "thread", "--format", "csv").stdout):
        found = re.match(r"[^/]+/(\d+)", r["culprit"])
        if found:
            recorded[int(found.group(1))] = int(r["ns"])
    total = sum(recorded.values())
    if abs(total - delay) > 0.01 * delay:
        print(f"     not compared: the recording has {total / 1e6:.1f} of {delay / 1e6:.1f} ms, it does not cover the same waits")
        return
    for pid, ours in pairs.items():
        theirs = recorded.get(pid, 0)
        check(abs(ours - theirs) <= max(0.01 * theirs, 1_000_000),
              f"host/{pid}: {ours / 1e6:.3f} ms, in the recording {theirs / 1e6:.3f} ms")


def wait_for_pages(recorder):
    """Returns when the recorder records: its tracefs instance is switched on; or when it has ended."""
    for _ in range(100):
        time.sleep(0.1)
        for path in glob.glob("/sys/kernel/tracing/instances/stealscope*/tracing_on"):
            with open(path, encoding="utf-8") as f:
                if f"{recorder.pid}" in path and f.read().strip() == "1":
                    time.sleep(0.3)
                    return
        if recorder.poll() is not None:
            return


def check_lengths():
    """A stopped thread is paused; assertions; both formats hold the same rows."""
    p = start(HOG, max(os.sched_getaffinity(0)))
    time.sleep(0.2)
    os.kill(p.pid, signal.SIGSTOP)
    answer = json.loads(run("top", "-b", "-d", "1", "--format", "json", "--pid", str(p.pid)).stdout)
    os.kill(p.pid, signal.SIGCONT)
    check(answer["answer"] == "top" and answer["rows"][0]["ran_ns"] == 0, "a stopped thread does not run")
    run("top", "-b", "-d", "0.5", "--pid", str(p.pid), "--assert", "*.run<1%", status=3)
    run("top", "-b", "-d", "0.5", "--pid", str(p.pid), "--assert", "*.throttled<1%")
    run("top", "--assert", "web.steal", status=1)
    run("top", "-b", "-d", "0.5", "--pid", str(p.pid), "--assert", "nosuch.steal<1%", status=2)
    rows = rows_of(run("top", "-b", "-d", "1", "--no-bpf", "--format", "csv", "--pid", str(p.pid)).stdout)
    check(rows[0]["source"] == "schedstat" and int(rows[0]["ran_ns"]) > 0, "schedstat is the source without BPF")


def check_killed():
    """kill -9 leaves no program attached."""
    def programs():
        answer = subprocess.run(["bpftool", "-j", "prog"], capture_output=True, text=True).stdout
        return {prog["id"] for prog in json.loads(answer or "[]")}

    def programs_of(pid):
        """Returns the ids of the programs whose descriptors a process has."""
        found = set()
        for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
            with open(path, encoding="utf-8") as f:
                found |= {int(n) for n in re.findall(r"^prog_id:\s*(\d+)", f.read(), re.M)}
        return found
    try:
        programs()
    except FileNotFoundError:
        return
    p = subprocess.Popen([PROGRAM, "top", "-b", "-n", "0", "--pid", "1"], stdout=subprocess.DEVNULL)
    for _ in range(120):
        loaded = programs_of(p.pid)
        if loaded:
            break
        time.sleep(0.5)
    p.kill()
    p.wait()
    check(loaded, "its programs are loaded")
    for _ in range(60):  # the kernel frees them a moment later
        if not loaded & programs():
            break
        time.sleep(0.5)
    check(not loaded & programs(), "kill -9 leaves nothing attached")


def main():
    probe = run("top", "-b", "-d", "0.2", "--pid", str(os.getpid()), status=None)
    if "without BPF" in probe.stderr:
        skip(f"BPF is not allowed here: {probe.stderr.strip()}")
    with scratch() as tmp:
        check_exact(tmp)
        check_lengths()
        check_killed()


try:
    main()
finally:
    for child in children:
        child.kill()
