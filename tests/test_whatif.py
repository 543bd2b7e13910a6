#!/usr/bin/env python3
"""`stealscope whatif` predicts the effect of a change from a recording without it.

The simulator runs a request server twice: undisturbed, and with one planted disturbance.  The replay of the disturbed run
without that disturbance must predict the latencies of the undisturbed run, within its intervals.

Usage: test_whatif.py [FROM TO]   (seeds: counts; 90 % of the figures must be in their intervals)"""
import json
import os
import re
import sys

from e2e import SHARED, check, codes, is_brief, joined, notes, run, scratch, simulate, table

CHANGES = {"vm": "without Ubuntu", "pin": "pin Debian -> CPU1", "quota": "no quota Debian", "weight": "without host/make"}
LEVELS = {"latency_p50": 0.5, "latency_p90": 0.9, "latency_p99": 0.99}


# Changes that add something: options of the simulated run before the change, and of the run with it.
ADDED = {"weight Debian 50": (["vm"], ["vm", "--share", "50"]), "weight Debian 70": (["vm"], ["vm", "--share", "70"]),
         "weight Debian 200": (["vm"], ["vm", "--share", "200"]), "weight Debian 400": (["vm"], ["vm", "--share", "400"]),
         "add CPU": (["crowd"], ["crowd", "--pcpus", "3"])}
SATURATED = {"weight Debian 50", "weight Debian 70"}  # requests arrive before earlier ones are answered
# No event of `crowd` shows which machines may leave their CPU; these changes answer that.
FREE = ["free Debian", "free Ubuntu", "free host/burnP6"]


def recorded(folder, cause, seed, *more):
    """Returns the history of a run."""
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


def relative_error(row, truth):
    return float(row["value"]) / truth - 1


def whatif(history, *changes):
    return json.loads(run("whatif", history, *changes, "--format", "json").stdout)


def count(folder, first, last):
    """Returns, for each change, whether each true figure is in its predicted interval, and pairs of the predicted and the true
    median."""
    inside = {cause: [] for cause in (*CHANGES, *ADDED)}
    medians = {cause: [] for cause in (*CHANGES, *ADDED)}

    def judge(cause, rows, truth):
        inside[cause] += [is_inside(rows[q], quantile(truth, p)) for q, p in LEVELS.items() if q in rows]
        if "latency_p50" in rows:
            medians[cause].append((float(rows["latency_p50"]["value"]), quantile(truth, 0.5)))

    for seed in range(first, last + 1):
        truth = latencies(recorded(folder, "none", seed))
        for cause, change in CHANGES.items():
            rows = predictions(recorded(folder, cause, seed + 1000), change)
            check(set(rows) == set(LEVELS) or cause == "quota", f"{change}: all levels")
            judge(cause, rows, truth)
        for change, (before, after) in ADDED.items():
            more = FREE if change == "add CPU" else []
            rows = predictions(recorded(folder, *before[:1], seed + 1000, *before[1:]), change, *more)
            judge(change, rows, latencies(recorded(folder, *after[:1], seed, *after[1:])))
        os.unlink(recorded(folder, "none", seed))
    return inside, medians


def check_refusals(folder):
    disturbed = recorded(folder, "vm", 1001)
    for change, status in (("without nobody", 1), ("without Debian/reqserver", 2), ("without host", 2), ("pin Debian -> CPU9", 1),
                           ("pin Debian", 1), ("free", 1), ("free nobody", 1), ("weight Debian", 1), ("weight Debian 0", 1), ("weight Debian 99999", 1),
                           ("weight Debian 1.5", 1), ("hello", 1), ("without ", 1), ("no quota Debian", 2)):
        p = run("whatif", disturbed, change, status=status)
        check(not p.stdout and p.stderr.count("\n") == 1, f"refused: {change}: {p.stderr.strip()}")
    for changes, text in ((["pin Debian -> CPU0", "pin Debian -> CPU1"], "contradict"),
                          (["pin Debian/CPU0 -> CPU0", "free Debian"], "contradict"), (["weight Debian 50", "weight Debian 60"], "contradict"),
                          (["without Debian", "weight Debian 50"], "contradict"), (["add CPU", "pin Debian -> CPU3"], "CPU3"),
                          (["weight Debian 0"], "'0'"), (["pin Debian -> CPU-1"], "'CPU-1'")):
        check(text in run("whatif", disturbed, *changes, status=1).stderr, f"{changes}: {text}")
    check("63" in run("whatif", disturbed, *["add CPU"] * 70, status=2).stderr, "the limit of CPUs is printed")
    run("whatif", disturbed, status=1)
    simulate(f"{folder}/lost", "requests", "--duration", "2s", "--lost", "0.3")
    p = run("whatif", f"{folder}/lost", "without burnP6", status=2)
    check("lost" in p.stderr and p.stdout == "", "with lost events there is no answer")
    simulate(f"{folder}/guest", "requests", "--duration", "1s", "--missing", "host")
    run("whatif", f"{folder}/guest", "add CPU", status=2)


