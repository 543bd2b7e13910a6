"""Machines that were held back: a quota, a pause, a migration are named, and nobody is blamed for them.

The recordings are real ones, each with what happened in truth; they are not part of the program."""
import json
import os
import re
import shutil
import sys

from e2e import SHARED, check, run, scratch, table


def phases(folder):
    """When the phases of a recording begin, in ns of the history."""
    with open(folder + "/truth.json") as f:
        offset = json.load(f)["traces"]["host"]["clock_offset_ns"]
    with open(folder + "/NOTES") as f:
        found = re.search(r"^Phases \(host mono ns\): (.*)$", f.read(), re.M)
    return {name: int(t) + offset for name, t in re.findall(r"(\w+) (\d+)", found.group(1))}


def expected(folder):
    with open(folder + "/expected.json") as f:
        return json.load(f)


def of(history, who, begin, end, **want):
    """ns of the flow's entries that are as wanted."""
    rows = table("flow", history, who, "--from", str(begin), "--to", str(end), "--threshold", "0")
    return sum(int(row["duration_ns"]) for row in rows if all(row[k] == v for k, v in want.items()))


def throttled(folder, history):
    at, truth = phases(folder), expected(folder)["vcpu_by_phase"]
    run("index", folder, "-o", history)
    for begin, end in (("quota", "quotahog"), ("quotahog", "hog")):
        out = truth["Debian/vCPU0 " + begin]["runnable_or_woken_but_out_ms"] * 1e6
        window = (at[begin], at[end])
        quota = of(history, "Debian/cc", *window, kind="limited", name="quota")
        check(.98 * out < quota < 1.02 * out, f"{begin}: the quota held it back for {quota} of {out} ns")
        check(of(history, "Debian/cc", *window, name="burnP6") < .02 * out, f"{begin}: burnP6 is not blamed")
        text = run("explain", history, "Debian/CPU0", "--from", str(window[0]), "--to", str(window[1])).stdout
        check("most was a CPU quota" in text and "cpu.max" in text, f"{begin}: and explain says so")
    hog = (at["hog"], at["free"] if at["free"] > at["hog"] else at["end"])
    want = truth["Debian/vCPU0 hog"]["cpu_meanwhile"]["burnP6/246"] * 1e6
    # less the interrupts within
    is_ = of(history, "Debian/cc", *hog, name="burnP6")
    check(abs(is_ - want) < .05 * want, f"hog: burnP6 had its CPU for {is_} of {want} ns")
    lifted = hog[0] + 100_000_000  # at the end of the period in which that was done
    check(of(history, "Debian/cc", lifted, hog[1], kind="limited") == 0, "and no quota")
    rows = table("gaps", history, "Debian", "--top", "10")
    check(all(row["culprit_name"] == "quota" for row in rows), "the longest gaps are the quota's")
    check("quota" in [row["thief"] for row in table("steal", history)], "which is a thief")
    check("quota" in [row["thief"] for row in table("steal", history, "--by", "thread")], "of threads, too")


def pause(folder, history):
    run("index", folder, "-o", history)
    rows = table("intervals", history, "/Virtual Machines/Debian/CPUs/CPU0/Out By")
    paused = [int(row["end"]) - int(row["start"]) for row in rows if row["value"] == "pause"]
    check(len(paused) == 2, "it was paused twice")
    with open(folder + "/expected_clock.json") as f:
        steps = [p["step_from_previous_ns"] for p in json.load(f)["pieces"] if "step_from_previous_ns" in p]
    for is_, step in zip(paused, steps):
        check(step < is_ < step + 40e6, f"for {is_} ns, in which its clock stood for {step}")
    text = run("explain", history, "Debian/cc").stdout
    check("most was a pause of the machine" in text, "explain says so")
    check(all(row["name"] != "quota" for row in table("flow", history, "Debian/cc", "--threshold", "0")), "no quota")


