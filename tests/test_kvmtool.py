"""A recording of Linux 4.19 with a VM of kvmtool: names, and the culprits against the switches in the raw pages (NOTES in
tests/data/kvmtool.tar.xz)."""
import collections
import glob
import os
import re
import struct
import tarfile

from e2e import DATA, check, run, scratch, table

VCPU, HOGS = 51, (59, 60, 61)
HEADER = 16                      # of a page: time, bytes
PADDING, EXTEND, STAMP = 29, 30, 31
EVENTS = {"sched_switch": ("prev_pid", "prev_state", "next_pid"), "sched_migrate_task": ("pid", "dest_cpu"), "sched_wakeup": ("pid", "target_cpu")}


def content(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def formats(recording):
    """Returns {ID of an event: (name, [(offset, size) of its fields])}."""
    found = {}
    for name, fields in EVENTS.items():
        text = content(f"{recording}/host/events/sched/{name}/format")
        places = [re.search(rf"\b{f};\s+offset:(\d+);\s+size:(\d+)", text).groups() for f in fields]
        found[int(re.search(r"^ID: (\d+)", text, re.M).group(1))] = name, [(int(o), int(s)) for o, s in places]
    return found


def page_events(page, known):
    """Yields (time, name, [values]) of a page of the kernel's ring buffer."""
    now, used = struct.unpack_from("<QQ", page)
    at, end = HEADER, HEADER + (used & 0xfffff)
    while at < end:
        head, = struct.unpack_from("<I", page, at)
        kind, delta = head & 31, head >> 5
        if kind == EXTEND:
            now += (struct.unpack_from("<I", page, at + 4)[0] << 27) + delta
            at += 8
            continue
        body = at + 4
        size = kind * 4
        if kind in (0, PADDING):
            size = struct.unpack_from("<I", page, body)[0]
            body, size = (body + 4, size - 4) if kind == 0 else (body, size)
        check(kind != STAMP, "a time stamp") if kind == STAMP else None
        now += delta
        name, places = known.get(struct.unpack_from("<H", page, body)[0], (None, ())) if kind != PADDING else (None, ())
        if name:
            yield now, name, [int.from_bytes(page[body + o:body + o + s], "little", signed=True) for o, s in places]
        at = body + size


def waits(recording):
    """Returns {TID: ns} for which the thread had the CPU on which the runnable vCPU was queued."""
    known, events = formats(recording), []
    begin, end = (re.search(rf"^{at}: .clock: (\d+), .* realtime: (\d+)", content(f"{recording}/host/about.yaml"), re.M).groups()
                  for at in ("started", "stopped"))
    rate = (int(end[1]) - int(begin[1])) / (int(end[0]) - int(begin[0]))  # ns per TSC cycle
    for path in glob.glob(f"{recording}/host/pages/cpu*"):
        cpu = int(path.rpartition("cpu")[2])
        with open(path, "rb") as f:
            data = f.read()
        for at in range(0, len(data), 4096):
            events += [(*e, cpu) for e in page_events(data[at:at + 4096], known)]
    total, current, queue, since = collections.Counter(), {}, None, 0
    for now, name, values, cpu in sorted(events, key=lambda e: e[0]):
        if queue is not None and (cpu == queue or values[0] == VCPU):
            total[current.get(queue)] += now - since
            since = now
        if name == "sched_switch":
            current[cpu] = values[2]
            if values[2] == VCPU:
                queue = None
            elif values[0] == VCPU:
                queue, since = (cpu, now) if values[1] == 0 or values[1] & 0x100 else (None, now)
        elif values[0] == VCPU and (queue is not None or name == "sched_wakeup"):
            queue, since = values[1], now
    return {tid: cycles * rate for tid, cycles in total.items()}


with scratch() as folder:
    with tarfile.open(os.path.join(DATA, "kvmtool.tar.xz")) as tar:
        tar.extractall(folder)
    recording, history = f"{folder}/kvmtool", f"{folder}/x.steal"
    run("index", recording, "-o", history)
    rows = [(r["vm"], r["vcpu"], r["host_tid"], r["host_pid"], r["host_comm"]) for r in table("info", history)]
    check(rows == [("web", "0", "51", "40", "lkvm")], f"the vCPU of kvmtool that ran: {rows}")
    want = waits(recording)
    rows = table("flow", history, "web/vCPU0")
    got = {int(r["tid"]): int(r["duration_ns"]) for r in rows if r["kind"] == "preempting" and r["tid"]}
    for tid in HOGS:
        # Interrupts in the time of a thread are culprits of their own.
        check(.97 * want[tid] <= got[tid] <= 1.005 * want[tid],
              f"busybox {tid} took {got[tid]} ns; with its interrupts {want[tid]:.0f} ns by the raw switches")
    lost = sum(int(r["duration_ns"]) for r in rows if r["kind"] not in ("running", "unknown"))
    check(sum(got[t] for t in HOGS) > .8 * lost, f"the three took most of {lost} ns")
    check("lock/contention_begin" in content(f"{recording}/host/about.yaml").partition("missing:")[2], "events that Linux 4.19 lacks are listed")