def advice(*args):
    """Returns the last paragraph of the output, without line breaks."""
    return joined(run(*args, "--advise").stdout.rsplit("\n\n", 1)[-1])


def check_advice(folder):
    """The advice is to remove the planted disturbance, or a cheaper change with nearly the same effect."""
    pinned, weighted, alone = (recorded(folder, *how) for how in (("pin", 1001), ("weight", 1001), ("none", 2)))
    check("'pin Debian -> CPU1'" in advice("summary", pinned, "Debian"), "summary: back to its CPU")
    check("'pin Debian -> CPU1'" in advice("explain", pinned, "Debian/reqserver"), "explain: the change of its VM")
    uncertain = advice("summary", recorded(folder, "idle", 1005), "Debian")
    check("'without host/make'" in uncertain and "nice levels" in uncertain, "the advice contains its assumption")
    check("nice levels" not in advice("summary", pinned, "Debian"), "but only if it matters")
    run("summary", pinned, "--advise", "--format", "csv", status=1)
    if is_brief():
        return
    check_advised(folder, 1)
    check("'without host/make'" in advice("summary", weighted), "without a target: for the machine that lost most")
    check("'" not in advice("summary", alone, "Debian"), "no change is advised for a machine that does not wait")
    check("'" not in advice("summary", alone, "host"), "nor for the host")


# Options of the simulator that apply an advised change.
ADVISED = {"no quota Debian": [], "pin Debian -> CPU0": ["--affinity", "1"], "pin Debian -> CPU1": ["--affinity", "2"],
           "free Debian": ["--affinity", "3"], "weight Debian 200": ["--share", "200"], "add CPU": ["--pcpus", "3"],
           "without Ubuntu": ["--without", "cc"], "without host/burnP6": ["--without", "burnP6"],
           "without host/make": ["--without", "make"]}


def check_advised(folder, seed):
    """An advised change helps as much as predicted."""
    for cause in ("vm", "pin", "quota", "idle"):
        text = advice("summary", recorded(folder, cause, seed + 1000), "Debian")
        change, interval = re.search(r"'([^']*)'", text), re.search(r"\(([0-9.]+)% to ([0-9.]+)%", text)
        check(change and change[1] in ADVISED and interval, f"{cause}: {text}")
        before = re.search(r"not ([0-9.]+)% \(", text)
        after = recorded(folder, "none" if change[1] == "no quota Debian" else cause, seed, *ADVISED[change[1]])
        rows = table("whatif", after, "free Debian")
        waits = 100 * next(float(r["recorded"]) for r in rows if (r["target"], r["quantity"]) == ("Debian", "waited"))
        check(float(interval[1]) - 0.005 <= waits <= float(interval[2]) + 0.005 and (not before or waits < float(before[1])),
              f"{cause}, {change[1]}: with it, Debian waits {waits:.3f}%")
        check((change[1] == "no quota Debian") == (cause == "quota"), f"{cause}: {change[1]}")


