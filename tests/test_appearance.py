"""Screens of the viewer, which show the figures of the commands, and the layout of tables."""
import collections
import csv
import os
import re
import xml.etree.ElementTree

from e2e import DATA, check, codes, joined, on_terminal, run, scratch, simulate, table

UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def screens(history, keys, folder, size="120x40", *options):
    """Sends the keys to the viewer; returns a screen, a list of lines, for each ":SCREEN" among them."""
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
    """Returns true if a duration shown with three digits agrees with the exact one."""
    return abs(shown - exact) <= 0.006 * max(exact, 1)


def check_long(folder):
    """The message after the export of an incomplete list states how many rows it has."""
    simulate(os.path.join(folder, "long"), "random", "--seed", "4", "--events", "600k")
    history, out = os.path.join(folder, "long.hist"), os.path.join(folder, "long.csv")
    run("index", os.path.join(folder, "long"), "-o", history)
    every = table("gaps", history, "host", "--top", "0")
    check(len(every) > 5000, f"{len(every)} gaps")
    (screen,) = screens(history, [":host", "P", f":export {out}", ":SCREEN"], folder, "200x40")
    check("long.csv: " in screen[-1] and f"5000 of {len(every)} " in screen[-1] and "--top 0" in screen[-1], screen[-1])
    with open(out, encoding="utf-8") as f:
        check(list(csv.DictReader(f)) == every[:5000], "the file has the longest")


def check_requests(folder):
    simulate(os.path.join(folder, "requests"), "requests", "--duration", "2s")
    history = os.path.join(folder, "requests.hist")
    run("index", os.path.join(folder, "requests"), "-o", history)
    expected = {r["request"]: r for r in table("latency", "requests", history)}
    (screen,) = screens(history, ["R", ":SCREEN"], folder, "140x40")
    heading = next(i for i, line in enumerate(screen) if line.split()[:3] == ["request", "machine", "start"])
    lines = [line.split() for line in screen[heading + 1:-2]]
    check(len(lines) > 20, f"the requests pane lists {len(lines)} requests on a screen")
    for line in lines:
        # 14898  Debian  05:35:48.4460  86.4 ms  7.99 ms  44.0 ms  host/124 burnP6
        row = expected[line[0]]
        shown = [ns(*line[i:i + 2]) for i in (3, 5, 7)]
        same = all(close(value, int(row[name])) for value, name in zip(shown, ("latency_ns", "provider_low_ns", "provider_high_ns")))
        if not same or " ".join(line[9:]) != row["culprit"]:
            check(False, f"the requests pane agrees with `latency requests`: {line} {row}")
    check(any(expected[line[0]]["culprit"].startswith("host/") for line in lines), "a culprit is not the victim itself")


def check_reason(folder):
    """On 80 columns the name of the row takes precedence over the reason of throttling."""
    simulate(os.path.join(folder, "quota"), "planted", "--plant", "quota", "--duration", "1500ms", "--no-truth")
    history = os.path.join(folder, "quota.hist")
    run("index", os.path.join(folder, "quota"), "-o", history)
    narrow, wide = (screens(history, [":Debian/103", "0", "P", "key <Enter> q", ":SCREEN"], folder, size)[0][-2] for size in ("80x24", "140x24"))
    check(narrow.startswith(" Debian/103 reqserver ") and "quota" in narrow and "throttled" in wide, narrow)


