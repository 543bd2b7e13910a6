"""A read error is not damage: whichever attempt to read the input fails with EIO, the run either ends with status 4 and
leaves no file, or gives the same answer as without the error."""
import fcntl
import glob
import os
import pty
import shutil
import struct
import subprocess
import termios

from e2e import BUILD, DATA, PROGRAM, SOURCE, check, is_sanitized, run, scratch, simulate, skip, until_exit
from ftrace import Buffer, record, write_dat, write_machine

LIBRARY = os.path.join(BUILD, "tests", "faults.so")
OUT = "OUT"  # in a command: its output file


def attempt(tmp, folder, command, at, log=None):
    """Runs the command, whose attempt `at` to read below the folder fails (0: none).  Returns status, stderr, and (stdout, bytes
    of the output file)."""
    out = os.path.join(tmp, "out.steal")
    if os.path.exists(out):
        os.unlink(out)
    env = dict(os.environ, LD_PRELOAD=LIBRARY, FAULT_BELOW=os.path.realpath(folder), FAULT_AT=str(at), TMPDIR=tmp,
               XDG_CACHE_HOME=os.path.join(tmp, "cache"), XDG_CONFIG_HOME=os.path.join(tmp, "config"))
    if log:
        env["FAULT_LOG"] = log
    p = subprocess.run([PROGRAM, *[out if word == OUT else word for word in command]], env=env, capture_output=True,
                       text=True, check=False, timeout=300)
    written = b""
    if os.path.exists(out):
        with open(out, "rb") as f:
            written = f.read()
    shutil.rmtree(os.path.join(tmp, "cache"), ignore_errors=True)
    return p.returncode, p.stderr, (p.stdout.replace(out, OUT), written)


def check_kind(tmp, kind, folder, command):
    log = os.path.join(tmp, "attempts")
    status, notes, answer = attempt(tmp, folder, command, 0, log)
    check(status == 0, f"{kind}: without faults {notes}")
    with open(log, encoding="utf-8") as f:
        attempts = [line.split(None, 1)[1].strip() for line in f]
    os.unlink(log)
    wrong, refused = [], 0
    for at in range(1, len(attempts) + 1):
        status, messages, result = attempt(tmp, folder, command, at)
        refused += status == 4
        good = (status == 4 and not any(result) and messages.startswith("stealscope: ") and messages.count("\n") == 1) or \
            (status == 0 and result == answer and messages == notes)
        if not good:
            wrong.append((at, attempts[at - 1], status, messages.strip()))
    check(not wrong, f"{kind}: {refused} of {len(attempts)} faults end with status 4, no wrong answer {wrong}")
    check(refused > 0, f"{kind}: faults have an effect")


def make_buffers():
    buffers = []
    for cpu in range(2):
        b = Buffer()
        for i in range(400):
            tid, other = (100 + cpu, 0) if i % 2 else (0, 100 + cpu)
            b.add(5_000_000_000 + i * 100_000, record("sched_switch", tid, prev_pid=tid, prev_state=tid and 1, next_pid=other))
        buffers.append(b.bytes())
    return buffers


def make_recording(folder):
    about = "hostname: hv\nclock: mono\nstarted: {clock: 4900000000, realtime: 1800000000000000000}\n" \
        "stopped: {clock: 5100000000, realtime: 1800000000200000000}\nlost: 0\n"
    stats = "entries: 0\noverrun: 0\ndropped events: 0\nread events: 400\n"
    write_machine(os.path.join(folder, "host"), make_buffers(), about, {100: "a", 101: "b"}, {100: 100, 101: 101}, [stats] * 2)
    with open(os.path.join(folder, "session.yaml"), "w", encoding="utf-8") as f:
        f.write("host: {name: hv, dir: host}\n")


def check_traces(tmp):
    ctf = os.path.join(tmp, "ctf")
    shutil.copytree(os.path.join(DATA, "fibonacci"), ctf)
    check_kind(tmp, "CTF", ctf, ["index", "-j", "1", ctf, "-o", OUT])
    session = os.path.join(tmp, "session")
    os.mkdir(session)
    shutil.copy(os.path.join(SOURCE, "src", "trace", "layouts", "lttng.yaml"), os.path.join(session, "layout.yaml"))
    with open(os.path.join(session, "session.yaml"), "w", encoding="utf-8") as f:
        f.write(f"host: {{dir: '{ctf}/host', layout: '{session}/layout.yaml'}}\nguests: [{{name: Debian, dir: '{ctf}/guest-Debian'}}]\n")
    check_kind(tmp, "a session and a layout", session, ["index", "-j", "1", os.path.join(session, "session.yaml"), "-o", OUT])
    dat = os.path.join(tmp, "dat")
    write_dat(os.path.join(dat, "trace.dat"), make_buffers())
    recording = os.path.join(tmp, "recording")
    make_recording(recording)
    for kind, folder in (("trace-cmd", dat), ("a recording", recording)):
        command = ["index", "-j", "1", folder, "-o", OUT]
        status, message, _ = attempt(tmp, folder, command, 0)
        if status == 0:
            check_kind(tmp, kind, folder, command)
        else:
            check("without lib" in message, f"{kind}: {message}")
            print(f"     not run: {kind} ({message.strip()})")


