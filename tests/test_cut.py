"""A cut history gives the same answers about its window as the whole one, and hides names on request."""
import csv
import glob
import json
import os
import re

from e2e import DATA, check, is_brief, recordings, require_recordings, run, scratch, simulate, slice_of, table
from history_reader import History

# All commands about a window, with the options that change the answer.
QUESTIONS = [["summary", "--top", "0"], ["threads"], ["steal"], ["steal", "--by", "thread"], ["gaps", "--top", "0"],
             ["gaps", "--top", "0", "--all-culprits"], ["gaps", "--lengths"], ["gaps", "--histogram"], ["gaps", "--periodic"],
             ["gaps", "--locks"], ["waits"], ["exits"], ["exits", "--by", "thread"], ["exits", "--histogram"], ["explain"]]
OF_THREADS = [["flow"], ["flow", "--intervals"], ["path"], ["path", "--intervals"], ["explain"], ["gaps"], ["waits"], ["exits"]]
OF_MACHINES = [["explain"], ["summary"], ["gaps"], ["exits"], ["waits"]]

# Recordings and windows of which an answer was wrong once.
FAILED_ONCE = {"boot": ("13%", "61%"), "tenant_pause_mono": ("70%", "72%"), "tenant_quiet": ("13%", "61%"),
               "tenant_smp": ("70%", "72%")}


def window_of(history):
    info = json.loads(run("info", history, "--format", "json").stdout)
    return ["--from", str(info["begin"]), "--to", str(info["end"])]


def questions(history, window, most):
    """Questions about everything, the machines, and the threads that lost most, alternating between machines."""
    rows = table("summary", history, "--top", "0", *window)
    machines = list(dict.fromkeys(r["target"] for r in rows if not r["tid"]))
    threads = list(dict.fromkeys(f"{r['machine']}/{r['tid']}" for r in rows if r["tid"]))
    by_turns = sorted(range(len(threads)), key=lambda i: sum(t.split("/")[0] == threads[i].split("/")[0] for t in threads[:i]))
    asked = [(q[0], *q[1:]) for q in QUESTIONS]
    asked += [(q[0], t, *q[1:]) for t in [threads[i] for i in by_turns[:most]] for q in OF_THREADS]
    return asked + [(q[0], m, *q[1:]) for m in machines for q in OF_MACHINES]


def answer(history, question, window):
    form = [] if question[0] == "explain" else ["--format", "csv"]
    p = run(question[0], os.path.basename(history), *question[1:], *window, *form, status=None,
            cwd=os.path.dirname(history))
    return p.returncode, p.stdout, p.stderr


def pieces(history, begin, end):
    """All intervals with a value, limited to the window."""
    found = {}
    for line in History(history).dump():
        path, start, last, value = re.match(r"(.*?) (-?\d+) (-?\d+) (.*)", line).groups()
        if value != "null" and int(start) <= end and int(last) >= begin:
            found.setdefault(path, []).append((max(int(start), begin), min(int(last), end), value))
    return found


def intervals(history, window, paths):
    return [[r for r in table("intervals", history, path, *window) if r["value"]] for path in paths]


def check_requests(history, out, window, what):
    """Requests within the window are unchanged; the others are cut off."""
    begin, end = int(window[1]), int(window[3])
    whole, part = (run("latency", "requests", *args, "--format", "csv", status=None) for args in ([history, *window], [out]))
    if part.returncode == 2:
        check("no complete request" in part.stderr, f"{what}: no request within the window")
    whole, part = (list(csv.DictReader(p.stdout.splitlines())) for p in (whole, part))
    inside = [r for r in whole if int(r["start"]) > begin and int(r["end"]) < end]
    check(part == inside, f"{what}: {len(inside)} requests within the window, of {len(whole)}")


def check_window(history, what, start="13%", end="61%", most=6):
    folder = history + ".part"
    os.makedirs(folder, exist_ok=True)
    out = os.path.join(folder, os.path.basename(history))
    run("cut", history, "-o", out, "--from", start, "--to", end)
    window = window_of(out)
    asked = questions(history, window, most)
    for question in asked:
        whole, part = answer(history, question, window), answer(out, question, [])
        if whole != part:
            print(*set(whole[1].splitlines()) ^ set(part[1].splitlines()), part[2], sep="\n")
            check(False, f"{what}: {' '.join(question)} of the window {start} to {end}")
    check(len(asked) > 20, f"{what}: {len(asked)} same answers about the window {start} to {end}, to the ns")
    check_requests(history, out, window, what)
    return out, window