def check_names(folder, history):
    """No name is cut while a less important column is shown, on any width."""
    rows = {r["target"]: r["culprit"] for r in table("summary", history, "--top", "0")}
    for width in (60, 80, 90, 100, 120, 150, 200):
        overview = screens(history, ["O", ":SCREEN"], folder, f"{width}x30")[0]
        heading = next(i for i, line in enumerate(overview) if line.startswith(" target "))
        columns = overview[heading]
        lines = [line[1:] for line in overview[heading + 1:-2] if "|" in line or "*" in line]
        if "share" not in columns:
            continue
        cut = [line for line in lines if not any(line.startswith(name[:33]) for name in rows)]
        check(len(lines) > 10 and cut == [], f"{width} columns: names are whole beside 'share' {cut[:2]}")
        if "max wait" in columns:
            begin = columns.index("top culprit") - 1
            end = columns.index("share") - 2  # the widest share, 100.0%, is wider than its heading
            cut = [line for line in lines if (line[begin:end].strip() or "hypervisor") not in " ".join(rows.values()) and
                   not re.match(r"other threads|threads of|hypervisor|\(", line[begin:end])]
            check(cut == [], f"{width} columns: culprits are whole beside 'max wait' {cut[:2]}")


def check_place(folder, history):
    """--row and --at show the wait that a report printed, though the printed time is cut."""
    first = run("gaps", history, "Debian/151", "--top", "1").stdout.splitlines()[1].split()
    script = os.path.join(folder, "place.keys")
    with open(script, "w", encoding="utf-8") as f:
        f.write(":screen place.txt!\nq\n")
    run("view", history, "--row", "Debian/151", "--at", first[0], "--script", script, "--size", "120x20", cwd=folder)
    with open(os.path.join(folder, "place.txt"), encoding="utf-8") as f:
        status = f.read().splitlines()[-2]
    check(status.startswith(" Debian/151 fibonacci") and " ".join(first[1:3]) in status and first[3] in status, status)


def check_summary(folder):
    history = os.path.join(folder, "recording.hist")
    run("index", os.path.join(DATA, "fibonacci"), "-o", history)
    rows = table("summary", history)
    check([r["target"] for r in rows[:3]] == ["Debian", "host", "Debian/151 fibonacci"], "machines, then threads, sorted by lost time")
    victim = rows[2]
    check(victim["culprit"] == "host/216 burnP6" and float(victim["culprit_share"]) > 0.9, "the culprit and its share")
    gaps = table("gaps", history, "Debian/151", "--top", "1")[0]
    check_place(folder, history)
    check_names(folder, history)
    check((victim["longest_ns"], victim["longest_start"]) == (gaps["duration_ns"], gaps["start"]), "its longest gap")
    lost, ran = int(victim["lost_ns"]), int(victim["ran_ns"])
    check(abs(float(victim["lost_share"]) - lost / (lost + ran)) < 1e-8, "lost as a share of the wanted time")
    text = run("summary", history, "Debian", "--top", "2").stdout
    check("host/216 burnP6" in text and text.count("Debian/") == 2 and re.search(r"\b2 of\b", text), "two threads of one VM")
    longest = [int(r["longest_ns"]) for r in table("summary", history, "--sort", "longest", "--top", "0") if r["tid"]]
    check(longest == sorted(longest, reverse=True) and len(longest) > 5, "sorted by another column")
    threads = table("threads", history, "Debian")
    check(len(threads) > 50 and {t["machine"] for t in threads} == {"Debian"}, "all threads of a machine")
    check({r["tid"] for r in rows if r["machine"] == "Debian"} <= {t["tid"] for t in threads} | {""}, "delayed or not")
    err = run("summary", history, "Debian/151", status=1).stderr
    check("Debian/151" in err and "machine" in err, "a thread instead of a machine is refused")