def check_calibration(folder):
    """The replay uses slices as long as the recorded ones: other slices give the same total wait, but other latencies."""
    for seed in (1001, 1004):
        row = predictions(recorded(folder, "vm", seed), "weight Debian 200")["latency_p50"]
        error = float(row["reproduced"]) / float(row["recorded"]) - 1
        check(abs(error) < 0.03, f"the median is reproduced: {error:+.3f}")
    medians = [quantile(latencies(recorded(folder, "vm", seed, "--share", "200")), 0.5) for seed in (6, 9)]
    check(0.9 < medians[0] / medians[1] < 1.1, f"a wakeup just before a tick gains no advantage: {medians}")
    row = predictions(recorded(folder, "quota", 1001), "no quota Debian")["latency_p50"]
    check(float(row["high"]) - float(row["low"]) < float(row["value"]),
          "errors of a few waits do not widen the interval for a quota")
    row = predictions(recorded(folder, "vm", 1001), "weight Debian 200")["latency_p50"]
    width = (float(row["high"]) - float(row["low"])) / float(row["value"])
    check(width < 0.28, f"the sampling error is counted on one side of the interval only: {width:.3f}")


def check_tail(folder):
    """A thread that waits for a disk in the middle of a request begins to wait when it gets there in the replay, not at the
    recorded time."""
    errors, widths = [], []
    for seed in (4, 5, 6, 7):
        row = predictions(recorded(folder, "vm", seed + 1000), "without Ubuntu")["latency_p99"]
        truth = quantile(latencies(recorded(folder, "none", seed)), 0.99)
        errors.append(relative_error(row, truth))
        widths.append((float(row["high"]) - float(row["low"])) / truth)
    check(abs(sum(errors)) / len(errors) < 0.1, f"p99 has no bias {errors}")
    check(sum(widths) / len(widths) < 0.75, f"and its interval is narrower than with recorded times {widths}")


def check_busy(folder):
    """The arrival times of requests are unknown for a guest that is always runnable: they may depend on earlier answers."""
    notes_of = lambda *how: codes("whatif", recorded(folder, *how), "weight Debian 100")
    check("requests-closed-loop" in notes_of("vm", 1005, "--nice", "6"), "a note about it")
    check("requests-closed-loop" not in notes_of("vm", 1001), "only for such a guest")


def check_starved(folder):
    """If a machine with a low weight competes with one that always computes, its requests pile up until the window ends."""
    disturbed = recorded(folder, "vm", 1001)
    for weight in (25, 10):
        answer = whatif(disturbed, f"weight Debian {weight}")
        check("requests-overloaded" in {n["code"] for n in answer["notes"]} and
              not any(r["quantity"].startswith("latency") for r in answer["rows"]), f"{weight}: no latencies")
        row = next(r for r in table("whatif", disturbed, f"weight Debian {weight}") if r["target"] == "Debian")
        after = table("summary", recorded(folder, "vm", 1, "--share", str(weight)), "Debian")
        truth = next(int(r["lost_ns"]) for r in after if not r["tid"]) / 12e9
        error = float(row["value"]) - truth
        check(is_inside(row, truth) and abs(error) < 0.16, f"{weight}: it waits for {truth:.2f} of the time, error {error:+.2f}")
    check(float(row["high"]) <= 1, "a single vCPU waits at most all the time")


def check_vague(folder):
    """Very wide intervals are left out, and a note lists them."""
    answer = whatif(recorded(folder, "vm", 5002), "weight Debian 50")
    omitted = next(n["text"] for n in answer["notes"] if n["code"] == "replay-too-uncertain")
    check("Debian latency_p50 (" in omitted, f"the median with half the weight: {omitted}")
    check("latency_p50" not in {r["quantity"] for r in answer["rows"] if r["target"] == "Debian"}, "no row for it")


def check_overlap(folder):
    """A recording does not show in which order a guest would serve requests that did not overlap: with half the weight,
    predictions of p99 were a fifth too low, and half of 200 intervals missed the truth; without a quota they were half too
    high."""
    for cause, change, word in (("vm", "weight Debian 50", "more"), ("quota", "no quota Debian", "fewer")):
        answer = whatif(recorded(folder, cause, 1001), change)
        text = next(n["text"] for n in answer["notes"] if n["code"] == "requests-reordered")
        share = re.search(rf"\([a-z0-9_, ]*latency_p99\).* (\d+)% {word} ", text)
        check(share and 5 <= int(share[1]) <= 20, f"{change}: {text}")
        check("latency_p99" not in {r["quantity"] for r in answer["rows"]}, "no row for p99")
    check("requests-reordered" not in codes("whatif", recorded(folder, "vm", 1001), "weight Debian 200"), "only if more overlap")
    found = whatif(recorded(folder, "vm", 1001), "without Ubuntu")["calibration"]
    check(found["error"] < 0.02 and found["slice_ns"] in (2000000, 4000000), f"the simulator's slice of 4 ms, on a tick: {found}")
    # Requests overlapped because the VM waited, not because of a quota: fewer overlaps do not change their order.
    answer = whatif(recorded(folder, "vm", 1, "--share", "25"), "without Ubuntu")
    check("requests-reordered" not in {n["code"] for n in answer["notes"]} and
          {"latency_p50", "latency_p90", "latency_p99"} <= {r["quantity"] for r in answer["rows"]}, "fewer overlaps without a quota")


