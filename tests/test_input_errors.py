"""Bad input: the error is one line with the object, the reason and a remedy; the exit status; no partial file is left."""
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import time

from e2e import DATA, PROGRAM, check, is_emulated, become_other, has_other_user, is_sanitized, run, scratch, simulate, table

TRACE = os.path.join(DATA, "fibonacci")


def refused(folder, status, *args, texts, **more):
    """The command fails with one line that contains each of these texts, and leaves no new file in the folder."""
    before = sorted(os.walk(folder))
    p = run(*args, status=status, **more)
    check(p.stdout == "", f"{' '.join(args)}: nothing on stdout")
    line = p.stderr
    check(line.startswith("stealscope: ") and line.count("\n") == 1, f"one line: {line!r}")
    for text in texts:
        check(text in line, f"contains {text!r}")
    check(line.rstrip().endswith(")"), "ends with a remedy")
    check(sorted(os.walk(folder)) == before, "leaves no file")


def copy_of_trace(folder, name):
    path = os.path.join(folder, name)
    shutil.copytree(TRACE, path)
    return path


def check_unreadable(folder):
    """Files and directories without read permission are reported, with a remedy, not skipped."""
    trace = copy_of_trace(folder, "private")
    os.chmod(folder, 0o755)
    os.chmod(os.path.join(trace, "host"), 0)
    files = [os.path.join(folder, name) for name in ("private.steal", "private.yaml")]
    for path in files:
        with open(path, "wb"):
            os.chmod(path, 0)

    if not has_other_user():
        print("     not run: root may read all files, and this user namespace has no other user")
        return
    try:
        for path in (trace, *files):
            p = subprocess.run([PROGRAM, "sync", path], capture_output=True, text=True, preexec_fn=become_other, check=False)
            unreadable = path + ("/host" if path == trace else "")
            check(p.returncode == 2 and p.stderr.startswith(f"stealscope: {unreadable}: Permission denied (") and
                  p.stderr.count("\n") == 1, p.stderr.strip())
    except PermissionError:
        print("     not run: another user has no access to the program")
    os.chmod(os.path.join(trace, "host"), 0o755)


def check_metadata(tmp, out):
    """Metadata that the reader cannot use is refused with the reason."""
    trace = copy_of_trace(tmp, "short")
    with open(os.path.join(trace, "host", "kernel", "metadata"), "w", encoding="ascii") as f:
        f.write("/* CTF 1.8 */ trace { " + "a." * 200000 + "a = 1; };")
    refused(tmp, 2, "index", os.path.join(trace, "host"), "-o", out, texts=["short/host/kernel: ", "metadata too large"])


def check_tables(tmp):
    """latency train --csv: a cell that is not a number is refused with its line and column; a valid table is accepted."""
    good = ["latency_ns,out_flight,load,culprit"] + [f"{100 + 7 * i % 50},{i % 9},{i},x" for i in range(40)]
    path, model = os.path.join(tmp, "runs.csv"), os.path.join(tmp, "runs.model")

    def write(lines):
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")

    train = ("latency", "train", "--csv", "-b", path, "-o", model)
    write(good)
    run(*train, path)
    for column, name in enumerate(("latency_ns", "out_flight", "load")):
        for cell in ("nan", "NaN", "inf", "-inf", "", "text", "1e999", "1e400", "0x", "1e200", "-1"):
            if name == "load" and cell == "-1":
                continue
            lines = list(good)
            fields = lines[7].split(",")
            fields[column] = cell
            lines[7] = ",".join(fields)
            lines.insert(3, "")  # an empty line counts as a line, not as a row
            write(lines)
            refused(tmp, 2, *train, "--input", "load", path, texts=[f"runs.csv:9: {name}: "])
    with open(model, encoding="utf-8") as f:
        sound = f.read()
    requests_of(tmp)
    for narrow in (["--request", "none"], ["--to", "+1ns"]):
        refused(tmp, 2, "latency", "requests", requests_of(tmp), *narrow, texts=["no complete request"])
    number = sound.split("\n").index(next(x for x in sound.split("\n") if x.startswith("target"))) + 1
    for text in ("target nan 1", "target inf 1", "target x 1", "target  ", "target 1e999 1"):
        with open(model, "w", encoding="utf-8") as f:
            f.write("\n".join(text if line.startswith("target") else line for line in sound.split("\n")))
        refused(tmp, 2, "latency", "requests", requests_of(tmp), "-m", model, texts=[f"runs.model:{number}: "])
    check_extreme_models(tmp, model)


