"""One question has one answer, by whichever door: target, culprit, time and moment of the worst victim, or that nothing can be said.

The doors: `explain --format json` (the engine's findings), its text, `explain TARGET`, `summary`, `explain --assert`, the viewer's
verdict, selected row, map and key 1, `ticket`, `mcp`, and the list of recordings. Recordings: tests/data, and simulated worlds.
`diff` has the same culprit and time, the last lines of `record` are the findings, the line of `run` has the numbers of its
table; tests/test_ui_top.c compares the sentence of `top` with the rules."""
import glob
import json
import os
import re
import subprocess
import tarfile
import time

from e2e import BUILD, DATA, PROGRAM, check, joined, run, scratch

WORLDS = (  # name, arguments of stealscope-sim, traces of it that are indexed (None: all)
    ("groups", ("groups", "--seed", "3"), None), ("own", ("victims", "--plant", "own"), None),
    ("beside", ("victims", "--plant", "beside"), None), ("quota", ("planted", "--plant", "quota"), None),
    ("crowd", ("overcommit", "6"), None), ("quiet", ("pulse",), None), ("chain", ("chain",), None),
    ("lossy", ("random", "--seed", "32", "--lost", "0.3"), None), ("pause", ("tenant", "--plant", "pause", "--seed", "4"), None),
    ("alone", ("fibonacci",), "guest-Debian"),
)
SILENT = (  # worlds on which nothing can be said, with the reason's code
    ("dark", ("fibonacci", "--no-sched"), "no-scheduler-events"), ("dark_groups", ("groups", "--no-sched"), "no-scheduler-events"),
    ("lost", ("fibonacci", "--lost", "0.97"), "lost-events"), ("one", ("fibonacci", "--events", "1"), "no-scheduler-events"),
)
SAME = ("kind", "target", "culprit", "reason", "ns", "share", "moment", "healthy")  # members that no door may change


def findings(history, *target):
    return json.loads(run("explain", history, *target, "--format", "json").stdout)["findings"]


def make(folder, name, arguments, part):
    traces, history = os.path.join(folder, name), os.path.join(folder, name + ".steal")
    length = () if {"--events", "--duration"} & set(arguments) else ("--duration", "1s")
    subprocess.run([os.path.join(BUILD, "stealscope-sim"), *arguments, *length, "-o", traces], check=True, capture_output=True)
    run("index", os.path.join(traces, part or ""), "-o", history)
    return history


def unpack(folder):
    """Indexes the recordings of tests/data."""
    yield "fibonacci", os.path.join(DATA, "fibonacci")
    for archive in sorted(glob.glob(f"{DATA}/recordings/*.tar.xz") + [f"{DATA}/{n}.tar.xz" for n in ("xen", "kvmtool", "perf")]):
        with tarfile.open(archive) as tar:
            tar.extractall(folder)
            top = sorted({m.name.split("/", maxsplit=1)[0] for m in tar.getmembers()})[0]
        yield os.path.basename(archive)[:-7], os.path.join(folder, top)


def screen_of(history, *keys):
    """The lines of the viewer's screen after these keys."""
    with open(history + ".keys", "w", encoding="ascii") as f:
        f.write("".join(f"{key}\n" for key in keys) + f":screen {history}.txt!\nkey q\n")
    run("view", history, "--script", history + ".keys", "--size", "140x40", "--glyphs", "ascii")
    with open(history + ".txt", encoding="utf-8") as f:
        return f.read().rstrip("\n").split("\n")


