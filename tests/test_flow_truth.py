#!/usr/bin/env python3
"""Blame equals the truth, to the ns.

The simulator writes traces and says who had which pCPU at every ns.  With perfect clocks every piece of the execution
flow of every busy thread must be what the simulator says: who ran on the pCPU that the thread, or its vCPU, had or
waited for, the hypervisor, the interrupt handler, nobody.  The pieces must tile the window.

Where the tracer lost records nobody can know who had that CPU: there the flow must say unknown (or that the thread
slept, if its own machine's trace tells) and blame nobody.  Meanwhile it may say unknown elsewhere, too, but whatever
else it says must be true.

Usage: test_flow_truth.py [FROM TO]   (seeds; without them a quick set)"""
import bisect
import concurrent.futures
import csv
import os
import subprocess
import sys

from e2e import BUILD, PROGRAM, check, run, scratch, table

SIM = os.path.join(BUILD, "stealscope-sim")
OUT = ("PREEMPTED", "VIRT_PREEMPTED")  # the thread of an idle vCPU that is lost its CPU before its guest could halt
EITHER = "quota or others"
EITHER_MOST = 0.01  # of the threads' time
MOST_THREADS = 12    # compared per run, the busiest


class Track:
    """The value of something over time, from closed intervals in order."""

    def __init__(self):
        self.start, self.end, self.value = [], [], []

    def add(self, start, end, value):
        self.start.append(start)
        self.end.append(end)
        self.value.append(value)

    def at(self, t):
        """(value or None, last ns for which that holds)"""
        i = bisect.bisect_right(self.start, t) - 1
        if i >= 0 and t <= self.end[i]:
            return self.value[i], self.end[i]
        return None, self.start[i + 1] - 1 if i + 1 < len(self.start) else 1 << 62


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
    """What the simulator says of one run."""

    def __init__(self, folder):
        self.tracks, self.cpus = read_truth(folder)
        self.vcpus = read_csv(folder, "vcpus.csv")
        self.parent = {r["vm"]: r["parent"] for r in self.vcpus}
        self.boxed = {}  # TID of the host -> its lives in containers: (path of its Status, name of the container)
        for path in self.tracks:
            part = path.split("/")
            if part[1] == "Containers" and part[-1] == "Status":
                self.boxed.setdefault(part[4], []).append((path, part[2]))

    def verdict(self, machine, tid, t):
        """What it says of the thread at t: (kind, system, tid), and until when."""
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
        """The same, but why its vCPU may not run at t, or one below that, whoever has that one's CPU: ("limited", reason)."""
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
        """Has the machine one, or one that it runs in?"""
        while machine != "host":
            if any("quota" in track.value for path, track in self.tracks.items()
                   if path.startswith(root_of(machine) + "/") and path.endswith("/Out By")):
                return True
            machine = self.parent[machine]
        return False

    def on_cpu(self, look, machine, cpu, tid):
        """Who has the CPU that the machine's thread has or wants."""
        if machine == "host":
            if look(f"/Host/CPUs/CPU{cpu}/Interrupt") is not None:
                return ("irq", "host", "")
            system, on, mode = look(None, self.cpus[cpu]) if cpu in self.cpus else ("", "0", "idle")
            if mode == "idle":
                return ("idle-cpu", "", "")
            kind = "running" if (system, on) == ("host", tid) else "preempting"
            if system == "host":
                system = next((box for path, box in self.boxed.get(on, ()) if look(path) is not None), system)
            return (kind, system, on)
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


def same(found, truth, untraced):
    """`untraced`: the VMs without a trace, by the names that the analysis gives them."""
    if truth is None:
        return True                      # not alive: the life may be known only from the first event on
    if found["kind"] != truth[0]:
        return False
    if truth[0] in ("waiting", "idle-cpu"):
        return True                      # the waker is the model's business
    if untraced.get(found["system"], found["system"]) != truth[1]:
        return False
    return found["tid"] == truth[2] or truth[0] == "irq" or truth[1] in untraced.values()


def ignorant(found, truth, lossy, begin, parent):
    """What is not claimed, and need not be: around losses; of who waited when tracing began, that it was woken and not
    preempted; of a VM that had the CPU, which thread it was, or which VM inside, while its guest's trace does not say a word
    of that CPU."""
    if found["kind"] == "unknown":
        return lossy or int(found["start"]) <= begin
    if found["kind"] != "preempting" or truth[0] != "preempting" or found["tid"] != "":
        return False
    inside = truth[1]
    while lossy and inside in parent and inside != found["system"]:
        inside = parent[inside]
    return inside == found["system"] and (lossy or truth[2] == "0")


def may_be_either(found, truth, truths, machine):
    """Said to be a quota or others, where it is one of these, and there is a quota that could be meant."""
    return (found["kind"], found["name"]) == ("limited", EITHER) and truth is not None and truths.has_quota(machine) and \
        (truth == ("limited", "quota") or truth[0] == "preempting")


