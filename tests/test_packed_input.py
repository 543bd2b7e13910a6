"""Recordings, spans, scripts and symbols are read as they come: packed by the usual programs, in archives, and from pipes.
Each answer must equal that of the plain files."""
import gzip
import io
import lzma
import os
import shutil
import subprocess
import tarfile
import time
import zipfile

from e2e import DATA, PROGRAM, check, run, scratch, skip


def add_to_zip(folder, path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for base, _, files in os.walk(folder):
            for name in files:
                full = os.path.join(base, name)
                z.write(full, os.path.relpath(full, os.path.dirname(folder)))


def pipe(command, *args, status=0, stdin=None):
    p = subprocess.run(["bash", "-c", command, "bash", PROGRAM, *args], capture_output=True, text=True, timeout=300, stdin=stdin)
    check(p.returncode == status, f"{command}: exits {status} (got {p.returncode}: {p.stderr[-300:]})")
    return p


def tar_of(path, entries):
    with tarfile.open(path, "w:gz") as t:
        for name, kind, content in entries:
            info = tarfile.TarInfo(name)
            info.type, info.size = kind, len(content)
            info.linkname = "/etc/passwd" if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
            t.addfile(info, io.BytesIO(content))


with scratch() as tmp:
    os.environ["XDG_CACHE_HOME"] = cache = f"{tmp}/cache"
    traces, history = f"{tmp}/fibonacci", f"{tmp}/x.steal"
    shutil.copytree(os.path.join(DATA, "fibonacci"), traces)
    run("index", traces, "-o", history)
    question = ["summary", "--format", "csv"]
    expected = run(question[0], history, *question[1:]).stdout
    check("burnP6" in expected, "the answer of the plain recording names the culprit")

    # pipes, which need no library
    with open(history, "rb") as f:
        p = subprocess.run([PROGRAM, "summary", "-", "--format", "csv"], stdin=f, capture_output=True, text=True, timeout=300)
    check(p.stdout == expected, "a history as standard input")
    check(pipe('cat "$2" | "$1" summary - --format csv', history).stdout == expected, "a history through a pipe")
    check(pipe('"$1" summary <(cat "$2") --format csv', history).stdout == expected, "and through <(...)")
    screen = f"{tmp}/screen.txt"
    pipe(f'"$1" view "$2" --fresh --size 80x24 --script <(echo ":screen {screen}")', history)
    check(os.path.getsize(screen) > 0, "a script through <(...)")
    check("empty" in pipe('true | "$1" summary -', status=2).stderr, "an empty pipe is refused")
    fifo = f"{tmp}/fifo"
    os.mkfifo(fifo)
    run("summary", fifo, status=2, timeout=300)

    if "without libarchive" in run("--version").stdout:
        with gzip.open(f"{tmp}/x.steal.gz", "wb") as f:
            f.write(open(history, "rb").read())
        p = run("summary", f"{tmp}/x.steal.gz", status=2)
        check("gzip" in p.stderr and "libarchive" in p.stderr, f"refused for what it is: {p.stderr}")
        skip("built without libarchive; the pipes passed")

    # single files
    content = open(history, "rb").read()
    with gzip.open(f"{tmp}/x.steal.gz", "wb") as f:
        f.write(content)
    with lzma.open(f"{tmp}/x.steal.xz", "wb") as f:
        f.write(content)
    with gzip.open(f"{tmp}/twice.gz", "wb") as f:
        f.write(gzip.compress(content))
    for name in ("x.steal.gz", "x.steal.xz", "twice.gz"):
        check(run("summary", f"{tmp}/{name}", "--format", "csv").stdout == expected, f"a history as {name}")

    # whole recordings
    for name, mode in (("r.tar.gz", "w:gz"), ("r.txz", "w:xz"), ("r.tar.bz2", "w:bz2"), ("r.tar", "w")):
        with tarfile.open(f"{tmp}/{name}", mode) as t:
            t.add(traces, "fibonacci")
    add_to_zip(traces, f"{tmp}/r.zip")
    for name in ("r.tar.gz", "r.txz", "r.tar.bz2", "r.tar", "r.zip"):
        check(run("summary", f"{tmp}/{name}", "--format", "csv").stdout == expected, f"a recording as {name}")
    check(pipe('cat "$2" | "$1" summary - --format csv', f"{tmp}/r.tar.gz").stdout == expected, "an archive through a pipe")
    for part in ("host", "guest-Debian"):
        with tarfile.open(f"{tmp}/{part}.tgz", "w:gz") as t:
            t.add(f"{traces}/{part}", part)
    run("index", "--host", f"{tmp}/host.tgz", "--guest", f"Debian={tmp}/guest-Debian.tgz", "-o", f"{tmp}/y.steal")
    check(run("summary", f"{tmp}/y.steal", "--format", "csv").stdout == expected, "--host and --guest in archives")

    # the copy is made once
    def copies():
        return sorted(os.listdir(f"{cache}/stealscope/unpacked"))
    before = copies()
    run("summary", f"{tmp}/r.zip")
    check(copies() == before, "the next question finds the copy")
    check(not [name for name in before if name.startswith("partial")], "nothing half-made is left")
    old = time.time() - 8 * 86400
    os.utime(f"{cache}/stealscope/unpacked/{before[0]}", (old, old))
    with gzip.open(f"{tmp}/z.gz", "wb") as f:
        f.write(content)
    run("summary", f"{tmp}/z.gz")
    check(before[0] not in copies(), "a copy that was not used for a week is removed when another is made")

    # hostile and broken archives
    file, link, hard = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
    tar_of(f"{tmp}/evil.tar.gz", [("../../../out", file, b"x"), ("/abs", file, content), ("a", link, b""), ("a/b", file, b"x"),
                                  ("h", hard, b""), ("f", tarfile.FIFOTYPE, b"")])
    run("info", f"{tmp}/evil.tar.gz", status=2)
    everywhere = [os.path.join(base, name) for base, folders, files in os.walk(tmp) for name in folders + files]
    check(not [p for p in everywhere if os.path.basename(p) == "out"], "no file outside of the copy")
    check(not [p for p in everywhere if os.path.islink(p)], "no link")
    with gzip.open(f"{tmp}/nothing.gz", "wb"):
        pass
    cut = f"{tmp}/cut.tar.gz"
    with open(cut, "wb") as f:
        f.write(open(f"{tmp}/r.tar.gz", "rb").read()[:5000])
    with lzma.open(f"{tmp}/bomb.xz", "wb", preset=0) as f:
        for _ in range(100):
            f.write(b"a" * (1 << 20))
    before = copies()
    for name in ("nothing.gz", "cut.tar.gz", "bomb.xz"):
        p = run("summary", f"{tmp}/{name}", status=2)
        check(name in p.stderr, f"refused: {p.stderr.strip()}")
    check(copies() == before or set(copies()) <= set(before), "and leave no copy")

    # a recording without a trace, and with a damaged one, is refused by the name that the user typed
    tar_of(f"{tmp}/no trace.tgz", [("notes/readme", file, b"no trace\n")])
    tar_of(f"{tmp}/damaged.tgz", [("host/kernel/metadata", file, b"/* CTF 1.8 */\ntrace {")])
    with gzip.open(f"{tmp}/text.gz", "wb") as f:
        f.write(b"no history\n")
    for name in ("no trace.tgz", "damaged.tgz", "text.gz"):
        path = f"{tmp}/{name}"
        for args in (["summary", path], ["index", path], ["info", path], ["index", "--host", path],
                     ["index", "--guest", f"web={path}"]):
            p = run(*args, status=2)
            check(path in p.stderr and cache not in p.stderr, f"{args[:-1]} names the packed file: {p.stderr.strip()}")
    check(cache not in pipe('cat "$2" | "$1" summary -', f"{tmp}/no trace.tgz", status=2).stderr, "nor the copy of a pipe")
