/* compare/whatif: the scheduler model, on worlds small enough to know the result. */
#include <math.h>
#include <stdlib.h>

#include "compare/whatif/scheduler_replay.h"
#include "test.h"

#define MS INT64_C(1000000)
#define SEC (1000 * MS)

static const struct sched_params plain = { .slice = 4 * MS, .credit = 3 * MS };

static void add_task(struct host_demand *w, uint64_t may, double weight, const struct replay_burst *burst, size_t n)
{
	struct replay_task *t = &w->task[w->tasks++];
	*t = (struct replay_task){ .allowed_cpus = may, .used_cpus = may, .weight = weight, .is_vcpu = true, .bursts = n,
	                               .group = -1 };
	t->burst = calloc(n, sizeof *t->burst);
	for (size_t i = 0; i < n; i++)
		t->burst[i] = burst[i];
}

static void init_world(struct host_demand *w, unsigned cpus)
{
	*w = (struct host_demand){ .to = SEC - 1, .cpus = cpus, .task = calloc(16, sizeof(struct replay_task)) };
}

static const struct replay_burst endless[] = { { .work = 10 * SEC, .sleep = INT64_MAX, .wake = INT64_MAX } };

static double cpu_share(const struct host_demand *w, size_t i)
{
	return 1 - task_waits(&w->task[i]) / (double)SEC;
}

static void test_shares(void **unused)
{
	struct host_demand w;
	(void)unused;
	init_world(&w, 2);
	add_task(&w, 1, 1, endless, 1);
	add_task(&w, 1, 1, endless, 1);
	add_task(&w, 2, 1, endless, 1);
	add_task(&w, 2, 3, endless, 1);
	replay_run(&w, &plain);
	assert_true(fabs(cpu_share(&w, 0) - 0.5) < 0.01 && fabs(cpu_share(&w, 1) - 0.5) < 0.01);
	assert_true(fabs(cpu_share(&w, 2) - 0.25) < 0.02 && fabs(cpu_share(&w, 3) - 0.75) < 0.02);
	w.task[3].removed = true;
	replay_run(&w, &plain);
	assert_true(cpu_share(&w, 2) == 1 && cpu_share(&w, 3) == 1);
	/* One more CPU, allowed for task 0. */
	w.task[0].allowed_cpus = 5;
	w.cpus = 3;
	replay_run(&w, &plain);
	assert_true(cpu_share(&w, 0) > 0.99 && cpu_share(&w, 1) > 0.99);
	demand_release(&w);
}

/* Groups share a CPU by their weights, whatever is in them; on each CPU by the members that are there. */
static void test_groups(void **unused)
{
	struct host_demand w;
	(void)unused;
	init_world(&w, 3);
	for (int i = 0; i < 4; i++)
		add_task(&w, 1, 1, endless, 1);
	w.task[1].group = w.task[2].group = parse_groups(&w, "7:1024/0:1024");
	w.task[3].group = parse_groups(&w, "7:1024/3:3072");
	for (uint64_t cpu = 2; cpu <= 4; cpu += 2) {
		add_task(&w, cpu, 1, endless, 1);
		add_task(&w, cpu, 1, endless, 1);
		w.task[w.tasks - 1].group = parse_groups(&w, "9:2048");
	}
	assert_int_equal(w.groups, 4);
	replay_run(&w, &plain);
	static const double wanted[] = { 0.5, 0.0625, 0.0625, 0.375, 0.5, 0.5, 0.5, 0.5 };
	for (size_t i = 0; i < 8; i++)
		if (fabs(cpu_share(&w, i) - wanted[i]) > 0.025)
			fail_msg("task %zu: %.3f, not %.3f", i, cpu_share(&w, i), wanted[i]);
	/* The weight of a thread applies to its outermost group without other known threads, else to the thread itself. */
	w.task_index = calloc(8, sizeof *w.task_index);
	for (uint32_t i = 0; i < 8; i++)
		w.task[i].thread = w.task_index[i] = i;
	groups_set_weight(&w, (const uint32_t[]){ 3 }, 1, 1);
	groups_set_weight(&w, (const uint32_t[]){ 1, 4 }, 2, 3);
	assert_true(w.group[w.task[3].group].weight == 1 && w.task[3].weight == 1);
	assert_true(w.group[w.task[1].group].weight == 1 && w.task[1].weight == 3 && w.task[4].weight == 3);
	groups_set_weight(&w, (const uint32_t[]){ 1, 2, 3 }, 3, 4);
	assert_true(w.group[w.group[w.task[3].group].parent].weight == 4 && w.group[w.task[3].group].weight == 1);
	demand_release(&w);
}

