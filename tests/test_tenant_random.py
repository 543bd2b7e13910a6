"""Simulated guests without a host trace: what their steal clocks show against the truth of the simulator, over seeds.

A world has hogs, other VMs, a quota, pauses, migrations, hotplug, or none of these; its probes read the clock at switches
and timers or at ticks only; some worlds lose events.  In each of them

- the claimed time of a vCPU is that of its clock, and within the stated bound of a claimed gap the vCPU really waited so long;
- each thread lost what it really lost, within these bounds, and no thread of the guest is blamed for it;
- a reason is claimed only where it is true, and a quiet guest claims nothing.

SEEDS: number of worlds; SEED: the first seed."""
import bisect
import collections
import csv
import os
import re
import subprocess

from e2e import BUILD, check, run, scratch, seeds, table

PLANTS = ("hog", "peer", "quota", "pause", "migration", "hotplug", "quiet", "mix")
SEEN = (2078578,)                   # worlds of earlier faults: gaps of a quota end late by half a tick
COUNTED = ("wait", "quota")         # kinds of the truth that the clock counts
STOPPED = ("pause", "migration", "hidden")
SHORT = 1000                        # ns; shorter gaps are not written
REASON = re.compile(r"provider(?:: (.*))?$")


class Times:
    """Disjoint intervals [start, end), in order, with the sum of their overlap with a window."""

    def __init__(self, rows):
        self.rows = sorted(rows)
        self.ends = [r[1] for r in self.rows]

    def overlap(self, start, end):
        total = 0
        for i in range(bisect.bisect_right(self.ends, start), len(self.rows)):
            if self.rows[i][0] >= end:
                break
            total += min(end, self.rows[i][1]) - max(start, self.rows[i][0])
        return total

    def sum(self):
        return sum(r[1] - r[0] for r in self.rows)

    def union(self):
        """Returns the time in any of the intervals, which may overlap."""
        total, last = 0, 0
        for start, end in self.rows:
            total += max(0, end - max(start, last))
            last = max(last, end)
        return total


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def options_of(seed):
    """Faults of a world, by its number: eight of 32 lose events."""
    plant = PLANTS[seed % len(PLANTS)]
    more = ["--lost", "0.02"] if seed // 8 % 4 == 3 else []
    return plant, ["--seed", str(seed), "--plant", plant, *more]


class World:
    def __init__(self, directory, seed):
        self.seed = seed
        self.plant, options = options_of(seed)
        self.loses = "--lost" in options
        self.at = os.path.join(directory, str(seed))
        subprocess.run([os.path.join(BUILD, "stealscope-sim"), "tenant", *options, "-o", self.at], check=True, capture_output=True,
                       timeout=300)
        self.info = {r["key"]: r["value"] for r in rows_of(self.at + "/truth/info.csv")}
        self.reads_at_ticks = "records steal" in self.info
        self.history = self.at + ".steal"
        run("index", "--guest", f"Debian={self.at}/guest-Debian", "-o", self.history)
        self.truth = collections.defaultdict(list)
        self.counted = collections.Counter()  # ns, also of waits during a stop for which the trace clock stood still
        for r in rows_of(self.at + "/truth/steal.csv"):
            if r["vm"] == "Debian":
                if r["kind"] in COUNTED:
                    self.counted[int(r["vcpu"])] += int(r["end"]) - int(r["start"]) + 1
                self.truth[int(r["vcpu"])].append((int(r["guest_start"]), int(r["guest_end"]), r["kind"], int(r["tid"])))
        self.vcpus = sorted(self.truth)
        self.is_moved = any(r[2] == "migration" for r in self.truth[0])
        # Guest times at which the trace clock stood still: waits then are in the steal clock, but not in the guest's time.
        self.steps = [r[0] for r in self.truth[0] if r[2] in ("migration", "hidden")]
        self.claims = {v: self.read_claims(v) for v in self.vcpus}

    def read_claims(self, vcpu):
        path = f"/Virtual Machines/Debian/CPUs/CPU{vcpu}/"
        p = run("intervals", self.history, path + "Out By", "--format", "csv", status=None)
        if p.returncode:
            return []
        bounds = {int(r["start"]): int(r["value"]) for r in table("intervals", self.history, path + "Steal Bound") if r["value"]}
        starts, claims = sorted(bounds), []
        for r in csv.DictReader(p.stdout.splitlines()):
            m = REASON.match(r["value"])
            if m:
                start = int(r["start"])
                claims.append((start, int(r["end"]) + 1, m[1] or "", bounds[starts[bisect.bisect_right(starts, start) - 1]]))
        return claims

    def true(self, vcpu, kinds, tid=None):
        return Times((a, b) for a, b, kind, t in self.truth[vcpu] if kind in kinds and tid in (None, t))

    def name(self):
        return f"seed {self.seed} ({self.plant}{', reads at ticks' * self.reads_at_ticks}{', losses' * self.loses})"

    def doubt(self, vcpu=None):
        """Sum of the bounds of the claimed gaps as far as they exceed the gaps' own silence, or all of them with few reads."""
        return sum(min(w, b - a) for v in self.vcpus if vcpu in (None, v) for a, b, _, w in self.claims[v])


