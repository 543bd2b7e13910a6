#!/usr/bin/env python3
"""Blame equals the truth, to the ns.

The simulator writes traces and the user of each pCPU at every ns.  With perfect clocks every interval of the execution
flow of every busy thread must agree with it: the thread, the hypervisor or the interrupt handler on the pCPU that the
thread, or its vCPU, had or waited for, or an idle pCPU.  The intervals must tile the window.

Where the tracer lost records the user of that CPU is unknown: there the flow must be unknown (or BLOCKED, if the trace of
the thread's machine shows it) without a culprit.  It may be unknown elsewhere during a loss, too, but anything else must
be true.

Usage: test_flow_truth.py [FROM TO]   (seeds; without them a quick set)"""
import concurrent.futures
import csv
import os
import subprocess
import sys

from e2e import BUILD, PROGRAM, check, run, scratch, seeds, table
from track import Track

SIM = os.path.join(BUILD, "stealscope-sim")
OUT = ("PREEMPTED", "VIRT_PREEMPTED")  # an idle vCPU in these states lost its CPU before its guest could halt
EITHER = "quota or others"
EITHER_MOST = 0.01  # of the threads' time
MOST_THREADS = 12    # compared per run, the busiest


def read_truth(folder):
    tracks, cpus = {}, {}
    with open(os.path.join(folder, "truth", "intervals.csv"), newline="") as f:
        rows = sorted(csv.DictReader(f), key=lambda r: int(r["start"]))
    for r in rows:
        tracks.setdefault(r["path"], Track()).add(int(r["start"]), int(r["end"]), r["value"])
    with open(os.path.join(folder, "truth", "pcpus.csv"), newline="") as f:
        rows = sorted(csv.DictReader(f), key=lambda r: int(r["start"]))
    for r in rows:
        cpus.setdefault(r["pcpu"], Track()).add(int(r["start"]), int(r["end"]), (r["system"], r["tid"], r["mode"]))
    return tracks, cpus


def root_of(machine):
    return "/Host" if machine == "host" else f"/Virtual Machines/{machine}"


def read_csv(folder, name):
    with open(os.path.join(folder, "truth", name), newline="") as f:
        return list(csv.DictReader(f))


class Truth:
    """Truth of one simulated run."""

    def __init__(self, folder):
        self.tracks, self.cpus = read_truth(folder)
        self.vcpus = read_csv(folder, "vcpus.csv")
        self.parent = {r["vm"]: r["parent"] for r in self.vcpus}
        self.boxed = {}  # TID of the host -> its lifetimes in containers: (path of its Status, name of the container)
        for path in self.tracks:
            part = path.split("/")
            if part[1] == "Containers" and part[-1] == "Status":
                self.boxed.setdefault(part[4], []).append((path, part[2]))

    def verdict(self, machine, tid, t):
        """Returns (kind, machine, tid) of the thread at t, and the last ns for which that holds."""
        until = 1 << 62

        def look(path, track=None):
            nonlocal until
            track = track or self.tracks.get(path)
            value, end = track.at(t) if track else (None, 1 << 62)
            until = min(until, end)
            return value

        status = look(f"{root_of(machine)}/Threads/{tid}/Status")
        if status is None:
            return None, until
        if status == "BLOCKED":
            return ("waiting",), until
        return self.on_cpu(look, machine, look(f"{root_of(machine)}/Threads/{tid}/CPU"), str(tid)), until

    def limit(self, machine, tid, t):
        """The same, but with the reason why its vCPU, or an outer one, may not run at t: ("limited", reason)."""
        until = 1 << 62

        def look(path):
            nonlocal until
            value, end = self.tracks[path].at(t) if path in self.tracks else (None, 1 << 62)
            until = min(until, end)
            return value

        here, thread, reason = machine, tid, None
        while here != "host" and not reason:
            root = f"{root_of(here)}/CPUs/CPU{look(f'{root_of(here)}/Threads/{thread}/CPU')}"
            reason, thread, here = look(f"{root}/Out By"), look(f"{root}/Host Thread"), self.parent[here]
        if reason:
            return ("limited", reason), until
        truth, end = self.verdict(machine, tid, t)
        return truth, min(until, end)

    def has_quota(self, machine):
        """Returns true if the machine has a quota, or one that it runs in."""
        while machine != "host":
            if any("quota" in track.value for path, track in self.tracks.items()
                   if path.startswith(root_of(machine) + "/") and path.endswith("/Out By")):
                return True
            machine = self.parent[machine]
        return False

    def on_cpu(self, look, machine, cpu, tid):
        """Returns the user of the CPU that the machine's thread has or waits for."""
        if machine == "host":
            if look(f"/Host/CPUs/CPU{cpu}/Interrupt") is not None:
                return ("irq", "host", "")
            machine_name, on, mode = look(None, self.cpus[cpu]) if cpu in self.cpus else ("", "0", "idle")
            if mode == "idle":
                return ("idle-cpu", "", "")
            kind = "running" if (machine_name, on) == ("host", tid) else "preempting"
            if machine_name == "host":
                machine_name = next((box for path, box in self.boxed.get(on, ()) if look(path) is not None), machine_name)
            return (kind, machine_name, on)
        root = f"{root_of(machine)}/CPUs/CPU{cpu}"
        vcpu = look(f"{root}/Status")
        if vcpu == "HOST_BLOCKED":
            return ("waiting",)
        host = look(f"{root}/Host Thread")
        if vcpu == "IDLE" and look(f"{root_of(self.parent[machine])}/Threads/{host}/Status") not in OUT:
            return ("idle-cpu", "", "")
        below = self.on_cpu(look, self.parent[machine], look(f"{root}/pCPU"), host)
        if vcpu not in ("RUNNING", "VMM") or below[0] == "irq":
            return below
        on = look(f"{root}/Current Thread")
        if vcpu == "VMM":
            return ("hypervisor", machine, on)
        if look(f"{root}/Interrupt") is not None:
            return ("irq", machine, "")
        return ("running" if on == tid else "preempting", *below[1:])


