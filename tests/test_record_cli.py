"""`stealscope record` as a user sees it, on a made-up host: what it says, from the recording to the culprit; its exit
statuses; what it leaves."""
import csv
import os
import shutil
import signal
import sys
import time

import schema
from e2e import BUILD, PROGRAM, check, document, run, scratch, table
from ftrace import EVENTS, HEADER_EVENT, HEADER_PAGE, SYSTEM, Buffer, event_format, record

LIBRARY = os.path.join(BUILD, "tests", "instances.so")
STAT = "1 (a) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711" + " 0" * 20 + "\n"


def put(root, name, text):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())


def make_process(root, pid, cmdline, threads, links=()):
    put(root, f"proc/{pid}/cmdline", "\0".join(cmdline))
    put(root, f"proc/{pid}/comm", cmdline[0] + "\n")
    put(root, f"proc/{pid}/stat", STAT)
    for tid, name in threads.items():
        put(root, f"proc/{pid}/task/{tid}/comm", name + "\n")
        put(root, f"proc/{pid}/task/{tid}/stat", STAT)
    for fd, target in links:
        os.makedirs(os.path.join(root, f"proc/{pid}/fd"), exist_ok=True)
        os.symlink(target, os.path.join(root, f"proc/{pid}/fd/{fd}"))


def make_pages(begin):
    """Thread 310 is vCPU 0 of web, and burn (99) takes its CPU, in the second from `begin` on (ns)."""
    b, t, n = Buffer(), begin, 0
    while t < begin + 10**9:
        b.add(t, record("sched_switch", 99, prev_comm="burn", prev_pid=99, next_comm="CPU 0/KVM", next_pid=310))
        b.add(t + 5000, record("kvm_entry", 310, vcpu_id=0))
        b.add(t + 2_000_000, record("kvm_exit", 310, vcpu_id=0, exit_reason=64, isa=2))
        b.add(t + 2_005_000, record("sched_switch", 310, prev_comm="CPU 0/KVM", prev_pid=310, next_comm="burn",
                                    next_pid=99))
        t, n = t + 6_000_000, n + 4
    return b.bytes(), n


def make_host(root):
    tracing = "sys/kernel/tracing"
    put(root, "proc/meminfo", "MemTotal: 4000000 kB\nMemAvailable: 2000000 kB\n")
    put(root, "run/here", "")
    make_process(root, 300, ["qemu", "-name", "web"], {300: "qemu", 310: "CPU 0/KVM"},
                 [(14, "/dev/kvm"), (15, "anon_inode:kvm-vm"), (20, "anon_inode:kvm-vcpu:0")])
    make_process(root, 99, ["burn"], {99: "burn"})
    for name, text in (("trace_clock", "[local] global mono\n"), ("saved_cmdlines", ""), ("saved_tgids", ""),
                       ("events/header_page", HEADER_PAGE), ("events/header_event", HEADER_EVENT)):
        put(root, f"{tracing}/{name}", text)
    for name in EVENTS:
        put(root, f"{tracing}/events/{SYSTEM[name]}/{name}/format", event_format(name))
        put(root, f"{tracing}/instances/.made/events/{SYSTEM[name]}/{name}/enable", "0\n")
    for name in ("trace_clock", "tracing_on", "buffer_size_kb", "trace", "options/overwrite", "options/record-tgid"):
        put(root, f"{tracing}/instances/.made/{name}", "")
    return os.path.join(root, tracing, "instances")


def fill_buffers(instances):
    data, n = make_pages(time.monotonic_ns() + 10**9)
    put(instances, ".made/per_cpu/cpu0/trace_pipe_raw", data)
    put(instances, ".made/per_cpu/cpu0/stats", f"entries: {n}\noverrun: 0\ncommit overrun: 0\nbytes: {len(data)}\n"
        "dropped events: 0\nread events: 0\n")


def attempt(tmp, *args, status=0, **more):
    root = os.path.join(tmp, "root")
    instances = os.path.join(root, "sys/kernel/tracing/instances")
    fill_buffers(instances)
    p = run("record", "--root", root, "--clock", "mono", *args, status=status, cwd=tmp,
            env={"LD_PRELOAD": LIBRARY, "INSTANCES": instances}, **more)
    check(os.listdir(instances) == [".made"] and os.listdir(os.path.join(root, "run", "stealscope")) == [],
          f"{' '.join(args)}: nothing is left of it")
    return p


def check_verdict(tmp):
    p = attempt(tmp, "-t", "2.5s", "-o", "r", "web=none")
    check(p.stdout.startswith("r\nweb/vCPU0, ") and "delayed it most was host/99 burn" in p.stdout.replace("\n ", ""),
          f"the culprit is named: {p.stdout}")
    check("recording 2.50 s" in p.stderr, f"and what it does is said {p.stderr}")
    traces = document(os.path.join(tmp, "r"))["traces"]
    check([t["tracer"] for t in traces] == ["stealscope record"], "the recording can be looked at again")


def check_incomplete(tmp):
    p = attempt(tmp, "-t", "2.5s", "-o", "half", status=5)
    check("web: not recorded: no way into it is known (say one: web=ssh:root@HOST" in p.stderr, f"with reason and cure {p.stderr}")
    check("host/99 burn" in p.stdout, "what is there is shown all the same")


def check_command(tmp):
    p = attempt(tmp, "-o", "command", "web=none", "--no-index", "--", "sh", "-c", "sleep 0.3; exit 3")
    check("stealscope: the command ended with status 3\n" in p.stderr, f"how the command ended {p.stderr}")


