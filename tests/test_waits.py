"""`stealscope waits`: the wakers of idle vCPUs account for all their sleep, with or without the guest's trace."""
import os
import re

from e2e import DATA, SHARED, check, run, scratch, table


def intervals(history, path):
    return [(int(r["start"]), int(r["end"]), r["value"]) for r in table("intervals", history, path)]


def asleep(history, tid):
    """ns in which the vCPU is IDLE and its thread BLOCKED."""
    idle = [i for i in intervals(history, "/Virtual Machines/Debian/CPUs/CPU0/Status") if i[2] == "IDLE"]
    blocked = [i for i in intervals(history, f"/Host/Threads/{tid}/Status") if i[2] == "BLOCKED"]
    return sum(max(0, min(a[1], b[1]) - max(a[0], b[0]) + 1) for a in idle for b in blocked)


with scratch() as folder:
    history, alone = f"{folder}/fibonacci.steal", f"{folder}/host.steal"
    run("index", f"{DATA}/fibonacci", "-o", history)
    tid = table("info", history)[0]["host_tid"]
    rows = table("waits", history)
    check({(r["machine"], r["vcpu"]) for r in rows} == {("Debian", "0")} and
          abs(sum(float(r["share"]) for r in rows) - 1) < 1e-6, "of one vCPU")
    check(sum(int(r["total_ns"]) for r in rows) == asleep(history, tid), "all its sleeps, to the ns")
    most = max(rows, key=lambda r: int(r["total_ns"]))
    check((most["waits_for"], most["by_name"], most["by_tid"]) == ("timer", "timer", ""), f"mostly for timers: {most['share']}")

    # The flow of the vCPU and explain have the same wakers.
    flow = {(r["machine"], r["tid"], r["name"]): int(r["duration_ns"]) for r in table("flow", history, "Debian/CPU0")
            if r["kind"] == "waiting" and r["machine"]}
    sleeps = {}
    for r in rows:
        if r["by_machine"]:
            key = (r["by_machine"], r["by_tid"], r["by_name"])
            sleeps[key] = sleeps.get(key, 0) + int(r["total_ns"])
    check(flow == sleeps and len(flow) >= 2, f"the flow of the vCPU waits for the same {len(flow)}")
    text = " ".join(run("explain", history, "Debian/CPU0").stdout.split())
    check(re.search(r"On its host it slept for [0-9.]+ s: 95\.5 % for a timer \(84 times\); [0-9.]+ % for a device, "
                    r"woken by host/151 qemu:Debian \(5 times\)", text), "and in words")

    run("index", "--host", f"{DATA}/fibonacci/host", "-o", alone)
    machine = table("info", alone)[0]["vm"]
    by_host = table("waits", alone, machine)
    check(by_host and max(by_host, key=lambda r: int(r["total_ns"]))["waits_for"] == "timer", "the host alone tells it, too")

    run("waits", history, "Debian/151", status=1)
    guest = f"{folder}/guest.steal"
    run("index", "--guest", f"Debian={DATA}/fibonacci/guest-Debian", "-o", guest)
    p = run("waits", guest, "--format", "csv")
    check(p.stdout.count("\n") == 1 and "no idle vCPU was recorded" in p.stderr and "sched_waking" in p.stderr, "without the host: a note")

    # Two recordings of one load, by two tracers: the true wakers are known from the guests.
    for name, host in (("hostonly", "host"), ("hostonly_tc", "host.dat")):
        trace = os.path.join(SHARED, name, host)
        if not os.path.exists(trace):
            continue
        history = f"{folder}/{name}.steal"
        run("index", "--host", trace, "-o", history)
        rows = [r for r in table("waits", history) if int(r["total_ns"]) >= 20_000_000]
        kinds = {(r["waits_for"], r["by_name"]) for r in rows}
        check(("device", "IO io0") in kinds and ("ipi", "CPU 0/KVM") in kinds and ("ipi", "CPU 1/KVM") in kinds and
              ("timer", "timer") in kinds, f"{name}: the disk's thread, siblings, timers")
        check(all(k in {"timer", "ipi", "device", "unknown"} for k, _ in kinds), f"{name}: and nothing that was not there")

    # The monitor stops the VM twice, the second time while the guest sleeps, from the kick until it runs again: no wait for
    # a device.  The same thread ended two other sleeps that are.
    trace = os.path.join(SHARED, "pause")
    if os.path.isdir(trace):
        history = f"{folder}/pause.steal"
        run("index", trace, "-o", history)
        stopped = [r for r in table("waits", history) if r["waits_for"] == "stopped"]
        device = [r for r in table("waits", history) if r["waits_for"] == "device"]
        out = sum(end - start + 1 for start, end, value in intervals(history, "/Virtual Machines/Debian/CPUs/CPU0/Out By")
                  if value == "pause" and start > 1795302975 * 10**9)
        check([(r["by_name"], r["count"]) for r in stopped] == [("qemu:Debian", "7")] and
              out - 2_000_000 < int(stopped[0]["total_ns"]) < out + 1_000_000, f"a stopped machine: {stopped}, out for {out}")
        check([(r["by_name"], r["count"]) for r in device] == [("qemu:Debian", "2")], f"and its devices: {device}")
        check("% while the VM was stopped, woken by host/151 qemu:Debian (7 times)" in
              " ".join(run("explain", history, "Debian/CPU0").stdout.split()), "and in words")
