/* Model of the host's scheduler.
 *
 * Rules:
 * - Each CPU runs the runnable task with the least weighted run time (virtual run time), for at least a slice while
 *   others wait.
 * - A waking task's virtual run time is raised to the minimum of its CPU minus `credit`. It preempts the running task if
 *   its virtual run time is lower by GRANULARITY.
 * - If slices of the recording ended at ticks, a CPU reschedules at ticks only.
 * - A waking task uses its previous CPU if that is idle, otherwise any idle CPU that it may use, otherwise it waits on
 *   the previous CPU.
 * - A CPU that becomes idle pulls a waiting task. Periodically a waiting task moves from the busiest CPU to the least
 *   busy one.
 *
 * Slice, credit and the period of moves are calibrated on the recording (calibrate.c). Groups with known weights set the
 * weights of their tasks (cgroup_weights.h).
 *
 * Not modelled: SCHED_IDLE (no event shows it), real-time classes, groups of unknown weight, caches, the cost of
 * switching (part of the work; the dispatch latency of an idle CPU is a constant of the recording), and interrupts
 * (attributed to the interrupted task). */
#include "compare/whatif/scheduler_replay.h"

#include "base/base.h"

#define GRANULARITY 1000000
#define ON_CPU_MAX 256  /* most runnable tasks of a CPU that are considered for group weights */

enum { SLEEPING, QUEUED, RUNNING, ENDED };

struct sleeper { int64_t wake_time; size_t task; };

struct core {
	size_t *queue, len, cap;
	size_t task;             /* the running task's index; NO_TASK: idle */
	int64_t slice_start, due;
	double min_vruntime;     /* minimum virtual run time of the CPU; never decreases */
};
#define NO_TASK SIZE_MAX

struct replay_host {
	struct host_demand *w;
	const struct sched_params *params;
	struct core core[64];
	struct sleeper *heap;
	size_t len, cap;
	int64_t now, end;
};

/* ---- Sleepers, the first to wake on top; equals in the tasks' order */

static bool wakes_before(const struct sleeper *a, const struct sleeper *b)
{
	return a->wake_time != b->wake_time ? a->wake_time < b->wake_time : a->task < b->task;
}

