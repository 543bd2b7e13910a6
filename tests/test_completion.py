"""The bash completion offers what the program has: its commands, the options of each and their values, and who is in a
history.  Those of zsh and fish ask the program the same."""
import os
import re
import shutil
import subprocess
import sys

from e2e import BUILD, DATA, SOURCE, check, run, scratch

if not shutil.which("bash"):
    print("bash is not installed")
    sys.exit(77)

SCRIPT = os.path.join(SOURCE, "src", "cli", "completion", "stealscope.bash")


def complete(*words):
    """What bash offers for the last of the words."""
    quoted = " ".join(f"'{w}'" for w in words)
    program = f'source {SCRIPT}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _stealscope; printf "%s\\n" "${{COMPREPLY[@]}}"'
    p = subprocess.run(["bash", "-c", program], capture_output=True, text=True, timeout=60,
                       env={**os.environ, "PATH": BUILD + ":" + os.environ["PATH"]})
    check(p.returncode == 0 and p.stderr == "", f"bash completes {words} {p.stderr}")
    return set(p.stdout.split())


commands = set(re.findall(r"^  ([a-z]+) ", run("--help").stdout, re.M))
check({"view", "index", "flow", "gaps", "steal", "explain", "summary", "threads"} <= commands, "the help lists the commands")
check(commands <= complete("stealscope", ""), "every command is offered")
check(complete("stealscope", "flo") == {"flow"}, "a command is completed")
for command in sorted(commands):
    options = set(re.findall(r" (--[a-z-]+)", run(command, "--help").stdout))
    if options and command != "latency":  # it has subcommands
        check(complete("stealscope", command, "-") == options, f"{command}: its options are offered")
check("--theme" in complete("stealscope", "-"), "without a command, the viewer's options are offered")
check(complete("stealscope", "flow", "--format", "c") == {"csv"}, "formats are offered")
check(complete("stealscope", "--theme", "paper") >= {"paper", "paper-light"}, "themes are offered")
check(complete("stealscope", "view", "--glyphs", "a") == {"ascii"}, "tiers are offered")
check(complete("stealscope", "latency", "re") == {"requests", "report"}, "subcommands are offered")
check("--heat" in complete("stealscope", "latency", "report", "--h"), "and their options")

with scratch() as folder:
    history = os.path.join(folder, "demo.steal")
    run("index", os.path.join(DATA, "fibonacci"), "-o", history)
    for command in ("flow", "gaps", "steal", "explain"):
        check(complete("stealscope", command, history, "") == {"host", "Debian"}, f"{command}: machines")
    check(complete("stealscope", "gaps", history, "Debian/CP") == {"Debian/CPU0"}, "CPUs")
    check({"Debian/15", "Debian/150", "Debian/151"} <= complete("stealscope", "flow", "--threshold", "1", history, "Debian/15"),
          "threads, behind options too")
    check(complete("stealscope", "explain", history, "Debian/fib") == {"Debian/fibonacci"}, "threads by name")
    check(complete("stealscope", "intervals", history, "/Host/CPUs/CPU0/C") == {"/Host/CPUs/CPU0/Current", "Thread"},
          "attributes")  # one word with a space in it
    check(complete("stealscope", "gaps", os.path.join(folder, "de")) == {history}, "files")
    check(complete("stealscope", os.path.join(folder, "de")) == {history}, "files to view")
    check(complete("stealscope", "flow", os.path.join(DATA, "fibonacci"), "") == set(), "nothing is indexed for this")
    check(not os.path.exists(os.path.join(DATA, "fibonacci", "stealscope.steal")), "and nothing is left")

