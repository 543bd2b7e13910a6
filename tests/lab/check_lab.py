"""`stealscope record` on a real kernel with real guests, in the lab (lab.py): make check-lab LAB=DIR [KILLS=N] [SEED=N]
[ROUNDS=N].

- After a fresh boot one command must find the culprit.
- The clock from the TSC must be within the error bounds of containment.
- A flight must be saved when its trigger fires, and not before.
- A guest that gets no CPU for some seconds must be recorded, and an offline CPU must not lose time.
- After any process was killed at any time, host and guests must be as before.
- A computation in a guest must take at most 3 % longer while it is recorded."""
import csv
import io
import os
import random
import re
import statistics
import sys
import time

from lab import DEBIAN, Hung, Lab, missing

TRANSPORTS = "Debian=vsock::9000 Ubuntu=ssh:root@10.0.0.2"
COST = 3  # most additional time of a recorded computation, %
PATIENCE = 60  # most time from the end of the recording to the verdict, s
QUIET = "2>&1 | tr '\\r' '\\n' | grep -v '^.\\[K'"  # without progress bars


def check(condition, description):
    print(("ok   " if condition else "FAIL ") + description, flush=True)
    if not condition:
        sys.exit(1)


def sync_rows(lab, mode, folder="r"):
    _, text = lab.sh(f"stealscope sync /dev/shm/{folder} --sync {mode} --format csv 2>/dev/null", 120)
    return {r["guest"]: r for r in csv.DictReader(io.StringIO(text[text.index("guest,"):]))}


def require_guests(lab):
    """Raises Hung if a guest ended: emulated guests reset themselves sometimes, without a kernel message."""
    for guest in ("Debian", "Ubuntu"):
        status, text = lab.sh(f"kill -0 $(cat /run/vm/{guest}.pid) || {{ tail -n 3 /run/vm/{guest}.console; false; }}")
        if status:
            raise Hung(f"{guest} ended; the end of its console: {text}")


def check_verdict(lab):
    """A hog on the CPU of Debian's vCPU is named as the culprit."""
    lab.sh("pinvcpu Debian 0 1; gs Debian 'fibonacci 36 40'; cd /dev/shm; rm -rf r")
    lab.sh("taskset -c 1 /lab/bin/burnP6 300000 </dev/null >/dev/null 2>&1 & HOG=$!; sleep 1")
    status, text = lab.sh(f"stealscope record -t 5s -o r {TRANSPORTS} {QUIET}; date +done=%s%N", 300)
    print(text)
    require_guests(lab)
    check(re.search(r"host/\d+ burnP6", text) and "Debian/vCPU0" in text, "the verdict names culprit and victim")
    _, about = lab.sh("cat r/host/about.yaml")
    end = int(re.search(r"stopped: .*realtime: (\d+)", about)[1])
    delay = (int(re.search(r"done=(\d+)", text)[1]) - end) / 1e9
    check(delay <= PATIENCE, f"{delay:.1f} s after the end of the recording")
    lab.sh("kill $HOG")
    check_clock(lab)
    lab.sh("gwait Debian >/dev/null", 300)


def check_clock(lab):
    exact, contained = sync_rows(lab, "tsc"), sync_rows(lab, "containment")
    for guest, row in exact.items():
        check(row["method"] == "tsc" and float(row["containment"]) == 1.0, f"{guest}: the TSC contains all {row}")
        other = contained[guest]
        gap = abs(int(row["ref_host_ns"]) - int(row["ref_guest_ns"]) - int(other["ref_host_ns"]) + int(other["ref_guest_ns"]))
        bounds = other["error_mid_ns"] and int(other["error_mid_ns"])
        check(other["method"] != "containment" or not bounds or gap <= 2 * bounds,
              f"{guest}: containment agrees: {gap} ns apart, error bounds {bounds} ns")


