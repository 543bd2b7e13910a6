#!/usr/bin/env python3
"""The critical path equals the truth: who waits for whom in the simulator's world, and who takes whose CPU.

Worlds of two kinds: in those of "ipi" a thread is also woken through an interrupt that one vCPU sends another.

With perfect clocks every piece that `path` names somebody in must be what the simulator did, to the ns.  Where a wakeup
crosses into a guest that was not halted, which thread raised its interrupt is taken from what ran nearest: there the
moment of the interrupt may be off by what the piece says, the names may not.  What nobody can prove may be unknown.

Usage: test_path_truth.py [FROM TO]   (seeds; without them a quick set)"""
import bisect
import csv
import os
import subprocess
import sys

from e2e import BUILD, check, is_sanitized, run, scratch, table
from test_flow_truth import Truth, root_of

SIM = os.path.join(BUILD, "stealscope-sim")
ON_ITS_WAY = 10_000  # ns: a history does not keep that a wakeup took less


class Causes:
    """Who truly led to what: tiles windows with (start, end, what), what being
        ("who", machine, tid, thief)   a thread's own time; thief: (system, tid) of who had its CPU, or None
        ("vcpu", machine, waiter, cpu) a guest on its way through an interrupt, on that CPU, for that thread; None: not told
        ("far", machine, thief, waiter, cpu)  that CPU was sent an interrupt for a wakeup, or will send it; thief as above
        ("handler",)                   a timer or device: the path ends
        ("unknown",)                   whatever is said is right: the simulator does not tell"""

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
                yield a, end, ("who", machine, tid, tuple(verdict[1:]) if verdict[0] == "preempting" else None)
            elif verdict and verdict[0] != "waiting":
                yield a, end, ("who", machine, tid, None)
            else:
                yield a, end, ("unknown",)
            a = end + 1

    def slept(self, machine, tid, a, b, over, deep):
        woken = self.last(self.wakes, (machine, tid), over + 1)
        if not woken or deep > 200 or woken[0] < a and woken[0] < over - 10**6:
            yield a, b, ("unknown",)
            return
        at, by = woken
        said = over + 1 if over + 1 - at < ON_ITS_WAY else at
        if a <= said - 1:
            yield from self.led_to(machine, tid, at, by, a, min(said - 1, b), deep + 1)
        if max(said, a) <= b:
            yield from self.on_its_way(machine, tid, over + 1, max(said, a), b)

    def on_its_way(self, machine, tid, woken, a, b):
        """[a, b] until the CPU for which it was woken takes notice: that of a guest may have to wait for one of the host."""
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
            waits = self.status("host", busy).at(a)[0] == "PREEMPTED"  # else it is that vCPU itself that has the CPU
            thief = tuple(verdict[1:]) if waits and verdict[0] == "preempting" else None
            yield a, min(until, b), ("far", machine, thief, tid, self.vcpu[busy][1])
            a = until + 1

    def sender(self, machine, vcpu, t):
        """Who has to go on for that vCPU to take notice: as long as it is halted, the one that will send it the interrupt."""
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


def is_thief(said, truly):
    truly = truly and (truly[0], str(truly[1]))
    if said and truly and said == (truly[0], ""):  # a guest that is no longer traced, or idle: its vCPU
        return True
    return said == truly and not (said and said[1] == "0")


def has_time(causes, piece, machine, waiter, cpu, t):
    """Is the piece, of a vCPU that is on its way, at t about whom that has: its thread, or while it is idle, who waits?"""
    if piece["system"] != machine or piece["tid"] == "0":
        return False
    if cpu is None or piece["kind"] in ("irq", "wait") and piece["tid"] == "":
        return True
    current, handler = (causes.truth.tracks[f"{root_of(machine)}/CPUs/CPU{cpu}/{row}"].at(t)[0]
                        for row in ("Current Thread", "Interrupt"))
    return piece["tid"] == ("" if current is None else str(waiter) if current == "0" or handler else current)