def mcp(folder, tool, **arguments):
    ask = [{"jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
           {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}]
    p = subprocess.run([PROGRAM, "mcp", folder], input="".join(json.dumps(a) + "\n" for a in ask), capture_output=True, text=True,
                       timeout=100, check=False)
    return joined(json.loads(p.stdout.splitlines()[-1])["result"]["content"][0]["text"])


def check_texts(name, history, first):
    """The same finding in json and text of summary and explain, and in mcp."""
    verdict = json.loads(run("summary", history, "--format", "json").stdout)["verdict"]
    check(verdict == first, f"{name}: summary --format json")
    for command in ("summary", "explain"):
        check(joined(run(command, history).stdout).startswith(f"verdict: {first['text']}"), f"{name}: {command}")
    answer = mcp(os.path.dirname(history), "explain", recording=os.path.basename(history))
    check(first["text"] in answer, f"{name}: mcp explain")


def check_target(name, history, first):
    """explain of the verdict's target has the verdict first, with the same numbers, and writes it."""
    if not first["target"]:
        return
    found = findings(history, first["target"])
    check(all(found[0][m] == first[m] for m in SAME if m != "share" or not first["healthy"]), f"{name}: explain {first['target']}: {found[0]}")
    text, clause = joined(run("explain", history, first["target"]).stdout), first["text"].split("; ")[0]
    check(first["healthy"] or first["kind"] == "unknown" or clause in text, f"{name}: explain {first['target']} writes {clause}: {text}")


def check_assertion(name, history, first):
    """An assertion on the verdict's target fails below its share, and holds on a healthy one."""
    target = (first["target"] or "").split(" ", maxsplit=1)[0]
    if first["base"] == "wanted" and target and first["share"] > 0:
        for limit, status in (((0.99 * first["share"], 3),) if not first["healthy"] else ((first["share"] + 0.01, 0),)):
            run("explain", history, "--assert", f"{target}.lost<{100 * limit:.5f}%", status=status)
        check(True, f"{name}: explain --assert {target}")


def check_viewer(name, history, first, keys=("key O",)):
    """The verdict's line, the selected row, and key 1, which goes to the moment."""
    lines = screen_of(history, *keys)
    check(first["text"].split("; ")[0][:100] in joined(" ".join(lines[1:3])), f"{name}: the viewer's verdict: {lines[1]}")
    peak = re.search(r"lost, peak ([\d.]+)%", lines[2] + lines[3])
    check(bool(peak) == (first["kind"] != "nothing"), f"{name}: the map has a peak unless nothing can be said: {lines[2:4]}")
    moment = first["moment"]
    if not moment:
        return
    if first["base"] == "wanted" and first["target"].split("/")[-1].split(" ")[0].isalpha() and first["share"] > 0.1:
        check(float(peak[1]) >= 100 * first["share"] / 2, f"{name}: the map's peak {peak[1]}, the verdict's share {first['share']}")
    status = screen_of(history, "key O", "key 1")[-2]
    word = re.split("[/ ]", moment["culprit"])[-1].rstrip(":")
    group = moment["culprit"].split("/", maxsplit=1)[0]  # threads of another group are one culprit
    check(word in status or ("." in group and f"by {group}" in status), f"{name}: key 1 goes to {word}: {status}")


def check_ticket(name, history, first):
    page = history + ".html"
    run("ticket", history, "-o", page)
    with open(page, encoding="utf-8") as f:
        text = joined(re.sub("<[^>]*>", " ", f.read()))
    check(first["text"][:50] in text, f"{name}: ticket")
    if first["moment"]:
        check(f"The moment: {time.strftime('%H:%M:%S', time.gmtime(first['moment']['start_ns'] // 10**9))}" in text, f"{name}: its moment")


def check_diff(before, name, history):
    """The verdict's target, culprit and time are in the comparison with a healthy recording, and its first row is on the target."""
    answer = json.loads(run("explain", history, "--format", "json").stdout)
    first, window = answer["findings"][0], answer["window"]
    rows = json.loads(run("diff", before, history, "--all", "--format", "json").stdout)["rows"]
    by = first["culprit"]
    names = re.compile(f"limited by {by['reason']}" if by["reason"] else f"{by['machine']}/{by['name'] or '.*'}")
    took = sum(r["after"] for r in rows if r["target"] == first["target"] and r["quantity"] == "lost" and names.fullmatch(r["by"] or ""))
    share = first["ns"] / (window["end"] - window["start"] + 1)
    check(abs(took - share) < 1e-6, f"{name}: diff: {by} took {took} of {first['target']}, by explain {share}")
    check(rows[0]["target"].split("/")[0] == first["target"].split("/")[0], f"{name}: diff begins with {rows[0]['target']}")


def check_run():
    """The line of run has the numbers of its table."""
    p = run("run", "--format", "json", "--", "sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done", status=None)
    if p.returncode:
        print(f"     run: not compared: {p.stderr}")
        return
    row = json.loads(p.stdout)["rows"][0]
    wanted = row["ran_ns"] + row["others_ns"] + row["own_ns"] + row["throttled_ns"] or 1
    line = re.search(r"([\d.]+) % stolen by the host, .*?([\d.]+) % lost to others.*?([\d.]+) % throttled", joined(p.stderr))
    for number, share in zip(line.groups(), (row["host_share"], row["others_ns"] / wanted, row["throttled_ns"] / wanted)):
        check(abs(float(number) - 100 * share) < 0.06, f"run: {line[0]}: {100 * share}")
    check((" (" + (row["longest_culprit"] or "") + ")" in joined(p.stderr)) or not row["longest_culprit"], "run: the longest culprit")


def check_record(folder):
    """record ends with the first findings, each with its command."""
    recorded = os.path.join(folder, "recorded")
    p = run("record", "--host-only", "-t", "0.3s", "-o", recorded, status=None)
    if p.returncode not in (0, 5):
        print(f"     record: not compared: {p.stderr}")
        return
    out = joined(p.stdout)
    for number, f in enumerate(findings(recorded)[:3]):
        check(f"{number + 1 if number else 'verdict'}: {f['text']}." in out, f"record ends with {f['text']}: {out}")
        check(not f["moment"] or " --at " in out, "record: with the command of the moment")


def check_silent(name, history, reason):
    """Nothing can be said, by each door: for all targets, for each one, as an assertion, on the map and in the list."""
    first = findings(history)[0]
    check(first["kind"] == "nothing" and first["reason"] == reason and not first["healthy"], f"{name}: {first}")
    summary = json.loads(run("summary", history, "--format", "json").stdout)
    codes = {n["code"] for n in summary["notes"]}
    check(reason != "no-scheduler-events" or not codes & {"hidden-threads", "self-check-failed"}, f"{name}: {codes}")
    length = summary["window"]["end"] - summary["window"]["start"]
    same = run("diff", history, history, "--assert", "same", status=3 if length > 6_400_000 else 1)  # 64 slices of 0.1 ms
    check(same.returncode == 1 or f"unknown ({reason})" in same.stdout, f"{name}: nobody knows if it is the same")
    for target in [r["target"] for r in summary["rows"]]:
        found = findings(history, target)[0]
        check(not found["healthy"], f"{name}: {target} is not healthy: {found['text']}")
        text = run("explain", history, target).stdout
        check("healthy" not in text and "Confidence: high" not in text, f"{name}: explain {target}")
        p = run("explain", history, "--assert", f"{target.split(' ')[0]}.lost<100%", status=None)
        check(p.returncode == 3 or not found["kind"] == "nothing", f"{name}: nothing is asserted on {target}: {p.stdout}")
    check_texts(name, history, first)
    check_viewer(name, history, first)
    listed = [line for line in mcp(os.path.dirname(history), "recordings").split(os.path.basename(history))[1:]]
    check(listed and not re.match(r".{0,60}\d%", listed[0]), f"{name}: the list of recordings has no share for it")


with scratch() as directory:
    for number, (label, traces_of) in enumerate(unpack(directory)):
        recorded = os.path.join(directory, f"{number}-{label}.steal")
        run("index", traces_of, "-o", recorded)
        one = findings(recorded)[0]
        for door in (check_texts, check_target, check_assertion, check_viewer, check_ticket):
            door(label, recorded, one)
    for label, world, only in WORLDS:
        made = make(directory, label, world, only)
        one = findings(made)[0]
        for door in (check_texts, check_target, check_assertion, check_viewer):
            door(label, made, one)
    healthy = make(directory, "before", ("planted", "--duration", "2s"), None)
    for cause in ("vm", "quota", "pin"):
        check_diff(healthy, cause, make(directory, "after-" + cause, ("planted", "--plant", cause, "--duration", "2s"), None))
    check_run()
    check_record(directory)
    for label, world, code in SILENT:
        check_silent(label, make(directory, label, world, None), code)
