"""Functions that the end-to-end tests share: run the program, read its csv and json, report checks.

Each test is a plain script: it prints one line per check, and exits with status 1 at the first check that fails and with
77 (automake: SKIP) if it, or a part of it, cannot run here."""
import atexit
import contextlib
import csv
import faulthandler
import fcntl
import functools
import glob
import io
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import tempfile
import termios
import time

import history_reader

faulthandler.register(signal.SIGTERM, chain=True)  # prints a backtrace when `timeout` ends a test that hangs

BUILD = os.path.abspath(os.environ.get("builddir", "."))
SOURCE = os.path.abspath(os.environ.get("srcdir", "."))
PROGRAM = os.path.join(BUILD, "stealscope")
DATA = os.path.join(SOURCE, "tests", "data")
SHARED = os.path.join(SOURCE, "..", "shared", "traces")


if not os.environ.get("HOME"):  # the program keeps histories of directories that it must not change in the user's cache
    os.environ["HOME"] = tempfile.mkdtemp(prefix="stealscope-home-")
    atexit.register(shutil.rmtree, os.environ["HOME"], True)


def check(condition, description):
    """Prints the description and ends the test if the condition is false."""
    print(("ok   " if condition else "FAIL ") + description)
    if not condition:
        sys.exit(1)


def skip(reason):
    """Ends the test as not, or not completely, run."""
    print(f"skipped: {reason}")
    sys.exit(77)