def check_extreme_models(tmp, model):
    """A model with extreme figures is refused, or its predictions stay between 0 and the latency."""
    history = requests_of(tmp)
    run("latency", "train", "-b", history, history, "-o", model)
    with open(model, encoding="utf-8") as f:
        trained = f.read().split("\n")
    count = len(table("latency", "requests", history))
    kernel = "kernel 1e308 1e308 1e-300 1"
    for target, lines, status in (("1e308 1e308", [kernel], 2), ("1e308 1e308", [], 2), ("-1e308 1e308", [], 2),
                                  ("1e30 1", [], 0), ("-1e30 1", [], 0), ("0 1e300", [], 0)):
        replaced = {line.split()[0]: line for line in [f"target {target}", *lines]}
        with open(model, "w", encoding="utf-8") as f:
            f.write("\n".join(replaced.get(line.split(" ")[0], line) for line in trained))
        if status:
            refused(tmp, status, "latency", "requests", history, "-m", model, texts=["train the model again"])
            continue
        rows = table("latency", "requests", history, "-m", model)
        figures = [[int(r[c]) for c in ("ci_low_ns", "predicted_ns", "ci_high_ns", "latency_ns")] for r in rows]
        check(len(figures) == count > 10 and all(0 <= f[0] and f == sorted(f) for f in figures),
              f"target {target}: {count} predictions within bounds")


def check_limits(tmp):
    """A limit of open files or memory is reported with a remedy, and not as damage."""
    out = os.path.join(tmp, "limited.steal")
    for most in [] if is_sanitized() else range(9, 20):  # sanitizers need files of their own
        p = run("index", TRACE, "-o", out, status=4,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)))  # pylint: disable=cell-var-from-loop
        check("ulimit -n" in p.stderr and "copy" not in p.stderr and p.stderr.count("\n") == 1 and not os.path.exists(out),
              f"limit {most}: {p.stderr.strip()}")
    # Emulators need memory of their own, too.
    for most in [] if is_sanitized() or is_emulated() else range(50 << 20, 300 << 20, 10 << 20):
        p = run("index", TRACE, "-o", out, status=None,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)))  # pylint: disable=cell-var-from-loop
        if p.returncode in (0, 127):  # 127: the dynamic linker failed
            if p.returncode == 0:
                os.unlink(out)
            continue
        check(p.returncode == 4 and "ulimit -v" in p.stderr and "copy" not in p.stderr and not os.path.exists(out),
              f"memory {most >> 20} MiB: {p.stderr.strip()}")
    check_library_limits(tmp, out)


def check_library_limits(tmp, out):
    """Libraries that read traces crash, or report damage, where memory ends: too little of it is refused before."""
    beacon = os.path.join(tmp, "beacon")  # files of trace-cmd
    shutil.copytree(os.path.join(DATA, "beacon"), beacon)
    for args in ([TRACE], [beacon]):
        if is_sanitized() or is_emulated() or run("index", *args, "-o", out, status=None).returncode:
            continue  # the second: built without the library
        os.unlink(out)
        clean = 0
        for most in range(90 << 20, 250 << 20, (12 << 20) + 4096):
            p = run("index", *args, "-o", out, status=None,
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)))  # pylint: disable=cell-var-from-loop
            check(p.returncode in (0, 4, 127) and not re.search("damaged|crashed|skipped|copy", p.stderr) and
                  (p.returncode != 4 or "ulimit -v" in p.stderr), f"memory {most >> 20} MiB: {p.returncode} {p.stderr.strip()}")
            clean += p.returncode == 0
            if p.returncode == 0:
                os.unlink(out)
        check(clean > 2, f"{args[0]}: read with {clean} of these limits")


def requests_of(tmp):
    history = os.path.join(tmp, "requests.steal")
    if not os.path.exists(history):
        simulate(os.path.join(tmp, "requests"), "requests", "--duration", "1s")
        run("index", os.path.join(tmp, "requests"), "-o", history)
    return history


