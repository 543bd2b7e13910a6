/* Accounts waiting vCPU threads (private to live/). The same source is compiled for BPF (collector.bpf.c) and for
 * user space (tests).
 *
 * Each pCPU logs its last LIVE_LOG switches: time and incoming task. Each victim has one mark: its state and the
 * time up to which its time is accounted. A transition claims the interval between the mark and now with one
 * compare-and-swap and adds it to exactly one state, so that no interval is counted twice, whichever CPU sees the
 * transition. A claimed waiting interval is split along the pCPU's log where the victim waited: each part goes to
 * the task that had the pCPU.
 *
 * Invariants: a victim's times in all states add up to the time since it was added; a victim's pairs add up to
 * its waiting time. Before the log wraps, account_cpu() accounts the waits on that pCPU.
 *
 * The including file defines: ATOMIC_ADD(pointer, n), ATOMIC_SWAP(pointer, old, new) (true: swapped),
 * victim_at(slot), cpu_at(cpu) (NULL: none), steal_of(cpu) (a CPU's steal clock, ns; 0: none),
 * pair_add(victim, entry, ns), task_is_throttled(address), the variable `live`, live_siblings (false: no core has several
 * CPUs), LIVE_GLOBAL, the functions' attribute
 * that the verifier checks on their own, and LIVE_REPEAT(n, step, arg): calls step(i, arg) for i from 0, at most n times,
 * until it returns 1. */
#pragma once

#include "live/collector.h"

static inline __attribute__((always_inline)) u64 mark_make(u64 ns, u32 state)
{
	return ns << LIVE_MARK_BITS | state;
}

/* Adds the current wait's time to the candidates for its top culprit: exact up to LIVE_TOP culprits. */
static inline __attribute__((always_inline)) void wait_add(struct live_victim *v, u32 culprit, u64 ns)
{
	for (int i = 0; i < LIVE_TOP; i++) {
		if (v->top[i].ns == 0)
			v->top[i].culprit = culprit;
		if (v->top[i].culprit == culprit) {
			v->top[i].ns += ns;
			return;
		}
	}
	v->top_other += ns;
}

/* Returns the culprit with most time in the current wait; CULPRIT_SEVERAL if it may be one that is not a candidate. */
static inline __attribute__((always_inline)) u32 wait_top(const struct live_victim *v)
{
	u64 most = v->top_other;
	u32 culprit = most ? CULPRIT_SEVERAL : CULPRIT_UNKNOWN;
	for (int i = 0; i < LIVE_TOP; i++) {
		if (v->top[i].ns > most) {
			most = v->top[i].ns;
			culprit = v->top[i].culprit;
		}
	}
	return culprit;
}

/* Adds waiting time to the owner of the task on the pCPU. */
static inline __attribute__((always_inline)) void owner_add(struct live_victim *v, const struct live_entry *e, u64 ns)
{
	if (e->culprit == CULPRIT_UNKNOWN)
		ATOMIC_ADD(&v->unsure_ns, ns);
	else if (v->space ? e->space == v->space : e->tgid == v->tgid)
		ATOMIC_ADD(&v->own_ns, ns);
	else
		ATOMIC_ADD(&v->other_ns, ns);
}

/* A victim's waiting interval; [from, end) is not yet split. */
struct wait_walk { u64 from, end, head; u32 slot, cpu; };

/* Takes entry i's part, counted back from the log's latest entry. Returns 1 at the end. */
static long account_entry(u32 i, void *arg)
{
	struct wait_walk *w = arg;
	struct live_victim *v = victim_at(w->slot);
	struct live_cpu *c = cpu_at(w->cpu);
	if (!v || !c || i >= w->head)
		return 1;
	const struct live_entry *e = &c->log[(w->head - 1 - i) & (LIVE_LOG - 1)];
	const u64 begin = e->ts > w->from ? e->ts : w->from;
	if (begin < w->end) {
		pair_add(w->slot, e, w->end - begin);
		wait_add(v, e->culprit, w->end - begin);
		owner_add(v, e, w->end - begin);
		w->end = begin;
	}
	return w->end <= w->from;
}

/* Splits a victim's waiting interval [from, to) along a pCPU's log. */
LIVE_GLOBAL int account_wait(u32 slot, u32 cpu, u64 from, u64 to)
{
	struct live_victim *v = victim_at(slot);
	const struct live_cpu *c = cpu_at(cpu);
	struct wait_walk w = { from, to, c ? c->head : 0, slot, cpu };
	if (!v || from >= to)
		return 0;
	LIVE_REPEAT(LIVE_LOG, account_entry, &w);
	if (w.end <= from)
		return 0;
	const struct live_entry unknown = { .culprit = CULPRIT_UNKNOWN };
	pair_add(slot, &unknown, w.end - from);
	wait_add(v, CULPRIT_UNKNOWN, w.end - from);
	owner_add(v, &unknown, w.end - from);
	return 0;
}

