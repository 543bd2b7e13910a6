"""Perfetto traces made from recordings in other formats, in each encoding of the events: all answers equal those of the
recording, to the ns.

The traces are encoded by the published schema (perfetto.proto) in perfetto_trace.py, and by protoc, which must agree.
The source is an arm64 host: pages of the kernel's ring buffers, which perfetto_trace.py reads itself.
test_perfetto_machines.py does the same with a host and its guest."""
import collections
import os
import random
import re
import resource
import shutil
import sys
import tarfile
import zlib

import perfetto_trace as pf
from e2e import DATA, check, codes, document, is_brief, notes, run, scratch, skip, table

ARM_BOOT, ARM_REAL, ARM_END = 16219004096, 1795364186183038904, 18234737264  # about.yaml: started, stopped


def answers(history, folder):
    """Returns {table: its rows} of all tables of the export, without ids and paths of the recordings."""
    target = os.path.join(folder, "tables")
    shutil.rmtree(target, ignore_errors=True)
    run_id = re.search(r"run_id (\d+)", run("export", history, "--to", f"csv:{target}").stdout)[1]
    rows = {}
    for name in sorted(os.listdir(target)):
        with open(f"{target}/{name}/{run_id}.csv", encoding="utf-8") as f:
            rows[name] = sorted(re.sub(r"[0-9a-f]{16}(?=,|$)", "", line.replace(run_id, "ID")) for line in f)
    del rows["run"]  # names of files, and the time of the run
    return rows


def check_same(got, expected, description):
    differ = [n for n in expected if got[n] != expected[n]]
    for n in differ:
        print(n, [pair for pair in zip(expected[n], got[n]) if pair[0] != pair[1]][:3], len(expected[n]), len(got[n]))
    check(not differ, f"{description}: {sum(map(len, got.values()))} rows of {len(got)} tables are equal")


def lines(path):
    with open(path, encoding="utf-8") as f:
        return {int(tid): rest for tid, rest in (line.rstrip("\n").split(" ", 1) for line in f)}


def index(folder, packets, name="t.pftrace", status=0):
    """Returns the history of a trace with these packets, and the program's messages."""
    path, history = os.path.join(folder, name), os.path.join(folder, "t.steal")
    pf.write(path, packets)
    p = run("index", path, "-o", history, status=status)
    return history, p.stderr


def arm_head(host):
    processes = {tid: int(pid) for tid, pid in lines(f"{host}/saved_tgids").items()}
    return [pf.clocks(ARM_BOOT, ARM_REAL), [("system_info", [("machine_name", "arm-host"), ("tracing_service_version", "stealscope record")])],
            pf.process_tree(lines(f"{host}/saved_cmdlines"), processes), pf.flush(ARM_END)]


def check_encodings(folder):
    """Each encoding of the events of the arm64 host."""
    with tarfile.open(os.path.join(DATA, "arm64.tar.xz")) as tar:
        tar.extractall(folder)
    host, history = f"{folder}/arm/host", f"{folder}/arm.steal"
    if "built without libtraceevent" in run("index", host, "-o", history, status=None).stderr:
        skip("this build has no libtraceevent")
    run("index", host, "-o", history)
    expected, events, head = answers(history, folder), pf.read_pages(host), arm_head(host)
    encodings = {
        "messages": pf.bundles(events),
        "generic events": pf.bundles(events, only_generic={e.name for e in events}),
        "described messages": pf.bundles(events, described=pf.Descriptions()),
        "compact switches": pf.bundles(events, size=700, use_compact=True),
        "compact switches, one event per bundle": pf.bundles(events, size=1, use_compact=True),
    }
    for name, packets in list(encodings.items())[is_brief():]:
        history, _ = index(folder, head + list(packets))
        check_same(answers(history, folder), expected, name)
    trace, = document(history)["traces"]
    check((trace["machine"], trace["role"], int(trace["events"]), trace["layout"]) ==
          ("arm-host", "host", len(events), "ftrace"), f"{trace}")
    history, messages = index(folder, pf.deflate(head + list(pf.bundles(events, use_compact=True))), status=None)
    if "built without zlib" in messages:
        print("     compressed packets: this build has no zlib")
    else:
        check_same(answers(history, folder), expected, "compressed packets")
    return events, head


