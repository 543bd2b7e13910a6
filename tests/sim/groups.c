/* Control groups of a host, with quotas: of threads, nested, and of VMs, on busy CPUs, and the facts about them that `record`
 * stores.
 *
 * A quota counts the time of all threads in its group and in the groups below. When it is used up, the threads are
 * throttled until the next period, whoever has their CPUs. truth/throttled.csv has these intervals; session.yaml has the
 * groups with the counters of cpu.stat. Records "stealscope throttled TID 1" and "... 0" show the begin and the end
 * (--quota-facts switches), "stealscope group N NS" the counters (--quota-facts stat). In half of the worlds threads move to
 * other groups, also to one that was created during the recording and perhaps removed again; records "cgroup_attach_task"
 * and truth/moves.csv have the moves.
 *
 * With --quota-facts queue the kernel is older than Linux 6.18: it throttles a group on one CPU, when a thread of the group
 * leaves that CPU and wants to run. Only this thread has records. Others that wait there, or are woken there, are throttled,
 * too; on other CPUs the group runs until a thread of it leaves them. */
#include <inttypes.h>
#include <string.h>

#include "groups.h"
#include "scenario.h"
#include "truth.h"

static bool is_by_queue(const struct sim *s)
{
	return s->opt.quota_facts == QUOTA_QUEUE;
}

/* Returns true if a quota keeps a waiting thread off now. */
static bool is_limited(const struct thread *t)
{
	for (const struct quota_group *g = t->group; g; g = g->parent)
		if (is_by_queue(t->m->sim) ? g->cpu_since[t->cpu] != 0 : g->throttled)
			return true;
	return false;
}

bool group_charge(struct quota_group *g, int64_t ns)
{
	bool used_up = false;

	for (; g; g = g->parent) {
		g->used += ns;
		if (!g->quota || g->used < g->quota || g->throttled)
			continue;
		g->throttled = used_up = true;
		g->throttled_periods++;
	}
	return used_up;
}

static bool is_below(const struct quota_group *g, const struct quota_group *above)
{
	while (g && g != above)
		g = g->parent;
	return g != NULL;
}

bool group_keeps_off(const struct thread *t)
{
	const struct thread *cur = t->m->cpu[t->cpu].cur;

	if (t->state != TASK_RUNNING && is_limited(t))
		return true;
	for (const struct quota_group *g = t->group; g; g = g->parent)
		if (g->throttled && (t->state == TASK_RUNNING || (cur->want == WANT_RUN && is_below(cur->group, g))))
			return true;
	return false;
}

/* Calls fn for the host's threads in a group and below it. */
static void each_member(struct cpu *c, const struct quota_group *g, void (*fn)(struct cpu *c, struct thread *t))
{
	struct machine *host = c->m->sim->machine[0];

	for (int32_t i = 0; i < TIDS; i++)
		if (host->by_tid[i] && host->by_tid[i]->group && is_below(host->by_tid[i]->group, g))
			fn(c, host->by_tid[i]);
}

/* Writes that a thread is throttled, and that it is so no more, if the recorder sees it. */
static void write_fact(struct cpu *c, struct thread *t, bool on)
{
	char text[48];

	if (on)
		t->limit_shown = c->m->sim->opt.quota_facts == QUOTA_SWITCHES || (is_by_queue(c->m->sim) && t->state == TASK_RUNNING);
	if (!t->limit_shown)
		return;
	snprintf(text, sizeof text, "stealscope throttled %" PRId32 " %d", t->tid, on);
	RECORD(c, REC_LOG, S(text));
}

/* Counts the time for which the groups of a waiting thread are throttled on its CPU. */
static void count_throttled(const struct thread *t)
{
	for (struct quota_group *g = t->group; g && !is_by_queue(t->m->sim); g = g->parent)
		if (g->throttled && !g->cpu_since[t->cpu])
			g->cpu_since[t->cpu] = t->m->sim->now;
}

void group_limit(struct cpu *c, struct thread *t)
{
	if (!c->m->sim->groups_recorded || t->limited_since || !is_limited(t))
		return;
	t->limited_since = c->m->sim->now;
	count_throttled(t);
	write_fact(c, t, true);
}

static void limit_queued(struct cpu *c, struct thread *t)
{
	if (t->state != TASK_RUNNABLE)
		return;
	group_limit(c, t);
	truth_thread(t);
}