def check_explain(folder):
    """explain accepts machines, all of them, and all threads of a name: its figures are those of summary."""
    history = os.path.join(folder, "recording.hist")
    rows = {r["target"]: r for r in table("summary", history, "--top", "0")}
    texts = {target: joined(run("explain", history, *target).stdout) for target in ((), ("Debian",), ("host",))}
    for target, text in texts.items():
        machines = [m for m in ("Debian", "host") if not target or m in target]
        check([m for m in ("Debian", "host") if f"{m}, 2026-11-20 05:30:4" in text] == machines, f"explain {target}: of {machines}")
        for r in (rows[m] for m in machines):
            figures = re.search(r"%s, \S+ \S+ [+-]\d{4} \.\. \S+ \([^)]*\): ran (\S+) (\w+) and lost (\S+) (\w+)\D* (\S+) %%" % r["target"], text)
            check(figures and close(ns(figures[1], figures[2]), int(r["ran_ns"])) and
                  close(ns(figures[3], figures[4]), int(r["lost_ns"])) and
                  abs(float(figures[5].lstrip("(")) - 100 * float(r["lost_share"])) < 0.06, f"{r['target']}: ran and lost")
            check(re.search(rf"\b{r['gaps']}\b", text), f"number of gaps of {r['target']}")
        first = rows[machines[0]]
        verdict = text[text.index("verdict: "):text.index(f"{machines[0]}, 2026-")]
        took = re.search(r" took (\S+) (\w+) of (\S+) ", verdict)
        check(took and took[3] == machines[0] and all(name in verdict for name in first["culprit"].split("/")) and
              ns(took[1], took[2]) >= 0.994 * int(first["culprit_ns"]), f"the culprit and its time: {verdict}")
    check(texts[()].index("Debian, ") < texts[()].index("host, "), "guests before the host")
    delayed = [r for r in rows.values() if r["tid"] and r["machine"] == "Debian"]
    text = run("explain", history, "Debian/lttng-consumerd").stdout
    heads = re.findall(r"^(Debian/\d+) lttng-consumerd, ", text, re.M)
    by_loss = [f"Debian/{r['tid']}" for r in delayed if r["name"] == "lttng-consumerd"]
    check(len(heads) > 1 and heads[:len(by_loss)] == by_loss, f"all threads of a name, the most delayed first {heads}")
    text = run("explain", history, "Debian/*", "--top", "2").stdout
    check(len(re.findall(r"^Debian/.*, 2026-", text, re.M)) == 2 and re.search(r"\b2 of\b", text), "--top 2")
    text = run("explain", history, "--at", "05:30:50.84", "--top", "2").stdout
    lengths = re.findall(r"^Debian/.* for ([\d.]+) ms from", text, re.M)
    check(len(lengths) == 2 and float(lengths[0]) >= float(lengths[1]), "--at without a target: all that wait, longest first")


def check_width(folder):
    """Lanes fill the rest of the line on a terminal; piped tables are as wide as their content."""
    history = os.path.join(folder, "recording.hist")
    for columns in (80, 160, 220):
        lines = on_terminal("summary", history, columns=columns).split("\n")
        lines = lines[[line.startswith("target ") for line in lines].index(True):]  # without the verdict
        lanes = "over time" in lines[0]
        check(lanes == (columns > 120) and max(map(len, lines)) <= columns, f"summary on {columns} columns")
        check("\nover time: " in "\n".join(lines) or not lanes, "with a legend of the lanes")
        if lanes:
            check(len(lines[2]) == columns and "~" not in lines[2][-30:], "the lane ends at the last column, uncut")
        lines = on_terminal("flow", history, "Debian/151", columns=columns).split("\n")
        bars = [line for line in lines if line.endswith("|")]
        check(len(bars) > 5 and {len(line) for line in bars} == {columns - 1}, f"flow on {columns} columns")
        check(lines[-3].startswith("# ran  ! ") and ": " in lines[-3], "with a legend")
    for command in (["threads", history], ["gaps", history, "--top", "5"], ["summary", history]):
        text = run(*command).stdout.replace("p99 ~", "")  # the heading of a percentile from a histogram
        check("~" not in text, f"{command[0]}, piped: nothing is cut")


