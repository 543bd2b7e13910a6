"""Writes traces in the formats of ftrace: pages of ring buffers, and files of trace-cmd (version 6)."""
import os
import struct

PAGE = 4096
HEAD = 16  # size of a page's header, bytes
MISSED, MISSED_STORED = 1 << 31, 1 << 30

HEADER_PAGE = b"""\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;
"""
HEADER_EVENT = b"""# compressed entry header
\ttype_len    :    5 bits
\ttime_delta  :   27 bits
\tarray       :   32 bits

\tpadding     : type == 29
\ttime_extend : type == 30
\ttime_stamp : type == 31
\tdata max type_len  == 28
"""
COMMON = [("unsigned short common_type", 0, 2, 0), ("unsigned char common_flags", 2, 1, 0),
          ("unsigned char common_preempt_count", 3, 1, 0), ("int common_pid", 4, 4, 1)]
# name: (ID, fields after the common ones)
EVENTS = {
    "sched_switch": (301, [("char prev_comm[16]", 8, 16, 0), ("pid_t prev_pid", 24, 4, 1), ("int prev_prio", 28, 4, 1),
                           ("long prev_state", 32, 8, 1), ("char next_comm[16]", 40, 16, 0), ("pid_t next_pid", 56, 4, 1),
                           ("int next_prio", 60, 4, 1)]),
    "sched_waking": (304, [("char comm[16]", 8, 16, 0), ("pid_t pid", 24, 4, 1), ("int prio", 28, 4, 1),
                           ("int target_cpu", 32, 4, 1)]),
    "hrtimer_expire_entry": (410, [("void * hrtimer", 8, 8, 0), ("s64 now", 16, 8, 1), ("void * function", 24, 8, 0)]),
    "kvm_entry": (1001, [("unsigned int vcpu_id", 8, 4, 0), ("unsigned long rip", 16, 8, 0)]),
    "kvm_exit": (1000, [("unsigned int exit_reason", 8, 4, 0), ("unsigned long guest_rip", 16, 8, 0),
                        ("u32 isa", 24, 4, 0), ("u64 info1", 32, 8, 0), ("u64 info2", 40, 8, 0),
                        ("u32 intr_info", 48, 4, 0), ("u32 error_code", 52, 4, 0), ("unsigned int vcpu_id", 56, 4, 0)]),
}
SYSTEM = {"sched_switch": "sched", "sched_waking": "sched", "hrtimer_expire_entry": "timer", "kvm_entry": "kvm", "kvm_exit": "kvm"}


def event_format(name):
    number, fields = EVENTS[name]
    line = "\tfield:%s;\toffset:%d;\tsize:%d;\tsigned:%d;\n"
    return (f"name: {name}\nID: {number}\nformat:\n" + "".join(line % f for f in COMMON) + "\n" +
            "".join(line % f for f in fields) + '\nprint fmt: "x"\n').encode()


def record(name, tid, order="<", **values):
    """Returns the bytes of an event; order: of the bytes of numbers, as in struct."""
    number, fields = EVENTS[name]
    size = max(offset + n for _, offset, n, _ in fields)
    out = bytearray(size)
    struct.pack_into(order + "HBBi", out, 0, number, 0, 0, tid)
    for declaration, offset, n, _ in fields:
        value = values.get(declaration.split()[-1].split("[")[0], 0)
        if isinstance(value, str):
            value = value.encode()[:n - 1].ljust(n, b"\0")
        out[offset:offset + n] = value if isinstance(value, bytes) else (value & (1 << 8 * n) - 1).to_bytes(n, "little" if order == "<" else "big")
    return bytes(out)


