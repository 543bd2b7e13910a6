"""`export` writes the figures of the other commands, to the ns; exporting the same run twice changes nothing."""
import csv
import glob
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
from collections import Counter, defaultdict

from e2e import DATA, PROGRAM, check, is_emulated, run, scratch, simulate, start, table, until

TARGETS = run("export", "--targets").stdout
HAS_SQLITE = re.search("sqlite:.*not in this build", TARGETS) is None


def export(history, target, *args):
    """Exports; returns the rows by table, and the number of the run."""
    answer = json.loads(run("export", history, "--to", target, *args, "--format", "json").stdout)
    return {row["table"]: row["rows"] for row in answer["rows"]}, answer["run_id"]


def folder_tables(folder):
    """Returns the csv tables of a folder with one run."""
    tables = {}
    for path in glob.glob(f"{folder}/*/*.csv"):
        with open(path, newline="", encoding="utf-8") as f:
            tables[os.path.basename(os.path.dirname(path))] = list(csv.DictReader(f))
    return tables


def sums(rows, key, value="ns"):
    out = defaultdict(int)
    for row in rows:
        out[key(row)] += int(row[value])
    return dict(out)


def culprit_machine(row):
    return row["culprit_machine"] or {"idle-cpu": "idle CPU", "unknown": "unknown"}.get(row["kind"], row["kind"])


def intervals(history, path):
    return [(int(r["start"]), int(r["end"]) - int(r["start"]) + 1, r["value"]) for r in table("intervals", history, path) if r["value"]]


def check_states(history, t):
    """Compares tables of intervals with `intervals`."""
    vms = [m["machine"] for m in t["machine"] if m["kind"] == "vm"]
    root = {"host": "/Host", **{vm: f"/Virtual Machines/{vm}" for vm in vms}}
    for m in root:
        for cpu in [c["cpu"] for c in t["cpu"] if c["machine"] == m]:
            node = f"{root[m]}/CPUs/CPU{cpu}"
            rows = [(int(r["ts"]), int(r["dur"]), r["tid"]) for r in t["running"] if (r["machine"], r["cpu"]) == (m, cpu)]
            check(rows == intervals(history, f"{node}/Current Thread") and rows, f"running: {m} CPU{cpu}, {len(rows)} rows")
            if m == "host":
                continue
            rows = [(int(r["ts"]), int(r["dur"]), r["state"]) for r in t["vcpu_state"] if (r["machine"], r["cpu"]) == (m, cpu)]
            check(rows == intervals(history, f"{node}/Status") and rows, f"vcpu_state: {m} CPU{cpu}, {len(rows)} rows")
            rows = [(int(r["ts"]), int(r["dur"]), r["reason"]) for r in t["exit"] if (r["machine"], r["cpu"]) == (m, cpu)]
            check(rows == intervals(history, f"{node}/Exit"), f"exit: {m} CPU{cpu}, {len(rows)} rows")
        by_tid = Counter(r["tid"] for r in t["thread_state"] if r["machine"] == m)
        for tid, n in by_tid.most_common(3):
            mine = [r for r in t["thread_state"] if (r["machine"], r["tid"]) == (m, tid)]
            rows = [(int(r["ts"]), int(r["dur"]), r["state"]) for r in mine]
            check(rows == intervals(history, f"{root[m]}/Threads/{tid}/Status"), f"thread_state: {m}/{tid}, {n} rows")
            cpus = intervals(history, f"{root[m]}/Threads/{tid}/CPU")
            at = [next((v for s, d, v in cpus if s <= int(r["ts"]) < s + d), "") for r in mine[:50]]
            check(at == [r["cpu"] for r in mine[:50]], "and its CPU")


