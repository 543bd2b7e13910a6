/* The steal clock of a guest as a check of its host's trace. */
#include "model/inference/steal_check.h"
#include "model/state/state.h"
#include "model_events.h"

#define MS 1000000

static void read_clock(int64_t t, int64_t ns)
{
	struct event ev = event(t, EV_STEAL, 0, 700);
	ev.steal.ns = ns;
	ev.steal.own = 1;
	feed(1, ev);
}

/* Lets burnP6 take the vCPU's CPU for `taken` between two reads of a clock that rises by `rises`; ns. Returns the code of
 * the only note. */
static enum note_code check(int64_t taken, int64_t rises, char text[NOTE_TEXT])
{
	struct notes notes = { 0 };
	setup_full(true, true, true, false);
	sw(0, 1 * MS, 0, 0, RUN_RUNNABLE, 154);
	simple(0, 2 * MS, EV_VCPU_ENTRY, 0, 154);
	sw(1, 3 * MS, 0, 0, RUN_RUNNABLE, 700);
	read_clock(4 * MS, 500);
	simple(0, 5 * MS, EV_VCPU_EXIT, 0, 154);
	sw(0, 6 * MS, 0, 154, RUN_RUNNABLE, 216);
	sw(0, 6 * MS + taken, 0, 216, RUN_RUNNABLE, 154);
	simple(0, 7 * MS + taken, EV_VCPU_ENTRY, 0, 154);
	read_clock(8 * MS + taken, 500 + rises);
	read_clock(9 * MS + taken, 400);  /* a stale read */
	steal_check_add_notes(model, model->machine[1], &notes);
	const enum note_code code = notes.len == 1 ? notes.item[0].code : NOTE_CODE_COUNT;
	if (notes.len)
		snprintf(text, NOTE_TEXT, "%s", notes.item[0].text);
	notes_release(&notes);
	teardown();
	return code;
}

static void test_agreement(void **state)
{
	(void)state;
	char text[NOTE_TEXT];
	assert_int_equal(check(50 * MS, 50 * MS, text), NOTE_STEAL_CLOCK_CHECK);
	assert_non_null(strstr(text, "vCPU0 rose by 50.0 ms, the host's trace shows 50.0 ms"));
	assert_int_equal(check(50 * MS, 52 * MS, text), NOTE_STEAL_CLOCK_CHECK);
	assert_int_equal(check(1000 * MS, 985 * MS, text), NOTE_STEAL_CLOCK_CHECK);
	assert_int_equal(check(1000 * MS, 975 * MS, text), NOTE_STEAL_CLOCK_DIFFERS);
	assert_int_equal(check(50 * MS, 20 * MS, text), NOTE_STEAL_CLOCK_DIFFERS);
	assert_int_equal(check(50 * MS, 90 * MS, text), NOTE_STEAL_CLOCK_DIFFERS);
	assert_non_null(strstr(text, "rose by 90.0 ms, the host's trace shows 50.0 ms (unknown: 0.0 ms)"));
}

/* Lost events of the host: the unknown time may contain any part of the rise. */
static void test_unknown_time(void **state)
{
	(void)state;
	struct notes notes = { 0 };
	setup_full(true, true, true, false);
	sw(0, 1 * MS, 0, 0, RUN_RUNNABLE, 154);
	simple(0, 2 * MS, EV_VCPU_ENTRY, 0, 154);
	read_clock(4 * MS, 500);
	struct event lost = event(5 * MS, EV_LOST, 0, -1);
	lost.lost.end = 30 * MS;
	lost.lost.count = 100;
	feed(0, lost);
	sw(0, 40 * MS, 0, 216, RUN_RUNNABLE, 154);
	simple(0, 41 * MS, EV_VCPU_ENTRY, 0, 154);
	read_clock(42 * MS, 500 + 10 * MS);
	steal_check_add_notes(model, model->machine[1], &notes);
	assert_int_equal(notes.len, 1);
	assert_int_equal(notes.item[0].code, NOTE_STEAL_CLOCK_CHECK);
	notes_release(&notes);
	teardown();
}

/* A hypervisor without a clock leaves its memory zero. */
static void test_not_offered(void **state)
{
	(void)state;
	struct notes notes = { 0 };
	setup_full(true, true, true, false);
	sw(0, 1 * MS, 0, 0, RUN_RUNNABLE, 154);
	read_clock(4 * MS, 0);
	sw(0, 6 * MS, 0, 154, RUN_RUNNABLE, 216);
	sw(0, 90 * MS, 0, 216, RUN_RUNNABLE, 154);
	read_clock(95 * MS, 0);
	steal_check_add_notes(model, model->machine[1], &notes);
	assert_int_equal(notes.len, 0);
	teardown();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_agreement), cmocka_unit_test(test_unknown_time), cmocka_unit_test(test_not_offered),
	};
	return cmocka_run_group_tests_name("model steal check", tests, NULL, NULL);
}
