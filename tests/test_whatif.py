#!/usr/bin/env python3
"""`stealscope whatif` says what a recording without the change shows.

The simulator runs a request server twice: undisturbed, and with one thing planted beside it.  From the disturbed run alone
the replay without that thing must tell the latencies of the undisturbed one, within its intervals.

Usage: test_whatif.py [FROM TO]   (seeds: then it counts; 90 % of the figures must lie in their intervals)"""
import json
import os
import re
import sys

from e2e import SHARED, check, is_brief, run, scratch, simulate, table

CHANGES = {"vm": "without Ubuntu", "pin": "pin Debian -> CPU1", "quota": "no quota Debian", "weight": "without host/make"}
LEVELS = {"latency_p50": 0.5, "latency_p90": 0.9, "latency_p99": 0.99}


# What is given, not taken away: how the disturbed run is made, and how the one with the change made.
GIVEN = {"weight Debian 50": (["vm"], ["vm", "--share", "50"]), "weight Debian 70": (["vm"], ["vm", "--share", "70"]),
         "weight Debian 200": (["vm"], ["vm", "--share", "200"]), "weight Debian 400": (["vm"], ["vm", "--share", "400"]),
         "add CPU": (["crowd"], ["crowd", "--pcpus", "3"])}
SATURATED = {"weight Debian 50", "weight Debian 70"}  # its requests come before the last ones are answered
# Who of crowd may leave its CPU, no event tells.
FREE = ["free Debian", "free Ubuntu", "free host/burnP6"]


def recorded(folder, cause, seed, *more):
    """The history of a run."""
    name = "".join((cause, *more))
    history, traces = f"{folder}/{name}-{seed}.steal", f"{folder}/{name}-{seed}"
    if not os.path.exists(history):
        simulate(traces, "planted", "--plant", cause, *more, "--seed", str(seed), "--duration", "12s")
        run("index", traces, "-o", history)
    return history


def quantile(values, p):
    values, at = sorted(values), p * len(values) - 0.5
    low = min(max(int(at), 0), len(values) - 2)
    return values[low] + min(max(at - low, 0), 1) * (values[low + 1] - values[low])


def latencies(history):
    return [int(r["latency_ns"]) for r in table("latency", "requests", history)]


def predictions(history, *changes):
    return {r["quantity"]: r for r in table("whatif", history, *changes) if r["kind"] == "requests"}


def is_inside(row, truth):
    return float(row["low"]) <= truth <= float(row["high"])


def count(folder, first, last):
    """Figures whose truth lies in its interval, and the medians, told and true, by what was planted."""
    told = {cause: [] for cause in (*CHANGES, *GIVEN)}
    medians = {cause: [] for cause in (*CHANGES, *GIVEN)}

    def judge(cause, rows, truth):
        told[cause] += [is_inside(rows[q], quantile(truth, p)) for q, p in LEVELS.items() if q in rows]
        if "latency_p50" in rows:
            medians[cause].append((float(rows["latency_p50"]["value"]), quantile(truth, 0.5)))

    for seed in range(first, last + 1):
        truth = latencies(recorded(folder, "none", seed))
        for cause, change in CHANGES.items():
            rows = predictions(recorded(folder, cause, seed + 1000), change)
            check(set(rows) == set(LEVELS) or cause == "quota", f"{change}: all levels")
            judge(cause, rows, truth)
        for change, (before, after) in GIVEN.items():
            more = FREE if change == "add CPU" else []
            rows = predictions(recorded(folder, *before[:1], seed + 1000, *before[1:]), change, *more)
            judge(change, rows, latencies(recorded(folder, *after[:1], seed, *after[1:])))
        os.unlink(recorded(folder, "none", seed))
    return told, medians


