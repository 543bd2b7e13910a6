"""`sync --plot`: what bounds a clock lies at the edges of its corridor or beyond, and what contradicts it is marked."""
import os
import re

from e2e import DATA, check, run, scratch, simulate

COLUMNS = 64


def plot_of(*args):
    """Rows of the first guest's plot, from the clock outwards: {sign: [text]}."""
    rows = {"+": [], "-": []}
    lines = run("sync", "--plot", *args).stdout.splitlines()
    check(all(len(line) <= 80 for line in lines), "the plot fits 80 columns")
    begin = next(i for i, line in enumerate(lines) if line.startswith("clock of "))
    for line in lines[begin + 2:]:
        row = re.match(r" *(?:([+-])[0-9.]+ [mun]?s(?: \.\.)?|clock) \|(.*)\|$", line)
        if not row:
            break
        check(len(row[2]) == COLUMNS, f"a row of the plot has {COLUMNS} cells")
        if row[1] == "+":
            rows["+"].insert(0, row[2])
        elif row[1] == "-":
            rows["-"].append(row[2])
    check(len(rows["+"]) == len(rows["-"]) > 0, "as many rows above the clock as below")
    return rows


def check_corridor(rows, kinds):
    """In every column the corridor ends before the first thing that bounds it."""
    for sign, side in rows.items():
        seen = "".join(side)
        check(all(kind in seen for kind in kinds), f"{sign} has {' and '.join(kinds)}")
        check(not set("ox!") - set(kinds) & set(seen), f"{sign} has nothing else")
        for i in range(COLUMNS):
            outwards = "".join(row[i] for row in side)
            if not re.fullmatch(r"\.*[-ox]?[ ox]*", outwards):
                check(False, f"{sign}, column {i}: '{outwards}' goes from the corridor to its edge and what lies beyond")
    check(True, "the corridor ends where the first pair bounds it")


fibonacci = os.path.join(DATA, "fibonacci")
check_corridor(plot_of(fibonacci), "ox")
check_corridor(plot_of("--sync", "containment", fibonacci), "x")
with scratch() as tmp:
    simulate(os.path.join(tmp, "bogus"), "overcommit", "2", "--sync-bogus", "0.2")
    both = run("sync", "--plot", "--sync", "events", os.path.join(tmp, "bogus")).stdout.split("\nclock of ")
    bad = [int(line.split()[3]) for line in both[0].splitlines()[1:3]]
    marked = [part.split("\n", 2)[2].count("!") for part in both[1:]]
    check(sorted(n > 0 for n in bad) == [False, True], f"one guest of two has pairs that contradict the others: {bad}")
    check([n > 0 for n in marked] == [n > 0 for n in bad] and all(m <= n for m, n in zip(marked, bad)),
          f"the plot marks them: {marked}")
