"""Damaged traces: for any changed byte, and any truncation during reading, the program terminates normally and reports the
skipped parts in lines of its own."""
import os
import random
import shutil
import subprocess
import time

from e2e import DATA, PROGRAM, check, run, scratch, simulate

TRACE = os.path.join(DATA, "fibonacci")


def index(folder, out):
    return subprocess.run([PROGRAM, "index", folder, "-o", out], capture_output=True, check=False, timeout=900,
                          env={**os.environ, "TMPDIR": os.path.dirname(out)})


def is_well_reported(status, stderr):
    """The program terminated normally, and only it wrote messages."""
    lines = stderr.decode("utf-8").splitlines()
    return status in (0, 2) and all(line.startswith("stealscope: ") for line in lines) and (status == 0 or len(lines) > 0)


def files_of(folder):
    found = [os.path.join(d, f) for d, _, files in os.walk(folder) for f in files if not f.endswith(".json")]
    return sorted(os.path.relpath(f, folder) for f in found)


def damage(rng, data):
    """Changes one to eight bytes, preferably at the start of the file, which contains sizes and offsets."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(min(len(data), rng.choice((64, 400, 1 << 30))))
        data[at] = rng.choice((data[at] ^ 1 << rng.randrange(8), 0, 255, rng.randrange(256)))
    return bytes(data[:rng.randrange(len(data))] if rng.random() < 0.1 else data)


def check_mutants(tmp, kind, is_kind, number):
    rng = random.Random(kind)
    files = [f for f in files_of(TRACE) if is_kind(f)]
    check(len(files) > 1, f"{kind}: there are files of this kind")
    folder, wrong, noted = os.path.join(tmp, "mutant"), [], 0
    for i in range(number):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(TRACE, folder)
        f = rng.choice(files)
        with open(os.path.join(TRACE, f), "rb") as source, open(os.path.join(folder, f), "wb") as to:
            to.write(damage(rng, source.read()))
        p = index(folder, os.path.join(tmp, "mutant.steal"))
        noted += len(p.stderr) > 0
        if not is_well_reported(p.returncode, p.stderr):
            wrong.append((i, f, p.returncode, p.stderr))
    check(not wrong, f"{kind}: {number} damaged traces, {noted} with notes {wrong}")
    check(noted > 0, f"{kind}: damage is reported")


def check_index_alone(tmp):
    """A damaged index, or one that is no file, does not affect its stream."""
    run("index", TRACE, "-o", os.path.join(tmp, "sound.steal"))
    gaps = run("gaps", os.path.join(tmp, "sound.steal"), "Debian", "--format", "csv").stdout
    folder = os.path.join(tmp, "indexed")
    path = os.path.join(folder, "host", "kernel", "index", "ch_0.idx")
    for what in ("damaged", "a pipe", "a folder"):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(TRACE, folder)
        with open(path, "r+b") as f:
            f.seek(21)  # offset of the first packet
            f.write(b"\1")
        if what != "damaged":
            os.unlink(path)
            (os.mkfifo if what == "a pipe" else os.mkdir)(path)
        p = run("index", folder, "-o", os.path.join(tmp, "indexed.steal"))
        check(p.stderr.count("\n") == 1 and "host/kernel/index/ch_0.idx: damaged" in p.stderr,
              f"an index that is {what}: {p.stderr.strip()}")
        same = run("gaps", os.path.join(tmp, "indexed.steal"), "Debian", "--format", "csv").stdout
        check(same == gaps, f"an index that is {what}: the answers are the same")


def check_truncated(tmp):
    """Streams are truncated while they are read."""
    whole, folder = os.path.join(tmp, "whole"), os.path.join(tmp, "shrinking")
    simulate(whole, "overcommit", "2", "--events", "200k")
    begin = time.monotonic()
    check(index(whole, os.path.join(tmp, "whole.steal")).returncode == 0, "the whole trace")
    took = time.monotonic() - begin
    rng, wrong, early = random.Random("truncated"), [], 0
    streams = [f for f in files_of(whole) if os.path.getsize(os.path.join(whole, f)) > 1 << 18]
    for i in range(8):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)
        f = os.path.join(folder, streams[i % len(streams)])
        with subprocess.Popen([PROGRAM, "index", folder, "-o", os.path.join(tmp, "shrinking.steal")],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              env={**os.environ, "TMPDIR": tmp}) as p:
            time.sleep(rng.random() * took / 2)
            os.truncate(f, rng.choice((0, 4096, rng.randrange(os.path.getsize(f)))))
            stderr = p.communicate(timeout=900)[1]
        early += b"note: " in stderr
        if not is_well_reported(p.returncode, stderr):
            wrong.append((f, p.returncode, stderr))
    check(not wrong, f"8 streams truncated while they were read, {early} with notes {wrong}")


with scratch() as tmp:
    check_mutants(tmp, "index", lambda f: f.endswith(".idx"), 30)
    check_mutants(tmp, "metadata", lambda f: f.endswith("metadata"), 12)
    check_mutants(tmp, "stream", lambda f: "/ch_" in f and not f.endswith(".idx"), 30)
    check_index_alone(tmp)
    check_truncated(tmp)
    left = [f for f in os.listdir(tmp) if f.startswith("stealscope-")]
    check(not left, "no temporary directory is left")
