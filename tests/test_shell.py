"""The shell at 80x24: the help fits, ends with two examples that run, and words from other tools lead to a command."""
import os
import re
import shlex
import shutil

from e2e import DATA, check, commands, joined, on_terminal, run, scratch

# Need root, a relay daemon, a terminal, a guest, requests, an agent.
NOT_RUN = {"record", "sessions", "view", "beacon", "latency", "mcp", "top", "monitor"}


def check_help():
    lines = on_terminal("--help").splitlines()
    check(len(lines) < 24 and max(map(len, lines)) <= 80, f"--help leaves a line for the prompt: {len(lines)} lines")
    check(len(re.findall(r"^[A-Z][\w, ]+ \(also: ", run("--help").stdout, re.M)) == 5, "--help has five groups")
    check(len(commands()) == len(set(commands())) >= 25, "each command is listed once")


def check_examples(directory):
    shutil.copytree(os.path.join(DATA, "fibonacci"), os.path.join(directory, "DIR"))
    run("index", "DIR", "-o", "BEFORE", cwd=directory)
    shutil.copy(os.path.join(directory, "BEFORE"), os.path.join(directory, "AFTER"))
    for command in sorted(commands(), key=lambda name: (name == "fleet", name)):  # fleet reads what export wrote
        lines = run(command, "--help").stdout.splitlines()
        check(lines[-3] == "examples:", f"{command}: the help ends with two examples")
        for line in lines[-2:]:
            words = shlex.split(line.replace("web", "Debian").replace("12:03:04.5", "05:30:50"))
            check(words[:2] == ["stealscope", command], f"{command}: {line}")
            if command not in NOT_RUN:
                p = run(*words[1:], status=None, cwd=directory)
                lacks = "was built without" in p.stderr or (command == "fleet" and not os.path.exists(f"{directory}/runs.db"))
                check(p.returncode == 0 or lacks, f"{line.strip()}: {p.stderr.strip()}")


def check_habits(directory):
    for word, command in (("report", "summary"), ("script", "events"), ("stat", "exits"), ("list", "info")):
        p = run(word, "DIR", status=1, cwd=directory)
        check(f"stealscope {command})" in p.stderr, f"{word}: {p.stderr.strip()}")
    p = run("gaps", "Debian", "DIR", status=None, cwd=directory)
    check(p.returncode and "stealscope gaps DIR Debian" in p.stderr, f"the order of operands: {p.stderr.strip()}")
    p = run("record", "-t", "x5", status=1)
    check("not a duration" in p.stderr, "-t: not a number")
    check("not a duration" not in run("record", "-t", "5", "--check", status=None).stderr, "-t 5: seconds")


def check_changes(directory):
    quoted = run("whatif", "DIR", "pin Debian -> CPU1", "add CPU", "--format", "csv", cwd=directory).stdout
    words = run("whatif", "DIR", *"pin Debian CPU1 add CPU".split(), "--format", "csv", cwd=directory).stdout
    check(quoted.replace(" -> ", " ") == words.replace(" -> ", " "), "changes without quotes")


def check_steal(directory):
    whole = run("steal", "DIR", "--by", "thread", cwd=directory).stdout.splitlines()
    top = run("steal", "DIR", "--by", "thread", "--top", "3", cwd=directory).stdout.splitlines()
    check([line.split() for line in top[:4]] == [line.split() for line in whole[:4]] and "3 of" in top[-1], "steal --top")


def check_advice(directory):
    text = joined(run("summary", "DIR", "--advise", cwd=directory).stdout)
    check(re.search(r"'(pin|free|add|without host/burnP6)", text), f"a change is advised {text[-300:]}")
    check(not re.search(r"without host/(init|kworker|qemu|IO|vhost)", text), "... and no thread that is needed")


with scratch() as place:
    check_help()
    check_examples(place)
    check_habits(place)
    check_changes(place)
    check_steal(place)
    check_advice(place)
