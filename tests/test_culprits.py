"""Lost time and the first three culprits of every recording with truth: against the kernel's own schedstat, and against
an independent count of the owners of the pCPU (expected.json).  Every culprit had the pCPU."""
import json
import os
import re

from e2e import check, recording, recording_names, run, scratch, table

ALL = ("--top", "0", "--all-culprits")
NO_LIMIT = ("throttled", "migrate", "pause")  # a limit keeps their vCPUs off the CPU, not (only) the scheduler


def spans(history, attribute, values, window):
    rows = table("intervals", history, attribute, "--from", str(window[0]), "--to", str(window[1]))
    return [(int(row["start"]), int(row["end"])) for row in rows if row["value"] in values]


def length(of):
    return sum(end - start + 1 for start, end in of)


def both(a, b):
    """ns in which intervals of two sorted lists overlap."""
    ns, i, k = 0, 0, 0
    while i < len(a) and k < len(b):
        ns += max(0, min(a[i][1], b[k][1]) - max(a[i][0], b[k][0]) + 1)
        if a[i][1] < b[k][1]:
            i += 1
        else:
            k += 1
    return ns


def run_delay(name, history, truth, offset):
    """What the host's kernel says that the vCPU's thread waited for a CPU is what its vCPU lost, but for the time in which
    its guest was idle and it waited nevertheless, and for wakeups on an idle CPU and handlers of interrupts, of which the
    kernel counts a part."""
    first, last = history_span(history)
    for vm, about in truth["vms"].items():
        for cpu, vcpu in about["vcpus"].items():
            at = {s["when"]: s for s in truth.get("schedstat", []) if s["tid"] == vcpu["tid"] and s["vm"] == vm}
            if len(at) != 2:
                continue
            window = max(at["start"]["mono_ns"] + offset, first), min(at["stop"]["mono_ns"] + offset, last)
            status = f"/Virtual Machines/{vm}/CPUs/CPU{cpu}/Status"
            lost = length(spans(history, status, {"PREEMPTED", "WAKING", "HOST_BLOCKED"}, window))
            unknown = length(spans(history, status, {"UNKNOWN"}, window))
            idle = unknown + sum(
                int(row["culprit_ns"]) for row in table("gaps", history, f"{vm}/CPU{cpu}", *ALL, "--from", str(window[0]),
                                                        "--to", str(window[1])) if not row["culprit_tid"])
            queued = both(spans(history, f"/Host/Threads/{vcpu['tid']}/Status", {"PREEMPTED"}, window),
                          spans(history, status, {"IDLE", "UNKNOWN"}, window))
            delay = at["stop"]["wait_ns"] - at["start"]["wait_ns"]
            some = 0.02 * delay + 4_000_000
            check(lost - idle - some <= delay <= lost + queued + unknown + some, f"{name}: {vm}/CPU{cpu} lost {lost / 1e6:.1f} ms, "
                  f"{queued / 1e6:.1f} more were nobody's loss: its run delay was {delay / 1e6:.1f} ms")


def history_span(history):
    info = json.loads(run("info", history, "--format", "json").stdout)
    return info["begin"], info["end"]


def culprits(history, subject):
    """ns by (machine, tid, name), of all gaps."""
    ns = {}
    for row in table("gaps", history, subject, *ALL):
        key = (row["culprit_machine"], row["culprit_tid"], row["culprit_name"])
        ns[key] = ns.get(key, 0) + int(row["culprit_ns"])
    return sorted(ns.items(), key=lambda item: -item[1])


def first_three(name, history, folder):
    path = os.path.join(folder, "expected.json")
    if not os.path.exists(path):
        return
    by_phase = json.load(open(path, encoding="utf-8")).get("vcpu_by_phase", {})
    for subject in sorted({phase.rsplit(" ", 1)[0] for phase in by_phase}):
        had, out = set(), 0.0
        for phase, about in by_phase.items():
            if phase.rsplit(" ", 1)[0] == subject:
                had |= {who.rsplit("/", 1)[1] for who in about["cpu_meanwhile"]}
                out += about["runnable_or_woken_but_out_ms"]
        told = culprits(history, subject.replace("vCPU", "CPU"))[:3]
        for (system, tid, who), ns in told:
            if system == "host" and tid and ns > 0.05e6 * out:
                check(tid in had, f"{name}: {subject} lost {ns / 1e6:.1f} ms to host/{tid} {who}, who was on its pCPU")


def hogs(name, history, truth):
    """The hog that takes most from a vCPU is its main culprit."""
    pids = {str(hog["pid"]) for hog in truth["hogs"]}
    for row in table("summary", history, "--top", "0"):
        if not pids or row["tid"] or row["machine"] == "host" or int(row["lost_ns"]) < 1_000_000_000:
            continue
        culprit = re.match(r"host/(\d+)", row["culprit"])
        several = row["culprit"] == "host" and len(pids) > 1  # none of them has more than half
        check(several or (culprit and culprit.group(1) in pids), f"{name}: {row['machine']} lost most to {row['culprit']}")


with scratch() as tmp:
    for name in recording_names():
        folder, history = recording(name), tmp + "/history.steal"
        truth = json.load(open(f"{folder}/truth.json", encoding="utf-8"))
        if "traces" not in truth:
            continue  # no KVM host
        run("index", folder, "-o", history)
        if name not in NO_LIMIT:
            run_delay(name, history, truth, truth["traces"]["host"]["clock_offset_ns"])
            hogs(name, history, truth)
        first_three(name, history, folder)