#define DEEP(text) text text text text text text text text

static void test_group_texts(void **unused)
{
	static const char *const bad[] = { "", "x", "1", "1:", "1:0", "-1:5", "1:1024/", "1:1024 ", "1:1024//2:2", "1:262145",
		DEEP(DEEP("0:1/") "0:1/") "0:1" };
	struct host_demand w;
	(void)unused;
	init_world(&w, 1);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(parse_groups(&w, bad[i]), -1);
	demand_release(&w);
}

/* Without contention everything happens when it did; open and closed loop are the same. */
static void test_alone(void **unused)
{
	static const struct replay_burst burst[] = {
		{ .work = 0, .sleep = 5 * MS, .wake = 5 * MS }, { .work = 7 * MS, .sleep = 8 * MS, .wake = 20 * MS },
		{ .work = 30 * MS, .sleep = 50 * MS, .wake = 100 * MS, .throttled = true },
		{ .work = 1 * MS, .sleep = INT64_MAX, .wake = INT64_MAX },
	};
	struct host_demand w;
	(void)unused;
	for (int open = 0; open < 2; open++) {
		struct sched_params params = plain;
		params.open = open;
		init_world(&w, 1);
		add_task(&w, 1, 1, burst, 4);
		replay_run(&w, &params);
		const struct replay_task *t = &w.task[0];
		assert_true(task_waits(t) == 0 && t->n_replayed == 3 && t->work_done == 38 * MS);
		assert_int_equal(task_time_at_work(t, 0, true), 5 * MS);
		/* The next time at which it runs: at once, or when it wakes; never after the last work. */
		assert_int_equal(task_next_run(t, 0), 5 * MS);
		assert_int_equal(task_next_run(t, 6 * MS), 6 * MS);
		assert_int_equal(task_next_run(t, 13 * MS), task_time_at_work(t, 7 * MS, true));
		assert_int_equal(task_next_run(t, SEC / 2), INT64_MIN);
		assert_int_equal(task_time_at_work(t, 7 * MS, false), 12 * MS);
		assert_int_equal(task_time_at_work(t, 7 * MS, true), 20 * MS);
		assert_int_equal(task_time_at_work(t, 10 * MS, true), 23 * MS);
		assert_int_equal(task_time_at_work(t, 38 * MS, false), 101 * MS);
		assert_int_equal(task_time_at_work(t, 39 * MS, false), INT64_MIN);
		w.task[0].quota_lifted = true;
		replay_run(&w, &params);
		assert_int_equal(task_time_at_work(&w.task[0], 38 * MS, false), 51 * MS);
		demand_release(&w);
	}
}

/* Slices end when the scheduler looks: at the first tick after the slice is over. */
static void test_ticks(void **unused)
{
	const struct sched_params params = { .slice = 3 * MS, .credit = 3 * MS, .tick = 4 * MS, .phase = 1 * MS };
	struct host_demand w;
	(void)unused;
	init_world(&w, 1);
	add_task(&w, 1, 1, endless, 1);
	add_task(&w, 1, 1, endless, 1);
	replay_run(&w, &params);
	assert_int_equal(task_time_at_work(&w.task[1], 0, true), 5 * MS);
	assert_int_equal(task_time_at_work(&w.task[0], 5 * MS, true), 13 * MS);  /* at 9 ms it has still had more CPU time */
	assert_int_equal(task_time_at_work(&w.task[1], 8 * MS, true), 17 * MS);
	assert_true(w.task[0].replayed_by_length[wait_length(4 * MS)] >= 0.45 * (double)SEC);
	w.task[1].weight = 4;  /* runs longer: until it has had four times as much */
	replay_run(&w, &params);
	assert_int_equal(task_time_at_work(&w.task[1], 0, true), 5 * MS);
	assert_int_equal(task_time_at_work(&w.task[0], 5 * MS, true), 29 * MS);
	demand_release(&w);
}