def check_refusals(folder):
    disturbed = recorded(folder, "vm", 1001)
    for change, status in (("without nobody", 1), ("without Debian/reqserver", 2), ("without host", 2), ("pin Debian -> CPU9", 1),
                           ("pin Debian", 1), ("free", 1), ("free nobody", 1), ("weight Debian", 1), ("weight Debian 0", 1), ("weight Debian 99999", 1),
                           ("weight Debian 1.5", 1), ("hello", 1), ("without ", 1), ("no quota Debian", 2)):
        p = run("whatif", disturbed, change, status=status)
        check(not p.stdout and p.stderr.count("\n") == 1, f"refused: {change}: {p.stderr.strip()}")
    for changes, why in ((["pin Debian -> CPU0", "pin Debian -> CPU1"], "contradict each other about"),
                         (["pin Debian/CPU0 -> CPU0", "free Debian"], "contradict"), (["weight Debian 50", "weight Debian 60"], "contradict"),
                         (["without Debian", "weight Debian 50"], "contradict"), (["add CPU", "pin Debian -> CPU3"], "no CPU3"),
                         (["weight Debian 0"], "'0' is no weight"), (["pin Debian -> CPU-1"], "'CPU-1' is no CPU")):
        check(why in run("whatif", disturbed, *changes, status=1).stderr, f"{changes}: {why}")
    check("63 at most" in run("whatif", disturbed, *["add CPU"] * 70, status=2).stderr, "nor more CPUs than it can replay")
    run("whatif", disturbed, status=1)
    simulate(f"{folder}/lost", "requests", "--duration", "2s", "--lost", "0.3")
    p = run("whatif", f"{folder}/lost", "without burnP6", status=2)
    check("events were lost" in p.stderr, "where events were lost nothing is told")
    simulate(f"{folder}/guest", "requests", "--duration", "1s", "--missing", "host")
    run("whatif", f"{folder}/guest", "add CPU", status=2)


def check_advice(folder):
    """The change that takes away what was planted, or does as well for less."""
    last = lambda *args: " ".join(run(*args, "--advise").stdout.rsplit("\n\n", 1)[-1].split())
    pinned, beside, alone = (recorded(folder, *run_of) for run_of in (("pin", 1001), ("weight", 1001), ("none", 2)))
    check("'pin Debian -> CPU1' would help Debian most" in last("summary", pinned, "Debian"), "summary: back to its CPU")
    check("'pin Debian -> CPU1'" in last("explain", pinned, "Debian/reqserver"), "explain: of its VM")
    doubted = last("summary", recorded(folder, "idle", 1005), "Debian")
    check("'without host/make' would help" in doubted and "if all weigh what their nice levels say" in doubted, "a doubt goes along")
    check("if all weigh" not in last("summary", pinned, "Debian"), "where there is one")
    run("summary", pinned, "--advise", "--format", "csv", status=1)
    if is_brief():
        return
    check_advised(folder, 1)
    check("'without host/make'" in last("summary", beside), "of the one that lost most")
    check("No advice" in last("summary", alone, "Debian"), "who waits for nothing gets none")
    check("No advice" in last("summary", alone, "host"), "nor does the host")


# How a run is made in which an advised change is made.
ADVISED = {"no quota Debian": [], "pin Debian -> CPU0": ["--affinity", "1"], "pin Debian -> CPU1": ["--affinity", "2"],
           "free Debian": ["--affinity", "3"], "weight Debian 200": ["--share", "200"], "add CPU": ["--pcpus", "3"],
           "without Ubuntu": ["--without", "cc"], "without host/burnP6": ["--without", "burnP6"],
           "without host/make": ["--without", "make"]}


def check_advised(folder, seed):
    """What is advised helps, as much as is said."""
    for cause in ("vm", "pin", "quota", "idle"):
        text = " ".join(run("summary", recorded(folder, cause, seed + 1000), "Debian", "--advise").stdout.rsplit("\n\n", 1)[-1].split())
        told = re.search(r"'([^']*)' would help Debian most(?:, or nearly \([^)]*\))?: .* lose \S+ of a CPU to waiting for one(?:, not (\S+))? \((\S+) to ([0-9.]+%)", text)
        check(told and told[1] in ADVISED, f"{cause}: {text}")
        then = recorded(folder, "none" if told[1] == "no quota Debian" else cause, seed, *ADVISED[told[1]])
        rows = table("whatif", then, "free Debian")
        waits = 100 * next(float(r["recorded"]) for r in rows if (r["subject"], r["quantity"]) == ("Debian", "waited"))
        before, low, high = (float(t[:-1]) if t else None for t in told.groups()[1:])
        check(low - 0.005 <= waits <= high + 0.005 and (before is None or waits < before), f"{cause}, {told[1]}: then it waits {waits:.3f}%")
        check((told[1] == "no quota Debian") == (cause == "quota"), f"{cause}: {told[1]}")


