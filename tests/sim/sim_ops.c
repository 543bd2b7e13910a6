/* Operations: the effect of each operation, and the operations of an interrupt. */
#include <inttypes.h>

#include "sim.h"

#define LINE_NET 28  /* interrupt of a guest: a packet arrived */

#define TIMER_TICK UINT64_C(0xffffffffb8158f60)
#define TIMER_WAKE UINT64_C(0xffffffffb8145bd0)
#define TIMER_QUOTA UINT64_C(0xffffffffb80e49d0)
#define TIMER_APIC UINT64_C(0xffffffffc0347ef0)
#define DEVICE_IDLE 30  /* number of an interrupt that wakes no thread */

/* Returns an address that identifies the timer. */
static uint64_t timer_id(const struct cpu *c, uint64_t function)
{
	return UINT64_C(0xffff8b7200000000) + c->number * UINT64_C(0x100000) + (function & 0xffff);
}

static void timer_ops(struct cpu *c, uint64_t function)
{
	cpu_push(c, OP_TIMER_ENTRY, NULL)->a = (int64_t)function;
}

static void timer_end(struct cpu *c, uint64_t function)
{
	cpu_push(c, OP_TIMER_EXIT, NULL)->a = (int64_t)function;
}

/* Queues the operations at the end of a quota period; each group has a timer of its own. */
static void quota_period_ops(struct cpu *c, const struct quota_group *g)
{
	static const uint8_t kind[] = { OP_TIMER_ENTRY, OP_UNTHROTTLE, OP_TIMER_EXIT };

	for (size_t i = 0; i < sizeof kind; i++) {
		struct op *op = cpu_push(c, kind[i], NULL);

		op->a = kind[i] == OP_UNTHROTTLE ? (int64_t)(intptr_t)g : (int64_t)TIMER_QUOTA;
		op->b = (g - c->m->sim->group + 1) * 0x400;
	}
}

/* Queues a softirq; with --nested a device sometimes interrupts the softirq, and a timer the device's handler. */
static void softirq_ops(struct cpu *c, int64_t vec)
{
	bool nested = c->m->sim->opt.nested && rng_chance(&c->m->sim->rng, 250000);
	bool timer = nested && rng_chance(&c->m->sim->rng, 300000);

	cpu_push(c, OP_SOFTIRQ_ENTRY, NULL)->a = vec;
	if (nested)
		cpu_push(c, OP_IRQ_ENTRY, NULL)->a = DEVICE_IDLE;
	if (timer)
		timer_ops(c, TIMER_WAKE);
	if (timer)
		timer_end(c, TIMER_WAKE);
	if (nested)
		cpu_push(c, OP_IRQ_EXIT, NULL)->a = DEVICE_IDLE;
	cpu_push(c, OP_SOFTIRQ_EXIT, NULL)->a = vec;
}

static void tick_ops(struct cpu *c)
{
	timer_ops(c, TIMER_TICK);
	cpu_push(c, OP_TICK, NULL);
	timer_end(c, TIMER_TICK);
	if (rng_chance(&c->m->sim->rng, 300000))
		softirq_ops(c, rng_chance(&c->m->sim->rng, 500000) ? 7 : rng_chance(&c->m->sim->rng, 500000) ? 1 : 9);
}

static void deliver_op(struct cpu *c, const struct irq *q)
{
	struct op *op = cpu_push(c, OP_DELIVER, q->t);

	op->arg = q->inner;
	op->c = q->c;
	op->a = (int64_t)(intptr_t)q->owner;
}

