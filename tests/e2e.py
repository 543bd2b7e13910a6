"""What the end-to-end tests share: running the program, reading its csv, counting checks.

Every test is a plain script: it prints what it checked and exits 1 at the first check that does not hold."""
import atexit
import csv
import faulthandler
import fcntl
import functools
import glob
import io
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

import history_reader

faulthandler.register(signal.SIGTERM, chain=True)  # a test that hangs says where

BUILD = os.path.abspath(os.environ.get("builddir", "."))
SOURCE = os.path.abspath(os.environ.get("srcdir", "."))
PROGRAM = os.path.join(BUILD, "stealscope")
DATA = os.path.join(SOURCE, "tests", "data")
SHARED = os.path.join(SOURCE, "..", "shared", "traces")


def check(holds, what):
    """One assertion, said aloud."""
    print(("ok   " if holds else "FAIL ") + what)
    if not holds:
        sys.exit(1)


def run(*args, status=0, env=None, **more):
    """Runs the program; its exit status must be `status`, unless that is None.  Returns the finished process."""
    p = subprocess.run([PROGRAM, *args], capture_output=True, text=True, timeout=300,
                       env={**os.environ, **(env or {})}, **more)
    if status is not None and p.returncode != status:
        print(p.stdout[-2000:], p.stderr[-2000:], sep="\n")
        check(False, f"stealscope {' '.join(args)} exits {status} (got {p.returncode})")
    return p


@functools.lru_cache(maxsize=None)
def is_emulated():
    """Is the program another processor's than this machine is? (The field e_machine of an ELF file.)"""
    processors = set()
    for path in (PROGRAM, os.path.realpath(sys.executable)):
        with open(path, "rb") as f:
            processors.add(f.read(20)[18:])
    return len(processors) > 1


@functools.lru_cache(maxsize=None)
def is_sanitized():
    with open(PROGRAM, "rb") as f:
        return b"__asan_init" in f.read()


def is_brief():
    """Is this a repetition of what another build has been asked?  Then what proves one thing again and again is done so often
    as takes all ways through the program.  slice.h has the same for C."""
    return is_sanitized() or "STEALSCOPE_BRIEF" in os.environ


def recordings():
    """The folders of the shared recordings, for tests that go through all of them.  Sanitizers are too slow for that: they
    see the same commands on what the tests bundle and simulate."""
    return [] if is_sanitized() else sorted(glob.glob(SHARED + "/*/"))


def a_slice(cases, of):
    """Today's cases, one of so many parts, of a long sweep that proves one thing again and again; `make check-long` has all.
    What has an expected answer of its own is never left out.  slice.h has the same for C."""
    if os.environ.get("STEALSCOPE_LONG_TESTS"):
        return cases
    today = int(os.environ.get("STEALSCOPE_SLICE") or time.time() // 86400)
    print(f"STEALSCOPE_SLICE={today}")
    return cases[today % of::of]


def on_terminal(*args, columns=80, **more):
    """What the program prints when its standard output is a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    p = subprocess.Popen([PROGRAM, *args], stdout=theirs, stderr=subprocess.DEVNULL, **more)
    os.close(theirs)
    out = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:  # Linux: the other end is closed
            more = b""
        if not more:
            break
        out += more
    os.close(ours)
    check(p.wait(timeout=300) == 0, f"on a terminal: stealscope {' '.join(args)}")
    return out.decode().replace("\r\n", "\n")


def table(*args):
    """The csv report of a command, as a list of dictionaries."""
    return list(csv.DictReader(io.StringIO(run(*args, "--format", "csv").stdout)))


def dashboard(name, start, end):
    """The queries of a dashboard that ships, by the title of the panel, for a window (ns)."""
    with open(os.path.join(SOURCE, "share", "grafana", name + ".json"), encoding="utf-8") as f:
        panels = json.load(f)["panels"]
    return {p["title"]: p["targets"][0]["rawSql"].replace("${__from}", str(start // 10**6))
            .replace("${__to}", str(end // 10**6 + 1)) for p in panels}


def scratch():
    return tempfile.TemporaryDirectory(prefix="stealscope-test-", ignore_cleanup_errors=True)  # a check failed: it is in use


# Names that mean something to csv and spreadsheets, SQL, flame graphs, labels, json, shells, terminals, or nobody: as long
# as burnP6.
HOSTILE = (b'=\\";\'\x1b', b"+1\t\n\r;", b"-\xff\xc3(\xc0\x80", b"@${`<%", b"');--,", b"\xed\xa0\x80\xf5'\"", b"n\0=\"';")


def rename(traces, name, of=b"burnP6"):
    """Gives the threads of that name of a copy of the recording another one, as long."""
    for base, _, files in os.walk(traces):
        for file in files:
            path = os.path.join(base, file)
            with open(path, "rb") as f:
                content = f.read()
            if of + b"\0" in content:
                with open(path, "wb") as f:
                    f.write(content.replace(of + b"\0", name + b"\0"))


def start(*args, **more):
    p = subprocess.Popen([PROGRAM, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         start_new_session=True, **more)
    atexit.register(p.kill)  # where a check failed meanwhile
    return p


def finish(p, status):
    out, err = p.communicate(timeout=120)
    if p.returncode != status:
        print(out, err)
    check(p.returncode == status, f"exit status {status}")
    return err


def simulate(folder, *args):
    subprocess.run([os.path.join(BUILD, "stealscope-sim"), *args, "--no-truth", "-o", folder], check=True,
                   capture_output=True, timeout=120)


def until(condition, what, program=None):
    """Waits; a program that ended meanwhile is waited for no more."""
    for _ in range(2400 * int(os.environ.get("PATIENCE", "1"))):  # slow machines, those that are emulated
        if program and program.poll() is not None:
            check(False, f"{what}; but it ended: {program.returncode} {program.communicate()[1]}")
        if condition():
            return
        time.sleep(0.05)
    check(False, what)


# ---- comparing histories

def content(path):
    """All of a history but its provenance."""
    h = history_reader.History(path)
    return h.begin, h.end, sorted(h.dump())


def document(path):
    return json.loads(run("info", path, "--format", "json").stdout)


def traces(path):
    """What the provenance says of each trace, but where it came from."""
    return [{k: v for k, v in t.items() if k not in ("dir", "bytes")} for t in document(path)["traces"]]


def same(a, b, what):
    check(content(a) == content(b), f"{what}: the same intervals")
    check(traces(a) == traces(b), f"{what}: the same machines, roles, tracers, uuids, events and losses")
    check(document(a)["sync"] == document(b)["sync"], f"{what}: the same clocks")