def is_true(found, truth, untraced):
    """Returns true if the answer is the truth.  untraced: VMs without a trace, by the names that the analysis uses."""
    if truth is None:
        return True                      # not alive: the lifetime may begin with the first event
    if found["kind"] != truth[0]:
        return False
    if truth[0] in ("waiting", "idle-cpu"):
        return True                      # test_path_truth checks the waker
    if untraced.get(found["machine"], found["machine"]) != truth[1]:
        return False
    return found["tid"] == truth[2] or truth[0] == "irq" or truth[1] in untraced.values()


def may_be_unknown(found, truth, lossy, begin, parent):
    """Returns true for an answer that may be unknown: around losses; preempted or woken, for a thread that waited when tracing
    began; the thread of a VM that had the CPU, or the inner VM, while its guest's trace has no event of that CPU."""
    if found["kind"] == "unknown":
        return lossy or int(found["start"]) <= begin
    if found["kind"] != "preempting" or truth[0] != "preempting" or found["tid"] != "":
        return False
    inside = truth[1]
    while lossy and inside in parent and inside != found["machine"]:
        inside = parent[inside]
    return inside == found["machine"] and (lossy or truth[2] == "0")


def may_be_either(found, truth, truths, machine):
    """Returns true for the answer "quota or others" if it is one of these, and there is such a quota."""
    return (found["kind"], found["name"]) == ("limited", EITHER) and truth is not None and truths.has_quota(machine) and \
        (truth == ("limited", "quota") or truth[0] == "preempting")


class Losses:
    """Losses of records, and the CPUs of threads and vCPUs during them, according to the history."""

    def __init__(self, folder, history):
        self.history, self.known, self.lost_time = history, {}, {}
        with open(os.path.join(folder, "truth", "losses.csv"), newline="") as f:
            for r in csv.DictReader(f):
                self.lost_time.setdefault((r["machine"], r["cpu"]), Track()).add(int(r["start"]), int(r["end"]), True)

    def track(self, path):
        if path not in self.known:
            self.known[path] = track = Track()
            p = subprocess.run([PROGRAM, "intervals", self.history, path, "--format", "csv"], capture_output=True,
                               text=True, check=False)
            if p.returncode and "no such attribute" not in p.stderr:
                check(False, f"intervals {path}: {p.stderr}")
            for r in csv.DictReader(p.stdout.splitlines()):
                track.add(int(r["start"]), int(r["end"]), r["value"])
        return self.known[path]

    def at(self, machine, tid, t):
        """Returns whether records of the thread's CPU at t, or of the pCPU below it, were lost, and the last ns of that."""
        cpu, until = self.track(f"{root_of(machine)}/Threads/{tid}/CPU").at(t)
        lost, end = self.lost_time.get((machine, cpu), Track()).at(t)
        until = min(until, end)
        if machine != "host" and cpu:
            pcpu, end = self.track(f"{root_of(machine)}/CPUs/CPU{cpu}/pCPU").at(t)
            below, last = self.lost_time.get(("host", pcpu), Track()).at(t)
            lost, until = lost or below, min(until, end, last)
        return lost, until


