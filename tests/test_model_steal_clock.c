/* Steal clocks: random worlds of guests alone against their truth. */
#include <stdlib.h>

#include "base/mem.h"
#include "model/inference/steal_clock.h"
#include "test.h"

#define MS INT64_C(1000000)
#define CPUS 2

enum world_kind { WORLD_QUIET, WORLD_QUOTA, WORLD_NEIGHBOUR, WORLD_RANDOM, WORLD_PAUSE, WORLD_KINDS };

struct world {
	struct event *ev;
	size_t len, cap;
	int64_t stolen[CPUS], t[CPUS], paused;
	int64_t read_at[CPUS];       /* counter at the last read; -1: none */
	int64_t readable;            /* sum of the increases between reads, ns */
	uint64_t seed;
};

static uint64_t next_random(struct world *w, uint64_t n)
{
	w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
	return (w->seed >> 33) % n;
}

static struct event *put(struct world *w, int cpu, enum event_kind kind)
{
	struct event *ev = ARRAY_PUSH(w->ev, w->len, w->cap);
	*ev = (struct event){ .ts = w->t[cpu], .kind = (uint16_t)kind, .cpu = (uint16_t)cpu, .tid = -1, .pid = -1 };
	for (size_t i = 0; i < COUNT(ev->arg); i++)
		ev->arg[i] = EVENT_ABSENT;
	return ev;
}

static void put_read(struct world *w, int cpu)
{
	struct event *ev = put(w, cpu, EV_STEAL);
	ev->steal.ns = w->stolen[cpu];
	ev->steal.own = 1;
	if (w->read_at[cpu] >= 0)
		w->readable += w->stolen[cpu] - w->read_at[cpu];
	w->read_at[cpu] = w->stolen[cpu];
}

/* Runs the vCPU for `ns`: a timer each ms with a read, of which some are missing. */
static void run_cpu(struct world *w, int cpu, int64_t ns, bool misses_reads)
{
	const int64_t until = w->t[cpu] + ns;
	while (w->t[cpu] < until) {
		struct event *ev = put(w, cpu, EV_TIMER_ENTRY);
		ev->timer.now = w->t[cpu] - w->paused - (int64_t)next_random(w, 2000) + 1000 * MS;
		w->t[cpu] += 1000;
		if (!misses_reads || next_random(w, 4))
			put_read(w, cpu);
		w->t[cpu] += until - w->t[cpu] < MS ? until - w->t[cpu] + 1 : MS - 1000;
	}
}

static void take_cpu(struct world *w, int cpu, int64_t ns)
{
	w->t[cpu] += ns;
	w->stolen[cpu] += ns;
}

static void make_world(struct world *w, enum world_kind kind, int cpu)
{
	w->t[cpu] = 5000 * MS + cpu;
	w->read_at[cpu] = -1;
	run_cpu(w, cpu, 100 * MS, false);
	for (int i = 0; i < 30; i++) {
		const int64_t period = 5100 * MS + (int64_t)i * 100 * MS;
		switch (kind) {
		case WORLD_QUOTA:
			run_cpu(w, cpu, (40 + (int64_t)next_random(w, 8)) * MS, false);
			take_cpu(w, cpu, period + 100 * MS - w->t[cpu]);
			break;
		case WORLD_NEIGHBOUR:
			run_cpu(w, cpu, (int64_t)(1 + next_random(w, 4)) * 4 * MS, false);
			take_cpu(w, cpu, (int64_t)(1 + next_random(w, 3)) * 4 * MS);
			break;
		case WORLD_RANDOM:
			run_cpu(w, cpu, (int64_t)next_random(w, 30 * MS), true);
			take_cpu(w, cpu, (int64_t)next_random(w, 30 * MS));
			break;
		case WORLD_PAUSE:
			run_cpu(w, cpu, 50 * MS, false);
			if (i == 15) {
				w->t[cpu] += 300 * MS;
				w->paused = 300 * MS;
			}
			break;
		default:
			run_cpu(w, cpu, 50 * MS, false);
		}
	}
	run_cpu(w, cpu, 20 * MS, false);
}

