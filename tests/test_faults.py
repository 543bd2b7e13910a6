"""A read error is not damage: whichever attempt to read the input fails with EIO, the run either ends with status 4 and
leaves nothing, or gives the answer that it gives without."""
import os
import shutil
import subprocess
import sys

from e2e import BUILD, DATA, PROGRAM, SOURCE, check, is_sanitized, scratch
from ftrace import Buffer, record, write_dat

LIBRARY = os.path.join(BUILD, "tests", "faults.so")


def attempt(tmp, folder, command, at, log=None):
    """One run: status, stderr, and the bytes of the history it made."""
    out = os.path.join(tmp, "out.steal")
    if os.path.exists(out):
        os.unlink(out)
    env = dict(os.environ, LD_PRELOAD=LIBRARY, FAULT_BELOW=os.path.realpath(folder), FAULT_AT=str(at), TMPDIR=tmp)
    if log:
        env["FAULT_LOG"] = log
    p = subprocess.run([PROGRAM, "index", *command, "-j", "1", "-o", out], env=env, capture_output=True, text=True,
                       check=False, timeout=120)
    made = None
    if os.path.exists(out):
        with open(out, "rb") as f:
            made = f.read()
    return p.returncode, p.stderr, made


def check_kind(tmp, what, folder, command):
    log = os.path.join(tmp, "attempts")
    status, said, whole = attempt(tmp, folder, command, 0, log)
    check(status == 0, f"{what}: without faults {said}")
    with open(log, encoding="utf-8") as f:
        attempts = [line.split(None, 1)[1].strip() for line in f]
    os.unlink(log)
    wrong, refused = [], 0
    for at in range(1, len(attempts) + 1):
        status, got, made = attempt(tmp, folder, command, at)
        refused += status == 4
        good = (status == 4 and made is None and got.startswith("stealscope: ") and got.count("\n") == 1) or \
            (status == 0 and made == whole and got == said)
        if not good:
            wrong.append((at, attempts[at - 1], status, got.strip()))
    check(not wrong, f"{what}: {len(attempts)} attempts to read it, {refused} ended with status 4, none was wrong {wrong}")
    check(refused > 0, f"{what}: faults were seen")


def make_dat(path):
    buffers = []
    for cpu in range(2):
        b = Buffer()
        for i in range(400):
            tid, other = (100 + cpu, 0) if i % 2 else (0, 100 + cpu)
            b.add(5_000_000_000 + i * 100_000, record("sched_switch", tid, prev_pid=tid, prev_state=tid and 1, next_pid=other))
        buffers.append(b.bytes())
    write_dat(path, buffers)


with scratch() as tmp:
    if is_sanitized():
        print("sanitizers want to be loaded first, as the faults do")
        sys.exit(77)
    ctf = os.path.join(tmp, "ctf")
    shutil.copytree(os.path.join(DATA, "fibonacci"), ctf)
    check_kind(tmp, "CTF", ctf, [ctf])
    session = os.path.join(tmp, "session")
    os.mkdir(session)
    shutil.copy(os.path.join(SOURCE, "src", "trace", "layouts", "lttng.yaml"), os.path.join(session, "layout.yaml"))
    with open(os.path.join(session, "session.yaml"), "w", encoding="utf-8") as f:
        f.write(f"host: {{dir: '{ctf}/host', layout: '{session}/layout.yaml'}}\nguests: [{{name: Debian, dir: '{ctf}/guest-Debian'}}]\n")
    check_kind(tmp, "a session and a layout", session, [os.path.join(session, "session.yaml")])
    dat = os.path.join(tmp, "dat")
    make_dat(os.path.join(dat, "trace.dat"))
    if attempt(tmp, dat, [dat], 0)[0] == 0:
        check_kind(tmp, "trace-cmd", dat, [dat])
