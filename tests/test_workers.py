#!/usr/bin/env python3
"""However many threads make it, a history is the same, byte for byte: several guests, lost events, jumping clocks, clocks
found without synchronization events, streams cut between threads."""
import os

from e2e import DATA, SHARED, check, run, scratch, simulate

SIMULATED = {
    "guests that share CPUs": ("overcommit", "3", "--events", "300k", "--duration", "1h"),
    "lost events, a guest's clock steps": ("overcommit", "2", "--duration", "2s", "--lost", "0.05", "--clock-step", "3ms"),
    "no synchronization events": ("overcommit", "2", "--duration", "4s", "--beacon", "0"),
    "machines that come and go": ("random", "--seed", "7", "--duration", "2s", "--hotplug", "--late", "--nested"),
}


def made_by(folder, traces, workers):
    history = os.path.join(folder, "history.steal")
    notes = run("index", traces, "-o", history, "-j", str(workers)).stderr
    with open(history, "rb") as f:
        return f.read(), notes


def same(folder, traces, what):
    one = made_by(folder, traces, 1)
    for workers in (2, 5):
        check(made_by(folder, traces, workers) == one, f"{what}: {workers} workers write what one writes")


def main():
    with scratch() as folder:
        for i, (what, scenario) in enumerate(SIMULATED.items()):
            traces = os.path.join(folder, f"traces{i}")
            simulate(traces, *scenario)
            same(folder, traces, what)
        same(folder, os.path.join(DATA, "fibonacci"), "a recording")
        for name in ("big", "lost", "smp"):
            if os.path.isdir(os.path.join(SHARED, name)):
                same(folder, os.path.join(SHARED, name), f"recording {name}")


main()
