"""Bash, zsh and fish, those of them that are installed, offer what the program has: its commands, the options of each and
their values, and who is in a history."""
import os
import re
import shutil
import sys

from e2e import DATA, check, run, scratch
from shells import SHELLS

DEMO = os.path.join(DATA, "fibonacci")
commands = set(re.findall(r"^  ([a-z]+) ", run("--help").stdout, re.M))
check({"view", "index", "flow", "gaps", "steal", "explain", "summary", "threads"} <= commands, "the help lists the commands")


def offers_commands(complete):
    check(commands <= complete(""), "every command is offered")
    check(complete("flo") == {"flow"}, "a command is completed")
    for command in sorted(commands - {"latency"}):  # it has subcommands
        options = set(re.findall(r" (--[a-z-]+)", run(command, "--help").stdout))
        check(not options or complete(command, "-") == options, f"{command}: its options are offered")
    check("--theme" in complete("-"), "without a command, the viewer's options are offered")
    check(complete("latency", "re") == {"requests", "report"}, "subcommands are offered")
    check("--heat" in complete("latency", "report", "--h"), "and their options")


def offers_values(complete):
    check(complete("flow", "--format", "c") == {"csv"}, "formats are offered")
    check(complete("flow", "--format=c") == {"--format=csv"}, "behind = too")
    check(complete("--theme", "paper") == {"paper", "paper-light"}, "themes are offered")
    check(complete("picture", "--theme", "paper") == {"paper", "paper-light"}, "for pictures, too")
    check(complete("view", "--glyphs", "a") == {"ascii"}, "tiers are offered")
    check(complete("picture", "--glyphs", "bl") == {"blocks"}, "for pictures, too")
    check(complete("record", "--clock", "x") == {"x86-tsc"}, "clocks are offered")
    check(complete("gaps", "--from", "de") == set(), "no file where a moment is to stand")


def offers_subjects(complete, demo):
    for command in ("flow", "gaps", "steal", "explain"):
        check(complete(command, demo, "") == {"host", "Debian"}, f"{command}: machines")
    check(complete("gaps", demo, "Debian/CP") == {"Debian/CPU0"}, "CPUs")
    check({"Debian/150", "Debian/151"} <= complete("flow", "--threshold", "1", demo, "Debian/15"), "threads, behind options too")
    check(complete("explain", demo, "Debian/fib") == {"Debian/fibonacci"}, "threads by name")
    check(complete("explain", demo, "fib") == {"fibonacci"}, "also without their machine")
    check(complete("gaps", demo, "Debian/kworker/u3:") == {"Debian/kworker/u3:0"}, "names with a colon")
    check(complete("intervals", demo, "/Host/CPUs/CPU0/C") == {"/Host/CPUs/CPU0/Current Thread"}, "attributes, with a space")
    check(complete("gaps", "de") == {demo}, "files")
    check(complete("de") == {demo}, "files to view")
    check(complete("flow", DEMO, "") == set(), "nothing is indexed for this")
    check(not os.path.exists(os.path.join(DEMO, "stealscope.steal")), "and nothing is left")


tried = 0
for name, kind in SHELLS.items():
    if not shutil.which(name):
        print(f"{name} is not installed")
        continue
    tried += 1
    with scratch() as folder:
        run("index", DEMO, "-o", os.path.join(folder, "demo.steal"))
        shell = kind(name, folder)
        print(f"-- {name}")
        offers_commands(shell.complete)
        offers_values(shell.complete)
        offers_subjects(shell.complete, "demo.steal")
        shell.close()
if not tried:
    sys.exit(77)
