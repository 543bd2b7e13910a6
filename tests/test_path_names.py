"""The actors of `stealscope path`, on recordings without waits for locks or servers.  A path goes from one thread to another
only where the history has a sleep that starts there, a wakeup at that time by the one of the other, or where the evidence is
the nearest event: then that thread did run there, and the guest did handle an interrupt.

The rows are read by the tests' own reader of histories, and the lookups share no code with the program's walk."""
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
        """When a thread's waker acted: the recorded time, or else the end of the sleep."""
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
        """Returns true if thread `by` is the interval's actor, or executes the actor's vCPU at t, in no interrupt."""
        return by == (x["machine"], x["tid"]) or any(
            vm == x["machine"] and self.has(cpu, x, t) and (x["tid"] in ("", "0") or self.at(cpu + "/Interrupt", t)[2] == "null")
            for vm, cpu in self.executed_by(*by, t))

    def is_awaited(self, x, t):
        """Returns true if it is asleep, and a CPU is on its way to wake it, idle or in a handler."""
        return x["edge"] in ("inject", "ipi") and self.at(f"{root(x['machine'])}/Threads/{x['tid']}/Status", t)[2] == "BLOCKED"

    def has(self, cpu, x, t):
        """Returns true if the interval's thread or handler has that CPU at t.  An untraced guest is named by its CPU."""
        current = self.at(cpu + "/Current Thread", t)[2]
        if x["tid"] != "":
            for_it = current == "0" or self.at(cpu + "/Interrupt", t)[2] != "null"
            return current == x["tid"] or for_it and self.is_awaited(x, t)
        return (current == "null" or x["kind"] == "unknown") and x["name"] == "v" + cpu.rpartition("/")[2] or self.at(cpu + "/Interrupt", t)[2] == x["name"]

    def wakes(self, x, y, t):
        """At t the actor of x woke the actor of y, or a vCPU on its way to it."""
        for machine, tid, thread in self.woken.get(t, []):
            over = self.at(thread + "/Status", t - 1)[1] + 1  # the waker is recorded at the end of the sleep
            by, within = (self.at(f"{thread}/{what}", max(t, over))[2] for what in ("Woken By", "Woken In"))
            system, _, waker = by.rpartition("/")
            if within == "null" or y["machine"] not in [machine] + [vm for vm, _ in self.executed_by(machine, tid, t)]:
                continue
            if (x["machine"], x["name"]) == (system, within) or self.is_or_acts_for((system, waker), t, x):
                return True
        return False

    def falls_asleep(self, x, t):
        threads = [f"{root(x['machine'])}/Threads/{x['tid']}"]
        for (_, tid), vcpus in self.vcpu.items():
            threads += ["/Host/Threads/" + tid for vm, cpu in vcpus if vm == x["machine"] and self.has(cpu, x, t - 1)]
        return any(self.at(thread + "/Status", t)[::2] == (t, "BLOCKED") for thread in threads)

    def wakes_up(self, x, t):
        """x was woken at t; the waker may be unknown, the time is not."""
        return any((machine, tid) == (x["machine"], x["tid"]) for machine, tid, _ in self.woken.get(t, []))

    def passes(self, x, y, t):
        """A vCPU on its way switches from one thread or handler to another, or reaches the woken one."""
        if x["machine"] != y["machine"] or x["edge"] not in ("ipi", "inject", "request") and x["kind"] != "unknown":
            return False
        cpus = {name.rpartition("/")[0] for name in self.row if re.match(re.escape(root(x["machine"])) + "/CPUs/.*/Status", name)}
        return self.wakes_up(y, t) or any(self.has(cpu, x, t - 1) and self.has(cpu, y, t) for cpu in cpus)

    def is_near(self, x, y, t):
        """x ran last before it raised the interrupt that y handled so much later."""
        said = [p for p in (y, x) if p["evidence"].startswith("nearest:")]
        if not said or x["machine"] != "host":
            return False
        thread, handled = f"/Host/Threads/{x['tid']}/Status", t + int(said[0]["evidence"].split(":")[1])
        interrupts = [name for name in self.row if name.startswith(root(y["machine"]) + "/CPUs/") and name.endswith("/Interrupt")]
        return (x["tid"] == "" or "RUNNING" in (self.at(thread, t - 1)[2], self.at(thread, t)[2])) and \
            any("null" not in (self.at(name, handled)[2], self.at(name, handled - 1)[2]) for name in interrupts)

    def falls_silent(self, x, t):
        """The guest's trace ends at t: the actor before that is unknown."""
        current = f"{root(x['machine'])}/CPUs/{x['name'][1:]}/Current Thread"
        return x["kind"] == "unknown" and self.at(current, t)[::2] == (t, "null")

    def backed(self, x, y, t):
        return (self.falls_asleep(x, t) or self.wakes(x, y, t) or self.passes(x, y, t) or self.is_near(x, y, t) or
                self.falls_silent(x, t) or x["kind"] == "unknown" and self.wakes_up(x, t))


def check_no_idle_task(name, r, path):
    """No thread waits for the idle task, and it is no culprit; its vCPU may be."""
    idle = [p for p in path if "0" in (p["tid"], p["culprit_tid"])]
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
            if all(x[k] == y[k] for k in (("machine", "tid") if x["tid"] else ("machine", "tid", "name"))):
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
