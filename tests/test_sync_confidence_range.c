/* The range of a clock that its events support: events outside the host's trace do not count. */
#include "test.h"

#include <stdlib.h>

#include "sync/search/confidence_range.h"
#include "sync_sim.h"

#define MS INT64_C(1000000)
#define WINDOWS 400
#define BEFORE (1000 * MS)  /* guest events before the host's trace; as many after it */

struct world {
	struct ns_interval window[WINDOWS];
	int64_t ts[WINDOWS + 2 * 50];
	struct vthread thread;
	struct candidate_vcpu vcpu;
	struct vm_candidate vm;
	struct host_timeline host;
	struct activity_cpu cpu;
	struct activity activity;
};

/* Makes windows of 1 to 3 ms every 10 to 20 ms, each with a guest event in its middle. beyond: with guest events more than
 * 600 ms before the begin and after the end of the host's trace, too. */
static void make_world(struct world *w, bool beyond)
{
	uint64_t r = 3;
	int64_t t = 2 * BEFORE;
	size_t n = 0;
	*w = (struct world){ .vcpu.number = 0 };
	for (int64_t k = 0; beyond && k < 50; k++)
		w->ts[n++] = k * 7 * MS;
	for (size_t i = 0; i < WINDOWS; i++) {
		const int64_t len = (int64_t)(MS + (int64_t)(sim_random(&r) % (2 * MS)));
		w->window[i] = (struct ns_interval){ t, t + len };
		w->ts[n++] = t + len / 2;
		t += 10 * MS + (int64_t)(sim_random(&r) % (10 * MS));
	}
	for (int64_t k = 0; beyond && k < 50; k++)
		w->ts[n++] = t + BEFORE + k * 7 * MS;
	w->thread = (struct vthread){ .from = INT64_MIN, .to = INT64_MAX, .window = w->window, .windows = WINDOWS };
	w->vm = (struct vm_candidate){ .vcpu = &w->vcpu, .vcpus = 1 };
	w->host = (struct host_timeline){ .begin = 2 * BEFORE, .end = t, .thread = &w->thread, .threads = 1 };
	w->cpu = (struct activity_cpu){ .ts = w->ts, .len = n };
	w->activity = (struct activity){ .cpu = &w->cpu, .cpus = 1, .len = n };
}

static struct clock_bound flat_bound(struct clock_point *point, int64_t host)
{
	*point = (struct clock_point){ 0, host };
	return (struct clock_bound){ .left = { 0, host, 0 }, .right = { 0, host, 0 }, .point = point, .points = 1 };
}

static bool find_range(bool beyond, double nats, struct ns_interval *range)
{
	static struct world w;
	struct clock_point point[2];
	struct clock_segment segment = { .low = flat_bound(&point[0], 0), .high = flat_bound(&point[1], 0) };
	const struct clock_map clock = { .segment = &segment, .segments = 1 };
	make_world(&w, beyond);
	return confidence_range_find(&(struct evidence){ &w.host, &w.vm, &w.activity }, &clock, nats, range);
}

static void test_outside_host(void **state)
{
	(void)state;
	static const double nats[] = { 2, 8, 20 };
	for (size_t i = 0; i < COUNT(nats); i++) {
		struct ns_interval plain, beyond;
		assert_true(find_range(false, nats[i], &plain));
		assert_true(find_range(true, nats[i], &beyond));
		assert_int_equal(plain.from, beyond.from);
		assert_int_equal(plain.to, beyond.to);
		assert_true(plain.from > 2 * BEFORE && plain.to > plain.from);
	}
	struct ns_interval none;
	assert_false(find_range(false, 1e6, &none));  /* too little evidence */
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_outside_host) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