def check_unlimited(folder):
    """Without a quota, p90 follows from requests that arrive after earlier answers, not from recorded arrival times."""
    errors = []
    for seed in (4, 5, 6):
        row = predictions(recorded(folder, "quota", seed + 1000), "no quota Debian")["latency_p90"]
        errors.append(relative_error(row, quantile(latencies(recorded(folder, "none", seed)), 0.9)))
    check(abs(sum(errors)) / len(errors) < 0.1, f"p90 without a quota has no bias {errors}")
    answer = whatif(recorded(folder, "quota", 1002), "no quota Debian")
    check("replay-inaccurate" not in {n["code"] for n in answer["notes"]}, "the replay reproduces throttling")
    together = re.search(r"(\d+)% of waits and quota", joined(run("whatif", recorded(folder, "quota", 1002), "no quota Debian").stdout))
    check(together and int(together[1]) > 90, f"waits and throttling together are reproduced: {together and together[0]}")


def check_throttled(folder):
    """A vCPU that waits while its pCPU is idle is throttled by its quota, and does not compete for a CPU."""
    limited = recorded(folder, "quota", 1001)
    rows = table("whatif", limited, "no quota Debian")
    waited = next(r for r in rows if (r["target"], r["quantity"]) == ("Debian", "waited"))
    check(float(waited["recorded"]) < 0.01, f"it did not wait for a CPU: {waited['recorded']}")
    check("replay-wait-differs" not in codes("whatif", limited, "no quota Debian"), "its weight is not in question")
    row = predictions(limited, "no quota Debian")["latency_p50"]
    check(float(row["high"]) < 1.6 * float(row["low"]), "the interval of the median is narrow")


def check_nice(folder):
    """The replay uses recorded nice levels, unless a change replaces them."""
    for cause, change, after in ((["vm", "--nice", "-5"], "weight Debian 100", "vm"), (["light"], "weight host/make 100", "weight")):
        history = recorded(folder, cause[0], 1005, *cause[1:])
        check(whatif(history, change)["calibration"]["error"] < 0.1, f"{cause}: reproduced with its nice level")
        check_truth(predictions(history, change), latencies(recorded(folder, after, 5)), change)


def check_truth(rows, truth, change, median=True):
    """Two of three true figures are in their intervals (each has 95 %), and the median is close."""
    inside = [is_inside(rows[q], quantile(truth, p)) for q, p in LEVELS.items()]
    check(sum(inside) >= 2, f"{change}: figures inside their intervals: {inside}")
    error = relative_error(rows["latency_p50"], quantile(truth, 0.5))
    check(not median or abs(error) < 0.15, f"{change}: the median is close: {error:+.3f}")


def check_weights(folder):
    """No event shows SCHED_IDLE: notes report that the replayed waits differ, and only then."""
    notes_of = lambda cause, *more: codes("whatif", recorded(folder, cause, 1005, *more), "weight Debian 100")
    for other in (["idle"], ["vm", "--share", "200"]):
        check("replay-weights-differ" in notes_of(*other), f"a note about weights: {other}")
    simulate(f"{folder}/idle", "planted", "--plant", "idle", "--seed", "1005", "--duration", "12s")
    tid = next(r["tid"] for r in table("summary", f"{folder}/idle", "host") if r["name"] == "make")
    with open(f"{folder}/idle/groups.yaml", "w", encoding="utf-8") as f:
        f.write(f"host: {{dir: host, weights: {{/idle: 3}}, groups: {{{tid}: /idle}}}}\nguests:\n"
                "  - {name: Ubuntu, dir: guest-Ubuntu}\n  - {name: Debian, dir: guest-Debian}\n")
    for change, after in (("without host/make", "none"), ("weight host/make 100", "weight")):
        check_truth(predictions(f"{folder}/idle/groups.yaml", change), latencies(recorded(folder, after, 5)),
                    f"{change}, weights in the session", median=False)
        check("replay-weights-differ" not in codes("whatif", f"{folder}/idle/groups.yaml", change), "no note about weights")
    check(not any("replay-weights-differ" in notes_of(cause) for cause in ("vm", "weight", "light", "pin", "quota")),
          "no note for the others")


