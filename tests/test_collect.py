"""What ships for collecting from many hosts: the ssh script costs no more than the hosts that fail, the units are sound,
and both dashboards show the same.  Their queries are run by `make check-servers`."""
import json
import os
import re
import shutil
import subprocess

from e2e import DATA, PROGRAM, SOURCE, check, run, scratch

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
    check_units(folder)