static void unlimit(struct cpu *c, struct thread *t)
{
	struct sim *s = c->m->sim;

	if (!t->limited_since || is_limited(t))
		return;
	if (s->truth && s->truth->throttled && t->limited_since < s->now)
		fprintf(s->truth->throttled, "%" PRId32 ",%" PRId64 ",%" PRId64 "\n", t->tid, t->limited_since, s->now - 1);
	t->limited_since = 0;
	truth_thread(t);
	write_fact(c, t, false);
}

void group_throttled(struct cpu *c, struct quota_group *g)
{
	for (; g && !is_by_queue(c->m->sim); g = g->parent)
		if (g->throttled)
			each_member(c, g, limit_queued);
}

void group_throttle_queue(struct cpu *c, const struct thread *t)
{
	for (struct quota_group *g = t->group; g && is_by_queue(c->m->sim); g = g->parent)
		if (g->throttled && !g->cpu_since[c->number])
			g->cpu_since[c->number] = c->m->sim->now;
}

void group_limit_queue(struct cpu *c, const struct thread *t)
{
	for (struct quota_group *g = t->group; g && is_by_queue(c->m->sim); g = g->parent)
		if (g->cpu_since[c->number])
			each_member(c, g, limit_queued);
}

void group_requeued(struct cpu *c, struct thread *t)
{
	unlimit(c, t);
	limit_queued(c, t);
}

void group_unthrottled(struct cpu *c, struct quota_group *g)
{
	for (unsigned i = 0; i < CPUS_MAX; i++) {
		g->throttled_ns += g->cpu_since[i] ? c->m->sim->now - g->cpu_since[i] : 0;
		g->cpu_since[i] = 0;
	}
	g->periods++;
	each_member(c, g, unlimit);
}

void groups_sample(struct sim *s)
{
	struct cpu *c = &s->machine[0]->cpu[0];

	for (unsigned i = 0; i < s->groups; i++) {
		char text[64];

		snprintf(text, sizeof text, "stealscope group %u %" PRId64, i, s->group[i].throttled_ns);
		if (s->group[i].quota && !s->group[i].is_late)
			RECORD(c, REC_LOG, S(text));
	}
	queue_push(&s->queue, s->now + (s->sample_period ? s->sample_period : 100 * MS), DUE_SAMPLE, NULL, 0);
}

/* Returns a random thread of the host that has a group, or had one; NULL: there is none. */
static struct thread *random_member(struct sim *s)
{
	struct machine *host = s->machine[0];
	struct thread *found = NULL;
	int64_t n = 0;

	for (int32_t tid = 0; tid < TIDS; tid++)
		if (host->by_tid[tid] && (host->by_tid[tid]->group || host->by_tid[tid]->moved) && rng_range(&s->rng, 0, n++) == 0)
			found = host->by_tid[tid];
	return found;
}

void groups_move_thread(struct sim *s)
{
	struct cpu *c = &s->machine[0]->cpu[0];
	struct thread *t = random_member(s);
	const int64_t to = rng_range(&s->rng, -1, (int64_t)s->groups - 1);
	struct quota_group *g = to < 0 ? NULL : &s->group[to];

	queue_push(&s->queue, s->now + s->move_period, DUE_REGROUP, NULL, 0);
	if (!t || t->group == g)
		return;
	if (!t->moved)
		t->first_group = t->group;
	t->moved = true;
	RECORD(c, REC_GROUP_MOVE, N(0), N(1), N(t->tid), S(g ? g->path : "/"), S(thread_name(t)));
	if (s->truth && s->truth->moves)
		fprintf(s->truth->moves, "%" PRId32 ",%" PRId64 ",%s\n", t->tid, s->now, g ? g->path : "/");
	sched_regroup(t, g);
	group_requeued(c, t);
	if (t->limited_since)
		count_throttled(t);
}

static void write_group(FILE *f, const struct sim *s, unsigned i)
{
	const struct quota_group *g = &s->group[i];
	const struct machine *host = s->machine[0];
	bool any = false;

	fprintf(f, "  - path: %s\n    name: %s\n", g->path, strrchr(g->path, '/') + 1);
	if (g->quota)
		fprintf(f, "    quota_ns: %" PRId64 "\n    period_ns: %" PRId64 "\n", g->quota, g->period);
	if (g->quota && !g->is_late)
		fprintf(f, "    before: {periods: 0, throttled: 0, throttled_ns: 0}\n    after: {periods: %" PRId64 ", throttled: %" PRId64
		        ", throttled_ns: %" PRId64 "}\n", g->periods, g->throttled_periods, g->throttled_ns);
	for (int32_t tid = 0; tid < TIDS; tid++)
		if (host->by_tid[tid] && (host->by_tid[tid]->moved ? host->by_tid[tid]->first_group : host->by_tid[tid]->group) == g) {
			fprintf(f, "%s%" PRId32, any ? " " : "    threads: ", tid);
			any = true;
		}
	if (any)
		fprintf(f, "\n");
}