/* Queues the operations of an interrupt's handler. */
void irq_begin(struct cpu *c, const struct irq *q)
{
	int64_t line = c->m->is_host ? 25 : q->kind == IRQ_DEV && q->inner ? LINE_NET : 27;

	switch ((enum irq_kind)q->kind) {
	case IRQ_TICK:
		tick_ops(c);
		break;
	case IRQ_WAKE:
		timer_ops(c, TIMER_WAKE);
		cpu_push(c, OP_WAKING, q->t);
		timer_end(c, TIMER_WAKE);
		break;
	case IRQ_BARE: {
		struct bare *b = q->owner;

		timer_ops(c, TIMER_WAKE);
		timer_end(c, TIMER_WAKE);
		queue_push(&c->m->sim->queue, c->m->sim->now + b->period, DUE_BARE, b, 0);
		break;
	}
	case IRQ_DEV:
		cpu_push(c, OP_IRQ_ENTRY, NULL)->a = line;
		cpu_push(c, OP_WAKING, q->t);
		cpu_push(c, OP_IRQ_EXIT, NULL)->a = line;
		softirq_ops(c, 4);
		break;
	case IRQ_RESCHED:
		cpu_push(c, q->t ? OP_WAKEUP : OP_NOP, q->t);
		c->resched = c->resched || !q->t;
		break;
	case IRQ_OFFLINE:
		cpu_push(c, OP_OFFLINE, NULL);
		cpu_push(c, OP_SWITCH, NULL);
		cpu_push(c, OP_EVACUATE, NULL);
		break;
	case IRQ_GUEST:
		timer_ops(c, TIMER_APIC);
		deliver_op(c, q);
		timer_end(c, TIMER_APIC);
		break;
	case IRQ_GUEST_DEV:
		cpu_push(c, OP_IRQ_ENTRY, NULL)->a = line;
		deliver_op(c, q);
		cpu_push(c, OP_IRQ_EXIT, NULL)->a = line;
		break;
	case IRQ_PERIOD:
		quota_period_ops(c, q->owner);
		break;
	}
}

static void timer_record(struct cpu *c, const struct op *op)
{
	uint64_t id = op->b ? UINT64_C(0xffff8b72c0004000) + (uint64_t)op->b : timer_id(c, (uint64_t)op->a);
	int64_t mono = clock_guest(c->m, c->m->sim->now) - c->m->boot_guest - c->m->mono_behind - 3000;

	if (op->kind == OP_TIMER_ENTRY)
		RECORD(c, REC_TIMER_ENTRY, N(id), N(mono), N(op->a));
	else
		RECORD(c, REC_TIMER_EXIT, N(id));
	if (op->kind == OP_TIMER_ENTRY)
		steal_probe(c, REC_STEAL_TIMER);
	truth_irq(c, op->kind == OP_TIMER_ENTRY ? "timer" : NULL);
}

static void irq_record(struct cpu *c, const struct op *op)
{
	static const char *const softirq_name[] = { "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED",
	                                            "HRTIMER", "RCU" };
	const char *device = c->m->is_host ? "virtio1-req.0" : op->a == LINE_NET ? "virtio1-input.0" : "virtio0-virtqueues";
	char text[64];

	if (op->kind == OP_IRQ_ENTRY)
		snprintf(text, sizeof text, "irq/%" PRId64 "-%s", op->a, device);
	else if (op->kind == OP_SOFTIRQ_ENTRY)
		snprintf(text, sizeof text, "softirq/%" PRId64 "-%s", op->a, softirq_name[op->a]);
	switch (op->kind) {
	case OP_IRQ_ENTRY:
		RECORD(c, REC_IRQ_ENTRY, N(op->a), S(device));
		break;
	case OP_IRQ_EXIT:
		RECORD(c, REC_IRQ_EXIT, N(op->a), N(1));
		break;
	case OP_SOFTIRQ_ENTRY:
		RECORD(c, REC_SOFTIRQ_ENTRY, N(op->a));
		break;
	default:
		RECORD(c, REC_SOFTIRQ_EXIT, N(op->a));
		break;
	}
	truth_irq(c, op->kind == OP_IRQ_ENTRY || op->kind == OP_SOFTIRQ_ENTRY ? text : NULL);
}

