"""`record --requests` on this machine: requests of probes are the requests that the program marks itself, within the times of
the calls between both; nothing is left after the recording, nor after a recorder that was killed."""
import atexit
import contextlib
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from e2e import BUILD, PROGRAM, check, is_emulated, notes, run, scratch, skip, table, until

TRACEFS = "/sys/kernel/tracing"
# A copy: probes are those of all processes that execute a file, and other tests execute theirs.
SERVER = os.path.join(tempfile.mkdtemp(prefix="stealscope-server-"), "probe_server")
atexit.register(shutil.rmtree, os.path.dirname(SERVER), True)
shutil.copy(os.path.join(BUILD, "tests", "probe_server"), SERVER)
COUNT = 40
NEAR = 2_000_000  # at most between a mark and the probe beside it, if nothing takes the CPU, ns

TABLE = """requests: loop
programs: [probe_server_that_does_not_run]
paths: [%s]
probes:
  - {op: start, function: job_begin, key: arg1, label: arg2}
  - {op: resume, function: job_step, key: arg1}
  - {op: yield, function: job_pause}
  - {op: end, function: job_finish, key: arg1}
  - {op: drop, function: job_forget, key: arg1, optional: yes}
"""


def definitions(pid):
    """Returns the probes of a recorder in tracefs."""
    with open(f"{TRACEFS}/uprobe_events", encoding="utf-8") as f:
        return [line for line in f if f":stealscope_{pid}_" in line]


def instances(pid):
    return glob.glob(f"{TRACEFS}/instances/stealscope-{pid}-*")


def options(folder):
    with open(f"{folder}/loop.yaml", "w", encoding="utf-8") as f:
        f.write(TABLE % SERVER)
    return ["--requests", f"static={SERVER}:usdt:stealscope_test:request__start/request__done@arg1",
            "--requests", f"{SERVER}:handle_call", "--requests", f"{folder}/loop.yaml"]


def record(folder):
    """Returns the lines that the server has printed."""
    output = f"{folder}/server.txt"
    # Kernels before 6.10 do not copy marks to instances: then the server writes them to the recorder's instance.
    command = (f"[ -e {TRACEFS}/instances/stealscope-$PPID-*/options/copy_trace_marker ] || "
               f"export STEALSCOPE_MARKER=$(echo {TRACEFS}/instances/stealscope-$PPID-*/trace_marker); "
               f"exec {SERVER} {COUNT} >{output}")
    p = run("record", "--host-only", "--no-index", "--request-labels", *options(folder), "-o", f"{folder}/r", "--",
            "sh", "-c", command, status=None)
    if p.returncode and any(reason in p.stderr for reason in ("tracefs", "CONFIG_UPROBE_EVENTS", "lockdown")):
        skip(f"probes cannot be recorded here: {p.stderr.strip()}")
    if p.returncode:
        print(p.stderr)
    check(p.returncode == 0, "the recording succeeds")
    with open(output, encoding="utf-8") as f:
        return [line.split() for line in f]


