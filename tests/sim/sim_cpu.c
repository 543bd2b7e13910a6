/* Engine of one CPU: chooses its next activity.
 *
 * Order: queued kernel operations, arrived interrupts, a requested reschedule, the thread. Interrupts wait while
 * operations are queued (a kernel with interrupts off). A host CPU with a vCPU thread in guest mode has no activity of
 * its own; the guest's CPU has one, and kvm.c connects both.
 *
 * Delays of operations are drawn from a table when they are queued; so every operation takes time, and a program of
 * steps without duration cannot stop the clock. */
#include <stdlib.h>

#include "base/mem.h"
#include "sim.h"

static const struct { int32_t lo, hi; } delay[OP_KINDS] = {
	[OP_NOP] = { 300, 900 },
	[OP_WAKING] = { 250, 900 },
	[OP_WAKEUP] = { 400, 1500 },
	[OP_MOVE] = { 200, 500 },
	[OP_PULL] = { 400, 1200 },
	[OP_SWITCH] = { 700, 2600 },
	[OP_TICK] = { 100, 400 },
	[OP_TIMER_ENTRY] = { 300, 1200 },
	[OP_TIMER_EXIT] = { 200, 700 },
	[OP_IRQ_ENTRY] = { 400, 1500 },
	[OP_IRQ_EXIT] = { 300, 2500 },
	[OP_SOFTIRQ_ENTRY] = { 200, 600 },
	[OP_SOFTIRQ_EXIT] = { 600, 9000 },
	[OP_FORK] = { 20000, 60000 },
	[OP_WAKEUP_NEW] = { 2000, 6000 },
	[OP_EXEC] = { 60000, 160000 },
	[OP_QUIT] = { 9000, 30000 },
	[OP_LOG] = { 900, 2200 },
	[OP_DUMP_START] = { 3000, 9000 },
	[OP_DUMP] = { 700, 2500 },
	[OP_DUMP_NS] = { 300, 900 },
	[OP_DUMP_CGROUP] = { 300, 900 },
	[OP_DUMP_END] = { 1000, 3000 },
	[OP_POLL] = { 100, 300 },
	[OP_ADAPT] = { 20, 60 },
	[OP_GO_ON] = { 30, 90 },
	[OP_LEAVE] = { 150, 500 },
	[OP_EXIT] = { 200, 700 },
	[OP_HYPERCALL] = { 300, 900 },
	[OP_USEREXIT] = { 700, 2000 },
	[OP_INJECT] = { 200, 700 },
	[OP_ENTRY] = { 500, 1800 },
	[OP_DELIVER] = { 150, 450 },
	[OP_UNTHROTTLE] = { 200, 600 },
	[OP_OFFLINE] = { 2000, 9000 },
	[OP_EVACUATE] = { 300, 900 },
	[OP_STEAL] = { 400, 2900 },
};

static void grow_ring(struct cpu *c)
{
	size_t cap = c->op_cap ? 2 * c->op_cap : 16;
	struct op *ring;

	if (c->ops < c->op_cap)
		return;
	ring = mem_new(cap, sizeof *ring);
	for (size_t i = 0; i < c->ops; i++)
		ring[i] = c->op[(c->op_first + i) & (c->op_cap - 1)];
	free(c->op);
	c->op = ring;
	c->op_cap = cap;
	c->op_first = 0;
}

static struct op *init_op(struct cpu *c, struct op *op, enum op_kind kind, struct thread *t)
{
	*op = (struct op){
		.kind = (uint8_t)kind, .t = t,
		.delay = (int32_t)rng_range(&c->m->sim->rng, delay[kind].lo, delay[kind].hi),
	};
	c->ops++;
	return op;
}

struct op *cpu_push(struct cpu *c, enum op_kind kind, struct thread *t)
{
	grow_ring(c);
	return init_op(c, &c->op[(c->op_first + c->ops) & (c->op_cap - 1)], kind, t);
}

struct op *cpu_push_front(struct cpu *c, enum op_kind kind, struct thread *t)
{
	grow_ring(c);
	c->op_first = (c->op_first - 1) & (c->op_cap - 1);
	return init_op(c, &c->op[c->op_first], kind, t);
}

static void begin_activity(struct cpu *c, enum act act, int64_t ns)
{
	c->act = (uint8_t)act;
	c->left = ns;
	c->since = c->m->sim->now;
	c->rate = act == ACT_COMPUTE ? cores_rate(c) : 1000;
	queue_push(&c->m->sim->queue, c->since + (ns * 1000 + c->rate - 1) / c->rate, DUE_CPU, c, ++c->gen);
}

/* Returns the rest of the activity, ns. */
static int64_t activity_left(const struct cpu *c)
{
	const int64_t left = c->left - (c->m->sim->now - c->since) * c->rate / 1000;

	return left > 1 ? left : 1;
}

