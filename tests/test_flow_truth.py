#!/usr/bin/env python3
"""Blame equals the truth, to the ns.

The simulator writes traces and says who had which pCPU at every ns.  With perfect clocks every piece of the execution
flow of every busy guest thread must be what the simulator says: who ran on the pCPU that the thread's vCPU had or
waited for, the hypervisor, the interrupt handler, nobody.  The pieces must tile the window.

Usage: test_flow_truth.py [FROM TO]   (seeds of the random scenario; without them a quick set)"""
import bisect
import csv
import os
import sys

from e2e import BUILD, check, run, scratch, table

import subprocess

SIM = os.path.join(BUILD, "stealscope-sim")


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


def verdict(tracks, cpus, vm, tid, t):
    """What the truth says of the thread at t: (kind, system, tid), and until when."""
    until = 1 << 62

    def look(track, at=t):
        nonlocal until
        value, end = track.at(at) if track else (None, 1 << 62)
        until = min(until, end)
        return value

    root = f"/Virtual Machines/{vm}"
    status = look(tracks.get(f"{root}/Threads/{tid}/Status"))
    if status is None:
        return None, until
    if status == "BLOCKED":
        return ("waiting",), until
    cpu = look(tracks[f"{root}/Threads/{tid}/CPU"])
    vcpu = look(tracks.get(f"{root}/CPUs/CPU{cpu}/Status"))
    if vcpu == "HOST_BLOCKED":
        return ("waiting",), until
    if vcpu == "IDLE":
        return ("idle-cpu", "", ""), until
    pcpu = look(tracks[f"{root}/CPUs/CPU{cpu}/pCPU"])
    if look(tracks.get(f"/Host/CPUs/CPU{pcpu}/Interrupt")) is not None:
        return ("irq", "host", ""), until
    who = look(cpus.get(pcpu)) if pcpu in cpus else ("", "0", "idle")
    if who is None or who[2] == "idle":
        return ("idle-cpu", "", ""), until
    system, on, mode = who
    if system == vm and vcpu in ("RUNNING", "VMM"):
        if mode == "hypervisor":
            return ("hypervisor", vm, on), until
        return ("running" if on == str(tid) else "preempting", vm, on), until
    return ("preempting", system, on), until


def same(found, truth, untraced):
    if truth is None:
        return True                      # not alive: the life may be known only from the first event on
    if found["kind"] != truth[0]:
        return False
    if truth[0] in ("waiting", "idle-cpu"):
        return True                      # the waker is the model's business
    if found["system"] != truth[1]:
        return False
    return found["tid"] == truth[2] or truth[0] == "irq" or truth[1] in untraced


def check_thread(name, history, tracks, cpus, vm, tid, untraced, common):
    rows = table("flow", history, f"{vm}/{tid}", "--intervals")
    blamed = 0
    for before, after in zip(rows, rows[1:]):
        if int(before["end"]) + 1 != int(after["start"]):
            check(False, f"{name}: the flow of {vm}/{tid} tiles its window at {after['start']}")
    for row in rows:
        t, end = max(int(row["start"]), common[0]), min(int(row["end"]), common[1])
        while t <= end:
            truth, until = verdict(tracks, cpus, vm, tid, t)
            if not same(row, truth, untraced):
                check(False, f"{name}: {vm}/{tid} at {t}: found {row['kind']} {row['system']}/{row['tid']}, is {truth}")
            until = min(until, end)
            if row["kind"] == "preempting":
                blamed += until - t + 1
            t = until + 1
    return len(rows), blamed


def check_run(name, *options):
    with scratch() as folder:
        out = os.path.join(folder, "sim")
        subprocess.run([SIM, *options, "--perfect-clocks", "-o", out], check=True, capture_output=True)
        history = os.path.join(folder, "x.history")
        run("index", out, "--sync", "none", "-o", history)
        tracks, cpus = read_truth(out)
        with open(os.path.join(out, "truth", "traces.csv"), newline="") as f:
            traces = list(csv.DictReader(f))
        traced = {r["machine"] for r in traces}
        common = (max(int(r["first_host_ns"]) for r in traces), min(int(r["last_host_ns"]) for r in traces))
        vms = {p.split("/")[2] for p in tracks if p.startswith("/Virtual Machines/")}
        threads = pieces = blamed = 0
        for path, track in sorted(tracks.items(), key=lambda p: -len(p[1].start)):
            part = path.split("/")
            if part[1] != "Virtual Machines" or part[2] not in traced or part[-1] != "Status" or part[3] != "Threads":
                continue
            if "VIRT_PREEMPTED" not in track.value and "PREEMPTED" not in track.value:
                continue
            n, ns = check_thread(name, history, tracks, cpus, part[2], part[4], vms - traced, common)
            threads, pieces, blamed = threads + 1, pieces + n, blamed + ns
            if threads >= 12:
                break
        check(threads > 0, f"{name}: {pieces} pieces of {threads} threads are the truth, {blamed} ns blamed on others")


def main():
    if len(sys.argv) == 3:
        for seed in range(int(sys.argv[1]), int(sys.argv[2]) + 1):
            check_run(f"random {seed}", "random", "--seed", str(seed), "--duration", "300ms")
        return
    check_run("fibonacci", "fibonacci", "--duration", "1s")
    check_run("critical_task", "critical_task", "--duration", "3s")
    check_run("residual_timer", "residual_timer", "--duration", "1s")
    check_run("overcommit", "overcommit", "5", "--duration", "200ms")
    for seed in (1, 2, 3, 4):
        check_run(f"random {seed}", "random", "--seed", str(seed), "--duration", "200ms")


if __name__ == "__main__":
    main()
