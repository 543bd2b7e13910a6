"""Hardware counters: instructions per cycle of threads and vCPUs, alone on their core and beside each sharer, as by the
truth of simulated hosts with slow siblings; unknown instead of wrong where counters fail and events are lost."""
import collections
import csv
import json
import os
import re
import shutil
import subprocess

import schema
from e2e import BUILD, check, codes, is_brief, run, scratch, seeds

SLOWDOWN = 60  # percent


def simulate(folder, seed, *more, siblings=2):
    subprocess.run([os.path.join(BUILD, "stealscope-sim"), "random", "--seed", str(seed), "--siblings", str(siblings),
                    "--slowdown", str(SLOWDOWN), "--counters", "--perfect-clocks", "--duration", "500ms", *more,
                    "-o", folder], check=True, capture_output=True)
    run("index", folder, "--sync", "none", "-o", f"{folder}/h.steal")
    return f"{folder}/h.steal"


def read_csv(path):
    with open(path, encoding="utf-8") as f:
        return list(csv.DictReader(f))


def truth_of(folder):
    """Returns {TID: [(cpu, start, end, kHz, IPC of 1000, shared)]} and {(VM, vCPU): TID} of the vCPUs of the host."""
    parts = collections.defaultdict(list)
    for row in read_csv(f"{folder}/truth/progress.csv"):
        parts[int(row["tid"])].append(tuple(int(row[k]) for k in ("cpu", "start", "end", "khz", "ipc", "shared")))
    vcpus = {(r["vm"], int(r["vcpu"])): int(r["host_tid"]) for r in read_csv(f"{folder}/truth/vcpus.csv")
             if r["parent"] == "host"}
    return parts, vcpus


def rows_of(history, command, *more):
    return schema.check_answer(run(command, history, *more, "--format", "json", "--limit", "0").stdout)


def target_tid(text, vcpus):
    vcpu = re.fullmatch(r"(.+)/vCPU(\d+)", text)
    if vcpu:
        return vcpus.get((vcpu[1], int(vcpu[2])))
    thread = re.match(r"host/(\d+)( |$)", text)
    return int(thread[1]) if thread else None


def counts(parts, low=0, high=1 << 62):
    """Returns the sums of time, instructions and cycles of a thread, as by the truth."""
    ns = instructions = cycles = 0
    for _, start, end, khz, ipc, _ in parts:
        part = min(end, high) - max(start, low) + 1
        if part > 0:
            ns += part
            cycles += part * khz
            instructions += part * khz * ipc
    return ns, instructions / 1e9, cycles / 1e6


def is_near(value, want, tolerance):
    return abs(value - want) <= tolerance * want


def check_totals(history, parts, vcpus):
    """All time of a thread between the first and last switch of a CPU is counted; each count is rounded down to an integer."""
    compared = 0
    seen = [p for of in parts.values() for p in of]
    for row in rows_of(history, "threads"):
        if row["machine"] != "host" or row["tid"] not in parts or row["counted_ns"] == 0:
            continue
        own = parts[row["tid"]]
        ns, instructions, cycles = counts(own)
        check(row["counted_ns"] <= ns, f"host/{row['tid']}: {row['counted_ns']} ns counted of {ns}")
        if row["counted_ns"] < ns:  # begins before the first switch of a CPU, or ends after the last one
            continue
        check(abs(row["instructions"] - instructions) <= 2 * len(own) and abs(row["cycles"] - cycles) <= 2 * len(own),
              f"host/{row['tid']}: {row['instructions']} in {row['cycles']} cycles; by the truth {instructions:.0f} in "
              f"{cycles:.0f}")
        check(is_near(row["ipc"], instructions / cycles, 1e-4), f"IPC {row['ipc']}")
        compared += 1
    return compared, len(seen)


def check_cores(history, parts, vcpus, exact=True):
    """The IPC alone and beside sharers. Returns the numbers of values of both kinds."""
    found = collections.Counter()
    for row in rows_of(history, "steal", "--by", "core"):
        tid = target_tid(row["target"], vcpus)
        if row["ipc"] is None or tid not in parts or re.match(r"host (timer|softirq|irq)", row["sharer"] or ""):
            continue  # handlers on an idle CPU slow nothing down in the simulation
        low, high = (min((p[4] for p in parts[tid] if p[5] == s), default=None) for s in (1, 0))
        want = {"shared": low, "alone": high}[row["kind"]]
        check(want is not None and is_near(row["ipc"] * 1000, want, 0.03) or not exact and row["counted_ns"] < 10000,
              f"{row['target']} {row['kind']} {row['sharer']}: IPC {row['ipc']}, as by the truth {want}")
        found[row["kind"]] += 1
    return found


