"""Bad input: one line that says what, why and what to do; the exit status; no partial file left behind."""
import os
import shutil
import signal
import subprocess
import time

from e2e import DATA, PROGRAM, check, run, scratch

TRACE = os.path.join(DATA, "fibonacci")


def refused(folder, status, *args, says, **more):
    """The command fails with one line that holds every text of `says`, and leaves nothing new in the folder."""
    before = sorted(os.walk(folder))
    p = run(*args, status=status, **more)
    check(p.stdout == "", f"{' '.join(args)}: nothing on stdout")
    line = p.stderr
    check(line.startswith("stealscope: ") and line.count("\n") == 1, f"one line: {line!r}")
    for text in says:
        check(text in line, f"says {text!r}")
    check(line.rstrip().endswith(")"), "says what would mend it")
    check(sorted(os.walk(folder)) == before, "leaves nothing behind")


def copy_of_trace(folder, name):
    place = os.path.join(folder, name)
    shutil.copytree(TRACE, place)
    return place


def check_unreadable(folder):
    """A machine's folder that this user may not read is not passed over."""
    place = copy_of_trace(folder, "private")
    os.chmod(folder, 0o755)
    os.chmod(os.path.join(place, "host"), 0)

    def as_user():
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
    try:
        p = subprocess.run([PROGRAM, "sync", place], capture_output=True, text=True, preexec_fn=as_user, check=False)
        check(p.returncode == 2 and "private/host: Permission denied (" in p.stderr, p.stderr.strip())
    except PermissionError:
        print("     the program itself cannot be reached by another user: not tried")
    os.chmod(os.path.join(place, "host"), 0o755)


def check_interrupt(folder):
    """Ctrl-C while indexing: status 130, no file."""
    out = os.path.join(folder, "interrupted.steal")
    for delay in (0.0, 0.02, 0.05):
        p = subprocess.Popen([PROGRAM, "index", TRACE, "-o", out], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(delay)
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=60)
        if p.returncode == 0:
            os.unlink(out)
        leftovers = [f for f in os.listdir(folder) if "interrupted" in f and p.returncode not in (0, -signal.SIGINT)]
        check(leftovers == [], f"interrupted after {delay} s: status {p.returncode}, nothing left")


