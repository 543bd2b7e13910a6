/* Trace records: names and fields as in LTTng 2.13's kernel tracer, in one table for the metadata and the binary form. */
#include "sim.h"

#include <string.h>

#define WAKE_FIELDS { { FIELD_COMM, "comm" }, { FIELD_I32, "tid" }, { FIELD_I32, "prio" }, { FIELD_I32, "target_cpu" } }

const struct record_class record_class[REC_COUNT] = {
	[REC_SWITCH] = { "sched_switch", {
		{ FIELD_COMM, "prev_comm" }, { FIELD_I32, "prev_tid" }, { FIELD_I32, "prev_prio" }, { FIELD_I64, "prev_state" },
		{ FIELD_COMM, "next_comm" }, { FIELD_I32, "next_tid" }, { FIELD_I32, "next_prio" } } },
	[REC_WAKEUP] = { "sched_wakeup", WAKE_FIELDS },
	[REC_WAKING] = { "sched_waking", WAKE_FIELDS },
	[REC_WAKEUP_NEW] = { "sched_wakeup_new", WAKE_FIELDS },
	[REC_MIGRATE] = { "sched_migrate_task", {
		{ FIELD_COMM, "comm" }, { FIELD_I32, "tid" }, { FIELD_I32, "prio" }, { FIELD_I32, "orig_cpu" },
		{ FIELD_I32, "dest_cpu" } } },
	[REC_FORK] = { "sched_process_fork", {
		{ FIELD_COMM, "parent_comm" }, { FIELD_I32, "parent_tid" }, { FIELD_I32, "parent_pid" },
		{ FIELD_U32, "parent_ns_inum" }, { FIELD_COMM, "child_comm" }, { FIELD_I32, "child_tid" },
		{ FIELD_VTIDS, "vtids" }, { FIELD_I32, "child_pid" }, { FIELD_U32, "child_ns_inum" } } },
	[REC_QUIT] = { "sched_process_exit", { { FIELD_COMM, "comm" }, { FIELD_I32, "tid" }, { FIELD_I32, "prio" } } },
	[REC_EXEC] = { "sched_process_exec", {
		{ FIELD_STRING, "filename" }, { FIELD_I32, "tid" }, { FIELD_I32, "old_tid" } } },
	[REC_IRQ_ENTRY] = { "irq_handler_entry", { { FIELD_I32, "irq" }, { FIELD_STRING, "name" } } },
	[REC_IRQ_EXIT] = { "irq_handler_exit", { { FIELD_I32, "irq" }, { FIELD_I32, "ret" } } },
	[REC_SOFTIRQ_ENTRY] = { "irq_softirq_entry", { { FIELD_U32, "vec" } } },
	[REC_SOFTIRQ_EXIT] = { "irq_softirq_exit", { { FIELD_U32, "vec" } } },
	[REC_TIMER_ENTRY] = { "timer_hrtimer_expire_entry", {
		{ FIELD_HEX, "hrtimer" }, { FIELD_I64, "now" }, { FIELD_HEX, "function" } } },
	[REC_TIMER_EXIT] = { "timer_hrtimer_expire_exit", { { FIELD_HEX, "hrtimer" } } },
	[REC_KVM_ENTRY] = { "kvm_x86_entry", { { FIELD_U32, "vcpu_id" } } },
	[REC_KVM_EXIT] = { "kvm_x86_exit", {
		{ FIELD_U32, "exit_reason" }, { FIELD_U64, "guest_rip" }, { FIELD_U32, "isa" }, { FIELD_U64, "info1" },
		{ FIELD_U64, "info2" }, { FIELD_U32, "intr_info" }, { FIELD_U32, "error_code" }, { FIELD_U32, "vcpu_id" } } },
	[REC_HYPERCALL] = { "kvm_x86_hypercall", {
		{ FIELD_U64, "nr" }, { FIELD_U64, "a0" }, { FIELD_U64, "a1" }, { FIELD_U64, "a2" }, { FIELD_U64, "a3" } } },
	[REC_INJECT] = { "kvm_x86_inj_virq", { { FIELD_U32, "irq" } } },
	[REC_USEREXIT] = { "kvm_userspace_exit", { { FIELD_U32, "reason" }, { FIELD_I32, "errno" } } },
	[REC_LOG] = { "lttng_logger", { { FIELD_TEXT, "msg" } } },
	[REC_DUMP_START] = { "lttng_statedump_start", { { FIELD_END, "" } } },
	[REC_DUMP_PROCESS] = { "lttng_statedump_process_state", {
		{ FIELD_I32, "tid" }, { FIELD_I32, "pid" }, { FIELD_I32, "ppid" }, { FIELD_COMM, "name" }, { FIELD_I32, "type" },
		{ FIELD_I32, "mode" }, { FIELD_I32, "submode" }, { FIELD_I32, "status" }, { FIELD_U32, "cpu" },
		{ FIELD_HEX, "file_table_address" } } },
	[REC_DUMP_NS] = { "lttng_statedump_process_pid_ns", {
		{ FIELD_I32, "tid" }, { FIELD_I32, "vtid" }, { FIELD_I32, "vpid" }, { FIELD_I32, "vppid" },
		{ FIELD_I32, "ns_level" }, { FIELD_U32, "ns_inum" } } },
	[REC_DUMP_END] = { "lttng_statedump_end", { { FIELD_END, "" } } },
	[REC_STEAL_SWITCH] = { "steal_switch", { { FIELD_STEAL, "cpu" } } },
	[REC_STEAL_TIMER] = { "steal_timer", { { FIELD_STEAL, "cpu" } } },
	[REC_STEAL_TICK] = { "steal", { { FIELD_U64, "ret" } } },
	[REC_HALT_POLL] = { "kvm_halt_poll_ns", {
		{ FIELD_U32, "grow" }, { FIELD_U32, "vcpu_id" }, { FIELD_U32, "new" }, { FIELD_U32, "old" } } },
	[REC_VCPU_WAKEUP] = { "kvm_vcpu_wakeup", { { FIELD_U64, "ns" }, { FIELD_U32, "waited" }, { FIELD_U32, "valid" } } },
	[REC_FREQUENCY] = { "power_cpu_frequency", { { FIELD_U32, "state" }, { FIELD_U32, "cpu_id" } } },
	[REC_DUMP_CGROUP] = { "lttng_statedump_process_cgroup_ns", { { FIELD_I32, "tid" }, { FIELD_U32, "ns_inum" } } },
	[REC_GROUP_MOVE] = { "cgroup_attach_task", {
		{ FIELD_I32, "dst_root" }, { FIELD_I32, "dst_level" }, { FIELD_I32, "pid" }, { FIELD_STRING, "dst_path" },
		{ FIELD_COMM, "comm" } } },
};

