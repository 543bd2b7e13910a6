/* The model of the scheduler, on worlds small enough to know what must come out. */
#include <math.h>
#include <stdlib.h>

#include "compare/whatif/scheduler_replay.h"
#include "test.h"

#define MS INT64_C(1000000)
#define SEC (1000 * MS)

static const struct rules plain = { .slice = 4 * MS, .credit = 3 * MS };

static void add(struct wants *w, uint64_t may, double weight, const struct replay_burst *burst, size_t n)
{
	struct replay_task *t = &w->task[w->tasks++];
	*t = (struct replay_task){ .may = may, .seen = may, .weight = weight, .follow = true, .bursts = n,
	                               .group = -1 };
	t->burst = calloc(n, sizeof *t->burst);
	for (size_t i = 0; i < n; i++)
		t->burst[i] = burst[i];
}

static void begin(struct wants *w, unsigned cpus)
{
	*w = (struct wants){ .to = SEC - 1, .cpus = cpus, .task = calloc(16, sizeof(struct replay_task)) };
}

static const struct replay_burst for_good[] = { { .work = 10 * SEC, .sleep = INT64_MAX, .wake = INT64_MAX } };

static double share(const struct wants *w, size_t i)
{
	return 1 - task_waits(&w->task[i]) / (double)SEC;
}

static void test_shares(void **unused)
{
	struct wants w;
	(void)unused;
	begin(&w, 2);
	add(&w, 1, 1, for_good, 1);
	add(&w, 1, 1, for_good, 1);
	add(&w, 2, 1, for_good, 1);
	add(&w, 2, 3, for_good, 1);
	replay_run(&w, &plain);
	assert_true(fabs(share(&w, 0) - 0.5) < 0.01 && fabs(share(&w, 1) - 0.5) < 0.01);
	assert_true(fabs(share(&w, 2) - 0.25) < 0.02 && fabs(share(&w, 3) - 0.75) < 0.02);
	w.task[3].gone = true;
	replay_run(&w, &plain);
	assert_true(share(&w, 2) == 1 && share(&w, 3) == 1);
	/* A CPU more for who may use it. */
	w.task[0].may = 5;
	w.cpus = 3;
	replay_run(&w, &plain);
	assert_true(share(&w, 0) > 0.99 && share(&w, 1) > 0.99);
	wants_release(&w);
}

/* Groups share by their weights, whatever is in them; on each CPU by what of them is there. */
static void test_groups(void **unused)
{
	struct wants w;
	(void)unused;
	begin(&w, 3);
	for (int i = 0; i < 4; i++)
		add(&w, 1, 1, for_good, 1);
	w.task[1].group = w.task[2].group = groups_of(&w, "7:1024/0:1024");
	w.task[3].group = groups_of(&w, "7:1024/3:3072");
	for (uint64_t cpu = 2; cpu <= 4; cpu += 2) {
		add(&w, cpu, 1, for_good, 1);
		add(&w, cpu, 1, for_good, 1);
		w.task[w.tasks - 1].group = groups_of(&w, "9:2048");
	}
	assert_int_equal(w.groups, 4);
	replay_run(&w, &plain);
	static const double wanted[] = { 0.5, 0.0625, 0.0625, 0.375, 0.5, 0.5, 0.5, 0.5 };
	for (size_t i = 0; i < 8; i++)
		if (fabs(share(&w, i) - wanted[i]) > 0.025)
			fail_msg("task %zu: %.3f, not %.3f", i, share(&w, i), wanted[i]);
	/* What is a thread's alone among the known ones is what its weight is about. */
	w.task_of = calloc(8, sizeof *w.task_of);
	for (uint32_t i = 0; i < 8; i++)
		w.task[i].thread = w.task_of[i] = i;
	groups_set_weight(&w, (const uint32_t[]){ 3 }, 1, 1);
	groups_set_weight(&w, (const uint32_t[]){ 1, 4 }, 2, 3);
	assert_true(w.group[w.task[3].group].weight == 1 && w.task[3].weight == 1);
	assert_true(w.group[w.task[1].group].weight == 1 && w.task[1].weight == 3 && w.task[4].weight == 3);
	groups_set_weight(&w, (const uint32_t[]){ 1, 2, 3 }, 3, 4);
	assert_true(w.group[w.group[w.task[3].group].parent].weight == 4 && w.group[w.task[3].group].weight == 1);
	wants_release(&w);
}

#define DEEP(text) text text text text text text text text

static void test_group_texts(void **unused)
{
	static const char *const bad[] = { "", "x", "1", "1:", "1:0", "-1:5", "1:1024/", "1:1024 ", "1:1024//2:2", "1:262145",
		DEEP(DEEP("0:1/") "0:1/") "0:1" };
	struct wants w;
	(void)unused;
	begin(&w, 1);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(groups_of(&w, bad[i]), -1);
	wants_release(&w);
}