def check_other_cpu(folder, events, head):
    """An event may name another CPU (cpu_frequency, cpu_idle): it does not move its thread there. Only these events' rows
    are added to the answers."""
    history, _ = index(folder, head + list(pf.bundles(events)))
    expected, current, mixed = answers(history, folder), {}, []
    for i, e in enumerate(sorted(events, key=lambda e: e.ts)):
        mixed.append(e)
        if e.name == "sched_switch":
            current[e.cpu] = e.fields["next_pid"]
        if i % 40 == 0 and current.get(e.cpu):
            for name in ("cpu_frequency", "cpu_idle"):
                mixed.append(pf.Event(e.ts, e.cpu, name, {"common_pid": current[e.cpu], "common_flags": 0,
                                                          "state": 1, "cpu_id": 1 - e.cpu}))
    encodings = {"messages": pf.bundles(mixed), "generic events": pf.bundles(mixed, only_generic={"cpu_frequency", "cpu_idle"})}
    for name, packets in encodings.items():
        history, messages = index(folder, head + list(packets))
        check(not set(codes("info", history)) & {"contradicting-events", "self-check-failed"}, f"{name}: no event contradicts another one: {messages.strip()}")
        got = answers(history, folder)
        for added in ("loss", "frequency", "provenance"):  # loss: has the number of events
            got.pop(added, None), expected.pop(added, None)
        check_same(got, expected, f"{len(mixed) - len(events)} events that name the other CPU, as {name}")


def check_protoc(events, head):
    if not shutil.which("protoc"):
        return "protoc is not installed"
    events = events[:2000]
    for name, packets in {"messages": pf.bundles(events), "compact": pf.bundles(events, use_compact=True),
                          "generic": pf.bundles(events, only_generic={e.name for e in events})}.items():
        packets = head + list(packets)
        mine = pf.encode([("packet", p) for p in packets], "Trace")
        check(pf.protoc(packets) == mine, f"protoc encodes the same {len(mine)} bytes ({name})")
    return None