def check_calibration(folder):
    """Turns as long as those recorded: with others the same is waited in all, and the requests take quite another time."""
    for seed in (1001, 1004):
        row = predictions(recorded(folder, "vm", seed), "weight Debian 200")["latency_p50"]
        off = float(row["reproduced"]) / float(row["recorded"]) - 1
        check(abs(off) < 0.03, f"the median is reproduced: {off:+.3f}")
    medians = [quantile(latencies(recorded(folder, "vm", seed, "--share", "200")), 0.5) for seed in (6, 9)]
    check(0.9 < medians[0] / medians[1] < 1.1, f"who wakes just before a tick is no further ahead: {medians}")
    row = predictions(recorded(folder, "quota", 1001), "no quota Debian")["latency_p50"]
    check(float(row["high"]) - float(row["low"]) < float(row["value"]),
          "what is missed of few waits does not widen what a quota did")
    row = predictions(recorded(folder, "vm", 1001), "weight Debian 200")["latency_p50"]
    wide = (float(row["high"]) - float(row["low"])) / float(row["value"])
    check(wide < 0.28, f"chance is not counted on the side where the model errs and on the other: {wide:.3f}")


def check_tail(folder):
    """Who waits for a disk in the midst of a request does so as soon as it gets there, not when it did."""
    off, wide = [], []
    for seed in (4, 5, 6, 7):
        row = predictions(recorded(folder, "vm", seed + 1000), "without Ubuntu")["latency_p99"]
        truth = quantile(latencies(recorded(folder, "none", seed)), 0.99)
        off.append(float(row["value"]) / truth - 1)
        wide.append((float(row["high"]) - float(row["low"])) / truth)
    check(abs(sum(off)) / len(off) < 0.1, f"p99 is not told too high {off}")
    check(sum(wide) / len(wide) < 0.75, f"nor is its interval as wide as by the clock {wide}")


def check_busy(folder):
    """Of a guest that always wants its vCPU nobody knows when its requests would have come by the clock."""
    says = lambda *how: " ".join(run("whatif", recorded(folder, *how), "weight Debian 100").stdout.split())
    check("Debian: its vCPU wanted a CPU for 99% of the time" in says("vm", 1005, "--nice", "6"), "which is said")
    check("wanted a CPU for" not in says("vm", 1001), "of no other")


def check_starved(folder):
    """Beside somebody who computes all along, and goes on when the window ends, requests of who weighs little pile up."""
    disturbed = recorded(folder, "vm", 1001)
    for weight in (25, 10):
        said = " ".join(run("whatif", disturbed, f"weight Debian {weight}").stdout.split())
        check("are not answered by the end of the window" in said and "latency_p" not in said, f"{weight}: not how late")
        row = next(r for r in table("whatif", disturbed, f"weight Debian {weight}") if r["subject"] == "Debian")
        then = table("summary", recorded(folder, "vm", 1, "--share", str(weight)), "Debian")
        truth = next(int(r["lost_ns"]) for r in then if not r["tid"]) / 12e9
        off = float(row["value"]) - truth
        check(is_inside(row, truth) and abs(off) < 0.16, f"{weight}: it waits for {truth:.2f} of the time, told {off:+.2f}")
    check(float(row["high"]) <= 1, "one vCPU waits no longer than all the time")


def check_vague(folder):
    """An interval that says nothing is no answer, and that is said."""
    starved = recorded(folder, "vm", 5002)
    said = " ".join(run("whatif", starved, "weight Debian 50").stdout.split())
    check("or several times as much or as little: Debian latency_p50 (" in said, "the median, of half the weight")
    check("latency_p50" not in predictions(starved, "weight Debian 50"), "in csv neither")


def check_company(folder):
    """In which order a guest does the work of requests that did not meet, no recording tells: of half the weight p99 came out a
    fifth too low, in intervals that did not have the truth in half of 200 recordings; without a quota half too high."""
    for cause, change, which in (("vm", "weight Debian 50", "more"), ("quota", "no quota Debian", "fewer")):
        said = " ".join(run("whatif", recorded(folder, cause, 1001), change).stdout.split())
        share = re.search(rf"not told \([a-z0-9_, ]*latency_p99\): (\d+)% {which} of the requests would come while", said)
        check(share and 5 <= int(share[1]) <= 20, f"{change}: p99 is not told")
        check("latency_p99" not in predictions(recorded(folder, cause, 1001), change), "in csv neither")
    check("of the requests would" not in run("whatif", recorded(folder, "vm", 1001), "weight Debian 200").stdout, "where it helps it is")


