#!/usr/bin/env python3
"""The critical path equals the truth: which thread waits for which in the simulator, and which one takes the CPU.

Two kinds of worlds: in "ipi" a thread is also woken through an interrupt that one vCPU sends another.

With perfect clocks every interval of `path` that names a thread must be true, to the ns.  When a wakeup crosses into a
guest that was not halted, the raiser of its interrupt is the thread that ran nearest in time: there the time of the
interrupt may be off, as the interval states, but not the names.  Intervals without proof may be unknown.

Usage: test_path_truth.py [FROM TO]   (seeds; without them a quick set)"""
import bisect
import csv
import os
import subprocess
import sys

from e2e import BUILD, check, is_sanitized, run, scratch, table
from test_flow_truth import Truth, root_of

SIM = os.path.join(BUILD, "stealscope-sim")
ON_ITS_WAY = 10_000  # ns: the history does not contain shorter delays of wakeups


class Causes:
    """True causes: tiles windows with (start, end, cause), where cause is
        ("thread", machine, tid, culprit)  a thread's own time; culprit: (machine, tid) on its CPU, or None
        ("vcpu", machine, waiter, cpu)  a guest handles an interrupt, on that CPU, for that thread; None: unknown
        ("far", machine, culprit, waiter, cpu)  that CPU was sent an interrupt for a wakeup, or will send it; culprit as above
        ("handler",)                    a timer or device: the path ends
        ("unknown",)                    any answer is right: the simulator has no truth"""

    def __init__(self, folder):
        self.truth = Truth(folder)
        self.wakes, self.raises = {}, {}
        with open(os.path.join(folder, "truth", "causes.csv"), newline="", encoding="utf-8") as f:
            for r in csv.DictReader(f):
                of = self.wakes if r["what"] == "wake" else self.raises
                of.setdefault((r["machine"], int(r["tid"])), []).append((int(r["at"]), r))
        self.vcpu = {int(v["host_tid"]): (v["vm"], v["vcpu"]) for v in self.truth.vcpus}

    def status(self, machine, tid):
        return self.truth.tracks.get(f"{root_of(machine)}/Threads/{tid}/Status")

    def last(self, of, key, t):
        events = of.get(key, [])
        i = bisect.bisect_right(events, t, key=lambda e: e[0]) - 1
        return events[i] if i >= 0 else None

    def own(self, machine, tid, a, b, deep=0):
        while a <= b:
            verdict, until = self.truth.verdict(machine, tid, a)
            end = min(until, b)
            track = self.status(machine, tid)
            state, over = track.at(a) if track else (None, b)
            if state == "BLOCKED":
                end = min(over, b)
                yield from self.slept(machine, tid, a, end, over, deep)
            elif verdict and verdict[0] in ("preempting", "irq"):
                yield a, end, ("thread", machine, tid, tuple(verdict[1:]) if verdict[0] == "preempting" else None)
            elif verdict and verdict[0] != "waiting":
                yield a, end, ("thread", machine, tid, None)
            else:
                yield a, end, ("unknown",)
            a = end + 1

    def slept(self, machine, tid, a, b, over, deep):
        woken = self.last(self.wakes, (machine, tid), over + 1)
        if not woken or deep > 200 or woken[0] < a and woken[0] < over - 10**6:
            yield a, b, ("unknown",)
            return
        at, by = woken
        found = over + 1 if over + 1 - at < ON_ITS_WAY else at
        if a <= found - 1:
            yield from self.led_to(machine, tid, at, by, a, min(found - 1, b), deep + 1)
        if max(found, a) <= b:
            yield from self.on_its_way(machine, tid, over + 1, max(found, a), b)

    def on_its_way(self, machine, tid, woken, a, b):
        """[a, b] until the CPU for which it was woken reacts: a guest's CPU may have to wait for one of the host."""
        number = self.truth.tracks[f"{root_of(machine)}/Threads/{tid}/CPU"].at(woken)[0]
        host = [int(v["host_tid"]) for v in self.truth.vcpus if v["vm"] == machine and str(v["vcpu"]) == str(number)]
        if len(host) != 1:
            yield a, b, ("vcpu", machine, None, None)
            return
        while a <= b:
            busy = self.sender(machine, host[0], a)
            verdict, until = self.truth.verdict("host", busy, a)
            state, over = self.status("host", host[0]).at(a)
            if state == "BLOCKED":
                until = min(until, over)
            waits = self.status("host", busy).at(a)[0] == "PREEMPTED"  # else that vCPU itself has the CPU
            culprit = tuple(verdict[1:]) if waits and verdict[0] == "preempting" else None
            yield a, min(until, b), ("far", machine, culprit, tid, self.vcpu[busy][1])
            a = until + 1

    def sender(self, machine, vcpu, t):
        """Returns the thread that must run for that vCPU to react: while it is halted, the sender of the interrupt."""
        state, over = self.status("host", vcpu).at(t)
        woken = self.last(self.wakes, ("host", vcpu), over + 1) if state == "BLOCKED" else None
        by = woken and woken[0] > t and woken[1]["in"] == "thread" and int(woken[1]["by_tid"])
        return by if by and self.vcpu.get(by, ("",))[0] == machine else vcpu

    def led_to(self, machine, tid, at, by, a, b, deep):
        who = by["by_machine"], int(by["by_tid"])
        if by["in"] == "thread" and who[0] == "host" and who[1] in self.vcpu:
            vm, number = self.vcpu[who[1]]
            current, _ = self.truth.tracks[f"{root_of(vm)}/CPUs/CPU{number}/Current Thread"].at(at)
            yield from self.follow(vm, int(current), a, b, deep) if current not in (None, "0") else [(a, b, ("unknown",))]
        elif by["in"] == "thread" and who[1] > 0:
            yield from self.follow(*who, a, b, deep)
        elif by["in"].startswith("irq/") and who[0] != "host" and self.last(self.raises, (machine, tid), at):
            raised, by = self.last(self.raises, (machine, tid), at)
            if a < raised:
                yield from self.follow("host", int(by["by_tid"]), a, min(raised - 1, b), deep)
            if max(raised, a) <= b:
                only = {v["vcpu"] for v in self.truth.vcpus if v["vm"] == machine}
                yield max(raised, a), b, ("vcpu", machine, tid, only.pop() if len(only) == 1 else None)
        else:
            yield a, b, ("handler",)

    def follow(self, machine, tid, a, b, deep):
        track, t = self.status(machine, tid), b
        while track and t >= a:
            i = bisect.bisect_right(track.start, t) - 1
            if i < 0:
                break
            if track.value[i] == "BLOCKED":
                end = min(track.end[i], b)
                yield from self.slept(machine, tid, a, end, track.end[i], deep)
                a = end + 1
                break
            t = track.start[i] - 1
        yield from self.own(machine, tid, a, b, deep)


