"""VMs that could not run: a CFS quota, a pause and a migration are named, without a wrong culprit.

The recordings are real, each with its truth; they are not part of the program."""
import json
import os
import re
import shutil

from e2e import recording, check, run, scratch, table


def phases(folder):
    """Returns the begin of each phase of a recording, ns of the history."""
    with open(folder + "/truth.json") as f:
        offset = json.load(f)["traces"]["host"]["clock_offset_ns"]
    with open(folder + "/NOTES") as f:
        found = re.search(r"^Phases \(host mono ns\): (.*)$", f.read(), re.M)
    return {name: int(t) + offset for name, t in re.findall(r"(\w+) (\d+)", found.group(1))}


def expected(folder):
    with open(folder + "/expected.json") as f:
        return json.load(f)


def of(history, target, begin, end, **wanted):
    """Returns the time of the flow's entries with the wanted values, ns."""
    rows = table("flow", history, target, "--from", str(begin), "--to", str(end), "--threshold", "0")
    return sum(int(row["duration_ns"]) for row in rows if all(row[k] == v for k, v in wanted.items()))


def throttled(folder, history):
    at, truth = phases(folder), expected(folder)["vcpu_by_phase"]
    run("index", folder, "-o", history)
    for begin, end in (("quota", "quotahog"), ("quotahog", "hog")):
        out = truth["Debian/vCPU0 " + begin]["runnable_or_woken_but_out_ms"] * 1e6
        window = (at[begin], at[end])
        quota = of(history, "Debian/cc", *window, kind="limited", name="quota")
        check(.98 * out < quota < 1.02 * out, f"{begin}: throttled for {quota} of {out} ns")
        check(of(history, "Debian/cc", *window, name="burnP6") < .02 * out, f"{begin}: burnP6 is not blamed")
        text = run("explain", history, "Debian/CPU0", "--from", str(window[0]), "--to", str(window[1])).stdout
        check("quota" in text and "cpu.max" in text, f"{begin}: explain names the quota")
    hog = (at["hog"], at["free"] if at["free"] > at["hog"] else at["end"])
    wanted = truth["Debian/vCPU0 hog"]["cpu_meanwhile"]["burnP6/246"] * 1e6
    # without the interrupts in that time
    found = of(history, "Debian/cc", *hog, name="burnP6")
    check(abs(found - wanted) < .05 * wanted, f"hog: burnP6 had its CPU for {found} of {wanted} ns")
    lifted = hog[0] + 100_000_000  # end of the quota period that was current
    check(of(history, "Debian/cc", lifted, hog[1], kind="limited") == 0, "no quota")
    rows = table("gaps", history, "Debian", "--top", "10")
    check(all(row["culprit_name"] == "quota" for row in rows), "the quota causes the longest gaps")
    check("quota" in [row["culprit"] for row in table("steal", history)], "steal: the quota is a culprit")
    check("quota" in [row["culprit"] for row in table("steal", history, "--by", "thread")], "steal --by thread: too")


def pause(folder, history):
    run("index", folder, "-o", history)
    rows = table("intervals", history, "/Virtual Machines/Debian/CPUs/CPU0/Out By")
    paused = [int(row["end"]) - int(row["start"]) for row in rows if row["value"] == "pause"]
    check(len(paused) == 2, "it was paused twice")
    with open(folder + "/expected_clock.json") as f:
        steps = [p["step_from_previous_ns"] for p in json.load(f)["pieces"] if "step_from_previous_ns" in p]
    for found, step in zip(paused, steps):
        check(step < found < step + 40e6, f"for {found} ns; its clock stopped for {step} ns")
    text = run("explain", history, "Debian/cc").stdout
    check("pause" in text.replace(history, ""), "explain names the pause")
    check(all(row["name"] != "quota" for row in table("flow", history, "Debian/cc", "--threshold", "0")), "no quota")


