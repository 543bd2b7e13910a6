/* Scheduler of hosts and guests: one runqueue per CPU, virtual run time, time slices, wakeups that choose a CPU and may
 * preempt, idle CPUs that pull threads, CFS quotas. The scheduler of a guest observes that the host's clock advances
 * while its vCPU is preempted, like a real guest without steal-time accounting.
 *
 * Cost: linear in the threads queued on one CPU. */
#include "base/mem.h"
#include "groups.h"
#include "sim.h"

#define SLEEPER (3 * MS)      /* maximum lag of a woken thread behind the others, ns of virtual run time */
#define GRANULARITY (1 * MS)  /* minimum lag behind the current thread that allows preemption */

static bool is_throttled(const struct thread *t)
{
	return t->group && group_keeps_off(t);
}

static struct thread *pick_next(const struct cpu *c)
{
	struct thread *best = NULL;

	for (size_t i = 0; i < c->runs && c->online; i++) {
		struct thread *t = c->run[i];

		if (is_throttled(t))
			continue;
		if (!best || (t->rt != best->rt ? t->rt : t->vruntime < best->vruntime ||
		              (t->vruntime == best->vruntime && t->tid < best->tid)))
			best = t;
	}
	return best;
}

static void enqueue(struct cpu *c, struct thread *t)
{
	if (t->cpu != c->number) {
		t->vruntime += c->min_vruntime - t->m->cpu[t->cpu].min_vruntime;
		t->cpu = c->number;
	}
	*ARRAY_PUSH(c->run, c->runs, c->run_cap) = t;
}

static void dequeue(struct cpu *c, const struct thread *t)
{
	for (size_t i = 0; i < c->runs; i++)
		if (c->run[i] == t) {
			c->run[i] = c->run[--c->runs];
			return;
		}
}

/* Returns the weight of a thread; each nice level has 1.25 times the weight of the next level. */
static int64_t weight_of(const struct thread *t)
{
	int64_t num = WEIGHT_0, den = 1;

	for (int i = t->nice; i < 0; i++) {
		num *= 5;
		den *= 4;
	}
	for (int i = 0; i < t->nice; i++) {
		num *= 4;
		den *= 5;
	}
	return t->weight ? t->weight : (num + den / 2) / den;
}

/* Charges the time since the last call to the current thread. */
static void charge_current(struct cpu *c)
{
	struct thread *t = c->cur;
	int64_t ran = c->m->sim->now - t->exec_since, least;

	t->exec_since = c->m->sim->now;
	if (t->idle)
		return;
	t->vruntime += t->weight || t->nice ? ran * WEIGHT_0 / weight_of(t) : ran;
	least = t->vruntime;
	for (size_t i = 0; i < c->runs; i++)
		if (c->run[i]->vruntime < least)
			least = c->run[i]->vruntime;
	if (least > c->min_vruntime)
		c->min_vruntime = least;
	if (t->group && group_charge(t->group, ran)) {
		truth_quota(c->m->sim, t->group);
		group_throttled(c, t->group);
	}
}

bool sched_wants(const struct cpu *c)
{
	return pick_next(c) != NULL;
}

/* Returns true if the thread may run on that CPU. If none of its CPUs is online, it may run on any online CPU. */
static bool is_allowed(const struct thread *t, unsigned cpu)
{
	const struct machine *m = t->m;
	bool any = false;

	for (unsigned i = 0; i < m->cpus && !any; i++)
		any = m->cpu[i].online && (t->affinity >> i & 1);
	return m->cpu[cpu].online && (!any || (t->affinity >> cpu & 1));
}

static unsigned cpu_load(const struct cpu *c)
{
	return (unsigned)c->runs + !c->cur->idle;
}

