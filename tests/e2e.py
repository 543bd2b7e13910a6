"""What the end-to-end tests share: running the program, reading its csv, counting checks.

Every test is a plain script: it prints what it checked and exits 1 at the first check that does not hold."""
import csv
import io
import os
import subprocess
import sys
import tempfile

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


def table(*args):
    """The csv report of a command, as a list of dictionaries."""
    return list(csv.DictReader(io.StringIO(run(*args, "--format", "csv").stdout)))


def scratch():
    return tempfile.TemporaryDirectory(prefix="stealscope-test-")