def check_losses(folder, events, head):
    """The state of a CPU is unknown while events are missing, and exact again after it; other CPUs are not affected."""
    base = list(pf.bundles(events, use_compact=True))
    on_cpu = [i for i, p in enumerate(base) if dict(dict(p)["ftrace_events"])["cpu"] == 1]
    lost = on_cpu[len(on_cpu) // 2]

    def without(mark):
        bundle = dict(base[lost + 2])["ftrace_events"]
        check(dict(bundle)["cpu"] == 1, "the bundle after the lost one is of the same CPU")
        changed = [(n, v) for n, v in bundle if n != "previous_bundle_end_timestamp"]
        kept = [("ftrace_events", bundle if mark == "time" else changed + [("lost_events", 1)] * (mark == "flag")),
                ("trusted_packet_sequence_id", 2)] + [("previous_packet_dropped", 1)] * (mark == "dropped")
        return base[:lost] + base[lost + 1:lost + 2] + [kept] + base[lost + 3:]
    for mark in ("time", "flag", "dropped"):
        history, _ = index(folder, head + without(mark))
        check("uncounted-losses" in codes("info", history), f"a lost bundle is found by its {mark}")
        for cpu in ("CPU0", "CPU1"):
            unknown = [r for r in table("intervals", history, f"/Host/CPUs/{cpu}/Current Thread") if r["value"] == ""]
            check(len(unknown) == (cpu == "CPU1" or mark == "dropped"),  # dropped packets may be of any CPU
                  f"{mark}: {cpu} is unknown {len(unknown)} times")
    history, _ = index(folder, head + base[:lost] + base[lost + 1:lost + 2] + [
        [("ftrace_events", [(n, v) for n, v in dict(base[lost + 2])["ftrace_events"] if "previous" not in n]),
         ("trusted_packet_sequence_id", 2)]] + base[lost + 3:])
    check("uncounted-losses" not in codes("info", history), "without any mark, the loss is not found: the marks are necessary")


def check_refusals(folder, events, head):
    """Traces that cannot be used, and files that only look like one."""
    for name, packets, part in (
            ("no events", head, "without events of the kernel"),
            ("only slices", [[("track_event", []), ("trusted_packet_sequence_id", 1)]], "only with slices")):
        _, message = index(folder, packets, status=2)
        check(part in message and "linux.ftrace" in message and message.count("\n") == 1, f"{name}: {message.strip()}")
    history, _ = index(folder, head + list(pf.bundles(events[:500])))
    run("export", history, "--to", f"perfetto:{folder}/exported.pftrace")
    message = run("index", f"{folder}/exported.pftrace", "-o", f"{folder}/x.steal", status=2).stderr
    check("open the history that it was exported from" in message, f"an export of stealscope: {message.strip()}")
    for text in (b"\n\nsome text after empty lines", b"\nhello, world, this is a text", b"\n\x10P" + b"\x80" * 40):
        os.makedirs(f"{folder}/texts", exist_ok=True)
        with open(f"{folder}/texts/README", "wb") as f:
            f.write(text)
        message = run("index", f"{folder}/texts", "-o", f"{folder}/x.steal", status=2).stderr
        check("Perfetto" not in message, f"a text is no Perfetto trace: {message.strip()}")
    whole = pf.encode([("packet", p) for p in head + list(pf.bundles(events, size=50))], "Trace")
    with open(f"{folder}/cut.pftrace", "wb") as f:
        f.write(whole[:len(whole) // 2])
    run("index", f"{folder}/cut.pftrace", "-o", f"{folder}/cut.steal")
    found = {n["code"]: n["text"] for n in notes("info", f"{folder}/cut.steal")}
    check("perfetto-damaged" in found and "ends inside a packet" in found["perfetto-damaged"], f"a file cut in half: {found}")


def check_damage(folder, events, head):
    """Bytes changed at random: a clear error, or a history with a note; never a crash."""
    small = pf.encode([("packet", p) for p in head + list(pf.bundles(events[:900], size=60, use_compact=True)) +
                       pf.deflate(pf.bundles(events[900:1200], size=60), 2)], "Trace")
    random.seed(5)
    statuses = collections.Counter()
    for _ in range(6 if is_brief() else 24):
        data = bytearray(small)
        for _ in range(random.choice((1, 1, 3, 30))):
            data[random.randrange(len(data))] = random.randrange(256)
        with open(f"{folder}/damaged.pftrace", "wb") as f:
            f.write(data[:random.choice((len(data), len(data), random.randrange(len(data))))])
        p = run("index", f"{folder}/damaged.pftrace", "-o", f"{folder}/d.steal", status=None)
        statuses[p.returncode] += 1
        check(p.returncode in (0, 2) and "crashed" not in p.stderr, f"exit status {p.returncode}: {p.stderr[-200:].strip()}")
    check(statuses[0] > 0, f"exit statuses: {dict(statuses)}")


def check_bomb(folder, events, head):
    """Compressed packets that are a thousand times larger do not fill the disk: at most 64 times the file is unpacked."""
    good = head + list(pf.bundles(events[:900], size=60))
    def field(number, data):
        return pf.varint(number << 3 | 2) + pf.varint(len(data)) + data
    bundle = field(1, b"\x08\x00" + field(100, bytes(15 << 20)))  # of CPU 0, with an unknown field
    zeros = zlib.compress(field(1, b"\x50\x02" + bundle), 9)
    bombs = [[("compressed_packets", zeros)] for _ in range(40)]
    path = os.path.join(folder, "bomb.pftrace")
    pf.write(path, good + bombs)
    size = os.path.getsize(path)
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (70 * size, 70 * size))
    p = run("index", path, "-o", f"{folder}/bomb.steal", status=None, preexec_fn=limit, timeout=300)
    check(p.returncode == 0, f"{size} bytes, {len(zeros) * 40} of them for {40 * 15} MiB: {p.stderr.strip()}")
    found = {n["code"]: n["text"] for n in notes("info", f"{folder}/bomb.steal")}
    check("perfetto-damaged" in found and "64 times" in found["perfetto-damaged"], f"a note says so: {found}")


def main():
    with scratch() as folder:
        events, head = check_encodings(folder)
        check_other_cpu(folder, events, head)
        check_losses(folder, events, head)
        check_refusals(folder, events, head)
        check_damage(folder, events, head)
        check_bomb(folder, events, head)
        missing = check_protoc(events, head)
    if missing:
        skip(f"{missing}; all other checks passed")
    sys.exit(0)


if __name__ == "__main__":
    main()
