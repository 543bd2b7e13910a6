#!/usr/bin/env python3
"""The sums of gaps by culprit in a history: the same answers with them as without them, for windows of any length; damaged
sums are computed again, at any byte; a cut has sums of its own."""
import os
import random
import struct

from e2e import check, is_brief, run, scratch, simulate

COMMANDS = (("steal", "--by", "thread"), ("steal", "--by", "machine"), ("steal", "--by", "thread", "--group", "name"),
            ("summary",), ("threads",), ("threads", "--group", "process"))
DERIVED = 6  # number of the section
WORLDS = {
    "guests that share CPUs": ("overcommit", "3", "--events", "700k"),
    "many guests": ("overcommit", "24", "--events", "200k"),
    "machines that come and go": ("random", "--seed", "7", "--duration", "2s", "--hotplug", "--late", "--nested"),
    "containers, lost events": ("random", "--seed", "3", "--duration", "2s", "--containers", "--lost", "0.02"),
    "a guest alone": ("tenant", "--plant", "mix", "--steal-clock", "switch", "--missing", "host", "--duration", "60s"),
}


def section(data):
    return struct.unpack_from("<QQ", data, 72 + 16 * DERIVED)


def damaged(data, path, at):
    """Writes a copy with another value of one byte of the sums."""
    changed = bytearray(data)
    changed[at] ^= 0x41
    with open(path, "wb") as f:
        f.write(changed)


def answers(history, window):
    return [run(*command, history, "--format", "csv", "--top", "0", *window).stdout for command in COMMANDS]


def windows(rng, span, n):
    yield ()
    for _ in range(n):
        a, b = sorted((rng.randrange(span), rng.randrange(span)))
        yield ("--from", f"+{a}ns", "--to", f"+{max(b, a + 1)}ns")


def check_world(folder, name, scenario, rng):
    traces, history, other = (os.path.join(folder, n) for n in ("traces", "history.steal", "damaged.steal"))
    simulate(traces, *scenario)
    run("index", traces, "-o", history)
    with open(history, "rb") as f:
        data = f.read()
    at, size = section(data)
    begin, end = struct.unpack_from("<qq", data, 24)
    check(size > 100, f"{name}: the history has sums ({size} bytes)")
    damaged(data, other, at + size - 1 - 8)  # the directory's offset: no block is used
    for window in windows(rng, end - begin, 2 if is_brief() else 5):
        check(answers(history, window) == answers(other, window), f"{name}: the same answers with and without sums {window}")
    for _ in range(3 if is_brief() else 12):
        damaged(data, other, at + rng.randrange(size))
        if run("info", other, status=None).returncode == 0:  # else the byte shares a block with a table: refused
            check(answers(history, ()) == answers(other, ()), f"{name}: damaged sums are computed again")
    check_cut(folder, name, history, end - begin)


def check_cut(folder, name, history, span):
    cut, window = os.path.join(folder, "cut.steal"), ("--from", f"+{span // 3}ns", "--to", f"+{span // 2}ns")
    run("cut", history, *window, "-o", cut)
    with open(cut, "rb") as f:
        check(section(f.read())[1] > 50, f"{name}: a cut has sums")
    check(answers(cut, ()) == answers(history, window), f"{name}: a cut gives the same answers")


def main():
    rng = random.Random(4)
    for name, scenario in WORLDS.items():
        with scratch() as folder:
            check_world(folder, name, scenario, rng)


main()