def check_histories(tmp):
    folder = os.path.join(tmp, "history")
    traces = os.path.join(tmp, "requests")
    history, model, rows = (os.path.join(folder, name) for name in ("h.steal", "m.model", "rows.csv"))
    simulate(traces, "requests", "--duration", "300ms")
    os.mkdir(folder)
    run("index", traces, "-o", history)
    for command in (["info"], ["steal"], ["gaps"], ["latency", "requests"]):
        check_kind(tmp, f"{' '.join(command)} of a history", folder, [*command, history])
    with open(rows, "w", encoding="utf-8") as f:
        f.write(run("latency", "requests", history, "--format", "csv").stdout)
    train = ["latency", "train", "--csv", "--latency", "latency_ns", "--input", "provider_high_ns", "-b", rows, rows]
    check_kind(tmp, "rows of requests", folder, [*train, "-o", OUT])
    run("latency", "train", "-b", history, history, "-o", model)
    check_kind(tmp, "a model", folder, ["latency", "requests", history, "-m", model])


def file_of(state, kind):
    return glob.glob(os.path.join(state, "stealscope", "*." + kind))[0]


def read_lines(state, kind):
    with open(file_of(state, kind), encoding="utf-8") as f:
        return f.read().splitlines()


def bookmark(tmp, history, state, at, log):
    """Sets a bookmark in the viewer.  Returns its output, and the lines of the files of bookmarks and view afterwards."""
    env = dict(os.environ, LD_PRELOAD=LIBRARY, FAULT_BELOW=os.path.realpath(state), FAULT_AT=str(at), FAULT_LOG=log,
               TMPDIR=tmp, TERM="xterm", XDG_STATE_HOME=state, XDG_CONFIG_HOME=os.path.join(tmp, "config"))
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    p = subprocess.Popen([PROGRAM, "view", history], stdin=slave, stdout=slave, stderr=subprocess.DEVNULL, env=env)
    screen = b""
    for key, until in ((b"\x0c", b"host"), (b"m", b"? help"), (b"Q", b"bookmark ")):  # ^L removes the message
        while until not in screen:
            screen += os.read(master, 65536)
        os.write(master, key)
    screen += until_exit(p, master, slave)
    if p.wait(timeout=300):
        check(False, f"fault {at}: the viewer sets a bookmark and exits")
    return screen, *(read_lines(state, kind) for kind in ("bookmarks", "view"))


def check_bookmarks(tmp):
    """Bookmarks that cannot be read stay in their file, and the viewer reports what it could not read or save."""
    history, state, first, log = (os.path.join(tmp, name) for name in ("b.steal", "state", "first", "attempts"))
    run("index", os.path.join(DATA, "fibonacci"), "-o", history)
    _, before, view = bookmark(tmp, history, first, 0, log)
    pin = "pin " + [line for line in view if line.startswith("view ")][0].split(" - - ")[1]
    for kind, line in ("bookmarks", "# a line of the user's"), ("view", pin):
        with open(file_of(first, kind), "a", encoding="utf-8") as f:
            f.write(line + "\n")
    before.append("# a line of the user's")
    attempts, at, saved, incomplete, wrong, unpinned = 1, 0, 0, 0, [], []
    while at <= attempts:  # the first without a fault, to count the attempts
        shutil.rmtree(state, ignore_errors=True)
        shutil.copytree(first, state)
        os.unlink(log)
        screen, after, view = bookmark(tmp, history, state, at, log)
        if at == 0:
            with open(log, encoding="utf-8") as f:
                attempts = len(f.readlines())
        added = len(after) == len(before) + 1
        saved += added
        incomplete += b"could be read" in screen
        if after[:len(before)] != before or added == (b"not saved" in screen):
            wrong.append((at, after, screen[-200:]))
        if pin not in view:
            unpinned.append((at, view))
        at += 1
    check(not wrong, f"bookmarks: {attempts} faults, no old bookmark is lost and a lost new one is reported {wrong}")
    check(not unpinned, f"the saved view: no fault loses a pin {unpinned}")
    check(1 < saved <= attempts, f"the new bookmark is lost, and reported, in {attempts + 1 - saved} of them")
    check(incomplete > 0, f"an incomplete list is reported in {incomplete} of them")


with scratch() as tmp:
    if is_sanitized():
        skip("sanitizers must be preloaded first, before faults.so")
    check_traces(tmp)
    check_histories(tmp)
    check_bookmarks(tmp)