def free_port():
    """Returns a TCP port of the loopback address that nobody uses. The kernel does not choose it for a connection meanwhile."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        first = int(f.read().split()[0])
    while True:
        port = random.randrange(first // 2, first) if first > 4096 else 0
        with contextlib.suppress(OSError), socket.socket() as s:
            s.bind(("127.0.0.1", port))
            return s.getsockname()[1]


def waited(*pids):
    """Returns for how long this thread and those of the processes have waited for a CPU, s. Of a process that has ended, the first
    thread counts."""
    ns = 0
    for path in ["/proc/thread-self/schedstat", *(p for pid in pids for p in glob.glob(f"/proc/{pid}/task/*/schedstat"))]:
        with contextlib.suppress(OSError), open(path, encoding="ascii") as f:
            ns += int(f.read().split()[1])
    return ns / 1e9


def run(*args, status=0, env=None, **more):
    """Runs the program, which must exit with this status (None: with any).  Returns the finished process."""
    p = subprocess.run([PROGRAM, *args], capture_output=True, text=True, env={**os.environ, **(env or {})},
                       **{"timeout": 300, **more})
    if status is not None and p.returncode != status:
        print(p.stdout[-2000:], p.stderr[-2000:], sep="\n")
        check(False, f"stealscope {' '.join(args)} exits {status} (got {p.returncode})")
    return p


@functools.lru_cache(maxsize=None)
def is_emulated():
    """Returns true if the program was built for another processor than Python (field e_machine of the ELF files)."""
    processors = set()
    for path in (PROGRAM, os.path.realpath(sys.executable)):
        with open(path, "rb") as f:
            processors.add(f.read(20)[18:])
    return len(processors) > 1


@functools.lru_cache(maxsize=None)
def is_root():
    """Returns true if this process may act as other users: as root, but not of a user namespace that has no other users."""
    with open("/proc/self/uid_map", encoding="ascii") as f:
        return os.geteuid() == 0 and any(int(line.split()[2]) > 65534 for line in f)


def become_other():
    """Before the program starts: gives up root. Without root, it stays this user."""
    if is_root():
        os.setgid(65534)
        os.setuid(65534)


def has_other_user():
    """Returns false for the root of a user namespace without other users, who may read all files."""
    return os.geteuid() != 0 or is_root()


@functools.lru_cache(maxsize=None)
def is_sanitized():
    with open(PROGRAM, "rb") as f:
        return b"__asan_init" in f.read()


def is_brief():
    """Returns true if another build of the same sources runs all cases: then repetitions that only add confidence are left
    out, but no code path is.  slice.h has the same for C."""
    return is_sanitized() or "STEALSCOPE_BRIEF" in os.environ


def recordings():
    """Returns the directories of the shared recordings (they are optional: see require_recordings()).  Sanitized builds are
    too slow for them and get none: they run the same commands on shipped and simulated traces."""
    return [] if is_sanitized() else sorted(glob.glob(SHARED + "/*/"))


def recording_names():
    """Returns the names of the recordings with truth: those of tests/data/recordings, and the shared ones."""
    shipped = [os.path.basename(f)[:-7] for f in glob.glob(DATA + "/recordings/*.tar.xz")]
    shared = [os.path.basename(os.path.dirname(f)) for f in glob.glob(SHARED + "/*/truth.json")]
    return sorted({*shipped, *shared})


@functools.lru_cache(maxsize=None)
def recording(name):
    """Returns the directory of a recording with truth; that of tests/data/recordings is unpacked for this run."""
    folder = os.path.join(SHARED, name)
    if os.path.isdir(folder):
        return folder
    into = tempfile.mkdtemp(prefix="stealscope-recording-")
    atexit.register(shutil.rmtree, into, True)
    with tarfile.open(f"{DATA}/recordings/{name}.tar.xz") as t:
        t.extractall(into)
    return os.path.join(into, name)


def require_recordings():
    """Ends the test with status 77 if there are no recordings.  Tests call it after all checks that need none."""
    if not recordings():
        skip("no recordings in ../shared/traces, or a sanitized build; all checks on shipped and simulated traces passed")


def slice_number():
    """Returns the number that selects cases, and prints it: always the same one in `make check`, that of the day in
    `make check-daily`, which sets STEALSCOPE_SLICE.  slice.h has the same for C."""
    number = int(os.environ.get("STEALSCOPE_SLICE") or 3)
    print(f"STEALSCOPE_SLICE={number}")
    return number


def slice_of(cases, parts):
    """Returns one of so many parts of a long list of cases; `make check-long` runs all.  Cases with an expected answer of their
    own must not be sliced."""
    if os.environ.get("STEALSCOPE_LONG_TESTS"):
        return cases
    chosen = cases[slice_number() % parts::parts]
    print(f"     {len(chosen)} of {len(cases)} cases: {' '.join(os.path.basename(str(c).rstrip('/')) for c in chosen)}")
    return chosen


def seeds(few, many):
    """Returns the seeds of a test that draws its cases: few in `make check`, many in `make check-daily`.  SEED and SEEDS set the
    first one and their number."""
    number = many if os.environ.get("STEALSCOPE_SLICE") else (few + 1) // 2 if is_brief() else few
    first, number = int(os.environ.get("SEED") or 100 * slice_number()), int(os.environ.get("SEEDS") or number)
    print(f"SEED={first} SEEDS={number}")
    return range(first, first + number)


def until_exit(p, master, slave):
    """Returns what the process writes to the terminal from now until its exit; closes the terminal."""
    out = b""
    last = b"\0"  # the test's own last byte: a terminal that is closed may drop what nobody has read yet
    while not out.endswith(last):
        if select.select([master], [], [], 0.02)[0]:
            out += os.read(master, 65536)
        elif p.poll() is not None:
            os.write(slave, last)
    os.close(slave)
    os.close(master)
    return out.rstrip(last)


def on_terminal(*args, columns=80, rows=24, **more):
    """Returns the output of the program on a terminal of this size, by default one without links."""
    more.setdefault("env", {**os.environ, "TERM": "vt100"})
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    p = subprocess.Popen([PROGRAM, *args], stdout=slave, stderr=subprocess.DEVNULL, **more)
    out = until_exit(p, master, slave)
    check(p.wait(timeout=300) == 0, f"on a terminal: stealscope {' '.join(args)}")
    return out.decode().replace("\r\n", "\n")


def commands():
    """Returns the commands that the help lists, with a description or as further ones of a group."""
    text = run("--help").stdout
    further = re.findall(r"\(also: (.*)\)", text)
    return re.findall(r"^  ([a-z]+) ", text, re.M) + [name for names in further for name in names.split(", ")]


def table(*args):
    """Returns the csv report of a command as a list of dictionaries."""
    return list(csv.DictReader(io.StringIO(run(*args, "--format", "csv").stdout)))


def notes(*args):
    """Returns the notes of a command's json report: dictionaries with code, kind, machine, start, end, text and advice."""
    return json.loads(run(*args, "--format", "json").stdout)["notes"]


