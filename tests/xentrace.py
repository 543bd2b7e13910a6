"""xentrace files, written and read for tests; independent of the program's reader.

Units: TSC ticks.  A vCPU is (domain, number).  States: 0 running, 1 runnable, 2 blocked, 3 offline."""
import collections
import struct

RUNNING, RUNNABLE, BLOCKED, OFFLINE = range(4)
IDLE = 0x7FFF
LOST, WRAP, CPU_CHANGE = 0x1F001, 0x1F002, 0x1F003
DOM_ADD, DOM_REM, SLEEP, WAKE = 0x28001, 0x28002, 0x28003, 0x28004
VM_ENTRY, VM_EXIT, VM_EXIT_64, VM_HYPERCALL = 0x81001, 0x81002, 0x81102, 0x82012  # VM_HYPERCALL has no time
PV_HYPERCALL, SWITCH_NEXT = 0x20100D, 0x2800F


def record(event, words=(), tsc=None):
    head = event | len(words) << 28 | (tsc is not None) << 31
    return struct.pack("<I", head) + (struct.pack("<Q", tsc) if tsc is not None else b"") + struct.pack(f"<{len(words)}I", *words)


class Writer:
    """Collects records per pCPU and returns a file with windows of at most so many bytes, the pCPUs in turns."""

    def __init__(self, pcpus=2):
        self.record = [[] for _ in range(pcpus)]

    def put(self, tsc, pcpu, event, *words):
        self.record[pcpu].append(record(event, words, None if event == VM_HYPERCALL else tsc))

    def state(self, tsc, pcpu, vcpu, old, new):
        self.put(tsc, pcpu, 0x21001 | old << 8 | new << 4, vcpu[0] << 16 | vcpu[1])

    def switch(self, tsc, pcpu, prev, state, following):
        """prev leaves the pCPU into that state, and `following` runs 10 ticks later."""
        self.state(tsc, pcpu, prev, RUNNING, RUNNABLE if prev[0] == IDLE else state)
        self.state(tsc + 10, pcpu, following, RUNNABLE, RUNNING)

    def file(self, window=400):
        out, at = b"", [0] * len(self.record)
        while any(i < len(r) for i, r in zip(at, self.record)):
            for cpu, rows in enumerate(self.record):
                chunk = b""
                while at[cpu] < len(rows) and (not chunk or len(chunk) + len(rows[at[cpu]]) <= window):
                    chunk += rows[at[cpu]]
                    at[cpu] += 1
                if chunk:
                    out += record(CPU_CHANGE, (cpu, len(chunk))) + chunk
        return out


def read(data):
    """Returns (ticks, pCPU, event, words) of all records with a time, in order of time; fillers are left out."""
    rows, at, cpu = [], 0, None
    while at + 4 <= len(data):
        head, = struct.unpack_from("<I", data, at)
        n, has_tsc, event = head >> 28 & 7, head >> 31, head & 0xFFFFFFF
        size = 4 + 8 * has_tsc + 4 * n
        if at + size > len(data):
            break
        words = struct.unpack_from(f"<{n}I", data, at + size - 4 * n)
        if event == CPU_CHANGE:
            cpu = words[0]
        elif has_tsc and event != WRAP:
            rows.append((struct.unpack_from("<Q", data, at + 4)[0], cpu, event, words))
        at += size
    return sorted(rows, key=lambda r: r[0])


def intervals(rows):
    """Returns {vCPU: [(begin, end, state, pCPU of the first record)]}, from the first record to the last."""
    done, begun = collections.defaultdict(list), {}
    for tsc, cpu, event, words in rows:
        if event & ~0x330 != 0x21001:
            continue
        vcpu, old, new = (words[0] >> 16, words[0] & 0xFFFF), event >> 8 & 3, event >> 4 & 3
        if vcpu in begun:
            done[vcpu].append((*begun[vcpu][:1], tsc, *begun[vcpu][1:]))
        else:
            done[vcpu].append((rows[0][0], tsc, old, cpu))
        begun[vcpu] = (tsc, new, cpu)
    for vcpu, (begin, state, cpu) in begun.items():
        done[vcpu].append((begin, rows[-1][0], state, cpu))
    return done


def guest_mode(rows):
    """Returns {vCPU: [(VM entry, VM exit or end of the trace)]} of the vCPUs with VM entries."""
    done, current, entered = collections.defaultdict(list), {}, {}
    for tsc, cpu, event, words in rows:
        if event & ~0x330 == 0x21001 and event >> 4 & 3 == RUNNING:
            current[cpu] = (words[0] >> 16, words[0] & 0xFFFF)
        elif event == VM_ENTRY:
            entered[cpu] = tsc
        elif event in (VM_EXIT, VM_EXIT_64) and cpu in entered:
            done[current[cpu]].append((entered.pop(cpu), tsc))
    for cpu, tsc in entered.items():
        done[current[cpu]].append((tsc, rows[-1][0]))
    return done


def split_modes(rows, modes):
    """Splits the intervals in which a vCPU runs: (begin, end, "RUNNING" or "VMM"); others stay as they are."""
    for begin, end, state, *_ in rows:
        if state != RUNNING:
            yield begin, end, state
            continue
        for entry, leave in modes:
            if begin <= entry and leave <= end:
                yield from ((begin, entry, "VMM"), (entry, leave, "RUNNING"))
                begin = leave
        yield begin, end, "VMM"
