"""A recording of four days: exact sums, dates in reports and on the screen, and times of days after the first."""
import os
import re

from e2e import check, run, scratch, table
from xentrace import BLOCKED, IDLE, RUNNABLE, Writer

MHZ, HOURS, SECOND = 2000, 96, 10**9
INFO = f"host : test\ncpu_mhz                : {MHZ}.000\nxen_version            : 4.17.7\nxen_scheduler          : credit2\n"
LIST = ("Name                                        ID   Mem VCPUs\tState\tTime(s)\n"
        "web                                          1   256     1     -b----      81.5\n"
        "db                                           2   256     1     ------      35.2\n")
WEB, DB = (1, 0), (2, 0)
WAIT = 1000    # s that db has the CPU in each hour, while web is runnable


def ticks(seconds):
    return seconds * MHZ * 10**6


def write(folder):
    """In each hour, web runs from second 1 to 1500 and from 2500 to 3500, and waits between."""
    w = Writer(1)
    for hour in range(HOURS):
        t = 3600 * hour
        w.switch(ticks(t + 1), 0, (IDLE, 0), RUNNABLE, WEB)
        w.state(ticks(t + 1400), 0, DB, BLOCKED, RUNNABLE)
        w.switch(ticks(t + 1500), 0, WEB, RUNNABLE, DB)
        w.switch(ticks(t + 1500 + WAIT), 0, DB, BLOCKED, WEB)
        w.switch(ticks(t + 3500), 0, WEB, BLOCKED, (IDLE, 0))
    os.makedirs(folder)
    for name, content in (("xentrace.bin", w.file()), ("xl-info.txt", INFO.encode()), ("xl-list.txt", LIST.encode())):
        with open(os.path.join(folder, name), "wb") as f:
            f.write(content)


with scratch() as tmp:
    history = os.path.join(tmp, "days.steal")
    write(os.path.join(tmp, "days"))
    run("index", os.path.join(tmp, "days"), "-o", history)
    gaps = [row for row in table("gaps", history, "web", "--top", "0") if int(row["duration_ns"]) > SECOND]
    check(len(gaps) == HOURS and all(abs(int(g["duration_ns"]) - WAIT * SECOND) <= 10 for g in gaps), "one wait in each hour")
    starts = sorted(int(g["start"]) for g in gaps)
    check(all(b - a == 3600 * SECOND for a, b in zip(starts, starts[1:])), "each wait starts an hour after the previous one")
    lost = {row["target"]: int(row["lost_ns"]) for row in table("summary", history)}
    check(lost["web"] == sum(int(g["duration_ns"]) for g in table("gaps", history, "web", "--top", "0")),
          "the lost time of four days is the sum of the waits, to the ns")
    taken = {row["culprit"]: int(row["ns"]) for row in table("steal", history, "web")}
    check(sum(taken.values()) == lost["web"] and abs(taken["db"] - HOURS * WAIT * SECOND) <= HOURS * 10, "db took it")
    text = run("explain", history, "web/CPU0").stdout
    check(re.search(r"1970-01-01 .* \.\. 1970-01-04 ", text.replace("\n", " ")),
          f"explain shows the last day: {text[:120]}")
    text = run("flow", history, "web/CPU0").stdout
    check(re.search(r"^1970-01-01 .* \.\. 1970-01-04 ", text, re.M), f"flow shows the last day: {text[:120]}")
    # The wait in hour 50, on the third day, by date.
    day = run("explain", history, "web/CPU0", "--at", "1970-01-03 02:30:00 +0000").stdout
    check(re.match(r"web/vCPU0 was PREEMPTED for 1000 s ", day) and "db" in day, f"--at on the third day: {day[:120]}")
    window = table("gaps", history, "web", "--top", "0", "--from", "1970-01-02 00:00:00 +0000", "--to", "1970-01-02 23:59:59 +0000")
    check(len([g for g in window if int(g["duration_ns"]) > SECOND]) == 24, "a window of the second day has 24 waits")
    script, screen = os.path.join(tmp, "script"), os.path.join(tmp, "screen.txt")
    for size in ("80x24", "120x40"):
        with open(script, "w", encoding="utf-8") as f:
            f.write(f"O<BS>0\n:screen {screen}!\n")
        run("view", history, "--fresh", "--script", script, "--size", size, "--glyphs", "ascii",
            env={"TZ": "UTC", "LC_ALL": "C.UTF-8", "XDG_STATE_HOME": tmp})
        with open(screen, encoding="utf-8") as f:
            lines = f.read().split("\n")
        check(re.search(r"01-01 .* \.\. .*01-04 ", lines[0]), f"{size}: the header shows both days: {lines[0]}")
        check(any(re.search(r"01-0[234]", line) for line in lines[1:5]), f"{size}: the ruler shows the days")
