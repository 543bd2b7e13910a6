"""`stealscope path` on recordings with known waits, from the workloads' own logs.  For each wait the test computes the time
that the host's hog took on the way to the awaited thread, from the logs and the current threads of the CPUs alone,
without walking from waker to waker as the program does."""
import bisect
import json
import os
import re
import sys

from e2e import check, is_sanitized, recording, recording_names, run, scratch, table

TOLERANCE, TOLERANCE_NS = 0.05, 250_000  # tolerated error: share, or ns: the distance of the truth's own events


class Facts:
    """The attributes of a history, as lists of (start, end, value)."""

    def __init__(self, history):
        self.history, self.known = history, {}

    def row(self, name):
        if name not in self.known:
            self.known[name] = [(int(r["start"]), int(r["end"]), r["value"]) for r in table("intervals", self.history, name)]
        return self.known[name]

    def where(self, name, *values):
        return [(a, b) for a, b, value in self.row(name) if value in values]

    def sleeps(self, thread):
        """Yields (start, time of the waking, end) of each sleep: the thread may react later."""
        woken = [start for start, _, by in self.row(thread + "/Woken By") if by]
        for start, end in self.where(thread + "/Status", "BLOCKED"):
            yield start, min(woken[bisect.bisect(woken, start):][:1] + [end + 1]), end

    def asleep(self, thread):
        return [(start, woken - 1) for start, woken, _ in self.sleeps(thread) if start < woken]

    def woken_late(self, thread):
        return [(woken, end) for _, woken, end in self.sleeps(thread) if woken <= end]

    def waits(self, thread):
        """Returns its waits for a CPU, from the waking on: the CPU may react later."""
        return sorted(self.where(thread + "/Status", "PREEMPTED") + self.woken_late(thread))

    def by_hog(self, tid, hogs):
        """Returns the waits of a host thread for a CPU that one of the hogs had, without interrupts."""
        taken, waits = [], self.waits(f"/Host/Threads/{tid}")
        for cpu in ("0", "1"):
            has = both(self.where(f"/Host/CPUs/CPU{cpu}/Current Thread", *map(str, hogs)),
                       self.where(f"/Host/CPUs/CPU{cpu}/Interrupt", ""))
            taken += both(both(waits, self.where(f"/Host/Threads/{tid}/CPU", cpu)), has)
        return sorted(taken)


def both(a, b):
    """Returns the intersection of two sorted lists of intervals."""
    out, k = [], 0
    for start, end in a:
        while k and b[k - 1][1] >= start:
            k -= 1
        while k < len(b) and b[k][0] <= end:
            if b[k][1] >= start:
                out.append((max(start, b[k][0]), min(end, b[k][1])))
            k += 1
        k = max(0, k - 1)
    return out


def union(intervals):
    out = []
    for start, end in sorted(intervals):
        if out and start <= out[-1][1] + 1:
            out[-1] = out[-1][0], max(end, out[-1][1])
        else:
            out.append((start, end))
    return out


def without(window, holes):
    out, at = [], window[0]
    for start, end in both([window], holes):
        out, at = out + [(at, start - 1)], end + 1
    return [i for i in out + [(at, window[1])] if i[0] <= i[1]]


def length(intervals):
    return sum(end - start + 1 for start, end in intervals)


def read(folder, *path):
    with open(os.path.join(folder, *path), encoding="utf-8", errors="replace") as f:
        return f.read()


def lock_waits(folder, facts, vcpu, hogs, offset):
    """The holder's waits count until the waiter's own vCPU learns of the wakeup, then its own.  A waiter that never slept has no
    known holder."""
    on = {}
    for first, second in re.findall(r"^lockset .*tid0=(\d+) .*tid1=(\d+)", read(folder, "guest-Debian", "locks.txt"), re.M):
        on.update({int(first): 0, int(second): 1})
    taken = {n: facts.by_hog(vcpu["Debian", n]["tid"], hogs) for n in (0, 1)}
    halted = {n: facts.asleep(f"/Host/Threads/{vcpu['Debian', n]['tid']}") for n in (0, 1)}
    for wait in json.loads(read(folder, "expected_waits.json")):
        window = wait["host_begin_ns"] + offset, wait["host_end_ns"] + offset
        if wait["mode"] == "spin":
            continue
        own, sleeps = on[wait["waiter"]], facts.sleeps(f"/Virtual Machines/Debian/Threads/{wait['waiter']}")
        slept = [(start, wakeup_received(woken, halted[own])) for start, woken, _ in sleeps]
        asleep = both([window], [i for i in slept if i[0] <= i[1]])
        ns = length(both(asleep, taken[on[wait["holder"]]])) + length(both(without(window, asleep), taken[own]))
        yield f"Debian/{wait['waiter']}", window, ns, {("Debian", str(wait["holder"]))} if asleep else set()


def wakeup_received(woken, halted):
    """Returns the time at which the vCPU learns of a wakeup: if halted, when the waker, which may be preempted, sends an
    IPI."""
    return next((end for start, end in halted if start <= woken <= end), woken - 1)


