"""Usual mistakes on the command line: the message names the wrong word and the remedy; help fits 80 columns."""
import json
import os
import re
import subprocess
import sys

import e2e
from e2e import DATA, PROGRAM, check, notes, run, scratch, table

TRACE = os.path.join(DATA, "fibonacci")


def mistake(*args, status=1, texts, **more):
    """The command prints one line with each option, name, number and path of these texts; its wording is free."""
    p = run(*args, status=status, **more)
    keys = [key.strip("(),;:?") for text in texts for key in text.split() if re.search(r"[-@%'/.0-9]|^[A-Z]{2}", key)]
    missing = [key for key in keys if key not in p.stderr]
    check(p.stderr.count("\n") == 1 and missing == [], f"{' '.join(args)}: {p.stderr.rstrip()} lacks {missing}")


def check_helps():
    commands = e2e.commands()
    helps = [["--help"]] + [[c, "--help"] for c in commands]
    helps += [["latency", c, "--help"] for c in ("requests", "train", "report", "assert")]
    for words in helps + [["fleet"], ["export", "--targets"]]:
        longest = max(run(*words).stdout.splitlines(), key=len)
        check(len(longest) <= 80, f"{' '.join(words)} fits 80 columns: {longest!r}")


def check_full():
    """If the output cannot be written, the command fails, even if it only prints its help."""
    with open("/dev/full", "w", encoding="ascii") as full:
        for words in (["--help"], ["gaps", "--help"]):
            p = run(*words, status=None, preexec_fn=lambda: os.dup2(full.fileno(), 1))
            check(p.returncode == 4 and "standard output: No space left" in p.stderr, f"{' '.join(words)}: a full disk is reported")


def check_options(history):
    mistake("gaps", history, "--formt", "csv", texts=["stealscope: --formt: ", " (did you mean --format? usage: "])
    mistake("sumary", history, texts=["stealscope: sumary: ", " (did you mean summary?)"])
    mistake("culprits", history, status=2, texts=["stealscope: culprits: ", "command", "stealscope --help "])
    mistake("./culprits", status=2, texts=["stealscope: ./culprits: No such file or directory (check the path)"])
    mistake("gaps", history, "--min", texts=["stealscope: --min: ", "argument", " (usage: "])
    mistake("gaps", history, "host", "Debian", texts=["stealscope: Debian: ", "operand", " (usage: "])
    mistake("gaps", history, "", texts=["stealscope: operand 2 "])
    mistake("ticket", history, "-o", "x.pdf", texts=["stealscope: -o x.pdf: ", " -o FILE.html, "])
    check(not os.path.exists("x.pdf"), "a refused ticket leaves no directory")
    mistake("picture", history, texts=["picture: ", " -o FILE.svg, .html "])
    mistake("picture", history, "-o", "x.pdf", texts=["'x.pdf': ", " .svg, .html "])
    check(not os.path.exists("x.pdf"), "a refused picture leaves no file")
    mistake("sync", TRACE, "--audit", "--plot", texts=["--audit ", " --plot"])
    mistake("record", "--guest-only", "--host-only", texts=["stealscope: --guest-only ", " --host-only "])
    check("did you mean" not in run("index", "--foo", status=1).stderr, "three letters suggest no option")
    p = run("latency", "report", history, "Debian", status=2)
    check(f"latency {history}" not in p.stderr, "an operand of a subcommand is not moved before it")
    sums = run("path", history, "Debian/151", "--sums", "--format", "csv").stdout.splitlines()
    first = run("path", history, "Debian/151", "--sums", "--format", "csv", "--top", "2").stdout.splitlines()
    check(first == sums[:3] and len(sums) > 3, "path --top")
    versions = {run(word).stdout for word in ("--version", "-V", "version")}
    check(len(versions) == 1 and "License: " in versions.pop(), "three spellings print one version text")


def check_fleet():
    """The list of the questions, and the order of the operands."""
    for words, texts in ((["sqlite:x.db"], ["fleet: ", "(stealscope fleet URL victims, culprits, ", " moved or warnings)"]),
                         (["victims"], ["victims: ", "stealscope fleet sqlite:FILE victims)"]),
                         (["victims", "sqlite:x.db"], ["victims: ", "stealscope fleet sqlite:FILE victims)"]),
                         (["pairs", "pairs"], ["'pairs'", "sqlite:FILE, "])):
        mistake("fleet", *words, texts=texts)
    mistake("fleet", "postgresql://me:secret@host/db", texts=["fleet: ", "(stealscope fleet URL victims"])
    check("secret" not in run("fleet", "victims", "postgresql://me:secret@host/db", status=1).stderr, "no password is printed")


