"""The installed shells among bash, zsh and fish complete commands, their options and values, and the targets in a history."""
import os
import re
import shutil

import e2e
from e2e import DATA, check, run, scratch, skip
from shells import SHELLS

DEMO = os.path.join(DATA, "fibonacci")
commands = set(e2e.commands())
check({"view", "index", "flow", "gaps", "steal", "explain", "summary", "threads"} <= commands, "the help lists the commands")


def check_commands(complete):
    check(commands <= complete(""), "all commands")
    check(complete("flo") == {"flow"}, "the beginning of a command")
    for command in sorted(commands - {"latency"}):  # it has subcommands
        options = set(re.findall(r" (--[a-z-]+)", run(command, "--help").stdout))
        check(not options or complete(command, "-") == options, f"{command}: options")
    check("--theme" in complete("-"), "without a command, the viewer's options")
    check(complete("latency", "re") == {"requests", "report"}, "subcommands")
    check("--heat" in complete("latency", "report", "--h"), "and their options")


def check_values(complete):
    check(complete("flow", "--format", "c") == {"csv"}, "formats")
    check(complete("flow", "--format=c") == {"--format=csv"}, "after = too")
    check(complete("--theme", "paper") == {"paper", "paper-light"}, "themes")
    check(complete("picture", "--theme", "paper") == {"paper", "paper-light"}, "themes of pictures")
    check(complete("view", "--glyphs", "a") == {"ascii"}, "glyph sets")
    check(complete("picture", "--glyphs", "bl") == {"blocks"}, "glyph sets of pictures")
    check(complete("record", "--clock", "x") == {"x86-tsc"}, "clocks")
    check(complete("gaps", "--from", "de") == set(), "no file for a time")
    check(complete("export", "demo", "--to", "sq") == {"sqlite:"}, "schemes of targets")


def check_targets(complete, demo):
    for command in ("flow", "gaps", "steal", "explain"):
        check(complete(command, demo, "") == {"host", "Debian"}, f"{command}: machines")
    check(complete("gaps", demo, "Debian/CP") == {"Debian/CPU0"}, "CPUs")
    check(complete("whatif", demo, "wi") == {"without"}, "changes")
    check(complete("whatif", demo, "pin", "De") == {"Debian"} and complete("whatif", demo, "add", "C") == {"CPU"}, "and their words")
    check({"Debian/150", "Debian/151"} <= complete("flow", "--threshold", "1", demo, "Debian/15"), "threads, after options too")
    check(complete("explain", demo, "Debian/fib") == {"Debian/fibonacci"}, "threads by name")
    check(complete("explain", demo, "fib") == {"fibonacci"}, "and without the machine")
    check({"process:fibonacci"} == complete("explain", demo, "process:fib"), "processes")
    check(complete("gaps", demo, "Debian/kworker/u3:") == {"Debian/kworker/u3:0"}, "names with a colon")
    check(complete("intervals", demo, "/Host/CPUs/CPU0/C") == {"/Host/CPUs/CPU0/Current Thread"}, "attributes, with a space")
    check(complete("gaps", "de") == {demo}, "files")
    check(complete("de") == {demo}, "files to view")
    check(complete("flow", DEMO, "") == set(), "traces are not indexed for a completion")
    check(not os.path.exists(os.path.join(DEMO, "stealscope.steal")), "and no file is left")


missing = [name for name in SHELLS if not shutil.which(name)]
for name in sorted(SHELLS.keys() - set(missing)):
    kind = SHELLS[name]
    with scratch() as folder:
        run("index", DEMO, "-o", os.path.join(folder, "demo.steal"))
        shell = kind(name, folder)
        print(f"-- {name}")
        check_commands(shell.complete)
        check_values(shell.complete)
        check_targets(shell.complete, "demo.steal")
        shell.close()
for name in missing:
    print(f"     not run: {name} is not installed")
if len(missing) == len(SHELLS):
    skip("none of the shells is installed")
