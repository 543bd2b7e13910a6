"""Bad input: one line that says what, why and what to do; the exit status; no partial file left behind."""
import os
import resource
import shutil
import signal
import subprocess
import time

from e2e import DATA, PROGRAM, check, is_emulated, is_sanitized, run, scratch, simulate

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
    """What this user may not read is not passed over, and it is said what to do."""
    place = copy_of_trace(folder, "private")
    os.chmod(folder, 0o755)
    os.chmod(os.path.join(place, "host"), 0)
    files = [os.path.join(folder, name) for name in ("private.steal", "private.yaml")]
    for path in files:
        with open(path, "wb"):
            os.chmod(path, 0)

    def as_user():
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
    try:
        for path in (place, *files):
            p = subprocess.run([PROGRAM, "sync", path], capture_output=True, text=True, preexec_fn=as_user, check=False)
            where = path + ("/host" if path == place else "")
            check(p.returncode == 2 and p.stderr == f"stealscope: {where}: Permission denied (check the path, or make it "
                  "readable for you)\n", p.stderr.strip())
    except PermissionError:
        print("     the program itself cannot be reached by another user: not tried")
    os.chmod(os.path.join(place, "host"), 0o755)


def check_readers(tmp, out):
    """What our own decoder does not read is read by the other one, unless the user insists."""
    place = copy_of_trace(tmp, "short")
    stream = os.path.join(place, "host", "kernel", "ch_1")
    os.truncate(stream, os.path.getsize(stream) - 1000)
    refused(tmp, 2, "index", place, "-o", out, "--reader", "native", says=["short/host/kernel: ", "not read natively", "--reader"])
    for folder, reader in ((TRACE, "native"), (place, "native, libbabeltrace2")):
        timing = run("index", folder, "-o", out, "--timing").stdout
        check(f"read by: {reader}\n" in timing or f"read by: {', '.join(reversed(reader.split(', ')))}\n" in timing, timing)
    os.remove(out)
    with open(os.path.join(place, "host", "kernel", "metadata"), "w", encoding="ascii") as f:
        f.write("/* CTF 1.8 */ trace { " + "a." * 200000 + "a = 1; };")
    refused(tmp, 2, "index", os.path.join(place, "host"), "-o", out, "--reader", "native", says=["more types and names"])


def check_tables(tmp):
    """latency train --csv: what is no number is refused with its line and column; a good table is not."""
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
            lines.insert(3, "")  # an empty line is no row, but a line
            write(lines)
            refused(tmp, 2, *train, "--input", "load", path, says=[f"runs.csv:9: {name}: "])
    with open(model, encoding="utf-8") as f:
        sound = f.read()
    requests_of(tmp)
    for narrow in (["--request", "none"], ["--to", "+1ns"]):
        refused(tmp, 2, "latency", "requests", requests_of(tmp), *narrow, says=["no complete request (there may be some elsewhere"])
    number = sound.split("\n").index(next(x for x in sound.split("\n") if x.startswith("target"))) + 1
    for text in ("target nan 1", "target inf 1", "target x 1", "target  ", "target 1e999 1"):
        with open(model, "w", encoding="utf-8") as f:
            f.write("\n".join(text if line.startswith("target") else line for line in sound.split("\n")))
        refused(tmp, 2, "latency", "requests", requests_of(tmp), "-m", model, says=[f"runs.model:{number}: "])
    with open(model, "w", encoding="utf-8") as f:
        f.write("\n".join("target 1e308 1e308" if line.startswith("target") else
                          "kernel 1e308 1e308 1e-300 1" if line.startswith("kernel") else line for line in sound.split("\n")))
    p = run("latency", "requests", requests_of(tmp), "-m", model, "--format", "csv", status=None)
    check(p.returncode in (0, 2) and "nan" not in p.stdout and "-922337203" not in p.stdout, "a wild model gives no wild numbers")


def check_limits(tmp):
    """A limit of open files, or of memory, is named as what it is, with what would mend it; it is no damage."""
    out = os.path.join(tmp, "limited.steal")
    for most in [] if is_sanitized() else range(9, 20):  # sanitizers need files of their own
        p = run("index", TRACE, "-o", out, status=4,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)))  # pylint: disable=cell-var-from-loop
        check("ulimit -n" in p.stderr and "copy" not in p.stderr and p.stderr.count("\n") == 1 and not os.path.exists(out),
              f"limit {most}: {p.stderr.strip()}")
    # So does an emulator, which needs memory of its own.
    for most in [] if is_sanitized() or is_emulated() else range(50 << 20, 300 << 20, 10 << 20):
        p = run("index", TRACE, "-o", out, status=None,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)))  # pylint: disable=cell-var-from-loop
        if p.returncode in (0, 127):  # 127: the dynamic linker could not
            if p.returncode == 0:
                os.unlink(out)
            continue
        check(p.returncode == 4 and "ulimit -v" in p.stderr and "copy" not in p.stderr and not os.path.exists(out),
              f"memory {most >> 20} MiB: {p.stderr.strip()}")


