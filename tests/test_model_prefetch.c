/* Next actions of a guest after an interruption or a write show whether it was idle before. */
#include "model_events.h"

#include "base/mem.h"
#include "model/state/exit_reasons.h"

enum { SVM_INTR = 0x60, SVM_HLT = 0x78, SVM_MSR = 0x7c, SVM_NPF = 0x400, AT_HALT = -1, MSR_IPI = -2, LOCK_HLT = -3 };
#define KERNEL (-1000)
#define HALT_AT (-5000)
#define LOCK_AT (-9000)
#define LEAST 50             /* shortest time from the interrupt's write to the halt of an idle guest, ns */
#define TAIL 70              /* idle time before a halt, ns */
#define HEAD 75              /* time from the write until the guest's thread runs, if one does, ns */

struct part { int64_t ns, how; };

static struct event *script;
static size_t n, cap;
static int64_t now;

static void put(uint16_t kind, int64_t reason)
{
	struct event ev = event(now, kind, 0, 154);
	if (kind == EV_INJECT)
		ev.inject.vector = reason;
	if (kind == EV_VCPU_EXIT) {
		ev.vcpu_exit.isa = ISA_SVM;
		ev.vcpu_exit.reason = reason == AT_HALT ? SVM_INTR : reason == MSR_IPI ? SVM_MSR : reason == LOCK_HLT ? SVM_HLT : reason;
		ev.vcpu_exit.ip = reason == SVM_HLT ? HALT_AT : reason == LOCK_HLT ? LOCK_AT : reason == AT_HALT ? HALT_AT + 1 : KERNEL;
	}
	*ARRAY_PUSH(script, n, cap) = ev;
}

/* Feeds an interrupt (-1: another event) that ends a halt; then the guest's parts, each entered 100 ns after the
 * previous one. Returns the start. */
static int64_t woken(int64_t vector, const struct part *part, size_t parts)
{
	now += 1000;
	const int64_t begin = now;
	if (vector >= 0)
		put(EV_INJECT, vector);
	for (size_t i = 0; i < parts; i++) {
		put(EV_VCPU_ENTRY, 0);
		now += part[i].ns;
		put(EV_VCPU_EXIT, part[i].how);
		if (part[i].how == MSR_IPI)
			put(EV_IPI, 0);
		now += 100;
	}
	return begin;
}
#define WOKEN(vector, ...) woken(vector, (struct part[]){ __VA_ARGS__ }, COUNT(((struct part[]){ __VA_ARGS__ })))

static void begin(void)
{
	n = 0;
	now = 200;
	put(EV_VCPU_ENTRY, 0);
	now = 500;
	put(EV_VCPU_EXIT, SVM_HLT);
	for (int i = 0; i < 100; i++)
		WOKEN(236, { 100, SVM_MSR }, { LEAST, SVM_HLT });
}

/* Prescans all events, then replays them. */
static void play(struct prescan *s)
{
	struct event ev = event(100, EV_SWITCH, 0, 0);
	ev.sw.prev_tid = 0;
	ev.sw.next_tid = 154;
	prescan_feed(s, &ev);
	for (size_t i = 0; i < n; i++)
		prescan_feed(s, &script[i]);
	prescan_finish(s);
	setup_full(true, true, false, false);
	assert_int_equal(model_begin(model, 0, 0, s, NULL), 0);
	sw(0, 100, 0, 0, RUN_RUNNABLE, 154);
	for (size_t i = 0; i < n; i++)
		feed(0, script[i]);
}

static void over(struct prescan *s)
{
	teardown();
	prescan_release(s);
	free(script);
	script = NULL;
	n = cap = 0;
}

/* Returns the time spent RUNNING in an interval, ns. */
static int64_t ran_in(int64_t from, int64_t to)
{
	return rec_sum(&rec, VCPU, VCPU_RUNNING, from, to);
}

/* The guest is interrupted on its path, and the next time at its halt: it stayed idle, however long it was held up. */
static void test_reaches_halt(void **state)
{
	(void)state;
	struct prescan s = PRESCAN_INIT;
	begin();
	const int64_t at = WOKEN(236, { 100, SVM_MSR }, { 5000, SVM_INTR }, { 100, SVM_INTR }, { 90, AT_HALT }, { 5, SVM_HLT });
	play(&s);
	assert_int_equal(ran_in(at, now), 0);
	over(&s);
}