def check_unknown(name, losses, common):
    """Checks that the current thread of a CPU is unknown while its records were lost."""
    for (machine, cpu), lost_time in losses.lost_time.items():
        current = losses.track(f"{root_of(machine)}/CPUs/CPU{cpu}/Current Thread")
        for start, end in zip(lost_time.start, lost_time.end):
            t, end = max(start, common[0]), min(end, common[1])
            while t <= end:
                value, until = current.at(t)
                if value:
                    check(False, f"{name}: {machine}/CPU{cpu} has {value} at {t}, but records were lost there")
                t = until + 1


def check_blame(name, rows, losses, machine, tid, common):
    """Checks that there is no culprit where records were lost.  Returns the length of that time, ns.

    Another CPU's records may show that a vCPU sleeps, by waking it; this names no culprit."""
    unknown = 0
    for row in rows if losses.lost_time else []:
        t, end = max(int(row["start"]), common[0]), min(int(row["end"]), common[1])
        while t <= end:
            lost, until = losses.at(machine, tid, t)
            until = min(until, end)
            if lost and row["kind"] not in ("unknown", "waiting", "idle-cpu"):
                check(False, f"{name}: {machine}/{tid} at {t}: blames {row['kind']} {row['machine']}/{row['tid']}, "
                             "but records were lost there")
            unknown += (until - t + 1) if lost else 0
            t = until + 1
    return unknown


class Tally:
    def __init__(self):
        self.threads = self.intervals = self.blamed = self.either = self.lost = self.unknown = self.all = 0


def check_thread(name, history, truths, vm, tid, untraced, common, losses, tally):
    rows = table("flow", history, f"{vm}/{tid}", "--intervals")
    for before, after in zip(rows, rows[1:]):
        if int(before["end"]) + 1 != int(after["start"]):
            check(False, f"{name}: the flow of {vm}/{tid} tiles its window at {after['start']}")
    for row in rows:
        t, end = max(int(row["start"]), common[0]), min(int(row["end"]), common[1])
        held = False  # during a limit, and then until an idle CPU reacts to its end
        while t <= end:
            truth, until = truths.limit(vm, tid, t) if row["kind"] == "limited" else truths.verdict(vm, tid, t)
            until = min(until, end)
            either = may_be_either(row, truth, truths, vm)
            held = either or truth == ("limited", row["name"]) or held and truth and truth[0] in ("idle-cpu", "irq")
            if not held and not is_true(row, truth, untraced) and \
                    not may_be_unknown(row, truth, losses.lost_time, common[0], truths.parent):
                check(False, f"{name}: {vm}/{tid} at {t}: found {row['kind']} {row['machine']}/{row['tid']}, is {truth}")
            if row["kind"] == "preempting":
                tally.blamed += until - t + 1
            if either:
                tally.either += until - t + 1
            if row["kind"] == "unknown":
                tally.unknown += until - t + 1
            tally.all += until - t + 1
            t = until + 1
    tally.lost += check_blame(name, rows, losses, vm, tid, common)
    tally.threads += 1
    tally.intervals += len(rows)


def busy_threads(tracks, traced, vcpus):
    """Yields the threads that waited for a CPU, the busiest first, as (machine, tid)."""
    for path, track in sorted(tracks.items(), key=lambda p: (-len(p[1].start), p[0])):
        part = path.split("/")
        if part[-1] != "Status" or part[-3] != "Threads" or part[1] == "Containers":
            continue
        machine = "host" if part[1] == "Host" else part[2]
        waited = "VIRT_PREEMPTED" in track.value or "PREEMPTED" in track.value
        if waited and machine in traced and (machine, part[-2]) not in vcpus:
            yield machine, part[-2]


