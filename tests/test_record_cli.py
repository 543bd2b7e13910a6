"""`stealscope record` on a simulated host, with the eyes of a user: messages, from the recording to the culprit; exit
statuses; files that remain."""
import csv
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

import schema
from e2e import BUILD, PROGRAM, check, free_port, codes, document, is_sanitized, run, scratch, skip, table
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
    """Returns the pages and the number of events of one second from `begin` (ns) on, in which burn (99) preempts thread 310,
    vCPU 0 of web."""
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
          f"{' '.join(args)}: no instance of the tracer and no lock is left")
    return p


def check_verdict(tmp):
    p = attempt(tmp, "-t", "2.5s", "-o", "r", "web=none")
    check(p.stdout.startswith("r\nverdict: ") and "host/99 burn" in p.stdout.replace("\n ", ""),
          f"victim and culprit are named: {p.stdout}")
    check("recording 2.50 s" in p.stderr, f"progress is shown {p.stderr}")
    traces = document(os.path.join(tmp, "r"))["traces"]
    check([t["tracer"] for t in traces] == ["stealscope record"], "the recording can be read again")


def check_incomplete(tmp):
    p = attempt(tmp, "-t", "2.5s", "-o", "half", status=5)
    check("web: not recorded: " in p.stderr and "web=ssh:root@HOST" in p.stderr, f"reason and remedy {p.stderr}")
    check("host/99 burn" in p.stdout, "the verdict about the host is shown anyway")


def check_command(tmp):
    p = attempt(tmp, "-o", "command", "web=none", "--no-index", "--", "sh", "-c", "sleep 0.3; exit 3")
    check("command" in p.stderr and "status 3\n" in p.stderr, f"the exit status of the command {p.stderr}")


def check_hangup(tmp):
    """SIGHUP ends a recording, except under nohup."""
    # Only the shell gets the signal; its sleep may outlive it and must not hold the pipes that run() reads to their end.
    for action, command, last in ((signal.SIG_DFL, "sleep 200 >/dev/null 2>&1; exit 7", " MB\n"),
                                  (signal.SIG_IGN, "sleep 0.5; exit 7", "status 7\n")):
        p = attempt(tmp, "-o", "hangup", "web=none", "--no-index", "--", "sh", "-c", f"kill -HUP $PPID; {command}",
                    preexec_fn=lambda a=action: signal.signal(signal.SIGHUP, a))
        check(p.stdout == "hangup\n" and p.stderr.endswith(last), f"{action!r}: {p.stderr}")
        shutil.rmtree(os.path.join(tmp, "hangup"))


def check_then(tmp):
    p = attempt(tmp, "-t", "2.5s", "-o", "then", "web=none", "--then", "steal --format csv")
    check(p.stdout.startswith("then\nvictim,culprit,ns,share\n") and "\nweb,host," in p.stdout, f"--then {p.stdout}")
    p = attempt(tmp, "-t", "2.5s", "-o", "no", "web=none", "--then", "explain nobody", status=1)
    check("--then 'explain nobody' failed (" in p.stderr, f"a --then that fails {p.stderr}")
    p = attempt(tmp, "-t", "100ms", "-o", "bare", "web=none", "--no-index")
    check(p.stdout == "bare\n" and not os.path.exists(os.path.join(tmp, "bare", "stealscope.steal")), "--no-index")