def check_excluded(history):
    """Options that would be ignored are refused."""
    mistake("gaps", history, "--lengths", "--histogram", texts=["--lengths, --histogram, "])
    mistake("gaps", history, "Debian", "--periodic", texts=["--periodic ", "machines"])
    mistake("path", history, "Debian/151", "--sums", "--intervals", texts=["--sums and --intervals "])
    for option in ("--plot", "--audit"):
        mistake("sync", history, option, texts=[option, "events", "a history", "traces)"])
    mistake("explain", history, "Debian/151", "--at", "50%", "--to", "60%", texts=["--at ", "window", "--to"])


def check_top(history):
    """csv and json have no line below the rows: the number of omitted rows is a note."""
    for words, shown in ((["gaps", history, "Debian/151"], "gaps"), (["summary", history], "threads")):
        p = run(*words, "--format", "csv")
        note, = [n for n in notes(*words) if n["code"] == "rows-omitted"]
        total = len([r for r in table(*words, "--top", "0") if words[0] == "gaps" or r["tid"] and int(r["lost_ns"])])
        check(re.match(f"20 of {total} {shown}", note["text"]) and f"stealscope: note: {note['text']}" in p.stderr and
              "--top" in p.stderr, f"{words[0]}: {p.stderr.rstrip()}, {note}")
        p = run(*words, "--format", "csv", "--top", "0")
        check("--top" not in p.stderr and len(p.stdout.splitlines()) > total, f"{words[0]}: --top 0 omits none")


def check_windows(history):
    span = "2026-11-20 05:30:47.842 +0000 to 2026-11-20 05:30:55.008 +0000"
    mistake("gaps", history, "--from", "10:00", texts=["--from 10:00: the history ends before that", span])
    mistake("gaps", history, "--to", "05:30", texts=["--to 05:30: the history begins after that", span])
    mistake("gaps", history, "--from", "50", texts=["--from: not a time: '50' (a number without a unit is ns since 1970: use 50s, 50% or"])
    mistake("gaps", history, "--to", "5.5", texts=["--to: not a time: '5.5' (use 12:03:04.5, +3ms, -3ms (before the end), 50%"])
    mistake("gaps", history, "--from", "2026-11-20T25:00", texts=["--from: not a time: '2026-11-20T25:00'"])
    mistake("gaps", history, "--from", "2026-11-20T10:00:00+01:00", texts=["--from 2026-11-20T10:00:00+01:00: the history ends"])
    dates = ["2026-11-20 05:30:50.5 +0000", "2026-11-20T05:30:50.5", "2026-11-20T05:30:50.5Z", "2026-11-20T06:30:50.5+01:00"]
    check(len({run("gaps", history, "--from", date).stdout for date in dates}) == 1, "dates as ISO 8601 has them")
    check(run("gaps", history, "--from", "-1s").stdout != run("gaps", history).stdout, "-1s: the last second")
    mistake("gaps", history, "--from", "50%", "--to", "20%", texts=["use a --from before --to"])
    mistake("diff", f"{history}@5..6s", history, texts=["@5..6s: not a time: '5' (a number without a unit is ns since 1970: use 5s, 5%"])
    mistake("diff", history, f"{history}@9s..", texts=["@9s.. 9s: the history ends before that", span])
    mistake("diff", history, f"{history}@3s..2s", texts=["@3s..2s: the window is empty (the end of the window is before its start)"])
    mistake("diff", history, f"{history}@50%", texts=["@50%: no such file; the text after @ is no window FROM..TO (for example run.steal@0%..50%)"])
    mistake("events", history, "--at", "10:00", texts=["--at 10:00: the history ends before that", span])
    mistake("explain", history, "Debian/151", "--at", "05:30:46.9", texts=["--at 05:30:46.9: the history begins after that", span])
    check("WAKING" in run("explain", history, "Debian/CPU0", "--at", "05:30:47.8").stdout, "a time with fewer digits")

    p = run("flow", history, "Debian/151")
    printed = [line for line in p.stdout.splitlines() if " .. " in line][0].split(" .. ")[0]
    check(run("flow", history, "Debian/151", "--from", printed).stdout == p.stdout, f"a printed time is accepted: {printed}")