def check_unlimited(folder):
    """Without a quota p90 is what comes out if who is answered sooner goes on sooner, not half way to what the clock says."""
    off = []
    for seed in (4, 5, 6):
        row = predictions(recorded(folder, "quota", seed + 1000), "no quota Debian")["latency_p90"]
        off.append(float(row["value"]) / quantile(latencies(recorded(folder, "none", seed)), 0.9) - 1)
    check(abs(sum(off)) / len(off) < 0.1, f"p90 without a quota is told right {off}")
    unlimited = recorded(folder, "quota", 1002)
    said = " ".join(run("whatif", unlimited, "no quota Debian").stdout.split())
    check("is a guess" not in said and "of these and what quotas held back together" in said, "a quota's loss is known for sure")


def check_held(folder):
    """Who waits while its CPU is idle is held back by its quota, woken or not: nobody took its CPU."""
    unlimited = recorded(folder, "quota", 1001)
    rows = table("whatif", unlimited, "no quota Debian")
    waited = next(r for r in rows if (r["subject"], r["quantity"]) == ("Debian", "waited"))
    check(float(waited["recorded"]) < 0.01, f"it did not wait for a CPU: {waited['recorded']}")
    said = " ".join(run("whatif", unlimited, "no quota Debian").stdout.split())
    check("waited quite another time" not in said, "so its weight is not doubted")
    row = predictions(unlimited, "no quota Debian")["latency_p50"]
    check(float(row["high"]) < 1.6 * float(row["low"]), "and the median is told for sure")


def check_nice(folder):
    """Who is nice is so in the replay, and no longer when the change says so."""
    for cause, change, then in ((["vm", "--nice", "-5"], "weight Debian 100", "vm"), (["light"], "weight host/make 100", "weight")):
        history = recorded(folder, cause[0], 1005, *cause[1:])
        answer = json.loads(run("whatif", history, change, "--format", "json").stdout)
        check(answer["calibration"]["error"] < 0.1, f"{cause}: with its weight it is reproduced")
        rows, truth = predictions(history, change), latencies(recorded(folder, then, 5))
        inside = [is_inside(rows[q], quantile(truth, p)) for q, p in LEVELS.items()]
        check(sum(inside) >= 2, f"{change}: told {inside}")  # each is one of 95 %
        off = float(rows["latency_p50"]["value"]) / quantile(truth, 0.5) - 1
        check(abs(off) < 0.15, f"and the median is near: {off:+.3f}")


def check_doubted(folder):
    """Who is SCHED_IDLE, no event tells: that the waits do not come out is said; where they do, nothing is."""
    says = lambda cause, *more: " ".join(run("whatif", recorded(folder, cause, 1005, *more), "weight Debian 100").stdout.split())
    for wrong in (["idle"], ["vm", "--share", "200"]):
        check("waits of other lengths than those recorded" in says(*wrong), f"doubted: {wrong}")
    simulate(f"{folder}/idle", "planted", "--plant", "idle", "--seed", "1005", "--duration", "12s")
    tid = next(r["tid"] for r in table("summary", f"{folder}/idle", "host") if r["name"] == "make")
    with open(f"{folder}/idle/groups.yaml", "w", encoding="utf-8") as f:
        f.write(f"host: {{dir: host, weights: {{/idle: 3}}, groups: {{{tid}: /idle}}}}\nguests:\n"
                "  - {name: Ubuntu, dir: guest-Ubuntu}\n  - {name: Debian, dir: guest-Debian}\n")
    for change, then in (("without host/make", "none"), ("weight host/make 100", "weight")):
        rows, truth = predictions(f"{folder}/idle/groups.yaml", change), latencies(recorded(folder, then, 5))
        inside = [is_inside(rows[q], quantile(truth, p)) for q, p in LEVELS.items()]
        check(sum(inside) >= 2, f"{change}: told {inside}, where the session says it")  # each is one of 95 %
        check("control groups)" not in run("whatif", f"{folder}/idle/groups.yaml", change).stdout, "and not doubted")
    check(not any("control groups)" in says(right) for right in ("vm", "weight", "light", "pin", "quota")), "no others")


