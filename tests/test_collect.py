"""What ships for collecting from many hosts: the ssh script costs no more than the hosts that fail, the units are sound,
and both dashboards show the same.  Their queries are run by `make check-servers`."""
import glob
import json
import os
import re
import shutil
import subprocess

from e2e import DATA, PROGRAM, SOURCE, check, run, scratch, simulate, table

COLLECT = os.path.join(SOURCE, "share", "collect")
TABLES = {"run", "steal", "gap"}

# A host is a folder; its `stealscope record` has recorded already.
SSH = """#!/bin/sh
while [ "$1" != --end ]; do case $1 in -n) shift ;; -o) shift 2 ;; *) break ;; esac; done
host=$1
shift
[ "$host" != unreachable ] || exit 255
HOST=$host exec sh -c "$*"
"""
STEALSCOPE = """#!/bin/sh
if [ "$1" = record ]; then
	[ "$HOST" != broken ] || exit 5
	cp -R '%s' r
else
	exec '%s' "$@"
fi
"""


def write(path, text, mode=0o755):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)


def collect(folder, *hosts):
    env = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}"}
    return subprocess.run(["sh", os.path.join(os.path.abspath(COLLECT), "collect.sh"), f"sqlite:{folder}/fleet.db", *hosts], cwd=folder,
                          env=env, capture_output=True, text=True, timeout=300)


def check_collect(folder):
    if "not in this build" in next(x for x in run("export", "--targets").stdout.split("\n") if x.startswith("sqlite:")):
        return
    os.mkdir(f"{folder}/bin")
    write(f"{folder}/bin/ssh", SSH)
    write(f"{folder}/bin/stealscope", STEALSCOPE % (os.path.abspath(os.path.join(DATA, "fibonacci")), PROGRAM))
    p = collect(folder, "good", "broken", "unreachable")
    failed = {line for line in p.stderr.splitlines() if line.endswith(": failed")}
    check(p.returncode != 0 and failed == {"broken: failed", "unreachable: failed"}, f"who failed is named: {failed}")
    check(sorted(os.listdir(f"{folder}/collected")) == ["good.steal"], "and leaves nothing")
    answer = run("fleet", f"sqlite:{folder}/fleet.db", "victims").stdout
    check("Debian" in answer, "the others are loaded")
    check(collect(folder, "good").returncode == 0 and run("fleet", f"sqlite:{folder}/fleet.db", "victims").stdout == answer,
          "again: nothing changes")


YEAR = 365 * 86400 * 10**9

# The same, of a host that has recorded something of its own; `junk` sends a history that was damaged on its way.
OWN = """#!/bin/sh
if [ "$1" = record ]; then
	exec cp -R '%s'/"$HOST" r
fi
'%s' "$@" || exit
[ "$HOST" != junk ] || [ "$1" != index ] || printf junk | dd of=h.steal bs=1 seek=4096 conv=notrunc 2>/dev/null
"""


def shift_clocks(traces, ns):
    """The host believes that it is another year; so do its guests, as it told them."""
    for path in glob.glob(f"{traces}/*/kernel/metadata"):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        text, n = re.subn(r"(\toffset = )(\d+);", lambda m: f"{m[1]}{int(m[2]) + ns};", text)
        check(n == 1, f"{os.path.basename(os.path.dirname(os.path.dirname(path)))} lives {ns // YEAR} years later")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


def of_host(url, question, host):
    return [{k: v for k, v in r.items() if not k.startswith("day")} for r in table("fleet", url, question) if r["host"] == host]


