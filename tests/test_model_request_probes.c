/* The model on hand-made events: requests of probes. */
#include "model_events.h"

#define LANE "/Requests/Debian/nginx-"
#define ABSENT EVENT_ABSENT

struct probe { int64_t t; enum mark op; int32_t tid; int64_t key, stack; };

static void feed_probes(const struct probe *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct event ev = event(p[i].t, EV_PROBE, 0, p[i].tid);
		ev.probe.op = p[i].op;
		ev.probe.key = p[i].key;
		ev.probe.name = NGINX;
		ev.probe.stack = p[i].stack;
		feed(1, ev);
	}
}

enum { RUNNING, YIELDED, UNKNOWN, DROPPED };

/* Two threads with a request each, found by the thread; both lanes are used again. */
static void test_by_thread(void **state)
{
	(void)state;
	setup_full(true, true, true, false);
	static const struct probe p[] = {
		{ 5, MARK_END, 900, ABSENT, ABSENT },  /* began before the trace */
		{ 10, MARK_START, 900, ABSENT, ABSENT }, { 15, MARK_START, 901, ABSENT, ABSENT }, { 20, MARK_END, 900, ABSENT, ABSENT },
		{ 22, MARK_YIELD, 901, ABSENT, ABSENT }, { 24, MARK_RESUME, 901, ABSENT, ABSENT },
		{ 25, MARK_END, 901, ABSENT, ABSENT }, { 30, MARK_START, 901, ABSENT, ABSENT }, { 35, MARK_START, 900, ABSENT, ABSENT },
		{ 40, MARK_END, 901, ABSENT, ABSENT }, { 45, MARK_END, 900, ABSENT, ABSENT },
	};
	feed_probes(p, COUNT(p));
	expect(LANE "1/State", 9, HISTORY_NULL);
	expect(LANE "1/State", 10, RUNNING);
	expect(LANE "1/Thread", 10, 900);
	expect(LANE "1/State", 19, RUNNING);
	expect(LANE "1/State", 20, HISTORY_NULL);
	expect(LANE "1/Thread", 20, HISTORY_NULL);
	expect(LANE "2/State", 15, RUNNING);
	expect(LANE "2/State", 22, YIELDED);
	expect(LANE "2/State", 24, RUNNING);
	expect(LANE "2/State", 25, HISTORY_NULL);
	expect(LANE "2/Thread", 30, 901);
	expect(LANE "1/Thread", 35, 900);
	expect(LANE "2/State", 40, HISTORY_NULL);
	expect(LANE "1/State", 45, HISTORY_NULL);
	assert_null(rec_find(&rec, LANE "3/State"));
	assert_int_equal(request_probes_orphans(model->machine[1]), 1);
	teardown();
}

/* An event loop: thread 900 serves two requests, found by their address; thread 901 takes one over. */
static void test_event_loop(void **state)
{
	(void)state;
	setup_full(true, true, true, false);
	static const struct probe p[] = {
		{ 10, MARK_START, 900, 0xa0, ABSENT },
		{ 20, MARK_START, 900, 0xb0, ABSENT },   /* yields a0 */
		{ 30, MARK_YIELD, 900, ABSENT, ABSENT },   /* the loop waits: yields b0 */
		{ 35, MARK_YIELD, 900, ABSENT, ABSENT },   /* nothing is served */
		{ 40, MARK_RESUME, 900, 0xa0, ABSENT },
		{ 45, MARK_RESUME, 900, 0xa0, ABSENT },
		{ 50, MARK_RESUME, 901, 0xb0, ABSENT },
		{ 60, MARK_END, 901, 0xb0, ABSENT }, { 65, MARK_RESUME, 900, 0xc0, ABSENT },  /* c0 is no request */
		{ 70, MARK_DROP, 900, 0xa0, ABSENT }, { 75, MARK_DROP, 900, 0xa0, ABSENT },
		{ 80, MARK_START, 900, 0xa0, ABSENT }, { 90, MARK_START, 900, 0xa0, ABSENT },  /* the first one has no end */
		{ 95, MARK_END, 900, 0xa0, ABSENT },
	};
	feed_probes(p, COUNT(p));
	expect(LANE "1/State", 10, RUNNING);
	expect(LANE "1/State", 20, YIELDED);
	expect(LANE "2/State", 20, RUNNING);
	expect(LANE "2/State", 30, YIELDED);
	expect(LANE "1/State", 40, RUNNING);
	expect(LANE "2/State", 49, YIELDED);
	expect(LANE "2/Thread", 49, 900);
	expect(LANE "2/State", 50, RUNNING);
	expect(LANE "2/Thread", 50, 901);
	expect(LANE "1/State", 50, RUNNING);
	expect(LANE "2/State", 60, HISTORY_NULL);
	expect(LANE "1/State", 69, RUNNING);
	expect(LANE "1/State", 70, DROPPED);
	expect(LANE "1/State", 75, HISTORY_NULL);
	expect(LANE "2/State", 80, RUNNING);  /* the last lane of thread 900 */
	expect(LANE "2/State", 90, DROPPED);
	expect(LANE "1/State", 90, RUNNING);
	expect(LANE "1/State", 95, HISTORY_NULL);
	expect(LANE "2/State", 95, HISTORY_NULL);
	assert_null(rec_find(&rec, LANE "3/State"));
	assert_int_equal(request_probes_orphans(model->machine[1]), 0);
	teardown();
}