def codes(*args):
    """Returns the set of the codes (base/note_table.h) of a command's notes."""
    return {note["code"] for note in notes(*args)}


def joined(text):
    """Returns a text without its line breaks and indentation."""
    return " ".join(text.split())


def dashboard(name, start, end):
    """Returns {title of the panel: its query} of a shipped dashboard, for a window (ns)."""
    with open(os.path.join(SOURCE, "share", "grafana", name + ".json"), encoding="utf-8") as f:
        panels = json.load(f)["panels"]
    return {p["title"]: p["targets"][0]["rawSql"].replace("${__from}", str(start // 10**6))
            .replace("${__to}", str(end // 10**6 + 1)) for p in panels}


def scratch():
    # After a failed check, processes of the test may still use the directory.
    return tempfile.TemporaryDirectory(prefix="stealscope-test-", ignore_cleanup_errors=True)


# Names with special characters of csv, spreadsheets, SQL, flame graphs, labels, json, shells and terminals, and invalid
# UTF-8; all as long as burnP6.
HOSTILE = (b'=\\";\'\x1b', b"+1\t\n\r;", b"-\xff\xc3(\xc0\x80", b"@${`<%", b"');--,", b"\xed\xa0\x80\xf5'\"", b"n\0=\"';")


def rename(traces, name, of=b"burnP6"):
    """Renames the threads with a name in a copy of a recording; both names have the same length."""
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
    atexit.register(p.kill)  # in case a check fails before it ends
    return p


def finish(p, status):
    out, err = p.communicate(timeout=300)
    if p.returncode != status:
        print(out, err)
    check(p.returncode == status, f"exit status {status}")
    return err


def simulate(directory, *args):
    subprocess.run([os.path.join(BUILD, "stealscope-sim"), *args, "--no-truth", "-o", directory], check=True,
                   capture_output=True, timeout=300)


def until(condition, description, program=None):
    """Waits for the condition; fails if the program ends first, or after two minutes (PATIENCE: times so many, for slow and
    emulated machines)."""
    for _ in range(2400 * int(os.environ.get("PATIENCE", "1"))):
        if program and program.poll() is not None:
            check(False, f"{description}; but it ended: {program.returncode} {program.communicate()[1]}")
        if condition():
            return
        time.sleep(0.05)
    check(False, description)


def processes_with(setting):
    """Returns the command lines of processes with an environment in which a variable begins so: "NAME=VALUE"."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                environ = b"\0" + f.read()
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                cmdline = f.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if b"\0" + setting.encode() in environ and cmdline:
            found.append(cmdline)
    return found


# ---- comparing histories

def content(path):
    """Returns all of a history except its provenance."""
    h = history_reader.History(path)
    return h.begin, h.end, sorted(h.dump())


def document(path):
    return json.loads(run("info", path, "--format", "json").stdout)


def traces(path):
    """Returns the provenance of each trace without its location, and without the names of host and clock: a live trace
    has the former from its URL, and lacks the latter."""
    return [{k: v for k, v in t.items() if k not in ("dir", "bytes", "hostname", "monotonic")} for t in document(path)["traces"]]


def same(a, b, description):
    check(content(a) == content(b), f"{description}: the same intervals")
    check(traces(a) == traces(b), f"{description}: the same machines, roles, tracers, uuids, events and losses")
    check(document(a)["sync"] == document(b)["sync"], f"{description}: the same clocks")