def check_steal(history, t):
    """Compares sums over the seconds with `steal`, per machine and per thread."""
    machine = sums([r for r in t["steal"] if r["of_machine"] == "1"], lambda r: (r["victim_machine"], culprit_machine(r)))
    reported = {(r["victim"], r["culprit"]): int(r["ns"]) for r in table("steal", history)}
    check(machine == reported and reported, f"steal by machine: {sum(reported.values())} ns in {len(reported)} pairs")
    thread = sums([r for r in t["steal"] if r["victim_tid"]], lambda r: f"{r['victim_machine']}/{r['victim_tid']} {r['victim_name']}".strip())
    reported = sums(table("steal", history, "--by", "thread"), lambda r: r["victim"])
    check({k.split()[0]: v for k, v in thread.items()} == {k.split()[0]: v for k, v in reported.items()} and reported,
          f"steal by thread: {len(reported)} victims")
    flow = sums(t["flow"], lambda r: (r["machine"], r["cpu"], r["tid"]), "dur")
    gaps = sums(t["gap"], lambda r: (r["machine"], r["cpu"], r["tid"]), "dur")
    steal = sums(t["steal"], lambda r: (r["victim_machine"], r["victim_cpu"], r["victim_tid"]))
    check(flow == gaps == steal != {}, "gap, flow and steal have the same sums")
    culprit = lambda r: (r["victim_machine"], r["kind"], r["culprit_machine"], r["culprit_name"])
    tids = defaultdict(set)
    for r in t["steal"]:
        if r["of_machine"] == "1":
            tids[culprit(r)].add(r["culprit_tid"])
    check(sums([r for r in t["steal"] if r["of_machine"] == "1"], culprit) == {culprit(r): int(r["ns"]) for r in t["steal_total"]},
          f"steal_total: the sums of steal over the run, {len(t['steal_total'])} rows")
    check({culprit(r): r["culprit_tid"] for r in t["steal_total"]} == {k: v.pop() if len(v) == 1 else "" for k, v in tids.items()}
          and len(t["steal_total"]) == len(tids), "per name, with the TID if only one thread has the name")
    check(all(int(r["bucket_ts"]) % 10**9 == 0 and 0 < int(r["ns"]) for r in t["steal"]), "steal: per whole second of the clock")


def check_gaps(history, t):
    """Compares each gap and its top culprit with `gaps`."""
    for m in t["machine"]:
        rows = [(int(r["ts"]), int(r["dur"]), r["state"], r["culprit_machine"], r["culprit_tid"], r["culprit_name"], r["culprit_ns"])
                for r in t["gap"] if r["machine"] == m["machine"] and r["of_machine"] == "1"]
        reported = [(int(r["start"]), int(r["duration_ns"]), r["state"], r["culprit_machine"], r["culprit_tid"], r["culprit_name"], r["culprit_ns"])
                for r in table("gaps", history, m["machine"], "--top", "0")]
        check(sorted(rows) == sorted(reported), f"gap: {m['machine']}, {len(rows)} rows")


def check_run(history, t):
    info = json.loads(run("info", history, "--format", "json").stdout)
    row, = t["run"]
    check(int(row["started"]) == info["begin"] and int(row["span_ns"]) == info["end"] - info["begin"] + 1, "run: start and length")
    check(int(row["lost_events"]) == sum(x["lost"] for x in info["traces"]), f"run: {row['lost_events']} events lost")
    check(int(row["warnings"]) == sum(n["kind"] != "info" for n in info["notes"]), f"run: {row['warnings']} warnings")
    reported = [(r["guest"], r["method"], r["quality"], r["alpha_ppm"], r["error_mid_ns"], r["containment"]) for r in table("sync", history)]
    rows = [(r["machine"], r["method"], r["quality"], r["alpha_ppm"], r["error_mid_ns"], r["containment"]) for r in t["clock"]]
    check(rows == reported, "clock: equals `sync`")
    check(sorted(x["uuid"] for x in info["traces"]) == sorted(r["uuid"] for r in t["loss"]), "loss: a row for each trace")