/* Returns the CPU for a thread that wakes: its last CPU if idle, any idle CPU, otherwise usually its last CPU. */
static unsigned choose_cpu(struct thread *t)
{
	struct machine *m = t->m;
	unsigned best = t->cpu, least = 0;

	if (is_allowed(t, t->cpu) && !cpu_load(&m->cpu[t->cpu]))
		return t->cpu;
	for (unsigned i = 0; i < m->cpus; i++)
		if (is_allowed(t, i) && !cpu_load(&m->cpu[i]))
			return i;
	if (is_allowed(t, t->cpu) && !rng_chance(&m->sim->rng, 200000))
		return t->cpu;
	for (unsigned i = 0; i < m->cpus; i++)
		if (is_allowed(t, i) && (!is_allowed(t, best) || cpu_load(&m->cpu[i]) < least || i == 0)) {
			best = i;
			least = cpu_load(&m->cpu[i]);
		}
	return best;
}

/* Makes CPU `other` choose its thread again, at the request of CPU c. */
static void request_reschedule(struct cpu *c, struct cpu *other)
{
	other->resched = true;
	if (other == c)
		return;
	if (!c->host) {
		cpu_interrupt(other);
	} else if (c->live) {
		struct op *op = cpu_push_front(c, OP_LEAVE, NULL);

		op->arg = EXIT_IPI;
		op->c = other;
	}
}

static bool may_preempt(struct cpu *c, const struct thread *t)
{
	if (is_throttled(t))
		return false;
	if (c->cur->idle)
		return true;
	charge_current(c);
	if (t->rt != c->cur->rt)
		return t->rt;
	return !t->rt && c->cur->vruntime - t->vruntime > GRANULARITY;
}

static bool is_cpu_idle(const struct machine *m, unsigned cpu)
{
	return m->cpu[cpu].cur->idle && !m->cpu[cpu].ops;
}

/* Completes a wakeup on this CPU, or on an idle destination, which gets an interrupt for it. */
static void wake_on(struct cpu *c, struct thread *t, unsigned dest, bool remote)
{
	if (!remote) {
		cpu_push_front(c, OP_WAKEUP, t);
		return;
	}
	if (c->host) {
		struct op *op = cpu_push_front(c, OP_LEAVE, t);

		op->arg = EXIT_IPI;
		op->c = &c->m->cpu[dest];
		return;
	}
	cpu_push(&c->m->cpu[dest], OP_WAKEUP, t);
	cpu_interrupt(&c->m->cpu[dest]);
}

void sched_waking(struct cpu *c, struct thread *t)
{
	unsigned dest;
	bool remote;

	t->inbox++;
	if (t->state != TASK_BLOCKED || t->waking) {
		if (t->state == TASK_RUNNING && t->want != WANT_RUN)
			t->wake_pending = true;
		return;
	}
	t->waking = true;
	t->timer_gen++;
	RECORD(c, REC_WAKING, S(thread_name(t)), N(t->tid), N(record_prio(t)), N(t->cpu));
	truth_wake(c, t);
	dest = choose_cpu(t);
	remote = (!c->host || c->m->sim->far_wakes) && dest != c->number && is_cpu_idle(c->m, dest) &&
	         rng_chance(&c->m->sim->rng, 500000);
	if (dest != t->cpu) {
		struct op *op = cpu_push_front(c, OP_MOVE, t);

		op->a = dest;
		op->b = remote;
	} else {
		wake_on(c, t, dest, remote);
	}
}

/* Moves a waking thread to another CPU. */
void sched_move(struct cpu *c, struct thread *t, const struct op *op)
{
	unsigned dest = (unsigned)op->a;

	RECORD(c, REC_MIGRATE, S(thread_name(t)), N(t->tid), N(record_prio(t)), N(t->cpu), N(dest));
	t->vruntime += t->m->cpu[dest].min_vruntime - t->m->cpu[t->cpu].min_vruntime;
	t->cpu = dest;
	truth_thread(t);
	wake_on(c, t, dest, op->b);
}

