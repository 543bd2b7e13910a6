"""Perfetto traces made from recordings in other formats, in each encoding of the events: all answers equal those of the
recording, to the ns.

The traces are encoded by the published schema (perfetto.proto) in perfetto_trace.py, and by protoc, which must agree.
Sources: an arm64 host (pages of the kernel's ring buffers, which this test reads itself), and a host with a guest on x86
(trace-cmd), which become two machines of one trace."""
import itertools
import json
import os
import re
import shutil
import sys
import tarfile

import perfetto_trace as pf
from e2e import DATA, check, codes, document, is_brief, notes, run, scratch, skip, table

ARM_BOOT, ARM_REAL, ARM_END = 16219004096, 1795364186183038904, 18234737264  # about.yaml: started, stopped
GUEST = 4711  # id of the guest's machine
SVM = {"interrupt": 0x60, "vintr": 0x64, "cpuid": 0x72, "hlt": 0x78, "msr": 0x7c, "hypercall": 0x81, "npf": 0x400}
SYNC = 0x56534e43


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
    history, messages = index(folder, pf.deflate(head + list(pf.bundles(events, use_compact=True))))
    if "built without zlib" not in messages:
        check_same(answers(history, folder), expected, "compressed packets")
    return host, events, head, expected


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


# ---- host and guest in one trace

def events_of(history):
    """Returns {machine: events} of host and guest as recorded, from the command events, in the kernel's terms."""
    rows = json.loads(run("events", history, "Debian", "--at", "50%", "--around", "10s", "--format", "json", "--limit",
                          "0").stdout)["rows"]
    out, names = {"host": [], "Debian": []}, {"host": {}, "Debian": {}}
    for r in rows:
        f = {k: int(v, 0) if re.fullmatch(r"-?\d+|0x[0-9a-f]+", v) else v
             for k, v in re.findall(r"(\w+)=(.*?)(?= \w+=|$)", r["fields"])}
        name, fields = in_kernel_terms(r["event"], f)
        fields.update(common_pid=r["tid"], common_flags=f.get("flags", 0))
        out[r["machine"]].append(pf.Event(r["machine_ns"], r["cpu"], name, fields))
        if r["name"]:
            names[r["machine"]].setdefault(r["tid"], r["name"])
    return out, names


def in_kernel_terms(kind, f):
    if kind == "sched_switch":
        state = {"runnable": 0, "blocked": 1, "uninterruptible": 2, "dead": 0x20}[f["prev_state"]]
        return kind, {"prev_comm": str(f["prev_comm"]), "prev_pid": f["prev_tid"], "prev_prio": 120, "prev_state": state,
                      "next_comm": str(f["next_comm"]), "next_pid": f["next_tid"], "next_prio": f["next_prio"] + 120}
    if kind in ("sched_waking", "sched_wakeup"):
        return kind, {"comm": str(f["comm"]), "pid": f["tid"], "prio": 120, "target_cpu": f["target_cpu"]}
    if kind == "kvm_exit":
        return kind, {"exit_reason": SVM[f["reason"]], "guest_rip": f["ip"], "isa": 2, "vcpu_id": f["vcpu"]}
    if kind == "kvm_entry":
        return kind, {"vcpu_id": f["vcpu"]}
    if kind == "sync" and f["end"] == "b":
        return "kvm_hypercall", {"nr": SYNC, "a0": f["key"], "a1": 0}
    if kind == "sync":
        return "print", {"ip": 0, "buf": f"vmsync {f['end']} {f['key']}\n"}
    return {
        "sched_migrate": lambda: ("sched_migrate_task", {"pid": f["tid"], "orig_cpu": f["orig_cpu"], "dest_cpu": f["dest_cpu"]}),
        "sched_fork": lambda: ("sched_process_fork", {"parent_pid": f["parent_tid"], "child_pid": f["child_tid"],
                                                      "child_comm": str(f["child_comm"])}),
        "sched_exec": lambda: ("sched_process_exec", {"pid": f["tid"], "filename": f["filename"]}),
        "sched_exit": lambda: ("sched_process_exit", {"pid": f["tid"]}),
        "kvm_hypercall": lambda: (kind, f),
    }[kind]()


def check_machines(folder):
    original = f"{folder}/beacon.steal"
    shutil.copytree(os.path.join(DATA, "beacon"), f"{folder}/beacon")
    run("index", f"{folder}/beacon", "-o", original)
    expected = answers(original, folder)
    events, names = events_of(original)
    end = {m: events[m][-1].ts for m in events}
    path = f"{folder}/two.pftrace"
    head = [pf.clocks(1, 1), pf.clocks(1, 1, GUEST), pf.process_tree(names["host"], {}), pf.flush(end["host"] + 5000),
            pf.process_tree(names["Debian"], {}, GUEST),
            [("system_info", [("machine_name", "hypervisor"), ("tracing_service_version", "trace-cmd 3.1.6")])],
            [("system_info", [("machine_name", "Debian")]), ("machine_id", GUEST)]]
    for use_compact in (True, False):
        host = pf.bundles(events["host"], use_compact=use_compact, only_generic={"kvm_exit", "kvm_entry", "kvm_hypercall"})
        guest = pf.bundles(events["Debian"], use_compact=use_compact, machine=GUEST, since_start=False)
        both = [p for pair in itertools.zip_longest(host, guest) for p in pair if p]
        history, _ = index(folder, head + both, "two.pftrace")
        got = answers(history, folder)
        if use_compact:  # it lacks the name of the previous thread, so a new name is seen at the next switch to the thread
            got["name"] = expected["name"]
        check_same(got, expected, f"host and guest as two machines, {'compact' if use_compact else 'messages'}")
    named = f"{folder}/named.steal"
    run("index", "--host", f"{path}#0", "--guest", f"Debian={path}#{GUEST}", "-o", named)
    check(table("summary", named) == table("summary", original), "the same, with each machine named on the command line")
    p = run("index", f"{path}#5", "-o", named, status=2)
    check("no such machine" in p.stderr and f"#0, #{GUEST}" in p.stderr, f"{p.stderr.strip()}")
    raw = json.loads(run("events", history, "Debian", "--at", "50%", "--around", "50ms", "--format", "json").stdout)["rows"]
    before = json.loads(run("events", original, "Debian", "--at", "50%", "--around", "50ms", "--format", "json").stdout)["rows"]
    facts = [[(r["machine"], r["at"], r["cpu"], r["tid"], r["event"]) for r in rows] for rows in (raw, before)]
    check(facts[0] == facts[1] and facts[0], f"the command events reads {len(raw)} events of both machines again")


def check_refusals(folder, events, head):
    """Traces that cannot be used, and files that only look like one."""
    for name, packets, part in (
            ("no events", head, "without events of the kernel"),
            ("only slices", [[("track_event", []), ("trusted_packet_sequence_id", 1)]], "only with slices of programs")):
        _, message = index(folder, packets, status=2)
        check(part in message and "linux.ftrace" in message and message.count("\n") == 1, f"{name}: {message.strip()}")
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


def main():
    with scratch() as folder:
        check_machines(folder)
        _, events, head, _ = check_encodings(folder)
        check_losses(folder, events, head)
        check_refusals(folder, events, head)
        missing = check_protoc(events, head)
    if missing:
        skip(f"{missing}; all other checks passed")
    sys.exit(0)


if __name__ == "__main__":
    main()
