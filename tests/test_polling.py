"""Halt polling from the host's events, against the simulator's truth: every poll to the ns, the delay until the guest
continued, and the time that others waited for the pCPU.  Recordings without these events: no claims."""
import csv
import os
import subprocess

from e2e import BUILD, DATA, SHARED, check, run, scratch, table

SIM = os.path.join(BUILD, "stealscope-sim")


def intervals(history, path):
    return [(int(r["start"]), int(r["end"]), r["value"]) for r in table("intervals", history, path)]


def truth_of(folder, name):
    with open(os.path.join(folder, "truth", name), newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def percentile(values, p):
    values = sorted(values)
    return values[(len(values) * p + 99) // 100 - 1]


def overlap(a, b):
    return max(0, min(a[1], b[1]) - max(a[0], b[0]) + 1)


class World:
    def __init__(self, folder, name, *options):
        self.traces, self.history = f"{folder}/{name}", f"{folder}/{name}.steal"
        subprocess.run([SIM, name, "--perfect-clocks", *options, "-o", self.traces], check=True, stderr=subprocess.DEVNULL)
        run("index", self.traces, "-o", self.history)
        self.polls = {}
        for r in truth_of(self.traces, "polls.csv"):
            self.polls.setdefault((r["vm"], r["vcpu"]), []).append((int(r["start"]), int(r["end"]), r["outcome"]))
        self.truth = {}
        for r in truth_of(self.traces, "intervals.csv"):
            self.truth.setdefault(r["path"], []).append((int(r["start"]), int(r["end"]), r["value"]))
        self.of_vcpu = {int(r["host_tid"]): (r["vm"], r["vcpu"]) for r in truth_of(self.traces, "vcpus.csv")}

    def reported(self, vm, vcpu):
        """Returns the polls of a vCPU in the history; the first part may be `untold` (unknown)."""
        return [i for i in intervals(self.history, f"/Virtual Machines/{vm}/CPUs/CPU{vcpu}/Polling") if i[2]]

    def waited(self, vm, vcpu, poll):
        """Returns the time for which threads waited for the CPU while that vCPU polled on it, without interrupts, ns:
        threads of the host; vCPU threads only if their guest had a thread to run."""
        cpu = next(v for s, e, v in self.truth[f"/Virtual Machines/{vm}/CPUs/CPU{vcpu}/pCPU"] if s <= poll[0] <= e)
        ns = 0
        handlers = self.truth.get(f"/Host/CPUs/CPU{cpu}/Interrupt", ())
        for path, states in self.truth.items():
            if path.startswith("/Host/Threads/") and path.endswith("/Status"):
                role = self.of_vcpu.get(int(path.split("/")[3]))
                if role:
                    states = [(s[0], s[1], "PREEMPTED" if s[2] in ("PREEMPTED", "WAKING") else "") for s in
                              self.truth["/Virtual Machines/{}/CPUs/CPU{}/Status".format(*role)]]
                cpus = self.truth[path[:-len("Status")] + "CPU"]
                for s in states:
                    if s[2] == "PREEMPTED" and overlap(s, poll):
                        queued = (max(s[0], poll[0]), min(s[1], poll[1]))
                        ns += sum(overlap(queued, w) - sum(overlap(h, (max(w[0], queued[0]), min(w[1], queued[1])))
                                                           for h in handlers) for w in cpus if w[2] == cpu)
        return ns


def check_polls(world):
    """Checks that the history contains every poll, to the ns."""
    won = lost = 0
    for vcpu_key, polls in sorted(world.polls.items()):
        reported = world.reported(*vcpu_key)
        known = [i for i in reported if i[2] != "untold"]
        first = min((i[0] for i in known), default=1 << 63)
        check(known == [p for p in polls if p[0] >= first], f"{vcpu_key}: {len(known)} polls are exact")
        check(not any(i[2] == "untold" and i[0] > first for i in reported), "all halts after the first event with the limit")
        won += sum(p[2] == "won" for p in known)
        lost += sum(p[2] == "lost" for p in known)
    return won, lost


def check_rows(world):
    """Checks the command's figures against the intervals and the truth."""
    rows = {(r["machine"], r["vcpu"], r["outcome"]): r for r in table("waits", world.history, "--polling")}
    others_ns = 0
    for vcpu_key in world.polls:
        status = world.truth[f"/Virtual Machines/{vcpu_key[0]}/CPUs/CPU{vcpu_key[1]}/Status"]
        for outcome in ("won", "lost"):
            polls = [p for p in world.reported(*vcpu_key) if p[2] == outcome]
            if not polls:
                check((*vcpu_key, outcome) not in rows, f"{vcpu_key}: no poll {outcome}")
                continue
            r = rows[(*vcpu_key, outcome)]
            ns = sum(p[1] - p[0] + 1 for p in polls)
            check((int(r["count"]), int(r["polled_ns"])) == (len(polls), ns), f"{vcpu_key}: {len(polls)} {outcome}, {ns} ns")
            named = 0 < int(r["victim_ns"] or 0) <= int(r["others_ns"]) if r["victim"] else int(r["others_ns"]) == 0
            check(named, f"{vcpu_key}: {r['victim'] or 'nobody'} waited {r['victim_ns']} of {r['others_ns']} ns")
            waited = sum(world.waited(*vcpu_key, p) for p in polls)
            check(int(r["others_ns"]) == waited, f"others waited {waited} ns for it")
            others_ns += waited
            if outcome == "won":  # the guest continues with the first entry
                after = [next((s for s in status if s[0] > p[1] and s[2] in ("RUNNING", "IDLE")), None) for p in polls]
                after = [s[0] - p[1] - 1 for s, p in zip(after, polls) if s]
                check([int(r[f"wake_{c}_ns"]) for c in ("p50", "p99", "max")] ==
                      [percentile(after, 50), percentile(after, 99), max(after)], f"continued within {max(after)} ns")
    return others_ns


with scratch() as folder:
    won = lost = others_ns = 0
    for args in (("chain", "--duration", "400ms", "--poll", "3ms"), ("overcommit", "3", "--duration", "500ms", "--poll", "5ms")):
        world = World(folder, *args)
        of_world = check_polls(world)
        others_ns += check_rows(world)
        won, lost = won + of_world[0], lost + of_world[1]
    check(won > 20 and lost > 20 and others_ns > 0, f"{won} won, {lost} lost, others waited for {others_ns} ns")

    by_vm = {}
    for r in table("waits", world.history, "--polling"):
        of_vm = by_vm.setdefault(r["machine"], {"won": 0, "lost": 0})
        of_vm[r["outcome"]] += int(r["polled_ns"])
    for r in table("summary", world.history):
        if not r["tid"] and r["machine"] in by_vm:
            check((int(r["poll_won_ns"]), int(r["poll_lost_ns"])) ==
                  (by_vm[r["machine"]]["won"], by_vm[r["machine"]]["lost"]), f"{r['machine']}: the same in summary")
    text = run("summary", world.history).stdout
    check("poll" in text, "the text of summary mentions polling")

    unpolled = f"{folder}/fibonacci.steal"
    run("index", f"{DATA}/fibonacci", "-o", unpolled)
    p = run("waits", unpolled, "--polling", "--format", "csv")
    check(p.stdout.count("\n") == 1 and "kvm_vcpu_wakeup" in p.stderr and "kvm_halt_poll_ns" in p.stderr,
          "without the events: no rows, and a warning names the events")
    check(all(r["poll_won_ns"] == r["poll_lost_ns"] == "" for r in table("summary", unpolled)), "no figures in summary")

    # A recording with one of the two events: only the sleeps of its vCPUs are known.
    trace = os.path.join(SHARED, "hostonly_tc", "host.dat")
    if os.path.exists(trace):
        history = f"{folder}/tc.steal"
        run("index", "--host", trace, "-o", history)
        p = run("waits", history, "--polling", "--format", "csv")
        check(p.stdout.count("\n") == 1 and "3 vCPUs" in p.stderr and "kvm_halt_poll_ns" in p.stderr,
              "hostonly_tc: the polling limit is unknown: no rows")
        check(all(r["poll_won_ns"] == "" for r in table("summary", history)), "no figures in summary")
