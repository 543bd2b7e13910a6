#!/usr/bin/env python3
"""Cost is watched: instructions per event of index, summary, steal, flow, path and the first screen must not rise by more than
3 % over those in costs.txt.  valgrind counts the instructions of the program itself, without libraries, so neither other
load nor the processor changes them; the compiler does, so they are compared only with the one named in costs.txt.

A commit that changes a cost changes its number, by COSTS=write tests/test_costs.py, and says why."""
import glob
import os
import re
import shutil
import subprocess

from e2e import BUILD, PROGRAM, SOURCE, check, is_brief, scratch, simulate, skip

COSTS = os.path.join(SOURCE, "tests", "costs.txt")
RISE = 1.03
EVENTS = 20000
GUESTS = (2, 16, 64)
QUESTIONS = {  # of the history of 16 guests
    "summary": ("summary",),
    "threads": ("threads",),
    "steal by thread": ("steal", "--by", "thread"),
    "verdict and explain": ("explain",),
    "gaps": ("gaps", "vm03"),
    "flow of a vCPU": ("flow", "vm03/CPU0"),
    "critical path": ("path", "vm03/105"),
}


def compiler():
    """Returns the compiler and its options, as in the line `compiler` of costs.txt."""
    comment = subprocess.run(["readelf", "-p", ".comment", PROGRAM], capture_output=True, text=True, check=True).stdout
    names = sorted(set(re.findall(r"\]\s+(.*\S)", comment)))
    with open(os.path.join(BUILD, "Makefile"), encoding="utf-8") as f:
        flags = re.search(r"(?m)^CFLAGS = (.*)$", f.read()).group(1)
    return f"{os.uname().machine} {', '.join(names)} {flags}"


def instructions_in(path):
    """Returns the instructions of the program itself in a file of callgrind: costs of calls are those of other functions."""
    total, own, is_call = 0, False, False
    names = {}
    with open(path, encoding="utf-8", errors="surrogateescape") as f:
        for line in f:
            if line.startswith(("ob=", "cob=")):
                number, _, name = line.partition("=")[2].strip().partition(" ")
                names[number] = name or names[number]  # the path is in the first line with the number
                own = os.path.basename(names[number]) == os.path.basename(PROGRAM) if line[0] == "o" else own
            elif line.startswith("calls="):
                is_call = True
            elif line[0] in "0123456789+-*":
                total += int(line.split()[1]) if own and not is_call else 0
                is_call = False
    return total


def instructions(folder, *args):
    out = os.path.join(folder, "callgrind")
    p = subprocess.run(["valgrind", "--tool=callgrind", "--trace-children=yes", f"--callgrind-out-file={out}.%p", PROGRAM,
                        *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
                       env={**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8"})
    check(p.returncode == 0, f"stealscope {args[0]} runs in valgrind")
    counted = 0
    for one in glob.glob(glob.escape(out) + ".*"):
        counted += instructions_in(one)
        os.remove(one)
    return counted


def measure(folder):
    """Yields the name of each cost and its instructions per event."""
    for guests in GUESTS:
        traces, history = os.path.join(folder, f"world{guests}"), os.path.join(folder, f"{guests}.steal")
        simulate(traces, "overcommit", str(guests), "--events", str(EVENTS), "--pcpus", "4", "--no-truth")
        yield f"index of {guests} guests", instructions(folder, "index", traces, "-j", "1", "-o", history) / EVENTS
    history = os.path.join(folder, "16.steal")
    for name, command in QUESTIONS.items():
        yield name, instructions(folder, command[0], history, *command[1:]) / EVENTS
    yield "first screen", instructions(folder, "picture", history, "-o", os.path.join(folder, "screen.txt")) / EVENTS


def write(costs, used):
    with open(COSTS, "w", encoding="utf-8") as f:
        f.write("# Instructions per event, read and written by test_costs.py\n")
        f.write(f"compiler\t{used}\n")
        for name, cost in costs:
            f.write(f"{name}\t{cost:.1f}\n")


def main():
    if not shutil.which("valgrind") or not shutil.which("readelf"):
        skip("no valgrind or readelf")
    with open(COSTS, encoding="utf-8") as f:
        known = dict(line.rstrip("\n").split("\t") for line in f if not line.startswith("#"))
    used = compiler()
    if os.environ.get("COSTS") == "write":
        with scratch() as folder:
            write(list(measure(folder)), used)
        return
    if is_brief() or used != known["compiler"]:
        skip(f"the costs are those of another build: {known['compiler']}, here {used}")
    with scratch() as folder:
        costs = list(measure(folder))
    for name, cost in costs:
        before = float(known[name])
        print(f"     {name}: {cost:.1f} instructions per event, {100 * (cost / before - 1):+.1f} %")
    for name, cost in costs:
        check(cost <= RISE * float(known[name]), f"{name}: at most {RISE} times {known[name]} instructions per event")


main()
