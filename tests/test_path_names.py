"""Whom `stealscope path` names, on recordings in which nobody waits for a lock or a server: a path goes from one thread to
another only where the history has a sleep that begins there, a wakeup of that moment by the one for the other, or where
it says that it goes by what is nearest in time: then that one did run there, and the guest did handle an interrupt.

The rows are read by the tests' own reader of histories, and what is looked up is none of the program's walk."""
import bisect
import os
import re
import sys

import history_reader
from e2e import DATA, SHARED, check, is_sanitized, run, scratch, table

CONSIDERABLE = 10_000_000  # ns of sleep in a life, from which on a thread is asked for


def root(machine):
    return "/Host" if machine == "host" else "/Virtual Machines/" + machine


class Rows:
    def __init__(self, history):
        self.row = {}
        for line in history_reader.History(history).dump():
            name, start, end, value = re.fullmatch(r"(.*?) (\d{16,}) (\d{16,}) (.*)", line, re.S).groups()
            self.row.setdefault(name, []).append((int(start), int(end), value.replace('"', "")))
        self.start = {name: [r[0] for r in row] for name, row in self.row.items()}
        self.vcpu, self.woken = {}, {}
        for name, row in self.row.items():
            part = re.fullmatch(r"(/Host|/Virtual Machines/(.*))/(CPUs|Threads)/(\d+|CPU\d+)/(Host Thread|Woken By)", name)
            if part and part[5] == "Host Thread":
                for tid in {r[2] for r in row} - {"null"}:
                    self.vcpu.setdefault(("host", tid), []).append((part[2], name[:-len("/Host Thread")]))
            elif part:
                self.index_wakeups(part[2] or "host", part[4], name[:-len("/Woken By")])

    def index_wakeups(self, machine, tid, thread):
        """When a thread's waker acted: when that was noted, or else when the sleep was over."""
        noted = self.start[thread + "/Woken By"]
        asleep = [r[:2] for r in self.row.get(thread + "/Status", []) if r[2] == "BLOCKED"]
        for at in set(noted) | {end + 1 for _, end in asleep}:
            self.woken.setdefault(at, []).append((machine, tid, thread))

    def at(self, name, t):
        i = bisect.bisect(self.start.get(name, []), t) - 1
        return self.row[name][i] if i >= 0 else (0, 0, "null")

    def executed_by(self, machine, tid, t):
        """(machine, the root of the vCPU's rows) of the vCPUs that this thread of the host is at t."""
        return [v for v in self.vcpu.get((machine, tid), []) if self.at(v[1] + "/Host Thread", t)[2] == tid]

    def is_or_acts_for(self, by, t, x):
        """Is the thread `by` the one that the piece is about, or a vCPU that this one had at t, in no interrupt?"""
        return by == (x["system"], x["tid"]) or any(
            vm == x["system"] and self.has(cpu, x, t) and (x["tid"] in ("", "0") or self.at(cpu + "/Interrupt", t)[2] == "null")
            for vm, cpu in self.executed_by(*by, t))

    def is_awaited(self, x, t):
        """Is it asleep, and a CPU on its way to wake it, idle or in a handler?"""
        return x["edge"] in ("inject", "ipi") and self.at(f"{root(x['system'])}/Threads/{x['tid']}/Status", t)[2] == "BLOCKED"

    def has(self, cpu, x, t):
        """Does the piece's thread or handler have that CPU at t?  A guest that does not tell is called by its CPU."""
        current = self.at(cpu + "/Current Thread", t)[2]
        if x["tid"] != "":
            for_it = current == "0" or self.at(cpu + "/Interrupt", t)[2] != "null"
            return current == x["tid"] or for_it and self.is_awaited(x, t)
        return (current == "null" or x["kind"] == "unknown") and x["name"] == "v" + cpu.rpartition("/")[2] or self.at(cpu + "/Interrupt", t)[2] == x["name"]

    def wakes(self, x, y, t):
        """At t the one of x woke the one of y, or a vCPU on its way to that one."""
        for machine, tid, thread in self.woken.get(t, []):
            over = self.at(thread + "/Status", t - 1)[1] + 1  # what is noted of its waker holds when the sleep is over
            by, within = (self.at(f"{thread}/{what}", max(t, over))[2] for what in ("Woken By", "Woken In"))
            system, _, waker = by.rpartition("/")
            if within == "null" or y["system"] not in [machine] + [vm for vm, _ in self.executed_by(machine, tid, t)]:
                continue
            if (x["system"], x["name"]) == (system, within) or self.is_or_acts_for((system, waker), t, x):
                return True
        return False

    def falls_asleep(self, x, t):
        threads = [f"{root(x['system'])}/Threads/{x['tid']}"]
        for (_, tid), vcpus in self.vcpu.items():
            threads += ["/Host/Threads/" + tid for vm, cpu in vcpus if vm == x["system"] and self.has(cpu, x, t - 1)]
        return any(self.at(thread + "/Status", t)[::2] == (t, "BLOCKED") for thread in threads)

    def wakes_up(self, x, t):
        """x is at t what somebody or nobody woke: who that was may be unknown, the moment is not."""
        return any((machine, tid) == (x["system"], x["tid"]) for machine, tid, _ in self.woken.get(t, []))

    def passes(self, x, y, t):
        """One vCPU goes from one thread or handler to another, on its way; or the one that it was on its way to is there."""
        if x["system"] != y["system"] or x["edge"] not in ("ipi", "inject", "request") and x["kind"] != "unknown":
            return False
        cpus = {name.rpartition("/")[0] for name in self.row if re.match(re.escape(root(x["system"])) + "/CPUs/.*/Status", name)}
        return self.wakes_up(y, t) or any(self.has(cpu, x, t - 1) and self.has(cpu, y, t) for cpu in cpus)

    def is_near(self, x, y, t):
        """x had run last when y came of it, by an interrupt that was handled so much later."""
        said = [p for p in (y, x) if p["evidence"].startswith("nearest:")]
        if not said or x["system"] != "host":
            return False
        thread, handled = f"/Host/Threads/{x['tid']}/Status", t + int(said[0]["evidence"].split(":")[1])
        interrupts = [name for name in self.row if name.startswith(root(y["system"]) + "/CPUs/") and name.endswith("/Interrupt")]
        return (x["tid"] == "" or "RUNNING" in (self.at(thread, t - 1)[2], self.at(thread, t)[2])) and \
            any("null" not in (self.at(name, handled)[2], self.at(name, handled - 1)[2]) for name in interrupts)

    def falls_silent(self, x, t):
        """The guest's trace ends at t: of what was before it is not said whose doing that was."""
        current = f"{root(x['system'])}/CPUs/{x['name'][1:]}/Current Thread"
        return x["kind"] == "unknown" and self.at(current, t)[::2] == (t, "null")

    def backed(self, x, y, t):
        return (self.falls_asleep(x, t) or self.wakes(x, y, t) or self.passes(x, y, t) or self.is_near(x, y, t) or
                self.falls_silent(x, t) or x["kind"] == "unknown" and self.wakes_up(x, t))