const char *thread_name(const struct thread *t)
{
	return strtab_get(&t->m->sim->names, t->name);
}

/* Returns the priority as LTTng records it: the kernel's priority - 100; -11 for SCHED_FIFO 10. */
int record_prio(const struct thread *t)
{
	return t->rt ? -11 : 20 + t->nice;
}

/* Returns true if a full buffer discards the record. Losses come in bursts. */
static bool is_discarded(struct cpu *c)
{
	struct sim *s = c->m->sim;

	/* from a half on, bursts follow each other closely */
	const int64_t bursts = s->opt.lost > 500000 ? 1000000 * s->opt.lost / (1000000 - s->opt.lost) : s->opt.lost;
	if (c->lost_left == 0 && rng_chance(&s->fault, bursts / 200))
		c->lost_left = rng_range(&s->fault, 20, 380);
	if (c->lost_left == 0)
		return false;
	c->lost_left--;
	return true;
}

/* Writes a record on CPU c at the current time. */
void record_write(struct cpu *c, enum record_kind kind, const union record_value *v)
{
	struct machine *m = c->m;
	struct sim *s = m->sim;
	int64_t ts = clock_guest(m, s->now) - m->boot_guest;

	if (s->opt.no_sched && kind <= REC_EXEC)
		return;
	if (s->opt.no_wakeups && kind >= REC_WAKEUP && kind <= REC_WAKEUP_NEW)
		return;
	if (s->opt.no_kvm && ((kind >= REC_KVM_ENTRY && kind <= REC_USEREXIT) || kind >= REC_HALT_POLL))
		return;
	if (s->opt.hide && !c->host && c->cur && strcmp(thread_name(c->cur), s->opt.hide) == 0)
		return;
	if (!m->ctf || s->now < m->trace_from || s->now > m->trace_to || s->failed)
		return;
	if (s->first_record == NOTHING)
		s->first_record = s->now;
	if (is_discarded(c)) {
		if (c->lost++ == 0)
			c->lost_from = s->now;
		m->lost++;
		s->failed = ctf_lose(m->ctf, c->number, ts, &s->err) < 0;
		return;
	}
	truth_loss(c, s->now - 1);
	if (m->first == NOTHING)
		m->first = s->now;
	m->last = s->last_record = s->now;
	m->records++;
	s->records++;
	s->kind_records[kind]++;
	if (ctf_write(m->ctf, c->number, ts, kind, c, v, &s->err) < 0)
		s->failed = true;
}
