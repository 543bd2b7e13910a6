"""The first look: what the viewer's screens say is what the commands say."""
import collections
import csv
import os
import re
import xml.etree.ElementTree

from e2e import DATA, check, on_terminal, run, scratch, simulate, table

UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def screens(history, keys, folder, size="120x40", *options):
    """Runs the keys; every line ":SCREEN" among them gives a screen, as a list of lines."""
    script, out = os.path.join(folder, "keys"), []
    with open(script, "w", encoding="utf-8") as f:
        for key in keys:
            if key == ":SCREEN":
                out.append(os.path.join(folder, f"screen{len(out)}"))
                key = f":screen {out[-1]}!"
            f.write(key + "\n")
    run("view", history, "--script", script, "--size", size, *options)
    return [open(name, encoding="utf-8").read().rstrip("\n").split("\n") for name in out]


def ns(value, unit):
    return float(value) * UNITS[unit]


def close(shown, exact):
    """A duration with three digits, against the exact one."""
    return abs(shown - exact) <= 0.006 * max(exact, 1)


def check_long(folder):
    """What a pane writes says that its list ends before the gaps do."""
    simulate(os.path.join(folder, "long"), "random", "--seed", "4", "--events", "600k")
    history, out = os.path.join(folder, "long.hist"), os.path.join(folder, "long.csv")
    run("index", os.path.join(folder, "long"), "-o", history)
    every = table("gaps", history, "host", "--top", "0")
    check(len(every) > 5000, f"{len(every)} gaps")
    (screen,) = screens(history, [":host", "P", f":export {out}", ":SCREEN"], folder, "200x40")
    check(f"long.csv: the longest 5000 of {len(every)} (gaps --top 0 writes all)" in screen[-1], screen[-1])
    with open(out, encoding="utf-8") as f:
        check(list(csv.DictReader(f)) == every[:5000], "and those are the longest")


def check_requests(folder):
    simulate(os.path.join(folder, "requests"), "requests", "--duration", "2s")
    history = os.path.join(folder, "requests.hist")
    run("index", os.path.join(folder, "requests"), "-o", history)
    told = {r["request"]: r for r in table("latency", "requests", history)}
    (screen,) = screens(history, ["R", ":SCREEN"], folder)
    lines = [line.split() for line in screen[2:-1] if line.strip()]
    check(len(lines) > 20, f"the requests pane lists {len(lines)} requests on a screen")
    for line in lines:
        # 86.4 ms  7.99 ms .. 44.0 ms  host/124 burnP6  05:35:48.446  14898  Debian/103 reqserver
        if "nothing" in line:
            check(told[line[-3]]["provider_high_ns"] == "0", f"nothing was taken from request {line[-3]}")
            continue
        dots = line.index("..")
        low, high = ns(*line[dots - 2:dots]), ns(*line[dots + 1:dots + 3])
        row = told[line[-3]]
        culprit = " ".join(line[dots + 3:-4])
        same = close(low, int(row["provider_low_ns"])) and close(high, int(row["provider_high_ns"]))
        if not same or culprit != (row["culprit"] or "-") or not line[-2].startswith("Debian/"):
            check(False, f"the requests pane says of a request what `latency requests` does: {line} {row}")
    check(any(told[line[-3]]["culprit"].startswith("host/") for line in lines), "a culprit is not the victim itself")


def check_reason(folder):
    """On 80 columns why it was held back makes room for who it is."""
    simulate(os.path.join(folder, "quota"), "planted", "--plant", "quota", "--duration", "1500ms", "--no-truth")
    history = os.path.join(folder, "quota.hist")
    run("index", os.path.join(folder, "quota"), "-o", history)
    narrow, wide = (screens(history, [":Debian/103", "0", "P", "key <Enter> q", ":SCREEN"], folder, size)[0][-2] for size in ("80x24", "140x24"))
    check(narrow.startswith(" Debian/103 reqserver ") and "due to a CPU quota" in narrow and "throttled" in wide, narrow)


