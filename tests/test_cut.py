"""A cut history answers about its window what the whole one does, and hides names where it is asked to."""
import json
import os
import re

from e2e import DATA, check, run, scratch, simulate, table
from history_reader import History


# Of a TID that is used again beyond the window, the whole history knows a longer life, and perhaps another name.
WHOLE_LIFE = {"start", "end", "life_ns", "name", "subject"}


def answers(history, *window):
    """Who suffers, when, and by whom: of everybody."""
    rows = {command: table(command, history, *window) for command in ("summary", "threads", "gaps", "steal")}
    for command in ("summary", "threads"):
        rows[command] = [{k: v for k, v in r.items() if k not in WHOLE_LIFE} for r in rows[command]]
    return rows


def pieces(history, begin, end):
    """All intervals that are not null, cut to the window."""
    found = {}
    for line in History(history).dump():
        path, start, last, value = re.match(r"(.*?) (-?\d+) (-?\d+) (.*)", line).groups()
        if value != "null" and int(start) <= end and int(last) >= begin:
            found.setdefault(path, []).append((max(int(start), begin), min(int(last), end), value))
    return found


def names_of(history):
    """Every text that a trace or a user chose: what stands in strings, but for the schema's and kernel's own words."""
    h = History(history)
    own = set()
    for number in range(h.attributes):
        own.add(h.string(h.attribute(number)["name"]).decode("utf-8", "replace"))
        if h.path(number).endswith(("/Exit", "/ISA")):
            own |= {h.string(v).decode() for _, _, v in h.intervals_of(number) if v is not None}
    names = set()
    for number in range(h.attributes):
        path, a = h.path(number), h.attribute(number)
        if a["type"] == 2 and path.endswith("/Name"):
            names |= {h.string(v).decode("utf-8", "replace") for _, _, v in h.intervals_of(number) if v is not None}
        parts = path.split("/")
        if len(parts) > 2 and parts[1] in ("Virtual Machines", "Containers"):
            names.add(parts[2])
        if len(parts) > 3 and parts[1] == "Requests":
            names |= set(parts[2:4])
    doc = json.loads(h.meta()[b"provenance"])
    for row in doc["traces"]:
        names |= {row["machine"], row["uuid"], row["dir"], os.path.basename(row["dir"])}
    tracers = " ".join(row["tracer"] + row["layout"] for row in doc["traces"])  # a thread may be called like one
    return {n for n in names if len(n) > 3 and n not in tracers and n not in ("host", "timer", "kernel")}


def check_window(history, what):
    out = history + ".cut"
    run("cut", history, "-o", out, "--from", "13%", "--to", "61%")
    info = json.loads(run("info", out, "--format", "json").stdout)
    window = ["--from", str(info["begin"]), "--to", str(info["end"])]
    check(pieces(history, info["begin"], info["end"]) == pieces(out, info["begin"], info["end"]),
          f"{what}: every interval, read independently")
    check(answers(history, *window) == answers(out), f"{what}: the same answers about the window, to the ns")
    whole, part = (table("exits", *args) for args in ([history, *window], [out]))
    check([(r["machine"], r["reason"], r["count"]) for r in whole] and
          sorted((r["machine"], r["vcpu"], r["reason"], r["count"]) for r in whole) ==
          sorted((r["machine"], r["vcpu"], r["reason"], r["count"]) for r in part), f"{what}: the same exits")


def check_names(folder, history, what):
    out = f"{folder}/hidden.steal"
    run("cut", history, "-o", out, "--names", "hash")
    names = names_of(history)
    with open(out, "rb") as f:
        content = f.read()
    left = [n for n in names if n.encode() in content]
    check(names and not left, f"{what}: none of {len(names)} names is left: {left}")
    check(sorted(len(v) for v in pieces(history, 0, 2 ** 62).values()) ==
          sorted(len(v) for v in pieces(out, 0, 2 ** 62).values()), f"{what}: and nothing else has changed")
    numbers = [sorted((r["ns"], r["share"]) for r in table("steal", h)) for h in (history, out)]
    check(numbers[0] == numbers[1], f"{what}: who lost what to whom, under other names")
    notes = [json.loads(run("info", h, "--format", "json").stdout)["notes"] for h in (history, out)]
    check([(n["kind"], n["start"], n["end"]) for n in notes[0]] == [(n["kind"], n["start"], n["end"]) for n in notes[1]],
          f"{what}: its doubts stay")


with scratch() as folder:
    history = f"{folder}/fibonacci.steal"
    run("index", os.path.join(DATA, "fibonacci"), "-o", history)
    check_window(history, "fibonacci")
    check_names(folder, history, "fibonacci")
    for scenario in (["nested"], ["random", "--containers", "--seed", "3"], ["requests"], ["overcommit", "2", "--lost", "0.2"]):
        simulate(f"{folder}/traces-{scenario[0]}", *scenario, "--duration", "300ms")
        history = f"{folder}/{scenario[0]}.steal"
        run("index", f"{folder}/traces-{scenario[0]}", "-o", history)
        check_window(history, scenario[0])
        check_names(folder, history, scenario[0])

    # Of one of two VMs: its rows are the same, the other one is known from outside.
    out = f"{folder}/one.steal"
    run("cut", history, "-o", out, "--machines", "vm01")
    check(run("summary", history, "vm01", "--format", "csv").stdout == run("summary", out, "vm01", "--format", "csv").stdout,
          "one machine's answers do not change")
    rows = {r["machine"] for r in table("threads", out)}
    check(rows == {"host", "vm01"} and "vm00" in {r["machine"] for r in table("threads", history)},
          f"the threads of the others are left out: {rows}")
    check({r["machine"] for r in table("summary", out) if not r["tid"]} >= {"vm00", "vm01"}, "their vCPUs are not")
    check("vm00" not in [t["machine"] for t in json.loads(run("info", out, "--format", "json").stdout)["traces"]],
          "nor is their trace spoken of")

    # Aliases are the same with the same key, and else never.
    key = f"{folder}/key"
    with open(key, "w", encoding="ascii") as f:
        f.write("between us")
    made = []
    for options in (["--key", key], ["--key", key], [], []):
        run("cut", history, "-o", out, "--names", "hash", *options)
        with open(out, "rb") as f:
            made.append(f.read())
    check(made[0] == made[1] and len({*made}) == 3, "a key repeats them, without one they are new each time")

    # Refusals.
    check("give -o" in run("cut", history, status=1).stderr, "no file")
    check("vm77" in run("cut", history, "-o", out, "--machines", "vm77", status=1).stderr, "no such machine")
    check("did you mean host?" in run("cut", history, "-o", out, "--machines", "hots", status=1).stderr, "but one like it")
    check("--names hash" in run("cut", history, "-o", out, "--key", key, status=1).stderr, "a key for nothing")
    check(key in run("cut", history, "-o", key, status=1).stderr, "a file that is something else")
    with open(key, encoding="ascii") as f:
        check(f.read() == "between us", "and it is as it was")
    run("cut", history, "-o", f"{folder}/outside.steal", "--from", "2001-01-01", "--to", "2001-01-02", status=1)
    check(not os.path.exists(f"{folder}/outside.steal"), "a window outside leaves no file")