def check_sums(w):
    """The clock of a vCPU loses at most the waits before its first and after its last read, and those too short to write."""
    for v in w.vcpus:
        true, got = w.true(v, COUNTED), sum(b - a for a, b, kind, _ in w.claims[v] if kind != "pause")
        last = max(b for _, b, _, _ in w.truth[v]) - 60_000_000
        edges = sum(b - a for a, b, _, _ in w.truth[v][:2]) + true.overlap(last, 2**63)
        if w.plant == "hotplug" and v:  # its clock is set back when it is plugged
            continue
        least = 0 if w.loses else true.sum() * 0.9999 - edges - SHORT * len(true.rows)
        check(least <= got <= w.counted[v] * 1.0001 + SHORT,
              f"{w.name()}: vCPU{v}: {got} ns claimed, {w.counted[v]} ns true, up to {edges} ns at the edges")


def check_bounds(w):
    """Within the bound of a gap, the vCPU waited for the claimed time; the bound also covers the part that may belong to
    another gap.  With all reads there is hardly such a part."""
    for v in w.vcpus:
        true, pauses, missing, total = w.true(v, COUNTED), w.true(v, ("pause",)), 0, 0
        for a, b, kind, bound in w.claims[v]:
            found = (pauses if kind == "pause" else true).overlap(a - bound - 2, b + 2 + (bound if kind == "pause" else 0))
            if kind != "pause":
                missing += max(0, b - a - found)
                total += b - a
            is_at_step = any(a - 60_000_000 < t < b + 60_000_000 for t in w.steps)
            if found + bound + 5 < b - a and not is_at_step:
                check(False, f"{w.name()}: vCPU{v}: a gap of {b - a} +-{bound} ns at {a} ({kind}), true: {found} ns")
        check(w.reads_at_ticks or w.loses or w.plant == "hotplug" or w.steps or missing <= 0.03 * total + 100 * SHORT,
              f"{w.name()}: vCPU{v}: {missing} of {total} ns claimed are outside of true waits")


