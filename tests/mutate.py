#!/usr/bin/env python3
"""Measures how many small defects the tests notice: tests/mutate.py [--seed S] [-n N] FOLDER... | --day DAY

Draws N mutants per directory of src/ (sync, latency, ...), at most one per file as long as there are files, in a copy of the
built tree.  A mutant changes one operator, constant or statement.  Those that do not compile, or compile to the same code,
are drawn again.  Each mutant runs the tests of its directory and two seeds of test_truth; a failure or a time limit kills
it.  Prints each survivor with its line: either a test is missing, or the change cannot be noticed."""
import argparse
import glob
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

OPERATORS = [  # (pattern, replacements)
    (r" < ", [" <= ", " > "]), (r" <= ", [" < "]), (r" > ", [" >= ", " < "]), (r" >= ", [" > "]),
    (r" == ", [" != "]), (r" != ", [" == "]), (r" && ", [" || "]), (r" \|\| ", [" && "]),
    (r" \+ 1\b", [" + 0", " + 2"]), (r" - 1\b", [" - 0", " - 2"]), (r" \+= ", [" -= ", " = "]), (r" -= ", [" += "]),
    (r"\btrue\b", ["false"]), (r"\bfalse\b", ["true"]), (r" \+ ", [" - "]), (r" - ", [" + "]),
    (r" \? ([^?:]+) : ([^?:;,()]+)", [r" ? \2 : \1"]), (r"\bif \((.*)\)$", [r"if (!(\1))"]),
    (r"^(\t+)[a-z_]\w*(?:(?:->|\.)\w+|\[\w+\])* [-+|&]?= [^{}]*;$", [r"\1;"]),   # an assignment is left out
    (r"^(\t+)[a-z_]\w*\([^{}]*\);$", [r"\1;"]),                                     # a call is left out
]
OTHERS = {  # tests of other directories, and in Python, that ask about a directory; its unit tests are in its part.mk
    "base": ["latency", "mark_live", "escaped_names"], "beacon": ["srbn_read"], "compare": ["diff", "whatif"],
    "cli": ["usage_errors", "mcp", "input_errors", "pages", "completion", "collect", "events", "run", "record_cli",
            "shell", "sync"],
    "export": ["export", "export_http", "export_names", "export_postgres", "export_spans", "schema"],
    "index": ["cache", "session", "recordings", "packed_input", "events", "tsc_host", "collect", "clock_offset"],
    "latency": ["latency_truth", "latency_spans", "latency_traces", "latency_cores"],
    "live": ["live_names", "monitor", "run", "srbn_read", "top_cores"],
    "model": ["xen_random", "cores", "coverage"],
    "query": ["findings", "path", "flow_truth", "conservation", "culprits", "verdict", "tenant_random", "escaped_names",
              "quota_truth"],
    "record": ["record_cli", "record_files", "record_hostile", "record_xen"],
    "report": ["schema", "escaped_names", "groups", "appearance", "exits", "cores", "path", "polling", "fibonacci"],
    "trace": ["live", "perf", "perfetto", "recording", "trace_texts", "tracecmd", "tracecmd_file", "xen"],
    "ui": ["appearance", "top_screen"],
}
WITH_TRUTH = ("trace", "sync", "model", "history", "index", "query")
SEEDS = ("7100001", "7100002")  # of test_truth
TIMEOUT = 240  # s for one test


def code_lines(text):
    """Returns the indices of lines inside functions, without comments and strings that go on."""
    lines, inside, comment = [], False, False
    for i, line in enumerate(text):
        if "/*" in line and "*/" not in line:
            comment = True
        if not comment and inside and line.startswith("\t") and "/*" not in line and "assert(" not in line:
            lines.append(i)
        if "*/" in line:
            comment = False
        inside = (inside or line == "{") and line != "}"
    return lines


def outside_string(line, at):
    return len(re.findall(r'(?<!\\)"', line[:at])) % 2 == 0 and "'" not in line[max(at - 2, 0):at + 2]


def choices(text):
    found = []
    for i in code_lines(text):
        for pattern, replacements in OPERATORS:
            for m in re.finditer(pattern, text[i]):
                if outside_string(text[i], m.start()):
                    found += [(i, text[i][:m.start()] + m.expand(r) + text[i][m.end():]) for r in replacements]
    return found


def folders_of_day(day):
    """Returns the two directories of src/ whose turn it is: all of them within a few days."""
    every = sorted(os.path.basename(os.path.dirname(part)) for part in glob.glob("src/*/part.mk"))
    return [every[(2 * day + i) % len(every)] for i in range(2)]


