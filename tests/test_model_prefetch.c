/* What a guest does next tells what it did before: idle or not, when an interrupt or a write of its own stopped it. */
#include "model_events.h"

#include "base/mem.h"
#include "model/state/exit_reasons.h"

enum { SVM_INTR = 0x60, SVM_HLT = 0x78, SVM_MSR = 0x7c, SVM_NPF = 0x400, AT_HALT = -1, MSR_IPI = -2, LOCK_HLT = -3 };
#define KERNEL (-1000)
#define HALT_AT (-5000)
#define LOCK_AT (-9000)
#define LEAST 50             /* ns: a guest with nothing to do halts so soon after its interrupt's write */
#define TAIL 70              /* so long before a halt it has nothing to do any more */
#define HEAD 75              /* so long after the write its thread runs, if one does */

struct part { int64_t ns, how; };

static struct event *script;
static size_t n, cap;
static int64_t now;

static void put(uint16_t kind, int64_t reason)
{
	struct event ev = event(now, kind, 0, 154);
	if (kind == EV_INJECT)
		ev.inject.vector = reason;
	if (kind == EV_KVM_EXIT) {
		ev.kvm.isa = ISA_SVM;
		ev.kvm.reason = reason == AT_HALT ? SVM_INTR : reason == MSR_IPI ? SVM_MSR : reason == LOCK_HLT ? SVM_HLT : reason;
		ev.kvm.ip = reason == SVM_HLT ? HALT_AT : reason == LOCK_HLT ? LOCK_AT : reason == AT_HALT ? HALT_AT + 1 : KERNEL;
	}
	*ARRAY_PUSH(script, n, cap) = ev;
}

/* An interrupt (-1: something else) ends a halt; then what the guest does: each part is entered 100 ns after the last one.
 * When it began. */
