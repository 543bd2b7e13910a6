"""`stealscope gaps --locks`: the holder of each wait is the one in the workload's own log; without lock waits there are no
holders."""
import json
import os
import re

from e2e import DATA, check, is_sanitized, on_terminal, recording, recordings, require_recordings, run, scratch, simulate, table

NAMED = {"mutex": "futex", "kern": "rwsem"}  # the workload's name of a mode -> the kernel's name of the lock


def logged(folder):
    """The waits measured by the workload: kind, waiter, holder, first and last ns, ns taken from the holder by hogs."""
    with open(os.path.join(folder, "truth.json"), encoding="utf-8") as f:
        offset = json.load(f)["traces"]["host"]["clock_offset_ns"]
    with open(os.path.join(folder, "expected_waits.json"), encoding="utf-8") as f:
        for w in json.load(f):
            yield (NAMED.get(w["mode"]), w["waiter"], w["holder"], w["host_begin_ns"] + offset, w["host_end_ns"] + offset,
                   w["holder_preempted_by_hog_ns"])


def intersect(a, b):
    """The intersection of two sorted lists of (first, last)."""
    out, i, k = [], 0, 0
    while i < len(a) and k < len(b):
        first, last = max(a[i][0], b[k][0]), min(a[i][1], b[k][1])
        if first <= last:
            out.append((first, last))
        i, k = (i + 1, k) if a[i][1] < b[k][1] else (i, k + 1)
    return out


def length(parts):
    return sum(last - first + 1 for first, last in parts)


class Losses:
    """Time that a hog took from a holder, by the workload's log of its critical sections and the host's switches."""

    def __init__(self, name, history):
        self.folder, self.history, self.asleep, self.hog = recording(name), history, {}, {}
        with open(os.path.join(self.folder, "truth.json"), encoding="utf-8") as f:
            self.truth = json.load(f)
        clock, offset = self.truth["vms"]["Debian"]["true_clock"], self.truth["traces"]["host"]["clock_offset_ns"]
        self.cpu, self.section = {}, []
        with open(os.path.join(self.folder, "guest-Debian", "locks.txt"), encoding="utf-8") as f:
            for line in f:
                said = dict(re.findall(r"(\w+)=(\S+)", line))
                if line.startswith("lockset "):
                    self.cpu.update({int(said["tid0"]): "0", int(said["tid1"]): "1"})
                elif line.startswith("held "):
                    first, last = (round(clock["host_at_begin"] + clock["slope"] * (int(said[k]) - clock["guest_begin"])) + offset
                                   for k in ("got_ns", "rel_ns"))
                    self.section.append((int(said["tid"]), NAMED.get(said["mode"]), first, last))

    def rows(self, *path):
        return [(int(r["start"]), int(r["end"]), r["value"]) for r in table("intervals", self.history, "/" + "/".join(path))]

    def hog_has(self, thread):
        """Intervals in which a hog had the CPU of the vCPU that the thread is bound to."""
        cpu = self.truth["vms"]["Debian"]["vcpus"][self.cpu[thread]]["cpus"]
        hogs = {str(h["pid"]) for h in self.truth["hogs"]}
        if cpu not in self.hog:
            self.hog[cpu] = [r[:2] for r in self.rows("Host/CPUs", f"CPU{cpu}", "Current Thread") if r[2] in hogs]
        return self.hog[cpu]

    def sleeps_of(self, thread):
        """Sleeps of a thread, each until its waker acted."""
        if thread not in self.asleep:
            acted = [r[0] for r in self.rows("Virtual Machines/Debian/Threads", str(thread), "Woken By")]
            self.asleep[thread] = [
                (start, max((t - 1 for t in acted if start < t <= end + 1), default=end))
                for start, end, state in self.rows("Virtual Machines/Debian/Threads", str(thread), "Status") if state == "BLOCKED"]
        return self.asleep[thread]

    def of(self, kind, waiter, holder, first, last):
        """ns that a hog took from the holder in its critical sections, and of these while the waiter slept for it."""
        held = [(max(a, first), min(b, last)) for tid, mode, a, b in self.section
                if tid == holder and mode == kind and a <= last and first <= b]
        taken = intersect(held, self.hog_has(holder))
        return length(taken), length(intersect(taken, self.sleeps_of(waiter)))


def like_with_like(name, kind, log, waits, losses):
    """culprit_ns is the time that the hog took from the holder while the waiter slept: within 5 %, or 150 us of clocks and
    switches on either side."""
    right, said, meant, ever = 0, 0, 0, 0
    for _, waiter, holder, first, last, _ in log:
        all_ns, ns = losses.of(kind, waiter, holder, first, last)
        own = [w for w in waits if w["tid"] == str(waiter) and int(w["start"]) <= last and first <= int(w["end"])]
        taken = sum(int(w["culprit_ns"]) for w in own if w["culprit_name"] == "burnP6")
        right += abs(taken - ns) <= max(0.05 * ns, 150_000)
        said, meant, ever = said + taken, meant + ns, ever + all_ns
    check(right >= 0.95 * len(log) and abs(said - meant) <= 0.05 * meant, f"{name}: of {right} of {len(log)} {kind} waits it "
          f"is told what the hog took from the holder while they slept: {said / 1e6:.1f} ms of {meant / 1e6:.1f}, or of "
          f"{ever / 1e6:.1f} with what it took while they spun, or were woken and out")