class Buffer:
    """The ring buffer of one CPU; events are added in the order of time."""

    def __init__(self):
        self.pages, self.ts, self.data = [], None, b""
        self.page_ts = self.flags = self.stored = 0

    def add(self, ts, data):
        data = data.ljust(-(-len(data) // 4) * 4, b"\0")
        if self.data and len(self.data) + len(data) + 16 > PAGE - HEAD:
            self.end_page()
        if not self.data:
            self.page_ts = self.ts = ts
        delta = ts - self.ts
        if delta >> 27:
            self.data += struct.pack("<II", 30 | (delta & (1 << 27) - 1) << 5, delta >> 27)
            delta = 0
        if len(data) // 4 <= 28:
            self.data += struct.pack("<I", len(data) // 4 | delta << 5) + data
        else:
            self.data += struct.pack("<II", delta << 5, len(data) + 4) + data
        self.ts = ts

    def lose(self, count=None):
        """Marks a loss of events before the next one; count: of lost events, None: unknown."""
        self.end_page()
        self.flags, self.stored = (MISSED, None) if count is None else (MISSED | MISSED_STORED, count)

    def end_page(self):
        if not self.data:
            return
        body = self.data
        if self.flags & MISSED_STORED:
            body += struct.pack("<Q", self.stored)
        self.pages.append((struct.pack("<QQ", self.page_ts, len(self.data) | self.flags) + body).ljust(PAGE, b"\0"))
        self.data, self.flags = b"", 0

    def bytes(self):
        self.end_page()
        return b"".join(self.pages)


def write_dat(path, buffers, clock="mono", names=None, host="machine", stats=()):
    """Writes a file of trace-cmd, version 6; buffers: bytes of each CPU's pages; names: {TID: name}; stats: contents of
    per_cpu/cpuN/stats."""
    out = b"\x17\x08\x44tracing6\0" + bytes([0, 8]) + struct.pack("<I", PAGE)
    for name, text in ((b"header_page\0", HEADER_PAGE), (b"header_event\0", HEADER_EVENT)):
        out += name + struct.pack("<Q", len(text)) + text
    out += struct.pack("<I", 0)
    systems = sorted(set(SYSTEM.values()))
    out += struct.pack("<I", len(systems))
    for system in systems:
        formats = [event_format(e) for e in EVENTS if SYSTEM[e] == system]
        out += system.encode() + b"\0" + struct.pack("<I", len(formats))
        out += b"".join(struct.pack("<Q", len(f)) + f for f in formats)
    comms = b"".join(b"%d %s\n" % (tid, comm.encode()) for tid, comm in sorted((names or {}).items()))
    out += struct.pack("<II", 0, 0) + struct.pack("<Q", len(comms)) + comms
    out += struct.pack("<I", len(buffers)) + b"options  \0"
    options = [(5, f"Linux {host} 6.1.0 x86_64".encode() + b"\0"), (9, b"3.1.6\0")]
    if clock:
        options.append((4, f"local global [{clock}] boot\n".encode() + b"\0"))
    options += [(2, s.encode() + b"\0") for s in stats]
    for number, data in options:
        out += struct.pack("<HI", number, len(data)) + data
    out += struct.pack("<H", 0) + b"flyrecord\0"
    at = -(-(len(out) + 16 * len(buffers)) // PAGE) * PAGE
    offset = at
    for data in buffers:
        out += struct.pack("<QQ", offset, len(data))
        offset += len(data)
    out = out.ljust(at, b"\0") + b"".join(buffers)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as f:
        f.write(out)


def write_machine(folder, buffers, about, names=None, groups=None, stats=()):
    """Writes a machine's directory of a recording of stealscope; buffers: bytes of each CPU's pages; about: content of
    about.yaml; names: {TID: name}; groups: {TID: PID}."""
    files = {"header_page": HEADER_PAGE, "header_event": HEADER_EVENT, "about.yaml": about.encode(),
             "saved_cmdlines": b"".join(b"%d %s\n" % (t, n.encode()) for t, n in sorted((names or {}).items())),
             "saved_tgids": b"".join(b"%d %d\n" % i for i in sorted((groups or {}).items()))}
    files.update({f"pages/cpu{i}": data for i, data in enumerate(buffers)})
    files.update({f"stats/cpu{i}": text.encode() for i, text in enumerate(stats)})
    files.update({f"events/{SYSTEM[e]}/{e}/format": event_format(e) for e in EVENTS})
    for name, data in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
