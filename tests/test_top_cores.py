"""top: time that a vCPU runs beside a busy CPU of its core, on the real kernel. Two CPUs of this machine play a core: the
topology comes from --root. A recording of the same seconds is the truth."""
import os
import re
import time

from e2e import check, run, scratch, skip, table
from live_scene import Recording, Top, Vcpus, start, stop_all

# Runs for 20 ms and sleeps for 20 ms.
HALF = r"""
import ctypes, os, sys, time
ctypes.CDLL(None).prctl(15, b"half", 0, 0, 0)
os.sched_setaffinity(0, {int(sys.argv[1])})
print("ready", flush=True)
while True:
    end = time.thread_time() + 0.02
    while time.thread_time() < end:
        pass
    time.sleep(0.02)
"""
SECONDS = 1


def make_root(folder, cpus):
    """Makes a root directory in which the CPUs are one core."""
    os.makedirs(f"{folder}/sys/devices/system/cpu")
    os.symlink("/proc", f"{folder}/proc")
    os.symlink("/run", f"{folder}/run")
    for cpu in cpus:
        os.makedirs(f"{folder}/sys/devices/system/cpu/cpu{cpu}/topology")
        with open(f"{folder}/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", "w", encoding="utf-8") as f:
            f.write(",".join(map(str, cpus)) + "\n")
    return folder


def shared_of(recording, folder, cpus, tid):
    """Returns the sums of `steal --by core` of a thread, in which the CPUs are one core."""
    session = f"{folder}/session.yaml"
    with open(session, "w", encoding="utf-8") as f:
        f.write(f"host:\n  dir: {recording.directory}/host\n  topology: {{cpus: {{" +
                ", ".join(f"{cpu}: {{core: 0}}" for cpu in cpus) + "}}\n")
    sums = {"shared": 0, "alone": 0, "unknown": 0, "irq": 0}
    for row in table("steal", session, f"host/{tid}", "--by", "core"):
        is_task = re.match(r"host/|.*/vCPU", row["sharer"] or "")
        sums["irq" if row["kind"] == "shared" and not is_task else row["kind"]] += int(row["ns"])
    return sums


def main(tmp):
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        skip("one CPU")
    probe = run("top", "-b", "-d", "0.2", "--pid", str(os.getpid()), status=None)
    if probe.returncode or "without BPF" in probe.stderr:
        skip(f"BPF is not allowed here: {probe.stderr.strip()}")
    root = make_root(f"{tmp}/root", cpus)
    start(HALF, cpus[0])
    vm = Vcpus(cpus[1], SECONDS)
    plain = table("top", "-b", "-d", "0.2", "--pid", str(vm.pid))
    check("shared_ns" not in plain[0] or os.path.exists("/sys/devices/system/cpu/smt/active"), "no column without siblings")
    top = Top([vm.pid], "--root", root, period=0.3)
    recording = Recording(f"{tmp}/recording")
    vm.begin()
    vm.wait()
    time.sleep(0.5)
    top.stop()
    status = recording.stop()
    stop_all()
    check(status == 0, f"recorded {recording.messages if status else ''}")
    tid = vm.tids[0]
    periods = {r["time"]: r for r in top.rows if r["tid"] == str(tid)}.values()
    ran, shared = (sum(int(r[k]) for r in periods) for k in ("ran_ns", "shared_ns"))
    truth = shared_of(recording, tmp, cpus, tid)
    hidden = recording.unknown_time(cpus[0], tid)
    slack = max(0.01 * ran, 2_000_000) + truth["unknown"] + truth["irq"] + hidden
    check(abs(shared - truth["shared"]) <= slack, f"shared {shared / 1e6:.3f} of {ran / 1e6:.3f} ms; recorded {truth}; "
          f"{hidden / 1e6:.3f} ms before hidden switches")
    check(shared > 0.2 * ran, "the other CPU was busy")
    named = [r for r in periods if r["top_sharer"]]
    check(named and all(int(r["top_sharer_ns"]) <= int(r["shared_ns"]) + 1_000_000 for r in named),
          f"sharers: {sorted({r['top_sharer'] for r in named})}")


if __name__ == "__main__":
    try:
        with scratch() as folder:
            main(folder)
    finally:
        stop_all()