/* Classes of half an octave, from 1 us on. */
static void test_lengths(void **unused)
{
	(void)unused;
	assert_int_equal(wait_length(1), 0);
	assert_int_equal(wait_length(1535), 0);
	assert_int_equal(wait_length(2048), 2);
	assert_int_equal(wait_length(3 * 1024), 3);
	assert_int_equal(wait_length(4 * 1024), 4);
	assert_int_equal(wait_length(INT64_MAX), WAIT_LENGTHS - 1);
	for (int64_t ns = 1; ns < INT64_MAX / 2; ns += ns / 3 + 1)
		assert_true(wait_length(ns) <= wait_length(ns + ns / 3));
}

/* Pairs of tasks that waited for each other's CPU; a chain of such pairs also compares its two ends. */
static void test_contests(void **unused)
{
	struct host_demand w;
	struct wait_graph original = { MAP_INIT }, changed = { MAP_INIT };
	struct wait_edge *c;
	(void)unused;
	init_world(&w, 2);
	for (uint32_t i = 0; i < 4; i++) {
		add_task(&w, i < 2 ? 1 : 2, 1, endless, 1);
		w.task[i].name_group = i;
	}
	w.waits_for = &original;
	replay_run(&w, &plain);
	assert_int_equal(original.ns.len, 2);
	/* Tasks 0 and 1: one of them waits all the time. */
	assert_true(*map_find(&original.ns, 1) > (uint64_t)(0.99 * (double)SEC));
	w.waits_for = &changed;
	w.task[1].allowed_cpus = 2;
	replay_run(&w, &plain);
	assert_int_equal(wait_graph_untested(&original, &changed, SEC / 100, SEC / 20, 4, &c), 2);
	assert_true(c[0].ns >= c[1].ns && c[0].a == 1 && c[1].a == 1 && c[0].b + c[1].b == 5);
	free(c);
	wait_graph_add(&original, 3, 0, SEC / 50);  /* 1 with 0, 0 with 3, 3 with 2 */
	assert_int_equal(wait_graph_untested(&original, &changed, SEC / 100, SEC / 20, 4, &c), 0);
	free(c);
	/* These contests were too short. */
	assert_int_equal(wait_graph_untested(&original, &changed, SEC / 40, SEC / 20, 4, &c), 2);
	free(c);
	assert_int_equal(wait_graph_untested(&original, &changed, SEC / 40, SEC, 4, &c), 0);  /* no contest is long enough */
	free(c);
	wait_graph_release(&original);
	wait_graph_release(&changed);
	demand_release(&w);
}

/* Open loop: a late task starts its next burst at the original time; closed loop: it keeps its sleep time. Within a
 * request an open loop behaves like a closed one, unless all wakeups are by the clock. */
static void test_loops(void **unused)
{
	static const struct replay_burst late[] = {
		{ .work = 10 * MS, .sleep = 10 * MS, .wake = 40 * MS }, { .work = 1 * MS, .sleep = INT64_MAX, .wake = INT64_MAX }
	};
	struct host_demand w;
	struct sched_params params = plain;
	(void)unused;
	init_world(&w, 1);
	add_task(&w, 1, 1, late, 2);
	replay_run(&w, &params);
	assert_int_equal(task_time_at_work(&w.task[0], 10 * MS, true), 20 * MS);
	params.open = true;
	replay_run(&w, &params);
	assert_int_equal(task_time_at_work(&w.task[0], 10 * MS, true), 40 * MS);
	w.task[0].burst[0].in_request = true;
	replay_run(&w, &params);
	assert_int_equal(task_time_at_work(&w.task[0], 10 * MS, true), 20 * MS);
	params.by_clock = true;
	replay_run(&w, &params);
	assert_int_equal(task_time_at_work(&w.task[0], 10 * MS, true), 40 * MS);
	demand_release(&w);
}