def check_summary(folder):
    history = os.path.join(folder, "recording.hist")
    run("index", os.path.join(DATA, "fibonacci"), "-o", history)
    rows = table("summary", history)
    check([r["subject"] for r in rows[:3]] == ["Debian", "host", "Debian/151 fibonacci"], "machines, then who lost most")
    victim = rows[2]
    check(victim["thief"] == "host/216 burnP6" and float(victim["thief_share"]) > 0.9, "and it knows the thief")
    gaps = table("gaps", history, "Debian/151", "--top", "1")[0]
    check((victim["longest_ns"], victim["longest_start"]) == (gaps["duration_ns"], gaps["start"]), "its longest gap")
    lost, ran = int(victim["lost_ns"]), int(victim["ran_ns"])
    check(abs(float(victim["lost_share"]) - lost / (lost + ran)) < 1e-8, "lost as a share of what it wanted")
    text = run("summary", history, "Debian", "--top", "2").stdout
    check("host/216 burnP6" in text and text.count("Debian/") == 2 and "shown: 2 of the" in text, "two threads of one VM")
    longest = [int(r["longest_ns"]) for r in table("summary", history, "--sort", "longest", "--top", "0") if r["tid"]]
    check(longest == sorted(longest, reverse=True) and len(longest) > 5, "by another column")
    threads = table("threads", history, "Debian")
    check(len(threads) > 50 and {t["machine"] for t in threads} == {"Debian"}, "threads lists all of a machine")
    check({r["tid"] for r in rows if r["machine"] == "Debian"} <= {t["tid"] for t in threads} | {""}, "idle ones, too")
    err = run("summary", history, "Debian/151", status=1).stderr
    check("is not a machine" in err, "a thread is no machine")


def check_explain(folder):
    """explain takes machines, all of them, and all threads of a name: the figures are those of summary."""
    history = os.path.join(folder, "recording.hist")
    rows = {r["subject"]: r for r in table("summary", history, "--top", "0")}
    told = {who: " ".join(run("explain", history, *who).stdout.split()) for who in ((), ("Debian",), ("host",))}
    for who, text in told.items():
        machines = [m for m in ("Debian", "host") if not who or m in who]
        check([m for m in ("Debian", "host") if f"{m}, 2026-11-20 05:30:4" in text] == machines, f"explain {who}: of {machines}")
        for r in (rows[m] for m in machines):
            said = re.search(r"%s, \S+ \S+ [+-]\d{4} \.\. \S+ \([^)]*\): ran (\S+) (\w+) and lost (\S+) (\w+), (\S+) %%" % r["subject"], text)
            check(close(ns(said[1], said[2]), int(r["ran_ns"])) and close(ns(said[3], said[4]), int(r["lost_ns"])) and
                  abs(float(said[5]) - 100 * float(r["lost_share"])) < 0.06, f"{r['subject']}: what it ran and lost")
            check(f"It had to wait {r['gaps']} times" in text and r["thief"] in text, "its waits, and who took most")
    check(told[()].index("Debian, ") < told[()].index("host, "), "guests before the host")
    check("The thread that lost most is Debian/151 fibonacci: 2." in told[("Debian",)], "and the thread that lost most")
    losers = [r for r in rows.values() if r["tid"] and r["machine"] == "Debian"]
    check(f"{len(losers) - 3} other threads lost " in told[("Debian",)], "the others are counted")
    text = run("explain", history, "Debian/lttng-consumerd").stdout
    heads = re.findall(r"^(Debian/\d+) lttng-consumerd, ", text, re.M)
    by_loss = [f"Debian/{r['tid']}" for r in losers if r["name"] == "lttng-consumerd"]
    check(len(heads) > 1 and heads[:len(by_loss)] == by_loss, f"all threads of a name, the worst first {heads}")
    text = run("explain", history, "Debian/*", "--top", "2").stdout
    check(text.count("How sure: ") == 2 and "shown: 2 of the " in text, "only as many as asked for")
    check("of whom?" in run("explain", history, "--at", "50%", status=1).stderr, "a moment is of somebody")


def check_width(folder):
    """Lanes take what is left of the terminal, tables that are piped are as wide as their content."""
    history = os.path.join(folder, "recording.hist")
    for columns in (80, 160, 220):
        lines = on_terminal("summary", history, columns=columns).split("\n")
        lanes = "over time" in lines[0]
        check(lanes == (columns > 120) and max(map(len, lines)) <= columns, f"summary on {columns} columns")
        check("over time: of what it wanted it lost half or more !" in "\n".join(lines) or not lanes, "and what a lane means")
        if lanes:
            check(len(lines[2]) == columns and "~" not in lines[2][-30:], "its lane ends where the terminal does, and is whole")
        lines = on_terminal("flow", history, "Debian/151", columns=columns).split("\n")
        bars = [line for line in lines if line.endswith("|")]
        check(len(bars) > 5 and {len(line) for line in bars} == {columns - 1}, f"flow on {columns} columns")
        check(lines[-3] == "# ran  ! others  % hypervisor  i interrupt (half or more)  : a tenth  , less", "its legend")
    for command in (["threads", history], ["gaps", history, "--top", "5"], ["summary", history]):
        check("~" not in run(*command).stdout, f"{command[0]}, piped: nothing is cut")