def check_tables(folder):
    """Names are complete if other columns can shrink, else visibly cut; dates and states are never cut; no line is wider than
    the terminal."""
    traces, short, long = (os.path.join(folder, name) for name in ("critical", "critical.hist", "named.hist"))
    simulate(traces, "critical_task", "--duration", "4s")
    run("index", traces, "-o", short)
    run("index", "--host", f"{traces}/host", "--guest", f"production-database-primary.example.com={traces}/guest-Debian",
        "--guest", f"ci-build-runner-fedora-40={traces}/guest-Ubuntu", "-o", long)
    text = on_terminal("gaps", short)
    check(" Ubuntu/vCPU1 PREEMPTED " in text and " Debian/107 critical_task" in text and "~" not in text, f"whole names {text[:300]}")
    text = on_terminal("path", short, "Debian/CPU0", "--intervals")
    check(" critical_task " in text and "~" not in text, f"path: whole names {text[:500]}")
    text = on_terminal("summary", short)
    check("Debian/100 lttng-consumerd " in text, f"of threads, too {text[:500]}")
    text = on_terminal("gaps", long)
    check(" ci-~40/vCPU1 PREEMPTED " in text and " pro~om/107 critical_task" in text, f"long names {text[:300]}")
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
                    text = on_terminal(command[0], history, *command[1:], columns=columns)
                    if columns == 60:  # only the rows of the table fit so few columns, not notes and sums
                        text = next(part for part in text.split("\n\n") if not part.startswith("note"))
                    # a command is not broken, so that it can be copied
                    widest = max((line for line in text.split("\n") if not line.startswith("  (stealscope ")), key=len)
                    check(len(widest) <= columns, f"{command} on {columns} columns: {widest}")


def check_sorted(folder):
    """The sort column of a table is shown on terminals of any width."""
    history = os.path.join(folder, "recording.hist")
    heading = {"lost": "lost", "share": "lost%", "longest": "max wait", "p99": "p99", "gaps": "gaps", "ran": "ran", "life": "life"}
    for command in ("summary", "threads"):
        for order, name in heading.items():
            for columns in (80, 100, 120):
                first = re.search(r"^(?:target|machine) .*", on_terminal(command, history, "--sort", order, columns=columns), re.M)[0]
                check(re.search(rf"(?<!\w){re.escape(name)}(?![\w%])", first), f"{command} by {order} on {columns} columns: {first!r}")
    longest = [int(row["longest_ns"]) for row in table("threads", history, "--sort", "longest")]
    check(longest[0] > longest[-1] and longest == sorted(longest, reverse=True), "csv is sorted, too")
    simulate(os.path.join(folder, "sorted"), "requests", "--duration", "2s")
    history = os.path.join(folder, "sorted.hist")
    run("index", os.path.join(folder, "sorted"), "-o", history)
    text = on_terminal("latency", "requests", history)
    starts = re.findall(r"^\S+ .* (\d\d:\d\d:\d\d\.\d{4}) ", text, re.M)
    check(" start " in text and "~" not in text and len(starts) > 3 and starts == sorted(starts), f"start times of requests: {text[:300]}")


def check_markers(folder):
    """Times of markers omit the part that all times of the window share; without room for them there is A..B."""
    history = os.path.join(folder, "recording.hist")
    for size, shown in (("80x24", r"   A 4\d\.\d B 5\d\.\d B-A 2\.\d\d s"), ("66x24", r"   A\.\.B 2\.\d\d s")):
        (screen,) = screens(history, ["key 0 ^ (", ":goto +2.5s", "key )", ":SCREEN"], folder, size)
        check(re.search(shown, screen[0]), f"{size}: markers {screen[0]!r}")