def check_faults(history, parts, vcpus, name):
    """Where counters fail or events are lost, counts are missing, but none is wrong."""
    for row in rows_of(history, "threads"):
        if row["machine"] != "host" or row["tid"] not in parts or row["ipc"] is None:
            continue
        ns, instructions, cycles = counts(parts[row["tid"]])
        ipc = [p[4] / 1000 for p in parts[row["tid"]]]
        check(row["counted_ns"] <= ns and row["instructions"] <= instructions + 1 and row["cycles"] <= cycles + 1 and
              min(ipc) * 0.99 <= row["ipc"] + 1e-4 and row["ipc"] <= max(ipc) * 1.01 + 1e-4,
              f"{name}: host/{row['tid']}: IPC {row['ipc']} of {row['counted_ns']} ns, by the truth {min(ipc)} to {max(ipc)}")
    check_cores(history, parts, vcpus, False)


def counted(history):
    return sum(r["counted_ns"] for r in rows_of(history, "summary", "--top", "0") if r["tid"] is None)


def check_window(history, parts, vcpus):
    """A window contains the counts of its part of each interval."""
    document = json.loads(run("steal", history, "--by", "core", "--from", "30%", "--to", "70%", "--format", "json",
                              "--limit", "0").stdout)
    low, high = document["window"]["start"], document["window"]["end"]
    inside = rows_of(history, "threads", "--from", "30%", "--to", "70%")
    check(inside and all(r["counted_ns"] <= high - low + 1 for r in inside), "no more than the window")
    compared = 0
    for row in inside:
        if row["machine"] != "host" or row["tid"] not in parts or not row["counted_ns"]:
            continue
        ns, instructions, cycles = counts(parts[row["tid"]], low, high)
        check(row["counted_ns"] <= ns, "nor than the thread ran in it")
        if row["counted_ns"] == ns and ns > 5000000:
            check(is_near(row["ipc"], instructions / cycles, 0.2), f"host/{row['tid']}: IPC {row['ipc']} in the window")
            compared += 1
    return compared


def check_explain(history, parts, vcpus):
    best = max((r for r in rows_of(history, "steal", "--by", "core") if r["kind"] == "shared" and r["ipc"] is not None and
                "vCPU" in r["target"]), key=lambda r: r["counted_ns"])
    text = " ".join(run("explain", history, best["target"].replace("vCPU", "CPU")).stdout.split())
    check(re.search(rf"It executed \d\.\d\d instructions per cycle: .*{best['ipc']:.2f} beside ", text),
          f"explain: {best['ipc']:.2f} beside {best['sharer']}")


def check_plain(folder, history):
    """Without counters: no column, no attribute, and no other figure changes."""
    plain = f"{folder}/plain"
    shutil.copytree(folder, plain, ignore=shutil.ignore_patterns("*.steal", "plain"))
    layout = f"{folder}/layout.yaml"
    with open(os.path.join(os.path.dirname(__file__), "..", "src", "trace", "layouts", "lttng.yaml"), encoding="utf-8") as f:
        text = re.sub(r"  - kind: cpu_counters\n(?:    .*\n)+", "", f.read())
    check("cpu_counters" not in text, "a layout without counters")
    with open(layout, "w", encoding="utf-8") as f:
        f.write(text)
    run("index", plain, "--sync", "none", "--layout", layout, "-o", f"{plain}/h.steal")
    for command in (["summary"], ["threads"], ["steal", "--by", "core"], ["gaps"]):
        ours, others = (rows_of(h, *command) for h in (history, f"{plain}/h.steal"))
        check(others and [{k: r[k] for k in others[0]} for r in ours] == others, f"{command[0]}: no other figure changes")
    check("ipc" not in rows_of(f"{plain}/h.steal", "summary")[0], "and no column without counters")


with scratch() as scratch_folder:
    found, compared = collections.Counter(), 0
    for seed in (1, 3) if is_brief() else (1, 3, *seeds(1, 1)):
        of = f"{scratch_folder}/{seed}"
        h = simulate(of, seed)
        truth, ran_by = truth_of(of)
        compared += check_totals(h, truth, ran_by)[0]
        found += check_cores(h, truth, ran_by)
        compared += check_window(h, truth, ran_by)
    check(compared > 5 and found["alone"] > 3 and found["shared"] > 10, f"{compared} totals, {dict(found)}")
    first = f"{scratch_folder}/1"
    truth, ran_by = truth_of(first)
    check_explain(f"{first}/h.steal", truth, ran_by)
    check_plain(first, f"{first}/h.steal")
    ran = sum(counts(own)[0] for own in truth.values())
    check(counted(f"{first}/h.steal") > 0.97 * ran, f"counted {counted(f'{first}/h.steal')} of {ran} ns")
    for case, option in (("faults", ("--counter-faults", "20000")), ("losses", ("--lost", "0.3"))):
        of = f"{scratch_folder}/{case}"
        h = simulate(of, 1, *option)
        truth, ran_by = truth_of(of)
        ran = sum(counts(own)[0] for own in truth.values())
        check_faults(h, truth, ran_by, case)
        check(("counters-unknown" in codes("summary", h)) == (case == "faults"), f"{case}: the note on counters")
        check(0 < counted(h) < 0.97 * ran, f"{case}: {counted(h)} of {ran} ns counted")