def is_culprit(found, truly):
    truly = truly and (truly[0], str(truly[1]))
    if found and truly and found == (truly[0], ""):  # a guest whose trace is over, or that idles: its vCPU
        return True
    return found == truly and not (found and found[1] == "0")


def has_time(causes, interval, machine, waiter, cpu, t):
    """Returns true if the interval of a vCPU names its user at t: its thread, or while it is idle, the waiter."""
    if interval["machine"] != machine or interval["tid"] == "0":
        return False
    if cpu is None or interval["kind"] in ("irq", "wait") and interval["tid"] == "":
        return True
    current, handler = (causes.truth.tracks[f"{root_of(machine)}/CPUs/CPU{cpu}/{row}"].at(t)[0]
                        for row in ("Current Thread", "Interrupt"))
    return interval["tid"] == ("" if current is None else str(waiter) if current == "0" or handler else current)


def agrees(causes, interval, cause, t):
    """Returns true if the interval agrees with the true cause at t."""
    if interval["kind"] == "unknown" or cause[0] == "unknown":
        return True
    if cause[0] == "handler":
        return interval["kind"] in ("wait", "irq") or interval["edge"] in ("inject", "ipi")
    if cause[0] == "vcpu":
        return has_time(causes, interval, *cause[1:], t)
    culprit = (interval["culprit_machine"], interval["culprit_tid"]) if interval["kind"] == "preempting" else None
    if cause[0] == "far":
        return is_culprit(culprit, cause[2]) and has_time(causes, interval, cause[1], *cause[3:], t)
    inside = interval["tid"] == "" and interval["name"].startswith("vCPU")  # a guest whose trace is over
    if interval["machine"] != cause[1] or not inside and interval["tid"] != str(cause[2]):
        return False
    return is_culprit(culprit, cause[3])