/* Creates a thread. a: workload of the child; b: 1: thread of the same process; c: vCPU that it will run; NULL: none. */
static void fork_op(struct cpu *c, const struct op *op)
{
	struct thread *parent = c->cur, *child;

	if (op->c && !vcpu_gone(op->c))
		return;
	child = thread_new(c->m, op->c ? vcpu_thread_name(op->c) : parent->name, op->c ? NULL : workload[op->a],
	                   op->b || op->c ? parent->pid : 0, parent->pid);
	if (!child)
		return;  /* all ids in use: fork fails */
	child->affinity = parent->affinity;
	child->ns = parent->ns;
	child->cgroup_ns = parent->cgroup_ns;
	child->cpu = c->number;
	child->vm = op->c ? NULL : parent->vm;
	if (op->c)
		vcpu_attach(op->c, child);
	RECORD(c, REC_FORK, S(thread_name(parent)), N(parent->tid), N(parent->pid), N(parent->ns), S(thread_name(child)),
	       N(child->tid), N(child->tid), N(child->pid), N(child->ns));
	truth_thread(child);
	cpu_push_front(c, OP_WAKEUP_NEW, child);
}

static void log_op(struct cpu *c, const struct op *op)
{
	static const char *const format[] = { "vmsync a %" PRId64, "vmsync d %" PRId64, "srbn start %" PRId64,
	                                      "srbn yield %" PRId64, "srbn resume %" PRId64, "srbn end %" PRId64 };
	struct sim *s = c->m->sim;
	int64_t key = op->a;
	char text[48];

	if (op->arg <= LOG_SYNC_D && rng_chance(&s->fault, s->opt.sync_bogus))
		key = rng_range(&s->fault, 1, 2 * key + 100);
	snprintf(text, sizeof text, format[op->arg], key);
	RECORD(c, REC_LOG, S(text));
	if (op->arg <= LOG_SYNC_D && rng_chance(&s->fault, s->opt.sync_dup)) {
		struct op *again = cpu_push_front(c, OP_LOG, NULL);

		again->arg = op->arg;
		again->a = op->a;
	}
	if (op->arg >= LOG_START)
		truth_mark(c, (enum log_kind)op->arg, op->a);
}

static void dump_op(struct cpu *c, const struct thread *t)
{
	static const uint8_t status[] = { [TASK_BLOCKED] = 5, [TASK_RUNNABLE] = 2, [TASK_RUNNING] = 2, [TASK_NEW] = 1,
	                                  [TASK_DEAD] = 4 };

	RECORD(c, REC_DUMP_PROCESS, N(t->tid), N(t->pid), N(t->ppid), S(thread_name(t)), N(0), N(5), N(0),
	       N(status[t->state]), N(t->cpu), N(UINT64_C(0xffff8b7200000000) + (uint64_t)t->pid * 64));
	if (c->m->sim->opt.containers)
		cpu_push_front(c, OP_DUMP_CGROUP, NULL)->a = t->tid;
	cpu_push_front(c, OP_DUMP_NS, NULL)->a = t->tid;
}

static void hypercall_op(struct cpu *c, const struct op *op)
{
	struct sim *s = c->m->sim;

	if (rng_chance(&s->fault, s->opt.sync_dup)) {
		struct op *again = cpu_push_front(c, OP_HYPERCALL, op->t);

		again->a = op->a;
		again->b = op->b;
	}
	RECORD(c, REC_HYPERCALL, N(op->a), N(op->b), N(0), N(0), N(140734744578224));
}

static void exec_op(struct cpu *c, const struct op *op)
{
	struct thread *t = c->cur;
	char path[64];

	t->name = (uint32_t)op->a;
	snprintf(path, sizeof path, "/usr/bin/%s", thread_name(t));
	RECORD(c, REC_EXEC, S(path), N(t->tid), N(t->tid));
	truth_thread(t);
}

