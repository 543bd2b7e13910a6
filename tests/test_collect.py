"""The shipped files for collecting from many hosts: the ssh script loses only the runs of hosts that fail, the systemd units
are valid, and both dashboards have the same panels.  `make check-servers` runs their queries."""
import glob
import json
import os
import re
import shutil
import subprocess

from e2e import DATA, PROGRAM, SOURCE, check, run, scratch, simulate, skip, table

COLLECT = os.path.join(SOURCE, "share", "collect")
TABLES = {"run", "steal", "gap"}

# Stands for ssh.  `stealscope record` on a host copies a recording.
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


def has_sqlite():
    line = next(x for x in run("export", "--targets").stdout.split("\n") if x.startswith("sqlite:"))
    return "not in this build" not in line


def check_collect(folder):
    os.mkdir(f"{folder}/bin")
    write(f"{folder}/bin/ssh", SSH)
    write(f"{folder}/bin/stealscope", STEALSCOPE % (os.path.abspath(os.path.join(DATA, "fibonacci")), PROGRAM))
    p = collect(folder, "good", "broken", "unreachable")
    failed = {line for line in p.stderr.splitlines() if line.endswith(": failed")}
    check(p.returncode != 0 and failed == {"broken: failed", "unreachable: failed"}, f"failed hosts are named: {failed}")
    check(sorted(os.listdir(f"{folder}/collected")) == ["good.steal"], "and leave no file")
    answer = run("fleet", f"sqlite:{folder}/fleet.db", "victims").stdout
    check("Debian" in answer, "the run of the other host is loaded")
    check(collect(folder, "good").returncode == 0 and run("fleet", f"sqlite:{folder}/fleet.db", "victims").stdout == answer,
          "repeated: no change")


def check_hostile(folder):
    """Names of hosts are not options of ssh, paths or shell code; a host that sends without end does not fill the disk."""
    os.makedirs(f"{folder}/bin")
    write(f"{folder}/bin/ssh", f"#!/bin/sh\nprintf '%s\\n' \"$*\" >>'{folder}/asked'\nexec cat /dev/zero\n")
    write(f"{folder}/bin/stealscope", f"#!/bin/sh\nexec '{PROGRAM}' \"$@\"\n")
    bad = ["-oProxyCommand=touch pwned", "-F", "../evil", "/tmp/evil", "a b", "a'b", 'a"b', "a\\b", "$(touch pwned)", "`touch pwned`",
           "a;touch pwned", "a\nb", "\033[2Jx", "", ".", "..", "*"]
    os.environ["LIMIT"] = "1"
    p = collect(folder, *bad, "endless")
    del os.environ["LIMIT"]
    check(p.returncode != 0 and p.stderr.count(": failed") == len(bad) + 1 and "\033" not in p.stderr, f"all fail: {p.stderr!r}")
    with open(f"{folder}/asked", encoding="utf-8") as f:
        asked = f.read()
    check(asked.count("BatchMode") == 1 and " endless " in asked, f"only the valid name is contacted: {asked}")
    check(sorted(os.listdir(folder)) == ["asked", "bin", "collected"] and os.listdir(f"{folder}/collected") == [] and
          not os.path.exists(f"{folder}/../evil.steal"), f"no files are left: {os.listdir(folder)}")
    check(os.stat(f"{folder}/collected").st_mode & 0o777 == 0o700, "the histories are private")


YEAR = 365 * 86400 * 10**9

# Each host has its own recording; `junk` sends a damaged history.
OWN = """#!/bin/sh
if [ "$1" = record ]; then
	exec cp -R '%s'/"$HOST" r
fi
'%s' "$@" || exit
[ "$HOST" != junk ] || [ "$1" != index ] || printf junk | dd of=h.steal bs=1 seek=4096 conv=notrunc 2>/dev/null
"""