def check_collected(tmp):
    """A host exports each of its recordings to a database that all hosts share."""
    fleet = os.path.join(tmp, "fleet")
    for name in ("first", "second"):
        p = attempt(tmp, "-t", "2.5s", "-o", name, "web=none", "--then", f"export --to csv:{fleet} --only run,steal_total")
        check(p.stdout.startswith(f"{name}\n") and "run_id" in p.stdout, f"--then export: {p.stdout}")
        again = run("export", os.path.join(tmp, name), "--to", f"csv:{fleet}", "--only", "run,steal_total").stdout
        check(again.split("run_id")[1] == p.stdout.split("run_id")[1], "a later export has the same run_id")
        stolen = sum(int(r["ns"]) for r in table("steal", os.path.join(tmp, name)))
        with open(f"{fleet}/steal_total/{again.split()[-1]}.csv", newline="", encoding="utf-8") as f:
            check(sum(int(r["ns"]) for r in csv.DictReader(f)) == stolen > 0, f"{stolen} ns")
    check(len(os.listdir(f"{fleet}/run")) == len(os.listdir(f"{fleet}/steal_total")) == 2, "two runs, each once")
    p = attempt(tmp, "-t", "2.5s", "-o", "third", "web=none", "--then", "export --to mysql://me:secret@h/x", status=1)
    check("secret" not in p.stdout + p.stderr and "--then 'export --to mysql://...' failed" in p.stderr and
          os.path.isdir(os.path.join(tmp, "third")), f"after a failed export the recording stays on the host: {p.stderr}")


def check_dry_run(tmp):
    p = attempt(tmp, "--check", "web=none")
    check(all(text in p.stdout for text in ("host", "web", "tracefs")), f"--check {p.stdout}")
    p = attempt(tmp, "--check", status=5)
    check("web: " in p.stdout and "web=ssh:root@HOST" in p.stdout, f"--check prints the remedy {p.stdout}")
    rows = schema.check_answer(attempt(tmp, "--check", "--format", "json", status=5).stdout)
    check([r["machine"] for r in rows] == ["host", "web"], f"--check as json: {rows}")
    check(sorted(os.listdir(tmp)) == ["bare", "command", "half", "no", "r", "root", "then"], "--check makes no recording")


def check_flights(tmp):
    # It outlasts the 10 s that it keeps by default.
    p = attempt(tmp, "--flight", "--keep", "1", "-o", "flight", "web=none", "--trigger", "exit(sleep 10.5)")
    folder = p.stdout.split("\n")[0]
    check(folder.startswith("flight/2") and os.path.isdir(os.path.join(tmp, folder)), f"the trigger saves the flight: {p.stdout}")
    check("exit(sleep 10.5): " in p.stderr and "host/99 burn" in p.stdout, "and the culprit is named")
    for args, error in ((["--trigger", "load>1"], "--trigger"),
                        (["--flight", "--keep", "x"], "not a number"), (["--flight", "--keep", "-1"], "not a number"),
                        (["-t", "soon"], "--time: not a duration: 'soon'"), (["--flight", "-t", "1ms"], "1ms"),
                        (["--flight", "--trigger", "gap(web)>x", "-o", "f"], "'gap(web)>x'")):
        p = attempt(tmp, *args, status=1)
        check(error in p.stderr and p.stderr.count("\n") == 1, f"{args}: {p.stderr}")


def check_full_disk(tmp):
    """A trigger that stays true does not fill the disk: the flight ends before, with a status and a reason, and each of its
    recordings is complete."""
    disk = os.path.join(tmp, "disk")
    os.mkdir(disk)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", disk], check=False, capture_output=True).returncode:
        print("     not run: a full disk needs the right to mount")
        return
    put(os.path.join(tmp, "root"), "proc/loadavg", "3.00 2.00 1.00 1/100 999\n")
    try:
        p = attempt(tmp, "--flight", "-t", "1s", "--keep", "1000", "-o", "disk/kept", "web=none", "--no-index", "--trigger", "load>0.1", status=5)
        kept = p.stdout.split()
        space = os.statvfs(disk)
        check(len(kept) > 1 and os.listdir(f"{disk}/kept") and space.f_bavail * space.f_frsize > 100000, f"{len(kept)} recordings, space is left")
        check(sorted(os.listdir(f"{disk}/kept")) == sorted(os.path.basename(k) for k in kept), "and no other directory")
        check(all(os.path.exists(os.path.join(tmp, k, "session.yaml")) for k in kept), "each is complete")
        check("disk" in p.stderr.splitlines()[-1], f"the reason: {p.stderr.splitlines()[-1]}")
    finally:
        subprocess.run(["umount", disk], check=True)