static void check_gaps(const struct steal_clock *s, const struct world *w, enum world_kind kind)
{
	int64_t last[CPUS] = { INT64_MIN, INT64_MIN }, by[OUT_REASON_COUNT] = { 0 }, all = 0;
	for (size_t i = 0; i < s->gaps; i++) {
		const struct steal_gap *gap = &s->gap[i];
		assert_true(gap->begin < gap->end && gap->cpu < CPUS && gap->bound >= 0);
		assert_true(gap->begin >= last[gap->cpu]);
		last[gap->cpu] = gap->end;
		by[gap->kind] += gap->end - gap->begin;
		all += gap->end - gap->begin;
	}
	const int64_t placed = all - by[OUT_PROVIDER_PAUSE];
	assert_int_equal(s->stolen, w->readable);
	assert_true(placed <= s->stolen && placed >= s->stolen - s->unplaced - (int64_t)s->gaps * 2000);
	assert_int_equal(by[OUT_PROVIDER_MIGRATION], 0);
	if (kind == WORLD_QUIET || kind == WORLD_PAUSE)
		assert_int_equal(placed, 0);
	if (kind == WORLD_QUOTA)
		assert_true(by[OUT_PROVIDER_QUOTA] * 10 >= placed * 9);
	else
		assert_int_equal(by[OUT_PROVIDER_QUOTA], 0);
	if (kind == WORLD_NEIGHBOUR)  /* by chance, ends may be on the grid of a quota */
		assert_true(by[OUT_PROVIDER_NEIGHBOUR] + by[OUT_PROVIDER] == placed && by[OUT_PROVIDER] * 2 <= placed);
	else if (kind != WORLD_QUOTA)
		assert_int_equal(by[OUT_PROVIDER_NEIGHBOUR], 0);
	if (kind == WORLD_PAUSE)
		assert_true(llabs(by[OUT_PROVIDER_PAUSE] - 300 * MS) <= 2 * MS);
	else
		assert_int_equal(by[OUT_PROVIDER_PAUSE], 0);
}

static void test_worlds(void **state)
{
	static const struct clock_map identity = { 0 };
	(void)state;
	for (uint64_t seed = 1; seed <= 50; seed++)
		for (enum world_kind kind = 0; kind < WORLD_KINDS; kind++) {
			struct world w = { .seed = seed * 977 + kind };
			struct steal_clock s;
			struct error err = ERROR_INIT;
			for (int cpu = 0; cpu < (kind == WORLD_PAUSE ? 1 : CPUS); cpu++)
				make_world(&w, kind, cpu);
			struct trace *trace = trace_from_events("web", ROLE_GUEST, w.ev, w.len, NULL, 0);
			assert_int_equal(steal_clock_read(&s, trace, &identity, &err), 0);
			check_gaps(&s, &w, kind);
			steal_clock_release(&s);
			trace_free(trace);
			free(w.ev);
		}
}

/* The parts of one silence: the increase fits, so the gap ends with it; the rest is the error bound, together with the other
 * silence, which may contain 1 ms of it. */
static void test_placing(void **state)
{
	static const struct clock_map identity = { 0 };
	struct world w = { .read_at = { -1, -1 } };
	struct steal_clock s;
	struct error err = ERROR_INIT;
	(void)state;
	w.t[0] = 100 * MS;
	put_read(&w, 0);
	w.t[0] += 12 * MS;
	put(&w, 0, EV_TIMER_ENTRY);
	w.t[0] += MS;
	w.stolen[0] = 10 * MS;
	put_read(&w, 0);
	struct trace *trace = trace_from_events("web", ROLE_GUEST, w.ev, w.len, NULL, 0);
	assert_int_equal(steal_clock_read(&s, trace, &identity, &err), 0);
	assert_int_equal(s.gaps, 1);
	assert_int_equal(s.gap[0].begin, 102 * MS);
	assert_int_equal(s.gap[0].end, 112 * MS);
	assert_int_equal(s.gap[0].bound, 2 * MS - 1 + MS - 1);
	assert_int_equal(s.gap[0].kind, OUT_PROVIDER);
	steal_clock_release(&s);
	trace_free(trace);
	free(w.ev);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_placing), cmocka_unit_test(test_worlds) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
