"""`export --to postgresql://...` with a real server, which this test starts in a temporary folder."""
import csv
import glob
import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections import defaultdict

from e2e import DATA, HOSTILE, PROGRAM, check, dashboard, is_root, rename, run, scratch, simulate, skip, table

BIN = next(iter(sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)), None)
TARGETS = run("export", "--targets").stdout
ROOT = is_root()
if not BIN or "not in this build" in next(x for x in TARGETS.split("\n") if x.startswith("postgresql:")) or (
        ROOT and not shutil.which("runuser")) or (os.geteuid() == 0 and not ROOT):
    skip("no PostgreSQL server is installed, or this build has no libpq")
AS = ["runuser", "-u", "postgres", "--"] if ROOT else []


def server(folder, port):
    os.mkdir(f"{folder}/pg")
    if ROOT:
        os.chmod(folder, 0o755)
        shutil.chown(f"{folder}/pg", "postgres")
    common = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/", "timeout": 120}
    subprocess.run([*AS, f"{BIN}/initdb", "-D", f"{folder}/pg/data", "-U", "me", "-A", "trust", "--no-sync"], check=True, **common)
    subprocess.run([*AS, f"{BIN}/pg_ctl", "-D", f"{folder}/pg/data", "-w", "-l", f"{folder}/pg/log", "-o",
                    f"-p {port} -k {folder}/pg -c listen_addresses=127.0.0.1 -c fsync=off", "start"], check=True, **common)


def stop(folder):
    subprocess.run([*AS, f"{BIN}/pg_ctl", "-D", f"{folder}/pg/data", "-m", "immediate", "stop"], check=False, timeout=300,
                   stdout=subprocess.DEVNULL, cwd="/")


def ask(url, sql):
    p = subprocess.run([f"{BIN}/psql", "-X", "-d", url, "--csv", "-t", "-c", sql], capture_output=True, text=True, timeout=300)
    check(p.returncode == 0, f"psql: {sql[:60]} {p.stderr}") if p.returncode else None
    return list(csv.reader(p.stdout.splitlines()))


def export(history, target):
    answer = json.loads(run("export", history, "--to", target, "--format", "json").stdout)
    return {row["table"]: row["rows"] for row in answer["rows"]}, answer["run_id"]


def counts(url, rows, number):
    return {t: int(ask(url, f'SELECT count(*) FROM "{t}" WHERE run_id = {number}')[0][0]) for t in rows}


def unescaped(v):
    """Returns the text of a csv cell without the escape that keeps it from being a formula."""
    return chr(int(v[2:4], 16)) + v[4:] if re.match(r"\\x(3d|2b|2d|40)", v) else v


def check_rows(url, folder, history, number):
    """Compares all rows with the csv."""
    export(history, f"csv:{folder}/csv")
    for path in glob.glob(f"{folder}/csv/*/{number}.csv"):
        name = os.path.basename(os.path.dirname(path))
        with open(path, newline="", encoding="utf-8") as f:
            want = [[unescaped(v) for v in row] for row in list(csv.reader(f))[1:]]
        got = ask(url, f'SELECT * FROM "{name}" WHERE run_id = {number}')
        real = {i for row in want[:1] for i, v in enumerate(row) if "." in v and v.replace(".", "").replace("-", "").isdigit()}
        got = [[f"{float(v):.9f}" if i in real and v else v for i, v in enumerate(row)] for row in got]
        check(sorted(got) == sorted(want), f"{name}: {len(want)} rows")