def shift_clocks(traces, ns):
    """Changes the year of the host's wall clock, and so of its guests'."""
    for path in glob.glob(f"{traces}/*/kernel/metadata"):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        text, n = re.subn(r"(\toffset = )(\d+);", lambda m: f"{m[1]}{int(m[2]) + ns};", text)
        check(n == 1, f"{os.path.basename(os.path.dirname(os.path.dirname(path)))}: {ns // YEAR} years later")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


def rows_of_host(url, question, host):
    return [{k: v for k, v in r.items() if not k.startswith("day")} for r in table("fleet", url, question) if r["host"] == host]


def check_wrong(folder):
    """Hosts with wrong clocks and damaged files affect only their own runs."""
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
    check(p.returncode != 0 and failed == ["beyond", "empty", "junk"], f"failed hosts are named: {failed}")
    check({r["host"] for r in table("fleet", url, "victims")} == {"good", "better", "past", "future", "torn"}, "all others are loaded")
    check("torn" in {r["host"] for r in table("fleet", url, "warnings")}, "the run with truncated streams has warnings")
    days = {r["host"]: r["day_ts"] for r in table("fleet", url, "days")}
    now = int(days["good"])
    check(days["better"] == days["good"] and -51 * YEAR < int(days["past"]) - now < -49 * YEAR and
          79 * YEAR < int(days["future"]) - now < 81 * YEAR, f"the days follow each host's clock: {days}")
    for host in ("good", "better"):
        run("export", f"{folder}/collected/{host}.steal", "--to", f"sqlite:{folder}/{host}.db")
        for question in ("victims", "culprits", "gaps", "days"):
            check(rows_of_host(url, question, host) == rows_of_host(f"sqlite:{folder}/{host}.db", question, host) != [],
                  f"{host}: {question} as in a database of its own")
    shifted, right = (table("steal", h) for h in (f"{folder}/collected/past.steal", f"{folder}/right.steal"))
    check(shifted == right != [], "a wrong wall clock does not change the steal matrix, to the ns")
    before = table("fleet", url, "victims")
    check(collect(folder, "good", "past").returncode == 0 and table("fleet", url, "victims") == before, "repeated: no change")


def check_dashboards():
    shown = []
    for name in ("clickhouse", "postgresql"):
        with open(os.path.join(SOURCE, "share", "grafana", name + ".json"), encoding="utf-8") as f:
            dashboard = json.load(f)
        queries = [t["rawSql"] for p in dashboard["panels"] for t in p["targets"]]
        read = set(re.findall(r"\b(?:FROM|JOIN) (\w+)", " ".join(queries)))
        check(read == TABLES and all("${__from}" in q and "${__to}" in q for q in queries), f"{name}: the window's rows of {read}")
        shown.append([(p["title"], p["description"], p["gridPos"]) for p in dashboard["panels"]])
    check(shown[0] == shown[1] != [], f"both have the same {len(shown[0])} panels")


def check_units(folder):
    units = ("stealscope-record.timer", "stealscope-record.service", "stealscope-monitor.service")
    for unit in units:
        with open(os.path.join(COLLECT, unit), encoding="utf-8") as f:
            text = f.read()
        write(f"{folder}/{unit}", text.replace("=stealscope ", f"={PROGRAM} ").replace("man:", "https://"), 0o644)
    p = subprocess.run(["systemd-analyze", "verify", *(f"{folder}/{unit}" for unit in units)], capture_output=True, text=True, timeout=300, check=False)
    complaints = [line for line in p.stderr.splitlines() if "stealscope" in line and "://" not in line]
    check(not complaints, f"systemd accepts the units {complaints}")


with scratch() as folder:
    check_dashboards()
    if shutil.which("systemd-analyze"):
        check_units(folder)
    else:
        print("     not run: systemd-analyze is not installed")
    check_hostile(f"{folder}/hostile")
    if not has_sqlite():
        skip("this build has no SQLite; the dashboards were checked")
    check_collect(folder)
    check_wrong(f"{folder}/wrong")