def check_untested(folder):
    """The relative weights of two threads that never waited for the same CPU are unknown."""
    notes_of = lambda cause, *changes: notes("whatif", recorded(folder, cause, 1001), *changes)
    untested = [n["text"] for n in notes_of("vm", "pin Debian -> CPU0") if n["code"] == "replay-weights-untested"]
    check(len(untested) == 1 and "Debian" in untested[0] and "host/burnP6" in untested[0], f"a note about it: {untested}")
    others = notes_of("vm", "without Ubuntu") + notes_of("pin", "pin Debian -> CPU0", "weight Debian 200")
    check("replay-weights-untested" not in {n["code"] for n in others}, "not for others")


def check_groups(folder):
    """The replay uses the weights of control groups if the session has them."""
    simulate(f"{folder}/grouped", "planted", "--plant", "vm", "--share", "400", "--seed", "1005", "--duration", "12s")
    tid = table("info", f"{folder}/grouped")[0]["host_tid"]
    with open(f"{folder}/grouped/groups.yaml", "w", encoding="utf-8") as f:
        f.write("host: {dir: host, weights: {/vms/Debian: 4096}}\nguests:\n  - {name: Ubuntu, dir: guest-Ubuntu}\n"
                f"  - {{name: Debian, dir: guest-Debian, groups: {{{tid}: /vms/Debian}}}}\n")
    unknown, known = (whatif(f"{folder}/grouped{session}", "weight Debian 100") for session in ("", "/groups.yaml"))
    check("replay-wait-differs" in {n["code"] for n in unknown["notes"]}, "a note about unknown weights")
    check("replay-wait-differs" not in {n["code"] for n in known["notes"]}, "none with known ones")
    check(unknown["calibration"]["error"] > 3 * known["calibration"]["error"], "known weights reproduce the recording")
    check("control groups of 1 of them" in joined(run("whatif", f"{folder}/grouped/groups.yaml", "add CPU").stdout),
          "the assumptions contain the number of control groups")
    check_truth(predictions(f"{folder}/grouped/groups.yaml", "weight Debian 100"), latencies(recorded(folder, "vm", 5)),
                "a weight within its own group")


def check_pins(folder):
    """A thread that was seen on one CPU only is known to be pinned if it waited for that CPU while another was idle."""
    crowd = recorded(folder, "crowd", 1002)
    answer = whatif(crowd, "add CPU")
    unknown = [n["text"] for n in answer["notes"] if n["code"] == "replay-pinning-unknown"]
    check(len(unknown) == 1 and "Debian, host/burnP6" in unknown[0] and
          not any(r["quantity"].startswith("latency") for r in answer["rows"]), f"figures that depend on it are omitted: {unknown}")
    free, pinned = predictions(crowd, "add CPU", *FREE), predictions(crowd, "add CPU", "pin Debian -> CPU0",
                                                                      "pin host/burnP6 -> CPU0", "free Ubuntu")
    truth = latencies(recorded(folder, "crowd", 2, "--pcpus", "3"))
    check(all(is_inside(free[q], quantile(truth, p)) for q, p in LEVELS.items()), "if all may use the new CPU, all figures are right")
    check(abs(relative_error(free["latency_p50"], quantile(truth, 0.5))) < 0.1, "and the median is close")
    check(float(pinned["latency_p50"]["value"]) > 1.3 * float(free["latency_p50"]["value"]), "if they stay, it does not help")
    predicted = set(predictions(recorded(folder, "quota", 1001), "no quota Debian"))
    check(predicted >= {"latency_p50", "latency_p90"}, "no quota: predicted")
    proved = recorded(folder, "pin", 1001)  # competes with burnP6 while the other CPU is idle
    check(set(predictions(proved, "add CPU")) == set(LEVELS), "a proved pinning needs no further change")


