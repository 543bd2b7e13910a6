"""`stealscope record` in dom0 of a Xen host: xentrace and xl are replaced by programs of this test, tracefs by instances.so."""
import glob
import os
import shutil
import signal
import subprocess
import sys
import time

import xentrace
from e2e import PROGRAM, check, document, is_sanitized, joined, run, scratch, skip, table
from ftrace import EVENTS, HEADER_EVENT, HEADER_PAGE, SYSTEM, Buffer, event_format, record
from test_record_cli import LIBRARY, put
from xentrace import BLOCKED, IDLE, RUNNABLE

INFO = "host : xen0\ncpu_mhz                : 1000.000\nxen_version            : 4.17.7\nxen_scheduler          : credit\n"
LIST = ("Name                                        ID   Mem VCPUs\tState\tTime(s)\n"
        "Domain-0                                     0   768     1     r-----     218.3\n"
        "web server                                   1   256     1     -b----      81.5\n"
        "db                                           2   256     1     ------      35.2\n")
CAPS = ("Name                                ID Weight  Cap\nDomain-0                             0    256    0\n"
        "web server                           1    256    0\ndb                                   2    256   40\n")
XL = """#!/bin/sh
cd "$FAKE_XEN" || exit 1
cat "xl-$1"
"""
XENTRACE = """#!/bin/sh
echo "$@" >"$FAKE_XEN/arguments"
trap 'echo off >"$FAKE_XEN/state"; exit 0' TERM
trap : INT
if [ -e "$FAKE_XEN/refuses" ]; then echo "xentrace: cannot map the buffers" >&2; exit 1; fi
for out; do :; done
cat "$FAKE_XEN/records" >"$out"
echo on >"$FAKE_XEN/state"
while [ ! -e "$FAKE_XEN/ends" ]; do sleep 0.05; done
echo off >"$FAKE_XEN/state"
echo "xentrace: out of disk space" >&2
exit 1
"""


def make_program(path, text):
    put(os.path.dirname(path), os.path.basename(path), text)
    os.chmod(path, 0o755)


def make_dom0(tmp):
    """db has the only pCPU of web server for 400 us."""
    root, tracing, fake = f"{tmp}/root", "sys/kernel/tracing", f"{tmp}/fake"
    put(root, "proc/meminfo", "MemTotal: 4000000 kB\nMemAvailable: 2000000 kB\n")
    put(root, "proc/xen/capabilities", "control_d\n")
    put(root, "run/here", "")
    names = [n for n in EVENTS if SYSTEM[n] != "kvm"]
    for name, text in (("trace_clock", "[local] global mono\n"), ("saved_cmdlines", ""), ("saved_tgids", ""),
                       ("events/header_page", HEADER_PAGE), ("events/header_event", HEADER_EVENT)):
        put(root, f"{tracing}/{name}", text)
    for name in names:
        put(root, f"{tracing}/events/{SYSTEM[name]}/{name}/format", event_format(name))
        put(root, f"{tracing}/instances/.made/events/{SYSTEM[name]}/{name}/enable", "0\n")
    for name in ("trace_clock", "tracing_on", "buffer_size_kb", "trace", "options/overwrite", "options/record-tgid"):
        put(root, f"{tracing}/instances/.made/{name}", "")
    w, b = xentrace.Writer(), Buffer()
    w.switch(10**9, 0, (IDLE, 0), RUNNABLE, (0, 0))
    w.switch(10**9, 1, (IDLE, 1), RUNNABLE, (2, 0))
    w.state(10**9 + 100000, 0, (1, 0), BLOCKED, RUNNABLE)
    w.switch(10**9 + 500000, 1, (2, 0), BLOCKED, (1, 0))
    w.switch(10**9 + 900000, 1, (1, 0), BLOCKED, (IDLE, 1))
    w.switch(10**9 + 950000, 0, (0, 0), BLOCKED, (IDLE, 0))
    for i in range(20):
        b.add(time.monotonic_ns() + 10**9 + i * 1000, record("sched_switch", 0, prev_comm="swapper/0", prev_pid=0, next_comm="xl", next_pid=99))
    put(root, f"{tracing}/instances/.made/per_cpu/cpu0/trace_pipe_raw", b.bytes())
    put(root, f"{tracing}/instances/.made/per_cpu/cpu0/stats", "entries: 20\noverrun: 0\ncommit overrun: 0\nbytes: 4096\n"
        "dropped events: 0\nread events: 0\n")
    for name, text in (("xl-info", INFO), ("xl-list", LIST), ("xl-vcpu-list", ""), ("xl-sched-credit", CAPS), ("records", w.file())):
        put(fake, name, text)
    make_program(f"{tmp}/bin/xl", XL)
    make_program(f"{tmp}/bin/xentrace", XENTRACE)


