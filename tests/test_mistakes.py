"""The usual mistakes on the command line: what is said helps whoever made them, and fits a terminal of 80 columns."""
import json
import os
import re
import subprocess
import sys

from e2e import DATA, PROGRAM, check, run, scratch

TRACE = os.path.join(DATA, "fibonacci")


def mistake(*args, status=1, says, **more):
    """One line that begins with what is wrong, and has every text of `says`."""
    p = run(*args, status=status, **more)
    check(p.stderr.count("\n") == 1 and all(text in p.stderr for text in says), f"{' '.join(args)}: {p.stderr.rstrip()}")


def check_helps():
    commands = re.findall(r"^  ([a-z]+) ", run("--help").stdout, re.M)
    helps = [["--help"]] + [[c, "--help"] for c in commands]
    helps += [["latency", c, "--help"] for c in ("requests", "train", "report", "assert")]
    for words in helps + [["fleet"], ["export", "--targets"]]:
        longest = max(run(*words).stdout.splitlines(), key=len)
        check(len(longest) <= 80, f"{' '.join(words)} fits 80 columns: {longest!r}")


def check_full():
    """What is not printed is not a success, and no command that prints its help is an exception."""
    with open("/dev/full", "w", encoding="ascii") as full:
        for words in (["--help"], ["gaps", "--help"]):
            p = run(*words, status=None, preexec_fn=lambda: os.dup2(full.fileno(), 1))
            check(p.returncode == 4 and "standard output: No space left" in p.stderr, f"{' '.join(words)}: a full disk is told")


def check_options(history):
    mistake("gaps", history, "--formt", "csv", says=["stealscope: --formt: no such option (did you mean --format? usage: "])
    mistake("sumary", history, says=["stealscope: sumary: no such command (did you mean summary?)"])
    mistake("thieves", history, status=2, says=["stealscope: thieves: no such file, nor a command (check the path; stealscope --help "])
    mistake("./thieves", status=2, says=["stealscope: ./thieves: No such file or directory (check the path)"])
    mistake("gaps", history, "--min", says=["stealscope: --min: its argument is missing (usage: "])
    mistake("gaps", history, "host", "Debian", says=["stealscope: Debian: one operand too many (usage: "])


def check_fleet():
    """Which questions there are, and what stands where."""
    for words, says in ((["sqlite:x.db"], "fleet: no question (stealscope fleet URL victims, thieves, "),
                        (["sqlite:x.db"], " moved or doubtful)"),
                        (["victims"], "victims: a question, no database (the database stands in front: stealscope fleet sqlite:FILE victims)"),
                        (["victims", "sqlite:x.db"], "victims: a question, no database (the database stands in front: "),
                        (["pairs", "pairs"], "no database that can be asked: 'pairs' (sqlite:FILE, ")):
        mistake("fleet", *words, says=[says])
    mistake("fleet", "postgresql://me:secret@host/db", says=["fleet: no question (stealscope fleet URL victims"])
    check("secret" not in run("fleet", "victims", "postgresql://me:secret@host/db", status=1).stderr, "no password is said")


def check_excluded(history):
    """What would be left out of account is refused."""
    mistake("gaps", history, "--lengths", "--histogram", says=["--lengths, --histogram, ", "each is another answer (ask for one"])
    mistake("gaps", history, "Debian", "--periodic", says=["--periodic: is of all machines together (leave out"])
    mistake("path", history, "Debian/151", "--sums", "--intervals", says=["--sums, --intervals: each is another answer"])
    for option in ("--plot", "--audit"):
        mistake("sync", history, option, says=[f"{option}: looks at events, of which ", ", a history, has none (give its traces)"])
    mistake("explain", history, "Debian/151", "--at", "50%", "--to", "60%", says=["--at: is one moment, not a window"])


