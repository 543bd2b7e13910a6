"""`stealscope path` on recordings whose waits are known from the workloads' own logs: of each wait the host's hog has, on
the way to whoever was waited for, what a count tells that goes by the logs and by who was on which CPU, not by wakers."""
import bisect
import json
import os
import re
import sys

from e2e import SHARED, check, is_sanitized, run, scratch, table

SURE, NEAR = 0.05, 250_000  # an answer may be off by that share, or ns: the truth's own events are that far apart


class Facts:
    """The rows of a history, as lists of (start, end, value)."""

    def __init__(self, history):
        self.history, self.known = history, {}

    def row(self, name):
        if name not in self.known:
            self.known[name] = [(int(r["start"]), int(r["end"]), r["value"]) for r in table("intervals", self.history, name)]
        return self.known[name]

    def where(self, name, *values):
        return [(a, b) for a, b, value in self.row(name) if value in values]

    def asleep(self, thread):
        """Its sleeps, each until somebody woke it: that it may notice later."""
        woken = [start for start, _, by in self.row(thread + "/Woken By") if by]
        for start, end in self.where(thread + "/Status", "BLOCKED"):
            yield start, min(woken[bisect.bisect(woken, start):][:1] + [end + 1]) - 1

    def by_hog(self, tid, cpu, hogs):
        """When a thread of the host waited for a CPU that one of the hogs had, with no interrupt."""
        has = self.where(f"/Host/CPUs/CPU{cpu}/Current Thread", *map(str, hogs))
        return both(both(self.where(f"/Host/Threads/{tid}/Status", "PREEMPTED"), has),
                    self.where(f"/Host/CPUs/CPU{cpu}/Interrupt", ""))


def both(a, b):
    """What two sorted lists of intervals have in common."""
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
    """While it slept the holder's vCPU counts, else its own."""
    on = {}
    for first, second in re.findall(r"^lockset .*tid0=(\d+) .*tid1=(\d+)", read(folder, "guest-Debian", "locks.txt"), re.M):
        on.update({int(first): 0, int(second): 1})
    taken = {n: facts.by_hog(vcpu["Debian", n]["tid"], n, hogs) for n in (0, 1)}
    for wait in json.loads(read(folder, "expected_waits.json")):
        window = wait["host_begin_ns"] + offset, wait["host_end_ns"] + offset
        if wait["mode"] == "spin":
            continue
        asleep = both([window], list(facts.asleep(f"/Virtual Machines/Debian/Threads/{wait['waiter']}")))
        ns = length(both(asleep, taken[on[wait["holder"]]])) + length(both(without(window, asleep), taken[on[wait["waiter"]]]))
        yield f"Debian/{wait['waiter']}", window, ns, ("Debian", str(wait["holder"]))


def pair_waits(folder, facts, vcpu, hogs, offset):
    """From when the request had come, and the client slept, until the server's answer left its VM."""
    server, client = vcpu["Ubuntu", 0], re.search(r"^cli pid=(\d+)", read(folder, "guest-Debian", "cli.txt"), re.M)[1]
    worker = re.search(r"^srv pid=(\d+)", read(folder, "guest-Ubuntu", "srv.txt"), re.M)[1]
    vhost = next(r["tid"] for r in table("threads", facts.history, "host") if r["name"] == f"vhost-{server['qemu_pid']}")
    delivered = [end for _, end in facts.where(f"/Host/Threads/{vhost}/Status", "RUNNING")]
    kicks = [a for a, _, by in facts.row(f"/Host/Threads/{vhost}/Woken By") if by == f"host/{server['tid']}"]
    slept = [a for a, _ in facts.where(f"/Virtual Machines/Debian/Threads/{client}/Status", "BLOCKED")]
    taken = facts.by_hog(server["tid"], server["cpus"], hogs)
    for request in json.loads(read(folder, "expected_requests.json")):
        start = request["host_begin_ns"] + offset
        end, received = start + request["rtt_ns"], start + request["request_way_ns"]
        came = max([start] + delivered[bisect.bisect(delivered, start):bisect.bisect(delivered, received)])
        left = kicks[bisect.bisect(kicks, received + request["server_ns"] - 20_000):][:1]
        sleep = slept[bisect.bisect(slept, start):][:1]
        window = max([came] + sleep), min(left + [end])
        yield f"Debian/{client}", (start, end), length(both([window], taken)), ("Ubuntu", worker)


def judge(name, folder, of):
    truth = json.loads(read(folder, "truth.json"))
    offset = truth["traces"]["host"]["clock_offset_ns"]
    hogs = {hog["pid"] for hog in truth["hogs"]} | {t["pid"] for t in truth["tasks"] if t["where"] == "host"}
    vcpu = {(vm, int(n)): {**c, "qemu_pid": m["qemu_pid"]} for vm, m in truth["vms"].items() for n, c in m["vcpus"].items()}
    with scratch() as scratched:
        history = os.path.join(scratched, "history")
        run("index", folder, "-o", history)
        waits = list(of(folder, Facts(history), vcpu, hogs, offset))
        right = through = 0
        for who, (start, end), ns, cause in waits:
            path = table("path", history, who, "--from", str(start), "--to", str(end))
            said = sum(int(p["duration_ns"]) for p in path if p["thief_system"] == "host" and int(p["thief_tid"] or 0) in hogs)
            right += abs(said - ns) <= max(NEAR, SURE * ns)
            through += any((p["system"], p["tid"]) == cause for p in path)
    check(right >= 0.95 * len(waits) > 0, f"{name}: what the hog took is right in {right} of {len(waits)} waits")
    check(through >= 0.95 * len(waits), f"{name}: whoever was waited for is on {through} of the paths")


RECORDINGS = {"lockholder": lock_waits, "lockholder_tc": lock_waits, "pair": pair_waits}
there = [name for name in RECORDINGS if os.path.isdir(os.path.join(SHARED, name))]
if not there or is_sanitized():
    sys.exit(77)
for recording in there:
    judge(recording, os.path.join(SHARED, recording), RECORDINGS[recording])