def check_tables(folder):
    """Of several VMs: names are whole where other columns can give, else cut where one sees it; dates and states never, and
    no line is wider than the terminal."""
    traces, short, long = (os.path.join(folder, name) for name in ("critical", "critical.hist", "named.hist"))
    simulate(traces, "critical_task", "--duration", "4s")
    run("index", traces, "-o", short)
    run("index", "--host", f"{traces}/host", "--guest", f"production-database-primary.example.com={traces}/guest-Debian",
        "--guest", f"ci-build-runner-fedora-40={traces}/guest-Ubuntu", "-o", long)
    text = on_terminal("gaps", short)
    check(" Ubuntu/vCPU1 PREEMPTED Debian " in text and " critical_task " in text and "~" not in text, f"whole names {text[:300]}")
    text = on_terminal("path", short, "Debian/CPU0", "--intervals")
    check(" critical_task " in text and "~" not in text, f"path: whole names {text[:500]}")
    text = on_terminal("summary", short)
    check("Debian/100 lttng-consumerd " in text, f"of threads, too {text[:500]}")
    text = on_terminal("gaps", long)
    check(" ci-~40/vCPU1 PREEMPTED " in text and "production~xample.com critical_task\n" in text, f"long names {text[:300]}")
    text = on_terminal("flow", long, "ci-build-runner-fedora-40/CPU1", "--intervals")
    check("  pro~om/104 critical_task\n" in text, f"flow shows that it cuts {text[-300:]}")
    text = on_terminal("gaps", long, "--histogram")
    check("####" in text and "~" not in text, f"bars are not names {text[:300]}")
    shares = re.findall(r" [+-]?\d\S*%", on_terminal("diff", long + "@0%..50%", long + "@50%..100%", "--all", columns=60))
    check(len(shares) > 9 and "~" not in "".join(shares), f"figures are whole {shares[:5]}")
    for history in (short, long):
        vm = "Debian" if history == short else "production-database-primary.example.com"
        for command in (["summary"], ["threads"], ["steal"], ["steal", "--by", "thread"], ["info"], ["sync"], ["gaps"], ["gaps", "--all-culprits"],
                        ["gaps", "--lengths"], ["gaps", "--periodic"], ["gaps", "--inside"], ["path", f"{vm}/CPU0", "--intervals"],
                        ["path", f"{vm}/CPU0"], ["waits"], ["exits"], ["exits", "--by", "thread"], ["flow", f"{vm}/CPU0", "--intervals"],
                        ["events", "--at", "50%"]):
            for columns in (60, 80, 100, 132):
                if columns > 60 or command[0] in ("gaps", "threads"):
                    lines = on_terminal(command[0], history, *command[1:], columns=columns).split("\n")
                    lines = [line for line in lines if not line.startswith(("note", "     "))] if columns == 60 else lines
                    widest = max(lines, key=len)
                    check(len(widest) <= columns or columns == 60 and widest.startswith("lost, too"), f"{command} on {columns} columns: {widest}")


def check_sorted(folder):
    """What a table is sorted by is in it, on any terminal."""
    history = os.path.join(folder, "recording.hist")
    heading = {"lost": "lost", "share": "lost%", "longest": "longest", "p99": "p99", "gaps": "gaps", "ran": "ran", "life": "life"}
    for command in ("summary", "threads"):
        for order, name in heading.items():
            for columns in (80, 100, 120):
                first = on_terminal(command, history, "--sort", order, columns=columns).split("\n")[0]
                check(name in first.split(), f"{command} by {order} on {columns} columns: {first!r}")
    longest = [int(row["longest_ns"]) for row in table("threads", history, "--sort", "longest")]
    check(longest[0] > longest[-1] and longest == sorted(longest, reverse=True), "and in csv")
    simulate(os.path.join(folder, "sorted"), "requests", "--duration", "2s")
    history = os.path.join(folder, "sorted.hist")
    run("index", os.path.join(folder, "sorted"), "-o", history)
    text = on_terminal("latency", "requests", history)
    starts = re.findall(r"^\S+ .* (\d\d:\d\d:\d\d\.\d{4}) ", text, re.M)
    check(" start " in text and "~" not in text and len(starts) > 3 and starts == sorted(starts), f"when requests begin: {text[:300]}")