def check_content(history, out, window, what):
    begin, end = int(window[1]), int(window[3])
    inside = pieces(out, begin, end)
    check(pieces(history, begin, end) == inside, f"{what}: every interval, read independently")
    paths = [p for p in inside if not p.startswith("/Requests")]
    paths = paths[::len(paths) // 12 + 1]  # a sample of all kinds
    check(intervals(history, window, paths) == intervals(out, [], paths), f"{what}: and they are complete")
    span = History(out)
    check(span.begin <= begin and span.end >= end and
          {"begin", "end"} <= set(json.loads(run("info", out, "--format", "json").stdout)), f"{what}: its time contains the window")
    again = out + ".again"
    run("cut", out, "-o", again)
    check(table("waits", out) == table("waits", again) and table("exits", out) == table("exits", again),
          f"{what}: the cut of a cut")
    run("export", out, "--to", f"csv:{out}.csv")
    for name in ("vcpu_state", "running", "thread_state", "gap", "exit"):
        (file,) = glob.glob(f"{out}.csv/{name}/*.csv")
        with open(file, newline="", encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
        check(all(begin <= int(r["ts"]) and int(r["ts"]) + int(r["dur"]) - 1 <= end for r in rows),
              f"{what}: the export of {name} is limited to the window")


def names_of(history):
    """All texts from traces or users: all strings except the words of the schema and the kernel."""
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
    tracers = " ".join(row["tracer"] + row["layout"] for row in doc["traces"])  # a thread may have the name of a tracer
    return {n for n in names if len(n) > 3 and n not in tracers and n not in ("host", "timer", "kernel")}


def check_names(folder, history, what):
    out = f"{folder}/hidden.steal"
    run("cut", history, "-o", out, "--names", "hash")
    names = names_of(history)
    with open(out, "rb") as f:
        content = f.read()
    left = [n for n in names if n.encode() in content]
    check(names and not left, f"{what}: none of {len(names)} names is left: {left}")
    check(sorted(len(v) for v in pieces(history, 0, 2 ** 62).values()) ==
          sorted(len(v) for v in pieces(out, 0, 2 ** 62).values()), f"{what}: and no other change")
    numbers = [sorted((r["ns"], r["share"]) for r in table("steal", h)) for h in (history, out)]
    check(numbers[0] == numbers[1], f"{what}: the same culprits and times, under other names")
    notes = [json.loads(run("info", h, "--format", "json").stdout)["notes"] for h in (history, out)]
    check([(n["kind"], n["start"], n["end"]) for n in notes[0]] == [(n["kind"], n["start"], n["end"]) for n in notes[1]],
          f"{what}: its notes stay")


with scratch() as folder:
    history = f"{folder}/fibonacci.steal"
    run("index", os.path.join(DATA, "fibonacci"), "-o", history)
    check_content(history, *check_window(history, "fibonacci"), "fibonacci")
    for part in (("0%", "50%"), ("50%", "100%"), ("50%", "50.3%"))[2 * is_brief():]:
        check_window(history, "fibonacci", *part)
    check_names(folder, history, "fibonacci")
    for scenario in (["nested"], ["random", "--containers", "--seed", "3"], ["requests"],
                     ["planted", "--plant", "vm", "--counters", "--siblings", "2"], ["overcommit", "2", "--lost", "0.2"]):
        simulate(f"{folder}/traces-{scenario[0]}", *scenario, "--duration", "300ms")
        history = f"{folder}/{scenario[0]}.steal"
        run("index", f"{folder}/traces-{scenario[0]}", "-o", history)
        check_content(history, *check_window(history, scenario[0], most=1 if is_brief() else 6), scenario[0])
        if not is_brief():
            check_window(history, scenario[0], "40%", "43%")
        check_names(folder, history, scenario[0])

    # One of two VMs: its rows are unchanged; the other one is only seen from the host.
    out = f"{folder}/one.steal"
    run("cut", history, "-o", out, "--machines", "vm01")
    check(run("summary", history, "vm01", "--format", "csv").stdout == run("summary", out, "vm01", "--format", "csv").stdout,
          "one machine's answers do not change")
    rows = {r["machine"] for r in table("threads", out)}
    check(rows == {"host", "vm01"} and "vm00" in {r["machine"] for r in table("threads", history)},
          f"the threads of the others are omitted: {rows}")
    check({r["machine"] for r in table("summary", out) if not r["tid"]} >= {"vm00", "vm01"}, "their vCPUs are not omitted")
    check("vm00" not in [t["machine"] for t in json.loads(run("info", out, "--format", "json").stdout)["traces"]],
          "their trace is omitted, too")

    # Aliases are the same only with the same key.
    key = f"{folder}/key"
    with open(key, "w", encoding="ascii") as f:
        f.write("between us")
    made = []
    for options in (["--key", key], ["--key", key], [], []):
        run("cut", history, "-o", out, "--names", "hash", *options)
        with open(out, "rb") as f:
            made.append(f.read())
    check(made[0] == made[1] and len({*made}) == 3, "the same with a key, different each time without one")

    # Refusals.
    check("use -o" in run("cut", history, status=1).stderr, "no file")
    check("vm77" in run("cut", history, "-o", out, "--machines", "vm77", status=1).stderr, "no such machine")
    check("did you mean host?" in run("cut", history, "-o", out, "--machines", "hots", status=1).stderr, "but one like it")
    check("--names hash" in run("cut", history, "-o", out, "--key", key, status=1).stderr, "a key without --names")
    check(key in run("cut", history, "-o", key, status=1).stderr, "an existing file of another kind")
    with open(key, encoding="ascii") as f:
        check(f.read() == "between us", "which is unchanged")
    with open(history, "rb") as f:
        whole = f.read()
    check("input history" in run("cut", history, "-o", history, "--from", "50%", status=1).stderr, "itself")
    with open(history, "rb") as f:
        check(f.read() == whole, "which is unchanged")
    run("cut", history, "-o", f"{folder}/outside.steal", "--from", "2001-01-01", "--to", "2001-01-02", status=1)
    check(not os.path.exists(f"{folder}/outside.steal"), "a window outside leaves no file")

    require_recordings()
    chosen = slice_of(recordings(), 8)
    for traces in recordings():
        name = os.path.basename(traces.rstrip("/"))
        real = f"{folder}/{name}.steal"
        if traces in chosen or name in FAILED_ONCE:
            run("index", traces, "-o", real)
        if traces in chosen:
            check_window(real, name, most=3)
            check_window(real, name, "70%", "72%", most=2)
        elif name in FAILED_ONCE:
            check_window(real, name, *FAILED_ONCE[name], most=3)