/* Alone, everything happens when it did; closed and open loop are one. */
static void test_alone(void **unused)
{
	static const struct replay_burst burst[] = {
		{ .work = 0, .sleep = 5 * MS, .wake = 5 * MS }, { .work = 7 * MS, .sleep = 8 * MS, .wake = 20 * MS },
		{ .work = 30 * MS, .sleep = 50 * MS, .wake = 100 * MS, .quota = true }, { .work = 1 * MS, .sleep = INT64_MAX, .wake = INT64_MAX },
	};
	struct wants w;
	(void)unused;
	for (int open = 0; open < 2; open++) {
		struct rules rules = plain;
		rules.open = open;
		begin(&w, 1);
		add(&w, 1, 1, burst, 4);
		replay_run(&w, &rules);
		const struct replay_task *t = &w.task[0];
		assert_true(task_waits(t) == 0 && t->agains == 3 && t->done == 38 * MS);
		assert_int_equal(task_time_of(t, 0, true), 5 * MS);
		/* From then on it runs: at once, or when it wakes; never, behind the last work. */
		assert_int_equal(task_runs_from(t, 0), 5 * MS);
		assert_int_equal(task_runs_from(t, 6 * MS), 6 * MS);
		assert_int_equal(task_runs_from(t, 13 * MS), task_time_of(t, 7 * MS, true));
		assert_int_equal(task_runs_from(t, SEC / 2), INT64_MIN);
		assert_int_equal(task_time_of(t, 7 * MS, false), 12 * MS);
		assert_int_equal(task_time_of(t, 7 * MS, true), 20 * MS);
		assert_int_equal(task_time_of(t, 10 * MS, true), 23 * MS);
		assert_int_equal(task_time_of(t, 38 * MS, false), 101 * MS);
		assert_int_equal(task_time_of(t, 39 * MS, false), INT64_MIN);
		w.task[0].unlimited = true;
		replay_run(&w, &rules);
		assert_int_equal(task_time_of(&w.task[0], 38 * MS, false), 51 * MS);
		wants_release(&w);
	}
}

/* Turns end when the CPU looks: at the first tick that finds the slice over. */
static void test_ticks(void **unused)
{
	const struct rules rules = { .slice = 3 * MS, .credit = 3 * MS, .tick = 4 * MS, .phase = 1 * MS };
	struct wants w;
	(void)unused;
	begin(&w, 1);
	add(&w, 1, 1, for_good, 1);
	add(&w, 1, 1, for_good, 1);
	replay_run(&w, &rules);
	assert_int_equal(task_time_of(&w.task[1], 0, true), 5 * MS);
	assert_int_equal(task_time_of(&w.task[0], 5 * MS, true), 13 * MS);  /* at 9 ms it has had more still */
	assert_int_equal(task_time_of(&w.task[1], 8 * MS, true), 17 * MS);
	assert_true(w.task[0].lengths_again[wait_length(4 * MS)] >= 0.45 * (double)SEC);
	w.task[1].weight = 4;  /* stays for longer: until it has had four times as much */
	replay_run(&w, &rules);
	assert_int_equal(task_time_of(&w.task[1], 0, true), 5 * MS);
	assert_int_equal(task_time_of(&w.task[0], 5 * MS, true), 29 * MS);
	wants_release(&w);
}

/* Half octaves from a us on. */
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

/* Who waited for whose CPU; a chain of those who did tells what its ends weigh against each other. */
static void test_contests(void **unused)
{
	struct wants w;
	struct contests was = { MAP_INIT }, then = { MAP_INIT };
	struct contest *c;
	(void)unused;
	begin(&w, 2);
	for (uint32_t i = 0; i < 4; i++) {
		add(&w, i < 2 ? 1 : 2, 1, for_good, 1);
		w.task[i].kin = i;
	}
	w.contests = &was;
	replay_run(&w, &plain);
	assert_int_equal(was.ns.len, 2);
	assert_true(*map_find(&was.ns, 1) > (uint64_t)(0.99 * (double)SEC));  /* 0 and 1; one of them waits all the time */
	w.contests = &then;
	w.task[1].may = 2;
	replay_run(&w, &plain);
	assert_int_equal(contests_untried(&was, &then, SEC / 100, SEC / 20, 4, &c), 2);
	assert_true(c[0].ns >= c[1].ns && c[0].a == 1 && c[1].a == 1 && c[0].b + c[1].b == 5);
	free(c);
	contests_add(&was, 3, 0, SEC / 50);  /* 1 with 0, 0 with 3, 3 with 2 */
	assert_int_equal(contests_untried(&was, &then, SEC / 100, SEC / 20, 4, &c), 0);
	free(c);
	assert_int_equal(contests_untried(&was, &then, SEC / 40, SEC / 20, 4, &c), 2);  /* those were not long enough */
	free(c);
	assert_int_equal(contests_untried(&was, &then, SEC / 40, SEC, 4, &c), 0);  /* none matters as much */
	free(c);
	contests_release(&was);
	contests_release(&then);
	wants_release(&w);
}