def check_top(history):
    """Csv and json have no line below the rows: how many are left out is a note."""
    for words, rows in ((["gaps", history, "Debian/151"], "gaps, the longest,"), (["summary", history], "threads that lost something")):
        p = run(*words, "--format", "csv")
        note = re.search(r"^stealscope: note: (20 of [0-9]+ " + rows + r" are here \(--top\))$", p.stderr, re.M)
        notes = [n["text"] for n in json.loads(run(*words, "--format", "json").stdout)["notes"]]
        check(note and note[1] in notes, f"{' '.join(words[:1])}: {p.stderr.rstrip()}, {notes}")
        check("--top" not in run(*words, "--format", "csv", "--top", "0").stderr, "all of them")


def check_windows(history):
    span = "2026-11-20 05:30:47.842 +0000 to 2026-11-20 05:30:55.008 +0000"
    mistake("gaps", history, "--from", "10:00", says=["--from 10:00: the history ends before that", span])
    mistake("gaps", history, "--to", "05:30", says=["--to 05:30: the history begins after that", span])
    mistake("gaps", history, "--from", "50", says=["--from: not a time: '50' (a number alone is ns since 1970: give 50s, 50% or"])
    mistake("gaps", history, "--to", "5.5", says=["--to: not a time: '5.5' (give 12:03:04.5, +3ms, -3ms (before its end), 50%"])
    mistake("gaps", history, "--from", "2026-11-20T25:00", says=["--from: not a time: '2026-11-20T25:00'"])
    mistake("gaps", history, "--from", "2026-11-20T10:00:00+01:00", says=["--from 2026-11-20T10:00:00+01:00: the history ends"])
    dates = ["2026-11-20 05:30:50.5 +0000", "2026-11-20T05:30:50.5", "2026-11-20T05:30:50.5Z", "2026-11-20T06:30:50.5+01:00"]
    check(len({run("gaps", history, "--from", date).stdout for date in dates}) == 1, "dates as ISO 8601 has them")
    check(run("gaps", history, "--from", "-1s").stdout != run("gaps", history).stdout, "-1s: the last second")
    mistake("gaps", history, "--from", "50%", "--to", "20%", says=["give --from before --to"])
    mistake("diff", f"{history}@5..6s", history, says=["@5..6s: not a time: '5' (a number alone is ns since 1970: give 5s, 5%"])
    mistake("diff", history, f"{history}@9s..", says=["@9s.. 9s: the history ends before that", span])
    mistake("diff", history, f"{history}@3s..2s", says=["@3s..2s: the window is empty (its end is before its begin)"])
    mistake("diff", history, f"{history}@50%", says=["@50%: no such file, and behind @ no window FROM..TO (as run.steal@0%..50%)"])
    mistake("events", history, "--at", "10:00", says=["--at 10:00: the history ends before that", span])
    mistake("explain", history, "Debian/151", "--at", "05:30:46.9", says=["--at 05:30:46.9: the history begins after that", span])
    check("vCPU0 was WAKING" in run("explain", history, "Debian/CPU0", "--at", "05:30:47.8").stdout, "digits that are cut off")


    p = run("flow", history, "Debian/151")
    said = [line for line in p.stdout.splitlines() if " .. " in line][0].split(" .. ")[0]
    check(run("flow", history, "Debian/151", "--from", said).stdout == p.stdout, f"a time that was printed is taken: {said}")


def check_names(history):
    mistake("flow", history, "151", says=["did you mean host/151 or Debian/151?"])
    mistake("flow", history, "216", says=["did you mean host/216?"])
    mistake("flow", history, "Debian/CPU7", says=["did you mean Debian/CPU0?"])
    mistake("flow", history, "host/cpu9", says=["did you mean host/CPU0 to CPU1?"])
    mistake("flow", history, "", says=["stealscope: '': no such machine"])
    for words in (["gaps"], ["gaps", "--lengths"], ["gaps", "--locks"], ["steal"]):
        mistake(*words, history, "host/CPU0", says=["host/CPU0: a physical CPU, which wants nothing itself (name a machine, a vCPU"])
    for words in (["waits"], ["waits", "--polling"], ["gaps", "--inside"]):
        mistake(*words, history, "host/CPU0", says=["host/CPU0: not a machine or vCPU (name a VM, or a vCPU as Debian/CPU0)"])
    mistake("path", history, "host/CPU0", says=["host/CPU0: not a thread or vCPU"])
    mistake("explain", history, "host/CPU0", says=["host/CPU0: a physical CPU cannot be explained (name a vCPU or a thread)"])


