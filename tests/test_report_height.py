"""Reports on a terminal fit its height with their heading, unless --top is given; the lane of a summary does not cut names."""
import os
import re

from e2e import DATA, check, on_terminal, run, scratch, simulate

REPORTS = [("summary", r"^target "), ("gaps", r"^ *at "), ("steal", r"^victim "), ("steal --by thread", r"^victim "),
           ("threads", r"^machine "), ("gaps --all-culprits", r"^ *at "), ("waits", r"^machine ")]


def check_height(history, name, rows):
    for command, heading in REPORTS:
        words = command.split()
        lines = on_terminal(words[0], history, *words[1:], rows=rows).rstrip("\n").split("\n")
        check(len(lines) < rows, f"{name}: {command} fits {rows} lines: {len(lines)}")
        check(any(re.search(heading, line) for line in lines), f"{name}: {command} keeps its heading in {rows} lines")
        every = on_terminal(words[0], history, *words[1:], "--top", "0", rows=rows).rstrip("\n").split("\n")
        few = on_terminal(words[0], history, *words[1:], rows=2 * rows).rstrip("\n").split("\n")
        check(len(every) >= len(few) >= len(lines), f"{name}: {command}: a higher terminal has at least as many rows: "
              f"{len(lines)} lines, {len(few)} of {2 * rows}, {len(every)} of all, the last one {few[-1]!r}")
        if len(every) > len(lines):
            check(any("--top" in line for line in lines), f"{name}: {command} states that rows are omitted")
    piped = run("steal", history, "--by", "thread").stdout
    check("--top" not in piped, f"{name}: a pipe gets all rows of steal")


def check_lane(history, name):
    for columns in range(70, 181, 10):
        text = on_terminal("summary", history, columns=columns)
        lane = re.search(r"^target .*top culprit.*over time", text, re.M)
        table = re.search(r"^target(?:.|\n)*?\n(?:\n|\Z)", text, re.M).group()
        check(not lane or "~" not in table.replace("p99 ~", ""), f"{name}: no name is cut beside a lane, {columns} columns")


with scratch() as folder:
    worlds = {"fibonacci": os.path.join(DATA, "fibonacci"), "overcommit": os.path.join(folder, "overcommit")}
    simulate(worlds["overcommit"], "overcommit", "8", "--duration", "1s")
    for world, traces in worlds.items():
        file = os.path.join(folder, world + ".steal")
        run("index", traces, "-o", file)
        for height in (24, 40):
            check_height(file, world, height)
        check_lane(file, world)