def check_picture(folder):
    history, file = os.path.join(folder, "recording.hist"), os.path.join(folder, "picture")
    run("picture", history, "-o", file + ".svg", "Debian/151")
    svg = open(file + ".svg", encoding="utf-8").read()
    root = xml.etree.ElementTree.fromstring(svg)
    text = "".join(root.itertext())
    check(root.tag.endswith("svg") and "fibonacci" in text and "burnP6" in text, "a picture names victim and culprit")
    run("picture", history, "-o", file + ".svg", "Debian/151", "--from", "20%", "--to", "30%")
    check(open(file + ".svg", encoding="utf-8").read() != svg, "a window; a picture replaces a picture")
    run("picture", history, "-o", file + ".txt", "Debian/151", "Debian/149", "--glyphs", "ascii")
    lines = open(file + ".txt", encoding="utf-8").read().split("\n")
    names = [re.split(r"  +[\d.<]+%", line)[0].strip() for line in lines[5:10] if "on CPU1" not in line]
    check(names == ["v Debian", "v vCPU0", "151 fibonacci", "149 beacon"], f"rows and their parents {names}")
    run("picture", history, "-o", file + ".html")
    html = open(file + ".html", encoding="utf-8").read()
    check("most delayed in 7.17 s" in html, "without targets the picture is the overview")
    run("picture", history, "-o", file + "3.txt", "Debian/151")
    for name in ("3.txt", ".html"):
        drawn = open(file + name, encoding="utf-8").read()
        check("virt-preempt" in drawn and not re.search("Tab|Enter|q closes|[?] help", drawn), "a picture has a legend, and mentions no keys")
    run("picture", history, "-o", file + "2.txt", "Debian/*beacon*", "--width", "80")
    check("149 beacon" in open(file + "2.txt", encoding="utf-8").read(), "a glob")
    few = ["--from", "05:30:48", "--to", "05:30:48.001"]
    for i, args in enumerate((["Debian/151"], ["Debian/149", "Debian/151"], ["host/216"], few, ["Debian/151", *few], ["Debian/CPU0"])):
        run("picture", history, "-o", f"{file}-{i}.txt", *args)
        drawn = open(f"{file}-{i}.txt", encoding="utf-8").read().split("\n")
        check(any("whole trace" in line for line in drawn[2:5]) and drawn[-2].startswith(" source: recording.hist, "),
              f"picture {' '.join(args)}: no line is empty")
    for args, error in (([], "-o FILE"), (["-o", "x.png"], "'x.png'"), (["-o", file + ".html", "nobody"], "nobody: no"),
                        (["-o", file + ".txt", "Debian"], "not an SVG or HTML picture"), (["-o", file + ".svg", "--width", "9"], "--width")):
        err = run("picture", history, *args, status=None)
        check(err.returncode != 0 and error in err.stderr, f"picture {args[-1:]}: {error}")
    check("most delayed" in open(file + ".html", encoding="utf-8").read(), "a failed command does not change the file")


def check_hint(folder):
    """A command shown in the viewer contains the path of the open history and can be pasted into a shell."""
    history = os.path.join(folder, "my recording.hist")
    run("index", os.path.join(DATA, "fibonacci"), "-o", history)
    (screen,) = screens(history, [":goto Debian/CPU0", "key 0", "key >", "key x", ":SCREEN"], folder, "200x60")
    text = " ".join(line.strip() for line in screen)
    check("(stealscope " in text and " FILE" not in text and f" '{history}' " in text, f"details: {text[-600:]}")


def check_one(folder):
    """Singular forms."""
    history = os.path.join(folder, "recording.hist")
    text = run("gaps", history, "Debian/CPU0", "--from", "05:30:51.4627", "--to", "05:30:51.48", "--min", "2ms", env={"TZ": "UTC"}).stdout
    check("\n1 gap of Debian/vCPU0, " in text, "one gap")
    p = run("path", history, "Debian", status=1)
    check(" VM/TID|VM/CPUn " in run("path", "--help").stdout and "Debian/151 fibonacci" in p.stderr, p.stderr)
    check(re.search(r"\npreempting \S+, irq \S+, idle-cpu \S+\n\n", run("flow", history, "host/CPU1").stdout), "users of a CPU; it loses nothing")
    check(", 1 entry\n" in run("flow", history, "Debian/2").stdout, "one entry")


