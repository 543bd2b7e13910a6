"""stealscope top on the real kernel: its sums against the victim's schedstat and against a recording of the same seconds."""
import contextlib
import glob
import json
import os
import re
import signal
import subprocess
import time

from e2e import PROGRAM, check, run, scratch, skip, table, until
from live_scene import HOG, Top, Vcpus, children, last_cpu, start, stop, stop_all
from live_truth import measure, near


def check_bounds():
    """Without BPF: culprits are lower bounds of the exact sums, and two pinned hogs that take most are named."""
    vm = Vcpus(last_cpu(), 1.5)
    exact, bounds = Top([vm.pid], period=0.5), Top([vm.pid], "--no-bpf", period=0.5)
    hogs = [start(HOG, last_cpu(), name) for name in ("burnP6", "burnMMX")]
    time.sleep(0.7)
    vm.begin()
    vm.wait()
    time.sleep(1.1)
    exact, bounds = exact.stop(), bounds.stop()
    stop(*hogs)
    tid = vm.tids[0]
    ours, truth, states = bounds.pairs(tid), exact.pairs(tid), bounds.states(tid)
    check(bounds.rows[0]["source"] == "schedstat", "schedstat is the source without BPF")
    check(sum(ours.values()) == states["stolen"], f"the culprits add up to the stolen time: {states['stolen'] / 1e6:.3f} ms")
    known, missed = exact.states(tid)["stolen"], exact.states(tid)["unknown"]  # unknown: a switch that the kernel did not report
    check(near(states["stolen"], known) or known < states["stolen"] <= known + missed + 1_000_000,
          f"which is that of BPF: {known / 1e6:.3f} ms, and at most {missed / 1e6:.3f} ms of unknown time")
    for culprit, ns in ours.items():
        if culprit != "unknown":
            check(ns <= truth.get(culprit, 0) + 1_000_000, f"{culprit}: at least {ns / 1e6:.3f} ms; exact: {truth.get(culprit, 0) / 1e6:.3f} ms")
    both = sum(truth.get(p.pid, 0) for p in hogs)
    if both > 0.95 * states["stolen"]:
        named = sum(ours.get(p.pid, 0) for p in hogs)
        check(named > 0.4 * both, f"the hogs took {both / 1e6:.3f} ms, named for {named / 1e6:.3f} ms")


def check_rows():
    """The times of a vCPU's row cover one interval, however long top waits for a CPU in between."""
    vm = Vcpus(last_cpu(), 600, 2, "kvm", "-name", f"busy{os.getpid()}")
    vm.begin()
    hog = start(HOG, last_cpu(), "burnK7")
    os.sched_setaffinity(0, {last_cpu()})
    try:
        rows = [r for r in table("top", "-b", "-d", "0.1", "-n", "5") if int(r["tid"]) in vm.tids]
    finally:
        os.sched_setaffinity(0, range(os.cpu_count()))
        stop(hog, vm.process)
    over = [sum(int(r[f"{state}_ns"]) for state in ("ran", "stolen", "throttled", "paused", "blocked", "unknown")) - int(r["period_ns"])
            for r in rows]
    check(rows and max(over) <= 10e6, f"in {len(rows)} rows at most {max(over, default=0)} ns more than their period")


def check_vm(tmp):
    """A VM of KVM is found; the trigger gap(VM) saves a flight recording when one of its vCPUs waits."""
    vm = Vcpus(last_cpu(), 600, 1, "kvm", "-name", f"vm{os.getpid()}")
    if not any("kvm-vcpu" in os.readlink(fd) for fd in glob.glob(f"/proc/{vm.pid}/fd/*")):
        print("     not run: no VM of KVM can be made here")
        return
    rows = [r for r in table("top", "-b", "-d", "0.2") if r["tid"] == str(vm.tids[0])]
    check(rows and rows[0]["cpu"] == "0", f"the vCPU of {rows[0]['machine'] if rows else 'the VM'} is found by itself")
    hogs = [start(HOG, last_cpu(), name) for name in ("burnP6", "burnMMX")]
    name = rows[0]["machine"]
    check_rows()
    flight = subprocess.Popen([PROGRAM, "record", "--flight", "-t", "5s", "--no-index", "--host-only", "--trigger", f"gap({name})>2ms",
                               "-o", f"{tmp}/flight"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    children.append(flight)
    for _ in range(600):  # until the flight recording runs
        if glob.glob(f"/sys/kernel/tracing/instances/stealscope-{flight.pid}-*/per_cpu") or flight.poll() is not None:
            break
        time.sleep(0.1)
    time.sleep(1)
    vm.begin()
    saved = flight.stdout.readline().strip()
    stop(*hogs, vm.process)
    flight.send_signal(signal.SIGINT)
    errors = flight.communicate(timeout=300)[1]
    check(saved.startswith(f"{tmp}/flight/") and os.path.exists(f"{saved}/session.yaml") and f"gap({name})>2ms:" in errors,
          f"gap({name}) saves {saved} {errors}")


def check_lengths():
    """A stopped thread is paused; assertions; both formats hold the same rows."""
    name = f"hog{os.getpid()}"
    p = start(HOG, last_cpu(), name)

    def is_stopped():
        with open(f"/proc/{p.pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "T"
    os.kill(p.pid, signal.SIGSTOP)
    until(is_stopped, "it gets the CPU once more, to stop")
    answer = json.loads(run("top", "-b", "-d", "1", "--format", "json", "--pid", str(p.pid)).stdout)
    os.kill(p.pid, signal.SIGCONT)
    rows = [r for r in answer["rows"] if r["tid"] == p.pid]  # there may be VMs of other tests
    check(answer["answer"] == "top" and rows and all(r["ran_ns"] == 0 for r in rows), "a stopped thread does not run")
    run("top", "-b", "-d", "2", "--pid", str(p.pid), "--assert", f"{name}.run<0.1%", status=3)
    run("top", "-b", "-d", "2", "--pid", str(p.pid), "--assert", "*.run<0.1%", status=3)
    run("top", "-b", "-d", "0.5", "--pid", str(p.pid), "--assert", f"{name}.throttled<1%")
    run("top", "--assert", "web.steal", status=1)
    run("top", "-b", "-d", "0.5", "--pid", str(p.pid), "--assert", "nosuch.steal<1%", status=2)
    stop(p)


def check_killed():
    """kill -9 leaves no program attached."""
    def programs():
        answer = subprocess.run(["bpftool", "-j", "prog"], capture_output=True, text=True).stdout
        return {prog["id"] for prog in json.loads(answer or "[]")}

    def programs_of(pid):
        """Returns the ids of the programs whose descriptors a process has."""
        found = set()
        for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
            with contextlib.suppress(OSError), open(path, encoding="utf-8") as f:  # it may be closed meanwhile
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
        measure("hogs", tmp)
        check_bounds()
        if not os.environ.get("STEALSCOPE_BRIEF"):
            check_vm(tmp)
        check_lengths()
        check_killed()


try:
    main()
finally:
    stop_all()
