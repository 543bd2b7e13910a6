"""Names that tenants choose for their VMs, in `monitor` and `top`: the metrics are valid for Prometheus, each VM keeps its own
counters, and every output is UTF-8."""
import csv
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import time
import urllib.request

from e2e import PROGRAM, check, free_port, run, scratch
from test_record_cli import make_process, put

LONG = "a" * 200
NAMES = ["web", "xx" + "ä" * 40, "yy" + "ä" * 100, "中" * 31 + "a", "中" * 80, LONG + "-one", LONG + "-two", LONG[:95], LONG[:96], LONG[:94],
         'q"b\\n\x1b[31m\r\n<script>', b"bad\xff\xfe\xc3", "bidi\u202eevil\u2066", "=cmd|' /C calc'!A0", "other", "host", "é" * 63, "ä" * 47 + "a"]


def make_host(root):
    """Makes a host on which each VM has one vCPU that ran 1 s more than the VM before it."""
    put(root, "proc/stat", "cpu 0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\n")
    for i, name in enumerate(NAMES):
        pid = 300 + 100 * i
        make_process(root, pid, ["qemu", "-name", "x"], {pid: "qemu", pid + 10: "CPU 0/KVM"},
                     [(14, "/dev/kvm"), (15, "anon_inode:kvm-vm"), (20, "anon_inode:kvm-vcpu:0")])
        put(root, f"proc/{pid}/cmdline", b"qemu\0-name\0" + (name if isinstance(name, bytes) else name.encode()) + b"\0")
        put(root, f"proc/{pid}/task/{pid + 10}/stat",
            f"{pid + 10} (CPU 0/KVM) R 1 1 1 0 -1 0 0 0 0 0 100 100 0 0 20 0 1 0 4711" + " 0" * 16 + " 0 1 2\n")
        advance(root, i, 0)


def advance(root, i, ns):
    pid = 300 + 100 * i
    put(root, f"proc/{pid}/task/{pid + 10}/schedstat", f"{10**9 + ns} 500000000 10\n")


def scrape(port):
    for _ in range(1200):
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=300).read()
        except OSError:
            time.sleep(0.1)
    return None


def ran_of(text):
    return {m[1]: float(m[2]) for m in re.finditer(r'^stealscope_vcpu_seconds_total\{machine="((?:[^"\\]|\\.)*)",vcpu="0",state="ran"\} (\S+)$',
                                                   text, re.M)}


def check_scrape(root, folder):
    port = free_port()
    database = [] if "without libsqlite3" in run("--version").stdout else ["--to", f"sqlite:{folder}/live.db"]
    monitor = subprocess.Popen([PROGRAM, "monitor", "--no-bpf", "--root", root, "-l", f"127.0.0.1:{port}", "-d", "0.5", *database],
                               stderr=subprocess.PIPE)
    before = ran_of(scrape(port).decode())
    time.sleep(1)
    for i in range(len(NAMES)):
        advance(root, i, (i + 1) * 10**6)
    for _ in range(1200):
        text = scrape(port).decode()  # fails if it is not UTF-8
        if sum(ran_of(text).values()) - sum(before.values()) >= 0.001 * sum(range(1, len(NAMES) + 1)) - 1e-6:
            break
        time.sleep(0.1)
    ran = ran_of(text)
    check(len(ran) == len(NAMES), f"{len(ran)} of {len(NAMES)} VMs have counters of their own: {sorted(ran)}")
    steps = sorted(round(1000 * (v - before.get(k, 0))) for k, v in ran.items())
    check(steps == list(range(1, len(NAMES) + 1)), f"each VM ran 1 ms more than another: {steps}")
    check(not any(ord(c) < 32 for c in text.replace("\n", "")), "no control characters")
    if shutil.which("promtool"):
        p = subprocess.run(["promtool", "check", "metrics"], input=re.sub("(?m)^# EOF\n", "", text), capture_output=True, text=True, check=False)
        check("invalid" not in p.stderr, f"promtool: {p.stderr[:300]}")
    else:
        print("     not run: promtool is not installed")
    monitor.terminate()
    errors = monitor.communicate(timeout=300)[1].decode()
    check(monitor.returncode == 0, f"ends with status 0: {errors}")
    if database:
        db = sqlite3.connect(f"{folder}/live.db")
        machines = {m for m, in db.execute("SELECT DISTINCT machine FROM live_state")}
        check(machines == {m.replace('\\\\', '\\').replace('\\"', '"') for m in ran}, "the rows of the database have the same names")


def check_top(root):
    for form in ("text", "csv", "json"):
        p = subprocess.run([PROGRAM, "top", "-b", "--no-bpf", "--root", root, "-d", "0.2", "--format", form], capture_output=True, timeout=300,
                           check=False)
        text = p.stdout.decode()  # fails if it is not UTF-8
        check(p.returncode == 0 and not any(ord(c) < 32 and c not in "\r\n" for c in text), f"top -b --format {form}")
        if form == "csv":
            rows = list(csv.DictReader(io.StringIO(text)))
            column = next(c for c in rows[0] if c in ("machine", "vm", "victim"))
            check(len({r[column] for r in rows}) >= len(NAMES), f"{len(rows)} rows of different VMs")
            check({(r["waits"], r["longest_ns"]) for r in rows} == {("", "")}, "waits are unknown without BPF")
        if form == "json":
            json.loads(text)


def main():
    with scratch() as folder:
        root = os.path.join(folder, "root")
        make_host(root)
        check_scrape(root, folder)
        check_top(root)


if __name__ == "__main__":
    main()
