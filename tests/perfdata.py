"""Files of perf record, written and read for tests; independent of the program's reader."""
import struct

from ftrace import EVENTS, HEADER_EVENT, HEADER_PAGE, SYSTEM, event_format, record

LOST, COMM, EXIT, FORK, SAMPLE, LOST_SAMPLES = 2, 3, 4, 7, 9, 13
ID_INDEX = 69
COMPRESSED = 81
ATTR, TRACING_DATA, FINISHED_ROUND, AUXTRACE, THREAD_MAP, TIME_CONV, FEATURE = 64, 66, 68, 71, 73, 79, 80
IP, TID, TIME, READ, CALLCHAIN, ID, CPU, PERIOD, RAW, IDENTIFIER = 1, 2, 4, 16, 32, 64, 128, 256, 1024, 65536
READ_ENABLED, READ_RUNNING, READ_ID, READ_GROUP = 1, 2, 4, 8
HARDWARE, SOFTWARE, TRACEPOINT = 0, 1, 2
PLAIN = IDENTIFIER | IP | TID | TIME | CPU | PERIOD | RAW
FREQ, TRAILER, CLOCK = 1 << 10, 1 << 18, 1 << 25
MONOTONIC = 1


class Attr:
    """An event that perf recorded on each CPU."""

    def __init__(self, name, kind=TRACEPOINT, config=None, sample_type=PLAIN, flags=TRAILER, period=1, read_format=0, clock=None):
        self.name, self.kind, self.sample_type, self.period, self.read_format = name, kind, sample_type, period, read_format
        self.config = EVENTS[name.split(":")[-1]][0] if config is None else config
        self.flags, self.clock = flags | (CLOCK if clock is not None else 0), clock or 0
        self.ids = []