def check_markers(folder):
    """Their times say what the window's do not say alike, and are told whole or as A..B."""
    history = os.path.join(folder, "recording.hist")
    for size, shown in (("80x24", r"   A 4\d\.\d  B 5\d\.\d  d 2\.\d\d s"), ("66x24", r"   A\.\.B 2\.\d\d s")):
        (screen,) = screens(history, ["key 0 ^ (", ":goto +2.5s", "key )", ":SCREEN"], folder, size)
        check(re.search(shown, screen[0]), f"{size}: markers {screen[0]!r}")


def check_picture(folder):
    history, file = os.path.join(folder, "recording.hist"), os.path.join(folder, "picture")
    run("picture", history, "-o", file + ".svg", "Debian/151")
    svg = open(file + ".svg", encoding="utf-8").read()
    root = xml.etree.ElementTree.fromstring(svg)
    text = "".join(root.itertext())
    check(root.tag.endswith("svg") and "fibonacci" in text and "burnP6" in text, "a picture names victim and thief")
    run("picture", history, "-o", file + ".svg", "Debian/151", "--from", "20%", "--to", "30%")
    check(open(file + ".svg", encoding="utf-8").read() != svg, "a window; a picture is replaced by a picture")
    run("picture", history, "-o", file + ".txt", "Debian/151", "Debian/149", "--glyphs", "ascii")
    lines = open(file + ".txt", encoding="utf-8").read().split("\n")
    names = [re.split(r"  +[\d.<]+%", line)[0].strip() for line in lines[3:7]]
    check(names == ["v Debian", "v vCPU0", "151 fibonacci", "149 beacon"], f"rows with what holds them {names}")
    run("picture", history, "-o", file + ".html")
    html = open(file + ".html", encoding="utf-8").read()
    check("who suffers in these 7.17 s" in html, "without rows it is the overview")
    run("picture", history, "-o", file + "3.txt", "Debian/151")
    for name in ("3.txt", ".html"):
        drawn = open(file + name, encoding="utf-8").read()
        check("virt-preempt" in drawn and not re.search("Tab|Enter|q closes|[?] help", drawn), "a picture has a legend, and no keys")
    run("picture", history, "-o", file + "2.txt", "Debian/*beacon*", "--width", "80")
    check("149 beacon" in open(file + "2.txt", encoding="utf-8").read(), "a glob")
    few = ["--from", "05:30:48", "--to", "05:30:48.001"]
    for i, args in enumerate((["Debian/151"], ["Debian/149", "Debian/151"], ["host/216"], few, ["Debian/151", *few], ["Debian/CPU0"])):
        run("picture", history, "-o", f"{file}-{i}.txt", *args)
        drawn = open(f"{file}-{i}.txt", encoding="utf-8").read().split("\n")
        check("the whole trace" in drawn[1] and "" not in drawn[:-1], f"picture {' '.join(args)}: no line of it is empty")
    for args, why in (([], "no file to write"), (["-o", "x.png"], "of what kind"), (["-o", file + ".html", "nobody"], "nobody: no"),
                      (["-o", file + ".txt", "Debian"], "not an SVG or HTML picture"), (["-o", file + ".svg", "--width", "9"], "--width")):
        err = run("picture", history, *args, status=None)
        check(err.returncode != 0 and why in err.stderr, f"picture {args[-1:]}: {why}")
    check("who suffers" in open(file + ".html", encoding="utf-8").read(), "what failed left the file alone")


def check_hint(folder):
    """A command that the viewer tells is about the history that is open, and can be pasted."""
    history = os.path.join(folder, "my recording.hist")
    run("index", os.path.join(DATA, "fibonacci"), "-o", history)
    (screen,) = screens(history, [":goto Debian/CPU0", "key 0", "key >", "key x", ":SCREEN"], folder, "200x60")
    text = " ".join(line.strip() for line in screen)
    check("(stealscope " in text and " FILE" not in text and f" '{history}' " in text, f"details: {text[-600:]}")


def check_one(folder):
    """One of a kind is one."""
    history = os.path.join(folder, "recording.hist")
    text = run("gaps", history, "Debian/CPU0", "--from", "05:30:51.4627", "--to", "05:30:51.48", "--min", "2ms", env={"TZ": "UTC"}).stdout
    check("\n1 gap of Debian/vCPU0, " in text, "one gap")
    p = run("path", history, "Debian", status=1)
    check("usage: stealscope path WHAT VM/TID|VM/CPUn " in run("path", "--help").stdout and "as Debian/CPU0)" in p.stderr, p.stderr)
    check(re.search(r"\npreempting \S+, irq \S+, idle-cpu \S+\n\n", run("flow", history, "host/CPU1").stdout), "a CPU loses nothing")
    check(", 1 entry\n" in run("flow", history, "Debian/2").stdout, "one entry")


