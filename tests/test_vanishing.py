"""Every machine and every stream is read or reported: each unreadable part has a note of its own."""
import os
import shutil
import struct

from e2e import DATA, SOURCE, check, run, scratch

HOST, GUEST = os.path.join(DATA, "fibonacci", "host", "kernel"), os.path.join(DATA, "fibonacci", "guest-Debian", "kernel")


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def spoil_metadata(data):
    """Name of the case -> content of the metadata."""
    return {"empty": b"", "version": data[:35] + b"\x09\x07" + data[37:], "magic": b"\xff" + data[1:], "cut": data[:100],
            "noise": bytes(range(256)), "later": b"/* CTF 1.8 */ trace { major = 1; minor = 9; byte_order = le; };"}


def check_case(tmp, name, make, words):
    folder, out = os.path.join(tmp, name), os.path.join(tmp, name + ".steal")
    shutil.copytree(HOST, os.path.join(folder, "host", "kernel"))
    make(os.path.join(folder, "guest-Debian"))
    p = run("index", folder, "-o", out)
    lines = [line for line in p.stderr.splitlines() if all(w in line for w in words)]
    check(len(lines) == 1 and lines[0].startswith("stealscope: note: "), f"{name}: one note {p.stderr.strip()}")
    notes = "".join(run("info", out).stdout.split())  # line breaks, even in a path, depend on the length of TMPDIR
    check(all("".join(w.split()) in notes for w in words[1:]), f"{name}: the history contains it, too")
    p = run("index", "--host", os.path.join(folder, "host"), "--guest", "g=" + os.path.join(folder, "guest-Debian"),
            "-o", os.path.join(tmp, "named.steal"), status=2)
    check(p.stderr.count("\n") == 1 and not os.path.exists(os.path.join(tmp, "named.steal")),
          f"{name}: refused if named by the user: {p.stderr.strip()}")


def check_opened(tmp):
    """Damage found only when the trace is opened: the other traces are read as if it did not exist."""
    folder, out = os.path.join(tmp, "opened"), os.path.join(tmp, "opened.steal")
    metadata = {"guest-Debian": "", "host": ""}
    for machine in metadata:
        shutil.copytree(os.path.join(DATA, "fibonacci", machine), os.path.join(folder, machine))
        metadata[machine] = os.path.join(folder, machine, "kernel", "metadata")
    run("index", os.path.join(folder, "host"), "-o", out)
    alone = run("summary", "--format", "csv", out).stdout

    def spoil(machine):
        with open(metadata[machine], "r+b") as f:
            f.seek(9000)
            f.write(bytes(64))

    spoil("guest-Debian")
    p = run("index", folder, "-o", out)
    check(p.stderr.count("\n") == 1 and "guest-Debian/kernel: the metadata cannot be read: " in p.stderr and
          "; skipped (" in p.stderr, f"opened: one note {p.stderr.strip()}")
    check(run("summary", "--format", "csv", out).stdout == alone, "opened: the host's answers are those of the host alone")
    p = run("index", "--host", os.path.join(folder, "host"), "--guest", "g=" + os.path.join(folder, "guest-Debian"),
            "-o", os.path.join(tmp, "named.steal"), status=2)
    check(p.stderr.count("\n") == 1, f"opened: refused if named by the user: {p.stderr.strip()}")
    spoil("host")
    p = run("index", folder, "-o", os.path.join(tmp, "named.steal"), status=2)
    check(p.stderr.startswith("stealscope: none of the traces can be read: "), f"opened: no trace is left {p.stderr.strip()}")


def check_stream(tmp, name, make):
    folder = os.path.join(tmp, "stream-" + name)
    shutil.copytree(os.path.join(DATA, "fibonacci"), folder)
    stream = os.path.join(folder, "host", "kernel", "ch_0")
    make(stream)
    p = run("index", folder, "-o", os.path.join(tmp, name + ".steal"))
    lines = [line for line in p.stderr.splitlines() if "ch_0: the stream is " + name in line]
    check(len(lines) == 1, f"a stream that is {name}, but not its index: {p.stderr.strip()}")


