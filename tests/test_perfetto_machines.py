"""A host and its guest (x86, recorded by trace-cmd) as two machines of one Perfetto trace: all answers equal those of the
recording, to the ns, however the machines are named; the clock of the guest is computed from the events."""
import itertools
import json
import os
import re
import shutil

import perfetto_trace as pf
from e2e import DATA, check, codes, document, is_brief, run, scratch, skip, table
from test_perfetto import answers, check_same, index

GUEST = 4711  # id of the guest's machine
SVM = {"interrupt": 0x60, "vintr": 0x64, "cpuid": 0x72, "hlt": 0x78, "msr": 0x7c, "hypercall": 0x81, "npf": 0x400}
SYNC = 0x56534e43


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


def check_clocks(folder, head, packets, original):
    """Perfetto's measurement of the guest's clock is not used, but tested by sync --audit. The guest is a machine without a
    time of day of its own: its clock is that of the host, plus the error of the measurement."""
    clock, = document(original)["clocks"][:1]
    offset = clock["ref_host_ns"] - clock["ref_guest_ns"]
    at = 10**9
    for error, verdict, status in ((0, "holds", 0), (10**7, "refuted", 3)):
        pairs = [("synced_clocks", [("client_clocks", pf.snapshot(at + t, at + t)),
                                    ("host_clocks", pf.snapshot(*[at + t + offset + error + 30000] * 2))]) for t in (0, 60000)]
        sync = [("remote_clock_sync", pairs), ("machine_id", GUEST)]
        pf.write(f"{folder}/clock.pftrace", head + [sync] + packets)
        p = run("sync", f"{folder}/clock.pftrace", "--audit", "--format", "csv", status=status)
        row = dict(zip(*[line.split(",") for line in p.stdout.splitlines()]))
        check((row["made_by"], row["verdict"]) == ("Perfetto", verdict), f"a clock with an error of {error} ns: {row}")
        check(table("sync", f"{folder}/clock.pftrace") == table("sync", original), "the clock is computed from the events")


def check_x86(folder, head, events, original, expected):
    """On x86, Perfetto's kvm_exit has no fields: the exits and their durations are known, the reasons are not."""
    config = [("trace_config", [("data_sources", [("config", [("ftrace_config", [("ftrace_events", "kvm/*")])])])])]
    info = [("system_info", [("utsname", [("machine", "x86_64")])])]
    host = [e if e.name not in ("kvm_exit", "kvm_entry") else
            e._replace(fields={n: v for n, v in e.fields.items() if n.startswith("common_")}) for e in events["host"]]
    guest = pf.bundles(events["Debian"], machine=GUEST, since_start=False)
    history, _ = index(folder, head + [config, info] + list(pf.bundles(host, only_generic={"kvm_hypercall"})) + list(guest))
    got = answers(history, folder)
    check(got["running"] == expected["running"], "x86: the same threads ran at the same times")
    known, found = [[sum(int(r[n]) for r in rows) for n in ("count", "total_ns")] for rows in
                    (table("exits", original), table("exits", history))]
    reasons = {r["reason"] for r in table("exits", history)}
    check(found == known and reasons == {"unknown"}, f"x86: {found[0]} exits, {found[1]} ns, for reasons {reasons}")
    check("perfetto-exit-reasons" in codes("info", history), "x86: a note")


def check_machines(folder):
    original = f"{folder}/beacon.steal"
    shutil.copytree(os.path.join(DATA, "beacon"), f"{folder}/beacon")
    if "built without libtraceevent" in run("index", f"{folder}/beacon", "-o", original, status=None).stderr:
        skip("this build has no libtraceevent")
    expected = answers(original, folder)
    events, names = events_of(original)
    end = {m: events[m][-1].ts for m in events}
    path = f"{folder}/two.pftrace"
    head = [pf.clocks(1, 1), pf.clocks(1, 1, GUEST), pf.process_tree(names["host"], {}), pf.flush(end["host"] + 5000),
            pf.process_tree(names["Debian"], {}, GUEST),
            [("system_info", [("machine_name", "hypervisor"), ("tracing_service_version", "trace-cmd 3.1.6")])],
            [("system_info", [("machine_name", "Debian")]), ("machine_id", GUEST)]]
    for use_compact in (True, False)[is_brief():]:
        host = pf.bundles(events["host"], use_compact=use_compact, only_generic={"kvm_exit", "kvm_entry", "kvm_hypercall"})
        guest = pf.bundles(events["Debian"], use_compact=use_compact, machine=GUEST, since_start=False)
        both = [p for pair in itertools.zip_longest(host, guest) for p in pair if p]
        history, _ = index(folder, head + both, "two.pftrace")
        got = answers(history, folder)
        if use_compact:  # it lacks the name of the previous thread, so a new name is seen at the next switch to the thread
            got["name"] = expected["name"]
        check_same(got, expected, f"host and guest as two machines, {'compact' if use_compact else 'messages'}")
    check_clocks(folder, head, both, original)
    check_x86(folder, head, events, original, expected)
    named = f"{folder}/named.steal"
    run("index", "--host", f"{path}#0", "--guest", f"Debian={path}#{GUEST}", "-o", named)
    check(table("summary", named) == table("summary", original), "the same, with each machine named on the command line")
    os.makedirs(f"{folder}/session")
    shutil.move(path, f"{folder}/session/two.pftrace")
    with open(f"{folder}/session/session.yaml", "w", encoding="utf-8") as f:
        f.write(f"host: {{dir: two.pftrace#0}}\nguests: [{{name: Debian, dir: two.pftrace#{GUEST}}}]\n")
    check(table("summary", f"{folder}/session") == table("summary", original), "the same, named in a session file")
    path = shutil.move(f"{folder}/session/two.pftrace", path)
    p = run("index", f"{path}#5", "-o", named, status=2)
    check("no such machine" in p.stderr and f"#0, #{GUEST}" in p.stderr, f"{p.stderr.strip()}")
    raw = json.loads(run("events", history, "Debian", "--at", "50%", "--around", "50ms", "--format", "json").stdout)["rows"]
    before = json.loads(run("events", original, "Debian", "--at", "50%", "--around", "50ms", "--format", "json").stdout)["rows"]
    facts = [[(r["machine"], r["at"], r["cpu"], r["tid"], r["event"]) for r in rows] for rows in (raw, before)]
    check(facts[0] == facts[1] and facts[0], f"the command events reads {len(raw)} events of both machines again")


def main():
    with scratch() as folder:
        check_machines(folder)


if __name__ == "__main__":
    main()