def check_untried(folder):
    """What two weigh against each other that never waited for one CPU, no recording tells."""
    says = lambda cause, *changes: " ".join(run("whatif", recorded(folder, cause, 1001), *changes).stdout.split())
    check("did not try what Debian and host/burnP6 weigh" in says("vm", "pin Debian -> CPU0"), "that is said")
    check("did not try" not in says("vm", "without Ubuntu") + says("pin", "pin Debian -> CPU0", "weight Debian 200"), "of no others")


def check_groups(folder):
    """Control groups share by the weights that the session tells."""
    simulate(f"{folder}/grouped", "planted", "--plant", "vm", "--share", "400", "--seed", "1005", "--duration", "12s")
    tid = table("info", f"{folder}/grouped")[0]["host_tid"]
    with open(f"{folder}/grouped/groups.yaml", "w", encoding="utf-8") as f:
        f.write("host: {dir: host, weights: {/vms/Debian: 4096}}\nguests:\n  - {name: Ubuntu, dir: guest-Ubuntu}\n"
                f"  - {{name: Debian, dir: guest-Debian, groups: {{{tid}: /vms/Debian}}}}\n")
    answer = {way: json.loads(run("whatif", f"{folder}/grouped{way}", "weight Debian 100", "--format", "json").stdout)
              for way in ("", "/groups.yaml")}
    said = " ".join(run("whatif", f"{folder}/grouped", "weight Debian 100").stdout.split())
    check("waited quite another time than in the replay without a change" in said, "unknown weights are doubted")
    check(answer[""]["calibration"]["error"] > 3 * answer["/groups.yaml"]["calibration"]["error"], "reproduced by their weights")
    check("the control groups of 1 of them share" in
          " ".join(run("whatif", f"{folder}/grouped/groups.yaml", "add CPU").stdout.split()), "which is said")
    rows, truth = predictions(f"{folder}/grouped/groups.yaml", "weight Debian 100"), latencies(recorded(folder, "vm", 5))
    inside = [is_inside(rows[q], quantile(truth, p)) for q, p in LEVELS.items()]
    check(sum(inside) >= 2, f"told: of the group that is its own {inside}")  # each is one of 95 %
    off = float(rows["latency_p50"]["value"]) / quantile(truth, 0.5) - 1
    check(abs(off) < 0.15, f"and the median is near: {off:+.3f}")


def check_pins(folder):
    """Who was seen on one CPU is pinned when it waited for that while another was idle; else that must be said."""
    crowd = recorded(folder, "crowd", 1002)
    p = run("whatif", crowd, "add CPU")
    check("hangs on whether Debian, host/burnP6 may" in " ".join(p.stdout.split()) and "latency" not in p.stdout,
          "not told: what hangs on who is pinned")
    free, pinned = predictions(crowd, "add CPU", *FREE), predictions(crowd, "add CPU", "pin Debian -> CPU0",
                                                                      "pin host/burnP6 -> CPU0", "free Ubuntu")
    truth = latencies(recorded(folder, "crowd", 2, "--pcpus", "3"))
    check(all(is_inside(free[q], quantile(truth, p)) for q, p in LEVELS.items()), "told: where all may go to the new CPU")
    check(abs(float(free["latency_p50"]["value"]) / quantile(truth, 0.5) - 1) < 0.1, "and the median is near")
    check(float(pinned["latency_p50"]["value"]) > 1.3 * float(free["latency_p50"]["value"]), "where they stay it does not help")
    told = set(predictions(recorded(folder, "quota", 1001), "no quota Debian"))
    check(told >= {"latency_p50", "latency_p90"}, "no quota: told")
    proved = recorded(folder, "pin", 1001)  # beside burnP6, while the other CPU has nothing to do
    check(set(predictions(proved, "add CPU")) == set(LEVELS), "what is proved is not asked for")