/* Three busy tasks on two CPUs: one is alone on its CPU and stays so, unless load balancing moves tasks now and then. */
static void test_balance(void **unused)
{
	struct sched_params params = plain;
	struct host_demand w;
	(void)unused;
	init_world(&w, 2);
	for (int i = 0; i < 3; i++)
		add_task(&w, 3, 1, endless, 1);
	replay_run(&w, &params);
	assert_true(fmax(fmax(cpu_share(&w, 0), cpu_share(&w, 1)), cpu_share(&w, 2)) > 0.99);
	params.balance = 7 * MS;
	replay_run(&w, &params);
	for (size_t i = 0; i < 3; i++)
		if (fabs(cpu_share(&w, i) - 2.0 / 3) > 0.05)
			fail_msg("%zu has %f", i, cpu_share(&w, i));
	/* A task that may not leave its CPU stays. */
	w.task[0].allowed_cpus = w.task[1].allowed_cpus = 1;
	w.task[2].allowed_cpus = 2;
	replay_run(&w, &params);
	assert_true(cpu_share(&w, 2) > 0.99 && fabs(cpu_share(&w, 0) - 0.5) < 0.01);
	demand_release(&w);
}

/* For any demand: no CPU runs two tasks at once, all work is done in its order, and a second run gives the same result. */
static void test_conservation(void **unused)
{
	uint64_t state = 5;
	(void)unused;
	for (int round = 0; round < 60; round++) {
		struct host_demand w;
		struct replay_burst burst[40];
		const unsigned cpus = 1 + (unsigned)round % 3;
		double waits[8];
		init_world(&w, cpus);
		w.dispatch = round % 2 ? 3000 : 0;
		for (int i = 0; i < 8; i++) {
			int64_t at = 0;
			for (int k = 0; k < 40; k++) {
				state = state * UINT64_C(6364136223846793005) + 1442695040888963407U;
				burst[k] = (struct replay_burst){
					.work = (int64_t)(state >> 40) % (6 * MS), .sleep = (int64_t)(state >> 20 & 0xffffff)
				};
				at += burst[k].work + burst[k].sleep;
				burst[k].wake = at;
				burst[k].throttled = state >> 60 == 1;
			}
			burst[39].sleep = INT64_MAX;
			const uint64_t may = (state >> 50 | 1) & ((UINT64_C(1) << cpus) - 1);
			add_task(&w, may, 1 + (double)(state >> 62), burst, 40);
		}
		const struct sched_params params = { .slice = (1 + round % 5) * MS, .credit = round % 4 * MS, .open = round % 7 < 3,
		                             .balance = round % 3 * 5 * MS };
		replay_run(&w, &params);
		int64_t busy = 0, end = 0;
		for (size_t i = 0; i < w.tasks; i++) {
			const struct replay_task *t = &w.task[i];
			for (size_t k = 1; k < t->n_replayed; k++) {
				assert_true(t->replayed[k].time >= t->replayed[k - 1].time + t->replayed[k].work - t->replayed[k - 1].work);
				assert_true(t->replayed[k].work >= t->replayed[k - 1].work);
			}
			waits[i] = task_waits(t);
			assert_true(waits[i] >= 0);
			busy += t->work_done;
			const int64_t last = task_time_at_work(t, t->work_done, false);
			end = last > end ? last : end;
			if (end < w.to) {
				int64_t all = 0;
				for (size_t k = 0; k < t->bursts; k++)
					all += t->burst[k].work;
				assert_int_equal(t->work_done, all);
			}
		}
		assert_true(busy <= end * (int64_t)cpus);
		replay_run(&w, &params);
		for (size_t i = 0; i < w.tasks; i++)
			assert_true(waits[i] == task_waits(&w.task[i]));
		demand_release(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares), cmocka_unit_test(test_alone), cmocka_unit_test(test_loops),
		cmocka_unit_test(test_ticks), cmocka_unit_test(test_lengths), cmocka_unit_test(test_contests),
		cmocka_unit_test(test_groups), cmocka_unit_test(test_group_texts), cmocka_unit_test(test_balance),
		cmocka_unit_test(test_conservation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