def check_gaps(folder):
    """A machine that all rows share is shown once; lost time outside gaps is reported, so that the sums add up."""
    history = os.path.join(folder, "recording.hist")
    vmm = [r["vmm_ns"] for r in table("summary", history) if r["target"] == "Debian"]
    check(len(vmm) == 1 and 80000000 < int(vmm[0]) < 81000000, f"VMM time of Debian: {vmm}")
    for target in [], ["Debian"], ["Debian/CPU0"]:
        lines = on_terminal("gaps", history, *target, "--top", "3", columns=80).split("\n")
        check(all(("  vCPU0  " in line) == (target != ["Debian/CPU0"]) for line in lines[1:4]), "vCPU0 without its machine")
        check(any(line.startswith("430 gaps of Debian") for line in lines), "the machine below the table")
        for text in "\n".join(lines), run("steal", history, *target).stdout:
            check(re.search(r"\n.* 80\.5 ms .*\(stealscope exits\)", text), text)
    long = os.path.join(folder, "long.hist")
    run("index", "--host", os.path.join(DATA, "fibonacci", "host"), "--guest", "a-quite-long-name=" + os.path.join(DATA, "fibonacci", "guest-Debian"), "-o", long)
    text = on_terminal("steal", long, columns=80)
    check(re.search(r"\n.* 80\.5 ms .*a-quite-long-name", text) and max(map(len, text.split("\n"))) <= 80, "a long name")
    for command in (["gaps", history, "Debian/151"], ["gaps", history, "host"], ["steal", history, "--by", "thread"], ["gaps", history, "--lengths"]):
        check("(stealscope exits)" not in run(*command).stdout, f"{command[0]}: no VMM time for targets without any")


def check_aligned(folder):
    """Rows after the first ones, from which the widths of a table are computed, are aligned, too."""
    traces, history = os.path.join(folder, "churn"), os.path.join(folder, "churn.hist")
    simulate(traces, "churn", "--duration", "500ms")
    run("index", traces, "-o", history)
    widths = collections.Counter(map(len, run("steal", history, "--by", "thread").stdout.splitlines()[1:]))
    check(len(widths) == 1 and widths.total() > 1500, f"the widths of many rows: {dict(widths)}")


def check_unknown(folder):
    """Without room for the reason, only "unknown" is shown."""
    traces, history = os.path.join(folder, "lossy"), os.path.join(folder, "lossy.hist")
    simulate(traces, "random", "--seed", "1", "--lost", "0.3", "--duration", "2s")
    run("index", traces, "-o", history)
    lines = [line for line in screens(history, ["O", ":SCREEN"], folder, "80x24", "--glyphs", "ascii")[0] if "unknown" in line]
    check(lines and not any("unknown (" in line for line in lines), f"{len(lines)} lines with an unknown culprit")


def check_gap(folder):
    """A list of gaps covers the window on the screen, even if the previous pane left fewer columns; the culprit of a part of
    a gap is always shown with its share."""
    history = os.path.join(folder, "recording.hist")
    for size in ("80x24", "120x40"):
        rows, gaps = screens(history, ["O", "/151", "<Enter>", "<Enter>", ":SCREEN", "<Enter>", "P", ":SCREEN"], folder, size, "--glyphs", "ascii")
        length = re.search(r"   ([0-9.]+ m?s) ", rows[0]).group(1)
        title = [line for line in gaps if " gaps of " in line]
        check(len(title) == 1 and f" in {length}: " in title[0] and f"   {length} " in gaps[0], f"{size}: {title} of {length}")
    keys = ["O", "/135", "<Enter>", "<Enter>", ":SCREEN"]
    narrow, wide = (screens(history, keys, folder, size)[0][-2] for size in ("80x24", "200x24"))
    share = re.search(r", (50 %) by host/216 burnP6 on CPU1, 4 others", wide)
    check(share and narrow.strip().endswith(f"{share.group(1)} by host/216 burnP6"), narrow.strip())