def check_shape(folder):
    disturbed = recorded(folder, "vm", 1001)
    text = run("whatif", disturbed, "without Ubuntu").stdout
    check("reproduces" in text and "latency_p50" in text and "at most" in text, "text tells how well it reproduces")
    answer = json.loads(run("whatif", disturbed, "without Ubuntu", "--format", "json").stdout)
    check(0 <= answer["calibration"]["error"] < 0.1, "a simulated scheduler is reproduced")
    check([r["quantity"] for r in answer["rows"]] == [r["quantity"] for r in table("whatif", disturbed, "without Ubuntu")],
          "csv has the rows of json")
    check(all(r["low"] <= r["value"] <= r["high"] for r in answer["rows"]), "a value lies in its interval")
    check(not any(r["subject"] == "Ubuntu" for r in answer["rows"]), "nothing is told of who is gone")
    check(run("whatif", disturbed, "without Ubuntu").stdout == text, "the same each time")
    # A change that changes nothing: what was reproduced comes out.
    same = table("whatif", disturbed, "pin Debian -> CPU1")
    check(all(float(r["low"]) <= float(r["reproduced"]) <= float(r["high"]) for r in same), "no change, no difference")
    more = predictions(disturbed, "weight Debian 400")["latency_p50"]
    check(float(more["value"]) < float(more["reproduced"]), "more weight, less latency")
    both = table("whatif", disturbed, "without Ubuntu", "pin Debian -> CPU0")
    alone = table("whatif", disturbed, "without Ubuntu")
    waited = [next(float(r["value"]) for r in t if r["quantity"] == "waited") for t in (both, alone)]
    check(waited[0] > waited[1] + 0.05, "changes add up: on the CPU of burnP6 it waits again")
    rows = table("whatif", disturbed, "add CPU", "pin Debian -> CPU2", "pin Debian/CPU0 -> CPU2")
    check(next(float(r["value"]) for r in rows if r["subject"] == "Debian" and r["quantity"] == "waited") < 0.02,
          "a new CPU may be pinned to, and the same said twice")


