"""Writes Perfetto traces: encodes messages by the schema in perfetto.proto, as protoc does, and converts recordings of the
kernel's ring buffers (raw pages) into packets with ftrace events.

A message is a list of (name of a field, value); a value is a number, a text, bytes, or again a list."""
import collections
import glob
import os
import re
import struct
import subprocess
import zlib

from e2e import SOURCE

PAGE, HEAD = 4096, 16
REALTIME, BOOTTIME = 1, 6
PROTO = os.path.join(SOURCE, "tests", "perfetto.proto")


def read_schema():
    """Returns {message: {field: (number, type, is packed)}} of the schema; nested messages by their own name."""
    schema, stack = {}, []
    with open(PROTO, encoding="utf-8") as f:
        text = re.sub(r"//.*|enum \w+ \{[^}]*\}", "", f.read())
    for m in re.finditer(r"message (\w+) \{|(?:optional|repeated) (\w+) (\w+) = (\d+)( \[packed = true\])?;|\}", text):
        if m[1]:
            stack.append(m[1])
            schema[m[1]] = {}
        elif m[3]:
            schema[stack[-1]][m[3]] = (int(m[4]), m[2], bool(m[5]))
        else:
            stack.pop()
    return schema


SCHEMA = read_schema()


def varint(n):
    out, n = b"", n & (1 << 64) - 1
    while n > 127:
        out, n = out + bytes((n & 127 | 128,)), n >> 7
    return out + bytes((n,))


class RawMessage(list):
    """A message that is already encoded."""

    def __init__(self, data):
        super().__init__()
        self.data = data


def encode(message, kind):
    """Returns the bytes of a message. Values of a packed field are one list of numbers."""
    if isinstance(message, RawMessage):
        return message.data
    out = []
    for name, value in sorted(message, key=lambda f: SCHEMA[kind][f[0]][0]):  # protoc sorts fields, too
        number, of, packed = SCHEMA[kind][name]
        if packed:
            value = b"".join(varint(v) for v in value)
        elif of in SCHEMA:
            value = encode(value, of)
        elif isinstance(value, str):
            value = value.encode()
        if isinstance(value, int):
            out += [varint(number << 3), varint(value)]
        else:
            out += [varint(number << 3 | 2), varint(len(value)), value]
    return b"".join(out)


def as_text(message, kind):
    """Returns the message in protobuf's text format."""
    out = []
    for name, value in message:
        _, of, packed = SCHEMA[kind][name]
        if packed:
            out += [f"{name}: {v}" for v in value]
        elif of in SCHEMA:
            out.append(f"{name} {{ {as_text(value, of)} }}")
        elif isinstance(value, int):
            out.append(f"{name}: {value}")
        else:
            data = value.encode() if isinstance(value, str) else value
            out.append(f'{name}: "' + "".join(f"\\{b:03o}" for b in data) + '"')
    return "\n".join(out)


def protoc(packets):
    """Returns the trace as encoded by protoc."""
    text = as_text([("packet", p) for p in packets], "Trace")
    return subprocess.run(["protoc", "--encode=perfetto.protos.Trace", f"-I{os.path.dirname(PROTO)}", "perfetto.proto"],
                          input=text.encode(), stdout=subprocess.PIPE, check=True).stdout


def write(path, packets):
    with open(path, "wb") as f:
        f.write(encode([("packet", p) for p in packets], "Trace"))


# ---- recordings of the kernel's ring buffers

Event = collections.namedtuple("Event", "ts cpu name fields")  # fields: {name: number or text}


