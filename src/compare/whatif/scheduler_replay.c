/* A model of the host's scheduler.
 *
 * Each CPU gives itself to the runnable task that had least of it by weight ("virtual run time"), for a slice at
 * least while others wait.  Who wakes is put at most `credit` behind the others of its CPU, and preempts if it is
 * GRANULARITY behind the one at work.  Where the host's turns ended at a tick, a CPU looks at its ticks alone.
 * Who wakes goes to the CPU that it was on if that is idle, to any idle one that it may use, else stays; a CPU that
 * becomes idle takes one that waits elsewhere, or was sent away; and every now and then one who waits goes where fewer do.
 * Slice, credit and how often that is are what reproduces the recording best (calibrate.c).
 *
 * Groups whose weights are known give each of theirs a weight of that moment (cgroup_weights.h).
 *
 * Left out: SCHED_IDLE, of which no event tells, real-time classes, groups of which nothing is known, caches, the cost of
 * switching (it is part of the work; what an idle CPU takes to begin it is a constant that the recording tells), and
 * interrupts (those of whoever was interrupted). */
#include "compare/whatif/scheduler_replay.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define GRANULARITY 1000000
#define ON_CPU_MOST 256  /* of whom groups look at each other */

enum { ASLEEP, QUEUED, RUNS, ENDED };

struct sleeper { int64_t at; size_t task; };

struct core {
	size_t *queue, len, cap;
	size_t task;             /* NOBODY: idle */
	int64_t slice_start, due;
	double least;            /* virtual run time of whoever had least of it; never falls */
};
#define NOBODY SIZE_MAX

struct replay_host {
	struct wants *w;
	const struct rules *rules;
	struct core core[64];
	struct sleeper *heap;
	size_t len, cap;
	int64_t now, end;
};

/* ---- Sleepers, the first to wake on top; equals in the order of the tasks */

static bool before(const struct sleeper *a, const struct sleeper *b)
{
	return a->at != b->at ? a->at < b->at : a->task < b->task;
}