static void sched_op(struct cpu *c, const struct op *op)
{
	switch (op->kind) {
	case OP_WAKING:
		sched_waking(c, op->t);
		break;
	case OP_WAKEUP:
		sched_wakeup(c, op->t, false);
		break;
	case OP_WAKEUP_NEW:
		sched_wakeup(c, op->t, true);
		break;
	case OP_MOVE:
		sched_move(c, op->t, op);
		break;
	case OP_PULL:
		sched_pull(c, op->t);
		break;
	case OP_SWITCH:
		sched_switch(c);
		break;
	default:
		sched_tick(c);
		steal_probe(c, REC_STEAL_TICK);
		break;
	}
}

static void kvm_op(struct cpu *c, const struct op *op)
{
	switch (op->kind) {
	case OP_LEAVE:
		kvm_leave(c, op);
		break;
	case OP_EXIT:
		kvm_exit(c, op);
		break;
	case OP_HYPERCALL:
		hypercall_op(c, op);
		break;
	case OP_USEREXIT:
		RECORD(c, REC_USEREXIT, N(op->a), N(0));
		break;
	case OP_POLL:
		kvm_poll(c);
		break;
	case OP_ADAPT:
		kvm_adapt(c);
		break;
	case OP_GO_ON:
		kvm_go_on(c);
		break;
	case OP_INJECT:
		kvm_inject(c);
		break;
	case OP_ENTRY:
		kvm_entry(c);
		break;
	default:
		kvm_forward(op, c);
		break;
	}
}

void op_run(struct cpu *c, const struct op *op)
{
	switch ((enum op_kind)op->kind) {
	case OP_WAKING: case OP_WAKEUP: case OP_WAKEUP_NEW: case OP_MOVE: case OP_PULL: case OP_SWITCH: case OP_TICK:
		sched_op(c, op);
		break;
	case OP_TIMER_ENTRY: case OP_TIMER_EXIT:
		timer_record(c, op);
		break;
	case OP_IRQ_ENTRY: case OP_IRQ_EXIT: case OP_SOFTIRQ_ENTRY: case OP_SOFTIRQ_EXIT:
		irq_record(c, op);
		break;
	case OP_FORK:
		fork_op(c, op);
		break;
	case OP_EXEC:
		exec_op(c, op);
		break;
	case OP_QUIT:
		RECORD(c, REC_QUIT, S(thread_name(c->cur)), N(c->cur->tid), N(record_prio(c->cur)));
		break;
	case OP_LOG:
		log_op(c, op);
		break;
	case OP_DUMP_START:
		RECORD(c, REC_DUMP_START, N(0));
		break;
	case OP_DUMP:
		if (c->m->by_tid[op->a])
			dump_op(c, c->m->by_tid[op->a]);
		break;
	case OP_DUMP_NS:
		if (c->m->by_tid[op->a])
			RECORD(c, REC_DUMP_NS, N(op->a), N(op->a), N(c->m->by_tid[op->a]->pid), N(1), N(0),
			       N(c->m->by_tid[op->a]->ns));
		break;
	case OP_DUMP_CGROUP:
		if (c->m->by_tid[op->a])
			RECORD(c, REC_DUMP_CGROUP, N(op->a), N(c->m->by_tid[op->a]->cgroup_ns));
		break;
	case OP_DUMP_END:
		RECORD(c, REC_DUMP_END, N(0));
		break;
	case OP_POLL: case OP_ADAPT: case OP_GO_ON:
	case OP_LEAVE: case OP_EXIT: case OP_HYPERCALL: case OP_USEREXIT: case OP_INJECT: case OP_ENTRY: case OP_DELIVER:
		kvm_op(c, op);
		break;
	case OP_UNTHROTTLE:
		sched_unthrottle(c->m->sim, (struct quota_group *)(intptr_t)op->a);
		break;
	case OP_OFFLINE:
		sched_offline(c);
		break;
	case OP_EVACUATE:
		sched_evacuate(c);
		break;
	case OP_STEAL:
		steal_read(c, (enum record_kind)op->arg);
		break;
	case OP_NOP: case OP_KINDS:
		break;
	}
}