def check_pairs(kind, probes, marks):
    """The nth request of the probes is the nth marked one: equal but for the time between a mark and the probe beside it."""
    probes.sort(key=lambda r: int(r["start"]))
    check(len(probes) == len(marks), f"{kind}: {len(probes)} requests by probes, {len(marks)} by marks")
    apart, wrong = [], []
    for p, m in zip(probes, marks):
        between = abs(int(m["start"]) - int(p["start"])) + abs(int(m["end"]) - int(p["end"]))
        apart.append(between)
        if not (int(p["start"]) <= int(m["start"]) and int(m["end"]) <= int(p["end"])) and kind != "handle_call":
            wrong.append((p, m))
        for column in ("provider_low_ns", "provider_high_ns", "executing"):
            # Beside start and end, a request of the loop has two more pairs of a mark and a probe.
            limit = between + (2 * NEAR if kind == "loop" and column != "provider_high_ns" else 0)
            if abs(int(p[column]) - int(m[column])) > limit:
                wrong.append((column, p, m))
    check(not wrong, f"{kind}: times and the provider's part are those of the marks {wrong[:2]}")
    apart.sort()
    check(apart[len(apart) // 2] < NEAR, f"{kind}: median distance of probes and marks {apart[len(apart) // 2]} ns, at most {apart[-1]} ns")


def check_requests(folder, lines):
    semaphore = [int(n) for kind, n in lines if kind == "semaphore"]
    check(semaphore == [COUNT], f"the semaphore of the static probe was set during the recording {semaphore}")
    rows = table("latency", "requests", f"{folder}/r", "--features")
    by_id = {r["request"]: r for r in rows}
    lanes = {r["request"] for r in rows if "-" in r["request"]}
    check(lanes == {"static-1", "handle_call-1", "handle_call-2", "loop-1", "loop-2"} or
          lanes == {"static-1", "handle_call-1", "loop-1", "loop-2"}, f"requests have a lane of their kind {sorted(lanes)}")
    missing = [(name, number) for name, number in lines if name in ("static", "call", "loop") and number not in by_id]
    check(not missing, f"requests that the server has marked, not recorded: {missing} "
                       f"{notes('latency', 'requests', f'{folder}/r') if missing else ''}")
    for kind, printed in (("static", "static"), ("handle_call", "call"), ("loop", "loop")):
        marks = [by_id[number] for name, number in lines if name == printed]
        check_pairs(kind, [r for r in rows if r["request"].startswith(f"{kind}-")], marks)
    loop = [r for r in rows if r["request"].startswith("loop-")]
    yielded = [int(r["latency_ns"]) - int(r["executing"]) for r in loop]
    check(min(yielded) > 1_000_000, f"a request that the loop has left is yielded for at least its sleep {min(yielded)} ns")
    failed = [n["text"] for n in notes("latency", "requests", f"{folder}/r") if n["code"] == "requests-dropped"]
    labels = {(r["request"].split("-")[0], r["label"]) for r in rows if "-" in r["request"]}
    check(labels == {("loop", "order ? of ?"), ("static", ""), ("handle_call", "")}, f"labels are texts without values {sorted(labels)}")
    check(len(failed) == 1 and f": {COUNT // 4};" in failed[0], f"calls that were left by longjmp are dropped {failed}")


def check_answers(folder):
    """The other answers about requests have those of probes."""
    report = json.loads(run("latency", "report", f"{folder}/r", "--format", "json").stdout)
    check(json.dumps(report).count("provider") > 0, "latency report has the requests")
    same = run("diff", f"{folder}/r", f"{folder}/r", "--all", "--format", "csv").stdout
    for kind in ("static", "handle_call", "loop"):
        check(f"/{kind}," in same, f"diff compares requests of the kind {kind}")
    script = f"{folder}/script"
    with open(script, "w", encoding="utf-8") as f:
        f.write(f"key R\n:screen {folder}/list\nkey <Enter>\nkey F\n:screen {folder}/flow\n")
    run("view", f"{folder}/r", "--glyphs", "ascii", "--color", "never", "--size", "160x40", "--script", script)
    with open(f"{folder}/list", encoding="utf-8") as f:
        shown = f.read()
    latencies = [r["latency_ns"] for r in json.loads(run("latency", "requests", f"{folder}/r", "--sort", "latency", "--format",
                                                         "json").stdout)["rows"]]
    check(latencies == sorted(latencies, reverse=True) and "loop-" in shown and "requests, by latency" in shown,
          "R lists the requests in the viewer, slowest first")
    with open(f"{folder}/flow", encoding="utf-8") as f:
        check("flow of host/" in f.read(), "F opens the flow of a request")
    with open(glob.glob(f"{folder}/r/host/about.yaml")[0], encoding="utf-8") as f:
        about = f.read()
    check(about.count(f"path: {SERVER}") == 3, "about.yaml lists the programs")


def check_refusals(folder):
    good = ["record", "--host-only", "--no-index", "-t", "100ms"]
    for spec, status, words in (
            (f"{SERVER}:no_such_function", 2, "no function no_such_function"),
            (f"{SERVER}:usdt:stealscope_test:request__start/other", 2, "no static probe stealscope_test:other"),
            (f"{SERVER}:usdt:stealscope_test:request__start/request__done@arg2", 2, "has no argument 2"),
            (f"{SERVER}:handle_call@arg1", 1, "matched by thread"), (f"{SERVER}:handle_call/job_finish@arg", 1, "argN"),
            (f"{SERVER}:usdt:stealscope_test", 1, "BEGIN/END"), ("/nothing/here:f", 2, "No such file"),
            (f"{folder}/loop.yaml:f", 2, "not a program"), ("postgres", 1, "no such table"), (f"{folder}/none.yaml", 2, "none.yaml")):
        p = run(*good, "-o", f"{folder}/refused", "--requests", spec, status=status)
        check(words in p.stderr and p.stderr.count("\n") <= 2 and not os.path.exists(f"{folder}/refused"), f"{spec}: {p.stderr.strip()}")
    table_text = TABLE % SERVER
    for text, words in (("requests: a b\n", "requests"), (table_text.replace("op: end", "op: ends"), "start, receive"),
                        (table_text.replace("label: arg2", "label: 2"), "a label is argN"),
                        (table_text.replace("key: arg1, optional", "label: arg1, optional"), "only a start"),
                        (table_text.replace("key: arg1", "key: retval"), "retval"), (table_text.replace("paths", "path"), "unknown key"),
                        (table_text.replace("- {op: end", "- {op: drop"), "op end"), ("", "empty")):
        with open(f"{folder}/bad.yaml", "w", encoding="utf-8") as f:
            f.write(text)
        p = run(*good, "-o", f"{folder}/refused", "--requests", f"{folder}/bad.yaml", status=2)
        check(words in p.stderr and "bad.yaml" in p.stderr, f"a wrong table is refused: {p.stderr.strip()}")


def check_others(folder):
    """An instance that is off and asks for marks takes them from all recorders that began before: none is in this state."""
    def read(path, file):
        try:
            with open(f"{path}/{file}", encoding="ascii") as f:
                return f.read().strip()
        except OSError:  # a kernel without the option, or the instance is gone
            return ""
    seen, wrong = 0, 0
    with subprocess.Popen([PROGRAM, "record", "--host-only", "--no-index", "-t", "300ms", "-o", f"{folder}/others"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
        while p.poll() is None:
            for path in instances(p.pid):
                state = [read(path, file) for file in ("options/copy_trace_marker", "tracing_on", "options/copy_trace_marker")]
                seen, wrong = seen + (state == ["1", "1", "1"]), wrong + (state == ["1", "0", "1"])
    check(wrong == 0, f"the recorder asked for marks {seen} times while it was on, {wrong} times while it was off")


def check_containers(folder):
    """A container that runs at the start is a machine of the recording."""
    def turns():
        return os.path.getsize(f"{folder}/turns") if os.path.exists(f"{folder}/turns") else 0
    loop = f"while sleep .02; do printf x >>{folder}/turns; done"
    with subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "sh", "-c", loop]) as p:
        until(turns, "the container runs", p)
        # Until it has started some threads.
        more = f'n=$(wc -c <{folder}/turns); until [ $(wc -c <{folder}/turns) -gt $((n + 3)) ]; do sleep .05; done; sleep .3'
        run("record", "--host-only", "--no-index", "-o", f"{folder}/c", "--", "sh", "-c", more)
        with open(f"/proc/{p.pid}/task/{p.pid}/children", encoding="ascii") as f:
            init = int(f.read())
        name = "pidns-" + os.readlink(f"/proc/{init}/ns/pid").split("[")[1].rstrip("]")
        p.kill()
    with open(f"{folder}/c/host/namespaces", encoding="ascii") as f:
        listed = [line.split()[0] for line in f if line.split()[2] == name[6:]]
    check(str(init) in listed, f"the recorder lists the threads in containers {listed}")
    rows = [r for r in table("threads", f"{folder}/c") if r["machine"] == name]
    check(any(int(r["tid"]) == init and r["name"] == "sh" for r in rows) and any(r["name"] == "sleep" for r in rows),
          f"{name}: its threads, and those that they started {sorted({r['name'] for r in rows})}")
    first = table("intervals", f"{folder}/c", f"/Containers/{name}/Threads/{init}/Status")[0]["value"]
    check(first in ("BLOCKED", "PREEMPTED", "RUNNING"), f"the first event of a listed thread implies its state before {first}")


def check_many_programs(folder):
    """A container with many programs of the server's name does not keep those outside from being recorded."""
    kind = "requests: k\nprograms: [probed]\npaths: [%s/probed]\nprobes:\n- {op: start, function: handle_call}\n- {op: end, return: handle_call}\n"
    with open(f"{folder}/k.yaml", "w", encoding="utf-8") as f:
        f.write(kind % folder)
    shutil.copy(SERVER, f"{folder}/probed")
    for i in range(70):
        os.makedirs(f"{folder}/copies/{i}")
        shutil.copy(shutil.which("sleep"), f"{folder}/copies/{i}/probed")
    script = f"for i in {folder}/copies/*; do $i/probed 60 & done; echo; wait"
    with subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "sh", "-c", script], stdout=subprocess.PIPE) as p:
        p.stdout.readline()
        run("record", "--host-only", "--no-index", "-t", "50ms", "--requests", f"{folder}/k.yaml", "-o", f"{folder}/many")
        p.kill()
    with open(f"{folder}/many/host/about.yaml", encoding="utf-8") as f:
        check(f"path: {folder}/probed\n" in f.read(), "the program outside of the container has probes")
    shutil.rmtree(f"{folder}/copies")