void groups_write(FILE *f, const struct sim *s)
{
	fprintf(f, "%s  control_groups:\n", s->opt.quota_facts == QUOTA_SWITCHES || is_by_queue(s) ? "  throttled: events\n" : "");
	for (unsigned i = 0; i < s->groups; i++)
		if (!s->group[i].is_gone)
			write_group(f, s, i);
}

void groups_end(struct sim *s)
{
	const struct machine *host = s->machine[0];

	for (int32_t tid = 0; tid < TIDS && s->truth && s->truth->throttled; tid++)
		if (host->by_tid[tid] && host->by_tid[tid]->limited_since && host->by_tid[tid]->limited_since <= s->last_record)
			fprintf(s->truth->throttled, "%" PRId32 ",%" PRId64 ",%" PRId64 "\n", tid, host->by_tid[tid]->limited_since,
			        s->last_record);
}

/* ---- the scenario */

static struct quota_group *group_add(struct sim *s, struct quota_group *parent, unsigned number)
{
	static const char *const kind[] = { "service", "scope", "slice" };
	struct quota_group *g = &s->group[s->groups];
	const int64_t period = rng_range(&s->rng, 10, 50) * MS;

	if (rng_chance(&s->rng, 650000)) {
		const int64_t phase = rng_range(&s->rng, 1, 50) * MS;

		g = quota_add(s, period * rng_range(&s->rng, 5, 80) / 100, period, phase);
	} else {
		s->groups++;
	}
	g->parent = parent;
	snprintf(g->path, sizeof g->path, "%.60s/g%u.%s", parent ? parent->path : "", number, kind[number % 3]);
	return g;
}

static void add_threads(struct sim *s, struct machine *h, struct quota_group *g)
{
	static const struct { const char *name; uint8_t wl; } kinds[] = {
		{ "cc", WL_HOG }, { "java", WL_BURST_HOG }, { "nginx", WL_SLEEPER }, { "audio", WL_PERIODIC } };

	for (int64_t n = rng_range(&s->rng, 1, 3); n > 0; n--) {
		const int64_t k = rng_range(&s->rng, 0, 3);
		const uint64_t one = UINT64_C(1) << rng_range(&s->rng, 0, (int64_t)h->cpus - 1);
		const uint64_t affinity = rng_chance(&s->rng, 600000) ? one : UINT64_MAX;

		thread_add(h, kinds[k].name, workload[kinds[k].wl], s->begin + rng_range(&s->rng, 1 * MS, 20 * MS), affinity)->group = g;
	}
}

int scenario_groups(struct sim *s)
{
	const unsigned cpus = (unsigned)rng_range(&s->rng, 1, 4);
	struct machine *h = host_add(s, cpus);
	const int64_t n = rng_range(&s->rng, 2, 4);

	s->groups_recorded = true;
	for (unsigned i = 0; i < h->cpus; i++)
		if (rng_chance(&s->rng, 800000))
			thread_add(h, "burnP6", workload[WL_HOG], s->begin + rng_range(&s->rng, 1 * MS, 10 * MS), UINT64_C(1) << i);
	for (int64_t i = 0; i < n; i++) {
		struct quota_group *g = group_add(s, NULL, s->groups);

		add_threads(s, h, g);
		for (int64_t k = rng_range(&s->rng, 0, 2); k > 0; k--)
			add_threads(s, h, group_add(s, g, s->groups));
	}
	s->sample_period = rng_range(&s->rng, 20, 100) * MS;
	if (rng_chance(&s->rng, 500000)) {
		struct quota_group *g = group_add(s, NULL, s->groups);

		g->is_late = true;
		g->is_gone = rng_chance(&s->rng, 500000);
		s->move_period = rng_range(&s->rng, 15, 60) * MS;
		queue_push(&s->queue, s->begin + s->move_period, DUE_REGROUP, NULL, 0);
	}
	return 0;
}