def check_reasons(w):
    """A gap with a reason contains time of this reason, but for some in a mixture of reasons."""
    part = {"neighbour": "wait", "quota": "quota", "pause": "pause"}
    for v in w.vcpus:
        times = {kind: w.true(v, (kind,)) for kind in COUNTED + STOPPED}
        ns, wrong = collections.Counter(), collections.Counter()
        for a, b, kind, bound in w.claims[v]:
            ns[kind] += b - a
            if kind in part and times[part[kind]].overlap(a - bound, b + bound * (w.reads_at_ticks or kind == "pause")) < min(200_000, (b - a) // 2):
                wrong[kind] += b - a
        check(all(n <= {"mix": 0.4, "hotplug": 0.02}.get(w.plant, 0) * ns[kind] for kind, n in wrong.items()),
              f"{w.name()}: vCPU{v}: claimed for {dict(ns)}, of this wrong {dict(wrong)}")
        if w.plant == "quiet":
            check(not set(ns) - {""} and sum(ns.values()) <= times["wait"].sum(), f"{w.name()}: nothing is claimed")
        if ns["migration"]:
            check(w.plant == "migration" and w.is_moved, f"{w.name()}: migration")


def check_threads(w):
    """Each thread lost what its vCPUs waited while it was current; threads that waited for a taken vCPU blame no thread."""
    got, taken, others = collections.Counter(), collections.Counter(), collections.Counter()
    for r in table("steal", w.history, "--by", "thread"):
        tid = int(r["victim"].split("/")[1].split(" ")[0])
        if REASON.match(r["culprit"]):
            got[tid] += int(r["ns"])
        elif r["culprit"] == "vCPU taken":
            taken[tid] += int(r["ns"])
        else:
            others[tid] += int(r["ns"])
    visible = COUNTED + (("pause",) if any(c[2] == "pause" for v in w.vcpus for c in w.claims[v]) else ())
    is_exact = not (w.reads_at_ticks or w.loses or w.plant in ("hotplug", "pause", "mix"))
    # Events were lost, or a clock that was set back was not read on its own CPU only.
    is_partly_unknown = w.loses or w.steps or (w.plant == "hotplug" and w.reads_at_ticks)
    allowed = 3_000_000 if is_exact else w.doubt()
    for tid in sorted({t for v in w.vcpus for _, _, _, t in w.truth[v] if t} | set(got)):
        true = sum(w.true(v, visible, tid).union() for v in w.vcpus)
        least = 0 if is_partly_unknown else 0.99 * true - allowed
        check(least <= got[tid] <= 1.01 * true + allowed,
              f"{w.name()}: thread {tid}: the provider took {got[tid]} ns, truth {true}, allowed {allowed}")
    expected = preempted_while_taken(w, visible)
    for tid, ns in expected.items() if not is_partly_unknown else ():
        check(taken[tid] >= 0.95 * ns - w.doubt() - 100 * SHORT,
              f"{w.name()}: thread {tid} waited {ns} ns for a taken vCPU, {taken[tid]} ns are shown, {others[tid]} for threads")


def check_sentences(w):
    """The sentence on a time in which the provider had the vCPU from a thread contains the gap's bound."""
    for v in w.vcpus:
        a, b, _, _ = max(w.claims[v], key=lambda c: c[1] - c[0], default=(0, 0, "", 0))
        tid = next((t for start, end, _, t in w.truth[v] if t and start < b and end > a), None)
        if tid:
            line = run("explain", w.history, f"Debian/{tid}", "--at", str((a + b) // 2)).stdout.split("\n", maxsplit=1)[0]
            check("VIRT_PREEMPTED" not in line or "+-" in line, f"{w.name()}: vCPU{v}: {line}")


def check_slices(w, size=100_000_000):
    """What each thread lost in each slice of 100 ms, within the bounds of the gaps at the ends of the slice."""
    begin = int(table("summary", w.history)[0]["start"])
    worst = 0
    for start in range(begin + size, begin + 10 * size, size):
        end, got = start + size, collections.Counter()
        for r in table("steal", w.history, "--by", "thread", "--from", f"+{start - begin}ns", "--to", f"+{end - 1 - begin}ns"):
            if REASON.match(r["culprit"]):
                got[int(r["victim"].split("/")[1].split(" ")[0])] += int(r["ns"])
        allowed = sum(bound for v in w.vcpus for a, b, _, bound in w.claims[v] for edge in (start, end) if a - bound <= edge <= b)
        for tid in {t for v in w.vcpus for _, _, _, t in w.truth[v] if t} | set(got):
            true = sum(w.true(v, COUNTED, tid).overlap(start, end) for v in w.vcpus)
            worst = max(worst, abs(got[tid] - true))
            if abs(got[tid] - true) > allowed + 0.01 * true + 2_000_000:
                check(False, f"{w.name()}: thread {tid} lost {got[tid]} ns from {start} on, truth {true}, allowed {allowed}")
    check(worst < size, f"{w.name()}: largest error of a thread in a slice of 100 ms: {worst} ns")


def preempted_while_taken(w, kinds):
    """Returns {TID: ns} in which a thread waited for a vCPU that its provider had taken from another thread."""
    cpu, waits, total = collections.defaultdict(list), collections.defaultdict(list), collections.Counter()
    for r in rows_of(w.at + "/truth/intervals.csv"):
        m = re.match(r"/Virtual Machines/Debian/Threads/(\d+)/(CPU|Status)$", r["path"])
        if m and (m[2] == "CPU" or r["value"] == "PREEMPTED"):
            (cpu if m[2] == "CPU" else waits)[int(m[1])].append((int(r["start"]), int(r["end"]) + 1, r["value"]))
    taken = collections.defaultdict(list)
    for r in rows_of(w.at + "/truth/steal.csv"):
        if r["vm"] == "Debian" and r["kind"] in kinds:
            taken[r["vcpu"]].append((int(r["start"]), int(r["end"]) + 1))
    for tid, rows in waits.items():
        for start, end, _ in rows:
            for a, b, v in cpu[tid]:
                if a < end and b > start:
                    total[tid] += Times(taken[v]).overlap(max(a, start), min(b, end))
    return total


def check_lock_holders(tmp, seed):
    """A thread waits for a lock while the vCPU of its holder is taken: its path names the holder, and the provider as culprit,
    exactly then."""
    at = os.path.join(tmp, f"chain{seed}")
    subprocess.run([os.path.join(BUILD, "stealscope-sim"), "chain", "--steal-clock", "switch", "--seed", str(seed), "-o", at],
                   check=True, capture_output=True, timeout=300)
    run("index", "--guest", f"Debian={at}/guest-Debian", "-o", at + ".steal")
    taken = collections.defaultdict(list)
    for r in rows_of(at + "/truth/steal.csv"):
        if r["vm"] == "Debian":
            taken[int(r["tid"])].append((int(r["guest_start"]), int(r["guest_end"])))
    lockers = {int(r["target"].split("/")[1].split(" ")[0]) for r in table("summary", at + ".steal")
               if re.match(r"Debian/\d+ locker", r["target"])}
    named = proven = blamed = 0
    for waiter in sorted(lockers):
        for r in table("path", at + ".steal", f"Debian/{waiter}"):
            holder, start, end = int(r["tid"] or 0), int(r["start"]), int(r["end"]) + 1
            if holder not in lockers - {waiter}:
                continue
            truly = Times(taken[holder]).overlap(start, end)
            if r["kind"] == "limited" and REASON.match(r["culprit_name"]):
                named += end - start
                proven += truly
            elif r["kind"] == "preempting":
                blamed += truly
    check(named > 20_000_000 and proven >= 0.85 * named and blamed <= 0.05 * named,
          f"seed {seed}: waits for holders on taken vCPUs: {named} ns, truly {proven}, {blamed} are blamed on threads")


def check_host(w):
    """With the trace of the host, the clock confirms it."""
    said = run("index", w.at, "-o", w.history).stderr
    found = re.search(r"Debian: the steal clock of .* rose by ([0-9.]+) ms, the host's trace shows ([0-9.]+) ms", said)
    check(found, f"{w.name()}: the clocks confirm the host's trace: {found[0] if found else said}")


if __name__ == "__main__":
    with scratch() as tmp:
        worlds = seeds(16, 96)
        for seed in worlds[:2]:
            check_lock_holders(tmp, seed)
        for seed in sorted({*worlds, *SEEN}):
            world = World(tmp, seed)
            check_sums(world)
            check_bounds(world)
            check_reasons(world)
            check_threads(world)
            check_sentences(world)
            if world.plant in ("hog", "quota") and not (world.loses or world.reads_at_ticks):
                check_slices(world)
            if not world.loses and world.plant != "hotplug" and not any(r[2] in STOPPED for r in world.truth[0]):
                check_host(world)