/* A thread ran; the path to the halt is as long in two parts as in one part. */
static void test_tail_in_pieces(void **state)
{
	(void)state;
	struct prescan s = PRESCAN_INIT;
	begin();
	const int64_t at = WOKEN(236, { 100, SVM_MSR }, { 1000, SVM_NPF }, { 500, SVM_INTR }, { 20, SVM_HLT });
	const int64_t none = WOKEN(236, { 100, SVM_MSR }, { 1000, SVM_NPF }, { 500, SVM_INTR }, { 80, SVM_HLT });
	play(&s);
	assert_int_equal(ran_in(at, none), 1000 - HEAD + 500 - (TAIL - 20));
	assert_int_equal(ran_in(none, now), 1000 - HEAD + 500 + 80 - TAIL);
	over(&s);
}

/* Another interrupt is injected first: the next action is unknown. */
static void test_other_interrupt(void **state)
{
	(void)state;
	struct prescan s = PRESCAN_INIT;
	begin();
	const int64_t at = WOKEN(236, { 100, SVM_MSR }, { 5000, SVM_INTR });
	now -= 1000;
	const int64_t next = WOKEN(236, { 100, AT_HALT }, { 5, SVM_HLT });
	play(&s);
	assert_int_equal(ran_in(at, next - 1), 5000 - HEAD);
	over(&s);
}

/* An interrupt that always wakes a thread has woken none if a write follows instead, interrupted or not. */
static void test_reaches_write(void **state)
{
	(void)state;
	struct prescan s = PRESCAN_INIT;
	begin();
	for (int i = 0; i < 50; i++)
		if (i % 5)
			WOKEN(40, { 1000, SVM_NPF }, { 200, SVM_HLT });
		else
			WOKEN(40, { 2000, SVM_HLT });
	const int64_t at = WOKEN(40, { 1000, SVM_INTR }, { 500, SVM_MSR }, { LEAST, SVM_HLT });
	/* the write comes so late that a thread would have continued; or not */
	const int64_t held = WOKEN(40, { 12501, SVM_INTR }, { 500, SVM_MSR }, { LEAST, SVM_HLT });
	const int64_t thread = WOKEN(40, { 12500, SVM_INTR }, { 500, SVM_MSR }, { LEAST, SVM_HLT });
	play(&s);
	assert_int_equal(ran_in(at, held), 0);
	assert_int_equal(ran_in(held, thread), 0);
	assert_true(ran_in(thread, now) > 12000);
	over(&s);
}

/* In a guest with threads that send IPIs, a write without an IPI is by the idle loop. Without recorded IPIs nothing
 * changes. */
static void test_sends(void **state)
{
	(void)state;
	for (int sends = 0; sends < 2; sends++) {
		struct prescan s = PRESCAN_INIT;
		begin();
		if (sends)
			WOKEN(236, { 100, SVM_MSR }, { 1000, MSR_IPI }, { LEAST, SVM_HLT });
		const int64_t at = WOKEN(236, { 100, SVM_MSR }, { 300, SVM_MSR }, { LEAST, SVM_HLT });
		play(&s);
		assert_int_equal(ran_in(at, now), sends ? 0 : 300 - HEAD);
		over(&s);
	}
}

/* An interrupt handler wakes a thread on a sibling; no thread runs on this vCPU. */
static void test_idle_sends(void **state)
{
	(void)state;
	struct prescan s = PRESCAN_INIT;
	begin();
	const int64_t at = WOKEN(236, { 100, MSR_IPI }, { 120, SVM_HLT });
	play(&s);
	assert_int_equal(ran_in(at, now), 0);
	over(&s);
}

/* A thread sets a timer and sleeps: the switch to the idle thread lies between its write and the halt. */
static void test_thread_sets_timer(void **state)
{
	(void)state;
	struct prescan s = PRESCAN_INIT;
	begin();
	const int64_t thread = WOKEN(236, { 100, SVM_MSR }, { 150, SVM_MSR }, { 100, SVM_HLT });
	const int64_t tick = WOKEN(236, { 100, SVM_MSR }, { 150, SVM_MSR }, { 95, SVM_HLT });
	const int64_t much = WOKEN(236, { 100, SVM_MSR }, { 150, SVM_MSR }, { 191, SVM_HLT });
	play(&s);
	assert_int_equal(ran_in(thread, tick), 150 - HEAD + 100 - TAIL);
	assert_int_equal(ran_in(tick, much), 0);
	assert_int_equal(ran_in(much, much + 350), 0);
	over(&s);
}

/* A thread wakes another thread and sleeps. */
static void test_thread_wakes(void **state)
{
	(void)state;
	struct prescan s = PRESCAN_INIT;
	begin();
	for (int i = 0; i < 200; i++)
		WOKEN(251, { 150, MSR_IPI }, { LEAST, SVM_HLT });
	const int64_t at = WOKEN(251, { 150, MSR_IPI }, { 100, SVM_HLT });
	play(&s);
	assert_int_equal(ran_in(at, now), 150 - 90 + 100 - TAIL);  /* 6/10 of the time until the thread does so */
	over(&s);
}