def check_files(folder):
    other = os.path.join(folder, "notes.txt")
    with open(other, "w", encoding="ascii") as f:
        f.write("dear notes")
    mistake("summary", other, status=2, says=["notes.txt: not a history of stealscope, or damaged at offset 0 (give a history"])
    perf = os.path.join(folder, "perf.data")
    with open(perf, "wb") as f:
        f.write(b"PERFILE2" + bytes(100))
    for words in (["info", perf], ["gaps", perf], ["index", perf], [perf]):
        mistake(*words, status=2, says=["perf.data: a perf.data file, not a CTF trace (perf data convert --to-ctf DIR)"])
    stream = os.path.join(TRACE, "host", "kernel", "ch_0")
    mistake("summary", stream, status=2, says=["ch_0: a CTF stream without the trace's metadata (copy the whole trace folder"])
    if os.geteuid() != 0:  # root may write everywhere
        os.mkdir(os.path.join(folder, "locked"), 0o000)
        mistake("index", TRACE, "-o", os.path.join(folder, "locked", "x.steal"), status=4, says=["choose a folder that can be written"])
    mistake("index", "--host", os.path.join(TRACE, "host"), status=4, env={"XDG_CACHE_HOME": other},
            says=["nowhere to keep the history: ", "set XDG_CACHE_HOME to another folder", "index WHAT -o FILE"])


def check_places(folder):
    """What is no folder of traces is not read to its end, and nothing that is the kernel's is read at all."""
    kernels = os.path.join(folder, "kernels")
    os.mkdir(kernels)
    os.symlink("/proc/self/environ", os.path.join(kernels, "metadata"))
    looks_like_it = {"/* CTF 1.8 */": "1", **os.environ}
    p = subprocess.run([PROGRAM, "info", kernels], capture_output=True, text=True, timeout=300, env=looks_like_it)
    check(p.returncode == 2 and "kernels: holds no CTF trace (" in p.stderr, f"a link into /proc: {p.stderr.rstrip()}")
    many = os.path.join(folder, "many")
    os.mkdir(many)
    for i in range(100000):
        os.close(os.open(os.path.join(many, str(i)), os.O_CREAT | os.O_WRONLY))
    mistake("info", many, status=2, says=["many: 100000 files, and no trace among them so far (give the folder that holds the traces)"])


def check_swapped(folder):
    """The host's trace given as the guest's, and the other way around; what the user calls a machine is its name there, too."""
    history = os.path.join(folder, "swapped.steal")
    said = run("index", f"--host={TRACE}/guest-Debian", f"--guest=Debian={TRACE}/host", "-o", history).stderr
    check("Debian: its clock cannot be told (it has kvm entries and exits, and the host's trace has none: they may be "
          "swapped)" in said, f"swapped: {said.strip()}")
    traces = json.loads(run("info", history, "--format", "json").stdout)["traces"]
    check({(t["machine"], t["role"]) for t in traces} == {("Debian-2", "host"), ("Debian", "guest")}, f"by their names {traces}")


os.environ["TZ"] = "UTC"
with scratch() as tmp:
    demo = os.path.join(tmp, "demo.steal")
    run("index", TRACE, "-o", demo)
    check_helps()
    check_full()
    check_options(demo)
    check_fleet()
    check_excluded(demo)
    check_top(demo)
    check_windows(demo)
    check_names(demo)
    check_files(tmp)
    check_places(tmp)
    check_swapped(tmp)
sys.exit(0)