def check_monitor_flight(tmp):
    """A flight recorder that ends is seen in the metrics, and starts again."""
    root = os.path.join(tmp, "root")
    instances = os.path.join(root, "sys/kernel/tracing/instances")
    fill_buffers(instances)
    put(root, "proc/stat", "cpu 0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\n")
    put(root, "proc/loadavg", "0.00 0.00 0.00 1/100 999\n")
    port = free_port()
    monitor = subprocess.Popen([PROGRAM, "monitor", "--root", root, "--no-bpf", "-d", "0.5", "-l", f"127.0.0.1:{port}", "--trigger", "load>5",
                                "-o", os.path.join(tmp, "kept")], stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "LD_PRELOAD": LIBRARY, "INSTANCES": instances})

    def recorder():
        with open(f"/proc/{monitor.pid}/task/{monitor.pid}/children", encoding="ascii") as f:
            return f.read().split()

    def await_gauge(value, ended=lambda: False):
        for _ in range(1200):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=300) as answer:
                    if f"\nstealscope_flight {value}\n" in answer.read().decode():
                        return True
            except OSError:
                pass
            if ended():
                return False
            time.sleep(0.1)
        return False
    try:
        check(await_gauge(1) and len(recorder()) == 1, "the gauge shows that the flight recorder runs")
        killed = []
        while len(killed) < 6:  # it starts again after 1 s, then after 2 s, 4 s ...: on a busy machine a scrape takes longer
            killed.append(recorder()[0])
            os.kill(int(killed[-1]), signal.SIGKILL)
            if await_gauge(0, lambda: recorder() not in ([], killed[-1:])):
                break
        else:
            check(False, "the gauge shows that it ended")
        check(await_gauge(1) and recorder()[0] not in killed, "it shows that it ended; another one starts")
        monitor.terminate()
        errors = monitor.communicate(timeout=300)[1]
        check(monitor.returncode == 0 and "signal 9" in errors, f"the end is logged: {errors}")
        for _ in range(100):  # its watchdog removes what the killed recorder left
            if os.listdir(instances) == [".made"]:
                break
            time.sleep(0.1)
    finally:
        monitor.kill()


def check_flight_of_guest(tmp):
    p = attempt(tmp, "--flight", "--guest-only", "-t", "60s", "--keep", "1", "-o", "alone", "--trigger", "exit(sleep 1.5)")
    folder = os.path.join(tmp, p.stdout.split("\n")[0])
    guests = [name for name in os.listdir(folder) if name.startswith("guest-")]
    check(len(guests) == 1 and not os.path.exists(os.path.join(folder, "host")), f"a guest alone: {os.listdir(folder)}")
    with open(os.path.join(folder, guests[0], "about.yaml"), encoding="utf-8") as f:
        about = f.read()
    check("\nguest_only:\n" in about and "\nkept: 60000000000\n" in about, f"its description: {about}")
    check("no-steal-source" in codes("summary", folder), "the flight of a guest without a source is read")


def main():
    if is_sanitized():
        skip("sanitizers must be preloaded first, before instances.so")
    if "cannot record" in run("record", "--check", status=None).stderr:
        skip("this build cannot record")
    with scratch() as tmp:
        make_host(os.path.join(tmp, "root"))
        check_verdict(tmp)
        check_incomplete(tmp)
        check_command(tmp)
        check_hangup(tmp)
        check_then(tmp)
        check_dry_run(tmp)
        check_flights(tmp)
        check_full_disk(tmp)
        check_monitor_flight(tmp)
        check_flight_of_guest(tmp)
        check_collected(tmp)
    return 0


if __name__ == "__main__":
    sys.exit(main())