def check_hangup(tmp):
    """A terminal that hangs up ends it, but not one begun by nohup."""
    # The sleep may outlive the shell, which alone is told to end: it must not hold the pipes that we read until they are closed.
    for how, command, said in ((signal.SIG_DFL, "sleep 200 >/dev/null 2>&1; exit 7", " MB\n"),
                               (signal.SIG_IGN, "sleep 0.5; exit 7", "stealscope: the command ended with status 7\n")):
        p = attempt(tmp, "-o", "hangup", "web=none", "--no-index", "--", "sh", "-c", f"kill -HUP $PPID; {command}",
                    preexec_fn=lambda h=how: signal.signal(signal.SIGHUP, h))
        check(p.stdout == "hangup\n" and p.stderr.endswith(said), f"{how!r}: {p.stderr}")
        shutil.rmtree(os.path.join(tmp, "hangup"))


def check_then(tmp):
    p = attempt(tmp, "-t", "2.5s", "-o", "then", "web=none", "--then", "steal --format csv")
    check(p.stdout.startswith("then\nvictim,thief,ns,share\n") and "\nweb,host," in p.stdout, f"--then {p.stdout}")
    p = attempt(tmp, "-t", "2.5s", "-o", "no", "web=none", "--then", "explain nobody", status=1)
    check("--then 'explain nobody' failed (the recording is there" in p.stderr, f"a --then that fails {p.stderr}")
    p = attempt(tmp, "-t", "100ms", "-o", "bare", "web=none", "--no-index")
    check(p.stdout == "bare\n" and not os.path.exists(os.path.join(tmp, "bare", "stealscope.steal")), "--no-index")


def check_collected(tmp):
    """A host records, and loads what it found: run after run, into what all hosts share."""
    fleet = os.path.join(tmp, "fleet")
    for name in ("first", "second"):
        p = attempt(tmp, "-t", "2.5s", "-o", name, "web=none", "--then", f"export --to csv:{fleet} --only run,taken")
        check(p.stdout.startswith(f"{name}\n") and "run_id" in p.stdout, f"--then export: {p.stdout}")
        again = run("export", os.path.join(tmp, name), "--to", f"csv:{fleet}", "--only", "run,taken").stdout
        check(again.split("run_id")[1] == p.stdout.split("run_id")[1], "by hand it is the same run")
        told = sum(int(r["ns"]) for r in table("steal", os.path.join(tmp, name)))
        with open(f"{fleet}/taken/{again.split()[-1]}.csv", newline="", encoding="utf-8") as f:
            check(sum(int(r["ns"]) for r in csv.DictReader(f)) == told > 0, f"{told} ns")
    check(len(os.listdir(f"{fleet}/run")) == len(os.listdir(f"{fleet}/taken")) == 2, "two runs, each once")
    p = attempt(tmp, "-t", "2.5s", "-o", "third", "web=none", "--then", "export --to mysql://me:secret@h/x", status=1)
    check("secret" not in p.stdout + p.stderr and "--then 'export --to mysql://...' failed" in p.stderr and
          os.path.isdir(os.path.join(tmp, "third")), f"what cannot be loaded stays on the host: {p.stderr}")


def check_look(tmp):
    p = attempt(tmp, "--check", "web=none")
    check("host" in p.stdout and "tracefs" in p.stdout and "host's side" in p.stdout, f"--check {p.stdout}")
    p = attempt(tmp, "--check", status=5)
    check("web: no way into it is known (say one: web=ssh:root@HOST" in p.stdout, f"--check says what to do {p.stdout}")
    rows = schema.check_answer(attempt(tmp, "--check", "--format", "json", status=5).stdout)
    check([r["machine"] for r in rows] == ["host", "web"], f"--check as json: {rows}")
    check(sorted(os.listdir(tmp)) == ["bare", "command", "half", "no", "r", "root", "then"], "and makes nothing")


def check_flights(tmp):
    p = attempt(tmp, "--flight", "-t", "60s", "--keep", "1", "-o", "flight", "web=none", "--trigger", "exit(sleep 2.5)")
    folder = p.stdout.split("\n")[0]
    check(folder.startswith("flight/2") and os.path.isdir(os.path.join(tmp, folder)), f"a flight is kept: {p.stdout}")
    check("exit(sleep 2.5): the last seconds are kept" in p.stderr and "host/99 burn" in p.stdout, "and looked at")
    for args, said in ((["--trigger", "load>1"], "--trigger and --keep are of flights"),
                       (["--flight", "--keep", "x"], "not a number"), (["--flight", "--keep", "-1"], "not a number"),
                       (["-t", "soon"], "--time: not a duration: 'soon'"), (["--flight", "-t", "1ms"], "a flight cannot keep 1ms"),
                       (["--flight", "--trigger", "gap(web)>x", "-o", "f"], "'gap(web)>x' is none")):
        p = attempt(tmp, *args, status=1)
        check(said in p.stderr and p.stderr.count("\n") == 1, f"{args}: {p.stderr}")


def main():
    with open(PROGRAM, "rb") as f:
        if b"__asan_init" in f.read():
            return 77  # sanitizers want to be loaded first
    if "cannot record" in run("record", "--check", status=None).stderr:
        return 77
    with scratch() as tmp:
        make_host(os.path.join(tmp, "root"))
        check_verdict(tmp)
        check_incomplete(tmp)
        check_command(tmp)
        check_hangup(tmp)
        check_then(tmp)
        check_look(tmp)
        check_flights(tmp)
        check_collected(tmp)
    return 0


if __name__ == "__main__":
    sys.exit(main())
