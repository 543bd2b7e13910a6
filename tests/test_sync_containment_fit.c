/* Narrowing by containment on hand-made windows: which events yield pairs, and which do not. */
#include "test.h"

#include <stdlib.h>

#include "base/mem.h"
#include "sync/search/clock_candidate.h"
#include "sync/search/search.h"
#include "sync_sim.h"

#define US 1000
#define WINDOWS 60
#define STAY (400 * US)

/* One vCPU; the guest's clock is the host's. */
struct view {
	struct host_timeline host;
	struct vthread thread;
	struct candidate_vcpu vcpu;
	struct vm_candidate vm;
	struct activity_cpu cpu;
	struct activity activity;
	int64_t end;
};

/* Adds an event at the begin and at the end of each window. */
static void add_stay(struct view *v, int64_t from)
{
	*ARRAY_PUSH(v->thread.window, v->thread.windows, v->thread.window_cap) = (struct ns_interval){ from, from + STAY };
	*ARRAY_PUSH(v->cpu.ts, v->cpu.len, v->cpu.cap) = from + US;
	*ARRAY_PUSH(v->cpu.ts, v->cpu.len, v->cpu.cap) = from + STAY - US;
	v->end = from + STAY;
}

static void view_init(struct view *v)
{
	*v = (struct view){ .thread = { .from = INT64_MIN, .to = INT64_MAX, .vcpu_id = -1 } };
}

/* Makes windows with gaps of `pause` ns; of `other` ns in the middle third. */
static void make_windows(struct view *v, int64_t pause, int64_t other)
{
	view_init(v);
	int64_t at = 1000 * US;
	for (int i = 0; i < WINDOWS; i++) {
		add_stay(v, at);
		at = v->end + (i / 20 == 1 ? other : pause);
	}
}

static struct evidence seen_of(struct view *v)
{
	v->host = (struct host_timeline){ .thread = &v->thread, .threads = 1, .has_guest_mode = true, .begin = 0,
		.end = v->end + 1000 * US };
	v->vcpu = (struct candidate_vcpu){ .thread = 0, .number = 0 };
	v->vm = (struct vm_candidate){ .pid = 1, .comm = "", .vcpu = &v->vcpu, .vcpus = 1 };
	v->activity = (struct activity){ .cpu = &v->cpu, .cpus = 1, .len = v->cpu.len, .begin = v->cpu.ts[0],
		.end = v->cpu.ts[v->cpu.len - 1] };
	return (struct evidence){ &v->host, &v->vm, &v->activity };
}

static void view_release(struct view *v)
{
	free(v->thread.window);
	free(v->thread.unknown);
	free(v->cpu.ts);
}

/* Narrows bounds of 2 us around a clock that is wrong by `off` ns. Returns true if the result is one line and includes
 * the true clock everywhere. */
static bool finds_clock(struct view *v, int64_t off)
{
	const struct evidence evidence = seen_of(v);
	const struct offset_estimate estimate = { .at_guest = v->activity.begin, .at_host = v->activity.begin + off };
	struct clock_candidate h, near;
	clock_candidate_init(&h, &estimate, (struct ns_interval){ v->activity.begin, v->activity.end });
	clock_candidate_init_around(&near, &h, &v->activity, 0, 2 * US);
	clock_candidate_test(&near, &evidence);
	bool right = near.clock.segments == 1;
	for (int64_t t = v->activity.begin; t <= v->activity.end; t += 100 * US) {
		int64_t low, high;
		right = right && clock_map_bounds(&near.clock, t, &low, &high) && low <= t && t <= high;
	}
	clock_candidate_release(&h);
	clock_candidate_release(&near);
	return right;
}

/* A slightly wrong clock is corrected: events just before a window belong to it, unless the previous window is nearly as
 * close. */
static void test_next_to_window(void **state)
{
	(void)state;
	struct view v;
	make_windows(&v, 300 * US, 300 * US);
	assert_true(finds_clock(&v, -12 * US));
	assert_true(finds_clock(&v, 12 * US));
	view_release(&v);
	make_windows(&v, 300 * US, 20 * US);
	assert_true(finds_clock(&v, -12 * US));
	assert_true(finds_clock(&v, 12 * US));
	view_release(&v);
}

/* Events at times at which the host lost events belong to no window. */
static void test_unknown_mode(void **state)
{
	(void)state;
	struct view v;
	int64_t at = 1000 * US;
	view_init(&v);
	for (int i = 0; i < WINDOWS; i++) {
		add_stay(&v, at);
		*ARRAY_PUSH(v.thread.unknown, v.thread.unknowns, v.thread.unknown_cap) =
			(struct ns_interval){ v.end + US, v.end + 100 * US };
		*ARRAY_PUSH(v.cpu.ts, v.cpu.len, v.cpu.cap) = v.end + 8 * US;
		at = v.end + 300 * US;
	}
	assert_true(finds_clock(&v, 0));
	view_release(&v);
}

/* A guest whose events all have the same time: the quick check ends, and rejects nothing. */
static void test_one_instant(void **state)
{
	(void)state;
	struct view v;
	make_windows(&v, 200 * US, 300 * US);
	for (size_t i = 0; i < v.cpu.len; i++)
		v.cpu.ts[i] = 1;
	const struct evidence evidence = seen_of(&v);
	struct clock_candidate h;
	assert_false(offset_precheck_rejects(&evidence, (struct ns_interval){ 1, 1 }));
	assert_false(offset_precheck_rejects(&evidence, (struct ns_interval){ 1, 2 }));
	search_containment(&evidence, false, &h);
	assert_int_equal(h.clock.segments, 0);
	assert_int_equal(h.reason, SYNC_REASON_NO_OFFSET);
	search_containment(&evidence, true, &h);
	assert_int_equal(h.clock.segments, 0);
	view_release(&v);
}

/* A search without enough steps has no clock and names the reason; the budget is the only difference. */
static void test_budget(void **state)
{
	(void)state;
	struct view v;
	uint64_t seed = 1;
	view_init(&v);
	for (int64_t i = 0, at = 1000 * US; i < 400; i++, at = v.end + 100 * US + sim_below(&seed, 900 * US))
		add_stay(&v, at);
	const struct evidence evidence = seen_of(&v);
	struct clock_candidate h;
	struct work_budget budget = { UINT64_MAX };
	v.activity.budget = &budget;
	search_containment(&evidence, false, &h);
	assert_int_equal(h.reason, SYNC_REASON_NONE);
	assert_int_equal(h.clock.segments, 1);
	clock_candidate_release(&h);
	const uint64_t used = UINT64_MAX - budget.left;
	for (uint64_t part = 0; part < 16; part++) {
		budget.left = used / 16 * part;
		search_containment(&evidence, part % 2, &h);
		assert_true(part % 2 || h.reason == SYNC_REASON_SEARCH_LIMIT);
		assert_true(h.reason != SYNC_REASON_SEARCH_LIMIT || h.clock.segments == 0);
		clock_candidate_release(&h);
	}
	view_release(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_next_to_window), cmocka_unit_test(test_unknown_mode),
		cmocka_unit_test(test_one_instant), cmocka_unit_test(test_budget) };
	return cmocka_run_group_tests_name("sync narrow", tests, NULL, NULL);
}