def check_flight(lab):
    """A flight is saved when the hog starts, and not before."""
    trigger = "--flight -t 3s --keep 1 -o f --trigger 'gap(Debian)>"
    lab.sh("pinvcpu Debian 0 1; cd /dev/shm; rm -rf f; g Debian 'fibonacci 36 100000 >/dev/null 2>&1 & FIB=$!'")
    _, text = lab.sh(f"timeout -s INT 30 stealscope record {trigger}90ms' --no-index {TRANSPORTS} {QUIET}; ls f 2>&1", 120)
    check("No such file" in text, f"no flight is saved without a hog {text}")
    lab.sh("taskset -c 1 /lab/bin/burnP6 300000 </dev/null >/dev/null 2>&1 & HOG=$!")
    _, text = lab.sh(f"timeout -s INT 200 stealscope record {trigger}20ms' {TRANSPORTS} {QUIET}", 300)
    print(text)
    guests_live(lab)
    check("gap(Debian)>20ms: " in text and "burnP6" in text, "a gap saves a flight")
    lab.sh("kill $HOG; g Debian 'kill $FIB'", 300)


def check_starved(lab):
    """The recorder waits for a guest that gets no CPU for some seconds."""
    status, text = lab.sh("kill -STOP $(cat /run/vm/Debian.pid); stealscope record --check Debian=vsock::9000 & sleep 4; "
                          "kill -CONT $(cat /run/vm/Debian.pid); wait $!", 120)
    guests_live(lab)
    check(status == 0 and re.search(r"vsock:3:9000 +yes", text), f"a guest that gets no CPU for 4 s answers {text}")


def check_offline(lab):
    """A vCPU that its guest takes offline does not lose time."""
    online = "/sys/devices/system/cpu/cpu1/online"
    _, text = lab.sh("cd /dev/shm; rm -rf o; stealscope record --no-index -o o Ubuntu=ssh:root@10.0.0.2 -- ssh root@10.0.0.2 "
                     f"'sleep 1; echo 0 >{online}; sleep 3; echo 1 >{online}; sleep 1' {QUIET}; "
                     "stealscope gaps o Ubuntu/CPU1 --top 1 --format csv 2>/dev/null", 300)
    guests_live(lab)
    longest = int(text.strip().splitlines()[-1].split(",")[2])
    check(longest < 1e9, f"the longest gap of an offline CPU is {longest} ns {text}")


# ---- cost

def compute(lab):
    """Returns the duration of a fixed computation in Debian, ns of its clock."""
    _, text = lab.sh("g Debian 'fibonacci 32 20'", 300)
    return int(re.search(r"wall_ns=(\d+)", text)[1])


def compute_recorded(lab):
    lab.sh("rm -rf c c.log; stealscope record -t 60s --no-index -o c Debian=vsock::9000 </dev/null >c.log 2>&1 & REC=$!; "
           "until grep -q 'recording.*about' c.log || ! kill -0 $REC; do sleep 0.2; done; sleep 2", 300)
    duration = compute(lab)
    status, text = lab.sh("kill -INT $REC; wait $REC; cat c.log", 300)
    if status:
        raise Hung(f"the recording failed: {text}")
    return duration


def check_cost(lab, n):
    """Compares a computation in a guest with and without a recording, alternately, on a host whose only CPU executes one
    instruction per ns: durations count the work of all threads and do not depend on the machine that runs the lab."""
    lab.boot(counted=True)
    lab.guests(DEBIAN)
    lab.sh("cd /dev/shm")
    compute(lab)
    costs = []
    for i in range(n):
        alone, recorded = compute(lab), compute_recorded(lab)
        costs.append(100 * (recorded / alone - 1))
        print(f"     round {i + 1}: {alone / 1e9:.4f} s alone, {recorded / 1e9:.4f} s recorded: {costs[-1]:+.2f} %", flush=True)
    check(max(costs) <= COST, f"a recorded computation takes at most {max(costs):+.2f} % longer (median of the rounds: "
          f"{statistics.median(costs):+.2f} %)")


# ---- kills

STATE = ("ls -d /sys/kernel/tracing/instances/*; cat /sys/kernel/tracing/tracing_on /sys/kernel/tracing/events/enable "
         "/sys/kernel/tracing/trace_clock /sys/kernel/tracing/dynamic_events; ls /run/stealscope /tmp")