def layout(path):
    """Returns name, ID and fields {name: (offset, size, is signed, is text)} of an event's format."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    fields = re.findall(r"field:([^;]*?)(\w+)(?:\[\w*\])?;\s*offset:(\d+);\s*size:(\d+);\s*signed:(\d)", text)
    return path.split("/")[-2], int(re.search(r"ID: (\d+)", text)[1]), \
        {n: (int(o), int(s), signed == "1", "char" in kind and (int(s) > 1 or "loc" in kind)) for kind, n, o, s, signed in fields}


def records_of_page(page):
    """Yields (time, data) of the records of a page."""
    ts, commit = struct.unpack_from("<QQ", page)
    at, end = HEAD, HEAD + (commit & 0xfffff)
    while at < end:
        word, = struct.unpack_from("<I", page, at)
        kind, delta, at = word & 31, word >> 5, at + 4
        more = struct.unpack_from("<I", page, at)[0] if at < end else 0
        if kind == 31:  # absolute time
            ts, at = delta + (more << 27), at + 4
        elif kind == 29 and not delta:  # the rest of the page is empty
            return
        elif kind == 29:  # a discarded event
            ts, at = ts + delta, at + more
        elif kind == 30:
            ts, at = ts + delta + (more << 27), at + 4
        else:
            ts, size, at = ts + delta, kind * 4 if kind else more - 4, at if kind else at + 4
            yield ts, page[at:at + size]
            at += size


def value_of(record, offset, size, signed, is_text):
    if not is_text:
        return int.from_bytes(record[offset:offset + size], "little", signed=signed)
    if size == 4:  # __data_loc: offset and length
        place = int.from_bytes(record[offset:offset + 4], "little")
        offset, size = place & 0xffff, place >> 16
    elif not size:
        size = len(record)
    return record[offset:offset + size].split(b"\0")[0].decode("utf-8", "replace")


def read_pages(folder):
    """Returns the events of a recording, each CPU in the order of its buffer."""
    known = {number: (name, fields) for name, number, fields in map(layout, glob.glob(f"{folder}/events/*/*/format"))}
    events = []
    for path in sorted(glob.glob(f"{folder}/pages/cpu*")):
        cpu = int(path.rsplit("cpu", 1)[1])
        with open(path, "rb") as f:
            data = f.read()
        for at in range(0, len(data), PAGE):
            for ts, record in records_of_page(data[at:at + PAGE]):
                name, fields = known[int.from_bytes(record[:2], "little")]
                events.append(Event(ts, cpu, name, {n: value_of(record, *f) for n, f in fields.items()}))
    return events


# ---- packets

def generic(event):
    """Returns an event as a generic one: name and fields as texts."""
    fields = [[("name", n), ("str_value" if isinstance(v, str) else "uint_value" if v >= 1 << 63 else "int_value", v)]
              for n, v in event.fields.items() if not n.startswith("common_")]
    return [("event_name", event.name)] + [("field", f) for f in fields]


def context(event):
    return [("timestamp", event.ts), ("pid", event.fields["common_pid"]), ("common_flags", event.fields["common_flags"])]


def message(event, only_generic=()):
    """Returns an FtraceEvent: with the event's own message if the schema has one, otherwise as a generic event."""
    of = SCHEMA["FtraceEvent"].get(event.name, (0, ""))[1]
    if event.name in only_generic or of not in SCHEMA:
        return context(event) + [("generic", generic(event))]
    return context(event) + [(event.name, [(n, event.fields[n]) for n in SCHEMA[of] if n in event.fields])]


class Descriptions:
    """Numbers and descriptions of messages for events without one in the schema, as Perfetto 50 writes them."""
    first = 65536

    def __init__(self):
        self.known = {}

    def message(self, event):
        """Returns the bytes of an FtraceEvent with a message of its own."""
        names = [n for n in event.fields if not n.startswith("common_")]
        number, described = self.known.setdefault(event.name, (self.first + len(self.known), []))
        if not described:
            fields = [("field", [("name", n), ("number", i + 1), ("type", 9 if isinstance(event.fields[n], str) else 3)])
                      for i, n in enumerate(names)]
            described += [("field_id", number), ("event_descriptor", encode([("name", event.name)] + fields, "DescriptorProto"))]
        body = b""
        for i, n in enumerate(names):
            v = event.fields[n]
            body += varint(i + 1 << 3) + varint(v) if isinstance(v, int) else \
                varint(i + 1 << 3 | 2) + varint(len(v.encode())) + v.encode()
        return encode(context(event), "FtraceEvent") + varint(number << 3 | 2) + varint(len(body)) + body


