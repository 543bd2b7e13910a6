"""Every json answer is valid by share/schema/answers.json, and its rows have the columns of the csv."""
import copy
import csv
import io
import contextlib
import json
import os
import platform
import sqlite3

import otlp
import schema
from e2e import DATA, check, is_emulated, run, scratch, simulate, skip

ANSWERS = schema.load()
seen = set()


def first_faults(document):
    return list(schema.faults(document, ANSWERS, ANSWERS))[:3]


def answer(*command):
    """Returns the checked answer of a command; its rows must be those of the csv."""
    text = run(*command, "--format", "json", "--limit", "0").stdout
    document = json.loads(text)
    wrong = first_faults(document)
    check(not wrong, f"{' '.join(command[:2])}: as the schema says {wrong}")
    table = list(csv.reader(io.StringIO(run(*command, "--format", "csv").stdout)))
    rows = [[k for k in row] for row in document["rows"]]
    same = len(rows) == len(table) - 1 or command[0] == "top"  # two periods of top
    check(same and all(row[:len(table[0])] == table[0] for row in rows), "its rows are those of the csv")
    seen.add(document["answer"])
    return document


def is_guest_of_kvm():
    """Returns true if the kernel has the clock of KVM and the program runs on this processor."""
    path = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
    if platform.machine() != "x86_64" or is_emulated() or not os.path.exists(path):
        return False
    with open(path, encoding="ascii") as f:
        return "kvm-clock" in f.read().split()


with scratch() as folder:
    history, requests, model = (f"{folder}/{name}" for name in ("fibonacci.steal", "requests.steal", "model"))
    run("index", os.path.join(DATA, "fibonacci"), "-o", history)
    simulate(f"{folder}/requests", "requests", "--duration", "2s", "--lost", "0.1", "--poll", "1ms")
    run("index", f"{folder}/requests", "-o", requests)
    spans = f"{folder}/spans.json"
    with open(spans, "w", encoding="ascii") as f:
        json.dump(otlp.document([(1, 1795152643676842, 1795152643726837, 151)]), f)

    gaps = answer("gaps", history, "Debian/CPU0")
    check(gaps["history"] == history and gaps["target"] == "Debian/vCPU0", "it says of what and of whom")
    check([c["machine"] for c in gaps["clock"]] == ["Debian"] and gaps["clock"][0]["band_ns"] > 0, "and how sure its clock is")
    check(answer("gaps", history)["target"] is None, "of all: null")
    window = answer("steal", history, "--from", "10%", "--to", "20%")["window"]
    whole = answer("steal", history, "--by", "thread")["window"]
    check(whole["start"] < window["start"] < window["end"] < whole["end"], "the window is the one asked for")
    answer("gaps", history, "--locks")
    answer("gaps", history, "--inside")
    for command in (["info", history], ["sync", history], ["flow", history, "Debian/151"],
                    ["flow", history, "Debian/151", "--intervals"], ["steal", history, "host/CPU0"],
                    ["gaps", history, "--periodic"],
                    ["gaps", history, "--lengths"], ["gaps", history, "Debian/151", "--histogram"],
                    ["events", history, "--at", "50%", "--around", "1s"], ["exits", history, "--by", "thread"], ["exits", history, "--histogram"], ["waits", history],
                    ["waits", requests, "--polling"],
                    ["path", history, "Debian/151"], ["path", history, "Debian/CPU0", "--sums"],
                    ["intervals", history, "/Virtual Machines/Debian/CPUs/CPU0/Status"],
                    ["latency", "traces", history, "--spans", spans],
                    ["latency", "requests", requests], ["latency", "requests", requests, "--features"],
                    ["explain", history], ["explain", history, "Debian/151"],
                    ["summary", history, "--sort", "longest"], ["threads", history, "Debian"],
                    ["latency", "report", requests], ["latency", "report", requests, requests],
                    ["diff", history, requests, "--all"], ["whatif", history, "without burnP6"],
                    ["latency", "report", "--heat", f"1,2={requests}"],
                    ["latency", "train", "-b", requests, "-o", model, requests]):
        document = answer(*command)
        check(document["rows"] != [], "it has rows")
    check(isinstance(document["history"], list) and len(document["history"]) == 2, "an answer about two runs names both")
    check(document["lost"] != [] and document["notes"] != [], "and what was lost in them")
    exported = answer("export", history, "--to", f"csv:{folder}/csv")
    check(exported["run_id"] > 0 and {r["table"] for r in exported["rows"]} >= {"run", "steal"}, "an export tells its run")
    with contextlib.closing(sqlite3.connect(f"{folder}/db")) as db, db:  # as monitor writes it
        db.execute("CREATE TABLE live_steal (host TEXT, ts INTEGER, victim_machine TEXT, culprit_kind TEXT, culprit TEXT, ns INTEGER)")
        db.execute("INSERT INTO live_steal VALUES ('hv', 1795152647842459259, 'web', 'process', 'host/9120 burnP6', 41)")
    questions = [line.split()[0] for line in run("fleet").stdout.splitlines()]
    if "built without" in run("export", history, "--to", f"sqlite:{folder}/db", status=None).stderr:
        seen |= {f"fleet-{q}" for q in questions}
    else:
        run("export", requests, "--to", f"sqlite:{folder}/db")
        for question in questions:
            check(answer("fleet", f"sqlite:{folder}/db", question)["rows"] != [] or question == "moved", f"fleet: {question}")
    run("latency", "requests", requests, "-m", model, "--format", "json")
    open(f"{folder}/marker", "w", encoding="ascii").close()
    beacon = "beacon", "--measure", "--rounds", "3", "--output", f"{folder}/marker"
    tried = run(*beacon, status=None)
    if tried.returncode == 2:
        check(not is_guest_of_kvm(), f"under KVM, hypercalls work {tried.stderr}")
        seen.add("beacon")
    else:
        check(len(answer(*beacon)["rows"]) == 3, "a beacon's cost")
    check(len(answer("sync", f"{folder}/requests", "--audit")["rows"]) == 1, "an audit of clocks")
    check(answer("top", "-b", "-d", "0.5", "--pid", str(os.getpid()))["rows"] != [], "a period of top")
    # The others are in test_live.py, test_record_cli.py, test_cores.py, test_record_requests.py and test_run.py.
    elsewhere = {"run", "sessions", "record-check", "record-request-tables", "record-request-places", "steal-cores"}
    check(seen | elsewhere == set(ANSWERS["$defs"]) - {"actor", "finding"}, f"the schema knows these answers and no others {seen}")

    # The validator can fail.
    for spoil in (lambda d: d.pop("window"), lambda d: d["rows"][0].pop("state"), lambda d: d.update(more=1),
                  lambda d: d["rows"][0].update(more=1), lambda d: d["rows"][0].update(duration_ns=-1),
                  lambda d: d["rows"][0].update(start="now"), lambda d: d.update(answer="steal"),
                  lambda d: d["clock"][0].pop("quality"), lambda d: d.update(schema=1), lambda d: d.update(next=0)):
        broken = copy.deepcopy(gaps)
        spoil(broken)
        check(first_faults(broken), "what is not as the schema says is noticed")
    if tried.returncode:
        skip(f"the answer of beacon: {tried.stderr.strip()}")