def perf_trace():
    """Metadata, and the two packets of the only stream."""
    with open(os.path.join(SOURCE, "tests", "fuzz", "corpus-ctf", "perf"), "rb") as f:
        metadata, stream = f.read().split(b"\n----\n")
    size = struct.unpack_from("<Q", stream, 24 + 24)[0] // 8
    return metadata, stream[:size], stream[size:]


def check_perf(tmp):
    """Traces without an index: anything that is not a packet is reported."""
    metadata, first, second = perf_trace()
    for name, data, words in (
            ("sound", first + second, None), ("short", b"\xc1", "invalid"), ("head", b"x" + first[1:] + second, "damaged"),
            ("behind", first + b"noise" * 100, "damaged"), ("empty", b"", "empty"),
            ("second", first + b"x" + second[1:], "damaged")):
        folder, out = os.path.join(tmp, "perf-" + name), os.path.join(tmp, name + ".steal")
        write(os.path.join(folder, "metadata"), metadata)
        write(os.path.join(folder, "perf_stream_0"), data)
        write(os.path.join(folder, "perf_stream_1"), first)
        said = [line for line in run("index", folder, "-o", out).stderr.splitlines() if "perf_stream_0" in line]
        if name == "sound":
            write(os.path.join(folder, "metadata"), metadata[:1000])
            p = run("index", folder, "-o", out, status=2, env={"TMPDIR": tmp})
            check(p.stderr.count(tmp) == 1, f"no internal directory in the message: {p.stderr.strip()}")
        check(len(said) == (words is not None) and all(words in line for line in said),
              f"perf, {name}: {said}")


def check_files_of_trace_cmd(tmp):
    """Each file is one machine's trace, also next to a readable one and in a directory above it."""
    folder, out = os.path.join(tmp, "dats"), os.path.join(tmp, "dats.steal")
    shutil.copytree(HOST, os.path.join(folder, "host", "kernel"))
    for name, data in (("a.dat", b""), ("b.dat", b"\x17"), (os.path.join("host", "c.dat"), b"\x17\x09\x44tracing6\0")):
        write(os.path.join(folder, name), data)
    said = run("index", folder, "-o", out).stderr
    check(all(f"{name}.dat: named like a trace-cmd file" in said for name in "abc") and said.count("\n") == 3, said.strip())
    os.symlink("nowhere", os.path.join(folder, "d.dat"))
    said = run("index", folder, "-o", out, status=2).stderr
    check("d.dat: No such file" in said and said.count("\n") == 1, f"a dangling link: {said.strip()}")


with scratch() as tmp:
    with open(os.path.join(GUEST, "metadata"), "rb") as f:
        sound = f.read()
    for case, text in spoil_metadata(sound).items():
        def make(folder, text=text):
            shutil.copytree(GUEST, os.path.join(folder, "kernel"))
            write(os.path.join(folder, "kernel", "metadata"), text)
        check_case(tmp, case, make, ["guest-Debian/kernel", "metadata"])
    check_case(tmp, "perf", lambda folder: write(os.path.join(folder, "perf.data"), b"PERFILE2" + bytes(100)),
               ["guest-Debian/perf.data"])
    check_case(tmp, "headless", lambda folder: shutil.copytree(GUEST, folder, ignore=shutil.ignore_patterns("metadata")),
               ["guest-Debian/ch_0", "without the trace's metadata"])
    check_case(tmp, "file", lambda folder: write(os.path.join(folder, "trace.dat"), b"\x17\x08\x44tracing6\0" + bytes(8)),
               ["guest-Debian/trace.dat"])
    check_opened(tmp)
    check_perf(tmp)
    check_files_of_trace_cmd(tmp)
    check_stream(tmp, "missing", os.unlink)
    check_stream(tmp, "empty", lambda path: open(path, "wb").close())
    both = os.path.join(tmp, "both")
    shutil.copytree(HOST, both)
    write(os.path.join(both, "perf.data"), b"PERFILE2" + bytes(100))
    p = run("index", both, "-o", os.path.join(tmp, "both.steal"))
    check("perf.data" in p.stderr and p.stderr.count("skipped") == 1, "a damaged perf.data file is reported")
