"""`record --guest-requests`: the host finds the probes in programs of a guest and its shell defines them. The guest is a shell on
this machine, so that its probes are real; the host is simulated. Each call of the
program is a request."""
import glob
import os
import re
import shutil
import subprocess
import sys
import time

from e2e import PROGRAM, check, is_emulated, is_sanitized, run, scratch, skip, table, until
from test_record_hostile import environment, make_machine
from test_record_requests import COUNT, SERVER, TABLE, TRACEFS

GUEST = "env -u LD_PRELOAD {shell}"


def arguments(folder, shell, *more):
    with open(f"{folder}/loop.yaml", "w", encoding="utf-8") as f:
        f.write(TABLE % SERVER)
    return ["record", "--root", f"{folder}/root", "--clock", "mono", "--no-index", f"web=cmd:{GUEST.format(shell=shell)}", "db=none",
            "--guest-requests", f"static={SERVER}:usdt:stealscope_test:request__start/request__done@arg1",
            "--guest-requests", f"{SERVER}:handle_call", "--guest-requests", f"{folder}/loop.yaml", "--request-labels", *more]


def owned(names, folder):
    """Returns those instances and probes whose name has the PID of a process of this test, and those without a living process."""
    mine, dead = [], []
    for name in names:
        pid = re.search(r"stealscope[-_](?:guest-)?(\d+)[-_]", name).group(1)
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if f"INSTANCES={folder}/".encode() in f.read():
                    mine.append(name)
        except OSError:
            dead.append(name)
    return mine, dead


def remains(folder):
    with open(f"{TRACEFS}/uprobe_events", encoding="utf-8") as f:
        probes = [line for line in f if ":stealscope_" in line and (f" {SERVER}:" in line or "/exe:" in line)]
    return owned(probes + glob.glob(f"{TRACEFS}/instances/stealscope-guest-*"), folder)


def wait_until_clean(folder, what):
    end = time.monotonic() + 60
    while time.monotonic() < end and any(remains(folder)):  # those of others that ended are removed as well
        time.sleep(.1)
    check(not any(remains(folder)), f"{what}: no probe and no instance remains {remains(folder)}")


def record(folder, env, shell):
    output, target = f"{folder}/server.txt", f"{folder}/{os.path.basename(shell.split()[0])}"
    command = (f"for i in {TRACEFS}/instances/stealscope-guest-*; do p=${{i##*-guest-}}; "
               f"grep -qz '^INSTANCES={folder}/' /proc/${{p%%-*}}/environ && marker=$i/trace_marker; done; "
               f"STEALSCOPE_MARKER=$marker exec env -u LD_PRELOAD {SERVER} {COUNT} >{output}")
    p = run(*arguments(folder, shell, "-o", target, "--", "sh", "-c", command), env=env, status=None)
    check(p.returncode == 0, f"{shell}: the recording succeeds: {p.stderr}")
    check(p.stderr.count(": requests ") == 3 and f" probes in {SERVER} (does not run)" in p.stderr, f"it reports the probes: {p.stderr}")
    wait_until_clean(folder, shell)
    with open(output, encoding="utf-8") as f:
        return target, [line.split() for line in f]


def check_requests(target, lines):
    with open(f"{target}/guest-web/about.yaml", encoding="utf-8") as f:
        check(f.read().count(f"path: {SERVER}") == 3, "about.yaml lists the programs")
    semaphore = [int(n) for kind, n in lines if kind == "semaphore"]
    check(semaphore == [COUNT], f"the semaphore of the static probe was set during the recording {semaphore}")
    rows = [r for r in table("latency", "requests", target) if r["machine"] == "web"]
    for kind, printed in (("static", "static"), ("handle_call", "call"), ("loop", "loop")):
        mine = [r for r in rows if r["request"].startswith(f"{kind}-")]
        expected = sum(name == printed for name, _ in lines)
        check(len(mine) == expected, f"{kind}: {len(mine)} of {expected} requests")
        check({r["label"] for r in mine} == {"order ? of ?" if kind == "loop" else ""}, f"{kind}: labels")
        check(all(0 < int(r["latency_ns"]) < 10**9 for r in mine), f"{kind}: their latencies are plausible")


def check_running(folder, env):
    """A program that runs is found by its name, in any container, and also if its file was removed."""
    copy = f"{folder}/server_copy"
    shutil.copy(SERVER, copy)
    with subprocess.Popen([copy, "1000000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        os.unlink(copy)
        with open(f"{folder}/running.yaml", "w", encoding="utf-8") as f:
            f.write((TABLE % "/nothing").replace("probe_server_that_does_not_run", "server_copy"))
        p = run("record", "--root", f"{folder}/root", "--clock", "mono", "--no-index", "-t", "300ms", "-o", f"{folder}/running",
                f"web=cmd:{GUEST.format(shell='sh')}", "db=none", "--guest-requests", f"{folder}/running.yaml", env=env, status=None)
        check(p.returncode == 0 and f"4 probes in {copy}\n" in p.stderr, f"it is found: {p.stderr}")
        server.kill()
    rows = table("latency", "requests", f"{folder}/running")
    check(len(rows) > 2 and {r["machine"] for r in rows} == {"web"}, f"its requests are recorded: {len(rows)}")


def check_absent(folder, env):
    p = run("record", "--root", f"{folder}/root", "--clock", "mono", "--no-index", "-t", "200ms", "-o", f"{folder}/absent",
            f"web=cmd:{GUEST.format(shell='sh')}", "db=none", "--guest-requests", "/nothing/here:f", "--guest-requests",
            f"{SERVER}:no_such_function", env=env, status=None)
    check(p.returncode == 0 and "no program /nothing/here" in p.stderr and "no function no_such_function" in p.stderr,
          f"a guest without the program or function is recorded all the same: {p.stderr}")
    wait_until_clean(folder, "absent")
    p = run("record", "--guest-requests", "postgres", status=1)
    check("no such table" in p.stderr, f"a wrong table is refused: {p.stderr}")


def check_kill(folder, env):
    """The recorder is killed: its guest's script ends with its input, and removes everything."""
    p = subprocess.Popen([PROGRAM, *arguments(folder, "sh", "-t", "60s", "-o", f"{folder}/killed")], env={**os.environ, **env},
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: os.path.exists(f"{folder}/killed/guest-web/pages"), "it records", p)
    check(len(remains(folder)[0]) == 9, f"probes and an instance exist during the recording {remains(folder)}")
    p.kill()
    p.wait()
    wait_until_clean(folder, "kill -9")


def main():
    if os.geteuid() != 0 or not os.access(f"{TRACEFS}/uprobe_events", os.W_OK):
        skip("probes need root and tracefs with uprobe_events")
    if is_emulated() or is_sanitized():
        skip("the program was built for another processor, or with sanitizers, which must be preloaded first")
    if "cannot record" in run("record", "--check", status=None).stderr:
        skip("this build cannot record")
    with scratch() as folder:
        env = environment(make_machine(folder)[1])
        check_requests(*record(folder, env, "sh"))
        if shutil.which("busybox"):
            check_requests(*record(folder, env, "busybox sh"))
        check_running(folder, env)
        check_absent(folder, env)
        check_kill(folder, env)
    return 0


if __name__ == "__main__":
    sys.exit(main())