GUEST_STATE = ("ls -d /sys/kernel/tracing/instances/*; cat /sys/kernel/tracing/tracing_on /sys/kernel/tracing/events/enable "
               "/sys/kernel/tracing/dynamic_events")


def state(lab):
    _, host = lab.sh(STATE)
    status, ubuntu = lab.sh(f"ssh -o ConnectTimeout=60 root@10.0.0.2 '{GUEST_STATE}' 2>&1", 120)
    if status == 255:
        raise Hung(f"Ubuntu does not answer: {ubuntu}")
    return host, lab.sh(f"g Debian '{GUEST_STATE}'")[1], ubuntu


RECORDER, TRANSPORT = "kill -9 $REC", "kill -9 $(ps -o pid= --ppid $REC | shuf -n 1)"
VICTIMS = {
    "recorder": RECORDER,
    "transport": TRANSPORT,
    "script in Debian": "g Debian 'for d in /sys/kernel/tracing/instances/stealscope-guest-*; do p=${d##*guest-}; "
                        "kill -9 ${p%-*}; done 2>/dev/null'",
    "script in Ubuntu": "ssh root@10.0.0.2 'for d in /sys/kernel/tracing/instances/stealscope-guest-*; do "
                        "p=${d##*guest-}; kill -9 ${p%-*}; done 2>/dev/null'",
}


def kill_once(lab, before, victim, moment):
    """Kills a process at a moment (s) of a recording.  Returns true if --cleanup restores the state before it."""
    lab.sh("rm -rf k; setsid stealscope record -t 3s --no-index -o k " + TRANSPORTS + " </dev/null >/run/k.log 2>&1 & REC=$!")
    lab.sh(f"sleep {moment:.2f}; {VICTIMS[victim]} 2>/dev/null; true")
    if victim != "recorder":
        lab.sh("wait $REC", 120)
    for _ in range(30):  # the watchdog in a guest needs some seconds
        lab.sh("stealscope record --cleanup " + TRANSPORTS, 120)
        require_guests(lab)
        after = state(lab)
        if after == before:
            return True
        time.sleep(2)
    print("before", before, "after", after)
    return False


def check_kills(lab, n):
    rnd, clean = random.Random(int(os.environ.get("SEED", "18"))), []
    kills = [(rnd.choice(sorted(VICTIMS)), rnd.uniform(0, 20)) for _ in range(n)]

    def run_remaining_kills():
        lab.sh("mkdir -p /run/stealscope; cd /dev/shm")
        before = state(lab)
        for victim, moment in kills[len(clean):]:
            good = kill_once(lab, before, victim, moment)
            clean.append(good)
            print(f"{'ok  ' if good else 'FAIL'} kill {len(clean)}: {victim} after {moment:.2f} s; {sum(clean)} of "
                  f"{len(clean)}", flush=True)
    retry_hung(lab, run_remaining_kills, n // 5)
    check(all(clean), f"after {sum(clean)} of {n} kills the state is as before")


def retry_hung(lab, function, hangs=1):
    """Calls the function; after a hang of the host, boots it and calls again, so many times."""
    while True:
        try:
            return function()
        except Hung as e:
            if not hangs:
                raise
            hangs -= 1
            print(f"     the host hangs and is booted again: {e}\n     {lab.where()}", flush=True)
            lab.boot()
            lab.guests()


def main():
    folder = os.environ.get("LAB", "")
    if not folder or missing(folder):
        print("skipped: LAB is not set" if not folder else f"skipped: missing {missing(folder)}")
        return 77
    lab = Lab(folder, os.path.abspath(os.path.join(os.environ.get("builddir", "."), "stealscope")))
    try:
        lab.boot()
        lab.guests()
        for checked in (check_verdict, check_flight, check_starved, check_offline):
            retry_hung(lab, lambda: checked(lab))
        check_kills(lab, int(os.environ.get("KILLS", "20")))
        retry_hung(lab, lambda: check_cost(lab, int(os.environ.get("ROUNDS", "3"))))
    except Hung as e:
        print("the lab hangs:", e)
        return 99
    finally:
        lab.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