/* Two processes that were forked from one have requests at the same address. */
static void test_processes(void **state)
{
	(void)state;
	setup_full(true, true, true, false);
	static const struct { int64_t t; enum mark op; int32_t tid, pid; } e[] = {
		{ 10, MARK_START, 900, 900 }, { 20, MARK_START, 910, 910 }, { 30, MARK_RESUME, 901, 900 }, { 40, MARK_END, 911, 910 },
		{ 50, MARK_END, 901, 900 },
	};
	for (size_t i = 0; i < COUNT(e); i++) {
		struct event ev = event(e[i].t, EV_PROBE, 0, e[i].tid);
		ev.pid = e[i].pid;
		ev.probe.op = e[i].op;
		ev.probe.key = 0xa0;
		ev.probe.name = NGINX;
		feed(1, ev);
	}
	expect(LANE "1/State", 10, RUNNING);
	expect(LANE "2/State", 20, RUNNING);
	expect(LANE "1/Thread", 30, 901);
	expect(LANE "1/State", 49, RUNNING);
	expect(LANE "2/State", 39, RUNNING);
	expect(LANE "2/State", 40, HISTORY_NULL);
	expect(LANE "1/State", 50, HISTORY_NULL);
	assert_int_equal(request_probes_orphans(model->machine[1]), 0);
	teardown();
}

/* Recursion: one request per outermost call. A call that was left without its return is dropped. Returns have the stack
 * pointer of the entry (arm64) or 8 more (x86). */
static void test_recursion(void **state)
{
	(void)state;
	setup_full(true, true, true, false);
	static const struct probe p[] = {
		{ 5, MARK_END, 900, ABSENT, 0x1008 },
		{ 10, MARK_START, 900, ABSENT, 0x1000 }, { 12, MARK_START, 900, ABSENT, 0xf00 }, { 14, MARK_START, 900, ABSENT, 0xe00 },
		{ 16, MARK_END, 900, ABSENT, 0xe08 }, { 18, MARK_END, 900, ABSENT, 0xf00 }, { 20, MARK_END, 900, ABSENT, 0x1008 },
		{ 30, MARK_START, 900, ABSENT, 0x1000 }, { 32, MARK_START, 900, ABSENT, 0xf00 },
		{ 34, MARK_END, 900, ABSENT, 0x1008 },  /* the inner call was left without its return */
		{ 40, MARK_START, 900, ABSENT, 0x1000 },
		{ 50, MARK_START, 900, ABSENT, 0x1000 },  /* ... and here the outer one */
		{ 55, MARK_END, 900, ABSENT, 0xe00 },     /* a call that was not recorded */
		{ 60, MARK_END, 900, ABSENT, 0x1008 },
	};
	feed_probes(p, COUNT(p));
	expect(LANE "1/State", 9, HISTORY_NULL);
	expect(LANE "1/State", 19, RUNNING);
	expect(LANE "1/State", 20, HISTORY_NULL);
	expect(LANE "1/State", 33, RUNNING);
	expect(LANE "1/State", 34, HISTORY_NULL);
	expect(LANE "1/State", 40, RUNNING);
	expect(LANE "1/State", 50, DROPPED);
	expect(LANE "2/State", 50, RUNNING);
	expect(LANE "2/State", 59, RUNNING);
	expect(LANE "2/State", 60, HISTORY_NULL);
	assert_int_equal(request_probes_orphans(model->machine[1]), 2);
	teardown();
}