def check_gaps(folder):
    """The machine of all rows stands once; what is lost and no gap, and nobody's, is said, so that all adds up."""
    history = os.path.join(folder, "recording.hist")
    served = [r["served_ns"] for r in table("summary", history) if r["subject"] == "Debian"]
    check(len(served) == 1 and 80000000 < int(served[0]) < 81000000, f"what the hypervisor did for Debian: {served}")
    for subject, who in ([], "Debian"), (["Debian"], "it"), (["Debian/CPU0"], "it"):
        lines = on_terminal("gaps", history, *subject, "--top", "3", columns=80).split("\n")
        check(subject[1:] or all(("  vCPU0  " in line) == (subject != ["Debian/CPU0"]) for line in lines[1:4]), "Debian's vCPU0 is vCPU0")
        check(any(line.startswith("430 gaps of Debian") for line in lines), "of Debian")
        for text in "\n".join(lines), run("steal", history, *subject).stdout:
            check(f"\nlost, too: 80.5 ms in which the hypervisor worked for {who} (stealscope exits)" in text, text)
    long = os.path.join(folder, "long.hist")
    run("index", "--host", os.path.join(DATA, "fibonacci", "host"), "--guest", "a-quite-long-name=" + os.path.join(DATA, "fibonacci", "guest-Debian"), "-o", long)
    text = on_terminal("steal", long, columns=80)
    check("worked for a-quite-long-name" in text and max(map(len, text.split("\n"))) <= 80, "a long name, too")
    for command in (["gaps", history, "Debian/151"], ["gaps", history, "host"], ["steal", history, "--by", "thread"], ["gaps", history, "--lengths"]):
        check("lost, too" not in run(*command).stdout, f"{command[0]}: of whom the hypervisor works for nobody")


def check_aligned(folder):
    """Rows behind those by which a table's widths were found stand in its columns, too."""
    traces, history = os.path.join(folder, "churn"), os.path.join(folder, "churn.hist")
    simulate(traces, "churn", "--duration", "500ms")
    run("index", traces, "-o", history)
    widths = collections.Counter(map(len, run("steal", history, "--by", "thread").stdout.splitlines()[1:]))
    check(len(widths) == 1 and widths.total() > 1500, f"the widths of many rows: {dict(widths)}")


def check_unknown(folder):
    """Where the reason has no room beside "unknown", that stands alone."""
    traces, history = os.path.join(folder, "lossy"), os.path.join(folder, "lossy.hist")
    simulate(traces, "random", "--seed", "1", "--lost", "0.3", "--duration", "2s")
    run("index", traces, "-o", history)
    lines = [line for line in screens(history, ["O", ":SCREEN"], folder, "80x24", "--glyphs", "ascii")[0] if "unknown" in line]
    check(lines and not any("unknown (" in line for line in lines), f"{len(lines)} lines of who lost to nobody knows whom")


def check_gap(folder):
    """A list of gaps is of the window beside it, also where the pane before it left less room for the rows; a culprit of a part
    of a gap is never said without that part."""
    history = os.path.join(folder, "recording.hist")
    for size in ("80x24", "120x40"):
        rows, gaps = screens(history, ["O", "<Enter>", ":SCREEN", "<Enter>", "P", ":SCREEN"], folder, size, "--glyphs", "ascii")
        span = re.search(r"   ([0-9.]+ m?s) ", rows[0]).group(1)
        title = [line for line in gaps if " gaps of " in line]
        check(len(title) == 1 and f" in {span}: " in title[0] and f"   {span} " in gaps[0], f"{size}: {title} of {span}")
    keys = ["O", "/135", "<Enter>", "<Enter>", ":SCREEN"]
    narrow, wide = (screens(history, keys, folder, size)[0][-2] for size in ("80x24", "200x24"))
    share = re.search(r" by host/216 burnP6 on CPU1( \(50 %\)) and 4 more", wide)
    check(share and narrow.endswith(" by host/216 burnP6" + share.group(1)), narrow.strip())