def check_run(name, *options):
    with scratch() as folder:
        out = os.path.join(folder, "sim")
        subprocess.run([SIM, *options, "--perfect-clocks", "-o", out], check=True, capture_output=True)
        history = os.path.join(folder, "x.history")
        run("index", out, "--sync", "none", "-o", history)
        truths, traces = Truth(out), read_csv(out, "traces.csv")
        traced = {r["machine"] for r in traces}
        common = (max(int(r["first_host_ns"]) for r in traces), min(int(r["last_host_ns"]) for r in traces))
        untraced = {n: r["vm"] for r in truths.vcpus for n in (r["vm"], f"VM {r['host_pid']}") if r["vm"] not in traced}
        losses, tally = Losses(out, history), Tally()
        vcpus = {(r["parent"], r["host_tid"]) for r in truths.vcpus}
        for machine, tid in busy_threads(truths.tracks, traced, vcpus):
            if losses.lost_time and not losses.track(f"{root_of(machine)}/Threads/{tid}/Status").start:
                continue  # all its records were lost
            check_thread(name, history, truths, machine, tid, untraced, common, losses, tally)
            if tally.threads == MOST_THREADS:
                break
        check(tally.threads > 0, f"{name}: {tally.intervals} intervals of {tally.threads} threads are true, {tally.blamed} ns "
                                 f"blamed on others, {tally.either} on a quota or others")
        check(tally.either <= tally.all * EITHER_MOST, f"{name}: which is {100 * tally.either / max(tally.all, 1):.2f} % of all")
        if losses.lost_time and tally.all:
            check_unknown(name, losses, common)
            print(f"     {100 * tally.lost / tally.all:.1f} % of the time was lost, {100 * tally.unknown / tally.all:.1f} % "
                  "is unknown")


def quick():
    yield "fibonacci", "fibonacci", "--duration", "1s"
    yield "critical_task", "critical_task", "--duration", "3s"
    yield "residual_timer", "residual_timer", "--duration", "1s"
    yield "overcommit", "overcommit", "5", "--duration", "200ms"
    yield "nested", "nested", "--duration", "1s"
    # a TID of the host belongs to a container in one lifetime and to none in another
    yield "containers", "random", "--seed", "9", "--duration", "200ms", "--containers"
    yield "lost 7400034", "random", "--seed", "7400034", "--duration", "200ms", "--lost", "0.1", "--packet", "4096"
    for seed in (1, 2, 3, 4):
        yield f"random {seed}", "random", "--seed", str(seed), "--duration", "200ms", "--nested"
        yield f"hotplug {seed}", "random", "--seed", str(seed), "--duration", "200ms", "--hotplug"
        yield (f"lost {seed}", "random", "--seed", str(seed), "--duration", "200ms", "--lost", "0.1",
               "--packet", "4096")


NAMED = (
    ("pulse", "--duration", "700ms"), ("churn", "--duration", "120ms"), ("requests", "--duration", "250ms"),
    ("overcommit", "5", "--duration", "100ms"), ("fibonacci", "--duration", "600ms"),
    ("nested", "--duration", "600ms"), ("critical_task", "--duration", "600ms"), ("residual_timer", "--duration", "500ms"),
    ("random", "--duration", "200ms", "--missing", "Debian"), ("random", "--duration", "200ms", "--containers"),
)


def long(first, last):
    for seed in range(first, last + 1):
        number = ("--seed", str(seed))
        named = NAMED[seed % len(NAMED)]
        yield (f"random {seed}", "random", "--duration", "200ms", *number, *(["--nested"] if seed % 2 else []))
        yield (f"{' '.join(named)} {seed}", *named, *number)
        yield (f"hotplug {seed}", "random", "--duration", "300ms", "--hotplug", *number,
               *(["--nested"] if seed % 2 else []))
        yield (f"lost {seed}", "random", "--duration", "200ms", "--lost", "0.1", "--packet", "4096", *number)
        if seed % 3 == 0:
            yield (f"lost {named[0]} {seed}", *named, "--lost", "0.05", "--packet", "4096", *number)


def main():
    runs = quick()
    if len(sys.argv) == 3:
        runs = long(int(sys.argv[1]), int(sys.argv[2]))
    elif os.environ.get("STEALSCOPE_SLICE"):
        first = seeds(1, 1)[0]
        runs = long(first, first)
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        for done in [pool.submit(check_run, *r) for r in runs]:
            done.result()


if __name__ == "__main__":
    main()