def environment(tmp):
    return {"LD_PRELOAD": LIBRARY, "INSTANCES": f"{tmp}/root/sys/kernel/tracing/instances", "FAKE_XEN": f"{tmp}/fake",
            "PATH": f"{tmp}/bin:{os.environ['PATH']}"}


def attempt(tmp, *args, status=0, **env):
    for name in ("state", "arguments"):
        if os.path.exists(f"{tmp}/fake/{name}"):
            os.unlink(f"{tmp}/fake/{name}")
    p = run("record", "--root", f"{tmp}/root", "--clock", "mono", *args, status=status, cwd=tmp, env={**environment(tmp), **env})
    left = os.listdir(f"{tmp}/root/sys/kernel/tracing/instances")
    check(left == [".made"], f"{' '.join(args)}: no instance of the tracer is left {left}")
    check(state(tmp) != "on", f"{' '.join(args)}: the trace buffers are off {p.stderr}")
    return p


def state(tmp):
    try:
        with open(f"{tmp}/fake/state", encoding="utf-8") as f:
            return f.read().strip()
    except OSError:
        return None


def text_of(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def check_recording(tmp):
    attempt(tmp, "-t", "500ms", "-o", "r", "web server=none", "db=none", "--no-index")
    check(state(tmp) == "off", "xentrace is ended by SIGTERM, so that it disables the buffers")
    arguments = text_of(f"{tmp}/fake/arguments").split()
    check("-D" in arguments and "0x0002f000" in arguments and arguments[-1] == "xentrace.bin", f"arguments of xentrace {arguments}")
    files = sorted(os.listdir(f"{tmp}/r/host"))
    check(files == ["xentrace.bin", "xentrace.log", "xl-info.txt", "xl-list-after.txt", "xl-list.txt", "xl-sched.txt"], f"files {files}")
    check(all(os.stat(f"{tmp}/r/host/{f}").st_mode & 0o077 == 0 for f in files), "other users cannot read them")
    check("dir: guest-Domain-0" in text_of(f"{tmp}/r/session.yaml"), "dom0 is a machine of its own")
    run("index", f"{tmp}/r", "-o", f"{tmp}/r.steal")
    traces = {(t["machine"], t["role"]) for t in document(f"{tmp}/r.steal")["traces"]}
    check(("Domain-0", "guest") in traces and len(traces) == 2, f"the hypervisor is the host, dom0 a guest {traces}")
    total = {(r["victim"], r["culprit"]): int(r["ns"]) for r in table("steal", f"{tmp}/r.steal")}
    check(total["web server", "db"] == 400000, f"who had the pCPU {total}")


def check_classes(tmp):
    for classes, mask in (("hvm", "0x000af000"), ("hypercalls,hvm", "0x002af000"), ("hypercalls", "0x0022f000")):
        attempt(tmp, "-t", "100ms", "-o", f"e{mask}", "--xen-events", classes, "web server=none", "db=none", "--no-index")
        check(mask in text_of(f"{tmp}/fake/arguments").split(), f"--xen-events {classes} is mask {mask}")
    for classes in ("hv", "hvmm", "hypercalls,,hvm", "all"):
        p = attempt(tmp, "-t", "100ms", "-o", "f", "--xen-events", classes, status=1)
        check("--xen-events" in p.stderr and p.stderr.count("\n") == 1 and not os.path.exists(f"{tmp}/f"), f"refused {p.stderr}")


def check_tsc(tmp):
    """A kernel trace on the TSC is on xentrace's own clock, exactly, also if the recorder measured a slightly different rate."""
    folder, b = f"{tmp}/r/guest-Domain-0", Buffer()
    for i in range(300):
        b.add(10**9 + 20000 + i * 3000, record("sched_switch", 0, prev_comm="a", prev_pid=90 + i % 2, next_comm="a", next_pid=91 - i % 2))
    with open(f"{folder}/pages/cpu0", "wb") as f:
        f.write(b.bytes())
    with open(f"{folder}/about.yaml", encoding="utf-8") as f:
        lines = [line for line in f if line.split(":")[0] not in ("clock", "millihertz", "started", "stopped")]
    for rate, is_exact in (("millihertz: 1000007000000\n", True), ("", True), ("millihertz: 1200000000000\n", False)):
        clock = ["clock: x86-tsc\n", rate, "started: {clock: 999900000, realtime: 1700000000000000000}\n",
                 "stopped: {clock: 1001900000, realtime: 1700000000002000000}\n"]
        put(folder, "about.yaml", "".join(lines + clock))
        row, = [r for r in table("sync", f"{tmp}/r") if r["guest"] == "Domain-0"]
        exact = row["method"] == "tsc" and float(row["alpha_ppm"]) == 0 and int(row["error_end_ns"]) <= 2
        check(exact == is_exact, f"{rate.strip() or 'no rate'}: {row}")


def check_dry_run(tmp):
    p = attempt(tmp, "--check", "web server=none", "db=none", "--format", "csv")
    check("xentrace, tracefs" in p.stdout and "web server" in p.stdout and "db" in p.stdout, f"host and domains {p.stdout}")
    check(state(tmp) is None, "a dry run does not start xentrace")


def check_refusals(tmp):
    p = attempt(tmp, "--flight", "-o", "f", status=1)
    check("--flight" in p.stderr and p.stderr.count("\n") == 1, f"flight recordings {p.stderr}")
    p = attempt(tmp, "-o", "n", "nobody=none", status=2)
    check("web server, db" in p.stderr, f"unknown domains {p.stderr}")
    put(f"{tmp}/fake", "refuses", "")
    p = attempt(tmp, "-t", "300ms", "-o", "e", "web server=none", "db=none", "--no-index", status=4)
    check("cannot map the buffers" in p.stderr, f"the message of xentrace is shown {p.stderr}")
    os.unlink(f"{tmp}/fake/refuses")
    shutil.rmtree(f"{tmp}/e", ignore_errors=True)
    put(f"{tmp}/fake", "ends", "")
    p = attempt(tmp, "-t", "3s", "-o", "e", "web server=none", "db=none", "--no-index", status=4)
    check("out of disk space" in p.stderr, f"xentrace that ends early {p.stderr}")
    os.unlink(f"{tmp}/fake/ends")
    if not glob.glob("/usr/lib/xen-*/bin/xentrace"):
        os.rename(f"{tmp}/bin/xentrace", f"{tmp}/bin/xentrace.away")
        p = attempt(tmp, "-o", "x", status=4, PATH=f"{tmp}/bin:/usr/bin:/bin")
        check("xentrace" in p.stderr and "PATH" in p.stderr and p.stderr.count("\n") == 1, f"xentrace is missing {p.stderr}")
        os.rename(f"{tmp}/bin/xentrace.away", f"{tmp}/bin/xentrace")
    put(f"{tmp}/fake", "xl-info", "xen_scheduler : credit2\n")
    p = attempt(tmp, "-o", "y", "web server=none", "db=none", status=4)
    check("cpu_mhz" in p.stderr, f"no frequency {p.stderr}")
    put(f"{tmp}/fake", "xl-info", INFO)


def check_kill(tmp):
    if state(tmp):
        os.unlink(f"{tmp}/fake/state")
    with subprocess.Popen([PROGRAM, "record", "--root", f"{tmp}/root", "--clock", "mono", "-t", "60s", "-o", f"{tmp}/k",
                           "web server=none", "db=none", "--no-index"], env={**os.environ, **environment(tmp)},
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
        end = time.monotonic() + 120
        while state(tmp) != "on" and time.monotonic() < end:
            time.sleep(0.05)
        check(state(tmp) == "on", "xentrace runs")
        p.kill()
        check(p.wait() == -signal.SIGKILL, "the recorder is killed")
    end = time.monotonic() + 60
    while state(tmp) == "on" and time.monotonic() < end:
        time.sleep(0.05)
    check(state(tmp) == "off", "the trace buffers are off after the recorder was killed")
    run("record", "--cleanup", "--root", f"{tmp}/root", env=environment(tmp))
    check(os.listdir(f"{tmp}/root/sys/kernel/tracing/instances") == [".made"], "--cleanup removes the tracefs instance of dom0")


def main():
    if is_sanitized():
        skip("sanitizers must be preloaded first, before instances.so")
    if "cannot record" in joined(run("record", "--check", status=None).stderr):
        skip("this build cannot record")
    with scratch() as tmp:
        make_dom0(tmp)
        check_recording(tmp)
        check_classes(tmp)
        check_tsc(tmp)
        check_dry_run(tmp)
        check_refusals(tmp)
        check_kill(tmp)
    return 0


if __name__ == "__main__":
    sys.exit(main())
