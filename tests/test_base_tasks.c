/* base/: parallel tasks, ordered jobs, prefetched batches. */
#include "test.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/prefetch.h"
#include "base/ordered_jobs.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/parallel.h"

struct task_tally {
	atomic_int done[100];
	int results[100];
	atomic_int watched;
	int stop_after;  /* number of watch_tasks() calls before it stops the run; 0: at once */
};

static int count_task(void *arg, size_t i)
{
	struct task_tally *t = arg;
	/* Late tasks of a run that is to be stopped wait until watch_tasks() was called. */
	while (i >= 10 && !t->stop_after && !atomic_load(&t->watched))
		usleep(1000);
	usleep(t->stop_after ? 100 : 5000);
	atomic_fetch_add(&t->done[i], 1);
	return t->results[i];
}

static bool watch_tasks(void *arg)
{
	struct task_tally *t = arg;
	return atomic_fetch_add(&t->watched, 1) < t->stop_after;
}

/* A job with steps that must run in order and one at a time. */
struct job_tally {
	atomic_int inside;
	size_t done, last, fails_at;
	int delay_us;
};

static int count_step(void *arg, size_t number, struct error *err)
{
	struct job_tally *t = arg;
	assert_int_equal(atomic_fetch_add(&t->inside, 1), 0);
	assert_int_equal(number, t->done);
	if (t->delay_us)
		usleep((unsigned)t->delay_us);
	t->done += number != t->fails_at;
	atomic_fetch_sub(&t->inside, 1);
	return number == t->fails_at ? error_set(err, STATUS_SYSTEM, NULL, "step %zu: failed", number) : number < t->last;
}

/* One job produces, another consumes: the bounds between them hold for any number of threads and either one being slow. */
static void test_ordered_jobs(void **state)
{
	(void)state;
	for (unsigned workers = 0; workers < 5; workers++) {
		for (int slow = 0; slow < 3; slow++) {
			struct error err = ERROR_INIT;
			struct job_tally before = { .last = 300, .fails_at = SIZE_MAX, .delay_us = slow == 1 ? 50 : 0 };
			struct job_tally behind = { .last = SIZE_MAX, .fails_at = 200, .delay_us = slow == 2 ? 50 : 0 };
			struct job make = { .step = count_step, .arg = &before, .allowed = 4, .plenty = 2 };
			struct job use = { .step = count_step, .arg = &behind, .plenty = 2 };
			struct ordered_jobs *c = ordered_jobs_begin(workers);
			assert_int_equal(ordered_jobs_have_threads(c), workers > 1);
			ordered_jobs_add(c, &make);
			ordered_jobs_add(c, &use);
			for (size_t i = 0; i < 200; i++) {
				assert_int_equal(ordered_jobs_until(c, &make, i + 4, i + 1, &err), 1);
				assert_int_equal(ordered_jobs_until(c, &use, i + 1, i > 4 ? i - 4 : 0, &err), 1);
			}
			assert_int_equal(ordered_jobs_until(c, &use, 200, 200, &err), 1);
			assert_int_equal(behind.done, 200);
			/* The job that failed reports its error each time; the other one continues. */
			for (int i = 0; i < 2; i++)
				assert_int_equal(ordered_jobs_until(c, &use, 201 + (size_t)i, 201, &err), -1);
			assert_string_equal(err.text, "step 200: failed");
			assert_int_equal(ordered_jobs_until(c, &make, 400, 301, NULL), 1);
			assert_int_equal(ordered_jobs_until(c, &make, 400, 302, NULL), 0);
			assert_int_equal(before.done, 301);
			ordered_jobs_remove(c, &make);
			ordered_jobs_remove(c, &use);
			ordered_jobs_end(c);
		}
	}
	ordered_jobs_end(NULL);
}

/* Produces batches of one number each, up to `last`; the next one fails if `fails`, else the batches end. */
struct batch_counter {
	int made, last;
	bool fails;
	int slow_from, slow_to;  /* numbers of the slow batches */
};

static int make_number(void *arg, void *batch, struct error *err)
{
	struct batch_counter *c = arg;
	if (c->made >= c->slow_from && c->made < c->slow_to)
		usleep(500);
	if (c->made > c->last)
		return error_set(err, STATUS_SYSTEM, NULL, "number %d: cannot be made", c->made);
	*(int *)batch = c->made;
	return c->made++ < c->last || c->fails;
}

/* Any number of threads and either side being slower: the same batches in the same order, and none changes while it is
 * used. */
static void test_ahead(void **state)
{
	(void)state;
	for (unsigned workers = 0; workers < 4; workers++) {
		struct ordered_jobs *ordered_jobs = ordered_jobs_begin(workers);
		for (int fails = 0; fails < 2; fails++) {
			struct error err = ERROR_INIT;
			struct batch_counter c = { .last = 200, .fails = fails, .slow_from = 20, .slow_to = 40 };
			struct prefetch *a = prefetch_begin(ordered_jobs, sizeof(int), make_number, &c);
			const void *batch;
			for (int i = 0; i <= 200; i++) {
				assert_int_equal(prefetch_next(a, &batch, &err), 1);
				if (i % 50 == 49)
					usleep(2000);  /* time for the producer to run as far ahead as it can */
				assert_int_equal(*(const int *)batch, i);
			}
			for (int i = 0; i < 2; i++)
				assert_int_equal(prefetch_next(a, &batch, &err), fails ? -1 : 0);
			assert_string_equal(err.text, fails ? "number 201: cannot be made" : "");
			prefetch_end(a);
		}
		/* Ending early, also before the first batch was used. */
		for (int used = 0; used < 3; used++) {
			struct batch_counter c = { .last = 1000000 };
			struct prefetch *a = prefetch_begin(ordered_jobs, sizeof(int), make_number, &c);
			const void *batch;
			for (int i = 0; i < used; i++)
				assert_int_equal(prefetch_next(a, &batch, NULL), 1);
			usleep(1000);
			prefetch_end(a);
			assert_true(c.made <= used + PREFETCH_BATCHES);
		}
		ordered_jobs_end(ordered_jobs);
	}
	prefetch_end(NULL);
}

static void test_parallel(void **state)
{
	(void)state;
	for (unsigned workers = 0; workers < 5; workers++) {
		struct task_tally t = { .stop_after = 1 << 30 };
		struct parallel p = { .workers = workers, .task = count_task, .arg = &t };
		assert_int_equal(parallel_run(&p, 100), 0);
		for (int i = 0; i < 100; i++)
			assert_int_equal(t.done[i], 1);
		/* Two tasks fail: the result is that of the lower number, and the last tasks are not started any more. */
		t.results[7] = -7;
		t.results[8] = -8;
		p.watch = watch_tasks;
		assert_int_equal(parallel_run(&p, 100), -7);
		assert_int_equal(t.done[6], 2);
		assert_int_equal(t.done[99], 1);
		/* With no tasks, watch_tasks() is not called. */
		assert_int_equal(parallel_run(&p, 0), 0);
	}
	struct task_tally t = { .stop_after = 0 };
	struct parallel p = { .workers = 2, .task = count_task, .watch = watch_tasks, .arg = &t };
	assert_int_equal(parallel_run(&p, 100), 0);
	assert_int_equal(t.done[0], 1);
	assert_int_equal(t.done[99], 0);
	assert_int_equal(parallel_workers(3), 3);
	assert_true(parallel_workers(0) >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ordered_jobs), cmocka_unit_test(test_ahead), cmocka_unit_test(test_parallel),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
