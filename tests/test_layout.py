#!/usr/bin/env python3
"""A user's own layout, for a system without kvm events whose events and fields all have different names: the analysis has
the same results as for the same trace with LTTng's names. Without the layout, notes report what is missing."""
import glob
import os
import re

from e2e import check, content, run, scratch, simulate, table

LAYOUT = """layout: other
lost: tail
context: {cpu: packet.cpu_id, tid: context.z_tid, pid: context.z_pid, comm: context.z_procname}
events:
  - {kind: sched_switch, names: ["os:sched_switch"], prev_tid: z_prev_tid, next_tid: z_next_tid, prev_comm: z_prev_comm,
     next_comm: z_next_comm, prev_state: z_prev_state, states: {mask: 0xff, runnable: [0], uninterruptible: [2], dead: 0x30}}
  - {kind: sched_waking, names: ["os:sched_waking"], tid: z_tid, comm: z_comm, target_cpu: z_target_cpu}
  - {kind: sched_wakeup, names: ["os:sched_wakeup", "os:sched_wakeup_new"], tid: z_tid, comm: z_comm,
     target_cpu: z_target_cpu}
  - {kind: sched_migrate, names: ["os:sched_migrate_task"], tid: z_tid, dest_cpu: z_dest_cpu, orig_cpu: z_orig_cpu}
  - {kind: sched_fork, names: ["os:sched_process_fork"], parent_tid: z_parent_tid, child_tid: z_child_tid,
     child_pid: z_child_pid, child_comm: z_child_comm, child_ns: z_child_ns_inum}
  - {kind: sched_exec, names: ["os:sched_process_exec"], tid: z_tid, filename: z_filename}
  - {kind: sched_exit, names: ["os:sched_process_exit"], tid: z_tid}
  - {kind: process_state, names: ["os:lttng_statedump_process_state"], tid: z_tid, pid: z_pid, comm: z_name,
     state: z_status, states: {1: runnable, 2: runnable, 3: dead, 4: dead, 5: blocked, 7: dead},
     cpu: z_cpu, type: z_type}
  - {kind: process_pid_ns, names: ["os:lttng_statedump_process_pid_ns"], tid: z_tid, ns: z_ns_inum, vtid: z_vtid}
  - {kind: process_cgroup_ns, names: ["os:lttng_statedump_process_cgroup_ns"], tid: z_tid, ns: z_ns_inum}
  - {kind: irq_entry, names: ["os:irq_handler_entry"], number: z_irq, name: z_name}
  - {kind: irq_exit, names: ["os:irq_handler_exit"], number: z_irq}
  - {kind: softirq_entry, names: ["os:irq_softirq_entry"], number: z_vec}
  - {kind: softirq_exit, names: ["os:irq_softirq_exit"], number: z_vec}
  - {kind: hrtimer_entry, names: ["os:timer_hrtimer_expire_entry"], timer: z_hrtimer, function: z_function}
  - {kind: hrtimer_exit, names: ["os:timer_hrtimer_expire_exit"], timer: z_hrtimer}
"""


def rename_all(traces):
    for path in glob.glob(os.path.join(traces, "*", "kernel", "metadata")):
        with open(path, encoding="ascii") as f:
            head, *events = f.read().split("event {\n")
        head = re.sub(r"(?<= _)(pid|tid|procname)\b", r"z_\1", head)
        for i, event in enumerate(events):
            event = re.sub(r'name = "', 'name = "os:', event)
            events[i] = re.sub(r" _(?!_)(\w+)([][ \w]*);", r" _z_\1\2;", event)
        with open(path, "w", encoding="ascii") as f:
            f.write("event {\n".join([head, *events]))


def main():
    with scratch() as tmp:
        traces, layout = os.path.join(tmp, "traces"), os.path.join(tmp, "other.yaml")
        plain, renamed = os.path.join(tmp, "plain.steal"), os.path.join(tmp, "renamed.steal")
        simulate(traces, "overcommit", "2", "--duration", "1s", "--no-kvm", "--perfect-clocks")
        guests = [f"--guest={vm}={traces}/guest-{vm}" for vm in ("vm00", "vm01")]
        index = ["index", f"--host={traces}/host", *guests, "--sync=none"]
        run(*index, "-o", plain)
        rename_all(traces)
        with open(layout, "w", encoding="ascii") as f:
            f.write(LAYOUT)

        notes = run(*index, "-o", renamed).stderr
        check("layout" in notes, "without it, a note reports that no layout matches")
        check(content(renamed) != content(plain), "... and the history differs")
        run(*index, "--layout", layout, "-o", renamed)
        check(content(renamed) == content(plain), "with it, the histories are the same")
        check(len(table("gaps", renamed)) >= 10 and table("gaps", renamed) == table("gaps", plain), "the gaps are the same")
        check(table("steal", renamed) == table("steal", plain), "the culprits are the same")
        check("has no wakeups" not in run("info", renamed).stdout, "no note about missing wakeups")

        with open(layout, "w", encoding="ascii") as f:
            f.write(re.sub(r"  - {kind: sched_wak[^}]*}\n", "", LAYOUT))
        run(*index, "--layout", layout, "-o", renamed)
        text = " ".join(run("summary", renamed).stdout.split())
        check("host, vm00, vm01 (each): " in text and "wakeups" in text, "a note about missing wakeups, for each machine")


main()
