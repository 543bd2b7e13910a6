"""Files of perf record: a recording of a KVM host and its guest with its truth (NOTES in tests/data/perf.tar.xz), and
synthetic files: orders of records, losses, byte orders, pipes, counters, refusals, damage.
SEED: of orders and damage; MUTANTS: number of damaged files."""
import collections
import json
import os
import random
import struct
import sys
import tarfile

import perfdata
from e2e import DATA, SOURCE, check, codes, content, document, is_brief, run, scratch, seeds, skip, table
from perfdata import COMM, EXIT, FORK, LOST, LOST_SAMPLES, Attr, Writer

MUTANTS = int(os.environ.get("MUTANTS", "20" if is_brief() else "40"))
BEGIN, STEP = 5_000_000_000, 100_000
KERNEL_BIT = 1 << 63


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)
    return path


def index(tmp, data, *args, name="t"):
    """Returns the history of a file and the finished process."""
    path = write(os.path.join(tmp, name, "perf.data"), data)
    history = os.path.join(tmp, name + ".steal")
    p = run("index", path, "-o", history, *args)
    return history, p


# ---- a real recording

def all_events(recording, machine):
    """Returns the recorded events as rows: time on the machine's clock, CPU, TID, name, fields, time on the host's clock."""
    rows = table("events", recording, machine, "--at", "50%", "--around", "60s")
    return [(int(r["machine_ns"]), int(r["cpu"]), int(r["tid"]), r["event"], r["fields"], int(r["at"])) for r in rows
            if r["machine"] == machine and r["event"] != "task_rename"]


def check_events(recording, machine, data):
    """The switches are those that an independent reader finds, in every field."""
    offset, want, number = perfdata.real_time_offset(data), [], 0
    formats = perfdata.features(data)[1]
    at = formats.index(b"name: sched_switch\n")
    switch_id = int(formats[at:].split(b"ID: ")[1].split(b"\n")[0])
    for ns, cpu, raw in perfdata.samples(data):
        number += 1
        if struct.unpack_from("<H", raw)[0] == switch_id:
            prev, _, _, following = struct.unpack_from("<iiq16xi", raw, 24)
            want.append((ns + offset, cpu, struct.unpack_from("<i", raw, 4)[0], prev, following))
    got = all_events(recording, machine)
    switches = []
    for ns, cpu, tid, event, fields, _ in got:
        if event == "sched_switch":
            f = dict(part.split("=", 1) for part in fields.split() if "=" in part)
            switches.append((ns, cpu, tid, int(f["prev_tid"]), int(f["next_tid"])))
    check(len(got) == number and sorted(switches) == sorted(want) and len(want) > 90,
          f"{machine}: {number} events, {len(want)} switches: each as in the file")
    return got


