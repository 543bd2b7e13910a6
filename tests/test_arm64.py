"""A recording of `stealscope record` on arm64 (Debian's kernel 6.1 under emulation, a VM of two vCPUs, whose events do not name
them): exits per exception class and run times of threads equal those that this script reads from the same pages."""
import collections
import glob
import os
import re
import struct
import tarfile

from e2e import DATA, check, document, run, scratch, skip, table

PAGE, HEAD = 4096, 16
CLASSES = {0x01: "WFx", 0x16: "HVC64", 0x24: "DABT_LOW"}
TRAP = 2  # of kvm_exit's ret; 0: an interrupt


def layout(path):
    """Returns the ID and the fields (offset, size) of an event."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    fields = re.findall(r"field:[^;]*?(\w+)(?:\[\d+\])?;\s*offset:(\d+);\s*size:(\d+);", text)
    return int(re.search(r"ID: (\d+)", text)[1]), {n: (int(o), int(s)) for n, o, s in fields}


def events_of_page(page):
    """Yields (time, data) of the events of a page of the ring buffer."""
    ts, commit = struct.unpack_from("<QQ", page)
    at, end = HEAD, HEAD + (commit & 0xfffff)
    while at < end:
        word, = struct.unpack_from("<I", page, at)
        kind, delta, at = word & 31, word >> 5, at + 4
        if kind == 31:  # absolute time
            ts, at = delta + (struct.unpack_from("<I", page, at)[0] << 27), at + 4
            continue
        more = struct.unpack_from("<I", page, at)[0] if at < end else 0
        if kind == 29 and not delta:  # the rest of the page is empty
            return
        ts += delta
        if kind == 29:  # a discarded event
            at += more
            continue
        if kind == 30:
            ts, at = ts + (more << 27), at + 4
            continue
        size = kind * 4 if kind else more - 4
        at += 0 if kind else 4
        yield ts, page[at:at + size]
        at += size


def read(folder):
    """Returns all events as (time, CPU, name, {field: value}), sorted by time."""
    known = {}
    for path in glob.glob(f"{folder}/events/*/*/format"):
        number, fields = layout(path)
        known[number] = (path.split("/")[-2], fields)
    events = []
    for cpu in (0, 1):
        with open(f"{folder}/pages/cpu{cpu}", "rb") as f:
            data = f.read()
        for at in range(0, len(data), PAGE):
            for ts, record in events_of_page(data[at:at + PAGE]):
                name, fields = known[int.from_bytes(record[:2], "little")]
                values = {n: int.from_bytes(record[o:o + s], "little") for n, (o, s) in fields.items() if s <= 8}
                events.append((ts, cpu, name, values))
    return sorted(events, key=lambda e: e[0])


def check_exits(history, events):
    exited, count, total = {}, collections.Counter(), collections.Counter()
    for ts, _, name, v in events:
        tid = v["common_pid"]
        if name == "kvm_exit":
            exited[tid] = (CLASSES[v["esr_ec"]] if v["ret"] == TRAP else "IRQ", ts)
            count[tid, exited[tid][0]] += 1
        elif name == "kvm_entry" and tid in exited:
            reason, begun = exited.pop(tid)
            total[tid, reason] += ts - begun
    rows = table("exits", history)
    reported = {(106 + int(r["vcpu"]), r["reason"]): (int(r["count"]), int(r["total_ns"])) for r in rows}
    check(reported == {key: (count[key], total[key]) for key in count} != {}, f"exits per class: {reported}")
    check({r["isa"] for r in rows} == {"arm64"}, "the names are those of arm64")


def check_threads(history, events):
    """A thread runs from the switch to it, or the start of the trace, until the switch from it, or the end."""
    begun, last, ran = {0: events[0][0], 1: events[0][0]}, {}, collections.Counter()
    for ts, cpu, name, v in events:
        if name == "sched_switch":
            ran[v["prev_pid"]] += ts - begun[cpu]
            begun[cpu], last[cpu] = ts, v["next_pid"]
    for cpu, tid in last.items():
        ran[tid] += events[-1][0] + 1 - begun[cpu]
    burn = next(r for r in table("threads", history) if r["name"] == "burnP6")
    check((burn["tid"], int(burn["ran_ns"])) == ("109", ran[109]), f"burnP6 ran {burn['ran_ns']} ns: {ran[109]}")


def check_cause(folder, history):
    """In the viewer, going to the cause of a gap goes to the culprit in the status line, even to a vCPU of an untraced guest."""
    keys = [(":host/109", ""), ("key >", "gap"), ("key [", "cause"), ("key ]", ""), ("key B", ""), ("key <Tab>", "pane"),
            ("key <Enter>", "culprit")]
    with open(f"{folder}/script", "w", encoding="utf-8") as f:
        f.writelines(key + (f"\n:screen {folder}/{screen}\n" if screen else "\n") for key, screen in keys)
    run("view", history, "--script", f"{folder}/script", "--size", "120x40", "--glyphs", "ascii")
    with open(f"{folder}/pane", encoding="utf-8") as f:
        text = f.read()
    check(re.search(r"^ *victim +culprit .*\n host/109 burnP6 +vmm-104/vCPU0 ", text, re.M), f"the first line of the pane: {text}")
    status = {}
    for name in ("gap", "cause", "culprit"):
        with open(f"{folder}/{name}", encoding="utf-8") as f:
            status[name] = f.read().splitlines()[-2]
    check("PREEMPTED" in status["gap"] and " by vmm-104/vCPU0" in status["gap"], f"a gap caused by a vCPU: {status['gap']}")
    for name in ("cause", "culprit"):
        check(re.match(r" vmm-104/vCPU0 [0-9:.]+ RUNNING ", status[name]) and " by " not in status[name],
              f"{name}: the vCPU, which runs and has no culprit: {status[name]}")


def main():
    with scratch() as tmp:
        with tarfile.open(os.path.join(DATA, "arm64.tar.xz")) as tar:
            tar.extractall(tmp)
        folder, history = os.path.join(tmp, "arm"), os.path.join(tmp, "h.steal")
        if "built without libtraceevent" in run("index", folder, "-o", history, status=None).stderr:
            skip("this build has no libtraceevent")
        run("index", folder, "-o", history)
        events = read(os.path.join(folder, "host"))
        info = document(history)
        check([(t["tracer"], int(t["events"]), int(t["lost"])) for t in info["traces"]] ==
              [("stealscope record", len(events), 0)], f"{len(events)} events")
        vm, = info["vms"]
        check([(r["vcpu"], r["host_tid"]) for r in vm["vcpus"]] == [(0, 106), (1, 107)], f"the VM is found: {vm}")
        check_exits(history, events)
        check_threads(history, events)
        text = run("explain", history, "vmm-104/vCPU0").stdout
        check("burnP6" in text, f"the culprit is named: {text}")
        check_cause(tmp, history)


if __name__ == "__main__":
    main()