/* Takes entry i's part in the other CPU's log. */
static long share_entry(u32 i, void *arg)
{
	struct wait_walk *w = arg;
	struct live_victim *v = victim_at(w->slot);
	const struct live_cpu *c = cpu_at(w->cpu);
	if (!v || !c || i >= w->head)
		return 1;
	const struct live_entry *e = &c->log[(w->head - 1 - i) & (LIVE_LOG - 1)];
	const u64 begin = e->ts > w->from ? e->ts : w->from;
	if (begin < w->end) {
		const u64 ns = w->end - begin;
		if (e->culprit)
			pair_add(w->slot | LIVE_SHARED, e, ns);
		if (e->culprit && e->culprit != CULPRIT_UNKNOWN)
			ATOMIC_ADD(&v->shared_ns, ns);
		w->end = begin;
	}
	return w->end <= w->from;
}

/* Splits a victim's running interval [from, to) along the log of the core's other CPU. */
LIVE_GLOBAL int account_shared(u32 slot, u32 cpu, u64 from, u64 to)
{
	const struct live_cpu *c = cpu_at(cpu), *other = c && c->sibling ? cpu_at(c->sibling - 1) : 0;
	struct wait_walk w = { from, to, other ? other->head : 0, slot, c ? c->sibling - 1 : 0 };
	if (!other || from >= to)
		return 0;
	LIVE_REPEAT(LIVE_LOG, share_entry, &w);
	if (w.end <= from)
		return 0;
	const struct live_entry unknown = { .culprit = CULPRIT_UNKNOWN };
	pair_add(slot | LIVE_SHARED, &unknown, w.end - from);
	return 0;
}

static inline __attribute__((always_inline)) u32 length_bin(u64 ns)
{
	u32 bin = 0;
	for (u32 step = 32; step; step >>= 1) {
		if (ns >> step) {
			ns >>= step;
			bin += step;
		}
	}
	return bin < LIVE_BINS ? bin : LIVE_BINS - 1;
}

static inline __attribute__((always_inline)) int state_waits(u32 state)
{
	return state == LIVE_WAITING || state == LIVE_THROTTLED;
}

/* Ends a victim's current wait at the time now. */
static inline __attribute__((always_inline)) void wait_end(struct live_victim *v, u64 now)
{
	const u64 ns = v->wait_ns;
	ATOMIC_ADD(&v->waits, 1);
	ATOMIC_ADD(&v->bin[length_bin(ns) & (LIVE_BINS - 1)], 1);
	if (ns > v->longest) {
		v->longest = ns;
		v->longest_end = now;
		v->longest_culprit = wait_top(v);
		v->longest_cpu = v->cpu;
	}
}

/* Adds the steal clock's gain since the mark by the state before. cpu: where the victim is from now on. */
static inline __attribute__((always_inline)) void steal_add(struct live_victim *v, u32 before, u32 cpu)
{
	const u64 clock = steal_of(v->cpu), gained = v->steal && clock > v->steal ? clock - v->steal : 0;
	if (before == LIVE_RUNNING)
		ATOMIC_ADD(&v->stolen_run, gained);
	else if (state_waits(before))
		ATOMIC_ADD(&v->stolen_wait, gained);
	v->steal = steal_of(cpu);
}

/* Moves a victim to a state at the time now. cpu: where it waits from now on; LIVE_SAME_CPU: no change. Times before the
 * mark are accounted already and count as 0. */
LIVE_GLOBAL int victim_move(u32 slot, u32 state, u32 cpu, u64 now)
{
	struct live_victim *v = victim_at(slot);
	u64 old = 0;
	int claimed = 0;
	if (!v)
		return 0;
	for (int i = 0; i < 4 && !claimed; i++) {
		old = v->mark;
		if (state & LIVE_IF_WAITING && !state_waits(old & (LIVE_STATES - 1)))
			return 0;
		if (state & LIVE_IF_RUNNING && (old & (LIVE_STATES - 1)) != LIVE_RUNNING)
			return 0;
		if (old >> LIVE_MARK_BITS > now)
			now = old >> LIVE_MARK_BITS;
		claimed = ATOMIC_SWAP(&v->mark, old, mark_make(now, state & (LIVE_STATES - 1)));
	}
	if (!claimed)
		return 0;
	state &= LIVE_STATES - 1;
	const u32 before = old & (LIVE_STATES - 1), waited_on = v->cpu;
	const u64 since = old >> LIVE_MARK_BITS, ns = now - since;
	ATOMIC_ADD(&v->ns[before], ns);
	steal_add(v, before, cpu == LIVE_SAME_CPU ? waited_on : cpu);
	if (state_waits(state) && !state_waits(before)) {
		v->wait_ns = 0;
		v->top_other = 0;
		for (int i = 0; i < LIVE_TOP; i++)
			v->top[i].ns = 0;
	}
	if (before == LIVE_BLOCKED && state != LIVE_BLOCKED)
		ATOMIC_ADD(&v->sleeps, 1);
	if (cpu != LIVE_SAME_CPU)
		v->cpu = cpu;
	if (live_siblings && before == LIVE_RUNNING)
		account_shared(slot, waited_on, since, now);
	if (!state_waits(before))
		return 0;
	v->wait_ns += ns;
	if (before == LIVE_WAITING)
		account_wait(slot, waited_on, since, now);
	else
		wait_add(v, CULPRIT_THROTTLED, ns);
	if (!state_waits(state))
		wait_end(v, now);
	return 0;
}

