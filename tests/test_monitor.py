"""stealscope monitor: metrics that agree with schedstat, counters that only grow, bad clients, signals."""
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

from e2e import PROGRAM, SOURCE, check, free_port, run, scratch, table, waited

SPIN = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True:\n    pass\n"


def scrape(port):
    """Returns the samples of /metrics, and checks the form of each line."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=300) as answer:
        text = answer.read().decode()
    check(text.endswith("# EOF\n") and "openmetrics" in answer.headers["Content-Type"], "the answer is complete")
    samples = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            m = re.fullmatch(r'([a-z_]+(?:\{(?:[a-z]+="(?:[^"\\]|\\.)*",?)+\})?) ([0-9.]+)', line)
            check(m is not None, f"a sample is well formed: {line}") if m is None else None
            samples[m.group(1)] = float(m.group(2))
    for name in {re.sub(r"_total$", "", s.split("{")[0]) for s in samples}:
        check(f"# HELP {name} " in text and f"# TYPE {name} " in text, f"{name} has a type and a description")
    return samples


def wait_for_periods(port, n):
    for _ in range(240):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=300) as answer:
                found = re.search(r"^stealscope_periods_total (\d+)$", answer.read().decode(), re.M)
                if int(found.group(1)) >= n:
                    return
        except OSError:  # the program is not yet loaded
            pass
        time.sleep(0.5)
    check(False, f"{n} periods pass")


def sum_of(samples, family, label=""):
    return sum(v for k, v in samples.items() if k.startswith(family) and label in k)


def check_query(query, labels_of):
    """Checks a PromQL query against {metric: its labels} of a scrape."""
    metrics = re.findall(r"\b(stealscope_[a-z_]+)(\{[^}]*\})?", query)
    known = {"instance"}
    for name, selector in metrics:
        check(name in labels_of, f"the metric {name} exists") if name not in labels_of else None
        known |= labels_of[name]
        wrong = set(re.findall(r"([a-z]+)(?:=~|=|!=)", selector)) - labels_of[name] - {"instance"}
        check(not wrong, f"{name} has the labels of {selector}") if wrong else None
    grouped = {label.strip() for by in re.findall(r"\bby \(([^)]*)\)", query) for label in by.split(",")}
    return bool(metrics) and grouped <= known


def check_boards(folder, samples):
    """The shipped dashboard and alerts use metrics and labels that exist."""
    with open(os.path.join(SOURCE, "man", "stealscope-monitor.1"), encoding="utf-8") as f:
        documented = re.findall(r"^\.It Li (stealscope_[a-z_]+)(?: No \{ ([^}]*) \})?$", f.read(), re.M)
    labels_of = {name: {label.strip() for label in labels.split(",") if label.strip()} for name, labels in documented}
    wrong = [k for k in samples if labels_of.get(k.split("{")[0]) != set(re.findall(r'([a-z]+)="', k))]
    check(not wrong, f"each metric is documented with its labels {wrong[:3]}")
    with open(os.path.join(SOURCE, "share", "grafana", "prometheus.json"), encoding="utf-8") as f:
        board = json.load(f)
    queries = [t["expr"] for p in board["panels"] for t in p["targets"]]
    variables = [v["query"]["query"] for v in board["templating"]["list"] if v["type"] == "query"]
    check(len(queries) >= 9 and all(check_query(q, labels_of) for q in queries + variables), f"dashboard: {len(queries)} queries")
    rules = os.path.join(SOURCE, "share", "prometheus", "stealscope.rules.yml")
    with open(rules, encoding="utf-8") as f:
        text = f.read()
    queries = re.findall(r"^ +expr: (.*)$", text, re.M)
    check(len(queries) >= 8 and all(check_query(q, labels_of) for q in queries), f"alerts: {len(queries)} queries")
    try:
        import yaml
        parsed = [r["expr"] for g in yaml.safe_load(text)["groups"] for r in g["rules"]]
        check(parsed == queries, "the alerts are YAML")
    except ImportError:
        print("     not run: Python has no module yaml")
    if not shutil.which("promtool"):
        print("     not run: promtool is not installed")
        return
    with open(os.path.join(SOURCE, "tests", "prometheus_rules.yml"), encoding="utf-8") as f:
        cases = f.read().replace("RULES", rules)
    with open(f"{folder}/cases.yml", "w", encoding="utf-8") as f:
        f.write(cases)
    p = subprocess.run(["promtool", "test", "rules", f"{folder}/cases.yml"], capture_output=True, text=True, timeout=300, check=False)
    check(p.returncode == 0, f"each alert fires: {p.stdout}{p.stderr}")


def check_rows(folder, pid):
    """Rows of the monitor in a database: as many periods as passed, with culprits that add up; written again after a failure."""
    database, lacking = f"sqlite:{folder}/live.db", f"{folder}/later"
    for target in (database, f"sqlite:{lacking}/live.db"):
        port = free_port()
        p = subprocess.Popen([PROGRAM, "monitor", "-l", f"127.0.0.1:{port}", "-d", "0.5", "--pid", str(pid), "--to", target],
                             stderr=subprocess.PIPE, text=True)
        wait_for_periods(port, 4)
        p.send_signal(signal.SIGHUP)  # writes the rows
        wait_for_periods(port, 8)
        if target != database:
            os.mkdir(lacking)
        p.terminate()
        notes = p.communicate(timeout=300)[1]
        check(p.returncode == 0, f"{target}: ends with status 0")
    check("database:" in notes and "rows are written again" in notes, f"a database that is missing for a while: {notes}")
    for target in (database, f"sqlite:{lacking}/live.db"):
        db = sqlite3.connect(target[len("sqlite:"):])
        periods, ran, stolen = db.execute("SELECT COUNT(DISTINCT ts), SUM(ran), SUM(stolen) FROM live_state").fetchone()
        taken = db.execute("SELECT COALESCE(SUM(ns), 0) FROM live_steal").fetchone()[0]
        check(periods >= 4 and ran > 0, f"{periods} periods, ran {ran} ns, stolen {stolen} ns")
        check(taken == 0 or abs(taken - stolen) <= 1000, f"culprits took {taken} of {stolen} ns")
        rows = table("fleet", target, "live")
        check(sum(int(r["lost_ns"]) for r in rows) == taken, f"fleet: who takes from whom: {len(rows)} rows")
    run("monitor", "--to", "folded:x", status=1)
    run("monitor", "--to", "nosuch:x", status=1)


def check_clients(port, monitor):
    """Silent and slow clients keep nobody out; requests are refused with the status that says why."""
    def ask(request, address="127.0.0.1"):
        with socket.create_connection((address, port), timeout=300) as s:
            s.sendall(request)
            answer = b""
            while part := s.recv(65536):
                answer += part
        return answer
    stop = threading.Event()

    def drip():
        while not stop.is_set():
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
                    for c in b"GET /metrics HTTP/1.1\r\nX: " + b"y" * 1000:
                        s.sendall(bytes((c,)))
                        if stop.wait(0.2):
                            return
            except OSError:
                pass
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(80)]
    slow = [threading.Thread(target=drip, daemon=True) for _ in range(40)]
    for t in slow:
        t.start()
    times = []
    for _ in range(5):
        begin = time.monotonic() - waited(monitor)
        check(b" 200 OK" in ask(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"), "a scrape is answered")
        times.append(time.monotonic() - waited(monitor) - begin)  # without what other programs have taken
        time.sleep(0.3)
    stop.set()
    for t in slow:
        t.join()
    check(sorted(times)[2] < 1, f"beside 80 silent and 40 slow clients: {[round(t, 3) for t in times]} s")
    for s in idle:
        s.close()
    for host, status in (("localhost", 200), (f"localhost:{port}", 200), (f"127.0.0.1:{port}", 200), ("[::1]:80", 200), ("LOCALHOST", 200),
                         ("evil.example", 403), (f"evil.example:{port}", 403), ("localhost.evil.example", 403), ("127.0.0.1.evil.example", 403),
                         ("127.evil", 403), (" ", 200)):
        answer = ask(f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        check(f" {status} ".encode() in answer.split(b"\r\n")[0], f"Host: {host!r}: {answer[:30]}")
    check(b" 200 " in ask(b"GET /metrics HTTP/1.0\r\n\r\n")[:20], "no Host")
    check(b" 431 " in ask(b"GET /metrics HTTP/1.1\r\nX: " + b"y" * 5000)[:20], "long headers")
    check(b" 405 " in ask(b"POST /metrics HTTP/1.1\r\n\r\n")[:20], "another method")


def main():
    cpu, port = str(max(os.sched_getaffinity(0))), free_port()
    hogs = [subprocess.Popen([sys.executable, "-c", SPIN, cpu]) for _ in range(2)]
    monitor = subprocess.Popen([PROGRAM, "monitor", "-l", f"127.0.0.1:{port}", "-d", "1", "--pid", str(hogs[0].pid)],
                               stderr=subprocess.PIPE, text=True)
    try:
        wait_for_periods(port, 2)
        first = scrape(port)
        idle = socket.create_connection(("127.0.0.1", port))
        idle.sendall(b"GET /met")  # a client that never ends its request
        check(sum_of(first, "stealscope_process_seconds_total", 'state="ran"') > 0, "the victim ran")
        wait_for_periods(port, 4)
        second = scrape(port)
        check(all(second.get(k, -1) >= v for k, v in first.items() if "_total" in k), "counters only grow")
        check(not [k for k in second if re.search(rf"\b{hogs[0].pid}\b", k)], "no label contains a PID")
        stolen = sum_of(second, "stealscope_process_seconds_total", 'state="stolen"')
        check(stolen > 0.3, f"it lost time ({stolen:.3f} s)")
        if second["stealscope_bpf"]:
            group = re.search(r'stealscope_process_seconds_total(\{)group(="[^"]*",)', "\n".join(second)).expand(r"\1machine\2")
            culprits = sum_of(second, "stealscope_stolen_seconds_total", group)  # there may be VMs of other tests
            check(abs(culprits - stolen) < 1e-3, f"the culprits add up to it: {culprits:.6f} of {stolen:.6f} s")
            with scratch() as folder:
                check_boards(folder, second)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=300) as page:
                check(b'href="/metrics"' in page.read() and "html" in page.headers["Content-Type"], "the index leads to the metrics")
            urllib.request.urlopen(f"http://127.0.0.1:{port}/other", timeout=300)
            check(False, "other paths do not exist")
        except urllib.error.HTTPError as e:
            check(e.code == 404, "other paths do not exist")
        check_clients(port, monitor.pid)
        monitor.send_signal(signal.SIGHUP)
        time.sleep(1)
        check(monitor.poll() is None, "SIGHUP does not end it")
        idle.close()
        monitor.terminate()
        check(monitor.wait(timeout=300) == 0, "SIGTERM ends it with status 0")
        check("lost" in monitor.stderr.read(), "the victim is logged")
    finally:
        for p in [*hogs, monitor]:
            p.kill()
    run("monitor", "--listen", "nonsense", status=1)
    run("monitor", "--trigger", "gap(web)>1ms", status=1)
    if "built without" in run("monitor", "--to", "sqlite:x", "--listen", "nonsense", status=1).stderr:
        print("     built without SQLite: rows are not checked")
        return
    with scratch() as folder:
        hogs = [subprocess.Popen([sys.executable, "-c", SPIN, cpu]) for _ in range(2)]
        try:
            check_rows(folder, hogs[0].pid)
        finally:
            for p in hogs:
                p.kill()


if __name__ == "__main__":
    main()
