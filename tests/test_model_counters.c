/* Hardware counters in the model: counts of intervals between two reads, and reads that cannot be trusted. */
#include "model_events.h"

#define CPU1 "/Host/CPUs/CPU1/"
#define BIG INT64_C(0x7000000000000000)

static void read_counters(int64_t t, int64_t instructions, int64_t cycles, bool is_difference)
{
	struct event ev = event(t, EV_COUNTERS, 1, -1);
	ev.counters.instructions = instructions;
	ev.counters.cycles = cycles;
	ev.counters.is_difference = is_difference;
	feed(0, ev);
}

static int64_t instructions_at(int64_t t)
{
	return rec_at(&rec, t, CPU1 "Instructions");
}

static void test_totals(void **state)
{
	(void)state;
	setup_full(true, true, true, false);
	read_counters(1000, 500000, 400000, false);
	read_counters(2000, 502000, 401000, false);  /* 2000 and 1000 in [1000, 1999] */
	read_counters(3000, 504000, 403500, false);  /* the same count again is another interval */
	sw(0, 3000, 1, 700, RUN_BLOCKED, 0);
	assert_int_equal(instructions_at(999), HISTORY_NULL);
	assert_int_equal(instructions_at(1000), 2000);
	assert_int_equal(instructions_at(1999), 2000);
	assert_int_equal(instructions_at(2999), 4000);
	assert_int_equal(rec_at(&rec, 1500, CPU1 "Cycles"), 1000);
	assert_int_equal(rec_at(&rec, 2000, CPU1 "Cycles"), 3500);
	teardown();
}

/* The value is unknown where a counter was not scheduled (0), stood still, was set back, or jumped, and the next counts
 * are right. */
static void test_failures(void **state)
{
	(void)state;
	setup_full(true, true, true, false);
	read_counters(1000, 7000, EVENT_ABSENT, false);
	read_counters(2000, 0, EVENT_ABSENT, false);       /* not scheduled: [1000, 2999] is unknown */
	read_counters(3000, 9000, EVENT_ABSENT, false);
	read_counters(4000, 9900, EVENT_ABSENT, false);    /* 900 */
	read_counters(5000, 9900, EVENT_ABSENT, false);    /* stood still */
	read_counters(6000, 10000, EVENT_ABSENT, false);   /* 100 */
	read_counters(7000, 50, EVENT_ABSENT, false);      /* set back */
	read_counters(8000, 80, EVENT_ABSENT, false);      /* 30 */
	read_counters(9000, BIG, EVENT_ABSENT, false);     /* more than any CPU can execute */
	read_counters(10000, BIG + 5, EVENT_ABSENT, false);  /* 5 */
	read_counters(10000, BIG + 6, EVENT_ABSENT, false);  /* twice at one time */
	read_counters(11000, -BIG, EVENT_ABSENT, false);   /* 2^64 - BIG: a jump */
	read_counters(12000, -BIG + 1, EVENT_ABSENT, false);  /* 1: counters have 64 bits, without a sign */
	sw(0, 12000, 1, 700, RUN_BLOCKED, 0);
	static const int64_t want[] = { HISTORY_NULL, HISTORY_NULL, 900, HISTORY_NULL, 1000, HISTORY_NULL, 1030, HISTORY_NULL,
	                                1035, HISTORY_NULL, 1036 };
	for (int i = 0; i < 11; i++) {
		assert_int_equal(instructions_at(1000 * (i + 1)), want[i]);
		assert_int_equal(instructions_at(1000 * (i + 1) + 999), want[i]);
	}
	assert_null(rec_find(&rec, CPU1 "Cycles"));
	teardown();
}

static void test_differences(void **state)
{
	(void)state;
	setup_full(true, true, true, false);
	read_counters(1000, 123456, EVENT_ABSENT, true);  /* since the counter was enabled: the time is unknown */
	read_counters(1000, EVENT_ABSENT, 123, true);
	read_counters(2000, 300, EVENT_ABSENT, true);
	read_counters(2000, EVENT_ABSENT, 200, true);
	read_counters(3000, 300, EVENT_ABSENT, true);
	read_counters(4000, 0, EVENT_ABSENT, true);       /* stood still */
	read_counters(5000, 10, EVENT_ABSENT, true);
	assert_int_equal(instructions_at(1500), 300);
	assert_int_equal(rec_at(&rec, 1500, CPU1 "Cycles"), 200);
	assert_int_equal(instructions_at(2500), 600);
	assert_int_equal(instructions_at(3500), HISTORY_NULL);
	assert_int_equal(instructions_at(4500), 610);
	teardown();
}

/* Totals are read before the switch; the interval begins with it. A read without a switch has its own time. */
static void test_read_before_switch(void **state)
{
	(void)state;
	setup_full(true, true, true, false);
	read_counters(1000, 100, EVENT_ABSENT, false);
	sw(0, 1400, 1, 0, RUN_RUNNABLE, 700);
	read_counters(9000, 200, EVENT_ABSENT, false);
	sw(0, 9300, 1, 700, RUN_BLOCKED, 0);
	read_counters(10000, 250, EVENT_ABSENT, false);
	sw(0, 900000, 1, 0, RUN_RUNNABLE, 700);
	read_counters(950000, 260, EVENT_ABSENT, false);
	read_counters(960000, 270, EVENT_ABSENT, false);
	sw(0, 960000, 1, 700, RUN_BLOCKED, 0);
	assert_int_equal(instructions_at(1399), HISTORY_NULL);
	assert_int_equal(instructions_at(1400), 100);
	assert_int_equal(instructions_at(9299), 100);
	assert_int_equal(instructions_at(9300), 150);
	assert_int_equal(instructions_at(9999), 150);
	assert_int_equal(instructions_at(10000), 160);
	assert_int_equal(instructions_at(950000), 170);
	teardown();
}

/* Nothing is known after the last read. */
static void test_end(void **state)
{
	struct error err;
	(void)state;
	setup_full(true, true, true, false);
	read_counters(1000, 10, EVENT_ABSENT, false);
	read_counters(2000, 20, EVENT_ABSENT, false);
	sw(0, 2000, 1, 700, RUN_BLOCKED, 0);
	assert_int_equal(model_end(model, 0, 5000, &err), 0);
	assert_int_equal(instructions_at(1999), 10);
	assert_int_equal(instructions_at(2000), HISTORY_NULL);
	teardown();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_totals), cmocka_unit_test(test_failures), cmocka_unit_test(test_differences),
		cmocka_unit_test(test_read_before_switch), cmocka_unit_test(test_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