class Writer:
    """Collects records; file() and pipe() return the bytes of a file."""

    def __init__(self, attrs, cpus=2, order="<", host="machine", clock_data=None, first_last=None):
        self.order, self.attrs, self.cpus, self.host = order, attrs, cpus, host
        self.clock_data, self.first_last = clock_data, first_last
        self.records, self.has_formats, self.running = [], True, 5
        for i, a in enumerate(attrs):
            a.ids = [100 * (i + 1) + cpu for cpu in range(cpus)]

    def pack(self, form, *values):
        return struct.pack(self.order + form, *values)

    def add(self, kind, body=b"", misc=0, behind=b""):
        """Adds a record; behind: bytes that follow it."""
        self.records.append(self.pack("IHH", kind, misc, 8 + len(body)) + body + behind)
        return len(self.records) - 1

    def trailer(self, time, cpu, tid=0, attr=0, pid=None, context_cpu=None):
        """Returns the end of a record; context_cpu: the CPU in it, if that is not the CPU of the event's id."""
        a, out = self.attrs[attr], b""
        if not a.flags & TRAILER:
            return out
        for bit, part in ((TID, self.pack("ii", tid if pid is None else pid, tid)), (TIME, self.pack("Q", time)),
                          (ID, self.pack("Q", a.ids[cpu])), (CPU, self.pack("II", cpu if context_cpu is None else context_cpu, 0)),
                          (IDENTIFIER, self.pack("Q", a.ids[cpu]))):
            out += part if a.sample_type & bit else b""
        return out

    def sample(self, attr, time, cpu, tid, values=None, read=None, pid=None, raw=None, chain=()):
        """Adds a sample; values: fields of the tracepoint; read: values of the group's counters, by attribute."""
        a = self.attrs[attr]
        ident = self.pack("Q", a.ids[cpu])
        if raw is None and a.sample_type & RAW:
            raw = record(a.name.split(":")[-1], tid, order=self.order, **(values or {}))
        raw = raw or b""
        raw += bytes(-(len(raw) + 4) % 8)
        out = b""
        for bit, part in ((IDENTIFIER, ident), (IP, self.pack("Q", 0xffffffff81000000)),
                          (TID, self.pack("ii", tid if pid is None else pid, tid)), (TIME, self.pack("Q", time)), (ID, ident),
                          (CPU, self.pack("II", cpu, 0)), (PERIOD, self.pack("Q", 1)), (READ, self.read_values(a, cpu, read)),
                          (CALLCHAIN, self.pack(f"Q{len(chain)}Q", len(chain), *chain)), (RAW, self.pack("I", len(raw)) + raw)):
            out += part if a.sample_type & bit else b""
        return self.add(SAMPLE, out, misc=1)

    def read_values(self, a, cpu, read):
        if read is None:
            return b""
        times = self.pack("Q", 5) * bool(a.read_format & READ_ENABLED)
        times += self.pack("Q", self.running) * bool(a.read_format & READ_RUNNING)
        ids = {i: self.pack("Q", self.attrs[i].ids[cpu]) if a.read_format & READ_ID else b"" for i in read}
        if a.read_format & READ_GROUP:
            return self.pack("Q", len(read)) + times + b"".join(self.pack("Q", v) + ids[i] for i, v in read.items())
        return b"".join(self.pack("Q", v) + times + ids[i] for i, v in read.items())

    def comm(self, pid, tid, name, time=0, cpu=0):
        body = name.encode() + b"\0"
        return self.add(COMM, self.pack("II", pid, tid) + body + bytes(-len(body) % 8) + self.trailer(time, cpu))

    def task(self, kind, pid, parent_pid, tid, parent_tid, time, cpu):
        """Adds a record FORK or EXIT."""
        return self.add(kind, self.pack("IIIIQ", pid, parent_pid, tid, parent_tid, time) + self.trailer(time, cpu, tid))

    def lose(self, count, time, cpu, kind=LOST, attr=0):
        if kind == LOST_SAMPLES:  # written by perf, without time and CPU
            return self.add(kind, self.pack("Q", count) + self.trailer(0, cpu, attr=attr, context_cpu=0))
        return self.add(kind, self.pack("QQ", self.attrs[attr].ids[cpu], count) + self.trailer(time, cpu, attr=attr))

    def end_round(self):
        return self.add(FINISHED_ROUND)

    def attr_bytes(self, a):
        bits = struct.pack("<Q", a.flags)
        if self.order == ">":  # the compiler allocates bit fields from the other end
            bits = bytes(int(f"{b:08b}"[::-1], 2) for b in bits)
        return (self.pack("IIQQQQ", a.kind, 128, a.config, a.period, a.sample_type, a.read_format) + bits +
                bytes(44) + self.pack("i", a.clock)).ljust(128, b"\0")

    def formats(self):
        out = b"\x17\x08\x44tracing0.6\0" + bytes([self.order == ">", 8]) + self.pack("I", 4096)
        for name, text in ((b"header_page\0", HEADER_PAGE), (b"header_event\0", HEADER_EVENT)):
            out += name + self.pack("Q", len(text)) + text
        out += self.pack("I", 0)
        used = {a.name.split(":")[-1] for a in self.attrs if a.kind == TRACEPOINT}
        systems = sorted({SYSTEM[e] for e in used})
        out += self.pack("I", len(systems))
        for system in systems:
            texts = [event_format(e) for e in EVENTS if SYSTEM[e] == system and e in used]
            out += system.encode() + b"\0" + self.pack("I", len(texts))
            out += b"".join(self.pack("Q", len(t)) + t for t in texts)
        return out + self.pack("IIQ", 0, 0, 0)

    def text(self, text):
        return self.pack("I", len(text) + 1) + text.encode() + b"\0"

    def features(self):
        events = self.pack("II", len(self.attrs), 128)
        for a in self.attrs:
            events += self.attr_bytes(a) + self.pack("I", len(a.ids)) + self.text(a.name) + self.pack(f"{len(a.ids)}Q", *a.ids)
        out = {1: self.formats()} if self.has_formats else {}
        out.update({3: self.text(self.host), 5: self.text("6.1.0"), 7: self.pack("II", self.cpus, self.cpus), 12: events})
        if self.first_last:
            out[21] = self.pack("QQ", *self.first_last)
        if self.clock_data:
            out[29] = self.pack("IIQQ", 1, MONOTONIC, *self.clock_data)
        return out

    def all_threads(self):
        """Returns the records ID_INDEX and THREAD_MAP."""
        ids = [(i, cpu) for a in self.attrs for cpu, i in enumerate(a.ids)]
        index = self.pack("Q", len(ids)) + b"".join(self.pack("QQQQ", i, cpu, cpu, (1 << 64) - 1) for i, cpu in ids)
        return self.pack("IHH", ID_INDEX, 0, 8 + len(index)) + index + self.pack("IHH", THREAD_MAP, 0, 40) + self.pack("QQ", 1, (1 << 64) - 1) + bytes(16)

    def compressed(self, rng):
        """Returns the records as perf record -z writes them: pieces of one zstd stream, cut anywhere.  The blocks of the stream
        are of the kind that contains bytes as they are."""
        data, out, at = b"".join(self.records), [], 0
        while at < len(data):
            piece = data[at:at + rng.randrange(1, 3000)]
            at += len(piece)
            packed = (b"\x28\xb5\x2f\xfd\0\x58" if not out else b"") + struct.pack("<I", len(piece) << 3)[:3] + piece
            out.append(self.pack("IHH", COMPRESSED, 0, 8 + len(packed)) + packed)
        return out

    def file(self):
        magic = b"PERFILE2" if self.order == "<" else b"2ELIFREP"
        at, ids, entries = 104, b"", b""
        for a in self.attrs:
            entries += self.attr_bytes(a) + self.pack("QQ", at + len(ids), 8 * len(a.ids))
            ids += self.pack(f"{len(a.ids)}Q", *a.ids)
        data = self.all_threads() + b"".join(self.records)
        data_at = at + len(ids) + len(entries)
        features = self.features()
        bits = [sum(1 << f % 64 for f in features if f // 64 == word) for word in range(4)]
        head = magic + self.pack("QQ", 104, 144) + self.pack("QQQQQQ", at + len(ids), len(entries), data_at, len(data), 0, 0)
        head += self.pack("4Q", *bits)
        offset, table, sections = data_at + len(data) + 16 * len(features), b"", b""
        for number in sorted(features):
            table += self.pack("QQ", offset + len(sections), len(features[number]))
            sections += features[number]
        return head + ids + entries + data + table + sections

    def pipe(self):
        own, self.records = self.records, []
        for a in self.attrs:
            self.add(ATTR, self.attr_bytes(a) + self.pack(f"{len(a.ids)}Q", *a.ids))
        for number, data in self.features().items():
            if number != 1:
                self.add(FEATURE, self.pack("Q", number) + data + bytes(-len(data) % 8))
        formats = self.formats()
        self.add(TRACING_DATA, self.pack("I", len(formats)), behind=formats + bytes(-len(formats) % 8))
        self.records, own = own, self.records
        magic = b"PERFILE2" if self.order == "<" else b"2ELIFREP"
        return magic + self.pack("Q", 16) + b"".join(own) + self.all_threads() + b"".join(self.records)


def samples(data):
    """Yields (time, cpu, raw) of the tracepoints of a file in the order of the file.  All events must have the
    fields of perf record -a, and the machine must be little-endian."""
    size, entry, attrs_at, attrs, data_at, data_size = struct.unpack_from("<8x6Q", data)
    tracepoints = {}
    for at in range(attrs_at, attrs_at + attrs, entry):
        kind, _, config, _, sample_type = struct.unpack_from("<IIQQQ", data, at)
        ids_at, ids = struct.unpack_from("<QQ", data, at + entry - 16)
        for i in range(ids_at, ids_at + ids, 8):
            tracepoints[struct.unpack_from("<Q", data, i)[0]] = (kind, config, sample_type)
    assert size == 104
    at = data_at
    while at < data_at + data_size:
        kind, _, n = struct.unpack_from("<IHH", data, at)
        if kind == SAMPLE:
            ident, _, _, _, time, cpu, _, _, raw = struct.unpack_from("<QQiiQIIQI", data, at + 8)
            if tracepoints[ident][0] == TRACEPOINT:
                assert tracepoints[ident][2] == PLAIN
                yield time, cpu, data[at + 60:at + 60 + raw]
        at += n


def features(data):
    """Returns {number: bytes} of the sections of a file of a little-endian machine."""
    data_at, data_size, _, _, *bits = struct.unpack_from("<8Q", data, 40)
    numbers, out = [n for n in range(256) if bits[n // 64] >> n % 64 & 1], {}
    for i, number in enumerate(numbers):
        at, size = struct.unpack_from("<QQ", data, data_at + data_size + 16 * i)
        out[number] = data[at:at + size]
    return out


def real_time_offset(data):
    """Returns real time - clock of the samples, ns."""
    _, _, real, clock = struct.unpack("<IIQQ", features(data)[29])
    return real - clock