def requests_of(tmp):
    history = os.path.join(tmp, "requests.steal")
    if not os.path.exists(history):
        simulate(os.path.join(tmp, "requests"), "requests", "--duration", "1s")
        run("index", os.path.join(tmp, "requests"), "-o", history)
    return history


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
    for command in (["view", bad, "--script", "/dev/null"], ["info", bad], ["flow", bad, "Debian/1"], ["intervals", bad, "/Host"], ["sync", bad]):
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
            f.write(f"{keys}:screen {screen}!\n")
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
    refused(tmp, 1, "index", TRACE, "-o", "", says=["without a name"])
    refused(tmp, 1, "intervals", history, "/No/Such/Path", says=["/No/Such/Path"])
    refused(tmp, 1, "flow", history, "Debian/99999", says=["99999"])
    refused(tmp, 1, "flow", history, "Nobody/1", says=["Nobody"])
    refused(tmp, 1, "flow", history, "Debian/151", "--from", "yesterday", says=["yesterday"])
    os.mkdir(os.path.join(tmp, "results"))
    shutil.copy(history, os.path.join(tmp, "results"))
    refused(tmp, 2, "view", os.path.join(tmp, "results"), says=["results/good.steal: a history", "give that file"])
    refused(tmp, 4, TRACE, env={"XDG_CACHE_HOME": tmp}, says=["must be a terminal", "use the commands flow"])
    refused(tmp, 4, history, says=["must be a terminal"])
    refused(tmp, 1, "flow", history, "fibonaci", says=["no such machine, CPU or thread", "machines here: host, Debian"])
    refused(tmp, 1, "flow", history, "Debain/151", says=["did you mean Debian/151?"])
    refused(tmp, 1, "flow", history, "Debian/fibonaci", says=["did you mean Debian/fibonacci?"])
    refused(tmp, 1, "intervals", history, "/Host/CPUs/CPU1/Status", says=["CPU1 has: Current Thread, Interrupt, Owner)"])
    refused(tmp, 1, "intervals", history, "/", says=["/ has: Host, Virtual Machines)"])
    refused(tmp, 1, "intervals", history, "/Host/Threads", says=["Threads has: 1, 10", ", ...)"])
    refused(tmp, 1, "sync", history, "--sync", "none", says=["--sync: ", "good.steal is a history"])
    refused(tmp, 1, "view", history, "--script", "/dev/null", "--guest", "Debian=x", says=["--guest: ", "good.steal is a history"])
    refused(tmp, 2, "view", history, "--script", "/nowhere/s", says=["--script: /nowhere/s: No such file or directory (check the path)"])
    refused(tmp, 2, "gaps", history, "--inside", "--kallsyms", "/nowhere/k", says=["--kallsyms: /nowhere/k: No such file"])
    refused(tmp, 1, "index", history, "-o", out, says=["good.steal: is a history"])
    refused(tmp, 1, "index", TRACE, "-o", bad + "2", says=["bad.steal2: exists and is not a history"])
    with open(bad + "2", "rb") as f:
        check(f.read() == b"dear notes", "a file that is no history stays as it is")
    run("index", TRACE, "-o", history)
    run("index", TRACE, "-o", bad)
    refused(tmp, 1, "help", "nonsense", says=["nonsense"])
    for misspelt, meant in ((["gasp", history], "gaps"), (["help", "stael"], "steal"), (["latency", "reqests", history], "requests"),
                            (["gaps", history, "--fromat=csv"], "--format")):
        refused(tmp, 1, *misspelt, says=[f"did you mean {meant}?"])
    refused(tmp, 1, "gaps", history, "--min", "3", says=["--min: not a duration: '3'", "3ms"])
    fresh = copy_of_trace(tmp, "unindexed")
    refused(tmp, 4, "view", fresh, says=["must be a terminal"])  # and nothing is left behind: it was not indexed
    check(run("help", "flow").stdout == run("flow", "--help").stdout, "help COMMAND is COMMAND --help")
    check_unreadable(tmp)
    check_tables(tmp)
    check_readers(tmp, out)
    check_limits(tmp)
    refused(tmp, 2, "index", "/dev/null", "-o", out, says=["/dev/null: neither a folder nor a file"])
    check_interrupt(tmp)