def check_path(folder):
    """A piece of a thread's own wakeup wakes nobody else."""
    history = os.path.join(folder, "recording.hist")
    keys = ["O", "/beacon", "<Enter>", "<Enter>", "0", "C", "/was being woken", "<Enter>", "o"] + [":SCREEN", "j"] * 12
    said = [screen[-2].strip() for screen in screens(history, keys, folder)]
    own = [line for line in said if re.match(r"Debian/\d+ beacon .* was being woken", line)]
    check(own and all(re.search(r"woken( \(as nearest in time, [^)]*\))?$", line) for line in own), f"the path pane: {own[:1]}")
    check(any("to the next one" in line for line in said), "others' led to the next one")


def check_own(folder):
    """What a thread lost to its own machine is not told as if a neighbour had it."""
    history = os.path.join(folder, "recording.hist")
    taken = {r["subject"]: r["thief"] for r in table("summary", history, "--top", "0")}
    check(taken["Debian/149 beacon"] == "Debian" and taken["host/130 kworker/1:2"] == "host", "no one thread took most")
    shown = screens(history, ["O", "/149 beacon", "<Enter>", ":SCREEN", "<Esc>", "/130 kworker", "<Enter>", ":SCREEN"], folder)
    for screen, says in zip(shown, ("% of it to others in Debian; ", "% of it to others in host; ")):
        check(says in screen[-2], screen[-2])


def check_alone(folder):
    """Without the host nobody knows when vCPUs waited: the line of the whole trace tells of the threads."""
    history = os.path.join(folder, "alone.hist")
    run("index", os.path.join(DATA, "fibonacci", "guest-Debian"), "-o", history)
    (screen,) = screens(history, [":SCREEN"], folder, "120x40", "--glyphs", "ascii")
    check(re.search(r"waits to 0\.[1-9]% .*!", screen[1]), screen[1])
    (screen,) = screens(history, [":Debian", ":SCREEN"], folder)
    check(" Debian: what its host took from it is not known" in screen[-2] and " lost " not in screen[-2], screen[-2])
    text = " ".join(run("explain", history, "Debian").stdout.split())
    check("ran 5.50 s, less what a host took from it, which is not seen. The thread that lost most" in text, text)
    for subject, lost in ("Debian/CPU0", "lost unknown, "), ("Debian/151", "lost 35.1 ms (0.7%) or more, "), ("Debian/5", "lost 0 ns (0.0%), "):
        check("\n" + lost in run("flow", history, subject).stdout, f"flow {subject}: {lost}")
        text = " ".join(run("explain", history, subject).stdout.split())
        check(lost.replace("%", " %").replace(" (0.0 %)", "") in text, text)
    for command in ("gaps",), ("gaps", "--lengths"), ("gaps", "--histogram"), ("steal",):
        for subject in ([], ["Debian"], ["Debian/CPU0"]):
            text = run(command[0], history, *subject, *command[1:]).stdout
            check(text.endswith("\n\nnone seen: what a host took is not known\n"), f"{command} {subject}: {text}")
    for command, says in (("exits",), "no exits of"), (("waits", "--polling"), "nothing tells how halts of"), (("gaps", "--inside"), "no preemption of"):
        text = " ".join(run(command[0], history, *command[1:]).stdout.split())
        check(f"{says} the only vCPU " in text, text)
    check("\nnone\n" not in run("info", history).stdout, "a table without rows says what is none in it, or is not there")
    (screen,) = screens(history, [":Debian/CPU0", "P", ":SCREEN"], folder)
    check(any("- gaps of Debian/vCPU0: what a host took is not known -" in line for line in screen), "the pane, too")
    text = run("explain", history, "Debian/CPU0", "--to", "6%").stdout
    check("slept 336 ms (90.6 %)" in text and "waits" not in text and "Look next at its host" in text, text)
    for subject, says in ("Debian/CPU0", "Nothing that was recorded kept it from running"), ("Debian/151", "What delayed it most was Debian/149"):
        text = " ".join(run("explain", history, subject).stdout.split())
        check(says in text, text)
        check("tells all of it that happened inside the guest; yet" in text and "Look next at its host: record both" in text, text)


with scratch() as tmp:
    check_alone(tmp)
    check_summary(tmp)
    check_own(tmp)
    check_path(tmp)
    check_picture(tmp)
    check_explain(tmp)
    check_gap(tmp)
    check_one(tmp)
    check_hint(tmp)
    check_gaps(tmp)
    check_aligned(tmp)
    check_unknown(tmp)
    check_width(tmp)
    check_tables(tmp)
    check_sorted(tmp)
    check_markers(tmp)
    check_reason(tmp)
    check_requests(tmp)
    check_long(tmp)