def check_shape(folder):
    disturbed = recorded(folder, "vm", 1001)
    text = run("whatif", disturbed, "without Ubuntu").stdout
    check(all(word in text for word in ("reproduces", "latency_p50", "at most")), "the text has intervals and the replay's quality")
    answer = whatif(disturbed, "without Ubuntu")
    check(0 <= answer["calibration"]["error"] < 0.1, "the simulated scheduler is reproduced")
    check([r["quantity"] for r in answer["rows"]] == [r["quantity"] for r in table("whatif", disturbed, "without Ubuntu")],
          "csv has the rows of json")
    check(all(r["low"] <= r["value"] <= r["high"] for r in answer["rows"]), "each value is in its interval")
    check(not any(r["target"] == "Ubuntu" for r in answer["rows"]), "no row about the removed VM")
    check(run("whatif", disturbed, "without Ubuntu").stdout == text, "the same each time")
    # A change without effect: the interval contains the reproduced value.
    same = table("whatif", disturbed, "pin Debian -> CPU1")
    check(same and all(float(r["low"]) <= float(r["reproduced"]) <= float(r["high"]) for r in same), "no change, no difference")
    more = predictions(disturbed, "weight Debian 400")["latency_p50"]
    check(float(more["value"]) < float(more["reproduced"]), "more weight, less latency")
    both = table("whatif", disturbed, "without Ubuntu", "pin Debian -> CPU0")
    alone = table("whatif", disturbed, "without Ubuntu")
    waited = [next(float(r["value"]) for r in t if r["quantity"] == "waited") for t in (both, alone)]
    check(waited[0] > waited[1] + 0.05, "several changes: on the CPU of burnP6 it waits again")
    rows = table("whatif", disturbed, "add CPU", "pin Debian -> CPU2", "pin Debian/CPU0 -> CPU2")
    check(next(float(r["value"]) for r in rows if r["target"] == "Debian" and r["quantity"] == "waited") < 0.02,
          "pinning to a new CPU, given twice")


def check_seeds(folder, first, last):
    """Checks the figures of many seeds."""
    results, medians = count(folder, first, last)
    all_errors = []
    for name, hits in results.items():
        # The medians of two runs differ by 4 to 12 %, which no replay can predict: compared with the mean of all runs.
        truth = sum(true for _, true in medians[name]) / max(1, len(medians[name]))
        errors = [value / truth - 1 for value, _ in medians[name]]
        all_errors += errors
        if errors:
            print(f"     {name}: {sum(hits)} of {len(hits)} inside, errors of medians {sum(map(abs, errors)) / len(errors):.3f}, "
                  f"bias {sum(errors) / len(errors):+.3f}")
    few = last - first < 99  # too few for a precise mean
    mean = sum(map(abs, all_errors)) / len(all_errors)
    check(few or mean <= 0.05, f"mean error of the medians: {mean:.3f}")
    check(all(sum(hits) >= 0.9 * len(hits) for hits in results.values()), "90 % of the true figures are in their intervals")
    figures = len(LEVELS) * (last - first + 1)
    check(all(len(hits) >= 0.6 * figures for change, hits in results.items() if change not in SATURATED), "most are predicted")


def check_grid(folder):
    """Real recordings of one request server with three loads, each without and with one or two hogs.  Returns histories by
    name."""
    inside, errors = [], []
    real = {name: f"{folder}/{name}.steal" for h in "012" for g in "136" for name in [f"grid_h{h}_g{g}"]}
    for name, file in real.items():
        run("index", os.path.join(SHARED, name), "-o", file)
    for g in "136":
        base = latencies(real[f"grid_h0_g{g}"])
        for h in "12":
            rows = predictions(real[f"grid_h{h}_g{g}"], "without host/burnP6")
            check(not codes("whatif", real[f"grid_h{h}_g{g}"], "without host/burnP6") & {"replay-weights-differ", "replay-wait-differs"},
                  "no note about weights")
            inside += [is_inside(rows[q], quantile(base, p)) for q, p in LEVELS.items()]
            errors.append(abs(relative_error(rows["latency_p50"], quantile(base, 0.5))))
    check(sum(inside) >= 0.9 * len(inside), f"real runs: {sum(inside)} of {len(inside)} in their intervals")
    check(sum(errors) / len(errors) <= 0.05, f"mean error of the medians {sum(errors) / len(errors):.3f}")
    return real