def check_recording(tmp):
    with tarfile.open(os.path.join(DATA, "perf.tar.xz")) as tar:
        tar.extractall(tmp, **({"filter": "data"} if sys.version_info >= (3, 12) else {}))
    folder, history = os.path.join(tmp, "perf"), os.path.join(tmp, "perf.steal")
    truth = json.load(open(os.path.join(folder, "truth.json"), encoding="utf-8"))
    run("index", folder, "-o", history)
    info = document(history)
    check([(t["machine"], t["role"]) for t in info["traces"]] == [("Debian", "guest"), ("hypervisor", "host")] and
          all(t["tracer"] == "perf 6.1.192, clock monotonic" for t in info["traces"]), "host and guest, and their tracer")
    check([(r["vm"], r["host_tid"], r["host_pid"], r["host_comm"]) for r in info["rows"]] == [("Debian", 145, 141, "qemu:Debian")],
          "the VM: its process and the name of the process, which slept all the time")
    data = {m: open(os.path.join(folder, f), "rb").read()
            for m, f in (("hypervisor", "host.data"), ("Debian", "guest-Debian/perf.data"))}
    check_events(folder, "host", data["hypervisor"])
    got = check_events(folder, "Debian", data["Debian"])
    host, guest = perfdata.real_time_offset(data["hypervisor"]), perfdata.real_time_offset(data["Debian"])
    (g0, h0), (g1, h1) = truth["guest_to_host_monotonic_ns"]
    errors = [at - host - (h0 + (ns - guest - g0) * (h1 - h0) / (g1 - g0)) for ns, _, _, _, _, at in got]
    clock = table("sync", folder)[0]
    inner = [e for e, (ns, *_) in zip(errors, got) if truth["fibonacci"]["from_guest_ns"] < ns - guest < truth["fibonacci"]["to_guest_ns"]]
    worst = [max(map(abs, e)) for e in (inner, errors)]
    check(worst[0] < int(clock["error_mid_ns"]) < 50_000 and worst[1] < int(clock["error_start_ns"]) < 300_000,
          f"guest clock: worst error {worst[0]:.0f} ns under load, {worst[1]:.0f} ns in all; bounds {clock['error_mid_ns']}, {clock['error_start_ns']}")
    vcpu, sums = truth["vcpu"], collections.Counter()
    for r in table("intervals", history, f"/Host/Threads/{vcpu['tid']}/Status", "--from", str(vcpu["from_ns"] + host),
                   "--to", str(vcpu["to_ns"] + host)):
        begin, end = max(int(r["start"]), vcpu["from_ns"] + host), min(int(r["end"]), vcpu["to_ns"] + host - 1)
        sums[r["value"].lower()] += end - begin + 1
    for state, key in (("running", "ran_ns"), ("preempted", "waited_ns")):
        check(abs(sums[state] - vcpu[key]) < .005 * vcpu[key], f"vCPU {state} {sums[state]} ns, schedstat {vcpu[key]} ns {sums}")
    verdict = run("explain", history, "Debian/fibonacci").stdout
    check("host/201 burnP6" in verdict, "the culprit is burnP6")


# ---- synthetic files

def make_attrs():
    return [Attr("sched:sched_switch", clock=1), Attr("sched:sched_waking", clock=1)]


def world(rng, cpus=2, events=200):
    """Returns random events (time, cpu, attr, tid, values), sorted by time."""
    out = []
    for cpu in range(cpus):
        at, on = BEGIN + 7 * cpu, 0
        for i in range(events):
            at += rng.randrange(1, STEP)
            following = rng.choice([t for t in (0, 100 + cpu, 200 + cpu, 300 + cpu) if t != on])
            if following:
                out.append((at, cpu, 1, on, {"comm": f"task{following}", "pid": following, "target_cpu": cpu}))
                at += rng.randrange(1, 2000)
            out.append((at, cpu, 0, on, {"prev_comm": f"task{on}", "prev_pid": on, "prev_state": on and rng.choice((0, 1)),
                                         "next_comm": f"task{following}", "next_pid": following}))
            on = following
    return sorted(out, key=lambda e: e[0])


def put(w, event):
    at, cpu, attr, tid, values = event
    w.sample(attr, at, cpu, tid, values)


def plain(events, **how):
    w = Writer(make_attrs(), **how)
    for e in events:
        put(w, e)
    return w


def in_rounds(rng, events, cpus=2):
    """Each round contains the buffers of the CPUs one after the other; within a buffer, an interrupt's events may precede the
    event that it interrupted."""
    w, at = Writer(make_attrs()), 0
    while at < len(events):
        n = rng.randrange(1, 60)
        part, late = events[at:at + n], events[at + n:at + n + rng.randrange(20)]
        at += n + len(late)
        for cpu in range(cpus):  # the buffers of later CPUs are read later
            own = [e for e in part + (late if cpu else []) if e[1] == cpu]
            for i in range(0, len(own) - 1, 5):
                own[i], own[i + 1] = own[i + 1], own[i]
            for e in own:
                put(w, e)
        for e in (e for e in late if e[1] == 0):
            put(w, e)
        w.end_round()
    return w