def compact(events):
    """Returns the compact encoding of switches and waking events."""
    names, columns, last = {}, collections.defaultdict(list), {}

    def add(kind, e, values):
        columns[kind + "_timestamp"].append(e.ts - last.get(kind, 0))
        last[kind] = e.ts
        for name, v in values.items():
            columns[f"{kind}_{name}"].append(names.setdefault(v, len(names)) if name.endswith("index") else v)
    for e in events:
        f = e.fields
        if e.name == "sched_switch":
            add("switch", e, {"prev_state": f["prev_state"], "next_pid": f["next_pid"], "next_prio": f["next_prio"],
                              "next_comm_index": f["next_comm"]})
        else:
            add("waking", e, {"pid": f["pid"], "target_cpu": f["target_cpu"], "prio": f["prio"], "comm_index": f["comm"],
                              "common_flags": f["common_flags"]})
    return [(n, columns[n]) for n in SCHEMA["CompactSched"] if n in columns] + [("intern_table", n) for n in names]


def bundles(events, size=200, use_compact=False, only_generic=(), described=None, sequence=2, machine=0, first=True,
            since_start=True):
    """Yields packets with the events, at most `size` events of one CPU each, interleaved as a tracer writes them.
    since_start: false: earlier bundles are missing, as in a ring buffer."""
    rest, ends = collections.defaultdict(list), collections.Counter()
    for e in events:
        rest[e.cpu].append(e)
        if not since_start:
            ends.setdefault(e.cpu, e.ts)
    while any(rest.values()):
        for cpu in sorted(rest):
            part, rest[cpu] = rest[cpu][:size], rest[cpu][size:]
            if not part:
                continue
            is_compact = [use_compact and e.name in ("sched_switch", "sched_waking") for e in part]
            plain = [e for e, c in zip(part, is_compact) if not c]
            bundle = [("cpu", cpu), ("previous_bundle_end_timestamp", ends[cpu])]
            ends[cpu] = part[-1].ts
            if described:
                own = [e for e in plain if SCHEMA["FtraceEvent"].get(e.name, (0, ""))[1] not in SCHEMA]
                raw = b"".join(varint(2 << 3 | 2) + varint(len(m)) + m for m in
                               (described.message(e) if e in own else encode(message(e), "FtraceEvent") for e in plain))
                bundle += [("generic_event_descriptors", described.known[n][1]) for n in {e.name for e in own}]
                bundle = RawMessage(encode(bundle, "FtraceEventBundle") + raw)
            else:
                bundle += [("event", message(e, only_generic)) for e in plain]
            if any(is_compact):
                packed = [("compact_sched", compact([e for e, c in zip(part, is_compact) if c]))]
                bundle = RawMessage(bundle.data + encode(packed, "FtraceEventBundle")) if described else bundle + packed
            yield [("ftrace_events", bundle), ("trusted_packet_sequence_id", sequence)] + \
                [("previous_packet_dropped", 1)] * first + [("machine_id", machine)] * (machine != 0)
            first = False


def snapshot(boot, real):
    return [("clocks", [("clock_id", BOOTTIME), ("timestamp", boot)]), ("clocks", [("clock_id", REALTIME), ("timestamp", real)])]


def clocks(boot, real, machine=0):
    return [("clock_snapshot", snapshot(boot, real))] + [("machine_id", machine)] * (machine != 0)


def flush(boot):
    """The tracing service asks the tracers for their last events."""
    return [("service_event", [("flush_started", 1)]), ("timestamp", boot), ("timestamp_clock_id", BOOTTIME)]


def process_tree(names, processes, machine=0):
    """names: {TID: name}; processes: {TID: process}."""
    threads = [("threads", [("tid", t), ("name", name)] + ([("tgid", processes[t])] if t in processes else []))
               for t, name in names.items()]
    return [("process_tree", threads)] + [("machine_id", machine)] * (machine != 0)


def deflate(packets, per_packet=20):
    """Returns the packets, compressed in groups."""
    packets = list(packets)
    return [[("compressed_packets", zlib.compress(encode([("packet", p) for p in packets[i:i + per_packet]], "Trace")))]
            for i in range(0, len(packets), per_packet)]
