"""Synthetic trace-cmd files: damaged time stamps, losses, counters, clocks."""
import json
import os
import struct
import sys

from e2e import check, notes, run, scratch, table
from ftrace import HEAD, PAGE, Buffer, record, write_dat, write_machine

STEP = 100_000  # ns between two events
BEGIN = 5_000_000_000


def buffer(cpu, events):
    b = Buffer()
    for i in range(events):
        tid, other = (100 + cpu, 0) if i % 2 else (0, 100 + cpu)
        b.add(BEGIN + cpu * 1000 + i * STEP,
              record("sched_switch", tid, prev_comm=f"task{tid}", prev_pid=tid, prev_state=tid and 1,
                     next_comm=f"task{other}", next_pid=other))
    return b.bytes()


def index(tmp, buffers, **how):
    path, out = os.path.join(tmp, "t.dat"), os.path.join(tmp, "t.steal")
    write_dat(path, buffers, **how)
    p = run("index", path, "-o", out)
    info = json.loads(run("info", out, "--format", "json").stdout)
    return info["traces"][0], [n["text"] for n in info["notes"]], p.stderr


def check_damaged_times(tmp):
    buffers = [buffer(0, 600), buffer(1, 600)]
    pages = len(buffers[0]) // PAGE
    stats = ["CPU: 0\nentries: 0\noldest event ts:     5.000000\nnow ts:     5.100000\n"]
    whole, _, said = index(tmp, buffers, stats=stats)
    check(whole["events"] == 1200 and "damaged" not in said, f"{pages} pages for each CPU, all read")
    per_page = (PAGE - HEAD) // 68
    for page in range(pages):
        for what, change in (("later", 13_900_000_000), ("a little later", 3 * STEP), ("earlier", -13_900_000_000 // 3)):
            if page == 0 and change < 0:
                continue  # there is no earlier page to compare with
            data = bytearray(buffers[0])
            ts = struct.unpack_from("<Q", data, page * PAGE)[0]
            struct.pack_into("<Q", data, page * PAGE, ts + change)
            got, notes, _ = index(tmp, [bytes(data), buffers[1]], stats=stats)
            case = f"page {page} of {pages}, {what}"
            raised = [n for n in notes if "raised" in n]
            check(not raised, f"{case}: no event's time is raised {raised}")
            check(got["end"] - whole["end"] <= 4 * STEP, f"{case}: the trace does not become longer")
            if abs(change) > per_page * STEP:
                check(1200 - per_page <= got["events"] < 1200 and any("impossible time stamp" in n for n in notes),
                      f"{case}: costs that page, with a note ({1200 - got['events']} events)")


def write_pages(tmp, data):
    """Writes the directory of a machine with one CPU; returns it."""
    folder, end = os.path.join(tmp, "pages"), BEGIN + 50 * STEP
    write_machine(folder, [data], f"hostname: hv\nmachine: x86_64\nclock: mono\nstarted: {{clock: {BEGIN}, realtime: {BEGIN}}}\n"
                  f"stopped: {{clock: {end}, realtime: {end}}}\nlost: 0\n")
    return folder


def check_namespaces(tmp):
    """The threads in containers that the recorder lists; impossible numbers are ignored."""
    folder, history = write_pages(tmp, buffer(0, 40)), os.path.join(tmp, "pages.steal")
    for line, machine in (("100 1 300 200", "pidns-300"), ("100 100 300 200", "pidns-300"), ("100 0 300 200", "host"),
                          ("100 2147483648 300 200", "host")):
        with open(f"{folder}/namespaces", "w", encoding="ascii") as f:
            f.write(line + "\n")
        run("index", "--host", folder, "-o", history)
        rows = [(r["machine"], r["tid"]) for r in table("threads", history)]
        check(rows == [(machine, "100")], f"{line}: {rows}")


def check_lost(tmp):
    """The last event before a loss stays valid: a VM exit of a vCPU."""
    b, path, history = Buffer(), os.path.join(tmp, "lost.dat"), os.path.join(tmp, "lost.steal")
    b.add(BEGIN, record("sched_switch", 0, prev_comm="swapper/0", next_comm="CPU 0/KVM", next_pid=154))
    for i in range(8):
        b.add(BEGIN + (2 * i + 1) * STEP, record("kvm_entry", 154, vcpu_id=0))
        b.add(BEGIN + (2 * i + 2) * STEP, record("kvm_exit", 154, exit_reason=0x60, isa=2, vcpu_id=0))
        if i % 3 == 2:
            b.lose(5)
    write_dat(path, [b.bytes()])
    pages = write_pages(tmp, b.bytes())
    for trace in (path, pages):
        run("index", "--host", trace, "-o", history)
        rows = [(r["reason"], r["count"], r["timed"]) for r in table("exits", history)]
        check(rows == [("interrupt", "8", "5")], f"8 exits, of which 5 have a known end: {rows}")


def check_damaged_event(tmp):
    """A damaged time within a page: only the rest of the page is lost."""
    data = bytearray(buffer(0, 600))
    at = 2 * PAGE + HEAD
    word = struct.unpack_from("<I", data, at + 68 * 5)[0]
    struct.pack_into("<I", data, at + 68 * 5, word & 31 | (1 << 27) - 1 << 5)
    got, notes, _ = index(tmp, [bytes(data)])
    check(600 - 60 < got["events"] < 600 and not any("raised" in n for n in notes),
          f"within a page: {600 - got['events']} lost")


def check_counts(tmp):
    """The kernel's own counters, stored by trace-cmd, show missing events of a CPU."""
    stat = "CPU: 0\nentries: %d\noverrun: 0\nnow ts:     5.100000\nread events: %d\n"
    for entries, read in ((100, 500), (0, 600), (600, 0), (117, 500), (599, 600)):
        _, notes, _ = index(tmp, [buffer(0, 600)], stats=[stat % (entries, read)])
        check(not any("kernel's counters" in n for n in notes), f"no event is missing; {read} were read by trace-cmd")
    got, _, _ = index(tmp, [buffer(0, 600)], stats=[stat.replace("overrun: 0", "overrun: 30") % (0, 600)])
    check(got["lost"] == 30, f"the kernel lost 30: {got['lost']}")
    _, notes, _ = index(tmp, [buffer(0, 600)], stats=[stat % (0, 617)])
    check(any(": 600;" in n and "kernel's counters: 17" in n for n in notes), f"17 are missing {notes}")


def check_clocks(tmp):
    for clock, has_note in (("local", True), ("mono", False), (None, False)):
        _, notes, _ = index(tmp, [buffer(0, 100)], clock=clock)
        check(any("'local'" in n for n in notes) == has_note, f"clock {clock}: {'a note' if has_note else 'no note'}")


def check_ends(tmp):
    """CPUs whose buffers end before the last one: a note for each of two, one note for more, none for less than 10 ms."""
    for ends, expected in (((2000, 600), ["cpu-ends-early"]), ((2000, 600, 600), ["cpu-ends-early"] * 2),
                           ((2000, 600, 500, 600, 600), ["cpus-end-early"]), ((2000, 1950, 1950, 1950), [])):
        path, out = os.path.join(tmp, "ends.dat"), os.path.join(tmp, "ends.steal")
        write_dat(path, [buffer(cpu, n) for cpu, n in enumerate(ends)])
        run("index", path, "-o", out)
        found = [n for n in notes("info", out) if n["code"].startswith(("cpu-ends", "cpus-end", "cpu-begins", "cpus-begin"))]
        check([n["code"] for n in found] == expected, f"buffers of {ends} events: {[n['text'] for n in found]}")
        if expected == ["cpus-end-early"]:
            check("4 CPUs" in found[0]["text"] and "150 ms" in found[0]["text"] and "CPU2" in found[0]["text"], "the longest is named")


def is_built(tmp):
    path = os.path.join(tmp, "built.dat")
    write_dat(path, [buffer(0, 10)])
    return "without libtraceevent" not in run("index", path, "-o", os.path.join(tmp, "built.steal"), status=None).stderr


with scratch() as tmp:
    if not is_built(tmp):
        sys.exit(77)
    check_damaged_times(tmp)
    check_lost(tmp)
    check_namespaces(tmp)
    check_damaged_event(tmp)
    check_counts(tmp)
    check_clocks(tmp)
    check_ends(tmp)
