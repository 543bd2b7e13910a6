#!/usr/bin/env python3
"""A history is the same, byte for byte, for any number of threads: several guests, lost events, clock
steps, clocks found without synchronization events, streams that are split between threads."""
import os

from e2e import DATA, SHARED, check, is_brief, run, scratch, simulate

SIMULATED = {
    "guests that share CPUs": ("overcommit", "3", "--events", "300k", "--duration", "1h"),
    "lost events, a guest's clock steps": ("overcommit", "2", "--duration", "2s", "--lost", "0.05", "--clock-step", "3ms"),
    "no synchronization events": ("overcommit", "2", "--duration", "4s", "--beacon", "0"),
    "machines that come and go": ("random", "--seed", "7", "--duration", "2s", "--hotplug", "--late", "--nested"),
}


def index(folder, traces, workers):
    """Returns the bytes of the history, and the notes."""
    history = os.path.join(folder, "history.steal")
    notes = run("index", traces, "-o", history, "-j", str(workers)).stderr
    with open(history, "rb") as f:
        return f.read(), notes


def check_workers(folder, traces, description):
    one = index(folder, traces, 1)
    for workers in (2, 5):
        check(index(folder, traces, workers) == one, f"{description}: {workers} workers write the same as one")


def main():
    with scratch() as folder:
        for i, (description, scenario) in enumerate(SIMULATED.items()):
            traces = os.path.join(folder, f"traces{i}")
            simulate(traces, *scenario)
            check_workers(folder, traces, description)
        recording = os.path.join(DATA, "fibonacci")
        check_workers(folder, recording, "a recording")
        for name in ("big", "lost", "smp"):
            if is_brief() or not os.path.isdir(os.path.join(SHARED, name)):
                print(f"     not run: recording {name} ({'another build runs it' if is_brief() else 'absent'})")
            else:
                check_workers(folder, os.path.join(SHARED, name), f"recording {name}")


main()
