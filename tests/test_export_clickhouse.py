"""`export --to clickhouse://...` with two real servers, which this test starts in a temporary folder."""
import csv
import glob
import io
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from e2e import DATA, HOSTILE, PROGRAM, check, dashboard, rename, run, scratch, simulate, skip, table, until

SERVER = shutil.which("clickhouse-server") or shutil.which("clickhouse-server", path="/usr/sbin")
if not SERVER:
    skip("no clickhouse-server is installed")


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def start(folder, http, tcp, shards):
    """Starts a server with the users default (no password) and me, and a cluster of both servers."""
    os.makedirs(f"{folder}/data")
    with open(f"{folder}/users.xml", "w", encoding="ascii") as f:
        user = "<networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota>"
        f.write(f"<yandex><profiles><default/></profiles><quotas><default/></quotas><users><default><password></password>{user}"
                f"</default><me><password>s/e:c@t</password>{user}</me></users></yandex>")
    with open(f"{folder}/config.xml", "w", encoding="ascii") as f:
        cluster = "".join(f"<shard><replica><host>127.0.0.1</host><port>{p}</port></replica></shard>" for p in shards)
        f.write(f"<yandex><logger><level>warning</level><log>{folder}/log</log><errorlog>{folder}/errors</errorlog></logger>"
                f"<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><listen_host>127.0.0.1</listen_host>"
                f"<path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><users_config>{folder}/users.xml</users_config>"
                "<default_profile>default</default_profile><default_database>default</default_database>"
                f"<mark_cache_size>5368709120</mark_cache_size><remote_servers><both>{cluster}</both></remote_servers></yandex>")
    return subprocess.Popen([SERVER, f"--config-file={folder}/config.xml"], cwd=folder, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


def ask(port, sql, status=200):
    url = f"http://127.0.0.1:{port}/?query=" + urllib.parse.quote(sql)
    try:
        with urllib.request.urlopen(urllib.request.Request(url, b""), timeout=300) as f:
            return f.read().decode()
    except urllib.error.HTTPError as e:
        check(e.code == status, f"{sql[:60]}: {e.read()[:300]}")
        return ""


def wait_for(port):
    for _ in range(600):
        try:
            return ask(port, "SELECT 1") == "1\n"
        except OSError:
            time.sleep(0.1)
    return False


def export(history, target, **more):
    answer = json.loads(run("export", history, "--to", target, "--format", "json", **more).stdout)
    return {row["table"]: row["rows"] for row in answer["rows"]}, answer["run_id"]


def counts(port, rows, number):
    return {t: int(ask(port, f'SELECT count() FROM "{t}" WHERE run_id = {number}')) for t in rows}


def count_loading(port):
    """Returns the number of temporary tables of unfinished exports."""
    return int(ask(port, "SELECT count() FROM system.tables WHERE name LIKE 'load_%'"))


def mutate(port, sql):
    ask(port, sql)
    until(lambda: ask(port, "SELECT min(is_done) FROM system.mutations") == "1\n", "mutations")


def delete_run(port, number):
    mutate(port, f"ALTER TABLE steal DELETE WHERE run_id = {number}")


def partitions(port):
    return int(ask(port, "SELECT max(n) FROM (SELECT uniqExact(partition) AS n FROM system.parts WHERE active AND "
                         "database = 'default' GROUP BY table)"))


def unescaped(v):
    """Returns the text of a csv cell without the escape that keeps it from being a formula."""
    return chr(int(v[2:4], 16)) + v[4:] if re.match(r"\\x(3d|2b|2d|40)", v) else v


def check_rows(port, folder, history, number):
    """Compares all rows with the csv."""
    export(history, f"csv:{folder}/csv")
    for path in sorted(glob.glob(f"{folder}/csv/*/{number}.csv")):
        name = os.path.basename(os.path.dirname(path))
        with open(path, newline="", encoding="utf-8") as f:
            rows = list(csv.reader(f))
        types = dict(line.split("\t")[:2] for line in ask(port, f'DESCRIBE TABLE "{name}"').splitlines())
        want = [[unescaped(v) for v in row] for row in rows[1:]]
        got = list(csv.reader(io.StringIO(ask(port, f'SELECT * FROM "{name}" WHERE run_id = {number} FORMAT CSV'))))
        for row in got:
            for i, column in enumerate(rows[0]):
                row[i] = "" if row[i] == r"\N" else f"{float(row[i]):.9f}" if "Float64" in types[column] else row[i]
        check(sorted(got) == sorted(want), f"{name}: {len(want)} rows")


with scratch() as folder:
    http, tcp, http2, tcp2 = free_ports(4)
    servers = [start(f"{folder}/one", http, tcp, [tcp, tcp2]), start(f"{folder}/two", http2, tcp2, [tcp, tcp2])]
    try:
        check(wait_for(http) and wait_for(http2), "two servers")
        url = f"clickhouse://127.0.0.1:{http}"
        history = f"{folder}/fibonacci.steal"
        run("index", os.path.join(DATA, "fibonacci"), "-o", history)
        rows, number = export(history, url)
        check(counts(http, rows, number) == rows, f"{sum(rows.values())} rows")
        check("ORDER BY (of_machine, run_id, machine, ts)" in ask(http, "SHOW CREATE TABLE gap"), "the gaps of machines are adjacent")
        check_rows(http, folder, history, number)
        check(export(history, url) == (rows, number) and counts(http, rows, number) == rows and count_loading(http) == 0,
              "repeated: no change, no temporary table is left")

        # A second run.
        simulate(f"{folder}/traces", "overcommit", "2", "--duration", "1s")
        other = f"{folder}/other.steal"
        run("index", f"{folder}/traces", "-o", other)
        more, second = export(other, f"clickhouse://me:s%2fe%3ac%40t@127.0.0.1:{http}/default")
        check(counts(http, more, second) == more and counts(http, rows, number) == rows, "a second run, as a user with a password")
        lost = {}
        for r in table("steal", other):
            lost[r["victim"]] = lost.get(r["victim"], 0) + int(r["ns"])
        reported = ask(http, f"SELECT victim_machine, sum(ns) FROM steal WHERE of_machine = 1 AND run_id = {second} GROUP BY victim_machine")
        reported = dict(line.split("\t") for line in reported.splitlines())
        check({k: str(v) for k, v in lost.items()} == reported != {}, f"the losses of machines equal those of `steal`: {reported}")

        info = json.loads(run("info", history, "--format", "json").stdout)
        panels = dashboard("clickhouse", info["begin"] - 10**9, info["end"])
        reported = {title: [line.split("\t") for line in ask(http, sql).splitlines()] for title, sql in panels.items()}
        check(all(reported[t] for t in reported if "warning" not in t), f"Grafana's panels: {({t: len(r) for t, r in reported.items()})}")
        sums = sum(float(r[4]) for r in reported["Victims and culprits"]) * 1e9
        check(sums >= sum(int(r["ns"]) for r in table("steal", history)) - 1000, "and they have the sum of `steal`")

        # The same questions have the same answers as in SQLite, for two hosts between which VMs moved.
        if "not in this build" not in next(x for x in run("export", "--targets").stdout.split("\n") if x.startswith("sqlite:")):
            third = f"{folder}/third.steal"
            simulate(f"{folder}/traces3", "overcommit", "2", "--duration", "1s", "--seed", "3")
            run("index", f"{folder}/traces3", "-o", third)
            for h in (history, other, third):
                export(h, f"sqlite:{folder}/db")
            export(third, url)
            db = sqlite3.connect(f"{folder}/db")
            db.execute(f"UPDATE run SET host = 'another' WHERE run_id = {second}")
            db.commit()
            db.close()
            mutate(http, f"ALTER TABLE run UPDATE host = 'another' WHERE run_id = {second}")
            for question in [line.split()[0] for line in run("fleet").stdout.splitlines() if not line.startswith("live ")]:
                reported = table("fleet", url, question)
                check(reported == table("fleet", f"sqlite:{folder}/db", question), f"fleet: {question}, {len(reported)} rows")
                check(reported or question == "warnings", "at least one row")
            # A loss that overflows 64 bits when multiplied by 1000.
            db = sqlite3.connect(f"{folder}/db")
            db.execute("UPDATE steal_total SET ns = 10000000000000000 + ns")
            db.commit()
            db.close()
            mutate(http, "ALTER TABLE steal_total UPDATE ns = 10000000000000000 + ns WHERE 1")
            reported = table("fleet", url, "days")
            check(reported == table("fleet", f"sqlite:{folder}/db", "days"), "fleet: a loss of months per day")
            check(max(int(r["lost_ns_per_s"]) for r in reported) > 10**16, "does not overflow")
            # Runs that are shorter than the unit of the rate.
            db = sqlite3.connect(f"{folder}/db")
            db.execute("UPDATE run SET span_ns = 999 WHERE host <> 'another'")
            db.commit()
            db.close()
            mutate(http, "ALTER TABLE run UPDATE span_ns = 999 WHERE host <> 'another'")
            reported = table("fleet", url, "days")
            check(reported == table("fleet", f"sqlite:{folder}/db", "days") and {not r["lost_ns_per_s"] for r in reported} == {True, False},
                  "fleet: days with less than a microsecond recorded")
            check(export(other, url) == (more, second) and counts(http, more, second) == more, "a new export repairs changed rows")
            for h, n in ((history, number), (third, None)):
                export(h, url)
            check_rows(http, folder, history, number)
            for name in more:
                ask(http, f"ALTER TABLE \"{name}\" DELETE WHERE run_id NOT IN ({number}, {second})")
            until(lambda: ask(http, "SELECT min(is_done) FROM system.mutations") == "1\n", "mutations")
            check(partitions(http) == 1, f"{partitions(http)} partition of one day's runs")

        # Several exports of one run at the same time: no duplicates.
        mutate(http, f'ALTER TABLE run DELETE WHERE run_id = {number}')
        mutate(http, f'ALTER TABLE gap DELETE WHERE run_id = {number}')
        both = [subprocess.Popen([PROGRAM, "export", history, "--to", url], stdout=subprocess.DEVNULL) for _ in range(4)]
        check([p.wait(timeout=300) for p in both] == [0] * 4 and counts(http, rows, number) == rows, "four exports at once")
        p = run("fleet", f"clickhouse://127.0.0.1:{http}/system", "victims", status=None)
        check(p.returncode > 0 and p.stdout == "" and p.stderr.count("\n") == 1, f"without the tables: {p.stderr.strip()}")
        p = run("fleet", f"clickhouse://me:wr0ng@127.0.0.1:{http}", "victims", status=None)
        check(p.returncode > 0 and p.stdout == "" and "wr0ng" not in p.stderr, f"a wrong password: {p.stderr.strip()}")

        # Runs on two shards, queried as one table.
        export(other, f"clickhouse://127.0.0.1:{http2}")
        delete_run(http2, number)
        delete_run(http, second)
        ask(http, "CREATE TABLE steal_all AS steal ENGINE = Distributed(both, default, steal)")
        both = dict(line.split("\t") for line in ask(http, "SELECT run_id, sum(ns) FROM steal_all GROUP BY run_id").splitlines())
        check(set(both) == {str(number), str(second)}, "a distributed table has the runs of both")

        # After a kill at any time the old rows are complete, and a new export succeeds.
        for delay in (0.02, 0.1, 0.3, 0.6):
            p = subprocess.Popen([PROGRAM, "export", history, "--to", url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(delay)
            p.send_signal(signal.SIGKILL)
            p.wait(timeout=300)
            check(counts(http, rows, number) == rows, f"killed after {delay} s: no row is doubled or missing")
        export(history, url)
        check(counts(http, rows, number) == rows, "repeated after the kills")

        # Names that look like SQL are plain text.
        for i, hostile in enumerate(HOSTILE):
            shutil.copytree(os.path.join(DATA, "fibonacci"), f"{folder}/h{i}", copy_function=shutil.copyfile)
            rename(f"{folder}/h{i}", hostile)
            run("index", f"{folder}/h{i}", "-o", f"{folder}/h{i}.steal")
            check_rows(http, folder, f"{folder}/h{i}.steal", export(f"{folder}/h{i}.steal", url)[1])

        # Error messages contain no password.
        for target, error in ((f"clickhouse://me:wr0ng@127.0.0.1:{http}", "clickhouse: Code"),
                             (f"clickhouse://127.0.0.1:{http}/nowhere", "nowhere"),
                             ("clickhouse://me:wr0ng@127.0.0.1:1/x", "127.0.0.1:1"),
                             ("clickhouse://me:wr0ng@[::1/x", "malformed"),
                             ("clickhouse://me:wr0ng%0d%0aX: y@127.0.0.1/x", "malformed")):
            p = run("export", history, "--to", target, status=None)
            check(p.returncode > 0 and error in p.stderr and "wr0ng" not in p.stderr, f"refused: {p.stderr.strip()}")
    finally:
        for s in servers:
            s.kill()
            s.wait()
