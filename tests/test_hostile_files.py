"""Files that are not what their names say, guests with impossible clocks, and limits of the system: the program ends soon,
with the right exit status and one message, and names what is missing."""
import os
import re
import resource
import shutil
import socket
import struct
import subprocess

from e2e import DATA, PROGRAM, check, run, scratch


def make_special(kind, path):
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        os.mkdir(path)
    elif kind == "socket":
        s = socket.socket(socket.AF_UNIX)
        at = os.open(os.path.dirname(path), os.O_RDONLY)
        s.bind(f"/proc/self/fd/{at}/{os.path.basename(path)}")
        os.close(at)
        s.close()
    else:
        os.symlink(kind, path)


def check_special_traces(folder):
    for kind in ("pipe", "directory", "socket", "/dev/zero", "/dev/urandom"):
        copy = os.path.join(folder, "special")
        shutil.copytree(os.path.join(DATA, "beacon"), copy)
        guest = os.path.join(copy, "trace-Debian.dat")
        os.remove(guest)
        make_special(kind, guest)
        p = run("index", copy, "-o", os.path.join(folder, "x.steal"), status=None)
        if "libtraceevent" in p.stderr:
            print("     built without libtraceevent: traces of trace-cmd are not read")
            return
        check(p.returncode == 0 and guest in p.stderr, f"{kind} in the place of a guest's trace is reported")
        shutil.rmtree(copy)
    p = run("index", os.path.join(DATA, "beacon"), "-o", os.path.join(folder, "x.steal"))
    check("trace-Debian.dat" not in p.stderr, "an undamaged trace is not reported")


def metadata_text(path):
    """Returns the text of packetized CTF metadata."""
    with open(path, "rb") as f:
        packets = f.read()
    at, text = 0, b""
    while at < len(packets):
        content, size = (bits // 8 for bits in struct.unpack_from("<II", packets, at + 24))
        text += packets[at + 37:at + content]
        at += size
    return text


def check_one_instant(folder):
    """A clock so fast that all events of the guest have one time (an endless search in version 0.2.0)."""
    copy = os.path.join(folder, "instant")
    shutil.copytree(os.path.join(DATA, "fibonacci"), copy)
    path = os.path.join(copy, "guest-Debian", "kernel", "metadata")
    text = metadata_text(path)
    fast = re.sub(rb"freq = 1000000000;", b"freq = 18446744073709551615;", text)
    check(fast != text, "the clock of the guest is changed")
    with open(path, "wb") as f:
        f.write((b"" if fast.startswith(b"/*") else b"/* CTF 1.8 */\n\n") + fast)
    p = subprocess.run([PROGRAM, "sync", "--sync", "containment", copy], capture_output=True, text=True,
                       timeout=300)
    check(p.returncode in (0, 2) and "no clock offset" in p.stdout + p.stderr,
          f"a guest without a usable clock ends the search: {p.returncode}")


def check_file_limit(folder):
    copy = os.path.join(folder, "limit")
    shutil.copytree(os.path.join(DATA, "fibonacci"), copy)
    for size in (0, 512, 16384):
        limit = lambda size=size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        p = subprocess.run([PROGRAM, "index", copy, "-o", os.path.join(folder, "limited.steal")], capture_output=True,
                           text=True, timeout=300, preexec_fn=limit)
        check(p.returncode == 4 and "ulimit -f" in p.stderr, f"ulimit -f of {size} bytes: {p.returncode} {p.stderr.strip()}")
        check(not os.path.exists(os.path.join(folder, "limited.steal")), "nothing half written is left")


def check_named_files(folder):
    """A file that a user names may be a pipe that nobody writes to."""
    pipe, history = os.path.join(folder, "named"), os.path.join(folder, "x.steal")
    os.mkfifo(pipe)
    run("index", os.path.join(DATA, "fibonacci"), "-o", history)
    for args in (("view", history, "--script", pipe), ("view", history, "--script", "/dev/zero"), ("sync", pipe),
                 ("sync", "/dev/zero"), ("summary", pipe)):
        p = subprocess.run([PROGRAM, *args], capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
        check(p.returncode in (1, 2) and p.stderr.count("\n") == 1, f"{' '.join(args)}: {p.returncode} {p.stderr.strip()}")


def check_theme(folder):
    script, history = os.path.join(folder, "script"), os.path.join(folder, "x.steal")
    for name in (os.path.join(folder, "named"), "/dev/zero"):
        with open(script, "w") as f:
            f.write(f":theme {name}\n")
        p = subprocess.run([PROGRAM, "view", history, "--script", script], capture_output=True, text=True, timeout=300)
        check(p.returncode != 0, f":theme {name} is refused: {p.stdout.strip()[-120:]} {p.stderr.strip()[-120:]}")


with scratch() as tmp:
    check_special_traces(tmp)
    check_one_instant(tmp)
    check_file_limit(tmp)
    check_named_files(tmp)
    check_theme(tmp)