static void heap_push(struct replay_host *m, int64_t at, size_t task)
{
	struct sleeper s = { at, task };
	(void)ARRAY_PUSH(m->heap, m->len, m->cap);
	size_t i = m->len - 1;
	for (; i && wakes_before(&s, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
		m->heap[i] = m->heap[(i - 1) / 2];
	m->heap[i] = s;
}

static size_t heap_pop(struct replay_host *m)
{
	const size_t top = m->heap[0].task;
	const struct sleeper s = m->heap[--m->len];
	size_t i = 0;
	for (size_t k; (k = 2 * i + 1) < m->len; i = k) {
		if (k + 1 < m->len && wakes_before(&m->heap[k + 1], &m->heap[k]))
			k++;
		if (!wakes_before(&m->heap[k], &s))
			break;
		m->heap[i] = m->heap[k];
	}
	if (m->len)
		m->heap[i] = s;
	return top;
}

/* ---- CPUs */

/* Weight of the CPU's running task among its runnable tasks. */
static double running_weight(const struct replay_host *m, const struct core *c)
{
	const struct replay_task *t = &m->w->task[c->task], *on[ON_CPU_MAX] = { t };
	size_t n = 1;
	if (!m->w->groups)
		return t->weight;
	for (size_t i = 0; i < c->len && n < ON_CPU_MAX; i++)
		on[n++] = &m->w->task[c->queue[i]];
	return groups_weight(m->w, t, on, n);
}

static void record_wait_edges(struct replay_host *m, const struct core *c, int64_t ran)
{
	for (size_t i = 0; i < c->len; i++)
		wait_graph_add(m->w->waits_for, m->w->task[c->task].name_group, m->w->task[c->queue[i]].name_group, ran);
}

static void account_runtime(struct replay_host *m, struct core *c)
{
	if (c->task == NO_TASK)
		return;
	struct replay_task *t = &m->w->task[c->task];
	const int64_t ran = m->now - t->since;
	t->since = m->now;
	t->remaining -= ran;
	t->work_done += ran;
	t->vruntime += ran ? (double)ran / running_weight(m, c) : 0;
	if (m->w->waits_for && m->now <= m->w->to)
		record_wait_edges(m, c, ran);
	double min = t->vruntime;
	for (size_t i = 0; i < c->len; i++)
		min = m->w->task[c->queue[i]].vruntime < min ? m->w->task[c->queue[i]].vruntime : min;
	c->min_vruntime = min > c->min_vruntime ? min : c->min_vruntime;
}

/* Returns the earliest time at which the running task may be preempted by a waiting one. */
static int64_t slice_ends(const struct replay_host *m, const struct core *c)
{
	const int64_t end = c->slice_start + m->params->slice, tick = m->params->tick;
	if (!tick)
		return end > m->now ? end : m->now + GRANULARITY;
	const int64_t from = (end > m->now ? end : m->now + 1) - m->params->phase;
	return m->params->phase + (from + tick - 1) / tick * tick;
}

static void update_due_time(struct replay_host *m, struct core *c)
{
	c->due = INT64_MAX;
	if (c->task == NO_TASK)
		return;
	const struct replay_task *t = &m->w->task[c->task];
	c->due = m->now + t->remaining;
	const int64_t slice = slice_ends(m, c);
	if (c->len && slice < c->due)
		c->due = slice;
}

static size_t leftmost_task(const struct replay_host *m, const struct core *c)
{
	size_t best = 0;
	for (size_t i = 1; i < c->len; i++)
		if (m->w->task[c->queue[i]].vruntime < m->w->task[c->queue[best]].vruntime)
			best = i;
	return best;
}

static void account_wait(struct replay_host *m, struct replay_task *t, int64_t ns)
{
	const double at = (double)(m->now - m->w->from) / ((double)(m->w->to - m->w->from) + 1) * DIFF_SLICES;
	t->replayed_waits[at < DIFF_SLICES ? (unsigned)at : DIFF_SLICES - 1] += (double)ns;
}

static void end_wait(struct replay_host *m, struct replay_task *t)
{
	const int64_t to = m->now <= m->w->to ? m->now : m->w->to + 1;
	if (to <= t->since)
		return;
	account_wait(m, t, to - t->since);
	t->replayed_by_length[wait_length(to - t->since)] += (double)(to - t->since);
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
		ns += t->replayed_waits[i];
	return ns;
}

static bool is_runnable(unsigned state)
{
	return state == QUEUED || state == RUNNING;
}

static void set_state(struct replay_host *m, struct replay_task *t, uint8_t state)
{
	if (t->group >= 0 && is_runnable(state) != is_runnable(t->state))
		groups_update_load(m->w, t, is_runnable(state) ? 1 : -1);
	t->state = state;
}

static void run_task(struct replay_host *m, struct core *c, size_t task)
{
	struct replay_task *t = &m->w->task[task];
	end_wait(m, t);
	set_state(m, t, RUNNING);
	t->since = c->slice_start = m->now;
	c->task = task;
	if (t->is_vcpu)
		*ARRAY_PUSH(t->replayed, t->n_replayed, t->replayed_cap) = (struct run_interval){ m->now, t->work_done };
}

static void enqueue_task(struct replay_host *m, unsigned cpu, size_t task)
{
	struct core *c = &m->core[cpu];
	struct replay_task *t = &m->w->task[task];
	*ARRAY_PUSH(c->queue, c->len, c->cap) = task;
	if (t->cpu != cpu)
		t->vruntime += c->min_vruntime - m->core[t->cpu].min_vruntime;
	t->cpu = cpu;
	t->since = t->state == QUEUED ? t->since : m->now;
	set_state(m, t, QUEUED);
}

/* Moves a task that waits on another CPU to this one. Returns false if no waiting task may use it. */
static bool pull_task(struct replay_host *m, unsigned cpu)
{
	for (unsigned i = 0; i < m->w->cpus; i++)
		for (size_t k = 0; i != cpu && k < m->core[i].len; k++) {
			const size_t task = m->core[i].queue[k];
			if (!(m->w->task[task].allowed_cpus >> cpu & 1))
				continue;
			m->core[i].queue[k] = m->core[i].queue[--m->core[i].len];
			enqueue_task(m, cpu, task);
			return true;
		}
	return false;
}

static void run_next_task(struct replay_host *m, unsigned cpu)
{
	struct core *c = &m->core[cpu];
	c->task = NO_TASK;
	if (c->len || pull_task(m, cpu)) {
		const size_t best = leftmost_task(m, c), task = c->queue[best];
		c->queue[best] = c->queue[--c->len];
		run_task(m, c, task);
	}
	update_due_time(m, c);
}

/* Preempts the running task, and runs it on an idle CPU if one is allowed. */
static void requeue_current(struct replay_host *m, unsigned cpu)
{
	struct core *c = &m->core[cpu];
	const size_t task = c->task;
	enqueue_task(m, cpu, task);
	run_next_task(m, cpu);
	for (unsigned i = 0; i < m->w->cpus && m->w->task[task].state == QUEUED; i++)
		if (m->core[i].task == NO_TASK && (m->w->task[task].allowed_cpus >> i & 1))
			run_next_task(m, i);
}

static size_t count_runnable(const struct core *c)
{
	return c->len + (c->task != NO_TASK);
}

/* Moves the task with the longest wait from the CPU with most runnable tasks to the CPU with fewest. */
static void balance_cpus(struct replay_host *m)
{
	unsigned busiest = 0, idlest = 0;
	for (unsigned i = 1; i < m->w->cpus; i++) {
		busiest = count_runnable(&m->core[i]) > count_runnable(&m->core[busiest]) ? i : busiest;
		idlest = count_runnable(&m->core[i]) < count_runnable(&m->core[idlest]) ? i : idlest;
	}
	struct core *from = &m->core[busiest], *to = &m->core[idlest];
	size_t best = from->len;
	for (size_t k = 0; k < from->len && busiest != idlest; k++)
		if ((m->w->task[from->queue[k]].allowed_cpus >> idlest & 1) &&
		    (best == from->len || m->w->task[from->queue[k]].since < m->w->task[from->queue[best]].since))
			best = k;
	if (best == from->len)
		return;
	const size_t task = from->queue[best];
	account_runtime(m, from);
	account_runtime(m, to);
	from->queue[best] = from->queue[--from->len];
	enqueue_task(m, idlest, task);
	update_due_time(m, from);
	if (to->task == NO_TASK)
		run_next_task(m, idlest);
	else
		update_due_time(m, to);
}

/* ---- Tasks */

static unsigned choose_cpu(const struct replay_host *m, const struct replay_task *t)
{
	unsigned best = 64;
	if ((t->allowed_cpus >> t->cpu & 1) && m->core[t->cpu].task == NO_TASK)
		return t->cpu;
	for (unsigned i = 0; i < m->w->cpus; i++) {
		if (!(t->allowed_cpus >> i & 1))
			continue;
		if (m->core[i].task == NO_TASK)
			return i;
		if (best == 64 || m->core[i].len < m->core[best].len)
			best = i;
	}
	return t->allowed_cpus >> t->cpu & 1 ? t->cpu : best;
}

static void wake_task(struct replay_host *m, size_t task)
{
	struct replay_task *t = &m->w->task[task];
	const unsigned cpu = choose_cpu(m, t);
	struct core *c = &m->core[cpu];
	account_runtime(m, c);
	enqueue_task(m, cpu, task);
	if (t->vruntime < c->min_vruntime - (double)m->params->credit)
		t->vruntime = c->min_vruntime - (double)m->params->credit;
	if (c->task == NO_TASK && m->now <= m->w->to)
		account_wait(m, t, m->w->dispatch);
	if (c->task == NO_TASK)
		run_next_task(m, cpu);
	else if (t->vruntime + GRANULARITY < m->w->task[c->task].vruntime)
		requeue_current(m, cpu);
	else
		update_due_time(m, c);
}

/* Starts the next burst of a task that is neither queued nor running, after its sleep. Returns true if the task is
 * runnable immediately. */
static bool sleep_or_end(struct replay_host *m, size_t task)
{
	struct replay_task *t = &m->w->task[task];
	while (t->remaining <= 0) {
		if (t->burst_index + 1 >= t->bursts) {
			set_state(m, t, ENDED);
			return false;
		}
		const struct replay_burst *b = &t->burst[t->burst_index++];
		t->remaining = t->burst[t->burst_index].work;
		const bool skip = b->throttled && t->quota_lifted;
		int64_t until = skip ? m->now : m->params->open && b->wake > m->now ? b->wake : m->now;
		if (!skip && (!m->params->open || b->throttled || (b->in_request && !m->params->by_clock)))
			until = m->now + b->sleep;
		if (until > m->now) {
			set_state(m, t, SLEEPING);
			heap_push(m, until, task);
			return false;
		}
	}
	return true;
}

static void handle_cpu_event(struct replay_host *m, unsigned cpu)
{
	struct core *c = &m->core[cpu];
	const size_t task = c->task;
	account_runtime(m, c);
	if (m->w->task[task].remaining > 0) {
		if (c->len && m->w->task[c->queue[leftmost_task(m, c)]].vruntime < m->w->task[task].vruntime) {
			requeue_current(m, cpu);
		} else {
			c->slice_start = m->params->tick ? c->slice_start : m->now;
			update_due_time(m, c);
		}
		return;
	}
	c->task = NO_TASK;
	const bool continues = sleep_or_end(m, task);
	if (continues)
		enqueue_task(m, cpu, task);
	run_next_task(m, cpu);
}

static void init_replay(struct replay_host *m)
{
	for (size_t i = 0; i < m->w->groups; i++)
		m->w->group[i].runnable_weight = 0;
	for (size_t i = 0; i < m->w->tasks; i++) {
		struct replay_task *t = &m->w->task[i];
		t->n_replayed = t->burst_index = 0;
		t->work_done = 0;
		memset(t->replayed_waits, 0, sizeof t->replayed_waits);
		memset(t->replayed_by_length, 0, sizeof t->replayed_by_length);
		t->vruntime = 0;
		t->cpu = t->allowed_cpus >> t->first_cpu & 1 ? t->first_cpu : (unsigned)__builtin_ctzll(t->allowed_cpus);
		t->remaining = t->burst[0].work;
		t->since = m->now;
		t->state = SLEEPING;
		if (t->removed)
			t->state = ENDED;
		else if (sleep_or_end(m, i))
			heap_push(m, m->now, i);
	}
}

void replay_run(struct host_demand *d, const struct sched_params *params)
{
	struct replay_host *m = mem_new(1, sizeof *m);
	*m = (struct replay_host){ .w = d, .params = params, .now = d->from, .end = d->to + (d->to - d->from) };
	for (unsigned i = 0; i < 64; i++) {
		m->core[i].task = NO_TASK;
		m->core[i].due = INT64_MAX;
	}
	init_replay(m);
	int64_t next_balance = params->balance ? d->from + params->balance : INT64_MAX;
	for (;;) {
		unsigned first = 0;
		for (unsigned i = 1; i < d->cpus; i++)
			if (m->core[i].due < m->core[first].due)
				first = i;
		const int64_t wakes = m->len ? m->heap[0].wake_time : INT64_MAX, due = m->core[first].due;
		if (wakes == INT64_MAX && due == INT64_MAX)
			break;
		m->now = wakes < due ? wakes : due;
		m->now = m->now < next_balance ? m->now : next_balance;
		if (m->now > m->end)
			break;
		if (next_balance <= m->now) {
			balance_cpus(m);
			next_balance += params->balance;
		} else if (due <= wakes)
			handle_cpu_event(m, first);
		else
			wake_task(m, heap_pop(m));
	}
	for (size_t i = 0; i < d->tasks; i++)
		if (d->task[i].state == QUEUED)
			end_wait(m, &d->task[i]);
	for (unsigned i = 0; i < 64; i++)
		free(m->core[i].queue);
	free(m->heap);
	free(m);
}