def check_sqlite(folder, history, t, rows, number):
    """The database contains the rows of the csv; a repeated or an aborted export changes nothing."""
    path = f"{folder}/runs.db"
    for _ in range(2):
        check(export(history, f"sqlite:{path}")[0] == rows, "sqlite: the same number of rows")
    db = sqlite3.connect(path)
    for name, want in t.items():
        got = [tuple("" if v is None else v for v in r) for r in db.execute(f'SELECT * FROM "{name}" WHERE run_id = ?', (number,))]
        convert = {c: type(v) for r in got for c, v in zip(want[0] if want else [], r) if v != ""}
        have = [tuple(convert[c](v) if v else v for c, v in r.items()) for r in want]
        near = [tuple(round(v, 9) if isinstance(v, float) else v for v in r) for r in got]
        check(near == have, f"sqlite: {name}, {len(got)} rows")
    db.close()
    for signum in (signal.SIGKILL, signal.SIGINT):
        p = subprocess.Popen([PROGRAM, "export", history, "--to", f"sqlite:{path}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            p.wait(timeout=0.03)
        except subprocess.TimeoutExpired:
            p.send_signal(signum)
        p.wait(timeout=300)
        db = sqlite3.connect(path)
        count = {n: db.execute(f'SELECT count(*) FROM "{n}" WHERE run_id = ?', (number,)).fetchone()[0] for n in rows}
        check(count == rows and db.execute("PRAGMA integrity_check").fetchone() == ("ok",), f"sqlite: complete after {signum.name}")
        db.close()


def as_csv(v):
    return "" if v is None else f"{v:.9f}" if isinstance(v, float) else str(v)


def check_folded(folder, history):
    path = f"{folder}/steal.folded"
    export(history, f"folded:{path}")
    got = defaultdict(int)
    for line in open(path, encoding="utf-8"):
        stack, ns = line.rstrip("\n").rsplit(" ", 1)
        machine, thread, kind, culprit = stack.split(";")
        got[(machine + "/" + thread).strip()] += int(ns)
    reported = sums(table("steal", history, "--by", "thread"), lambda r: r["victim"])
    check(dict(got) == reported and reported, f"folded: {len(reported)} victims, {sum(reported.values())} ns")


def check_folded_untraced(folder):
    """In the host's trace alone, the vCPUs of the guest stand for its threads."""
    history, path = f"{folder}/host.steal", f"{folder}/host.folded"
    run("index", os.path.join(DATA, "fibonacci", "host"), "-o", history)
    export(history, f"folded:{path}")
    got = defaultdict(int)
    for line in open(path, encoding="utf-8"):
        stack, ns = line.rstrip("\n").rsplit(" ", 1)
        got[stack.split(";")[0] if "vCPU" in stack.split(";")[1] else ""] += int(ns)
    lost = sums(table("steal", history), lambda r: r["victim"])
    check(got["Debian"] == lost["Debian"] > 0 and set(got) == {"", "Debian"}, f"folded: an untraced guest lost {got['Debian']} ns")


def check_threads(t):
    """The life of a thread begins and ends with its states."""
    begin, end = {}, {}
    for r in t["thread_state"]:
        key, ts = (r["machine"], r["tid"]), int(r["ts"])
        begin[key], end[key] = min(begin.get(key, ts), ts), max(end.get(key, ts), ts + int(r["dur"]) - 1)
    got = {(r["machine"], r["tid"]): (r["start_ns"], r["end_ns"]) for r in t["thread"]}
    want = {key: (str(begin[key]), str(end[key])) if key in begin else ("", "") for key in got}
    check(got == want and got, f"thread: the lives of {len(got)} threads")


def metrics(path):
    values = {}
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    check(lines[-2:] == ["# EOF", ""], "openmetrics: the last line is # EOF")
    for line in lines:
        m = re.fullmatch(r'(\w+)(?:\{(.*)\})? (\S+)', line)
        check(line == "" or line.startswith("# ") or m, f"openmetrics: {line}") if not m else None
        if m:
            labels = {k: v.replace('\\"', '"').replace("\\\\", "\\") for k, v in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', m[2] or "")}
            check((m[1], tuple(labels.items())) not in values, f"openmetrics: no duplicate: {line[:60]}") if (m[1], tuple(labels.items())) in values else None
            values[(m[1], tuple(labels.items()))] = m[3]
    return values


def check_metrics(folder, history, t):
    path = f"{folder}/stealscope.prom"
    export(history, f"openmetrics:{path}")
    values = metrics(path)
    ns = {k[1]: int(v.replace(".", "")) for k, v in values.items() if k[0] == "stealscope_steal_seconds_total"}
    reported = {(("victim", r["victim"]), ("culprit", r["culprit"].replace("idle CPU", "idle-cpu"))): int(r["ns"]) for r in table("steal", history)}
    check(ns == reported and reported, "openmetrics: steal equals `steal`")
    for m in t["machine"]:
        mine = [int(r["dur"]) for r in t["gap"] if r["machine"] == m["machine"] and r["of_machine"] == "1"]
        label = ("victim", m["machine"])
        count = values.get(("stealscope_gap_seconds_count", (label,)), "0")
        check(int(count) == len(mine), f"openmetrics: {len(mine)} gaps of {m['machine']}")
        for k, v in values.items():
            if k[0] == "stealscope_gap_seconds_bucket" and k[1][0] == label:
                limit = float(k[1][1][1]) * 1e9
                check(int(v) == sum(d <= limit + 1e-3 for d in mine), f"openmetrics: below {k[1][1][1]} s")
    check(float(values[("stealscope_run_duration_seconds", ())]) > 0, "openmetrics: the length of the run")


def slices_of(t):
    """Returns the slices of a timeline: (group of tracks, track, start, duration, name)."""
    want = Counter()
    for r in t["vcpu_state"]:
        want[(r["machine"] + ": vCPU states", int(r["cpu"]), int(r["ts"]), int(r["dur"]), r["state"])] += 1
    for r in t["thread_state"]:
        want[(r["machine"] + ": threads", int(r["tid"]), int(r["ts"]), int(r["dur"]), r["state"])] += 1
    for r in t["running"]:
        if r["tid"] != "0":
            want[(r["machine"] + ": CPUs", int(r["cpu"]), int(r["ts"]), int(r["dur"]), r["tid"])] += 1
    for r in t["gap"]:
        group = ": gaps of threads" if r["tid"] else ": gaps of vCPUs"
        want[(r["machine"] + group, int(r["tid"] or r["cpu"]), int(r["ts"]), int(r["dur"]), r["state"])] += 1
    return want


def fields(data):
    """Yields the fields of a protocol buffers message: (number, value); values with a length are bytes."""
    at = 0

    def varint():
        nonlocal at
        v = shift = 0
        while True:
            v |= (data[at] & 127) << shift
            at += 1
            shift += 7
            if data[at - 1] < 128:
                return v
    while at < len(data):
        key = varint()
        size = {0: None, 1: 8, 2: -1}[key & 7]
        if size is None:
            yield key >> 3, varint()
            continue
        size = varint() if size < 0 else size
        yield key >> 3, data[at:at + size]
        at += size


def check_perfetto(folder, history, t):
    path = f"{folder}/trace.perfetto"
    export(history, f"perfetto:{path}")
    with open(path, "rb") as f:
        packets = [dict(fields(p)) for n, p in fields(f.read()) if n == 1]
    tracks = {}
    for p in packets:
        if 60 in p:
            d = dict(fields(p[60]))
            process = dict(fields(d[3])) if 3 in d else {}
            tracks[d[1]] = (process.get(6, d.get(2, b"")).decode(), d.get(5))
    events = [(p[8], list(fields(p[11]))) for p in packets if 11 in p]
    check(all(dict(e)[11] in tracks for _, e in events), f"perfetto: {len(tracks)} tracks; each event is on one of them")
    begun, got, args = {}, Counter(), 0
    for ts, e in events:
        d = dict(e)
        if d[9] == 1:
            check(d[11] not in begun, "slices of a track do not overlap") if d[11] in begun else None
            begun[d[11]] = (ts, d[23].decode())
            args += sum(1 for n, _ in e if n == 4)
        elif d[9] == 2:
            start, name = begun.pop(d[11])
            group, machine = tracks[tracks[d[11]][1]]
            got[(f"{tracks[machine][0]}: {group}", d[11] & (1 << 40) - 1, start, ts - start, name)] += 1
    check(not begun and got == slices_of(t), f"perfetto: {sum(got.values())} slices, equal to the tables")
    check(args >= 2 * len(t["gap"]), "perfetto: gaps have arguments")
    ends = [[v for _, e in events for n, v in e if n == number] for number in (47, 48)]
    check(len(ends[0]) > 100 and sorted(ends[0]) == sorted(ends[1]) and len({*ends[0]}) == len(ends[0]),
          f"perfetto: {len(ends[0])} flows, each with both ends")
    lost = sum(dict(e).get(30, 0) for _, e in events if dict(e)[9] == 4)
    check(lost == sum(int(r["ns"]) for r in t["steal"] if r["victim_cpu"]), "perfetto: the sum of the counters is the loss of the vCPUs")


def check_history(folder, history, floor):
    directory = f"{folder}/csv"
    shutil.rmtree(directory, ignore_errors=True)
    rows, number = export(history, f"csv:{directory}")
    t = folder_tables(directory)
    check(set(t) == set(rows) and all(len(t[n]) == rows[n] for n in t), f"csv: {sum(rows.values())} rows in {len(rows)} tables")
    check(rows["thread_state"] > floor, f"the history has more than {floor} thread states")
    check({r["run_id"] for x in t.values() for r in x} == {str(number)}, "each row has the number of the run")
    files = {p: open(p, "rb").read() for p in glob.glob(f"{directory}/*/*")}
    check(export(history, f"csv:{directory}") == (rows, number), "repeated")
    check({p: open(p, "rb").read() for p in glob.glob(f"{directory}/*/*")} == files, "csv: the same files, byte for byte")
    check_states(history, t)
    check_steal(history, t)
    check_gaps(history, t)
    check_run(history, t)
    check_threads(t)
    check_folded(folder, history)
    check_metrics(folder, history, t)
    check_perfetto(folder, history, t)
    if HAS_SQLITE:
        check_sqlite(folder, history, t, rows, number)
    return rows, number, t


def check_fleet(folder, histories):
    """The answers about several runs agree with the commands' answers about each run."""
    db = f"sqlite:{folder}/fleet.db"
    lost, taken, gaps, runs = defaultdict(int), defaultdict(int), defaultdict(list), defaultdict(set)
    for history in histories:
        _, number = export(history, db, "--only", "run,machine,steal_total,gap,clock,loss")
        host = next(x["machine"] for x in json.loads(run("info", history, "--format", "json").stdout)["traces"] if x["role"] == "host")
        for r in table("steal", history):
            pair = (host, r["victim"], r["culprit"].replace("idle CPU", "idle-cpu"))
            lost[pair] += int(r["ns"])
            runs[pair[:2]].add(number)
        for machine in {r["vm"] for r in table("info", history)} | {"host"}:
            gaps[(host, machine)] += [int(r["duration_ns"]) for r in table("gaps", history, machine, "--top", "0")]
    ask = {q: table("fleet", db, q) for q in ("victims", "culprits", "pairs", "gaps", "days", "moved", "warnings")}
    victims = {key: sum(ns for k, ns in lost.items() if k[:2] == key) for key in runs}
    check({(r["host"], r["victim"]): (int(r["runs"]), int(r["lost_ns"])) for r in ask["victims"]}
          == {k: (len(runs[k]), v) for k, v in victims.items()}, f"fleet: {len(victims)} victims in {len(histories)} runs")
    for (host, victim, culprit), ns in lost.items():
        taken[(host, culprit)] += ns
    check(sums(ask["culprits"], lambda r: (r["host"], r["culprit"]), "stolen_ns") == dict(taken), "fleet: culprits")
    reported = {(r["host"], r["victim"], r["culprit"]): (int(r["lost_ns"]), r["share"]) for r in ask["pairs"]}
    check(reported == {k: (v, f"{v / victims[k[:2]]:.9f}") for k, v in lost.items() if k[1] != k[2]} and reported, "fleet: pairs")
    rank = lambda v, p: sorted(v)[(len(v) * p + 99) // 100 - 1]
    want = {k: tuple(map(str, (len(v), sum(v), rank(v, 50), rank(v, 90), rank(v, 99), max(v)))) for k, v in gaps.items() if v}
    check({(r["host"], r["machine"]): tuple(list(r.values())[2:]) for r in ask["gaps"]} == want, "fleet: gaps")
    check(sums(ask["days"], lambda r: (r["host"], r["machine"]), "lost_ns")
          == {**{(r["host"], r["machine"]): 0 for r in ask["days"]}, **victims}, "fleet: the sum over days is the loss")
    alone = os.path.join(folder, "alone.steal")
    run("index", os.path.join(DATA, "fibonacci", "guest-Debian"), "-o", alone)
    export(alone, db, "--only", "run,machine,steal_total,gap,clock,loss")
    check(table("fleet", db, "days") == ask["days"], "fleet: a run without a host trace adds no loss")
    day = run("fleet", db, "days").stdout.split("\n")[1]
    check(re.search(r"  \d{4}-\d\d-\d\d  ", day), f"fleet: a day is a date {day}")
    info = [json.loads(run("info", h, "--format", "json").stdout) for h in histories]
    check(len(ask["warnings"]) >= sum(any(x["lost"] for x in i["traces"]) for i in info) > 0, "fleet: warnings for runs with lost events")
    with sqlite3.connect(db.removeprefix("sqlite:")) as d:
        d.execute("UPDATE steal_total SET ns = 10000000000000000 + ns")  # 116 CPU days, times 1000 more than a bigint
    rates = [(r, int(r["lost_ns"]) * 1000 // (int(r["recorded_ns"]) // 10**6)) for r in table("fleet", db, "days")]
    check(all(r["lost_ns_per_s"] == str(rate) for r, rate in rates) and max(rate for _, rate in rates) > 10**16,
          "fleet: a loss of months per day does not overflow")
    check(run("fleet", db, "victim", status=1).stderr.count("did you mean victims?") == 1, "fleet: an unknown question")
    for url, status in ((f"sqlite:{histories[0]}", 2), (f"sqlite:{folder}/none.db", 2), ("mysql://me:secret@h/d", 1)):
        p = run("fleet", url, "victims", status=status)
        check("secret" not in p.stderr and p.stderr.count("\n") == 1 and p.stdout == "", p.stderr.strip())
    check(not os.path.exists(f"{folder}/none.db"), "fleet: a question creates no database")


def is_built(scheme):
    return "not in this build" not in next(x for x in run("export", "--targets").stdout.split("\n") if x.startswith(scheme))


def check_secrets(folder, history):
    """A password soon disappears from the process's arguments, and is read from files with private permissions only."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        targets = [f"clickhouse://me:s3:cr@t@127.0.0.1:{port}/d"] if is_built("clickhouse:") else []
        if is_built("postgresql:"):
            targets += [f"postgresql://me:s3cret@127.0.0.1:{port}/d", f"postgresql://127.0.0.1:{port}/d?password=s3cret&user=me"]
        for target in [] if is_emulated() else targets:  # the program cannot change the arguments of an emulator
            for words in (["export", history, "--to", target], ["export", history, f"--to={target}"], ["fleet", target, "victims"]):
                p = start(*words)
                def arguments():
                    with open(f"/proc/{p.pid}/cmdline", encoding="utf-8") as f:
                        return f.read()
                until(lambda: f":{port}" in arguments() and not re.search("s3c|s3:c|cr@t|cret", arguments()) and "xxx" in arguments(),
                      f"{words[0]}: no password among the arguments", p)
                p.kill()
                p.communicate()
    if not is_built("clickhouse:"):
        return
    with open(f"{folder}/secret", "w", encoding="ascii") as f:
        f.write("from a file\nnot this\n")
    os.chmod(f"{folder}/secret", 0o600)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for more in ({}, {"env": {**os.environ, "CLICKHOUSE_PASSWORD": "another"}}):
            p = start("fleet", f"clickhouse://me@127.0.0.1:{port}/d", "victims", "--password-file", f"{folder}/secret", **more)
            head = server.accept()[0].recv(65536)
            p.kill()
            p.communicate()
            check(b"X-ClickHouse-Key: from a file\r\n" in head, "the first line of a file")
    os.chmod(f"{folder}/secret", 0o640)
    with open(f"{folder}/empty", "w", opener=lambda path, flags: os.open(path, flags, 0o600), encoding="ascii"):
        pass
    for file, error in ((f"{folder}/secret", "secret: "), (f"{folder}/none", "No such file"), (f"{folder}/empty", "empty")):
        p = run("fleet", "clickhouse://me@127.0.0.1:1/d", "victims", "--password-file", file, status=None)
        check(p.returncode > 0 and error in p.stderr and "from a file" not in p.stderr, f"refused: {p.stderr.strip()}")


with scratch() as folder:
    history = f"{folder}/fibonacci.steal"
    run("index", os.path.join(DATA, "fibonacci"), "-o", history)
    rows, number, _ = check_history(folder, history, 1000)

    check_secrets(folder, history)
    check_folded_untraced(folder)

    # The number of a run depends on its traces and options, not on their location.
    shutil.copytree(os.path.join(DATA, "fibonacci"), f"{folder}/elsewhere", copy_function=shutil.copyfile)
    other = f"{folder}/other.steal"
    run("index", f"{folder}/elsewhere", "-o", other)
    check(export(other, f"csv:{folder}/both")[1] == number, "a copy of the traces: the same run")
    run("index", f"{folder}/elsewhere", "--paper-states", "-o", other)
    second = export(other, f"csv:{folder}/both")[1]
    check(second != number, "other options: another run")
    check(sorted(os.listdir(f"{folder}/both/steal")) == sorted([f"{number}.csv", f"{second}.csv"]), "csv: a file for each run")

    # Lost events and requests.
    simulate(f"{folder}/requests", "requests", "--duration", "2s", "--lost", "0.1")
    lossy = f"{folder}/requests.steal"
    run("index", f"{folder}/requests", "-o", lossy)
    _, _, t = check_history(folder, lossy, 500)
    reported = [(r["request"], r["machine"], r["start"], r["latency_ns"], r["provider_low_ns"], r["provider_high_ns"], r["culprit"])
            for r in table("latency", "requests", lossy)]
    got = [(r["request"], r["machine"], r["ts"], r["dur"], r["provider_low_ns"], r["provider_high_ns"], r["culprit"]) for r in t["request"]]
    check(got == reported and reported, f"request: {len(reported)} rows, equal to `latency requests`")

    # --only; errors; no partial files; no password in messages.
    shutil.rmtree(f"{folder}/csv")
    check(list(export(history, f"csv:{folder}/csv", "--only", "steal,run")[0]) == ["steal", "run"], "--only: these tables")
    check(sorted(os.listdir(f"{folder}/csv")) == ["run", "steal"], "and no others")
    for args, status, error in [
            (["--to", "parquet:x"], 1, "'parquet'"),
            (["--to", "mysql://me:secret@host/db"], 1, "'mysql'"),
            (["--to", "csv:"], 1, "DIR"),
            (["--to", f"csv:{folder}/x", "--only", "steel"], 1, "did you mean steal?"),
            ([], 1, "--to"),
            (["--to", f"perfetto:{folder}/no/such/x"], 4, "No such file"),
            (["--to", f"csv:{history}"], 4, history)]:
        p = run("export", history, *args, status=status)
        check(error in p.stderr and p.stderr.count("\n") == 1 and "secret" not in p.stderr, p.stderr.strip())
    check(not os.path.exists(f"{folder}/x"), "a refused export creates no folder")
    if HAS_SQLITE:
        simulate(f"{folder}/three", "critical_task", "--duration", "3s")
        run("index", f"{folder}/three", "-o", f"{folder}/three.steal")
        check_fleet(folder, [history, lossy, f"{folder}/three.steal"])
        with open(f"{folder}/not.db", "w") as f:
            f.write("another file")
        run("export", history, "--to", f"sqlite:{folder}/not.db", status=1)
        check(open(f"{folder}/not.db").read() == "another file", "a file that is not a database is unchanged")
        db = sqlite3.connect(f"{folder}/own.db")
        db.execute("CREATE TABLE steal (mine)")
        db.commit()
        db.close()
        p = run("export", history, "--to", f"sqlite:{folder}/own.db", status=2)
        check("steal" in p.stderr or "run_id" in p.stderr, p.stderr.strip())
    for target in ("perfetto", "folded", "openmetrics"):
        for path in (history, f"{folder}/{target}.txt"):
            if path != history:
                with open(path, "w") as f:
                    f.write("\nanother; file 1x\n")
            before = open(path, "rb").read()
            p = run("export", history, "--to", f"{target}:{path}", status=1)
            check(p.stderr.count("exists") == 1 and open(path, "rb").read() == before, p.stderr.strip())
        export(history, f"{target}:{folder}/{target}.again")
        before = open(f"{folder}/{target}.again", "rb").read()
        export(history, f"{target}:{folder}/{target}.again")
        check(open(f"{folder}/{target}.again", "rb").read() == before, f"{target}: a file of an earlier export is replaced")
    full = run("export", history, "--to", "csv:/dev/full", status=4)
    check(full.stderr.count("\n") == 1, full.stderr.strip())
    check(not [p for p in glob.glob(f"{folder}/**", recursive=True) if p.endswith(".tmp")], "no partial file is left")