with scratch() as scratch_folder:
    if len(sys.argv) == 3:
        results, told_and_true = count(scratch_folder, int(sys.argv[1]), int(sys.argv[2]))
        all_off = []
        for name, hits in results.items():
            # One run's median differs from the next one's by 4 to 12 %, which no replay could know: held against their mean.
            truth = sum(true for _, true in told_and_true[name]) / max(1, len(told_and_true[name]))
            off = [value / truth - 1 for value, _ in told_and_true[name]]
            all_off += off
            if off:
                print(f"     {name}: {sum(hits)} of {len(hits)} inside, medians off by {sum(map(abs, off)) / len(off):.3f}, "
                      f"bias {sum(off) / len(off):+.3f}")
        few = int(sys.argv[2]) - int(sys.argv[1]) < 99  # their mean is not known well enough
        check(few or sum(map(abs, all_off)) <= 0.05 * len(all_off), f"medians are off by {sum(map(abs, all_off)) / len(all_off):.3f}")
        check(all(sum(hits) >= 0.9 * len(hits) for hits in results.values()), "the truth lies in the intervals")
        figures = len(LEVELS) * (int(sys.argv[2]) - int(sys.argv[1]) + 1)
        check(all(len(hits) >= 0.6 * figures for change, hits in results.items() if change not in SATURATED), "most are told")
        sys.exit(0)
    if not is_brief():
        results, _ = count(scratch_folder, 1, 1)
        hits = [hit for of in results.values() for hit in of]
        check(len(hits) >= 15 and hits.count(False) <= 1, f"what was planted is taken away again {results}")
        check_calibration(scratch_folder)
        check_tail(scratch_folder)
    check_refusals(scratch_folder)
    check_shape(scratch_folder)
    check_busy(scratch_folder)
    check_starved(scratch_folder)
    check_vague(scratch_folder)
    check_company(scratch_folder)
    check_unlimited(scratch_folder)
    check_held(scratch_folder)
    check_nice(scratch_folder)
    check_doubted(scratch_folder)
    check_untried(scratch_folder)
    check_groups(scratch_folder)
    check_pins(scratch_folder)
    check_advice(scratch_folder)
    if os.path.isdir(os.path.join(SHARED, "grid_h0_g1")) and not is_brief():
        inside, errors = [], []
        real = {name: f"{scratch_folder}/{name}.steal" for h in "012" for g in "136" for name in [f"grid_h{h}_g{g}"]}
        for name, file in real.items():
            run("index", os.path.join(SHARED, name), "-o", file)
        for g in "136":
            base = latencies(real[f"grid_h0_g{g}"])
            for h in "12":
                rows = predictions(real[f"grid_h{h}_g{g}"], "without host/burnP6")
                check("SCHED_IDLE, control" not in run("whatif", real[f"grid_h{h}_g{g}"], "without host/burnP6").stdout, "not doubted")
                inside += [is_inside(rows[q], quantile(base, p)) for q, p in LEVELS.items()]
                errors.append(abs(float(rows["latency_p50"]["value"]) / quantile(base, 0.5) - 1))
        check(sum(inside) >= 0.9 * len(inside), f"real ones: {sum(inside)} of {len(inside)} in their intervals")
        check(sum(errors) / len(errors) <= 0.05, f"and medians off by {sum(errors) / len(errors):.3f}")
        # Beside a quota a nice hog, then a hog; both began on CPU 0, and were then pinned to CPU 1 (NOTES: when).
        run("index", os.path.join(SHARED, "throttled"), "-o", f"{scratch_folder}/throttled.steal")
        wall = 1795302833461688345
        for begin, end, change, most in ((22028986655, 23882211290, "no quota Debian", 0.3), (23882211290, 25566267766, "without host/burnP6", 0.15)):
            window = [f"{scratch_folder}/throttled.steal", "--from", str(wall + begin), "--to", str(wall + end)]
            answer = json.loads(run("whatif", *window, change, "--format", "json").stdout)
            check(answer["calibration"]["error"] < most, f"who left a CPU for good does not go back: {answer['calibration']['error']:.2f}")
        run("index", os.path.join(SHARED, "smp"), "-o", f"{scratch_folder}/smp.steal")
        answer = json.loads(run("whatif", f"{scratch_folder}/smp.steal", "without host/burnP6", "--format", "json").stdout)
        check(answer["calibration"]["error"] < 0.2, f"who waits moves to other CPUs: {answer['calibration']['error']:.2f}")
        run("index", os.path.join(SHARED, "hostonly_tc"), "-o", f"{scratch_folder}/tc.steal")
        answer = json.loads(run("whatif", f"{scratch_folder}/tc.steal", "free Debian", "--format", "json").stdout)
        check(answer["calibration"]["error"] < 0.27, f"who lives shortly is not bound: {answer['calibration']['error']:.2f}")
        # Some hundred threads that live shortly: which of one name waits is chance, and how long all of them do is not.
        for name in ("migrate", "hostonly"):
            run("index", os.path.join(SHARED, name), "-o", f"{scratch_folder}/{name}.steal")
            said = " ".join(run("whatif", f"{scratch_folder}/{name}.steal", "free Debian").stdout.split())
            check("is a guess" not in said, f"{name}: what is told by names is reproduced by names")
        said = " ".join(run("summary", real["grid_h2_g3"], "--advise").stdout.split())
        check("'pin Debian -> CPU0' would help Debian most, or nearly ('without host/burnP6': 0." in said, "what helps more is told")
        said = run("whatif", real["grid_h1_g3"], "weight Debian 50").stdout
        check("Debian waited (" in said and "none" not in said.split() and "who " not in said, "no table of nothing")
        said = " ".join(run("summary", f"{scratch_folder}/throttled.steal", "--advise").stdout.split())
        check("'no quota Debian' would help Debian most: its quota keeps it from its CPU for 36.8% of the time" in said, "a quota's loss")
        run("index", os.path.join(SHARED, "fibonacci_perf"), "-o", f"{scratch_folder}/perf.steal")
        waits = table("whatif", f"{scratch_folder}/perf.steal", "without host/burnP6")[0]
        check(abs(float(waits["recorded"]) - 4.784 / 17.893) < 0.01 and float(waits["value"]) < 0.01,
              "who is not known to sleep, and did not run on CPUs that were seen, wanted none")
        run("index", os.path.join(SHARED, "soroban_contended"), "-o", f"{scratch_folder}/contended.steal")
        median = predictions(f"{scratch_folder}/contended.steal", "without host/burnP6")["latency_p50"]
        check(abs(float(median["value"]) / 76.8e6 - 1) < 0.05 and is_inside(median, 76.8e6), "soroban_contended, without burnP6")