with scratch() as folder:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    try:
        server(folder, port)
        url = f"postgresql://me:secret@127.0.0.1:{port}/postgres"
        history = f"{folder}/fibonacci.steal"
        run("index", os.path.join(DATA, "fibonacci"), "-o", history)
        rows, number = export(history, url)
        check(counts(url, rows, number) == rows, f"{sum(rows.values())} rows")
        check(ask(url, "SELECT indexdef FROM pg_indexes WHERE indexname = 'gap_of_machine'")[0][0].endswith("WHERE (of_machine = 1)"),
              "an index of the gaps of machines")
        check_rows(url, folder, history, number)
        check(export(history, url) == (rows, number) and counts(url, rows, number) == rows, "repeated: no change")
        check(ask(url, "SELECT victim_machine, coalesce(culprit_machine, kind), sum(ns) FROM steal WHERE of_machine = 1 "
                       "GROUP BY 1, 2 ORDER BY 3 DESC")[0][2] == max((r["ns"] for r in table("steal", history)), key=int),
              "the largest sum equals that of `steal`")
        day = time.strftime("%Y%m%d", time.gmtime(json.loads(run("info", history, "--format", "json").stdout)["begin"] / 1e9))
        check(int(ask(url, f"SELECT count(*) FROM steal_{day}")[0][0]) == rows["steal"], f"the rows are in the partition of {day}")
        check(ask(url, "SELECT count(*) FROM steal_other") == [["0"]], "and none in the default partition")

        info = json.loads(run("info", history, "--format", "json").stdout)
        panels = dashboard("postgresql", info["begin"] - 10**9, info["end"])
        reported = {title: ask(url, sql) for title, sql in panels.items()}
        check(all(reported[t] for t in reported if "warning" not in t), f"Grafana's panels: {({t: len(r) for t, r in reported.items()})}")
        pairs = defaultdict(int)
        for victim, culprit, name, ns in ask(url, "SELECT victim_machine, coalesce(culprit_machine, kind), culprit_name, ns FROM steal "
                                                "WHERE of_machine = 1"):
            pairs[victim, culprit, name] += int(ns)
        check(sum(pairs.values()) == sum(int(r["ns"]) for r in table("steal", history)), "the sum of the rows equals that of `steal`")
        check(abs(sum(float(r[4]) for r in reported["Victims and culprits"]) * 1e9 - sum(sorted(pairs.values())[-50:])) < 1000,
              "and the panel has the 50 largest")

        # After a kill the old rows are complete.
        for wait in (0.02, 0.08, 0.2):
            p = subprocess.Popen([PROGRAM, "export", history, "--to", url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(wait)
            p.kill()
            p.wait(timeout=300)
            check(counts(url, rows, number) == rows, f"killed after {wait} s: complete")

        # Five exports at the same time: four runs, and one of them twice.
        histories = []
        for seed in range(4):
            simulate(f"{folder}/{seed}", "critical_task", "--duration", "1s", "--seed", str(seed + 1))
            run("index", f"{folder}/{seed}", "-o", f"{folder}/{seed}.steal")
            histories.append(f"{folder}/{seed}.steal")
        started = [subprocess.Popen([PROGRAM, "export", h, "--to", url, "--format", "json"], stdout=subprocess.PIPE, text=True)
                   for h in histories + histories[:1]]
        answers = [json.loads(p.communicate(timeout=300)[0]) for p in started]
        check({p.returncode for p in started} == {0}, "five at the same time")
        for a in answers:
            reported = {r["table"]: r["rows"] for r in a["rows"]}
            check(counts(url, reported, a["run_id"]) == reported, f"run {a['run_id']} is complete, without duplicates")
        check(int(ask(url, "SELECT count(*) FROM run")[0][0]) == 5, "five runs in all")

        # The same questions have the same answers as in SQLite.
        for h in [history, *histories]:
            export(h, f"sqlite:{folder}/db")
        for question in [line.split()[0] for line in run("fleet").stdout.splitlines() if not line.startswith("live ")]:
            check(table("fleet", url, question) == table("fleet", f"sqlite:{folder}/db", question), f"fleet: {question}")

        # Names that look like SQL are plain text.
        for i, hostile in enumerate(HOSTILE):
            shutil.copytree(os.path.join(DATA, "fibonacci"), f"{folder}/h{i}", copy_function=shutil.copyfile)
            rename(f"{folder}/h{i}", hostile)
            run("index", f"{folder}/h{i}", "-o", f"{folder}/h{i}.steal")
            check_rows(url, folder, f"{folder}/h{i}.steal", export(f"{folder}/h{i}.steal", url)[1])

        for bad, status in ((f"postgresql://me:secret@127.0.0.1:{port}/nowhere", 2), ("postgresql://me:secret@127.0.0.1:1/postgres", 2),
                            ("postgresql://me:secret@h:st:wrong/x", 1), ("postgresql://me:se%ZZcret@h/x", 1),
                            (f"postgresql://me:secret@wrong@127.0.0.1:{port}/postgres", 1)):
            p = run("export", history, "--to", bad, status=status)
            check("secret" not in p.stderr and "wrong" not in p.stderr and p.stderr.count("\n") == 1, p.stderr.strip())
        ask(url, "DROP TABLE steal CASCADE")
        ask(url, "CREATE TABLE steal (mine text)")
        p = run("export", history, "--to", url, status=4)
        check("run_id" in p.stderr and p.stderr.count("\n") == 1, p.stderr.strip())
    finally:
        stop(folder)