def folder_tests(folder):
    """Returns the programs that test the directory, and the tests in Python."""
    with open(f"src/{folder}/part.mk", encoding="utf-8") as f:
        words = " ".join(re.findall(r"^check_PROGRAMS \+= (.*)$", f.read().replace("\\\n", " "), re.M)).split()
    others = [f"tests/test_{name}" for name in OTHERS.get(folder, [])]
    scripts = [f"{name}.py" for name in others if not os.path.exists(f"{name}.c")]
    missing = [name for name in scripts if not os.path.exists(name)]
    if missing:
        sys.exit(f"{folder}: no such tests: {missing}")
    return [name for name in words if name.startswith("tests/test_")] + [n for n in others if f"{n}.py" not in scripts], scripts


def make(*targets):
    return subprocess.run(["nice", "make", "-j2", *targets], capture_output=True, text=True)


def runs(command, limit):
    """Returns true if the test passes (or cannot run here)."""
    env = dict(os.environ, srcdir=".", builddir=".", STEALSCOPE_BRIEF="1")
    p = subprocess.Popen(["nice", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env,
                         start_new_session=True)
    try:
        return p.wait(timeout=limit) in (0, 77)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, 9)
        p.wait()
        return False


def timed(folder):
    """Runs the tests of a directory without a mutant. Returns [(seconds, command)], the quickest first."""
    (tests, scripts), truth = folder_tests(folder), SEEDS if folder in WITH_TRUTH else []
    if make("stealscope", "tests/test_truth", *tests).returncode:
        sys.exit(f"{folder}: make fails without a mutant")
    times = []
    for command in [[t] for t in tests] + [["python3", s] for s in scripts] + [["tests/test_truth", s, s] for s in truth]:
        start = time.monotonic()
        if not runs(command, TIMEOUT):
            sys.exit(f"{folder}: {' '.join(command)} fails without a mutant")
        times.append((time.monotonic() - start, command))
    return sorted(times)


def killer(times):
    """Returns the test that fails, or takes ten times as long; None: the mutant survives."""
    for seconds, command in times:
        if not runs(command, min(10 * seconds + 10, TIMEOUT)):
            return " ".join(command)
    return None


def object_code():
    return {f: open(f, "rb").read() for f in glob.glob("src/lib*.a") + glob.glob("src/cli/*.o")}


def try_mutant(rng, file, times):
    """Returns (killing test or None, description), or None if there is no usable mutant in the file."""
    with open(file, encoding="utf-8") as f:
        text = f.read().split("\n")
    found = choices(text)
    rng.shuffle(found)
    before = object_code()
    for i, line in found[:8]:
        changed = text[:i] + [line] + text[i + 1:]
        try:
            with open(file, "w", encoding="utf-8") as f:
                f.write("\n".join(changed))
            if make("stealscope", *{c[0] for _, c in times} - {"python3"}).returncode or object_code() == before:
                continue
            return killer(times), f"{file}:{i + 1}: {text[i].strip()}  ->  {line.strip()}"
        finally:
            with open(file, "w", encoding="utf-8") as f:
                f.write("\n".join(text))
    return None


def measure(rng, folder, number):
    times = timed(folder)
    files = glob.glob(f"src/{folder}/**/*.c", recursive=True)
    files.sort()
    rng.shuffle(files)
    killed = tried = 0
    for i in range(4 * number):
        result = try_mutant(rng, files[i % len(files)], times) if tried < number else None
        if not result:
            continue
        tried += 1
        killed += result[0] is not None
        print(f"{'killed  ' if result[0] else 'SURVIVED'} {result[1]}" + (f"  ({result[0]})" if result[0] else ""), flush=True)
    print(f"{folder}: {killed} of {tried} mutants killed", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("folder", nargs="*", help="directory of src/")
    p.add_argument("--day", type=int, help="the two directories of this day, in place of FOLDER; also the seed")
    p.add_argument("-n", type=int, default=12, help="mutants per directory (12)")
    p.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    options = p.parse_args()
    if options.day is not None:
        options.folder, options.seed = folders_of_day(options.day), options.day
    if not options.folder:
        p.error("name a directory of src/, or --day")
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="stealscope-mutants-") as tmp:
        copy = os.path.join(tmp, "tree")
        shared = os.path.realpath("../shared")
        shutil.copytree(".", copy, symlinks=True, ignore=shutil.ignore_patterns(".git", "autom4te.cache"))
        os.symlink(shared, os.path.join(tmp, "shared"))
        os.chdir(copy)
        for folder in options.folder:
            measure(random.Random(f"{options.seed} {folder}"), folder, options.n)


if __name__ == "__main__":
    main()
