"""Prints, for each recording with truth, how good its clocks, states and culprits are: make score.

Recordings are simulated, one per kind of cause, and those of tests/data/recordings and ../shared/traces. Another program, or
another version, is scored by PROGRAM=FILE if it has the commands index, sync, intervals and gaps with the same csv.

clock     largest difference to the true clock at the middle of the trace, and the bound that the program prints, ns
states    share of the time in which the state of a vCPU is the true one
culprits  share of the lost time by culprit: right: this thread had a pCPU (of recordings that are not simulated: it was started
          to take the CPU); nobody: an interrupt, an idle CPU, a limit, or unknown; others: wrong where simulated"""
import csv
import io
import json
import os
import subprocess
import sys

from e2e import BUILD, DATA, recording, recording_names, scratch

PROGRAM = os.environ.get("PROGRAM") or os.path.join(BUILD, "stealscope")
WORLDS = (("pulse", "wakeups"), ("fibonacci", "a VM's neighbour"), ("critical_task", "VM and host"), ("residual_timer", "timers"),
          ("chain", "locks, disk, VMs"), ("ipi", "interrupts"), ("spin", "spinning"), ("nested", "nested VMs"))


def ask(*args):
    """Returns the rows of a csv; None: the program failed."""
    p = subprocess.run([PROGRAM, *args], capture_output=True, text=True, timeout=300)
    return list(csv.DictReader(io.StringIO(p.stdout))) if p.returncode == 0 else None


def truth_of(folder, name):
    with open(os.path.join(folder, "truth", name), newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def overlap(a, b):
    """ns in which two lists of intervals (start, end, value), each in order, overlap with equal values."""
    ns = i = k = 0
    while i < len(a) and k < len(b):
        if a[i][2] == b[k][2]:
            ns += max(0, min(a[i][1], b[k][1]) - max(a[i][0], b[k][0]) + 1)
        if a[i][1] < b[k][1]:
            i += 1
        else:
            k += 1
    return ns


def intervals(rows):
    return sorted((int(r["start"]), int(r["end"]), r["value"]) for r in rows)


def clock_score(folder):
    found, true = ask("sync", folder, "--format", "csv"), {r["machine"]: r for r in truth_of(folder, "clocks.csv")}
    errors, bounds = [], []
    for row in found or []:
        t = true.get(row["guest"])
        if not t or not row["ref_host_ns"]:
            return "none"
        guest = int(t["ref_guest_ns"]) + (int(row["ref_host_ns"]) - int(t["ref_host_ns"])) * (2**60 + int(t["rate_2p60"])) // 2**60
        errors.append(abs(guest - int(row["ref_guest_ns"])))
        bounds.append(int(row["error_mid_ns"] or 0))
    return f"{max(errors)} <= {max(bounds)}" if errors else "none"


def state_score(folder, history):
    true = {}
    for row in truth_of(folder, "intervals.csv"):
        if row["path"].startswith("/Virtual Machines/") and "/CPUs/" in row["path"] and row["path"].endswith("/Status"):
            true.setdefault(row["path"], []).append(row)
    right = total = 0
    for path, rows in true.items():
        found = intervals(ask("intervals", history, path, "--format", "csv") or [])
        right += overlap(found, intervals(rows))
        total += sum(end - start + 1 for start, end, _ in intervals(rows))
    return 100 * right / total if total else None


def culprit_score(folder, history):
    had, vms = {}, sorted({r["vm"] for r in truth_of(folder, "vcpus.csv")})
    for row in truth_of(folder, "pcpus.csv"):
        if row["system"]:
            had.setdefault((row["system"], row["tid"]), []).append((int(row["start"]), int(row["end"]), 0))
    lost = right = wrong = 0
    for vm in vms:
        gaps = {}
        for row in ask("gaps", history, vm, "--top", "0", "--all-culprits", "--format", "csv") or []:
            gap = int(row["start"]), int(row["end"]), 0
            gaps[row["target"], gap] = int(row["duration_ns"])
            if not row["culprit_tid"]:
                continue
            ns, who = int(row["culprit_ns"]), (row["culprit_machine"], row["culprit_tid"])
            true = min(ns, overlap([gap], sorted(had.get(who, []))))
            right += true
            wrong += ns - true
        lost += sum(gaps.values())
    return (100 * right / lost, 100 * (lost - right - wrong) / lost, 100 * wrong / lost) if lost else None


def hog_score(truth, history, machines):
    pids = {str(hog["pid"]) for hog in truth.get("hogs", [])}
    lost = hog = unknown = 0
    for vm in machines:
        for row in ask("gaps", history, vm, "--top", "0", "--all-culprits", "--format", "csv") or []:
            ns = int(row["culprit_ns"] or 0)
            lost += ns
            hog += ns if row["culprit_tid"] in pids else 0
            unknown += ns if not row["culprit_tid"] else 0
    return (100 * hog / lost, 100 * unknown / lost, 100 * (lost - hog - unknown) / lost) if lost and pids else None


def print_row(name, cause, clock, states, culprits):
    shares = " ".join(f"{x:7.2f}%" for x in culprits) if culprits else f"{'-':>8} {'-':>8} {'-':>8}"
    print(f"{name:16} {cause:18} {clock:>16} {f'{states:.3f}%' if states is not None else '-':>9} {shares}", flush=True)


with scratch() as tmp:
    print(f"{'recording':16} {'cause':18} {'clock, ns':>16} {'states':>9} {'right':>8} {'nobody':>8} {'others':>8}")
    history = f"{tmp}/x.steal"
    for name, cause in WORLDS:
        world = f"{tmp}/{name}"
        subprocess.run([os.path.join(BUILD, "stealscope-sim"), name, "--duration", "2s", "-o", world], check=True, capture_output=True)
        if subprocess.run([PROGRAM, "index", world, "-o", history], capture_output=True, check=False).returncode:
            sys.exit(f"score: {PROGRAM} cannot index {name}")
        print_row(name, cause, clock_score(world), state_score(world, history), culprit_score(world, history))
    for name in recording_names():
        folder = recording(name)
        with open(f"{folder}/truth.json", encoding="utf-8") as f:
            truth = json.load(f)
        if "vms" not in truth or subprocess.run([PROGRAM, "index", folder, "-o", history], capture_output=True, check=False).returncode:
            continue
        rows = ask("sync", folder, "--format", "csv") or []
        bound = max((int(r["error_mid_ns"] or 0) for r in rows), default=0)
        print_row(name, "recorded", f"<= {bound}" if bound else "none", None, hog_score(truth, history, truth["vms"]))