/* Open: who was late starts when it did; closed: as much later as it slept.  Within a request the
 * former is as the latter, unless all goes by the clock. */
static void test_loops(void **unused)
{
	static const struct replay_burst late[] = {
		{ .work = 10 * MS, .sleep = 10 * MS, .wake = 40 * MS }, { .work = 1 * MS, .sleep = INT64_MAX, .wake = INT64_MAX }
	};
	struct wants w;
	struct rules rules = plain;
	(void)unused;
	begin(&w, 1);
	add(&w, 1, 1, late, 2);
	replay_run(&w, &rules);
	assert_int_equal(task_time_of(&w.task[0], 10 * MS, true), 20 * MS);
	rules.open = true;
	replay_run(&w, &rules);
	assert_int_equal(task_time_of(&w.task[0], 10 * MS, true), 40 * MS);
	w.task[0].burst[0].within = true;
	replay_run(&w, &rules);
	assert_int_equal(task_time_of(&w.task[0], 10 * MS, true), 20 * MS);
	rules.by_clock = true;
	replay_run(&w, &rules);
	assert_int_equal(task_time_of(&w.task[0], 10 * MS, true), 40 * MS);
	wants_release(&w);
}

/* Three that compute on two CPUs: whoever happens to be alone on one stays so, unless the others are moved now and then. */
static void test_balance(void **unused)
{
	struct rules rules = plain;
	struct wants w;
	(void)unused;
	begin(&w, 2);
	for (int i = 0; i < 3; i++)
		add(&w, 3, 1, for_good, 1);
	replay_run(&w, &rules);
	assert_true(fmax(fmax(share(&w, 0), share(&w, 1)), share(&w, 2)) > 0.99);
	rules.balance = 7 * MS;
	replay_run(&w, &rules);
	for (size_t i = 0; i < 3; i++)
		if (fabs(share(&w, i) - 2.0 / 3) > 0.05)
			fail_msg("%zu has %f", i, share(&w, i));
	/* Who may not leave its CPU stays. */
	w.task[0].may = w.task[1].may = 1;
	w.task[2].may = 2;
	replay_run(&w, &rules);
	assert_true(share(&w, 2) > 0.99 && fabs(share(&w, 0) - 0.5) < 0.01);
	wants_release(&w);
}

/* Whatever the demand: no CPU does two things at once, all work is done in its order, and a second run says the same. */
static void test_conservation(void **unused)
{
	uint64_t state = 5;
	(void)unused;
	for (int round = 0; round < 60; round++) {
		struct wants w;
		struct replay_burst burst[40];
		const unsigned cpus = 1 + (unsigned)round % 3;
		double waits[8];
		begin(&w, cpus);
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
				burst[k].quota = state >> 60 == 1;
			}
			burst[39].sleep = INT64_MAX;
			const uint64_t may = (state >> 50 | 1) & ((UINT64_C(1) << cpus) - 1);
			add(&w, may, 1 + (double)(state >> 62), burst, 40);
		}
		const struct rules rules = { .slice = (1 + round % 5) * MS, .credit = round % 4 * MS, .open = round % 7 < 3,
		                             .balance = round % 3 * 5 * MS };
		replay_run(&w, &rules);
		int64_t busy = 0, end = 0;
		for (size_t i = 0; i < w.tasks; i++) {
			const struct replay_task *t = &w.task[i];
			for (size_t k = 1; k < t->agains; k++) {
				assert_true(t->again[k].time >= t->again[k - 1].time + t->again[k].work - t->again[k - 1].work);
				assert_true(t->again[k].work >= t->again[k - 1].work);
			}
			waits[i] = task_waits(t);
			assert_true(waits[i] >= 0);
			busy += t->done;
			const int64_t last = task_time_of(t, t->done, false);
			end = last > end ? last : end;
			if (end < w.to) {
				int64_t all = 0;
				for (size_t k = 0; k < t->bursts; k++)
					all += t->burst[k].work;
				assert_int_equal(t->done, all);
			}
		}
		assert_true(busy <= end * (int64_t)cpus);
		replay_run(&w, &rules);
		for (size_t i = 0; i < w.tasks; i++)
			assert_true(waits[i] == task_waits(&w.task[i]));
		wants_release(&w);
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
