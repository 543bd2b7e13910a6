"""A VM inside a VM, end to end: the analysis finds the nesting, combines the clocks, and names the culprits of a thread of
the inner VM: in that VM, in the outer one, and on the host."""
import csv
import json
import os
import re
import subprocess

from e2e import BUILD, check, run, scratch, table

QUARTER = 300_000_000   # ns: after each, another task disturbs critical_task (scenario "nested" of the simulator)


def simulate(folder, *args):
    subprocess.run([os.path.join(BUILD, "stealscope-sim"), *args, "-o", folder], check=True, capture_output=True,
                   timeout=300)
    return folder


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def true_clock(folder, machine):
    with open(os.path.join(folder, "truth", "clocks.csv"), encoding="utf-8", newline="") as f:
        row = [r for r in csv.DictReader(f) if r["machine"] == machine][0]
    return lambda t: int(row["ref_host_ns"]) + ((t - int(row["ref_guest_ns"])) << 60) // ((1 << 60) + int(row["rate_2p60"]))


def check_clocks(traces, source):
    rows = {r["guest"]: r for r in table("sync", source)}
    for name in "Outer", "Inner":
        row = rows[name]
        off = int(row["ref_host_ns"]) - true_clock(traces, name)(int(row["ref_guest_ns"]))
        check(row["quality"] == "ACCURATE" and float(row["containment"]) == 1 and abs(off) <= int(row["error_start_ns"]),
              f"{source}: {name}'s clock is right to {off} ns, error bound {row['error_start_ns']} ns")
    check(int(rows["Inner"]["error_mid_ns"]) > int(rows["Outer"]["error_mid_ns"]), "the inner clock's error includes the outer's")


def check_info(history):
    parent = {vm["vm"]: vm["parent"] for vm in json.loads(run("info", history, "--format", "json").stdout)["vms"]}
    check(parent == {"Outer": "host", "Inner": "Outer"}, "info: the parent of each VM")
    text = run("info", history).stdout
    check(re.search(r"^Inner +0 .*Outer$", text, re.M) and
          re.search(r"^Outer +guest ", text, re.M), "info: the text, too")
    tid = [r for r in table("info", history) if r["vm"] == "Inner"][0]["host_tid"]
    values = {r["value"] for r in table("intervals", history, f"/Virtual Machines/Outer/Threads/{tid}/VM")}
    check(values - {""} == {"Inner/0"}, "Inner's vCPU is a thread of Outer")
    check([r["value"] for r in table("intervals", history, "/Virtual Machines/Inner/Parent")] == ["Outer"],
          "/Virtual Machines/Inner/Parent")


def check_culprits(history):
    """Checks the culprit of each quarter."""
    window = [["--from", f"+{i * QUARTER + 20_000_000}ns", "--to", f"+{(i + 1) * QUARTER - 20_000_000}ns"] for i in range(4)]
    for part, machine, name in (1, "Inner", "cc"), (2, "Outer", "make"), (3, "host", "burnP6"):
        rows = table("flow", history, "Inner/critical_task", *window[part])
        culprit = [r for r in rows if r["kind"] == "preempting"][0]
        check((culprit["machine"], culprit["name"]) == (machine, name) and 0.4 < float(culprit["share"]) < 0.6,
              f"quarter {part + 1}: {100 * float(culprit['share']):.1f} % went to {culprit['machine']}/{culprit['name']}")
    alone = table("flow", history, "Inner/critical_task", *window[0])[0]
    check(alone["kind"] == "running" and float(alone["share"]) > 0.95, "quarter 1: it is alone")
    gap = table("gaps", history, "Inner", *window[2], "--top", "1")[0]
    check((gap["culprit_machine"], gap["culprit_name"]) == ("Outer", "make"), "gaps: the longest of Inner's vCPU")
    text = " ".join(run("explain", history, "Inner/critical_task", *window[2]).stdout.split())
    check(re.search(r"Outer/\d+.* make", text), "explain: the competitor in Outer")
    stolen = {(r["victim"], r["culprit"]): int(r["ns"]) for r in table("steal", history, *window[3])}
    check(stolen["Inner", "host"] > QUARTER / 3 and stolen["Outer", "host"] > QUARTER / 3 and
          stolen["host", "Inner"] > QUARTER / 3, "steal: from Inner and Outer by the host, from the host by Inner")