/* Returns the vCPU that CPU c executes; NULL: none. */
static struct cpu *inner_vcpu(const struct cpu *c)
{
	return c->cur->vcpu && c->cur->in_guest ? c->cur->vcpu : NULL;
}

void cpu_pause(struct cpu *c)
{
	if (!c->live)
		return;
	if (inner_vcpu(c))
		cpu_pause(inner_vcpu(c));
	c->live = false;
	c->gen++;
	if (c->act != ACT_NONE)
		c->left = activity_left(c);
}

void cpu_resume(struct cpu *c)
{
	c->live = true;
	if (c->act == ACT_NONE)
		cpu_next(c);
	else if (c->act == ACT_COMPUTE && (c->irqs || c->resched)) {
		c->since = c->m->sim->now;
		cpu_interrupt(c);
	} else
		begin_activity(c, (enum act)c->act, c->left);
}

void cpu_change_rate(struct cpu *c)
{
	while (c && inner_vcpu(c))
		c = inner_vcpu(c);
	if (c && c->live && c->act == ACT_COMPUTE)
		begin_activity(c, ACT_COMPUTE, activity_left(c));
}

void cpu_interrupt(struct cpu *c)
{
	if (!c->live)
		return;
	if (c->act == ACT_COMPUTE) {
		c->gen++;
		c->cur->work_left = activity_left(c);
		c->act = ACT_NONE;
	}
	cpu_next(c);
}

void cpu_irq(struct cpu *c, const struct irq *q)
{
	*ARRAY_PUSH(c->irq, c->irqs, c->irq_cap) = *q;
	cpu_interrupt(c);
}

static void next_irq(struct cpu *c)
{
	struct irq q = c->irq[0];

	c->irqs--;
	for (size_t i = 0; i < c->irqs; i++)
		c->irq[i] = c->irq[i + 1];
	irq_begin(c, &q);
}

/* Decides for a CPU with a vCPU's thread: stay in the guest, exit, or enter. Returns false if there is no activity to
 * begin now. */
static bool host_of_vcpu(struct cpu *c, struct thread *t)
{
	if (t->in_guest) {
		if (c->irqs || c->resched || t->vcpu->kick || t->dying)
			kvm_interrupt(c);
		else if (!t->vcpu->live)
			cpu_resume(t->vcpu);
		return c->ops != 0;
	}
	if (t->polls || t->halts) {
		cpu_push(c, t->polls ? OP_POLL : OP_ADAPT, t);
		return true;
	}
	if (c->irqs || c->resched)
		return false;
	if (t->dying) {
		cpu_push(c, OP_QUIT, NULL);
		t->want = WANT_DIE;
		cpu_push(c, OP_SWITCH, NULL);
		return true;
	}
	if (t->vcpu->m->outage) {
		t->want = WANT_PAUSE;
		cpu_push(c, OP_SWITCH, NULL);
		return true;
	}
	t->vcpu->kick = false;
	if (t->vcpu->virqs)
		cpu_push(c, OP_INJECT, t);
	cpu_push(c, OP_ENTRY, t);
	return true;
}

void cpu_next(struct cpu *c)
{
	while (c->live && c->act == ACT_NONE) {
		struct thread *t = c->cur;

		if (c->ops) {
			begin_activity(c, ACT_OP, c->op[c->op_first].delay);
			return;
		}
		if (t->vcpu && t->in_guest) {
			if (!host_of_vcpu(c, t))
				return;
		} else if (c->irqs) {
			next_irq(c);
		} else if ((c->resched && !t->polls) || (t->idle && sched_wants(c))) {
			c->resched = false;
			cpu_push(c, OP_SWITCH, NULL);
		} else if (t->vcpu) {
			host_of_vcpu(c, t);
		} else if (c->host && c->virqs) {
			struct op *op = cpu_push(c, OP_LEAVE, NULL);

			op->arg = EXIT_VINTR;
		} else if (t->idle) {
			if (!c->host)
				return;
			cpu_push(c, OP_LEAVE, NULL)->arg = EXIT_HLT;
		} else if (t->work_left > 0) {
			begin_activity(c, ACT_COMPUTE, t->work_left);
			return;
		} else {
			thread_step(c, t);
		}
	}
}

/* Completes the activity. */
void cpu_due(struct cpu *c, uint32_t gen)
{
	struct op op;

	if (gen != c->gen || !c->live)
		return;
	if (c->act == ACT_OP) {
		op = c->op[c->op_first];
		c->op_first = (c->op_first + 1) & (c->op_cap - 1);
		c->ops--;
		c->act = ACT_NONE;
		op_run(c, &op);
	} else {
		c->cur->work_left = 0;
		c->act = ACT_NONE;
	}
	cpu_next(c);
}