def is_time_off(interval, cause):
    """Returns true if only the time of an interrupt is off: it may have been raised at any time while its raiser ran last;
    the raiser has the time before, the guest the time after."""
    if not interval["evidence"].startswith("nearest"):
        return False
    return cause[0] == "vcpu" and interval["machine"] == "host" or cause[:2] == ("thread", "host") and interval["machine"] != "host"


def judge(causes, path, truth):
    """Returns (wrong ns, ns off by the time of an interrupt, unknown ns, the first wrong interval)."""
    wrong = time_off = unknown = k = 0
    first = None
    for interval in path:
        start, end = int(interval["start"]), int(interval["end"])
        unknown += (interval["kind"] == "unknown") * (end - start + 1)
        k = max(0, min(k, len(truth) - 1))
        while k and truth[k][0] > start:
            k -= 1
        while k < len(truth) and truth[k][0] <= end:
            ns = min(end, truth[k][1]) - max(start, truth[k][0]) + 1
            if ns > 0 and not agrees(causes, interval, truth[k][2], max(start, truth[k][0])):
                if is_time_off(interval, truth[k][2]):
                    time_off += ns
                else:
                    wrong += ns
                    first = first or (interval, truth[k])
            k += 1
    return wrong, time_off, unknown, first


def one(scenario, seed, folder):
    world, history = os.path.join(folder, f"{scenario}{seed}"), os.path.join(folder, f"{scenario}{seed}.steal")
    subprocess.run([SIM, scenario, "-o", world, "--seed", str(seed), "--duration", "400ms", "--perfect-clocks"], check=True,
                   capture_output=True)
    run("index", world, "--sync", "none", "-o", history)
    causes = Causes(world)
    total = wrong = time_off = unknown = far = 0
    for r in table("threads", history, "Debian") + table("threads", history, "Ubuntu"):
        if r["name"] not in ("client", "server", "locker", "synio"):
            continue
        path = table("path", history, f"{r['machine']}/{r['tid']}")
        start, end = int(path[0]["start"]), int(path[-1]["end"])
        check(all(int(p["end"]) + 1 == int(q["start"]) for p, q in zip(path, path[1:])), f"{scenario} {seed}: {r['name']} tiles")
        truth = list(causes.own(r["machine"], int(r["tid"]), start, end))
        far += sum(end - start + 1 for start, end, cause in truth if cause[0] == "far")
        w, n, u, first = judge(causes, path, truth)
        if w:
            print(f"{r['machine']}/{r['tid']} {r['name']}: {w} ns wrong, first {first}")
        total, wrong, time_off, unknown = total + end - start + 1, wrong + w, time_off + n, unknown + u
    if scenario == "ipi":
        check(far > 0, f"{scenario} {seed}: for {far / 1e6:.2f} ms wakeups wait for another vCPU")
    check(wrong == 0 and time_off < 0.002 * total and unknown < 0.08 * total, f"{scenario} {seed}: of {total / 1e6:.0f} ms {wrong} ns "
          f"are wrong, the times of interrupts off by {100 * time_off / total:.3f} %, {100 * unknown / total:.1f} % unknown")


def main():
    numbers = [int(a) for a in sys.argv[1:] if a.isdigit()]
    seeds = range(numbers[0], numbers[1] + 1) if len(numbers) == 2 else [5] if is_sanitized() else [1, 5, 155, 6031, 7403165, 9100002]
    with scratch() as folder:
        for seed in seeds:
            for scenario in ("chain", "ipi"):
                one(scenario, seed, folder)


if __name__ == "__main__":
    main()