with scratch() as tmp:
    out = os.path.join(tmp, "out.steal")
    refused(tmp, 2, "index", os.path.join(tmp, "nowhere"), "-o", out, says=["nowhere", "No such file"])

    os.mkdir(os.path.join(tmp, "empty"))
    refused(tmp, 2, "index", os.path.join(tmp, "empty"), "-o", out, says=["empty", "no trace"])

    os.mkdir(os.path.join(tmp, "photos"))
    with open(os.path.join(tmp, "photos", "cat.jpg"), "wb") as f:
        f.write(b"\xff\xd8\xff" * 100)
    refused(tmp, 2, "index", os.path.join(tmp, "photos"), "-o", out, says=["photos", "trace"])

    os.mkdir(os.path.join(tmp, "ctf2"))
    with open(os.path.join(tmp, "ctf2", "metadata"), "wb") as f:
        f.write(b'\x1e{"type": "preamble", "version": 2}\x1e{"type": "trace-class"}')
    refused(tmp, 2, "index", os.path.join(tmp, "ctf2"), "-o", out, says=["CTF 2"])

    os.mkdir(os.path.join(tmp, "garbage"))
    with open(os.path.join(tmp, "garbage", "metadata"), "wb") as f:
        f.write(os.urandom(4096))
    refused(tmp, 2, "index", os.path.join(tmp, "garbage"), "-o", out, says=["garbage"])

    refused(tmp, 2, "index", TRACE, os.path.join(TRACE, "host"), "-o", out, says=["host"])

    refused(tmp, 4, "index", TRACE, "-o", os.path.join(tmp, "no", "folder", "x.steal"), says=["folder"])

    bad = os.path.join(tmp, "bad.steal")
    with open(bad, "wb") as f:
        f.write(b"this is not a history" * 100)
    for command in (["view", bad], ["info", bad], ["flow", bad, "Debian/1"], ["intervals", bad, "/Host"], ["sync", bad]):
        refused(tmp, 2, *command, says=["bad.steal"])
    open(bad, "wb").close()
    refused(tmp, 2, "info", bad, says=["bad.steal"])

    refused(tmp, 1, "index", says=["no traces"])
    refused(tmp, 1, "flow", bad, says=["operand"])
    refused(tmp, 1, "index", "--nonsense", says=["--nonsense"])
    refused(tmp, 1, "index", TRACE, "--sync", "magic", says=["magic"])
    refused(tmp, 1, "info", bad, "--format", "xml", says=["xml"])
    refused(tmp, 1, "index", "--guest", "Debian", says=["Debian"])

    # A guest alone is no fault: its threads are shown; what cannot be known is said.
    p = run("index", "--guest", "Debian=" + os.path.join(TRACE, "guest-Debian"), "-o", out)
    check("host" in p.stderr, "a guest without a host: said")
    p = run("intervals", out, "/Virtual Machines/Debian/Threads/151/Status", "--format", "csv")
    check("RUNNING" in p.stdout, "a guest without a host: its threads are there")
    os.unlink(out)
    run("index", os.path.join(TRACE, "host"), "-o", out)
    told = run("info", out).stdout
    check("qemu:Debian" in told and "contained" not in told, "a host alone: its VM, and no table of clocks that is empty")
    run("index", "--guest", "Debian=" + os.path.join(TRACE, "guest-Debian"), "-o", out)
    screen, script = os.path.join(tmp, "screen"), os.path.join(tmp, "script")
    for keys, shown in (("", True), ("j\n", False)):
        with open(script, "w", encoding="utf-8") as f:
            f.write(f"{keys}:screen {screen}\n")
        run("view", out, "--script", script, "--size", "200x30")
        with open(screen, encoding="utf-8") as f:
            foot = f.read().splitlines()[-1]
        check((" Debian: its clock cannot be told" in foot) == shown, f"the viewer says it until the first key: {foot}")
    os.unlink(out)

    # A stream cut in the middle costs what was cut, not the trace.
    cut = copy_of_trace(tmp, "cut")
    stream = os.path.join(cut, "guest-Debian", "kernel", "ch_0")
    os.truncate(stream, os.path.getsize(stream) // 2 + 13)
    p = run("index", cut, "-o", out)
    check("ch_0" in p.stderr or "Debian" in p.stderr, "a truncated stream: said which")
    os.unlink(out)

    with open(bad + "2", "wb") as f:
        f.write(b"dear notes")
    history = os.path.join(tmp, "good.steal")
    run("index", TRACE, "-o", history)
    refused(tmp, 1, "intervals", history, "/No/Such/Path", says=["/No/Such/Path"])
    refused(tmp, 1, "flow", history, "Debian/99999", says=["99999"])
    refused(tmp, 1, "flow", history, "Nobody/1", says=["Nobody"])
    refused(tmp, 1, "flow", history, "Debian/151", "--from", "yesterday", says=["yesterday"])
    os.mkdir(os.path.join(tmp, "results"))
    shutil.copy(history, os.path.join(tmp, "results"))
    refused(tmp, 2, "view", os.path.join(tmp, "results"), says=["results/good.steal: a history", "give that file"])
    refused(tmp, 1, "flow", history, "fibonacci", says=["a thread is MACHINE/fibonacci", "Debian"])
    refused(tmp, 1, "intervals", history, "/Host/CPUs/CPU1/Status", says=["CPU1 has: Current Thread, Interrupt, Owner)"])
    refused(tmp, 1, "intervals", history, "/", says=["/ has: Host, Virtual Machines)"])
    refused(tmp, 1, "intervals", history, "/Host/Threads", says=["Threads has: 1, 10", ", ...)"])
    refused(tmp, 1, "sync", history, "--sync", "none", says=["--sync: ", "good.steal is a history"])
    refused(tmp, 1, "view", history, "--guest", "Debian=x", says=["--guest: ", "good.steal is a history"])
    refused(tmp, 1, "index", history, "-o", out, says=["good.steal: is a history"])
    refused(tmp, 1, "index", TRACE, "-o", bad + "2", says=["bad.steal2: exists and is not a history"])
    with open(bad + "2", "rb") as f:
        check(f.read() == b"dear notes", "a file that is no history stays as it is")
    run("index", TRACE, "-o", history)
    run("index", TRACE, "-o", bad)
    refused(tmp, 1, "help", "nonsense", says=["nonsense"])
    check(run("help", "flow").stdout == run("flow", "--help").stdout, "help COMMAND is COMMAND --help")
    check_unreadable(tmp)
    refused(tmp, 2, "index", "/dev/null", "-o", out, says=["/dev/null: neither a folder nor a file"])
    check_interrupt(tmp)