def migrate(folder, history):
    """One machine in two processes, one after the other."""
    run("index", folder, "-o", history)
    with open(folder + "/expected_clock.json") as f:
        truth = json.load(f)
    with open(folder + "/truth.json") as f:
        offset = json.load(f)["traces"]["host"]["clock_offset_ns"]
    threads = sorted(truth["vcpu_threads"].items(), key=lambda t: t[1]["first_entry"])
    stops, goes_on = threads[0][1]["last_entry"] + offset, threads[1][1]["first_entry"] + offset
    vm = json.loads(run("info", history, "--format", "json").stdout)["vms"]
    check([v["vm"] for v in vm] == ["Debian"], "it is one machine")
    named = {row["host_tid"]: (row["host_pid"], row["host_comm"]) for row in table("info", history)}
    check(named == {"154": ("150", "qemu:Debian"), "233": ("228", "qemu:DebianB")}, f"in two processes, by their forks {named}")
    rows = table("intervals", history, "/Virtual Machines/Debian/CPUs/CPU0/Host Thread")
    check([row["value"] for row in rows if row["value"] in dict(threads)] == [tid for tid, _ in threads],
          "whose vCPU is one thread, then the other")
    clocks = table("sync", folder)
    check(len(clocks) == len(truth["pieces"]), "its clock has two pieces")
    check(all(float(row["containment"]) > .999 for row in clocks), "that contain its events")
    by = table("intervals", history, "/Virtual Machines/Debian/CPUs/CPU0/Out By")
    moves = [(int(row["start"]), int(row["end"])) for row in by if row["value"] == "migration"]
    check(len(moves) == 1, "it migrated once")
    check(abs(moves[0][0] - stops) < 20e6 and abs(moves[0][1] + 1 - goes_on) < 1e6, f"and stood still {moves[0]}")
    text = run("explain", history, "Debian/cc", "--from", str(goes_on), "--to", str(goes_on + 1500000000)).stdout
    check(float(re.search(r"ran[^(]*\(([\d.]+) %\)", text).group(1)) > 60, "it ran on there")
    text = run("explain", history, "Debian/cc", "--from", str(stops), "--to", str(goes_on)).stdout
    check("most was the migration" in " ".join(text.split()), "and in between the migration is named")


def one_name(host, copy):
    """The waiting process gets the name of the machine that comes to it."""
    shutil.copytree(host, copy)
    for base, _, files in os.walk(copy):
        for file in files:
            path = os.path.join(base, file)
            with open(path, "rb") as f:
                content = f.read()
            with open(path, "wb") as f:
                f.write(content.replace(b"qemu:DebianB\0", b"qemu:Debian\0\0"))


def migrate_alone(folder, tmp):
    """From the host alone it is one machine where both processes say so."""
    with open(folder + "/expected_clock.json") as f:
        threads = sorted(json.load(f)["vcpu_threads"].items(), key=lambda t: t[1]["first_entry"])
    one_name(folder + "/host", tmp + "/host")
    run("index", "--host", folder + "/host", "-o", tmp + "/two.steal")
    check({r["vm"] for r in table("info", tmp + "/two.steal")} == {"Debian", "DebianB"}, "two names, two machines")
    note = [n["text"] for n in json.loads(run("info", tmp + "/two.steal", "--format", "json").stdout)["notes"]]
    check(any("it may have moved there, or be paused" in text for text in note), f"that may be one {note}")
    cpu = "/Virtual Machines/Debian/CPUs/CPU0/"
    stops = [r for r in table("intervals", tmp + "/two.steal", cpu + "Out By") if r["value"]]
    check([r["value"] for r in stops] == ["pause or migration"], "the first one stops")
    last = table("intervals", tmp + "/two.steal", cpu + "Status")[-1]
    check((last["value"], int(last["start"])) == ("UNKNOWN", int(stops[0]["end"]) + 1), "and is not known to wait")
    said = run("index", "--host", tmp + "/host", "-o", tmp + "/one.steal").stderr
    check(re.search(r"Debian: it moved from process 150 to 228 .* stood still for 360 ms \(migration\)", said), "one name: it moved")
    check({r["vm"] for r in table("info", tmp + "/one.steal")} == {"Debian"}, "and is one machine")
    cpu = "/Virtual Machines/Debian/CPUs/CPU0/"
    rows = table("intervals", tmp + "/one.steal", cpu + "Host Thread")
    check([r["value"] for r in rows if r["value"] in dict(threads)] == [tid for tid, _ in threads], "of one thread, then the other")
    status = table("intervals", tmp + "/one.steal", cpu + "Out By")
    check([r["value"] for r in status if r["value"] == "migration"] == ["migration"], "and in between it migrated")


def disk(folder, history):
    """Who sleeps most of the time: that comes first, and what woke it is its device, not the idle thread."""
    run("index", folder, "-o", history)
    text = " ".join(run("explain", history, "Debian/152").stdout.split())
    check(re.search(r"slept longest until woken by irq/\d+-virtio\d\S* of Debian", text), "its disk")
    check(text.index("It slept longest") < text.index("What delayed it most"), "the largest comes first")
    check("nobody took its CPU" not in text and "swapper: " not in text.split("What delayed")[0], "and nobody else")


if not os.path.isdir(SHARED + "/throttled"):
    print("no recordings here")
    sys.exit(77)
with scratch() as tmp:
    throttled(SHARED + "/throttled", tmp + "/throttled.steal")
    pause(SHARED + "/pause", tmp + "/pause.steal")
    migrate(SHARED + "/migrate", tmp + "/migrate.steal")
    migrate_alone(SHARED + "/migrate", tmp)
    disk(SHARED + "/disk", tmp + "/disk.steal")