def against_the_log(name, kinds, scratched):
    history, folder = os.path.join(scratched, name), recording(name)
    run("index", folder, "-o", history)
    waits = [w for w in table("gaps", history, "Debian", "--locks", "--top", "0") if w["how"] == "slept"]
    own = [w for w in table("gaps", history, "--locks", "--top", "0") if int(w["culprit_ns"]) == 0 < int(w["waiter_lost_ns"])]
    text, key = run("gaps", history, "--locks", "--top", "0").stdout, "\n* lost by the waiter itself; its holder lost nothing\n"
    check(key in text and len(own) + 1 == text.count("*") > 1, f"{name}: a * where the waiter itself lost, and what it means")
    losses = Losses(name, history)
    for kind in kinds:
        log = [w for w in logged(folder) if w[0] == kind]
        right = wrong = unknown = blamed = 0
        found = set()
        for w in (w for w in waits if w["lock"] == kind):
            start, end = int(w["start"]), int(w["end"])
            meant = [i for i, (_, who, _, a, b, _) in enumerate(log) if str(who) == w["tid"] and a <= end and start <= b]
            if not meant:
                continue  # too short for the log
            found.update(meant)
            right += w["holder_tid"] == str(log[meant[0]][2])
            unknown += w["holder_tid"] == ""
            wrong += w["holder_tid"] not in ("", str(log[meant[0]][2]))
            blamed += sum(log[i][5] for i in meant) == 0 and int(w["culprit_ns"]) > 0 and w["culprit_name"] == "burnP6"
        check(wrong == 0 and right >= 0.95 * (right + unknown) > 0, f"{name}: of {right + unknown} {kind} waits {right} have "
              f"the right holder, {unknown} none, {wrong} a wrong one")
        check(blamed == 0, f"{name}: of {kind} waits whose holder lost nothing {blamed} say that the hog took from it")
        like_with_like(name, kind, log, waits, losses)
        if kind == "futex":
            check(len(found) >= 0.95 * len(log), f"{name}: {len(found)} of {len(log)} waits of the log are there")


def on_a_narrow_terminal(scratched):
    """A row has the waiter, the holder, the time taken and the culprit, and fits 80 columns."""
    history = os.path.join(scratched, "spin.steal")
    simulate(os.path.join(scratched, "spin"), "spin", "--duration", "1s")
    run("index", os.path.join(scratched, "spin"), "-o", history)
    waits = table("gaps", history, "--locks", "--top", "0")
    shown = run("gaps", history, "--locks", "--top", "0").stdout.split("\n\n")[-2].splitlines()
    check(len(waits) + 1 == len(shown) > 5, f"{len(waits)} waits have a row each")
    for w, row in zip(waits, shown[1:]):
        doubt = f", {100 * float(w['suspicion']):.0f}%?" if w["suspicion"] else ""
        said = [f" {w['tid']} {w['name']} ", "pause", f"{w['holder_tid']} {w['holder_name']}{doubt}" if w["holder_tid"] else "",
                f"{w['culprit_machine']}/{w['culprit_tid']} {w['culprit_name']}" if w["culprit_tid"] else ""]
        own = int(w["culprit_ns"]) == 0 < int(w["waiter_lost_ns"])
        if not all(text in row for text in said) or ("*" in row) != own:
            check(False, f"{w} is in the row {row}")
    check(any("%?" in row for row in shown), "and what is suspected")
    narrow = [row for row in on_terminal("gaps", history, "--locks", "--top", "0").split("\n\n")[-2].splitlines() if row]
    top = run("gaps", history, "--locks", "--top", "3").stdout
    every = run("gaps", history, "--locks", "--top", "0").stdout.split("\n\n")[-1]
    sums = every.split("\n")[0]
    check(sums in top and sums.startswith(f"{len(waits)} lock waits, ") and f"3 longest of {len(waits)} shown" in top and "shown" not in every,
          f"what is left out is said, and what all are: {sums!r}")
    check(len(narrow) == len(shown) and max(map(len, narrow)) <= 80, "on 80 columns no row is longer than these")


with scratch() as scratched:
    on_a_narrow_terminal(scratched)
    beacon = os.path.join(scratched, "beacon")
    run("index", os.path.join(DATA, "fibonacci"), "-o", beacon)
    p = run("gaps", beacon, "--locks", "--format", "csv")
    check(len(p.stdout.splitlines()) == 1 and "no lock events were recorded" in p.stderr, "a note: no lock events")
    if is_sanitized():
        require_recordings()
    against_the_log("lockholder", ["futex"], scratched)
    require_recordings()
    against_the_log("lockholder_tc", ["futex", "rwsem"], scratched)
    for folder in recordings():
        name = os.path.basename(os.path.dirname(folder))
        if name.startswith("lockholder"):
            continue
        history = os.path.join(scratched, name)
        run("index", folder, "-o", history)
        named = {(w["name"], w["holder_name"]) for w in table("gaps", history, "--locks", "--top", "0")}
        tracer = {("lttng-consumerd", "lttng-consumerd")} if name == "big" else set()
        check(named <= tracer, f"{name}: nobody waits for a lock" + (", but the tracer for its own mutex" if tracer else ""))
        os.unlink(history)