def check_wrong(folder):
    """A host whose clock is years off, and files that are broken, cost those runs and nobody else's."""
    if "not in this build" in next(x for x in run("export", "--targets").stdout.split("\n") if x.startswith("sqlite:")):
        return
    os.makedirs(f"{folder}/bin")
    write(f"{folder}/bin/ssh", SSH)
    write(f"{folder}/bin/stealscope", OWN % (folder, PROGRAM))
    hosts = ("good", "past", "future", "beyond", "torn", "junk", "empty", "better")
    for seed, host in enumerate(hosts):
        simulate(f"{folder}/{host}", "overcommit", "2", "--duration", "200ms", "--seed", str(seed + 1))
        for path in glob.glob(f"{folder}/{host}/*/kernel/metadata"):
            with open(path, encoding="utf-8") as f:
                text = f.read()
            with open(path, "w", encoding="utf-8") as f:
                f.write(re.sub(r'hostname = "hypervisor"', f'hostname = "{host}"', text))
    shutil.copytree(f"{folder}/past", f"{folder}/right")
    run("index", f"{folder}/right", "-o", f"{folder}/right.steal")
    shift_clocks(f"{folder}/past", -50 * YEAR)
    shift_clocks(f"{folder}/future", 80 * YEAR)
    shift_clocks(f"{folder}/beyond", 170 * YEAR)
    for stream in glob.glob(f"{folder}/torn/host/kernel/*_*"):
        os.truncate(stream, os.path.getsize(stream) // 2 + 7)
    shutil.rmtree(f"{folder}/empty/host")
    shutil.rmtree(f"{folder}/empty/guest-vm00")
    os.truncate(f"{folder}/empty/guest-vm01/kernel/metadata", 100)
    url = f"sqlite:{folder}/fleet.db"
    p = collect(folder, *hosts)
    failed = sorted(line.split(":")[0] for line in p.stderr.splitlines() if line.endswith(": failed"))
    check(p.returncode != 0 and failed == ["beyond", "empty", "junk"], f"who failed is named: {failed}")
    check({r["host"] for r in table("fleet", url, "victims")} == {"good", "better", "past", "future", "torn"}, "all others are there")
    check("torn" in {r["host"] for r in table("fleet", url, "doubtful")}, "what is broken is in doubt")
    days = {r["host"]: r["day_ts"] for r in table("fleet", url, "days")}
    now = int(days["good"])
    check(days["better"] == days["good"] and -51 * YEAR < int(days["past"]) - now < -49 * YEAR and
          79 * YEAR < int(days["future"]) - now < 81 * YEAR, f"the days are those of each host's clock: {days}")
    for host in ("good", "better"):
        run("export", f"{folder}/collected/{host}.steal", "--to", f"sqlite:{folder}/{host}.db")
        for question in ("victims", "thieves", "gaps", "days"):
            check(of_host(url, question, host) == of_host(f"sqlite:{folder}/{host}.db", question, host) != [],
                  f"{host}: {question} as if it were alone")
    shifted, right = (table("steal", h) for h in (f"{folder}/collected/past.steal", f"{folder}/right.steal"))
    check(shifted == right, "and who has a wrong clock knows who took what, to the ns")
    before = table("fleet", url, "victims")
    check(collect(folder, "good", "past").returncode == 0 and table("fleet", url, "victims") == before, "again: nothing changes")


def check_dashboards():
    shown = []
    for name in ("clickhouse", "postgresql"):
        with open(os.path.join(SOURCE, "share", "grafana", name + ".json"), encoding="utf-8") as f:
            dashboard = json.load(f)
        queries = [t["rawSql"] for p in dashboard["panels"] for t in p["targets"]]
        read = set(re.findall(r"\b(?:FROM|JOIN) (\w+)", " ".join(queries)))
        check(read == TABLES and all("${__from}" in q and "${__to}" in q for q in queries), f"{name}: within the window, from {read}")
        shown.append([(p["title"], p["description"], p["gridPos"]) for p in dashboard["panels"]])
    check(shown[0] == shown[1], f"both show the same {len(shown[0])} panels")


def check_units(folder):
    if not shutil.which("systemd-analyze"):
        return
    for unit in ("service", "timer"):
        with open(os.path.join(COLLECT, "stealscope-record." + unit), encoding="utf-8") as f:
            text = f.read()
        write(f"{folder}/stealscope-record.{unit}", text.replace("=stealscope ", f"={PROGRAM} ").replace("man:", "https://"), 0o644)
    p = subprocess.run(["systemd-analyze", "verify", f"{folder}/stealscope-record.timer", f"{folder}/stealscope-record.service"],
                       capture_output=True, text=True, timeout=60, check=False)
    ours = [line for line in p.stderr.splitlines() if "stealscope" in line and "://" not in line]
    check(not ours, f"systemd has nothing to say about the units {ours}")


with scratch() as folder:
    check_dashboards()
    check_collect(folder)
    check_wrong(f"{folder}/wrong")
    check_units(folder)