def check_names(history):
    mistake("flow", history, "151", texts=["did you mean host/151 or Debian/151?"])
    mistake("flow", history, "216", texts=["did you mean host/216?"])
    mistake("flow", history, "Debian/CPU7", texts=["did you mean Debian/CPU0?"])
    mistake("flow", history, "host/cpu9", texts=["did you mean host/CPU0 to CPU1?"])
    mistake("flow", history, "", texts=["stealscope: '': no such machine"])
    for words in (["gaps"], ["gaps", "--lengths"], ["gaps", "--locks"]):
        mistake(*words, history, "host/CPU0", texts=["host/CPU0: a physical CPU", "(use a machine, a vCPU"])
    for words in (["waits"], ["waits", "--polling"], ["gaps", "--inside"]):
        mistake(*words, history, "host/CPU0", texts=["host/CPU0: not a machine or vCPU (", "example Debian/CPU0)"])
    for command in ("flow", "path"):  # the remedy names threads of this recording
        mistake(command, history, "Debian", status=1, texts=["stealscope: Debian: ", "Debian/151"])
    mistake("path", history, "host/CPU0", texts=["host/CPU0: not a thread or vCPU"])
    mistake("explain", history, "host/CPU0", texts=["host/CPU0: a physical CPU", "(name a vCPU or a thread)"])


def check_files(folder):
    other = os.path.join(folder, "notes.txt")
    with open(other, "w", encoding="ascii") as f:
        f.write("dear notes")
    mistake("summary", other, status=2, texts=["notes.txt: not a stealscope history", "offset 0"])
    perf = os.path.join(folder, "perf.data")
    with open(perf, "wb") as f:
        f.write(b"PERFILE2" + bytes(100))
    for words in (["info", perf], ["gaps", perf], ["index", perf], [perf]):
        mistake(*words, status=2, texts=[perf + ":"])
    stream = os.path.join(TRACE, "host", "kernel", "ch_0")
    mistake("summary", stream, status=2, texts=["ch_0: a CTF stream without the trace's metadata (copy the whole directory"])
    if os.geteuid() != 0:  # root may write everywhere
        os.mkdir(os.path.join(folder, "locked"), 0o000)
        mistake("index", TRACE, "-o", os.path.join(folder, "locked", "x.steal"), status=4, texts=["Permission denied", "choose a"])
    mistake("index", "--host", os.path.join(TRACE, "host"), status=4, env={"XDG_CACHE_HOME": other},
            texts=["set XDG_CACHE_HOME", " -o FILE"])


def check_other_directories(folder):
    """The search for traces ends early in a directory with many other files, and never reads files of the kernel."""
    kernels = os.path.join(folder, "kernels")
    os.mkdir(kernels)
    os.symlink("/proc/self/environ", os.path.join(kernels, "metadata"))
    looks_like_it = {"/* CTF 1.8 */": "1", **os.environ}
    p = subprocess.run([PROGRAM, "info", kernels], capture_output=True, text=True, timeout=300, env=looks_like_it)
    check(p.returncode == 2 and "kernels: " in p.stderr and "no trace" in p.stderr, f"a link into /proc: {p.stderr.rstrip()}")
    many = os.path.join(folder, "many")
    os.mkdir(many)
    for i in range(100000):
        os.close(os.open(os.path.join(many, str(i)), os.O_CREAT | os.O_WRONLY))
    mistake("info", many, status=2, texts=["many: ", "100000 files"])


def check_swapped(folder):
    """Exchanged traces of host and guest are refused, unless clocks are left alone; machines keep the user's names."""
    history = os.path.join(folder, "swapped.steal")
    swapped = ["index", f"--host={TRACE}/guest-Debian", f"--guest=Debian={TRACE}/host", "-o", history]
    mistake(*swapped, status=2, texts=[f"{TRACE}/host", f"{TRACE}/guest-Debian", "--host --guest --sync"])
    check(not os.path.exists(history), "a refused recording leaves no history")
    run(*swapped, "--sync", "none")
    traces = json.loads(run("info", history, "--format", "json").stdout)["traces"]
    check({(t["machine"], t["role"]) for t in traces} == {("Debian-2", "host"), ("Debian", "guest")}, f"names and roles {traces}")


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
    check_other_directories(tmp)
    check_swapped(tmp)
sys.exit(0)
