"""Counters in traces of perf (group {sched:sched_switch,instructions,cycles}:S, converted to CTF): events after each switch with
the difference to the previous read. The traces are written here, so all counts are known exactly."""
import os
import random
import struct

import schema
from e2e import check, run, scratch

INTEGER = "integer {{ size = {}; align = 1; signed = {}; byte_order = le; }} {};"
FIELDS = (("perf_tid", "i"), ("perf_pid", "i"), ("perf_period", "Q"))
SWITCH = (*FIELDS, ("prev_comm", "s"), ("prev_pid", "i"), ("prev_state", "q"), ("next_comm", "s"), ("next_pid", "i"))
EVENTS = (("sched:sched_switch", SWITCH), ("instructions", FIELDS), ("cycles", FIELDS))
SIZE = {"i": 32, "q": 64, "Q": 64}


def metadata():
    def member(name, kind):
        return "string " + name + ";" if kind == "s" else INTEGER.format(SIZE[kind], str(kind != "Q").lower(), name)
    text = "/* CTF 1.8 */\ntrace { major = 1; minor = 8; byte_order = le; packet.header := struct { " + \
        INTEGER.format(32, "false", "magic") + INTEGER.format(32, "false", "stream_id") + " } align(8); };\n" + \
        "env { domain = \"kernel\"; tracer_name = \"perf\"; };\nclock { name = perf_clock; freq = 1000000000; };\n" + \
        "stream { id = 0; event.header := struct { " + INTEGER.format(32, "false", "id") + \
        INTEGER.format(64, "false", "timestamp").replace("; }", "; map = clock.perf_clock.value; }") + " } align(8);\n" + \
        "packet.context := struct { " + INTEGER.format(64, "false", "content_size") + INTEGER.format(64, "false", "packet_size") + \
        INTEGER.format(32, "false", "cpu_id") + " } align(8); };\n"
    for i, (name, fields) in enumerate(EVENTS):
        text += f"event {{ id = {i}; name = \"{name}\"; stream_id = 0; fields := struct {{ " + \
            " ".join(member(n, k) for n, k in fields) + " } align(8); };\n"
    return text


def event(number, t, *values):
    out = struct.pack("<IQ", number, t)
    for (_, kind), value in zip(EVENTS[number][1], values):
        out += value.encode() + b"\0" if kind == "s" else struct.pack("<" + kind, value)
    return out


def write_trace(folder, cpus):
    """cpus: lists of (time, previous TID, next TID, instructions, cycles); counts of None have no event."""
    os.makedirs(folder)
    with open(f"{folder}/metadata", "w", encoding="utf-8") as f:
        f.write(metadata())
    for cpu, switches in enumerate(cpus):
        body = b""
        for t, before, after, *counts in switches:
            body += event(0, t, before, before, 1, f"t{before}", before, 1 if before else 0, f"t{after}", after)
            body += b"".join(event(1 + i, t, before, before, n) for i, n in enumerate(counts) if n is not None)
        bits = 8 * (8 + 20 + len(body))
        with open(f"{folder}/perf_stream_{cpu}", "wb") as f:
            f.write(struct.pack("<II", 0xC1FC1FC1, 0) + struct.pack("<QQI", bits, bits, cpu) + body)


def rows_of(history, *command):
    return schema.check_answer(run(command[0], history, *command[1:], "--format", "json", "--limit", "0").stdout)


def check_sums(folder):
    """Random switches: the counts of each thread are the sums of its events."""
    rng, cpus, want = random.Random(7), [], {}
    for cpu in range(2):
        t, current, switches = 10**15 + cpu, 0, []
        for i in range(400):
            ns = rng.randrange(2000, 900000)
            t += ns
            after = 0 if current else 1000 + 10 * cpu + rng.randrange(3)
            counts = [rng.randrange(1, 4 * ns), rng.randrange(1, 4 * ns)]
            if rng.randrange(20) == 0:
                counts = [None, None]  # not read: the next counts belong to two threads
            before = switches[-1][3] if switches else None
            if i and current and None not in counts and before is not None:
                pair = want.setdefault(current, [0, 0])
                pair[0] += counts[0]
                pair[1] += counts[1]
            switches.append((t, current, after, *counts))
            current = after
        cpus.append(switches)
    write_trace(f"{folder}/random", cpus)
    run("index", "--host", f"{folder}/random", "-o", f"{folder}/random.steal")
    got = {r["tid"]: [r["instructions"], r["cycles"]] for r in rows_of(f"{folder}/random.steal", "threads") if r["counted_ns"]}
    check(got == want and len(want) == 6, f"the counts of {len(want)} threads are the sums of their events")


def check_sharers(folder):
    """Thread 100 runs alone, then beside 200, then beside both: IPC 1.4 and 0.8."""
    ms, begin = 1000000, 10**15
    first = [(begin, 0, 100, 1, 1), (begin + 10 * ms, 100, 0, 14 * ms, 10 * ms), (begin + 11 * ms, 0, 100, 5, 5),
             (begin + 31 * ms, 100, 0, 16 * ms, 20 * ms), (begin + 32 * ms, 0, 100, 5, 5),
             (begin + 42 * ms, 100, 0, 11 * ms, 10 * ms), (begin + 50 * ms, 0, 100, 5, 5)]
    second = [(begin - ms, 200, 0, 1, 1), (begin + 10 * ms + 500000, 0, 200, 7, 7), (begin + 37 * ms, 200, 0, 9, 9),
              (begin + 49 * ms, 0, 200, 5, 5)]
    write_trace(f"{folder}/shared", [first, second])
    with open(f"{folder}/shared.yaml", "w", encoding="utf-8") as f:
        f.write(f"host: {{dir: {folder}/shared, topology: {{cpus: {{0: {{core: 0}}, 1: {{core: 0}}}}}}}}\n")
    run("index", f"{folder}/shared.yaml", "-o", f"{folder}/shared.steal")
    rows = {(r["kind"], r["sharer"]): r for r in rows_of(f"{folder}/shared.steal", "steal", "host/100", "--by", "core")}
    alone, beside = rows["alone", None], rows["shared", "host/200 t200"]
    check((alone["ipc"], alone["counted_ns"]) == (1.4, 10 * ms), "alone: 1.4")
    check((beside["ipc"], beside["counted_ns"]) == (0.8, 20 * ms), "beside 200: 0.8; the mixed interval is in neither")
    text = " ".join(run("explain", f"{folder}/shared.steal", "host/100").stdout.split())
    check("It executed 1.02 instructions per cycle: 1.40 alone on its core, 0.80 beside host/200 t200." in text, "explain says it")
    check("with host/200 t200 on the same core" in text, "and names the sharer")
    summary = next(r for r in rows_of(f"{folder}/shared.steal", "threads") if r["tid"] == 100)
    check((summary["ipc_alone"], summary["ipc_shared"]) == (1.4, 0.8) and summary["instructions"] == 41 * ms, "threads agrees")


with scratch() as tmp:
    check_sums(tmp)
    check_sharers(tmp)
