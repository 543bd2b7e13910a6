#!/usr/bin/env python3
"""However many threads make it, a history is the same, byte for byte: several guests, lost events, jumping clocks, clocks
found without synchronization events, streams cut between threads.  So it is whichever reader decodes a whole trace."""
import os

from e2e import DATA, SHARED, check, is_brief, run, scratch, simulate

SIMULATED = {
    "guests that share CPUs": ("overcommit", "3", "--events", "300k", "--duration", "1h"),
    "lost events, a guest's clock steps": ("overcommit", "2", "--duration", "2s", "--lost", "0.05", "--clock-step", "3ms"),
    "no synchronization events": ("overcommit", "2", "--duration", "4s", "--beacon", "0"),
    "machines that come and go": ("random", "--seed", "7", "--duration", "2s", "--hotplug", "--late", "--nested"),
}


def made_by(folder, traces, workers, reader="auto"):
    history = os.path.join(folder, "history.steal")
    notes = run("index", traces, "-o", history, "-j", str(workers), "--reader", reader).stderr
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
        recording = os.path.join(DATA, "fibonacci")
        same(folder, recording, "a recording")
        one = made_by(folder, recording, 2)
        for reader in ("native", "babeltrace"):
            check(made_by(folder, recording, 2, reader) == one, f"{reader} reads what no named reader does")
        for name in ("big", "lost", "smp"):
            if os.path.isdir(os.path.join(SHARED, name)) and not is_brief():
                same(folder, os.path.join(SHARED, name), f"recording {name}")


main()
