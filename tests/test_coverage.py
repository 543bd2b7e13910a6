"""A CPU whose buffer begins later than the others', or ends earlier: its state then is unknown, and no loss is claimed."""
import json
import os
import shutil
import struct

from e2e import DATA, SHARED, check, run, scratch, simulate, table

STATUS = "/Virtual Machines/{}/CPUs/CPU{}/Status"


def packets(path):
    """Yields (offset, size) of each packet of a stream of the simulator."""
    with open(path, "rb") as f:
        content, at = f.read(), 0
    while at < len(content):
        size = struct.unpack_from("<Q", content, at + 56)[0] // 8
        yield at, size
        at += size


def cut(path):
    """Removes the first and the last fifth of the packets."""
    all_ = list(packets(path))
    keep = all_[len(all_) // 5:-len(all_) // 5]
    with open(path, "rb") as f:
        content = f.read()
    with open(path, "wb") as f:
        f.write(content[keep[0][0]:keep[-1][0] + keep[-1][1]])


def span(history):
    rows = table("intervals", history, "/Host/CPUs/CPU0/Owner")
    return int(rows[0]["start"]), int(rows[-1]["end"]) - 1_000_000  # the traces do not end at the same time


def states(history, machine, cpu, start, end):
    rows = table("intervals", history, STATUS.format(machine, cpu), "--from", str(start), "--to", str(end))
    return {row["value"] for row in rows}


def notes(history):
    return json.loads(run("info", history, "--format", "json").stdout)["notes"]


def simulated(tmp):
    """The guest's CPU1 is cut at both ends; whole, the same recording has no unknown state."""
    folder, history = tmp + "/cut", tmp + "/cut.steal"
    simulate(folder, "churn", "--duration", "2s", "--packet", "4096")
    run("index", folder, "-o", history)
    guest = [row["vm"] for row in table("info", history)][0]
    check("UNKNOWN" not in states(history, guest, 1, *span(history)) and notes(history) == [], "complete recording: no unknown state")
    stream = f"{folder}/guest-{guest}/kernel/ch_1"
    check(len(list(packets(stream))) > 4, "the CPU's stream has packets to spare")
    cut(stream)
    run("index", folder, "-o", history)
    reported = [n for n in notes(history) if n["machine"] == guest]
    check([n["code"] for n in reported] == ["cpu-begins-late", "cpu-ends-early"], f"two notes: {reported}")
    for note in reported:
        found = states(history, guest, 1, note["start"] + 1, note["end"] - 1)
        check("UNKNOWN" in found and "HOST_BLOCKED" not in found, f"its state then is unknown: {found}")
        check(not found & {"RUNNING"}, "and not RUNNING")
    check(not any(n["code"] in LOSS for n in notes(history)), "no note claims a loss")
    between = states(history, guest, 1, reported[0]["end"] + 2, reported[1]["start"] - 2)
    check("RUNNING" in between and "UNKNOWN" not in between, f"known in between: {between}")
    other = states(history, guest, 0, *span(history))
    check("UNKNOWN" not in other, "the other CPU is known, too")
    text = " ".join(run("explain", history, guest + "/CPU1").stdout.split())
    check(all(n["text"] in text for n in reported), "explain repeats both notes")


LOSS = ("lost-events", "cpu-state-lost", "contradicting-events", "self-check-failed")
UNSURE = 100_000  # ns: with fewer events the guest's clock is less accurate, and so are its threads' times


def is_within(row, all_):
    """Returns true if the row agrees with all_ for all of its time."""
    return all(other["value"] == row["value"] for other in all_
               if int(other["start"]) <= int(row["end"]) - UNSURE and int(other["end"]) >= int(row["start"]) + UNSURE)


def without_a_cpu(tmp):
    """One of the host's two CPUs is not in the recording: the known states agree with the complete recording."""
    folder, history, whole = tmp + "/without", tmp + "/without.steal", tmp + "/whole.steal"
    shutil.copytree(DATA + "/fibonacci", folder, copy_function=shutil.copyfile)
    os.remove(folder + "/host/kernel/ch_0")
    os.remove(folder + "/host/kernel/index/ch_0.idx")
    run("index", DATA + "/fibonacci", "-o", whole)
    run("index", folder, "-o", history)
    reported = [n["text"] for n in notes(history) if n["code"] == "cpus-not-recorded" and " CPU0, " in n["text"]]
    check(len(reported) == 1, f"one note for the missing CPU: {notes(history)}")
    check(not any(n["code"] == "cpus-not-recorded" for n in notes(whole)), "none for the complete recording")
    before = table("intervals", whole, STATUS.format("Debian", 0))
    found_rows = [row for row in table("intervals", history, STATUS.format("Debian", 0)) if row["value"] not in ("UNKNOWN", "", "RUNNING")]
    wrong = [row for row in found_rows if not is_within(row, before)]
    check(len(found_rows) > 100 and wrong == [], f"of {len(found_rows)} intervals, {len(wrong)} are wrong: {wrong[:3]}")


def ends_early(tmp):
    """The reader of the guest's CPU0 ended by itself, 3 s before the other's (NOTES)."""
    history = tmp + "/early.steal"
    p = run("index", SHARED + "/cpu_ends_early", "-o", history)
    check("local" not in p.stderr, "no clock is claimed that the file does not contain")
    note = [n for n in notes(history) if n["code"] == "cpu-ends-early" and "CPU0 " in n["text"]][0]
    found = states(history, "Debian", 0, note["start"] + 1, note["end"])
    check("UNKNOWN" in found and not found & {"HOST_BLOCKED", "RUNNING", "PREEMPTED"}, f"after it ended: {found}")
    cc = [row for row in table("threads", history, "Debian") if row["name"] == "cc"][0]
    check(cc["culprit"] == "host/148 burnP6", f"cc on the other CPU is not affected: {cc['culprit']}")


def switched_on_one_by_one(tmp):
    """perf starts recording one CPU after the other."""
    history = tmp + "/perf.steal"
    p = run("index", SHARED + "/fibonacci_perf", "-o", history)
    reported = [n for n in notes(history) if n["kind"] != "clock"]
    check("lost" not in p.stderr and reported == [], f"no loss with perf: {p.stderr}")


with scratch() as folder:
    simulated(folder)
    without_a_cpu(folder)
    if os.path.isdir(SHARED + "/cpu_ends_early"):
        ends_early(folder)
        switched_on_one_by_one(folder)
