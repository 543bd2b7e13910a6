"""The main use case on the bundled recording: a fibonacci in a guest, burnP6 on the same pCPU (the paper's Fig. 6 to 9).

The expected figures are the recording's own truth (tests/data/fibonacci/truth.json)."""
import fractions
import json
import os

from e2e import DATA, check, on_terminal, run, scratch, table

TRACE = os.path.join(DATA, "fibonacci")
with open(os.path.join(TRACE, "truth.json"), encoding="utf-8") as f:
    TRUTH = json.load(f)
VM = TRUTH["vms"]["Debian"]


def true_host_time(guest_ns):
    """Returns the host's time at guest time guest_ns (both ns since the epoch), from TSC pairs."""
    clock = VM["true_clock"]
    slope = fractions.Fraction(repr(clock["slope"]))
    guest_mono = guest_ns - TRUTH["traces"]["guest-Debian"]["clock_offset_ns"]
    host_mono = clock["host_at_begin"] + slope * (guest_mono - clock["guest_begin"])
    return TRUTH["traces"]["host"]["clock_offset_ns"] + host_mono


def check_info(history):
    rows = table("info", history)
    check(list(rows[0]) == ["vm", "vcpu", "host_tid", "host_pid", "host_comm"], "info: the documented columns")
    row = [r for r in rows if r["vm"] == "Debian" and r["vcpu"] == "0"]
    check(len(row) == 1 and int(row[0]["host_tid"]) == VM["vcpus"]["0"]["tid"], "info: vCPU 0 of Debian is its host thread")
    check(int(row[0]["host_pid"]) == VM["qemu_pid"], "info: its QEMU process")
    doc = json.loads(run("info", history, "--format", "json").stdout)
    roles = {t["role"]: t["machine"] for t in doc["traces"]}
    check(roles == {"host": "hypervisor", "guest": "Debian"}, "info: names host and guest")
    for machine, trace in (("hypervisor", "host"), ("Debian", "guest-Debian")):
        events = [t["events"] for t in doc["traces"] if t["machine"] == machine]
        check(events == [TRUTH["traces"][trace]["events"]], f"info: all events of {machine} were read")


def check_sync(history):
    row = table("sync", TRACE)[0]
    check(table("sync", history)[0] == row, "sync: the history contains the report of the traces")
    check(row["quality"] == "ACCURATE", "sync: ACCURATE")
    ppm = float(row["alpha_ppm"])
    check(abs(ppm - VM["true_clock"]["ppm"]) < 2, f"sync: drift {ppm:.3f} ppm, truth {VM['true_clock']['ppm']}")
    allowed = (VM["sync"]["delay_ab_ns"]["min"] + VM["sync"]["delay_cd_ns"]["min"]) / 2
    ends = [TRUTH["traces"]["guest-Debian"][k] + TRUTH["traces"]["guest-Debian"]["clock_offset_ns"]
            for k in ("first_cycles", "last_cycles")]
    for t in ends:
        alpha = 1 + fractions.Fraction(row["alpha_ppm"]) / 10**6
        got = int(row["ref_host_ns"]) + alpha * (t - int(row["ref_guest_ns"]))
        off = float(got - true_host_time(t))
        check(abs(off) <= allowed, f"sync: {off:.0f} ns off the true clock, {allowed:.0f} allowed")
    first = int(row["ref_host_ns"]) + (1 + fractions.Fraction(row["alpha_ppm"]) / 10**6) * (ends[0] - int(row["ref_guest_ns"]))
    start = json.loads(run("summary", history, "--from", f"Debian@{ends[0]}", "--format", "json").stdout)["window"]["start"]
    check(abs(start - first) <= 1, f"a window on the clock of the guest begins {float(start - first):.0f} ns later")
    check(float(row["containment"]) >= 0.99, f"sync: containment {row['containment']}")
    check(int(row["error_mid_ns"]) >= 0, "sync: the error bound is known")


