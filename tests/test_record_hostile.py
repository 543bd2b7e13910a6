"""A hostile guest costs its own recording and nothing else: an honest guest beside each kind of it is recorded completely, and
the recording can be read."""
import glob
import os
import re
import shutil
import subprocess
import sys
import time

from e2e import PROGRAM, SOURCE, check, document, is_sanitized, run, scratch, skip, waited
from fake_guest import FAULTS, HARMLESS, PAGES
from test_record_cli import LIBRARY, fill_buffers, make_host, make_process

GUEST = os.path.join(os.path.abspath(SOURCE), "tests", "fake_guest.py")


def through(mode):
    return f"cmd:exec '{sys.executable}' '{GUEST}' '{mode}'"


def make_machine(tmp):
    """Makes a host with the VMs web and db."""
    root = os.path.join(tmp, "root")
    instances = make_host(root)
    make_process(root, 400, ["qemu", "-name", "db"], {400: "qemu", 410: "CPU 0/KVM"},
                 [(14, "/dev/kvm"), (15, "anon_inode:kvm-vm"), (20, "anon_inode:kvm-vcpu:0")])
    fill_buffers(instances)
    return root, instances


def environment(instances):
    return {"LD_PRELOAD": LIBRARY, "INSTANCES": instances, "PYTHONDONTWRITEBYTECODE": "1"}


def attempt(tmp, name, *args, **more):
    root = os.path.join(tmp, "root")
    instances = os.path.join(root, "sys/kernel/tracing/instances")
    p = run("record", "--root", root, "--clock", "mono", "-o", name, *args, cwd=tmp, env=environment(instances), **more)
    check(os.listdir(instances) == [".made"] and os.listdir(os.path.join(root, "run", "stealscope")) == [],
          f"{name}: nothing is left")
    return p


def check_whole(folder, name):
    """Checks that session.yaml lists only existing directories, that db is complete, and that our reader opens all."""
    with open(os.path.join(folder, "session.yaml"), encoding="utf-8") as f:
        listed = re.findall(r"^ +dir: (\S+)$", f.read(), re.MULTILINE)
    check(sorted(listed) == sorted(x for x in os.listdir(folder) if os.path.isdir(os.path.join(folder, x))),
          f"{name}: session.yaml lists the directories that exist: {listed}")
    check(os.path.getsize(os.path.join(folder, "guest-db/pages/cpu0")) == PAGES * 4096, f"{name}: all pages of db")
    traces = {os.path.basename(t["dir"].rstrip("/")): t for t in document(folder)["traces"]}
    check("guest-db" in traces and traces["guest-db"]["events"] > 100, f"{name}: db is read: {traces}")
    return traces


def check_fault(tmp, mode):
    begin = time.monotonic()
    duration, command = ("1h", ["--", "sleep", "0.3"]) if mode == "rate-no-disk" else ("300ms", [])
    p = attempt(tmp, mode, "-t", duration, "--no-index", f"web={through(mode)}", f"db={through('honest')}", *command, status=5)
    lines = [x for x in p.stderr.splitlines() if "not recorded" in x]
    check(len(lines) == 1 and lines[0].startswith("stealscope: web: not recorded: ") and
          not set(p.stderr) & {"\033", "\a", "\x9b"}, f"{mode}: one line says why: {p.stderr}")
    if mode == "exit":
        check("==\\x07\\e[31mred\\xff (" in lines[0] and "\\\\" not in lines[0], f"{mode}: its bytes are escaped once")
    check(time.monotonic() - begin < 60, f"{mode}: in time")
    folder = os.path.join(tmp, mode)
    check(not os.path.exists(f"{folder}/guest-web"), f"{mode}: no part of its trace is left")
    check_whole(folder, mode)
    shutil.rmtree(folder)


def check_harmless(tmp, mode):
    more = ["--guest-requests", "x=/usr/bin/evil:aaa"] if mode == "program" else []
    p = attempt(tmp, mode, "-t", "300ms", "--no-index", *more, f"web={through(mode)}", f"db={through('honest')}", status=None)
    check(p.returncode in (0, 5), f"{mode}: exits {p.returncode}: {p.stderr}")
    traces = check_whole(os.path.join(tmp, mode), mode)
    if mode in ("honest", "slow", "while-tracing", "program"):
        check(p.returncode == 0 and traces["guest-web"]["events"] > 100 and
              os.path.getsize(os.path.join(tmp, mode, "guest-web/pages/cpu0")) == PAGES * 4096,
              f"{mode}: web is complete {p.stderr}")
    shutil.rmtree(os.path.join(tmp, mode))


def check_unreadable_answer(tmp):
    """The error of the answer is printed although the recording is incomplete."""
    p = attempt(tmp, "answer", "-t", "300ms", "--then", "explain nobody", f"web={through('end-first')}",
                f"db={through('honest')}", status=5)
    check("--then 'explain nobody' failed" in p.stderr and "web: not recorded" in p.stderr, f"both errors: {p.stderr}")


def check_end(tmp):
    """SIGTERM ends a recorder within 2 s, and a second for a busy machine, while a guest does not answer."""
    root = os.path.join(tmp, "root")
    instances = os.path.join(root, "sys/kernel/tracing/instances")
    recorder = subprocess.Popen([PROGRAM, "record", "--root", root, "--clock", "mono", "-o", "end", "--guest-requests", "x=/usr/bin/evil:a",
                                 "web=cmd:sleep 1000", f"db={through('honest')}"], cwd=tmp,
                                env={**os.environ, **environment(instances)}, stderr=subprocess.DEVNULL)
    while not glob.glob(f"{root}/run/stealscope/*"):
        time.sleep(0.05)
    time.sleep(0.5)
    begin = time.monotonic() - waited(recorder.pid)
    recorder.terminate()
    os.waitid(os.P_PID, recorder.pid, os.WEXITED | os.WNOWAIT)
    took = time.monotonic() - waited(recorder.pid) - begin  # without what other programs have taken
    check(recorder.wait() == 130 and took < 3, f"SIGTERM ends the recorder although a guest is silent, in {took:.1f} s")
    check(os.listdir(instances) == [".made"], "nothing is left")


def main():
    if is_sanitized():
        skip("sanitizers must be preloaded first, before instances.so")
    if "cannot record" in run("record", "--check", status=None).stderr:
        skip("this build cannot record")
    chosen = sys.argv[1:]
    with scratch() as tmp:
        make_machine(tmp)
        for mode in chosen or FAULTS:
            if mode in FAULTS:
                check_fault(tmp, mode)
        for mode in chosen or HARMLESS:
            if mode in HARMLESS:
                check_harmless(tmp, mode)
        check_unreadable_answer(tmp)
        check_end(tmp)
    return 0


if __name__ == "__main__":
    sys.exit(main())