def process_status(pid):
    """Returns the fields of /proc/PID/status."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return dict(line.split(":", 1) for line in f.read().splitlines())


def handles_interrupt(pid):
    return int(process_status(pid)["SigCgt"], 16) >> signal.SIGINT - 1 & 1


def stop_while_indexing(p):
    """Stops the process while its handler of SIGINT is installed, and returns true if that succeeds.  The program opens all
    its inputs non-blocking, so that a FIFO cannot hold it."""
    while p.poll() is None and not handles_interrupt(p.pid):
        pass
    if p.poll() is not None:
        return False
    p.send_signal(signal.SIGSTOP)
    while p.poll() is None and not process_status(p.pid)["State"].strip().startswith("T"):
        pass
    return p.poll() is None and handles_interrupt(p.pid)


def check_interrupt(folder):
    """Ctrl-C while indexing, at once and at any other time: status 130 and no file, or a whole history."""
    out, statuses = os.path.join(folder, "interrupted.steal"), []
    simulate(os.path.join(folder, "long"), "random", "--seed", "4", "--events", "200k")
    delays = [0.0, 0.02, 0.05, 0.1, 0.2]
    while delays or (130 not in statuses and len(statuses) < 30):
        p = subprocess.Popen([PROGRAM, "index", os.path.join(folder, "long"), "-o", out], stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE)
        if delays:
            time.sleep(delays.pop())
            stopped = False
        else:
            stopped = stop_while_indexing(p)
        p.send_signal(signal.SIGINT)
        p.send_signal(signal.SIGCONT)
        p.communicate(timeout=300)
        statuses += [p.returncode] * stopped
        # On a busy machine it can be stopped after its last look at the signal.
        check(p.returncode in ((0, 130) if stopped else (0, 130, -signal.SIGINT)), f"interrupted: status {p.returncode}")
        if p.returncode == 0:
            run("info", out)
            os.unlink(out)
        check([f for f in os.listdir(folder) if "interrupted" in f] == [], "no file is left")
    check(130 in statuses, f"at least one was interrupted while it indexed: {statuses}")


with scratch() as tmp:
    out = os.path.join(tmp, "out.steal")
    refused(tmp, 2, "index", os.path.join(tmp, "nowhere"), "-o", out, texts=["nowhere", "No such file"])

    os.mkdir(os.path.join(tmp, "empty"))
    refused(tmp, 2, "index", os.path.join(tmp, "empty"), "-o", out, texts=["empty", "no trace"])

    os.mkdir(os.path.join(tmp, "photos"))
    with open(os.path.join(tmp, "photos", "cat.jpg"), "wb") as f:
        f.write(b"\xff\xd8\xff" * 100)
    refused(tmp, 2, "index", os.path.join(tmp, "photos"), "-o", out, texts=["photos", "trace"])

    os.mkdir(os.path.join(tmp, "ctf2"))
    with open(os.path.join(tmp, "ctf2", "metadata"), "wb") as f:
        f.write(b'\x1e{"type": "preamble", "version": 2}\x1e{"type": "trace-class"}')
    refused(tmp, 2, "index", os.path.join(tmp, "ctf2"), "-o", out, texts=["ctf2", "no stream class"])

    os.mkdir(os.path.join(tmp, "garbage"))
    with open(os.path.join(tmp, "garbage", "metadata"), "wb") as f:
        f.write(random.Random(7).randbytes(4096))
    refused(tmp, 2, "index", os.path.join(tmp, "garbage"), "-o", out, texts=["garbage"])

    refused(tmp, 2, "index", TRACE, os.path.join(TRACE, "host"), "-o", out, texts=["host"])

    refused(tmp, 4, "index", TRACE, "-o", os.path.join(tmp, "no", "folder", "x.steal"), texts=["folder"])

    bad = os.path.join(tmp, "bad.steal")
    with open(bad, "wb") as f:
        f.write(b"this is not a history" * 100)
    for command in (["view", bad, "--script", "/dev/null"], ["info", bad], ["flow", bad, "Debian/1"], ["intervals", bad, "/Host"], ["sync", bad]):
        refused(tmp, 2, *command, texts=["bad.steal"])
    open(bad, "wb").close()
    refused(tmp, 2, "info", bad, texts=["bad.steal"])

    refused(tmp, 1, "index", texts=["no traces"])
    refused(tmp, 1, "flow", bad, texts=["operand"])
    refused(tmp, 1, "index", "--nonsense", texts=["--nonsense"])
    refused(tmp, 1, "index", TRACE, "--sync", "magic", texts=["magic"])
    refused(tmp, 1, "info", bad, "--format", "xml", texts=["xml"])
    refused(tmp, 1, "index", "--guest", "Debian", texts=["Debian"])

    # A guest without its host is not an error: its threads are shown, and a note lists the limits.
    p = run("index", "--guest", "Debian=" + os.path.join(TRACE, "guest-Debian"), "-o", out)
    check("host" in p.stderr, "a guest without a host: a note")
    p = run("intervals", out, "/Virtual Machines/Debian/Threads/151/Status", "--format", "csv")
    check("RUNNING" in p.stdout, "a guest without a host: states of its threads")
    os.unlink(out)
    run("index", os.path.join(TRACE, "host"), "-o", out)
    text = run("info", out).stdout
    check("qemu:Debian" in text and "contained" not in text, "a host alone: its VM, and no empty table of clocks")
    run("index", "--guest", "Debian=" + os.path.join(TRACE, "guest-Debian"), "-o", out)
    screen, script = os.path.join(tmp, "screen"), os.path.join(tmp, "script")
    for keys, shown in (("", True), ("j\n", False)):
        with open(script, "w", encoding="utf-8") as f:
            f.write(f"{keys}:screen {screen}!\n")
        run("view", out, "--script", script, "--size", "200x30")
        with open(screen, encoding="utf-8") as f:
            bottom = f.read().splitlines()[-1]
        check(("x: all notes" in bottom) == shown, f"the viewer shows the note until the first key: {bottom}")
    os.unlink(out)

    # Of a stream that ends in the middle only the end is lost.
    cut = copy_of_trace(tmp, "cut")
    stream = os.path.join(cut, "guest-Debian", "kernel", "ch_0")
    os.truncate(stream, os.path.getsize(stream) // 2 + 13)
    p = run("index", cut, "-o", out)
    check("Debian" in p.stderr and "ch_0" in p.stderr, f"a truncated stream is named: {p.stderr}")
    check(len(table("threads", out, "Debian")) > 10, "and its beginning is read")
    os.unlink(out)

    with open(bad + "2", "wb") as f:
        f.write(b"dear notes")
    history = os.path.join(tmp, "good.steal")
    run("index", TRACE, "-o", history)
    refused(tmp, 1, "index", TRACE, "-o", "", texts=["without a name"])
    refused(tmp, 1, "intervals", history, "/No/Such/Path", texts=["/No/Such/Path"])
    refused(tmp, 1, "flow", history, "Debian/99999", texts=["99999"])
    refused(tmp, 1, "flow", history, "Nobody/1", texts=["Nobody"])
    refused(tmp, 1, "flow", history, "Debian/151", "--from", "yesterday", texts=["yesterday"])
    os.mkdir(os.path.join(tmp, "results"))
    shutil.copy(history, os.path.join(tmp, "results"))
    refused(tmp, 2, "view", os.path.join(tmp, "results"), texts=["results/good.steal: a history", "open that file"])
    refused(tmp, 4, TRACE, env={"XDG_CACHE_HOME": tmp}, texts=["must be a terminal", " flow"])
    refused(tmp, 4, history, texts=["must be a terminal"])
    refused(tmp, 1, "flow", history, "fibonaci", texts=["no such machine, CPU, process or thread", "machines here: host, Debian"])
    refused(tmp, 1, "flow", history, "Debain/151", texts=["did you mean Debian/151?"])
    refused(tmp, 1, "flow", history, "Debian/fibonaci", texts=["did you mean Debian/fibonacci?"])
    refused(tmp, 1, "intervals", history, "/Host/CPUs/CPU1/Status", texts=["CPU1 has: Current Thread, Interrupt, Owner)"])
    refused(tmp, 1, "intervals", history, "/", texts=["/ has: Host, Virtual Machines)"])
    refused(tmp, 1, "intervals", history, "/Host/Threads", texts=["Threads has: 1, 10", ", ...)"])
    refused(tmp, 1, "sync", history, "--sync", "none", texts=["--sync: ", "good.steal is a history"])
    refused(tmp, 1, "view", history, "--script", "/dev/null", "--guest", "Debian=x", texts=["--guest: ", "good.steal is a history"])
    refused(tmp, 2, "view", history, "--script", "/nowhere/s", texts=["--script: /nowhere/s: No such file or directory (check the path)"])
    refused(tmp, 2, "gaps", history, "--inside", "--kallsyms", "/nowhere/k", texts=["--kallsyms: /nowhere/k: No such file"])
    refused(tmp, 1, "index", history, "-o", out, texts=["good.steal: a history"])
    refused(tmp, 1, "index", TRACE, "-o", bad + "2", texts=["bad.steal2: exists and is not a history"])
    with open(bad + "2", "rb") as f:
        check(f.read() == b"dear notes", "a file that is not a history is unchanged")
    run("index", TRACE, "-o", history)
    run("index", TRACE, "-o", bad)
    refused(tmp, 1, "help", "nonsense", texts=["nonsense"])
    for misspelt, meant in ((["gasp", history], "gaps"), (["help", "stael"], "steal"), (["latency", "reqests", history], "requests"),
                            (["gaps", history, "--fromat=csv"], "--format")):
        refused(tmp, 1, *misspelt, texts=[f"did you mean {meant}?"])
    refused(tmp, 1, "gaps", history, "--min", "3", texts=["--min: not a duration: '3'", "3ms"])
    fresh = copy_of_trace(tmp, "unindexed")
    refused(tmp, 4, "view", fresh, texts=["must be a terminal"])  # it leaves no file: it did not index
    check(run("help", "flow").stdout == run("flow", "--help").stdout, "help COMMAND equals COMMAND --help")
    check_unreadable(tmp)
    check_tables(tmp)
    check_metadata(tmp, out)
    check_limits(tmp)
    refused(tmp, 2, "index", "/dev/null", "-o", out, texts=["/dev/null: neither a directory nor a file"])
    check_interrupt(tmp)