/* A victim that is scheduled out ran, but its switch-in event was lost: its time since the mark becomes unknown. */
static inline __attribute__((always_inline)) void victim_was_missed(struct live_victim *v)
{
	const u64 old = v->mark;
	const u32 state = old & (LIVE_STATES - 1);
	if (state != LIVE_RUNNING && state != LIVE_UNKNOWN)
		ATOMIC_SWAP(&v->mark, old, mark_make(old >> LIVE_MARK_BITS, LIVE_UNKNOWN));
}

/* The task `tid` leaves a pCPU. If another one had it by the log, an event was lost: that one's time is unknown. */
static inline __attribute__((always_inline)) void log_check(struct live_cpu *c, u32 tid)
{
	struct live_entry *last = &c->log[(c->head - 1) & (LIVE_LOG - 1)];
	if (c->head && last->tid != tid)
		last->culprit = CULPRIT_UNKNOWN;
}

struct cpu_walk { u64 now; u32 cpu, slots, throttled, sibling /* 1 + the other CPU; 0: none */; };

static long account_slot(u32 slot, void *arg)
{
	struct cpu_walk *w = arg;
	const struct live_victim *v = slot < w->slots ? victim_at(slot) : 0;
	if (!v)
		return 1;
	if (live_siblings && w->sibling && v->cpu == w->sibling - 1)
		victim_move(slot, LIVE_RUNNING | LIVE_IF_RUNNING, LIVE_SAME_CPU, w->now);
	if (v->cpu != w->cpu || !state_waits(v->mark & (LIVE_STATES - 1)))
		return 0;
	const u32 state = task_is_throttled(v->task) ? LIVE_THROTTLED : LIVE_WAITING;
	w->throttled += state == LIVE_THROTTLED;
	victim_move(slot, state | LIVE_IF_WAITING, LIVE_SAME_CPU, w->now);
	return 0;
}

/* Accounts the victims that wait for a pCPU, or run on its core's other CPU, up to now, and finds out which of the
 * former are throttled. */
LIVE_GLOBAL int account_cpu(u32 cpu, u64 now)
{
	struct live_cpu *c = cpu_at(cpu);
	struct cpu_walk w = { now, cpu, live.slots, 0, live_siblings && c ? c->sibling : 0 };
	if (!c)
		return 0;
	LIVE_REPEAT(LIVE_VICTIMS, account_slot, &w);
	c->throttled = w.throttled;
	return 0;
}

/* Adds the time that the outgoing task ran to a pCPU's table. */
static inline __attribute__((always_inline)) void run_add(struct live_cpu *c, const struct live_entry *e, u64 ns, u32 epoch)
{
	const u32 hash = e->culprit * 2654435769u >> 26;
	for (u32 i = 0; i < 2; i++) {
		const u32 at = (hash + i) & (LIVE_RUNS - 1);
		struct live_run *r = &c->run[epoch & 1][at];
		if (r->ns == 0) {
			r->culprit = e->culprit;
			r->tid = e->tid;
			__builtin_memcpy(c->run_comm[epoch & 1][at], e->comm, sizeof e->comm);
		}
		if (r->culprit == e->culprit) {
			r->ns += ns;
			return;
		}
	}
	c->run_other[epoch & 1] += ns;
}

/* Appends a switch's incoming task to the log on this pCPU. Called after both tasks' transitions. */
static inline __attribute__((always_inline)) void log_append(struct live_cpu *c, u32 cpu, const struct live_entry *e,
                                                            u32 epoch)
{
	if (c->head) {
		const struct live_entry *last = &c->log[(c->head - 1) & (LIVE_LOG - 1)];
		run_add(c, last, e->ts - last->ts, epoch);
	}
	c->log[c->head & (LIVE_LOG - 1)] = *e;
	c->head++;
	if ((c->head & (LIVE_LOG / 2 - 1)) == 0 || c->throttled)
		account_cpu(cpu, e->ts);
}