void sched_wakeup(struct cpu *c, struct thread *t, bool is_new)
{
	struct cpu *target;

	if (is_new) {
		t->cpu = choose_cpu(t);
		t->vruntime = t->m->cpu[t->cpu].min_vruntime;
	}
	target = &t->m->cpu[t->cpu];
	RECORD(c, is_new ? REC_WAKEUP_NEW : REC_WAKEUP, S(thread_name(t)), N(t->tid), N(record_prio(t)), N(t->cpu));
	t->waking = false;
	t->woken = true;
	t->want = WANT_RUN;
	t->state = TASK_RUNNABLE;
	t->queued_since = c->m->sim->now;
	/* charged here as in the kernel: up to one tick may be unaccounted, which would put the woken thread ahead */
	charge_current(target);
	if (t->vruntime < target->min_vruntime - SLEEPER)
		t->vruntime = target->min_vruntime - SLEEPER;
	enqueue(target, t);
	group_limit(c, t);
	truth_thread(t);
	if (may_preempt(target, t))
		request_reschedule(c, target);
}

/* Returns a thread queued on a busy CPU that may run on this one. */
static struct thread *find_pullable(const struct cpu *c)
{
	const struct machine *m = c->m;

	for (unsigned i = 0; i < m->cpus && c->online; i++) {
		const struct cpu *o = &m->cpu[i];

		if (o == c || o->cur->idle)
			continue;
		for (size_t k = 0; k < o->runs; k++)
			if (is_allowed(o->run[k], c->number) && !is_throttled(o->run[k]))
				return o->run[k];
	}
	return NULL;
}

void sched_pull(struct cpu *c, struct thread *t)
{
	if (t->m != c->m || t->state != TASK_RUNNABLE || t->cpu == c->number || !is_allowed(t, c->number))
		return;  /* another CPU pulled or ran the thread first; its memory may be that of another machine's thread now */
	RECORD(c, REC_MIGRATE, S(thread_name(t)), N(t->tid), N(record_prio(t)), N(t->cpu), N(c->number));
	dequeue(&t->m->cpu[t->cpu], t);
	enqueue(c, t);
	group_requeued(c, t);
	truth_thread(t);
}

static bool block_is_off(const struct thread *t)
{
	return t->wake_pending || (t->vcpu && t->want == WANT_HALT && (t->vcpu->virqs || t->vcpu->irqs || t->dying));
}

static void switch_out(struct cpu *c, struct thread *t)
{
	if (t->idle)
		return;
	t->woken = false;
	switch ((enum want)t->want) {
	case WANT_RUN:
		t->state = TASK_RUNNABLE;
		t->queued_since = t->m->sim->now;
		enqueue(c, t);
		break;
	case WANT_DIE:
		t->state = TASK_DEAD;
		break;
	default:
		t->state = TASK_BLOCKED;
		t->halt_out = t->slept ? t->halt_out : t->m->sim->now;
		t->slept = true;
		break;
	}
}

/* Ends the wait of a thread in a runqueue. */
static void end_wait(struct thread *t)
{
	if (t->idle || t->state != TASK_RUNNABLE)
		return;
	t->run_delay += t->m->sim->now - t->queued_since;
	if (!t->vcpu)
		return;
	const bool throttled = t->group && t->group->refilled > t->queued_since;
	if (throttled)
		truth_steal(t->vcpu, t->queued_since, t->group->refilled, "quota");
	truth_steal(t->vcpu, throttled ? t->group->refilled : t->queued_since, t->m->sim->now, "wait");
}

static void switch_to(struct cpu *c, struct thread *next)
{
	static const int16_t prev_state[] = { [WANT_RUN] = 0, [WANT_SLEEP] = 1, [WANT_DISK] = 2, [WANT_HALT] = 1,
	                                      [WANT_DIE] = 32, [WANT_PAUSE] = 1 };
	struct thread *prev = c->cur;
	int64_t ps = prev->idle ? 0 : prev_state[prev->want];

	if (ps == 0 && !prev->idle && c->number % 2)
		ps = 256;  /* preempted in kernel code */
	if (ps == 0 || ps == 256) {
		group_throttle_queue(c, prev);
		group_limit(c, prev);
	}
	RECORD(c, REC_SWITCH, S(thread_name(prev)), N(prev->tid), N(record_prio(prev)), N(ps),
	       S(thread_name(next)), N(next->tid), N(record_prio(next)));
	cores_before_switch(c);
	steal_probe(c, REC_STEAL_SWITCH);
	if (prev->idle)
		steal_probe(c, REC_STEAL_TICK);
	switch_out(c, prev);
	dequeue(c, next);
	end_wait(next);
	next->state = TASK_RUNNING;
	next->exec_since = next->slice_start = c->m->sim->now;
	c->cur = next;
	group_limit_queue(c, prev);
	truth_thread(prev);
	truth_thread(next);
	truth_pcpu(c);
	cores_after_switch(c);
	if (prev->state == TASK_DEAD)
		thread_free(prev);
	if (!next->idle)
		sched_arm_tick(c);
}