static int64_t woken(int64_t vector, const struct part *part, size_t parts)
{
	now += 1000;
	const int64_t begin = now;
	if (vector >= 0)
		put(EV_INJECT, vector);
	for (size_t i = 0; i < parts; i++) {
		put(EV_KVM_ENTRY, 0);
		now += part[i].ns;
		put(EV_KVM_EXIT, part[i].how);
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
	put(EV_KVM_ENTRY, 0);
	now = 500;
	put(EV_KVM_EXIT, SVM_HLT);
	for (int i = 0; i < 100; i++)
		WOKEN(236, { 100, SVM_MSR }, { LEAST, SVM_HLT });
}

/* Looks ahead at all of it, then replays it. */
static void play(struct start *s)
{
	struct event ev = event(100, EV_SWITCH, 0, 0);
	ev.sw.prev_tid = 0;
	ev.sw.next_tid = 154;
	start_feed(s, &ev);
	for (size_t i = 0; i < n; i++)
		start_feed(s, &script[i]);
	start_finish(s);
	setup_full(true, true, false, false);
	assert_int_equal(model_begin(model, 0, 0, s, NULL), 0);
	sw(0, 100, 0, 0, RUN_RUNNABLE, 154);
	for (size_t i = 0; i < n; i++)
		feed(0, script[i]);
}

static void over(struct start *s)
{
	teardown();
	start_release(s);
	free(script);
	script = NULL;
	n = cap = 0;
}

/* How long it ran between two of the moments. */
static int64_t ran_in(int64_t from, int64_t to)
{
	return rec_sum(&rec, VCPU, VCPU_RUNNING, from, to);
}

/* Interrupted on its way, and the next time at its halt: it never left that way, however long it was held up. */
static void test_reaches_halt(void **state)
{
	(void)state;
	struct start s = START_INIT;
	begin();
	const int64_t at = WOKEN(236, { 100, SVM_MSR }, { 5000, SVM_INTR }, { 100, SVM_INTR }, { 90, AT_HALT }, { 5, SVM_HLT });
	play(&s);
	assert_int_equal(ran_in(at, now), 0);
	over(&s);
}

/* A thread ran; the way to the halt, which an interrupt cut in two, is as long as in one piece. */
static void test_tail_in_pieces(void **state)
{
	(void)state;
	struct start s = START_INIT;
	begin();
	const int64_t at = WOKEN(236, { 100, SVM_MSR }, { 1000, SVM_NPF }, { 500, SVM_INTR }, { 20, SVM_HLT });
	const int64_t none = WOKEN(236, { 100, SVM_MSR }, { 1000, SVM_NPF }, { 500, SVM_INTR }, { 80, SVM_HLT });
	play(&s);
	assert_int_equal(ran_in(at, none), 1000 - HEAD + 500 - (TAIL - 20));
	assert_int_equal(ran_in(none, now), 1000 - HEAD + 500 + 80 - TAIL);
	over(&s);
}

/* What comes in first is another interrupt: nobody knows. */
static void test_other_interrupt(void **state)
{
	(void)state;
	struct start s = START_INIT;
	begin();
	const int64_t at = WOKEN(236, { 100, SVM_MSR }, { 5000, SVM_INTR });
	now -= 1000;
	const int64_t next = WOKEN(236, { 100, AT_HALT }, { 5, SVM_HLT });
	play(&s);
	assert_int_equal(ran_in(at, next - 1), 5000 - HEAD);
	over(&s);
}

/* Where an interrupt always wakes a thread, one that comes to write instead, interrupted or not, has woken none. */
static void test_reaches_write(void **state)
{
	(void)state;
	struct start s = START_INIT;
	begin();
	for (int i = 0; i < 50; i++)
		if (i % 5)
			WOKEN(40, { 1000, SVM_NPF }, { 200, SVM_HLT });
		else
			WOKEN(40, { 2000, SVM_HLT });
	const int64_t at = WOKEN(40, { 1000, SVM_INTR }, { 500, SVM_MSR }, { LEAST, SVM_HLT });
	/* Held up for so long that a thread would have gone on for longer; or not. */
	const int64_t held = WOKEN(40, { 12501, SVM_INTR }, { 500, SVM_MSR }, { LEAST, SVM_HLT });
	const int64_t thread = WOKEN(40, { 12500, SVM_INTR }, { 500, SVM_MSR }, { LEAST, SVM_HLT });
	play(&s);
	assert_int_equal(ran_in(at, held), 0);
	assert_int_equal(ran_in(held, thread), 0);
	assert_true(ran_in(thread, now) > 12000);
	over(&s);
}

/* A guest whose threads send interrupts: what sends none is the idle loop's.  The rest is the same without these. */
static void test_sends(void **state)
{
	(void)state;
	for (int sends = 0; sends < 2; sends++) {
		struct start s = START_INIT;
		begin();
		if (sends)
			WOKEN(236, { 100, SVM_MSR }, { 1000, MSR_IPI }, { LEAST, SVM_HLT });
		const int64_t at = WOKEN(236, { 100, SVM_MSR }, { 300, SVM_MSR }, { LEAST, SVM_HLT });
		play(&s);
		assert_int_equal(ran_in(at, now), sends ? 0 : 300 - HEAD);
		over(&s);
	}
}

/* An interrupt's handler wakes a thread of a sibling; here, none runs. */
static void test_idle_sends(void **state)
{
	(void)state;
	struct start s = START_INIT;
	begin();
	const int64_t at = WOKEN(236, { 100, MSR_IPI }, { 120, SVM_HLT });
	play(&s);
	assert_int_equal(ran_in(at, now), 0);
	over(&s);
}

/* A thread sets a timer and sleeps: between its write and the halt is the switch to the idle thread. */
static void test_thread_sets_timer(void **state)
{
	(void)state;
	struct start s = START_INIT;
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

/* It wakes another one and sleeps. */
static void test_thread_wakes(void **state)
{
	(void)state;
	struct start s = START_INIT;
	begin();
	for (int i = 0; i < 200; i++)
		WOKEN(251, { 150, MSR_IPI }, { LEAST, SVM_HLT });
	const int64_t at = WOKEN(251, { 150, MSR_IPI }, { 100, SVM_HLT });
	play(&s);
	assert_int_equal(ran_in(at, now), 150 - 90 + 100 - TAIL);  /* six tenths of the time until it does so */
	over(&s);
}

/* A thread that does nothing but sleep, over and over; hardly ever is there an idle loop that stops the tick. */
static void begin_sleeper(void)
{
	begin();
	n = 2;  /* its first halt only */
	for (int i = 0; i < 320; i++)
		if (i % 64)
			WOKEN(236, { 100, SVM_MSR }, { 150, SVM_MSR }, { 100, SVM_HLT });
		else
			WOKEN(236, { 100, SVM_MSR }, { LEAST, SVM_HLT });
}
#define HEAD_TIMER 60  /* ns: four tenths of the time until it sets its timer */

static void test_sleeps_always(void **state)
{
	(void)state;
	struct start s = START_INIT;
	begin_sleeper();
	const int64_t at = WOKEN(236, { 100, SVM_MSR }, { 150, SVM_MSR }, { 100, SVM_HLT });
	play(&s);
	assert_int_equal(ran_in(at, now), 150 - HEAD_TIMER + 100 - TAIL);
	over(&s);
}

/* Its timer expires before it got to the halt: an idle loop would not have waited for that.  If it is another interrupt that
 * comes in, nobody knows. */
static void test_sleeps_shortly(void **state)
{
	(void)state;
	for (int other = 0; other < 2; other++) {
		struct start s = START_INIT;
		begin_sleeper();
		const int64_t at = WOKEN(236, { 100, SVM_MSR }, { 150, SVM_MSR }, { 30, SVM_INTR });
		now -= 1000;
		WOKEN(other ? 40 : 236, { 100, other ? SVM_NPF : SVM_MSR }, { LEAST, SVM_HLT });
		play(&s);
		assert_int_equal(ran_in(at, at + 350), other ? 0 : 150 - HEAD_TIMER);
		over(&s);
	}
}

/* A thread that waits for a lock halts, until the holder's vCPU wakes it: no interrupt ever ends such a halt.  Where
 * interrupts are not recorded, or but a few since the processor injects them, a halt is a halt. */
static void test_waits_for_lock(void **state)
{
	(void)state;
	for (int blind = 0; blind < 3; blind++) {
		struct start s = START_INIT;
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

/* After the second write the interrupt is over: that a third one follows soon does not make a thread run sooner. */
static void test_later_writes(void **state)
{
	(void)state;
	struct start s = START_INIT;
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
		cmocka_unit_test(test_thread_wakes), cmocka_unit_test(test_sleeps_always), cmocka_unit_test(test_sleeps_shortly), cmocka_unit_test(test_waits_for_lock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