def check_flow(history):
    task = [t for t in TRUTH["tasks"] if t["task"] == "fibonacci" and t["in_trace"]][0]
    alone = [t for t in TRUTH["tasks"] if t["task"] == "fibonacci" and not t["in_trace"]][0]
    target = f"Debian/{task['pid']}"
    rows = table("flow", history, target)
    check(list(rows[0]) == ["machine", "tid", "name", "kind", "duration_ns", "share"], "flow: the documented columns")
    culprits = [r for r in rows if r["kind"] == "preempting"]
    check((culprits[0]["machine"], culprits[0]["name"]) == ("host", "burnP6"), "flow: burnP6 of the host leads the culprits")
    check(int(culprits[0]["tid"]) == TRUTH["hogs"][0]["pid"], "flow: its TID")
    check(int(culprits[0]["duration_ns"]) > 10 * int(culprits[1]["duration_ns"]), "flow: by far")
    own = sum(int(r["duration_ns"]) for r in rows if r["kind"] == "running")
    ratio = own / alone["guest_cpu_ns"]
    check(abs(ratio - 1) < 0.03, f"flow: own running time is {ratio:.4f} of the uncontended run's")
    check(abs(sum(float(r["share"]) for r in rows) - 1) < 1e-6, "flow: shares add up to 1")

    parts = table("flow", history, target, "--intervals")
    check(list(parts[0]) == ["start", "end", "machine", "tid", "name", "kind"], "flow --intervals: the documented columns")
    for a, b in zip(parts, parts[1:]):
        if int(a["end"]) + 1 != int(b["start"]):
            check(False, f"flow: gap or overlap between {a} and {b}")
    check(True, f"flow: {len(parts)} intervals tile the window to the ns")
    span = int(parts[-1]["end"]) - int(parts[0]["start"]) + 1
    check(sum(int(r["duration_ns"]) for r in rows) == span, "flow: entries add up to the window")
    sums = {}
    for p in parts:
        key = (p["machine"], p["tid"], p["name"], p["kind"])
        sums[key] = sums.get(key, 0) + int(p["end"]) - int(p["start"]) + 1
    check(sums == {(r["machine"], r["tid"], r["name"], r["kind"]): int(r["duration_ns"]) for r in rows},
          "flow: entries are the sums of the intervals")

    half = table("flow", history, target, "--from", "40%", "--to", "50%", "--intervals")
    check(int(half[0]["start"]) > int(parts[0]["start"]) and int(half[-1]["end"]) < int(parts[-1]["end"]),
          "flow: limited to a window")
    text = run("flow", history, target).stdout
    check("burnP6" in text and "fibonacci" in text, "flow: the text names culprit and victim")
    check(all(len(line) <= 80 for line in text.splitlines()), "flow: the text fits 80 columns")


def check_states(history):
    """Fig. 7: vCPU 0 alternates RUNNING and PREEMPTED; its thread is VIRT_PREEMPTED while the vCPU does not execute."""
    path = "/Virtual Machines/Debian/CPUs/CPU0/Status"
    rows = table("intervals", history, path)
    check(all(int(a["end"]) + 1 == int(b["start"]) for a, b in zip(rows, rows[1:])), "states: the vCPU's intervals tile")
    pid = [t for t in TRUTH["tasks"] if t["in_trace"]][0]["pid"]
    thread = table("intervals", history, f"/Virtual Machines/Debian/Threads/{pid}/Status")
    out = {"VMM", "PREEMPTED", "HOST_BLOCKED"}
    preempted = [(int(r["start"]), int(r["end"])) for r in thread if r["value"] == "VIRT_PREEMPTED"]
    vcpu = [(int(r["start"]), int(r["end"])) for r in rows if r["value"] in out]
    inside = sum(max(0, min(e, d) - max(s, c) + 1) for s, e in preempted for c, d in vcpu)
    check(inside == sum(e - s + 1 for s, e in preempted), "states: VIRT_PREEMPTED only while the vCPU is not executing")
    ran = [(int(r["start"]), int(r["end"])) for r in thread if r["value"] == "RUNNING"]
    executing = [(int(r["start"]), int(r["end"])) for r in rows if r["value"] == "RUNNING"]
    inside = sum(max(0, min(e, d) - max(s, c) + 1) for s, e in ran for c, d in executing)
    check(inside == sum(e - s + 1 for s, e in ran), "states: the thread runs only while its vCPU runs")
    stolen = sum(e - s + 1 for s, e in preempted)
    check(stolen > 2_000_000_000, f"states: {stolen / 1e6:.0f} ms were stolen from it")


def check_status(history, folder):
    """A short status line omits the seconds only if the first line of the screen contains them."""
    def status(*lines):
        script, screen = os.path.join(folder, "script"), os.path.join(folder, "screen")
        with open(script, "w", encoding="utf-8") as f:
            f.write("\n".join((*lines, ":screen " + screen + "!")))
        run("view", history, "--script", script, "--size", "60x24")
        with open(screen, encoding="utf-8") as f:
            return f.read().split("\n")[-3]
    gap = [":Debian/151", ":30%", ">"]
    check("PREEMPTED" in status(*gap) and ":50.0" in status(*gap), f"of 7 s: {status(*gap)}")
    check(" .0" in status(*gap, ":zoom 4ms"), f"of 4 ms: {status(*gap, ':zoom 4ms')}")
    text_ = status(*gap, "[")
    check("host/216 burnP6" in text_ and "RUNNING" in text_, f"the cause, while it has the CPU: {text_}")


def check_exports(history, folder):
    """The viewer exports the output of the commands."""
    def view(*lines):
        script = os.path.join(folder, "script")
        with open(script, "w", encoding="utf-8") as f:
            f.write("\n".join(lines))
        run("view", history, "--script", script)
    flow = ("flow", history, "Debian/151", "--format")
    steal = ("steal", history, "--by", "thread", "--format")
    for pane, command in ((":Debian/151\n<Enter>", flow), ("B", steal)):
        for kind in ("text", "csv", "json"):
            out = os.path.join(folder, f"{command[0]}.{kind}")
            view(pane, ":export " + out)
            with open(out, encoding="utf-8") as f:
                wrote = f.read()
            text_ = run(*command, kind).stdout
            check(wrote == text_, f"the viewer exports the {kind} of the command {command[0]}")