def check_own(folder):
    """Time that a thread lost to its own machine is not attributed to another machine."""
    history = os.path.join(folder, "recording.hist")
    culprits = {r["target"]: r["culprit"] for r in table("summary", history, "--top", "0")}
    check(culprits["Debian/149 beacon"] == "Debian" and culprits["host/130 kworker/1:2"] == "host", "no single thread caused most")
    shown = screens(history, ["O", "/149 beacon", "<Enter>", ":SCREEN", "<Esc>", "/130 kworker", "<Enter>", ":SCREEN"], folder)
    for screen, culprit in zip(shown, ("Debian", "host")):
        check(re.search(rf"% .* other\w* .*{culprit}(;|$)", screen[-2]), screen[-2])


def check_alone(folder):
    """Without a host trace the losses of vCPUs are unknown: the map shows what threads lost of the time they wanted. Its peak
    is at least their share of the whole trace."""
    history = os.path.join(folder, "alone.hist")
    run("index", os.path.join(DATA, "fibonacci", "guest-Debian"), "-o", history)
    (screen,) = screens(history, [":SCREEN"], folder, "120x40", "--glyphs", "ascii")
    peak = float(re.search(r"lost, peak ([0-9.]+)% .*_", screen[1])[1])
    ran, lost = (sum(int(r[c]) for r in table("threads", history)) for c in ("ran_ns", "lost_ns"))
    check(100 * lost / (ran + lost) <= peak + 0.1 and "!" not in screen[1], f"the map {screen[1]}, {lost} of {ran + lost} ns")
    (screen,) = screens(history, [":Debian", ":SCREEN"], folder)
    check(" Debian: " in screen[-2] and "unknown" in screen[-2] and " lost " not in screen[-2], screen[-2])
    text = joined(run("explain", history, "Debian").stdout)
    check("ran 5.50 s" in text and "lost" not in text.split("Debian/151")[0].replace("lost most", "") and "host" in text, text)
    for target, lost in ("Debian/CPU0", "lost unknown, "), ("Debian/151", "lost 35.1 ms (0.7%) or more, "), ("Debian/5", "lost 0 ns (0.0%), "):
        check("\n" + lost in run("flow", history, target).stdout, f"flow {target}: {lost}")
        text = joined(run("explain", history, target).stdout)
        check(lost.replace("%", " %").replace(" (0.0 %)", "") in text, text)
    for command in ("gaps",), ("gaps", "--lengths"), ("gaps", "--histogram"), ("steal",):
        for target in ([], ["Debian"], ["Debian/CPU0"]):
            text = run(command[0], history, *target, *command[1:]).stdout
            last = text.rstrip("\n").split("\n\n")[-1]
            check(last.startswith("none") and "host" in last, f"{command} {target}: {text}")
            check(table(command[0], history, *target, *command[1:]) == [], "and no row in csv")
    for command, code in ((("exits",), "no-exit-events"), (("waits", "--polling"), "no-halt-polling-events"),
                          (("gaps", "--inside"), "no-instruction-pointers")):
        check(code in codes(command[0], history, *command[1:]), f"{command}: {code}")
    check("\nnone\n" not in run("info", history).stdout, "a table without rows names what is missing, or is left out")
    (screen,) = screens(history, [":Debian/CPU0", "P", ":SCREEN"], folder)
    check(any("- gaps of Debian/vCPU0: unknown " in line for line in screen), "the pane, too")
    text = run("explain", history, "Debian/CPU0", "--to", "6%").stdout
    check("slept 336 ms (90.6 %)" in text and "waits" not in text and "host" in text.split("How sure")[-1], text)
    for target, culprit in ("Debian/CPU0", None), ("Debian/151", "Debian/149 beacon"):
        text = joined(run("explain", history, target).stdout)
        check(culprit in text if culprit else not re.search(r"Debian/\d+ ", text), text)
        check("inside the guest" in text and "record" in text, text)


with scratch() as tmp:
    check_alone(tmp)
    check_summary(tmp)
    check_own(tmp)
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
