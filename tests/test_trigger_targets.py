"""Triggers of a flight recording on threads, control groups and log files; a trigger that stays true saves one recording per -t."""
import glob
import os
import re
import subprocess
import time

from e2e import PROGRAM, check, run, scratch, skip
from live_scene import HOG, Quota, last_cpu, start, stop_all

HOLD = 3


def flights(folder, triggers, seconds, act=None):
    """Runs a flight recording. Returns the texts of the triggers that fired, with the times of the recordings."""
    options = [word for t in triggers for word in ("--trigger", t)]
    p = subprocess.Popen([PROGRAM, "record", "--flight", "-t", f"{HOLD}s", "--host-only", "--no-index", *options, "-o", folder],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(600):  # until it records
        if glob.glob(f"/sys/kernel/tracing/instances/stealscope-{p.pid}-*/per_cpu") or p.poll() is not None:
            break
        time.sleep(0.1)
    time.sleep(2 + seconds / 2)
    if act:
        act()
    time.sleep(seconds / 2)
    p.terminate()
    out, err = p.communicate(timeout=120)
    check(p.returncode in (0, 5), f"the flight ends: {p.returncode} {err}")
    saved = [line for line in out.splitlines() if os.path.isdir(line)]
    return re.findall(r"^stealscope: (.*): the last seconds were saved", err, re.M), saved


def main():
    probe = run("record", "--check", status=None)
    if os.geteuid() or "built without" in probe.stderr or not os.path.exists("/sys/kernel/tracing/events"):
        skip(f"recording needs root and tracefs: {probe.stderr.strip()[:80]}")
    for wrong, status in (("gap(thread:)>5ms", 2), ("gap(thread:nosuch)>5ms", 2), ("throttled(nosuch.service)>10%", 2), ("log(x)", 1),
                          ("log(x,)", 1), ("throttled(x)>5ms", 1)):
        run("record", "--flight", "--host-only", "--trigger", wrong, "-o", "never", status=status)
    for name in ("waiter", "burnP6"):
        start(HOG, last_cpu(), name)
    time.sleep(0.3)
    with scratch() as tmp:
        log = f"{tmp}/log"
        with open(log, "w", encoding="utf-8") as f:
            f.write("slow: before\n")

        def write():
            os.rename(log, log + ".1")  # as logrotate does
            with open(log, "w", encoding="utf-8") as f:
                f.write("fast\nslow: now\n")
        fired, saved = flights(f"{tmp}/log.d", [f"log({log},slow)"], 6, write)
        check(len(fired) == 1 and len(saved) == 1, f"a log line: {fired}")
        fired, saved = flights(f"{tmp}/gap.d", ["gap(thread:waiter)>1ms"], 8)
        check(1 <= len(fired) <= 4 and len(saved) == len(fired), f"one recording per -t while it stays true: {fired}")
        group = Quota(f"stealscope-test-{os.getpid()}", 1)
        if not group.path:
            print("     not run: control groups have no quota here")
            return
        group.add(start(HOG, last_cpu(), "limited").pid)
        name = os.path.basename(group.path)
        fired, _ = flights(f"{tmp}/thr.d", [f"throttled({name})>10%", f"gap(/{name})>10s"], 5)
        check(fired and set(fired) == {f"throttled({name})>10%"}, f"throttled: {fired}")


try:
    main()
finally:
    stop_all()