def pair_waits(folder, facts, vcpu, hogs, offset):
    """From the arrival of the request, and the client's sleep, the server's waits count until its answer leaves the VM; then
    those of its vhost thread."""
    server, client = vcpu["Ubuntu", 0], re.search(r"^cli pid=(\d+)", read(folder, "guest-Debian", "cli.txt"), re.M)[1]
    worker = re.search(r"^srv pid=(\d+)", read(folder, "guest-Ubuntu", "srv.txt"), re.M)[1]
    vhost = next(r["tid"] for r in table("threads", facts.history, "host") if r["name"] == f"vhost-{server['qemu_pid']}")
    delivered = [end for _, end in facts.where(f"/Host/Threads/{vhost}/Status", "RUNNING")]
    kicks = [a for a, _, by in facts.row(f"/Host/Threads/{vhost}/Woken By") if by == f"host/{server['tid']}"]
    slept = [a for a, _ in facts.where(f"/Virtual Machines/Debian/Threads/{client}/Status", "BLOCKED")]
    taken, late = facts.by_hog(server["tid"], hogs), facts.by_hog(vhost, hogs)
    for request in json.loads(read(folder, "expected_requests.json")):
        start = request["host_begin_ns"] + offset
        end, received = start + request["rtt_ns"], start + request["request_way_ns"]
        came = max([start] + delivered[bisect.bisect(delivered, start):bisect.bisect(delivered, received)])
        left = min(kicks[bisect.bisect(kicks, received + request["server_ns"] - 20_000):][:1] + [end])
        passed = min(delivered[bisect.bisect(delivered, left):][:1] + [end])
        window = max([came] + slept[bisect.bisect(slept, start):][:1]), left
        yield (f"Debian/{client}", (start, end), length(both([window], taken)) + length(both([(left, passed)], late)),
               {("Ubuntu", worker)})


def disk_waits(folder, facts, vcpu, hogs, offset):
    """While the thread sleeps, until they wake its halted vCPU, the waits of QEMU's disk threads count; not those before it
    slept."""
    serve = [r["tid"] for r in table("threads", facts.history, "host") if r["name"] in ("IO io0", "worker")]
    taken = union(i for tid in serve for i in facts.by_hog(tid, hogs))
    ran = union(i for tid in serve for i in facts.where(f"/Host/Threads/{tid}/Status", "RUNNING"))
    wakes = [t for t, _, by in facts.row(f"/Host/Threads/{vcpu['Debian', 0]['tid']}/Woken By") if by[5:] in serve]
    tids = [pid for pid, _ in re.findall(r"^io pid=(\d+) op=(.)", read(folder, "guest-Debian", "io.txt"), re.M)]
    for tid, io in zip(tids, json.loads(read(folder, "expected_ios.json"))):
        window = io["host_begin_ns"] + offset, io["host_end_ns"] + offset
        asleep = both([window], facts.asleep(f"/Virtual Machines/Debian/Threads/{tid}"))
        woken = [t for t in wakes if asleep and asleep[0][0] <= t <= asleep[-1][1]]
        asleep = both(asleep, [(0, woken[-1] if woken else window[1])])
        yield f"Debian/{tid}", window, length(both(asleep, taken)), {("host", t) for t in serve} if both(asleep, ran) else set()


def judge(name, folder, of):
    truth = json.loads(read(folder, "truth.json"))
    offset = truth["traces"]["host"]["clock_offset_ns"]
    hogs = {hog["pid"] for hog in truth["hogs"]} | {t["pid"] for t in truth["tasks"] if t["where"] == "host"}
    vcpu = {(vm, int(n)): {**c, "qemu_pid": m["qemu_pid"]} for vm, m in truth["vms"].items() for n, c in m["vcpus"].items()}
    with scratch() as scratched:
        history = os.path.join(scratched, "history")
        run("index", folder, "-o", history)
        waits = list(of(folder, Facts(history), vcpu, hogs, offset))
        right = through = unknown = total = 0
        for target, (start, end), ns, cause in waits:
            path = table("path", history, target, "--from", str(start), "--to", str(end))
            reported = sum(int(p["duration_ns"]) for p in path if p["culprit_machine"] == "host" and int(p["culprit_tid"] or 0) in hogs)
            right += abs(reported - ns) <= max(TOLERANCE_NS, TOLERANCE * ns)
            through += any((p["machine"], p["tid"]) in cause for p in path)
            unknown += sum(int(p["duration_ns"]) for p in path if p["kind"] == "unknown")
            total += end - start + 1
    awaited = sum(bool(cause) for *_, cause in waits)
    check(right >= 0.98 * len(waits) > 0, f"{name}: the hog's time is right in {right} of {len(waits)} waits")
    check(through >= 0.98 * awaited > 0, f"{name}: the awaited thread is on {through} of {awaited} paths")
    check(unknown <= 0.01 * total, f"{name}: {100 * unknown / total:.2f} % of {total / 1e6:.0f} ms are unknown")


RECORDINGS = {"disk": disk_waits, "lockholder": lock_waits, "lockholder_tc": lock_waits, "pair": pair_waits}
there = [name for name in RECORDINGS if name in recording_names()]
if not there or is_sanitized():
    sys.exit(77)
for one in there:
    judge(one, recording(one), RECORDINGS[one])