def check_orders(tmp, rng):
    events = world(rng)
    history, p = index(tmp, plain(events).file(), name="plain")
    want = content(history)
    check(document(history)["traces"][0]["events"] == len(events), f"{len(events)} events {p.stderr.strip()}")
    cases = {"in rounds, partly ordered": in_rounds(rng, events).file(), "newest first (--overwrite)": plain(events[::-1]).file(),
             "from a pipe": plain(events).pipe(), "of a big-endian machine": plain(events, order=">").file(),
             "of a big-endian machine, from a pipe": plain(events, order=">").pipe()}
    for what, data in cases.items():
        got, p = index(tmp, data, name="order")
        check(content(got) == want and "raised" not in p.stderr, f"{what}: the same history")
    w = in_rounds(rng, events)
    w.records = w.compressed(rng)
    if "without libzstd" in run("--version").stdout:
        refused(tmp, w.file(), "without libzstd")
    else:
        check(content(index(tmp, w.file(), name="order")[0]) == want, "compressed: the same history")
        for i in (1, len(w.records) // 2):
            sound, damaged = w.records[i], bytearray(w.records[i])
            damaged[8] |= 6  # a block of a reserved type
            w.records[i] = bytes(damaged)
            _, p = index(tmp, w.file(), name="order")
            check("compressed records are damaged" in p.stderr, f"damage of compressed record {i} is reported")
            w.records[i] = sound


def check_clock(tmp, rng):
    events = world(rng, events=20)
    history, _ = index(tmp, plain(events, clock_data=(1_700_000_000_123_456_789, BEGIN + 1)).file())
    check(document(history)["traces"][0]["begin"] == events[0][0] + 1_700_000_000_123_456_789 - BEGIN - 1,
          "times become real time where the file has a pair of times")
    check("clock-perf" not in codes("info", history), "a clock that was chosen has no note")
    attrs = [Attr("sched:sched_switch"), Attr("sched:sched_waking")]
    for tsc in (False, True):
        w = Writer(attrs)
        if tsc:
            w.add(perfdata.TIME_CONV, w.pack("QQQQQBB6x", 31, 1 << 30, 0, 0, 0, 1, 0))
        for e in events:
            put(w, e)
        history, _ = index(tmp, w.file())
        check(("clock-perf" in codes("info", history)) == (not tsc), f"the default clock has a note, unless it is the TSC: {tsc}")


def check_losses(tmp):
    """A loss lasts from the last event before the record LOST to the next one; events lost at the end of a buffer are in
    perf's counters only."""
    w = Writer(make_attrs())
    w.sample(0, BEGIN, 0, 0, {"prev_comm": "swapper/0", "next_comm": "a", "next_pid": 5})
    w.sample(0, BEGIN, 1, 0, {"prev_comm": "swapper/1", "next_comm": "b", "next_pid": 6})
    w.lose(3, BEGIN + 8 * STEP, 0)
    w.sample(0, BEGIN + 8 * STEP, 0, 5, {"prev_comm": "a", "prev_pid": 5, "prev_state": 1, "next_comm": "swapper/0"})
    w.sample(0, BEGIN + 20 * STEP, 0, 0, {"prev_comm": "swapper/0", "next_comm": "a", "next_pid": 5})
    w.end_round()
    w.lose(3, 0, 0, kind=LOST_SAMPLES)
    w.lose(2, 0, 1, kind=LOST_SAMPLES)
    history, _ = index(tmp, w.file())
    t = document(history)["traces"][0]
    check((t["events"], t["lost"]) == (4, 5), f"4 events, 3 lost before one, 2 at the end of another CPU: {t}")
    rows = table("events", os.path.join(tmp, "t", "perf.data"), "machine", "--at", str(BEGIN), "--around", "1s")
    lost = [(int(r["machine_ns"]), r["cpu"], r["fields"]) for r in rows if r["event"] == "lost"]
    check(lost == [(BEGIN + 1, "0", f"for_ns={8 * STEP - 1} count=3"), (BEGIN + 1, "1", f"for_ns={20 * STEP - 1} count=2")],
          f"where events were lost {lost}")


def check_threads(tmp):
    """Records of threads replace tracepoints that were not recorded; the first names come from the start of the file."""
    w = Writer(make_attrs())
    w.comm(2, 2, "kthreadd")
    w.comm(70, 70, "qemu:a")
    w.comm(70, 71, "CPU 0/KVM")
    w.comm(70, 71, "too early", BEGIN - STEP, 0)
    w.sample(1, BEGIN, 0, 71, {"comm": "x", "pid": 70}, pid=70)
    w.sample(0, BEGIN + 1, 0, 71, {"prev_comm": "CPU 0/KVM", "prev_pid": 71, "next_comm": "sh", "next_pid": 80}, pid=70)
    w.task(FORK, 81, 80, 81, 80, BEGIN + STEP, 0)
    w.sample(1, BEGIN + STEP + 9, 0, 80, {"comm": "sh", "pid": 81})
    w.sample(0, BEGIN + 2 * STEP, 0, 80, {"prev_comm": "sh", "prev_pid": 80, "prev_state": 1, "next_comm": "sh", "next_pid": 81})
    w.comm(81, 81, "nginx", BEGIN + 3 * STEP, 0)
    w.task(EXIT, 81, 80, 81, 81, BEGIN + 4 * STEP, 0)
    w.sample(0, BEGIN + 5 * STEP, 0, 81, {"prev_comm": "nginx", "prev_pid": 81, "prev_state": 16, "next_comm": "swapper/0"})
    path = write(os.path.join(tmp, "t", "perf.data"), w.file())
    told = table("events", path, "machine", "--at", str(BEGIN), "--around", "1s")
    names = [r["name"] for r in told if int(r["machine_ns"]) == BEGIN]
    check(names and set(names) == {"CPU 0/KVM"}, f"a thread has its first name before any switch {names}")
    rows = [(int(r["machine_ns"]), r["event"], r["fields"]) for r in told if r["event"] in ("sched_fork", "sched_exit", "task_rename")]
    check(rows == [(BEGIN + STEP, "sched_fork", "parent_tid=80 child_tid=81 child_pid=81"),
                   (BEGIN + 3 * STEP, "task_rename", "tid=81 comm=nginx"), (BEGIN + 4 * STEP, "sched_exit", "tid=81")],
          f"a fork, a new name and an exit; none before the first sample {rows}")
    history, _ = index(tmp, w.file())
    base = "/Virtual Machines/machine/Threads/"
    names = [r["value"] for r in table("intervals", history, base + "81/Name")]
    check("nginx" in names, f"the thread has its new name {names}")
    pids = [r["value"] for r in table("intervals", history, base + "71/PID")]
    check("70" in pids, f"the process of a thread {pids}")


def check_namespace(tmp):
    """perf in a container has other TIDs than the tracepoints: its names and processes are not used."""
    w = Writer(make_attrs())
    w.comm(3, 70, "other")
    for i in range(4):
        w.sample(1, BEGIN + i * STEP, 0, 70, {"comm": "x", "pid": 71}, pid=3,
                 raw=perfdata.record("sched_waking", 70 if i == 0 else 9070, comm="x", pid=71))
    w.comm(3, 71, "other", BEGIN + 5 * STEP, 0)
    w.sample(0, BEGIN + 6 * STEP, 0, 70, raw=perfdata.record("sched_switch", 9070, prev_comm="a", prev_pid=9070, next_comm="b", next_pid=71))
    path = write(os.path.join(tmp, "t", "perf.data"), w.file())
    rows = table("events", path, "machine", "--at", str(BEGIN), "--around", "1s")
    check([r["tid"] for r in rows] == ["70"] + 4 * ["9070"] and not any("other" in r["name"] + r["fields"] for r in rows),
          f"threads of a perf in a container: {[(r['tid'], r['name']) for r in rows]}")


COUNTER_LAYOUT = """layout: counters
context: {cpu: [packet.cpu_id], tid: [common_pid]}
events:
  - {kind: sched_switch, names: [sched_switch], when: {prev_pid: 0}, prev_tid: prev_pid, next_tid: next_pid, prev_state: prev_state,
     states: {mask: 0xff, runnable: [0], uninterruptible: [2], dead: 0x30}}
  - {kind: kvm_vcpu_wakeup, names: [sched_switch], ns: perf_cpu_instructions, waited: perf_cpu_cycles}
"""


def check_counters(tmp):
    """Values of a group become fields."""
    layout = write(os.path.join(tmp, "t", "counters.yaml"), COUNTER_LAYOUT.encode())
    for form in (perfdata.READ_GROUP | perfdata.READ_ID, perfdata.READ_GROUP | perfdata.READ_ID | perfdata.READ_ENABLED,
                 perfdata.READ_GROUP | perfdata.READ_ID | perfdata.READ_ENABLED | perfdata.READ_RUNNING):
        kind = perfdata.PLAIN | perfdata.READ | perfdata.CALLCHAIN
        attrs = [Attr("sched:sched_switch", clock=1, sample_type=kind, read_format=form),
                 Attr("instructions", kind=perfdata.HARDWARE, config=4 << 32 | 1, sample_type=kind & ~perfdata.RAW, read_format=form),
                 Attr("cycles", kind=perfdata.HARDWARE, config=0, sample_type=kind & ~perfdata.RAW, read_format=form)]
        w = Writer(attrs)
        for i in range(4):
            w.sample(0, BEGIN + i * STEP, 0, 5 * (i % 2), {"prev_pid": 5 * (i % 2), "next_pid": 5 * (1 - i % 2)},
                     read={0: i, 1: 1000 + 3000 * i, 2: 2000 + 2000 * i}, chain=(KERNEL_BIT, 7, 8))
        path = write(os.path.join(tmp, "t", "perf.data"), w.file())
        session = write(os.path.join(tmp, "t", "s.yaml"), f"guests: [{{name: m, dir: perf.data, layout: {layout}}}]\n".encode())
        rows = table("events", session, "m", "--at", str(BEGIN), "--around", "1s")
        got = [r["fields"] for r in rows if r["event"] == "kvm_vcpu_wakeup"]
        check(got == ["ns=4000 waited=4000", "ns=10000 waited=8000"], f"fields of counters with read format {form}: {got}")
        rows = [(r["event"], r["fields"]) for r in table("events", path, "machine", "--at", str(BEGIN), "--around", "1s")]
        check([e for e, _ in rows] == 4 * ["cpu_counters", "sched_switch"] and
              [f for e, f in rows if e == "cpu_counters"] == [f"instructions={1000 + 3000 * i} cycles={2000 + 2000 * i} is_difference=0" for i in range(4)],
              f"counters before each switch: {rows[::2]}")
        ipc = {r["tid"]: r["ipc"] for r in table("threads", index(tmp, w.file())[0], "machine")}
        check(float(ipc["5"]) == 1.5, f"instructions per cycle {ipc}")
    w.running = 4
    w.sample(0, BEGIN + 9 * STEP, 0, 0, {"next_pid": 5}, read={0: 9, 1: 1009, 2: 2009}, chain=(7,))
    rows = table("events", write(path, w.file()), "machine", "--at", str(BEGIN), "--around", "1s")
    check([r["event"] for r in rows].count("cpu_counters") == 4, "counters that were multiplexed are not used")


def check_other_records(tmp, rng):
    """Records of unknown types and data outside records are skipped."""
    events = world(rng, events=30)
    want = content(index(tmp, plain(events).file(), name="plain")[0])
    w = Writer(make_attrs() + [Attr("cycles", kind=perfdata.HARDWARE, config=0, sample_type=perfdata.PLAIN & ~perfdata.RAW)])
    for i, e in enumerate(events):
        put(w, e)
        w.sample(2, e[0] + 1, e[1], e[3])  # after a switch, but still with the thread that leaves
        if i % 10 == 0:
            w.add(21, bytes(40))
            w.add(200, rng.randbytes(16))
            w.add(perfdata.AUXTRACE, w.pack("QQQIIII", 96, 0, 0, 0, 0, 0, 0), behind=rng.randbytes(96))
    check(content(index(tmp, w.file())[0]) == want, "other records, samples and data of hardware tracers are skipped")
    rows = table("events", os.path.join(tmp, "t", "perf.data"), "machine", "--at", "50%", "--around", "1s")
    check([r["event"] for r in rows].count("cycles") == len(events) - 1, "samples are listed; the last one follows the trace")


def refused(tmp, data, text, status=2):
    path = write(os.path.join(tmp, "bad", "perf.data"), data)
    p = run("index", path, "-o", os.path.join(tmp, "bad.steal"), status=status)
    check(text in p.stderr and p.stderr.count("\n") == 1 and not os.path.exists(os.path.join(tmp, "bad.steal")),
          f"refused: {text}: {p.stderr.strip()}")


def check_refusals(tmp, rng):
    events = world(rng, events=10)
    good = plain(events).file()
    w = plain(events)
    w.has_formats = False
    refused(tmp, w.file(), "formats")
    for how in ({"flags": perfdata.TRAILER | perfdata.FREQ, "period": 99}, {"period": 4}):
        w = Writer([Attr("sched:sched_switch", **how)])
        w.sample(0, BEGIN, 0, 0, {"next_pid": 1})
        refused(tmp, w.file(), "sampled")
    w = Writer([Attr("cycles", kind=perfdata.HARDWARE, config=0, sample_type=perfdata.PLAIN & ~perfdata.RAW)])
    w.sample(0, BEGIN, 0, 0)
    refused(tmp, w.file(), "no tracepoints")
    w = plain(events)
    w.all_threads = lambda: w.pack("IHH", perfdata.THREAD_MAP, 0, 40) + w.pack("QQ", 1, 4711) + bytes(16)
    refused(tmp, w.file(), "some processes")
    refused(tmp, good[:60], "truncated")
    refused(tmp, good[:4000], "truncated")
    refused(tmp, good[:104 + 16], "truncated")
    folder = os.path.join(tmp, "two")
    write(os.path.join(folder, "perf.data"), good)
    write(os.path.join(folder, "perf.data.old"), w.file())
    check(len(document(index_folder(folder))["traces"]) == 1, "the previous recording of perf is not read as well")
    with open(os.path.join(SOURCE, "tests", "fuzz", "corpus-ctf", "perf"), "rb") as f:
        metadata, stream = f.read().split(b"\n----\n")
    for name, machines in (("ctf", 1), ("guest-a", 2)):
        folder = os.path.join(tmp, "with-" + name)
        write(os.path.join(folder, "perf.data"), good)
        write(os.path.join(folder, name, "metadata"), metadata)
        write(os.path.join(folder, name, "perf_stream_0"), stream)
        info = document(index_folder(folder))
        check(len(info["traces"]) == machines and any(n["code"] == "perf-converted" for n in info["notes"]) == (machines == 1),
              f"a file and CTF of perf in {name}: {machines} machines")


def index_folder(folder):
    run("index", folder, "-o", folder + ".steal")
    return folder + ".steal"


def check_damaged_parts(tmp, rng):
    """A record of an impossible size costs the rest of its round, and all CPUs are unknown until their next events; an
    impossible time costs one event."""
    events = world(rng, events=100)
    third = len(events) // 3
    w = Writer(make_attrs(), first_last=(events[0][0], events[-1][0]))
    for i, e in enumerate(events):
        put(w, e)
        if i == third:
            w.add(10, bytes(16))
            w.records[-1] = w.pack("IHH", perfdata.SAMPLE, 0, 3) + w.records[-1][8:]
        if i % 20 == 19:
            w.end_round()
    history, p = index(tmp, w.file())
    t = document(history)["traces"][0]
    missing = 20 * (third // 20 + 1) - third - 1
    check(t["events"] == len(events) - missing and "impossible size" in p.stderr, f"{missing} of {len(events)} events are skipped")
    check(any(n["code"] == "stream-damaged" for n in document(history)["notes"]), "the damage has a note")
    rows = table("events", os.path.join(tmp, "t", "perf.data"), "machine", "--at", str(events[third][0]), "--around", "1s")
    lost = {r["cpu"]: int(r["machine_ns"]) for r in rows if r["event"] == "lost" and r["fields"]}
    before = {str(c): max(e[0] for e in events[:third + 1] if e[1] == c) + 1 for c in (0, 1)}
    check(all(lost.get(c) == at for c, at in before.items()), f"both CPUs are unknown from their last events on {lost} {before}")
    for bad in (1, events[-1][0] + 10**12, (1 << 64) - 1):
        w = Writer(make_attrs(), first_last=(events[0][0], events[-1][0]))
        for i, e in enumerate(events):
            put(w, e)
            if i == third:
                put(w, (bad,) + e[1:])
        history, p = index(tmp, w.file())
        t = document(history)["traces"][0]
        check(t["events"] == len(events) and (t["begin"], t["end"]) == (events[0][0], events[-1][0]) and
              "impossible time" in p.stderr, f"an event at {bad} is skipped")
    w = plain(events)
    w.sample(0, events[-1][0] + 1, 0, 0, raw=b"\x01")
    w.records[-1] = w.records[-1].replace(w.pack("Q", events[-1][0] + 1) + w.pack("II", 0, 0), w.pack("Q", events[-1][0] + 1) +
                                          w.pack("II", 9999, 0))
    _, p = index(tmp, w.file())
    check("impossible number of a CPU" in p.stderr, "an event of a CPU that does not exist is skipped")


def damage(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8, 100))):
        at = rng.randrange(min(len(data), rng.choice((104, 700, 1 << 30, 1 << 30))))
        data[at] = rng.choice((data[at] ^ 1 << rng.randrange(8), 0, 255, rng.randrange(256)))
    return bytes(data[:rng.randrange(len(data))] if rng.random() < 0.1 else data)