def check_victim(history):
    """For a vCPU or thread, that is the victim, not its machine; the name in a row is accepted as a target."""
    for target, name in ("Debian/CPU0", "Debian/vCPU0"), ("Debian/151", "Debian/151 fibonacci"), ("Debian", "Debian"):
        for by in "machine", "thread":
            rows = table("steal", history, target, "--by", by)
            if target != "Debian" or by == "machine":
                check({row["victim"] for row in rows} == {name}, f"steal {target} by {by}: {rows[0]['victim']}")
                check(table("steal", history, name, "--by", by) == rows, "the name is accepted as a target")


def check_gap_times(history):
    """`explain --at` finds a gap by the time in the list of gaps, although its digits are truncated."""
    rows = table("gaps", history, "Debian/CPU0", "--top", "5")
    lines = run("gaps", history, "Debian/CPU0", "--top", "5").stdout.splitlines()[1:6]
    for row, line in zip(rows, lines):
        at = line.split()[0]
        text_ = run("explain", history, "Debian/CPU0", "--at", at).stdout
        check("PREEMPTED" in text_ and " ".join(line.split()[1:3]) in text_ and at in text_, f"gap at {at}: {text_.splitlines()[0]}")
        check(int(row["start"]) % 10**5 > 0, "which is truncated")
    check("PREEMPTED" not in run("explain", history, "Debian/CPU0", "--at", str(int(rows[0]["start"]) - 1)).stdout,
          "a time in ns is exact")
    for report in (("gaps", "--min", "13ms"), ("steal", "Debian/151", "--to", "1%")):
        command, *rest = report
        check(run(command, history, *rest).stdout.startswith("none\n"), f"no rows: {' '.join(report)}")
        check(json.loads(run(command, history, *rest, "--format", "json").stdout)["rows"] == [], "an empty list in json")
    text = run("gaps", history, "Debian/151", "--top", "1", "--all-culprits").stdout
    own = [line for line in text.splitlines() if "Debian/151 fibonacci" in line]
    check(len(own) == 2 and "hypervisor" in own[0] and own[1].startswith("2625 gaps"), f"gaps of one thread: it did not delay itself {own}")


with scratch() as folder:
    HISTORY = os.path.join(folder, "fibonacci.steal")
    run("index", TRACE, "-o", HISTORY)
    check(os.listdir(folder) == ["fibonacci.steal"], "index: one file and nothing else")
    check_info(HISTORY)
    check_sync(HISTORY)
    check_flow(HISTORY)
    check_states(HISTORY)
    check_status(HISTORY, folder)
    NAME = os.path.basename(HISTORY)
    for report in (["info", NAME], ["sync", NAME], ["gaps", NAME], ["steal", NAME, "--by", "thread"],
                   ["explain", NAME, "Debian/CPU0"], ["intervals", NAME, "/Host/CPUs/CPU1/Owner"],
                   ["flow", NAME, "Debian/151", "--intervals"], ["flow", NAME, "Debian/149", "--intervals"],
                   ["summary", NAME], ["threads", NAME, "Debian"], ["exits", NAME], ["exits", NAME, "--by", "thread"],
                   ["path", NAME, "Debian/151"], ["path", NAME, "Debian/151", "--intervals"], ["gaps", NAME, "--inside"],
                   ["export", "--targets"], ["fleet"], ["events", NAME, "--at", "50%"], ["diff", NAME + "@0%..50%", NAME + "@50%..100%", "--all"],
                   ["gaps", NAME, "--periodic"], ["gaps", NAME, "--all-culprits"], ["explain", NAME, "Debian/151"]):
        lines = on_terminal(*report, cwd=folder).splitlines()
        check(lines and max(map(len, lines)) <= 80, f"{report[0]}: the text fits 80 columns of a terminal")
    narrow, wide, piped = (f(HISTORY) for f in (lambda h: on_terminal("steal", h, "--by", "thread", "--top", "0"),
                                                lambda h: on_terminal("steal", h, "--by", "thread", "--top", "0", columns=200),
                                                lambda h: run("steal", h, "--by", "thread", "--top", "0").stdout))
    summary = on_terminal("summary", HISTORY).splitlines()
    summary = summary[[line.startswith("target ") for line in summary].index(True):]  # without the verdict
    check(any("Debian/149 beacon" in row and row.count("Debian") > 1 for row in summary), "a thread's own VM is named as the culprit")
    check(len(summary[0]) <= 80 and "host/216 burnP6" in summary[1] and "Debian/151 fibonacci" in summary[3],
          "a narrow summary has fewer columns and full names")
    check("~" in narrow and "~" not in wide and wide == piped, "a wider terminal shows more; a pipe everything")
    check_victim(HISTORY)
    check_gap_times(HISTORY)
    check_exports(HISTORY, folder)