class Losses:
    """Where the tracer lost records, and on which CPUs the history says that threads and vCPUs were meanwhile."""

    def __init__(self, folder, history):
        self.history, self.known, self.span = history, {}, {}
        with open(os.path.join(folder, "truth", "losses.csv"), newline="") as f:
            for r in csv.DictReader(f):
                self.span.setdefault((r["machine"], r["cpu"]), Track()).add(int(r["start"]), int(r["end"]), True)

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
        """Is the CPU lost on which the history has the thread at t, or the pCPU below it?  And until when is it so."""
        cpu, until = self.track(f"{root_of(machine)}/Threads/{tid}/CPU").at(t)
        lost, end = self.span.get((machine, cpu), Track()).at(t)
        until = min(until, end)
        if machine != "host" and cpu:
            pcpu, end = self.track(f"{root_of(machine)}/CPUs/CPU{cpu}/pCPU").at(t)
            below, last = self.span.get(("host", pcpu), Track()).at(t)
            lost, until = lost or below, min(until, end, last)
        return lost, until


def check_unknown(name, losses, common):
    """The history does not know whose a CPU was while its records were lost."""
    for (machine, cpu), span in losses.span.items():
        current = losses.track(f"{root_of(machine)}/CPUs/CPU{cpu}/Current Thread")
        for start, end in zip(span.start, span.end):
            t, end = max(start, common[0]), min(end, common[1])
            while t <= end:
                value, until = current.at(t)
                if value:
                    check(False, f"{name}: {machine}/CPU{cpu} has {value} at {t}, but records were lost there")
                t = until + 1


def check_blame(name, rows, losses, machine, tid, common):
    """Nothing is blamed on anyone where records were lost.  Returns how long that was.

    That a vCPU sleeps another CPU's trace may tell, when it wakes it; this names nobody."""
    unknown = 0
    for row in rows if losses.span else []:
        t, end = max(int(row["start"]), common[0]), min(int(row["end"]), common[1])
        while t <= end:
            lost, until = losses.at(machine, tid, t)
            until = min(until, end)
            if lost and row["kind"] not in ("unknown", "waiting", "idle-cpu"):
                check(False, f"{name}: {machine}/{tid} at {t}: blames {row['kind']} {row['system']}/{row['tid']}, "
                             "but records were lost there")
            unknown += (until - t + 1) if lost else 0
            t = until + 1
    return unknown


class Tally:
    def __init__(self):
        self.threads = self.pieces = self.blamed = self.either = self.lost = self.unknown = self.all = 0


def check_thread(name, history, truths, vm, tid, untraced, common, losses, tally):
    rows = table("flow", history, f"{vm}/{tid}", "--intervals")
    for before, after in zip(rows, rows[1:]):
        if int(before["end"]) + 1 != int(after["start"]):
            check(False, f"{name}: the flow of {vm}/{tid} tiles its window at {after['start']}")
    for row in rows:
        t, end = max(int(row["start"]), common[0]), min(int(row["end"]), common[1])
        held = False  # as long as a limit holds, and then until an idle CPU takes notice that it is over
        while t <= end:
            truth, until = truths.limit(vm, tid, t) if row["kind"] == "limited" else truths.verdict(vm, tid, t)
            until = min(until, end)
            either = may_be_either(row, truth, truths, vm)
            held = either or truth == ("limited", row["name"]) or held and truth and truth[0] in ("idle-cpu", "irq")
            if not held and not same(row, truth, untraced) and \
                    not ignorant(row, truth, losses.span, common[0], truths.parent):
                check(False, f"{name}: {vm}/{tid} at {t}: found {row['kind']} {row['system']}/{row['tid']}, is {truth}")
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
    tally.pieces += len(rows)


def subjects(tracks, traced, vcpus):
    """The threads that waited for a CPU, the busiest first, as (machine, tid)."""
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
        for machine, tid in subjects(truths.tracks, traced, vcpus):
            if losses.span and not losses.track(f"{root_of(machine)}/Threads/{tid}/Status").start:
                continue  # not one record of it was kept
            check_thread(name, history, truths, machine, tid, untraced, common, losses, tally)
            if tally.threads == MOST_THREADS:
                break
        check(tally.threads > 0, f"{name}: {tally.pieces} pieces of {tally.threads} threads are the truth, {tally.blamed} ns "
                                 f"blamed on others, {tally.either} on a quota or others")
        check(tally.either <= tally.all * EITHER_MOST, f"{name}: which is {100 * tally.either / max(tally.all, 1):.2f} % of all")
        if losses.span and tally.all:
            check_unknown(name, losses, common)
            print(f"     {100 * tally.lost / tally.all:.1f} % of the time was lost, {100 * tally.unknown / tally.all:.1f} % "
                  "is unknown")


def quick():
    yield "fibonacci", "fibonacci", "--duration", "1s"
    yield "critical_task", "critical_task", "--duration", "3s"
    yield "residual_timer", "residual_timer", "--duration", "1s"
    yield "overcommit", "overcommit", "5", "--duration", "200ms"
    yield "nested", "nested", "--duration", "1s"
    # a TID of the host is one of a container in one life and none in another
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
    runs = long(int(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) == 3 else quick()
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        for done in [pool.submit(check_run, *r) for r in runs]:
            done.result()


if __name__ == "__main__":
    main()