/* Begins with a thread that only sleeps, repeatedly; the idle loop rarely stops the tick. */
static void begin_sleeper(void)
{
	begin();
	n = 2;  /* only its first halt */
	for (int i = 0; i < 320; i++)
		if (i % 64)
			WOKEN(236, { 100, SVM_MSR }, { 150, SVM_MSR }, { 100, SVM_HLT });
		else
			WOKEN(236, { 100, SVM_MSR }, { LEAST, SVM_HLT });
}
#define HEAD_TIMER 60  /* 4/10 of the time until the thread sets its timer, ns */

static void test_sleeps_always(void **state)
{
	(void)state;
	struct prescan s = PRESCAN_INIT;
	begin_sleeper();
	const int64_t at = WOKEN(236, { 100, SVM_MSR }, { 150, SVM_MSR }, { 100, SVM_HLT });
	play(&s);
	assert_int_equal(ran_in(at, now), 150 - HEAD_TIMER + 100 - TAIL);
	over(&s);
}

/* The timer expires before the thread reaches the halt: an idle loop would not have waited. If another interrupt is
 * injected first, the state is unknown. */
static void test_sleeps_shortly(void **state)
{
	(void)state;
	for (int other = 0; other < 2; other++) {
		struct prescan s = PRESCAN_INIT;
		begin_sleeper();
		const int64_t at = WOKEN(236, { 100, SVM_MSR }, { 150, SVM_MSR }, { 30, SVM_INTR });
		now -= 1000;
		WOKEN(other ? 40 : 236, { 100, other ? SVM_NPF : SVM_MSR }, { LEAST, SVM_HLT });
		play(&s);
		assert_int_equal(ran_in(at, at + 350), other ? 0 : 150 - HEAD_TIMER);
		over(&s);
	}
}

/* A thread that waits for a lock halts until the holder's vCPU wakes it: no interrupt ends such a halt. If injections
 * are not recorded, or rarely, because the CPU injects them, every halt counts as idle. */
static void test_waits_for_lock(void **state)
{
	(void)state;
	for (int blind = 0; blind < 3; blind++) {
		struct prescan s = PRESCAN_INIT;
		begin();
		for (int i = 0; i < 3; i++) {
			WOKEN(236, { 100, SVM_MSR }, { 1000, SVM_NPF }, { 500, LOCK_HLT });
			WOKEN(-1, { 300, SVM_NPF }, { 200, SVM_HLT });
		}
		const int64_t at = WOKEN(236, { 100, SVM_MSR }, { 1000, SVM_NPF }, { 500, LOCK_HLT });
		for (size_t i = 0, seen = 0; i < n && blind; i++)
			if (script[i].kind == EV_INJECT && (blind == 1 || ++seen > 20))
				script[i].kind = EV_USERSPACE_EXIT;
		play(&s);
		if (!blind)
			assert_int_equal(ran_in(at, now), 1000 - HEAD + 500);
		sw(0, now + 10, 0, 154, RUN_BLOCKED, 7);
		expect(VCPU, now + 10, blind ? VCPU_IDLE : VCPU_HOST_BLOCKED);
		wake(0, now + 20, 0, 7, 154, 0);
		expect(VCPU, now + 20, blind ? VCPU_WAKING : VCPU_PREEMPTED);
		over(&s);
	}
}

/* After the second write the interrupt handler has finished: a third write soon afterwards does not mean that a thread
 * runs earlier. */
static void test_later_writes(void **state)
{
	(void)state;
	struct prescan s = PRESCAN_INIT;
	begin();
	for (int i = 0; i < 50; i++) {
		WOKEN(236, { 100, SVM_MSR }, { 40, SVM_MSR }, { 20, SVM_MSR }, { LEAST, SVM_HLT });
		WOKEN(236, { 100, SVM_MSR }, { 40, SVM_MSR }, { LEAST, SVM_HLT });
	}
	const int64_t at = WOKEN(236, { 100, SVM_MSR }, { 40, SVM_MSR }, { 1000, SVM_NPF }, { LEAST, SVM_HLT });
	play(&s);
	assert_int_equal(ran_in(at, now), 1000 - HEAD);
	over(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reaches_halt), cmocka_unit_test(test_tail_in_pieces),
		cmocka_unit_test(test_other_interrupt), cmocka_unit_test(test_reaches_write),
		cmocka_unit_test(test_sends), cmocka_unit_test(test_idle_sends),
		cmocka_unit_test(test_thread_sets_timer), cmocka_unit_test(test_later_writes),
		cmocka_unit_test(test_thread_wakes), cmocka_unit_test(test_sleeps_always), cmocka_unit_test(test_sleeps_shortly),
		    cmocka_unit_test(test_waits_for_lock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