/* A received request began with the wakeup of its thread, unless the thread has reached probes of other requests since. */
static void test_arrival(void **state)
{
	(void)state;
	setup_full(true, true, true, false);
	sw(1, 10, 0, 0, RUN_RUNNABLE, 900);
	sw(1, 20, 0, 900, RUN_BLOCKED, 0);
	wake(1, 100, 0, 0, 900, 0);
	sw(1, 110, 0, 0, RUN_RUNNABLE, 900);
	static const struct probe first[] = {
		{ 115, MARK_RECEIVE, 900, 0xa0, ABSENT }, { 120, MARK_END, 900, 0xa0, ABSENT },
		{ 130, MARK_RECEIVE, 900, 0xb0, ABSENT },  /* waited for the first one: its arrival is unknown */
		{ 140, MARK_YIELD, 900, ABSENT, ABSENT },
	};
	feed_probes(first, COUNT(first));
	sw(1, 150, 0, 900, RUN_BLOCKED, 0);
	wake(1, 200, 0, 0, 900, 0);
	sw(1, 210, 0, 0, RUN_RUNNABLE, 900);
	static const struct probe second[] = {
		{ 212, MARK_RESUME, 900, 0xb0, ABSENT },  /* woken for b0 */
		{ 214, MARK_RESUME, 900, 0xc0, ABSENT }, { 216, MARK_RECEIVE, 900, 0xc0, ABSENT },
		{ 218, MARK_END, 900, 0xb0, ABSENT }, { 220, MARK_END, 900, 0xc0, ABSENT },
	};
	feed_probes(second, COUNT(second));
	sw(1, 250, 0, 900, RUN_BLOCKED, 0);
	wake(1, 300, 0, 0, 900, 0);
	sw(1, 310, 0, 0, RUN_RUNNABLE, 900);
	static const struct probe third[] = {
		{ 312, MARK_RESUME, 900, 0xd0, ABSENT }, { 316, MARK_RECEIVE, 900, 0xd0, ABSENT },
		{ 320, MARK_END, 900, 0xd0, ABSENT },
	};
	feed_probes(third, COUNT(third));
	expect(LANE "1/State", 99, HISTORY_NULL);
	expect(LANE "1/State", 100, RUNNING);
	expect(LANE "1/Thread", 100, 900);
	expect(LANE "1/State", 120, HISTORY_NULL);
	expect(LANE "1/State", 129, HISTORY_NULL);
	expect(LANE "1/State", 130, RUNNING);
	expect(LANE "1/State", 140, YIELDED);
	expect(LANE "1/State", 212, RUNNING);
	expect(LANE "2/State", 215, HISTORY_NULL);
	expect(LANE "2/State", 216, RUNNING);
	expect(LANE "2/State", 220, HISTORY_NULL);
	expect(LANE "2/State", 299, HISTORY_NULL);
	expect(LANE "2/State", 300, RUNNING);
	expect(LANE "2/State", 320, HISTORY_NULL);
	teardown();
}

/* Requests at the same time do not touch in one lane; a loss and the end of the trace close all. */
static void test_lanes_and_losses(void **state)
{
	(void)state;
	setup_full(true, true, true, false);
	static const struct probe p[] = {
		{ 10, MARK_START, 900, ABSENT, ABSENT }, { 20, MARK_END, 900, ABSENT, ABSENT }, { 20, MARK_START, 900, ABSENT, ABSENT },
		{ 30, MARK_START, 901, ABSENT, ABSENT },
	};
	feed_probes(p, COUNT(p));
	expect(LANE "1/State", 20, HISTORY_NULL);
	expect(LANE "2/State", 20, RUNNING);
	expect(LANE "1/State", 30, RUNNING);
	struct event lost = event(40, EV_LOST, 0, -1);
	lost.lost.end = 45;
	feed(1, lost);
	expect(LANE "1/State", 40, DROPPED);
	expect(LANE "2/State", 40, DROPPED);
	static const struct probe after[] = {
		{ 50, MARK_END, 901, ABSENT, ABSENT }, { 60, MARK_START, 901, ABSENT, ABSENT }, { 70, MARK_DROP, 901, ABSENT, ABSENT },
		{ 70, MARK_START, 901, ABSENT, ABSENT },
	};
	feed_probes(after, COUNT(after));
	expect(LANE "1/State", 50, HISTORY_NULL);
	expect(LANE "2/State", 50, HISTORY_NULL);
	expect(LANE "1/State", 60, RUNNING);
	expect(LANE "1/State", 70, DROPPED);
	expect(LANE "2/State", 70, RUNNING);
	assert_int_equal(model_end(model, 1, 100, NULL), 0);
	expect(LANE "1/State", 100, HISTORY_NULL);
	expect(LANE "2/State", 99, RUNNING);
	expect(LANE "2/State", 100, HISTORY_NULL);
	expect(LANE "2/Thread", 100, HISTORY_NULL);
	assert_null(rec_find(&rec, LANE "3/State"));
	assert_int_equal(request_probes_orphans(model->machine[1]), 1);
	teardown();
}

/* The label of a request ends with it, and the next one of the lane may have none. */
static void test_label(void **state)
{
	(void)state;
	setup_full(true, true, true, false);
	static const struct { int64_t t; enum mark op; int64_t label; } e[] = {
		{ 10, MARK_START, ABSENT }, { 15, MARK_END, ABSENT }, { 20, MARK_START, BASH }, { 25, MARK_END, ABSENT },
		{ 30, MARK_START, FIB }, { 35, MARK_START, ABSENT }, { 40, MARK_END, ABSENT },
	};
	for (size_t i = 0; i < COUNT(e); i++) {
		struct event ev = event(e[i].t, EV_PROBE, 0, 900);
		ev.probe.op = e[i].op;
		ev.probe.name = NGINX;
		ev.probe.label = e[i].label;
		feed(1, ev);
	}
	expect(LANE "1/Label", 19, HISTORY_NULL);
	assert_string_equal(rec_text(&rec, 20, LANE "1/Label"), "bash");
	assert_string_equal(rec_text(&rec, 24, LANE "1/Label"), "bash");
	expect(LANE "1/Label", 25, HISTORY_NULL);
	assert_string_equal(rec_text(&rec, 30, LANE "1/Label"), "fibonacci");
	teardown();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_thread),
		cmocka_unit_test(test_event_loop),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_arrival),
		cmocka_unit_test(test_label),
		cmocka_unit_test(test_lanes_and_losses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