def agrees(causes, piece, what, t):
    """Is what the program says of a piece at t what truly was?"""
    if piece["kind"] == "unknown" or what[0] == "unknown":
        return True
    if what[0] == "handler":
        return piece["kind"] in ("wait", "irq") or piece["edge"] in ("inject", "ipi")
    if what[0] == "vcpu":
        return has_time(causes, piece, *what[1:], t)
    thief = (piece["thief_system"], piece["thief_tid"]) if piece["kind"] == "preempting" else None
    if what[0] == "far":
        return is_thief(thief, what[2]) and has_time(causes, piece, what[1], *what[3:], t)
    inside = piece["tid"] == "" and piece["name"].startswith("vCPU")  # a guest that is no longer traced
    if piece["system"] != what[1] or not inside and piece["tid"] != str(what[2]):
        return False
    return is_thief(thief, what[3])


def is_near(piece, what):
    """The interrupt may have been raised at any moment of the last time that its raiser ran: until then that one has the
    time, and then the guest, which is on its way."""
    if not piece["evidence"].startswith("nearest"):
        return False
    return what[0] == "vcpu" and piece["system"] == "host" or what[:2] == ("who", "host") and piece["system"] != "host"


def judge(causes, path, truth):
    """(ns that are wrong, of them where the moment of an interrupt is only near, ns unknown, the first wrong one)"""
    wrong = near = unknown = k = 0
    first = None
    for piece in path:
        start, end = int(piece["start"]), int(piece["end"])
        unknown += (piece["kind"] == "unknown") * (end - start + 1)
        k = max(0, min(k, len(truth) - 1))
        while k and truth[k][0] > start:
            k -= 1
        while k < len(truth) and truth[k][0] <= end:
            ns = min(end, truth[k][1]) - max(start, truth[k][0]) + 1
            if ns > 0 and not agrees(causes, piece, truth[k][2], max(start, truth[k][0])):
                if is_near(piece, truth[k][2]):
                    near += ns
                else:
                    wrong += ns
                    first = first or (piece, truth[k])
            k += 1
    return wrong, near, unknown, first


def one(scenario, seed, folder):
    world, history = os.path.join(folder, f"{scenario}{seed}"), os.path.join(folder, f"{scenario}{seed}.steal")
    subprocess.run([SIM, scenario, "-o", world, "--seed", str(seed), "--duration", "400ms", "--perfect-clocks"], check=True,
                   capture_output=True)
    run("index", world, "--sync", "none", "-o", history)
    causes = Causes(world)
    total = wrong = near = unknown = far = 0
    for r in table("threads", history, "Debian") + table("threads", history, "Ubuntu"):
        if r["name"] not in ("client", "server", "locker", "synio"):
            continue
        path = table("path", history, f"{r['machine']}/{r['tid']}")
        start, end = int(path[0]["start"]), int(path[-1]["end"])
        check(all(int(p["end"]) + 1 == int(q["start"]) for p, q in zip(path, path[1:])), f"{scenario} {seed}: {r['name']} tiles")
        truth = list(causes.own(r["machine"], int(r["tid"]), start, end))
        far += sum(end - start + 1 for start, end, what in truth if what[0] == "far")
        w, n, u, first = judge(causes, path, truth)
        if w:
            print(f"{r['machine']}/{r['tid']} {r['name']}: {w} ns wrong, first {first}")
        total, wrong, near, unknown = total + end - start + 1, wrong + w, near + n, unknown + u
    if scenario == "ipi":
        check(far > 0, f"{scenario} {seed}: for {far / 1e6:.2f} ms wakeups are on their way to another vCPU")
    check(wrong == 0 and near < 0.002 * total and unknown < 0.08 * total, f"{scenario} {seed}: of {total / 1e6:.0f} ms {wrong} ns "
          f"are wrong, the moments of interrupts off by {100 * near / total:.3f} %, {100 * unknown / total:.1f} % unknown")


def main():
    numbers = [int(a) for a in sys.argv[1:] if a.isdigit()]
    seeds = range(numbers[0], numbers[1] + 1) if len(numbers) == 2 else [5] if is_sanitized() else [1, 5, 155, 6031, 7403165, 9100002]
    with scratch() as folder:
        for seed in seeds:
            for scenario in ("chain", "ipi"):
                one(scenario, seed, folder)


if __name__ == "__main__":
    main()