def migrate(folder, history):
    """One VM in two processes, one after the other."""
    run("index", folder, "-o", history)
    with open(folder + "/expected_clock.json") as f:
        truth = json.load(f)
    with open(folder + "/truth.json") as f:
        offset = json.load(f)["traces"]["host"]["clock_offset_ns"]
    threads = sorted(truth["vcpu_threads"].items(), key=lambda t: t[1]["first_entry"])
    stops, goes_on = threads[0][1]["last_entry"] + offset, threads[1][1]["first_entry"] + offset
    vm = json.loads(run("info", history, "--format", "json").stdout)["vms"]
    check([v["vm"] for v in vm] == ["Debian"], "one VM")
    named = {row["host_tid"]: (row["host_pid"], row["host_comm"]) for row in table("info", history)}
    check(named == {"154": ("150", "qemu:Debian"), "233": ("228", "qemu:DebianB")}, f"in two processes: {named}")
    rows = table("intervals", history, "/Virtual Machines/Debian/CPUs/CPU0/Host Thread")
    check([row["value"] for row in rows if row["value"] in dict(threads)] == [tid for tid, _ in threads],
          "its vCPU is one thread, then the other")
    clocks = table("sync", folder)
    check(len(clocks) == len(truth["pieces"]), "its clock has two segments")
    check(all(float(row["containment"]) > .999 for row in clocks), "the segments contain its events")
    by = table("intervals", history, "/Virtual Machines/Debian/CPUs/CPU0/Out By")
    moves = [(int(row["start"]), int(row["end"])) for row in by if row["value"] == "migration"]
    check(len(moves) == 1, "it migrated once")
    check(abs(moves[0][0] - stops) < 20e6 and abs(moves[0][1] + 1 - goes_on) < 1e6, f"and did not run in {moves[0]}")
    text = run("explain", history, "Debian/cc", "--from", str(goes_on), "--to", str(goes_on + 1500000000)).stdout
    check(float(re.search(r"ran[^(]*\(([\d.]+) %\)", text).group(1)) > 60, "it continued there")
    text = run("explain", history, "Debian/cc", "--from", str(stops), "--to", str(goes_on)).stdout
    check("migration" in text, "explain names the migration in between")


def one_name(host, copy):
    """Gives the process that waits for the migration the name of the VM."""
    shutil.copytree(host, copy)
    for base, _, files in os.walk(copy):
        for file in files:
            path = os.path.join(base, file)
            with open(path, "rb") as f:
                content = f.read()
            with open(path, "wb") as f:
                f.write(content.replace(b"qemu:DebianB\0", b"qemu:Debian\0\0"))


def migrate_alone(folder, tmp):
    """From the host alone, two processes are one VM only if they have its name."""
    with open(folder + "/expected_clock.json") as f:
        threads = sorted(json.load(f)["vcpu_threads"].items(), key=lambda t: t[1]["first_entry"])
    one_name(folder + "/host", tmp + "/host")
    run("index", "--host", folder + "/host", "-o", tmp + "/two.steal")
    check({r["vm"] for r in table("info", tmp + "/two.steal")} == {"Debian", "DebianB"}, "two names, two VMs")
    note = [n["text"] for n in json.loads(run("info", tmp + "/two.steal", "--format", "json").stdout)["notes"]]
    check(any("228" in text and "qemu:DebianB" in text for text in note), f"a note names the possible target: {note}")
    cpu = "/Virtual Machines/Debian/CPUs/CPU0/"
    stops = [r for r in table("intervals", tmp + "/two.steal", cpu + "Out By") if r["value"]]
    check([r["value"] for r in stops] == ["pause or migration"], "the first one stops running")
    last = table("intervals", tmp + "/two.steal", cpu + "Status")[-1]
    check((last["value"], int(last["start"])) == ("UNKNOWN", int(stops[0]["end"]) + 1), "and then its state is unknown")
    notes = run("index", "--host", tmp + "/host", "-o", tmp + "/one.steal").stderr
    check(re.search(r"Debian: .*\b150\b.*\b228\b.* 360 ms", notes), "one name: a note contains the migration")
    check({r["vm"] for r in table("info", tmp + "/one.steal")} == {"Debian"}, "one VM")
    cpu = "/Virtual Machines/Debian/CPUs/CPU0/"
    rows = table("intervals", tmp + "/one.steal", cpu + "Host Thread")
    check([r["value"] for r in rows if r["value"] in dict(threads)] == [tid for tid, _ in threads], "its vCPU is one thread, then the other")
    status = table("intervals", tmp + "/one.steal", cpu + "Out By")
    check([r["value"] for r in status if r["value"] == "migration"] == ["migration"], "migrated in between")


def disk(folder, history):
    """A thread that mostly sleeps: explain begins with that, and names its device as the waker, not the idle thread."""
    run("index", folder, "-o", history)
    text = " ".join(run("explain", history, "Debian/152").stdout.split())
    sleep, delay = re.search(r"(?:slept|sleeps)[^.]* irq/\d+-virtio\d\S* of Debian", text), text.find("Main delay")
    check(sleep, "its disk woke it")
    check(sleep.start() < delay, "the largest part comes first")
    check("swapper: " not in text[:delay], "the idle thread did not")


with scratch() as tmp:
    throttled(recording("throttled"), tmp + "/throttled.steal")
    pause(recording("pause"), tmp + "/pause.steal")
    migrate(recording("migrate"), tmp + "/migrate.steal")
    migrate_alone(recording("migrate"), tmp)
    disk(recording("disk"), tmp + "/disk.steal")