void sched_switch(struct cpu *c)
{
	struct thread *prev = c->cur, *best, *pulled;
	bool stays;

	if (prev->want != WANT_RUN && prev->want != WANT_DIE && block_is_off(prev)) {
		prev->want = WANT_RUN;
		prev->wake_pending = false;
		return;
	}
	charge_current(c);
	c->resched = false;
	stays = !prev->idle && prev->want == WANT_RUN && !is_throttled(prev) && c->online;
	best = pick_next(c);
	if (!best && !stays) {
		pulled = find_pullable(c);
		if (pulled && pulled != prev) {
			cpu_push_front(c, OP_SWITCH, NULL);
			cpu_push_front(c, OP_PULL, pulled);
			return;
		}
		best = c->idle;
	}
	if (stays && best && (prev->rt != best->rt ? prev->rt : prev->vruntime < best->vruntime))
		best = NULL;
	if (best && best != prev)
		switch_to(c, best);
}

void sched_offline(struct cpu *c)
{
	c->online = false;
}

void sched_evacuate(struct cpu *c)
{
	struct thread *t = c->runs && !c->online ? c->run[0] : NULL;
	struct cpu *to;

	if (!t)
		return;
	to = &c->m->cpu[choose_cpu(t)];
	RECORD(c, REC_MIGRATE, S(thread_name(t)), N(t->tid), N(record_prio(t)), N(t->cpu), N(to->number));
	dequeue(c, t);
	enqueue(to, t);
	truth_thread(t);
	cpu_push_front(c, OP_EVACUATE, NULL);
	if (may_preempt(to, t))
		request_reschedule(c, to);
}

/* Periodic tick: ends the slice, or throttles the group. */
void sched_tick(struct cpu *c)
{
	struct thread *t = c->cur;

	c->tick_armed = false;
	cores_tick(c);
	charge_current(c);
	if (t->idle)
		return;
	if (is_throttled(t) || (pick_next(c) && c->m->sim->now - t->slice_start >= c->m->slice - MS / 2 && !t->rt))
		c->resched = true;
	sched_arm_tick(c);
}

void sched_arm_tick(struct cpu *c)
{
	int64_t period = c->m->tick, phase = c->number * 137 * US, now = c->m->sim->now;

	if (c->tick_armed)
		return;
	c->tick_armed = true;
	queue_push(&c->m->sim->queue, (now / period + 1) * period + phase, DUE_TICK, c, ++c->tick_gen);
}

void sched_regroup(struct thread *t, struct quota_group *to)
{
	struct cpu *c = &t->m->cpu[t->cpu];

	if (c->cur == t)
		charge_current(c);
	t->group = to;
	if (c->cur == t ? is_throttled(t) : c->cur->idle && pick_next(c)) {
		c->resched = true;
		cpu_interrupt(c);
	}
}

void sched_unthrottle(struct sim *s, struct quota_group *g)
{
	struct machine *host = s->machine[0];

	g->used = 0;
	g->refilled = g->throttled ? s->now : g->refilled;
	g->throttled = false;
	truth_quota(s, g);
	group_unthrottled(&host->cpu[0], g);
	for (unsigned i = 0; i < host->cpus; i++)
		if (host->cpu[i].cur->idle && pick_next(&host->cpu[i])) {
			host->cpu[i].resched = true;
			cpu_interrupt(&host->cpu[i]);
		}
}
