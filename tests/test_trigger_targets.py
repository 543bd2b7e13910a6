"""Triggers of a flight recording on threads, control groups and log files; a trigger that stays true saves one recording per -t."""
import glob
import os
import re
import subprocess
import time

from e2e import PROGRAM, check, run, scratch, skip, until
from live_scene import HOG, Quota, children, last_cpu, start, stop_all

HOLD = 3


def flights(folder, triggers, seconds, act=None):
    """Runs a flight recording until it has saved one, and these seconds longer. Returns the texts of the triggers that fired, and
    the recordings."""
    options = [word for t in triggers for word in ("--trigger", t)]
    with open(f"{folder}.out", "w+", encoding="utf-8") as out, open(f"{folder}.err", "w+", encoding="utf-8") as err:
        p = subprocess.Popen([PROGRAM, "record", "--flight", "-t", f"{HOLD}s", "--host-only", "--no-index", *options, "-o", folder],
                             stdout=out, stderr=err, text=True)
        children.append(p)
        until(lambda: glob.glob(f"/sys/kernel/tracing/instances/stealscope-{p.pid}-*/per_cpu") or p.poll() is not None, "it records")
        time.sleep(HOLD)
        if act:
            act()
        until(lambda: os.path.getsize(out.name) or p.poll() is not None, "it has saved a recording")
        time.sleep(seconds)
        p.terminate()
        p.wait(timeout=300)
        out.seek(0)
        err.seek(0)
        saved, errors = [line for line in out.read().splitlines() if os.path.isdir(line)], err.read()
    check(p.returncode in (0, 5), f"the flight ends: {p.returncode} {errors}")
    return re.findall(r"^stealscope: (.*): the last seconds were saved", errors, re.M), saved


def main():
    probe = run("record", "--check", status=None)
    if os.geteuid() or "built without" in probe.stderr or not os.path.exists("/sys/kernel/tracing/events"):
        skip(f"recording needs root and tracefs: {probe.stderr.strip()[:80]}")
    for wrong, status in (("gap(thread:)>5ms", 2), ("gap(thread:nosuch)>5ms", 2), ("throttled(nosuch.service)>10%", 2), ("log(x)", 1),
                          ("log(x,)", 1), ("throttled(x)>5ms", 1)):
        run("record", "--flight", "--host-only", "--trigger", wrong, "-o", "never", status=status)
    waiter = f"waiter{os.getpid()}"  # threads of other tests have other names
    for name in (waiter, "burnP6"):
        start(HOG, last_cpu(), name)
    with scratch() as tmp:
        log = f"{tmp}/log"
        with open(log, "w", encoding="utf-8") as f:
            f.write("slow: before\n")

        def write():
            os.rename(log, log + ".1")  # as logrotate does
            with open(log, "w", encoding="utf-8") as f:
                f.write("fast\nslow: now\n")
        fired, saved = flights(f"{tmp}/log.d", [f"log({log},slow)"], 2, write)
        check(len(fired) == 1 and len(saved) == 1, f"a log line: {fired}")
        fired, _ = flights(f"{tmp}/gap.d", [f"gap(thread:{waiter})>1ms"], 0)
        check(fired and set(fired) == {f"gap(thread:{waiter})>1ms"}, f"a thread: {fired}")
        # A wait of a thread on a starved CPU may be false for a second meanwhile; the load stays.
        fired, saved = flights(f"{tmp}/load.d", ["load>0.001"], 4)
        at = [time.mktime(time.strptime(os.path.basename(name)[:15], "%Y%m%d-%H%M%S")) for name in saved]  # in seconds
        check(fired and len(saved) == len(fired) and all(b - a > HOLD - 2 for a, b in zip(at, at[1:])),
              f"one recording per -t while it stays true: {saved}")
        group = Quota(f"stealscope-test-{os.getpid()}", 1)
        if not group.path:
            print("     not run: control groups have no quota here")
            return
        group.add(start(HOG, last_cpu(), "limited").pid)
        name = os.path.basename(group.path)
        fired, _ = flights(f"{tmp}/thr.d", [f"throttled({name})>10%", f"gap(/{name})>10s"], 2)
        check(fired and set(fired) == {f"throttled({name})>10%"}, f"throttled: {fired}")


try:
    main()
finally:
    stop_all()