def check_viewer(folder, history):
    """Goes from the vCPU of the inner VM to its thread in the outer one, and on to that one's culprit."""
    screen = os.path.join(folder, "screen")
    keys = write(os.path.join(folder, "keys"), f":+150ms\n/Inner/vCPU0\n<Enter>\n[\n:screen {screen}1\n"
                                               f":+1050ms\n>\n[\n:screen {screen}2\n")
    run("view", history, "--script", keys, "--size", "100x30", "--glyphs", "ascii")
    with open(screen + "1", encoding="utf-8") as f:
        text = f.read()
    lines = [line.strip() for line in text.splitlines()]
    inner = [i for i, line in enumerate(lines) if line.startswith("v Inner in Outer")]
    outer = [i for i, line in enumerate(lines) if line.startswith("v Outer ")]
    check(inner and outer and outer[0] < inner[0], "view: the inner VM's rows follow those of the outer one")
    check("Outer/105 CPU 0/KVM" in lines[-2], f"view: its host thread is Outer's: {lines[-2]}")
    with open(screen + "2", encoding="utf-8") as f:
        status = f.read().splitlines()[-2].strip()
    check(status.startswith("host/") and "burnP6" in status, f"view: whose culprit is the host's: {status}")


def check_session(folder, traces, found):
    base = f"host: {{dir: {traces}/host}}\nguests:\n  - {{name: Outer, dir: {traces}/guest-Outer}}\n"
    inner = f"  - {{name: Inner, dir: {traces}/guest-Inner, parent: PARENT}}\n"
    path = write(os.path.join(folder, "nested.yaml"), base + inner.replace("PARENT", "Outer"))
    check(table("sync", path) == found, "a session that names the parent: the same clocks")
    moved = {}
    for name in "Outer", "Inner":
        path = write(os.path.join(folder, "nudge.yaml"),
                     (base + inner.replace("PARENT", "Outer")).replace(f"{{name: {name},", f"{{name: {name}, nudge: 80ms,"))
        moved[name] = [int(a["ref_host_ns"]) - int(b["ref_host_ns"]) for a, b in zip(table("sync", path), found)]
    check(moved == {"Outer": [80_000_000] * 2, "Inner": [0, 80_000_000]}, "a manual offset moves inner clocks, too, to the ns")
    path = write(os.path.join(folder, "vcpus.yaml"), base + inner.replace("PARENT", "Outer, vcpus: {0: 105}"))
    p = run("index", path, "-o", os.path.join(folder, "vcpus.steal"))
    check(re.search(r"\bInner\b.*\bOuter\b", p.stderr), "a note contains the nesting")
    check("session" in run("info", os.path.join(folder, "vcpus.steal")).stdout, "TIDs in a session are the parent's")
    path = write(os.path.join(folder, "untraced.yaml"), base + "  - {name: web, parent: Outer, vcpus: {0: 105}}\n")
    run("index", path, "-o", os.path.join(folder, "untraced.steal"))
    rows = [(r["vm"], r["host_tid"]) for r in table("info", os.path.join(folder, "untraced.steal"))]
    check(("web", "105") in rows, "an untraced inner VM has a name, too")
    for wrong in "Nobody", "Inner":
        path = write(os.path.join(folder, "wrong.yaml"), base + inner.replace("PARENT", wrong))
        p = run("sync", path, status=2)
        check("Inner" in p.stderr and wrong in p.stderr and p.stderr.count("\n") == 1, f"refused: {p.stderr.strip()}")


def check_two_hosts(folder):
    """Two hosts, given by mistake, are no guests of each other."""
    for name, scenario in ("a", "pulse"), ("b", "fibonacci"):
        simulate(os.path.join(folder, name), scenario, "--duration", "500ms")
    p = run("sync", os.path.join(folder, "a"), os.path.join(folder, "b"), status=2)
    check(p.stderr.startswith("stealscope: ") and ": two hosts: " in p.stderr, f"refused: {p.stderr.strip()}")


def main():
    with scratch() as folder:
        traces = simulate(os.path.join(folder, "traces"), "nested", "--duration", f"{4 * QUARTER}ns")
        history = os.path.join(folder, "nested.steal")
        check_clocks(traces, traces)
        check(re.search(r"\bInner\b.*\bOuter\b", run("index", traces, "-o", history).stderr), "a note contains the nesting")
        check_info(history)
        check_culprits(history)
        check_viewer(folder, history)
        check_session(folder, traces, table("sync", traces))
        check_two_hosts(folder)


main()