def check_recordings(folder):
    real = check_grid(folder)

    def index(name):
        run("index", os.path.join(SHARED, name), "-o", f"{folder}/{name}.steal")
        return f"{folder}/{name}.steal"
    # A quota with a nice hog, then with a hog; both hogs began on CPU 0 and were pinned to CPU 1 at recorded times.
    throttled, wall = index("throttled"), 1795302833461688345
    for begin, end, change, most in ((22028986655, 23882211290, "no quota Debian", 0.3), (23882211290, 25566267766, "without host/burnP6", 0.15)):
        error = whatif(throttled, "--from", str(wall + begin), "--to", str(wall + end), change)["calibration"]["error"]
        check(error < most, f"a thread that left a CPU for good does not return: {error:.2f}")
    error = whatif(index("smp"), "without host/burnP6")["calibration"]["error"]
    check(error < 0.2, f"waiting threads move to other CPUs: {error:.2f}")
    error = whatif(index("hostonly_tc"), "free Debian")["calibration"]["error"]
    check(error < 0.27, f"short-lived threads are not pinned: {error:.2f}")
    # Some hundred short-lived threads: the wait of each is random, the sum over threads of one name is not.
    for name in ("migrate", "hostonly"):
        check("replay-inaccurate" not in codes("whatif", index(name), "free Debian"), f"{name}: reproduced per name of threads")
    text = joined(run("summary", real["grid_h2_g3"], "--advise").stdout)
    check("'pin Debian -> CPU0'" in text and "('without host/burnP6': 0." in text, "the advice has the most effective change, too")
    p = run("whatif", real["grid_h1_g3"], "weight Debian 50")
    check("Debian waited (" in joined(p.stdout) and not re.search(r"^none$| reproduced  ", p.stdout, re.M), "no empty table")
    text = joined(run("summary", throttled, "--advise").stdout)
    check("'no quota Debian'" in text and " 36.8%" in text, f"the share of time that a quota throttles: {text[-300:]}")
    waits = table("whatif", index("fibonacci_perf"), "without host/burnP6")[0]
    check(abs(float(waits["recorded"]) - 4.784 / 17.893) < 0.01 and float(waits["value"]) < 0.01,
          "a thread in unknown state that did not run on the recorded CPUs did not wait for them")
    median = predictions(index("soroban_contended"), "without host/burnP6")["latency_p50"]
    check(abs(relative_error(median, 76.8e6)) < 0.05 and is_inside(median, 76.8e6), "soroban_contended, without burnP6")


with scratch() as scratch_folder:
    if len(sys.argv) == 3:
        check_seeds(scratch_folder, int(sys.argv[1]), int(sys.argv[2]))
        sys.exit(0)
    if not is_brief():
        results, _ = count(scratch_folder, 1, 1)
        hits = [hit for of in results.values() for hit in of]
        check(len(hits) >= 15 and hits.count(False) <= 1, f"the effect of planted disturbances is removed {results}")
        check_calibration(scratch_folder)
        check_tail(scratch_folder)
    check_refusals(scratch_folder)
    check_shape(scratch_folder)
    check_busy(scratch_folder)
    check_starved(scratch_folder)
    check_vague(scratch_folder)
    check_overlap(scratch_folder)
    check_unlimited(scratch_folder)
    check_throttled(scratch_folder)
    check_nice(scratch_folder)
    check_weights(scratch_folder)
    check_untested(scratch_folder)
    check_groups(scratch_folder)
    check_pins(scratch_folder)
    check_advice(scratch_folder)
    if is_brief():
        print("     not run: the shared recordings (another build runs them)")
    elif os.path.isdir(os.path.join(SHARED, "grid_h0_g1")):
        check_recordings(scratch_folder)
    else:
        print("     not run: the recordings in ../shared/traces are absent")
