"""The bash completion offers what the program has: its commands, and the options of each."""
import os
import re
import shutil
import subprocess
import sys

from e2e import BUILD, SOURCE, check, run

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
check({"view", "index", "flow", "gaps", "steal", "explain"} <= commands, "the help lists the commands")
check(commands <= complete("stealscope", ""), "every command is offered")
check(complete("stealscope", "fl") == {"flow"}, "a command is completed")
for command in sorted(commands):
    options = set(re.findall(r" (--[a-z-]+)", run(command, "--help").stdout))
    if options:
        check(complete("stealscope", command, "-") == options, f"{command}: its options are offered")
check("--theme" in complete("stealscope", "-"), "without a command, the viewer's options are offered")
check(complete("stealscope", "flow", "--format", "c") == {"csv"}, "formats are offered")