def check_mutants(tmp, rng):
    events, wrong, noted = world(rng, events=60), [], 0
    w = in_rounds(rng, events)
    w.lose(3, events[-1][0], 0)
    seeds = (w.file(), plain(events).pipe(), plain(events, order=">").file())
    for i in range(MUTANTS):
        path = write(os.path.join(tmp, "mutant", "perf.data"), damage(rng, seeds[i % 3]))
        p = run("index", path, "-o", os.path.join(tmp, "mutant.steal"), status=None)
        lines = p.stderr.splitlines()
        noted += p.returncode != 0 or "damaged" in p.stderr
        if p.returncode not in (0, 2) or not all(line.startswith("stealscope: ") for line in lines) or (p.returncode and len(lines) != 1):
            wrong.append((i, p.returncode, p.stderr[-300:]))
    check(not wrong and noted, f"{MUTANTS} damaged files, {noted} with a report {wrong}")


with scratch() as tmp:
    if "without libtraceevent" in run("--version").stdout:
        skip("built without libtraceevent")
    os.environ["XDG_CACHE_HOME"] = os.path.join(tmp, "cache")
    rng = random.Random(seeds(1, 1)[0])
    check_recording(tmp)
    check_orders(tmp, rng)
    check_clock(tmp, rng)
    check_losses(tmp)
    check_threads(tmp)
    check_namespace(tmp)
    check_counters(tmp)
    check_other_records(tmp, rng)
    check_refusals(tmp, rng)
    check_damaged_parts(tmp, rng)
    check_mutants(tmp, rng)