def start(folder, name):
    p = subprocess.Popen([PROGRAM, "record", "--host-only", "--no-index", *options(folder), "-t", "60s", "-o", f"{folder}/{name}"],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 120
    while time.monotonic() < end and len(os.listdir(folder)) and not os.path.exists(f"{folder}/{name}/host/pages"):
        time.sleep(.02)
    check(len(definitions(p.pid)) == 8 and len(instances(p.pid)) == 1, f"{name}: probes and an instance exist during the recording")
    return p


def gone(pid):
    end = time.monotonic() + 60
    while time.monotonic() < end and (definitions(pid) or instances(pid)):
        time.sleep(.05)
    return not definitions(pid) and not instances(pid)


def check_kills(folder):
    p = start(folder, "killed")
    p.kill()
    p.wait()
    check(gone(p.pid), "after kill -9 the watchdog removes probes and instance")
    p = start(folder, "killed-too")
    with open(f"/proc/{p.pid}/task/{p.pid}/children", encoding="ascii") as f:
        watchdogs = f.read().split()
    for child in watchdogs:
        os.kill(int(child), signal.SIGKILL)
    p.kill()
    p.wait()
    check(len(watchdogs) == 1 and len(definitions(p.pid)) == 8, "without the watchdog they stay")
    run("record", "--cleanup")
    check(gone(p.pid), "record --cleanup removes them")


@contextlib.contextmanager
def main_buffer_on():
    """Marks reach the recorder through the main buffer, which another tracer may have stopped."""
    switch = f"{TRACEFS}/tracing_on"
    with open(switch, encoding="ascii") as f:
        before = f.read()
    with open(switch, "w", encoding="ascii") as f:
        f.write("1")
    try:
        yield
    finally:
        with open(switch, "w", encoding="ascii") as f:
            f.write(before)


def main():
    if os.geteuid() != 0 or not os.access(f"{TRACEFS}/uprobe_events", os.W_OK):
        skip("probes need root and tracefs with uprobe_events")
    if is_emulated():
        skip("the program was built for another processor")
    if "cannot record" in run("record", "--check", status=None).stderr:
        skip("this build cannot record")
    with scratch() as folder, main_buffer_on():
        lines = record(folder)
        check_requests(folder, lines)
        check_answers(folder)
        check_refusals(folder)
        check_others(folder)
        if shutil.which("unshare"):
            check_containers(folder)
            check_many_programs(folder)
        check_kills(folder)
        shutil.rmtree(f"{folder}/r")
    return 0


if __name__ == "__main__":
    sys.exit(main())