static void heap_push(struct replay_host *m, int64_t at, size_t task)
{
	struct sleeper s = { at, task };
	(void)ARRAY_PUSH(m->heap, m->len, m->cap);
	size_t i = m->len - 1;
	for (; i && before(&s, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
		m->heap[i] = m->heap[(i - 1) / 2];
	m->heap[i] = s;
}

static size_t heap_pop(struct replay_host *m)
{
	const size_t top = m->heap[0].task;
	const struct sleeper s = m->heap[--m->len];
	size_t i = 0;
	for (size_t k; (k = 2 * i + 1) < m->len; i = k) {
		if (k + 1 < m->len && before(&m->heap[k + 1], &m->heap[k]))
			k++;
		if (!before(&m->heap[k], &s))
			break;
		m->heap[i] = m->heap[k];
	}
	if (m->len)
		m->heap[i] = s;
	return top;
}

/* ---- CPUs */

/* What counts against the others of its CPU. */
static double weight_on(const struct replay_host *m, const struct core *c)
{
	const struct replay_task *t = &m->w->task[c->task], *on[ON_CPU_MOST] = { t };
	size_t n = 1;
	if (!m->w->groups)
		return t->weight;
	for (size_t i = 0; i < c->len && n < ON_CPU_MOST; i++)
		on[n++] = &m->w->task[c->queue[i]];
	return groups_weight(m->w, t, on, n);
}

static void note_contests(struct replay_host *m, const struct core *c, int64_t ran)
{
	for (size_t i = 0; i < c->len; i++)
		contests_add(m->w->contests, m->w->task[c->task].kin, m->w->task[c->queue[i]].kin, ran);
}

static void account(struct replay_host *m, struct core *c)
{
	if (c->task == NOBODY)
		return;
	struct replay_task *t = &m->w->task[c->task];
	const int64_t ran = m->now - t->since;
	t->since = m->now;
	t->left -= ran;
	t->done += ran;
	t->v += ran ? (double)ran / weight_on(m, c) : 0;
	if (m->w->contests && m->now <= m->w->to)
		note_contests(m, c, ran);
	double least = t->v;
	for (size_t i = 0; i < c->len; i++)
		least = m->w->task[c->queue[i]].v < least ? m->w->task[c->queue[i]].v : least;
	c->least = least > c->least ? least : c->least;
}

/* When it is looked next whether somebody else should have the CPU. */
static int64_t turn_ends(const struct replay_host *m, const struct core *c)
{
	const int64_t end = c->slice_start + m->rules->slice, tick = m->rules->tick;
	if (!tick)
		return end > m->now ? end : m->now + GRANULARITY;
	const int64_t from = (end > m->now ? end : m->now + 1) - m->rules->phase;
	return m->rules->phase + (from + tick - 1) / tick * tick;
}

static void plan(struct replay_host *m, struct core *c)
{
	c->due = INT64_MAX;
	if (c->task == NOBODY)
		return;
	const struct replay_task *t = &m->w->task[c->task];
	c->due = m->now + t->left;
	const int64_t turn = turn_ends(m, c);
	if (c->len && turn < c->due)
		c->due = turn;
}

static size_t leftmost(const struct replay_host *m, const struct core *c)
{
	size_t best = 0;
	for (size_t i = 1; i < c->len; i++)
		if (m->w->task[c->queue[i]].v < m->w->task[c->queue[best]].v)
			best = i;
	return best;
}

static void book(struct replay_host *m, struct replay_task *t, int64_t ns)
{
	const double at = (double)(m->now - m->w->from) / ((double)(m->w->to - m->w->from) + 1) * DIFF_SLICES;
	t->waits[at < DIFF_SLICES ? (unsigned)at : DIFF_SLICES - 1] += (double)ns;
}

static void stop_waiting(struct replay_host *m, struct replay_task *t)
{
	const int64_t to = m->now <= m->w->to ? m->now : m->w->to + 1;
	if (to <= t->since)
		return;
	book(m, t, to - t->since);
	t->lengths_again[wait_length(to - t->since)] += (double)(to - t->since);
}

unsigned wait_length(int64_t ns)
{
	const unsigned octave = 63 - (unsigned)__builtin_clzll((uint64_t)ns / 1024 | 1);
	const unsigned n = 2 * octave + (ns / 1024 >> octave > 0 && 2 * (ns / 1024) >= INT64_C(3) << octave);
	return n < WAIT_LENGTHS ? n : WAIT_LENGTHS - 1;
}

double task_waits(const struct replay_task *t)
{
	double ns = 0;
	for (unsigned i = 0; i < DIFF_SLICES; i++)
		ns += t->waits[i];
	return ns;
}

static bool can_run(unsigned state)
{
	return state == QUEUED || state == RUNS;
}

static void set_state(struct replay_host *m, struct replay_task *t, uint8_t state)
{
	if (t->group >= 0 && can_run(state) != can_run(t->state))
		groups_load(m->w, t, can_run(state) ? 1 : -1);
	t->state = state;
}

static void run(struct replay_host *m, struct core *c, size_t task)
{
	struct replay_task *t = &m->w->task[task];
	stop_waiting(m, t);
	set_state(m, t, RUNS);
	t->since = c->slice_start = m->now;
	c->task = task;
	if (t->follow)
		*ARRAY_PUSH(t->again, t->agains, t->again_cap) = (struct run_stretch){ m->now, t->done };
}

static void enqueue(struct replay_host *m, unsigned cpu, size_t task)
{
	struct core *c = &m->core[cpu];
	struct replay_task *t = &m->w->task[task];
	*ARRAY_PUSH(c->queue, c->len, c->cap) = task;
	if (t->cpu != cpu)
		t->v += c->least - m->core[t->cpu].least;
	t->cpu = cpu;
	t->since = t->state == QUEUED ? t->since : m->now;
	set_state(m, t, QUEUED);
}

/* Somebody who waits for another CPU and may use this one. */
static bool pull(struct replay_host *m, unsigned cpu)
{
	for (unsigned i = 0; i < m->w->cpus; i++)
		for (size_t k = 0; i != cpu && k < m->core[i].len; k++) {
			const size_t task = m->core[i].queue[k];
			if (!(m->w->task[task].may >> cpu & 1))
				continue;
			m->core[i].queue[k] = m->core[i].queue[--m->core[i].len];
			enqueue(m, cpu, task);
			return true;
		}
	return false;
}

static void next(struct replay_host *m, unsigned cpu)
{
	struct core *c = &m->core[cpu];
	c->task = NOBODY;
	if (c->len || pull(m, cpu)) {
		const size_t best = leftmost(m, c), task = c->queue[best];
		c->queue[best] = c->queue[--c->len];
		run(m, c, task);
	}
	plan(m, c);
}

/* Somebody else's turn; who had to go is taken by an idle CPU, if it may use one. */
static void requeue(struct replay_host *m, unsigned cpu)
{
	struct core *c = &m->core[cpu];
	const size_t task = c->task;
	enqueue(m, cpu, task);
	next(m, cpu);
	for (unsigned i = 0; i < m->w->cpus && m->w->task[task].state == QUEUED; i++)
		if (m->core[i].task == NOBODY && (m->w->task[task].may >> i & 1))
			next(m, i);
}

static size_t want(const struct core *c)
{
	return c->len + (c->task != NOBODY);
}

/* Of those who wait for the CPU that most want, whoever does so longest goes to the one that fewest want. */
static void balance(struct replay_host *m)
{
	unsigned busiest = 0, idlest = 0;
	for (unsigned i = 1; i < m->w->cpus; i++) {
		busiest = want(&m->core[i]) > want(&m->core[busiest]) ? i : busiest;
		idlest = want(&m->core[i]) < want(&m->core[idlest]) ? i : idlest;
	}
	struct core *from = &m->core[busiest], *to = &m->core[idlest];
	size_t best = from->len;
	for (size_t k = 0; k < from->len && busiest != idlest; k++)
		if ((m->w->task[from->queue[k]].may >> idlest & 1) &&
		    (best == from->len || m->w->task[from->queue[k]].since < m->w->task[from->queue[best]].since))
			best = k;
	if (best == from->len)
		return;
	const size_t task = from->queue[best];
	account(m, from);
	account(m, to);
	from->queue[best] = from->queue[--from->len];
	enqueue(m, idlest, task);
	plan(m, from);
	if (to->task == NOBODY)
		next(m, idlest);
	else
		plan(m, to);
}

/* ---- Tasks */

static unsigned place(const struct replay_host *m, const struct replay_task *t)
{
	unsigned best = 64;
	if ((t->may >> t->cpu & 1) && m->core[t->cpu].task == NOBODY)
		return t->cpu;
	for (unsigned i = 0; i < m->w->cpus; i++) {
		if (!(t->may >> i & 1))
			continue;
		if (m->core[i].task == NOBODY)
			return i;
		if (best == 64 || m->core[i].len < m->core[best].len)
			best = i;
	}
	return t->may >> t->cpu & 1 ? t->cpu : best;
}

static void wake(struct replay_host *m, size_t task)
{
	struct replay_task *t = &m->w->task[task];
	const unsigned cpu = place(m, t);
	struct core *c = &m->core[cpu];
	account(m, c);
	enqueue(m, cpu, task);
	if (t->v < c->least - (double)m->rules->credit)
		t->v = c->least - (double)m->rules->credit;
	if (c->task == NOBODY && m->now <= m->w->to)
		book(m, t, m->w->dispatch);
	if (c->task == NOBODY)
		next(m, cpu);
	else if (t->v + GRANULARITY < m->w->task[c->task].v)
		requeue(m, cpu);
	else
		plan(m, c);
}

/* The next burst of a task that is neither queued nor runs; its sleep comes first.  True: it is runnable at once. */
static bool sleep_or_end(struct replay_host *m, size_t task)
{
	struct replay_task *t = &m->w->task[task];
	while (t->left <= 0) {
		if (t->at + 1 >= t->bursts) {
			set_state(m, t, ENDED);
			return false;
		}
		const struct replay_burst *b = &t->burst[t->at++];
		t->left = t->burst[t->at].work;
		const bool skip = b->quota && t->unlimited;
		int64_t until = skip ? m->now : m->rules->open && b->wake > m->now ? b->wake : m->now;
		if (!skip && (!m->rules->open || b->quota || (b->within && !m->rules->by_clock)))
			until = m->now + b->sleep;
		if (until > m->now) {
			set_state(m, t, ASLEEP);
			heap_push(m, until, task);
			return false;
		}
	}
	return true;
}

static void cpu_event(struct replay_host *m, unsigned cpu)
{
	struct core *c = &m->core[cpu];
	const size_t task = c->task;
	account(m, c);
	if (m->w->task[task].left > 0) {
		if (c->len && m->w->task[c->queue[leftmost(m, c)]].v < m->w->task[task].v) {
			requeue(m, cpu);
		} else {
			c->slice_start = m->rules->tick ? c->slice_start : m->now;
			plan(m, c);
		}
		return;
	}
	c->task = NOBODY;
	const bool again = sleep_or_end(m, task);
	if (again)
		enqueue(m, cpu, task);
	next(m, cpu);
}

static void begin(struct replay_host *m)
{
	for (size_t i = 0; i < m->w->groups; i++)
		m->w->group[i].wants_cpu = 0;
	for (size_t i = 0; i < m->w->tasks; i++) {
		struct replay_task *t = &m->w->task[i];
		t->agains = t->at = 0;
		t->done = 0;
		memset(t->waits, 0, sizeof t->waits);
		memset(t->lengths_again, 0, sizeof t->lengths_again);
		t->v = 0;
		t->cpu = t->may >> t->first & 1 ? t->first : (unsigned)__builtin_ctzll(t->may);
		t->left = t->burst[0].work;
		t->since = m->now;
		t->state = ASLEEP;
		if (t->gone)
			t->state = ENDED;
		else if (sleep_or_end(m, i))
			heap_push(m, m->now, i);
	}
}

void replay_run(struct wants *w, const struct rules *rules)
{
	struct replay_host *m = mem_new(1, sizeof *m);
	*m = (struct replay_host){ .w = w, .rules = rules, .now = w->from, .end = w->to + (w->to - w->from) };
	for (unsigned i = 0; i < 64; i++) {
		m->core[i].task = NOBODY;
		m->core[i].due = INT64_MAX;
	}
	begin(m);
	int64_t balances = rules->balance ? w->from + rules->balance : INT64_MAX;
	for (;;) {
		unsigned first = 0;
		for (unsigned i = 1; i < w->cpus; i++)
			if (m->core[i].due < m->core[first].due)
				first = i;
		const int64_t wakes = m->len ? m->heap[0].at : INT64_MAX, due = m->core[first].due;
		if (wakes == INT64_MAX && due == INT64_MAX)
			break;
		m->now = wakes < due ? wakes : due;
		m->now = m->now < balances ? m->now : balances;
		if (m->now > m->end)
			break;
		if (balances <= m->now) {
			balance(m);
			balances += rules->balance;
		} else if (due <= wakes)
			cpu_event(m, first);
		else
			wake(m, heap_pop(m));
	}
	for (size_t i = 0; i < w->tasks; i++)
		if (w->task[i].state == QUEUED)
			stop_waiting(m, &w->task[i]);
	for (unsigned i = 0; i < 64; i++)
		free(m->core[i].queue);
	free(m->heap);
	free(m);
}