def check_no_idle_task(name, r, path):
    """The idle task does nothing that anybody waits for, and takes nobody's CPU: its vCPU does, if anybody."""
    idle = [p for p in path if "0" in (p["tid"], p["thief_tid"])]
    if idle:
        check(False, f"{name}: on the path of {r['machine']}/{r['tid']} is an idle task: {idle[0]}")


def judge(name, folder, scratched, how):
    history = os.path.join(scratched, name)
    run("index", folder, "--sync", how, "-o", history)
    locks = {w["name"] for w in table("gaps", history, "--locks", "--top", "0")}
    check(locks <= {"lttng-consumerd"}, f"{name} by {how}: nobody waits for a lock, but the tracer for its own")
    rows, paths, links = Rows(history), 0, 0
    for r in table("threads", history):
        thread = f"{root(r['machine'])}/Threads/{r['tid']}/Status"
        if sum(end - start + 1 for start, end, value in rows.row.get(thread, []) if value == "BLOCKED") < CONSIDERABLE:
            continue
        path = table("path", history, f"{r['machine']}/{r['tid']}")
        paths += 1
        check_no_idle_task(name, r, path)
        for x, y in zip(path, path[1:]):
            if all(x[k] == y[k] for k in (("system", "tid") if x["tid"] else ("system", "tid", "name"))):
                continue
            t = int(y["start"])
            links += 1
            if not rows.backed(x, y, t):
                print(r["machine"], r["tid"], r["name"], x, y, sep="\n  ")
                if "-v" not in sys.argv:
                    check(False, f"{name}: the path of {r['machine']}/{r['tid']} goes over where nothing is recorded")
    check(paths > 20 and links > 100, f"{name} by {how}: {links} links of {paths} paths are what was recorded, or said to be near")


with scratch() as scratched:
    quiet = [] if is_sanitized() else [folder for folder in ("pulse", "big", "smp") if os.path.isdir(os.path.join(SHARED, folder))]
    for by in ("auto", "containment"):
        judge("fibonacci", os.path.join(DATA, "fibonacci"), scratched, by)
        for recording in quiet:
            judge(recording, os.path.join(SHARED, recording), scratched, by)
