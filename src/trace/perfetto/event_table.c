/* Events for which Perfetto defines a message (FtraceEvent): numbers of the messages and of their fields, and the names of
 * the fields in the kernel's format. Only events that layouts use. The messages of KVM's events are those of arm64: the
 * reasons of VM exits on x86 are not in a trace. */
#include <stddef.h>

#include "trace/perfetto/event_classes.h"

#define TEXT true
#define NUMBER false
#define WAKEUP { { 1, TEXT, "comm" }, { 2, NUMBER, "pid" }, { 3, NUMBER, "prio" }, { 5, NUMBER, "target_cpu" } }

const struct known_event known_events[] = {
	{ 3, "print", { { 1, NUMBER, "ip" }, { 2, TEXT, "buf" } } },
	{ KNOWN_SWITCH, "sched_switch", { { 1, TEXT, "prev_comm" }, { 2, NUMBER, "prev_pid" }, { 3, NUMBER, "prev_prio" },
		{ 4, NUMBER, "prev_state" }, { 5, TEXT, "next_comm" }, { 6, NUMBER, "next_pid" }, { 7, NUMBER, "next_prio" } } },
	{ 11, "cpu_frequency", { { 1, NUMBER, "state" }, { 2, NUMBER, "cpu_id" } } },
	{ 13, "cpu_idle", { { 1, NUMBER, "state" }, { 2, NUMBER, "cpu_id" } } },
	{ 17, "sched_wakeup", WAKEUP },
	{ KNOWN_WAKING, "sched_waking", WAKEUP },
	{ 21, "ipi_entry", { { 1, TEXT, "reason" } } },
	{ 22, "ipi_exit", { { 1, TEXT, "reason" } } },
	{ 24, "softirq_entry", { { 1, NUMBER, "vec" } } },
	{ 25, "softirq_exit", { { 1, NUMBER, "vec" } } },
	{ 26, "softirq_raise", { { 1, NUMBER, "vec" } } },
	{ 36, "irq_handler_entry", { { 1, NUMBER, "irq" }, { 2, TEXT, "name" } } },
	{ 37, "irq_handler_exit", { { 1, NUMBER, "irq" }, { 2, NUMBER, "ret" } } },
	{ 57, "workqueue_execute_end", { { 1, NUMBER, "work" } } },
	{ 58, "workqueue_execute_start", { { 1, NUMBER, "work" }, { 2, NUMBER, "function" } } },
	{ 114, "sched_wakeup_new", WAKEUP },
	{ 235, "task_newtask", { { 1, NUMBER, "pid" }, { 2, TEXT, "comm" }, { 3, NUMBER, "clone_flags" } } },
	{ 236, "task_rename", { { 1, NUMBER, "pid" }, { 2, TEXT, "oldcomm" }, { 3, TEXT, "newcomm" } } },
	{ 237, "sched_process_exec", { { 1, TEXT, "filename" }, { 2, NUMBER, "pid" }, { 3, NUMBER, "old_pid" } } },
	{ 238, "sched_process_exit", { { 1, TEXT, "comm" }, { 2, NUMBER, "pid" }, { 3, NUMBER, "tgid" },
		{ 4, NUMBER, "prio" } } },
	{ 239, "sched_process_fork", { { 1, TEXT, "parent_comm" }, { 2, NUMBER, "parent_pid" }, { 3, TEXT, "child_comm" },
		{ 4, NUMBER, "child_pid" } } },
	{ 240, "sched_process_free", { { 1, TEXT, "comm" }, { 2, NUMBER, "pid" }, { 3, NUMBER, "prio" } } },
	{ 329, "sys_enter", { { 1, NUMBER, "id" } } },
	{ 330, "sys_exit", { { 1, NUMBER, "id" }, { 2, NUMBER, "ret" } } },
	{ 376, "kvm_entry", { { 1, NUMBER, "vcpu_pc" } } },
	{ 377, "kvm_exit", { { 1, NUMBER, "esr_ec" }, { 2, NUMBER, "ret" }, { 3, NUMBER, "vcpu_pc" } } },
	{ 383, "kvm_irq_line", { { 1, NUMBER, "irq_num" }, { 2, NUMBER, "level" }, { 3, NUMBER, "type" },
		{ 4, NUMBER, "vcpu_idx" } } },
	{ 387, "kvm_set_irq", { { 1, NUMBER, "gsi" }, { 2, NUMBER, "irq_source_id" }, { 3, NUMBER, "level" } } },
	{ 399, "kvm_userspace_exit", { { 1, NUMBER, "reason" } } },
	{ 400, "kvm_vcpu_wakeup", { { 1, NUMBER, "ns" }, { 2, NUMBER, "valid" }, { 3, NUMBER, "waited" } } },
	{ 491, "sched_migrate_task", { { 1, TEXT, "comm" }, { 2, NUMBER, "pid" }, { 3, NUMBER, "prio" },
		{ 4, NUMBER, "orig_cpu" }, { 5, NUMBER, "dest_cpu" } } },
	{ 551, "hrtimer_start", { { 1, NUMBER, "hrtimer" }, { 2, NUMBER, "function" } } },
	{ 552, "hrtimer_cancel", { { 1, NUMBER, "hrtimer" } } },
	{ 553, "hrtimer_expire_entry", { { 1, NUMBER, "hrtimer" }, { 2, NUMBER, "now" }, { 3, NUMBER, "function" } } },
	{ 554, "hrtimer_expire_exit", { { 1, NUMBER, "hrtimer" } } },
	{ 559, "local_timer_entry", { { 1, NUMBER, "vector" } } },
	{ 560, "local_timer_exit", { { 1, NUMBER, "vector" } } },
	{ 0 },
};
