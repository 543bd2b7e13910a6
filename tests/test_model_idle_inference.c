/* Idleness of a guest, inferred from the host's events. */
#include "model_exits.h"

static void test_halted(void **state)
{
	(void)state;
	setup_full(true, true, false, false);
	sw(0, 10, 0, 0, RUN_RUNNABLE, 154);
	enter(20);
	expect(VCPU, 20, VCPU_RUNNING);
	leave(30, SVM_HLT);
	expect(VCPU, 30, VCPU_VMM);
	sw(0, 40, 0, 154, RUN_BLOCKED, 0);
	expect(VCPU, 40, VCPU_IDLE);
	wake(0, 50, 0, 0, 154, 0);
	expect(VCPU, 50, VCPU_WAKING);
	sw(0, 60, 0, 0, RUN_RUNNABLE, 154);
	enter(70);
	leave(80, SVM_NPF);  /* a thread of the guest runs */
	expect(VCPU, 70, VCPU_RUNNING);
	sw(0, 90, 0, 154, RUN_RUNNABLE, 7);
	expect(VCPU, 90, VCPU_PREEMPTED);
	sw(0, 100, 0, 7, RUN_BLOCKED, 154);
	sw(0, 110, 0, 154, RUN_BLOCKED, 0);  /* its VMM works for it */
	expect(VCPU, 110, VCPU_HOST_BLOCKED);
	wake(0, 120, 0, 0, 154, 0);
	expect(VCPU, 120, VCPU_PREEMPTED);
	teardown();
}

/* The guest's own trace takes precedence; where its events are lost, a halt still proves idleness. */
static void test_traced(void **state)
{
	(void)state;
	setup_full(true, true, true, false);
	sw(0, 10, 0, 0, RUN_RUNNABLE, 154);
	enter(20);
	sw(1, 25, 0, 0, RUN_RUNNABLE, 6);
	leave(30, SVM_HLT);  /* a halt, although a thread is current */
	sw(0, 40, 0, 154, RUN_BLOCKED, 0);
	expect(VCPU, 40, VCPU_HOST_BLOCKED);
	struct event ev = event(50, EV_LOST, 0, -1);
	ev.lost.end = 60;
	feed(1, ev);
	expect(VCPU, 50, VCPU_IDLE);
	sw(0, 70, 0, 0, RUN_RUNNABLE, 154);
	enter(80);
	expect(VCPU, 80, VCPU_UNKNOWN);
	teardown();
}

/* The guest may have halted during the loss: unknown until its next VM entry. */
static void test_lost(void **state)
{
	(void)state;
	setup_full(true, true, false, false);
	sw(0, 10, 0, 0, RUN_RUNNABLE, 154);
	enter(20);
	leave(30, SVM_HLT);
	sw(0, 40, 0, 154, RUN_BLOCKED, 0);
	expect(VCPU, 40, VCPU_IDLE);
	struct event ev = event(50, EV_LOST, 0, -1);
	ev.lost.end = 60;
	feed(0, ev);
	expect(VCPU, 50, VCPU_UNKNOWN);
	wake(0, 70, 0, 0, 154, 0);
	expect(VCPU, 70, VCPU_UNKNOWN);
	sw(0, 80, 0, 0, RUN_RUNNABLE, 154);
	sw(0, 90, 0, 154, RUN_BLOCKED, 0);
	expect(VCPU, 90, VCPU_UNKNOWN);
	sw(0, 100, 0, 0, RUN_RUNNABLE, 154);
	enter(110);
	expect(VCPU, 110, VCPU_RUNNING);
	leave(120, SVM_NPF);
	sw(0, 130, 0, 154, RUN_BLOCKED, 0);
	expect(VCPU, 130, VCPU_HOST_BLOCKED);
	teardown();
}

/* A part of an episode after a halt: time in guest mode, ns, and the reason of the exit that ends it. */
struct episode_part { int64_t ns, reason; };

static int64_t feed_episode(void (*to)(void *arg, const struct event *ev), void *arg, int64_t t, int64_t vector,
                       const struct episode_part *part, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct event ev = kvm(t, EV_INJECT, vector, 0);
		if (i == 0)
			to(arg, &ev);
		ev = kvm(t, EV_VCPU_ENTRY, 0, 0);
		to(arg, &ev);
		t += part[i].ns;
		ev = kvm(t, EV_VCPU_EXIT, part[i].reason, KERNEL);
		to(arg, &ev);
		t += 100;
	}
	return t;
}

static void learn(void *arg, const struct event *ev)
{
	prescan_feed(arg, ev);
}

static void replay(void *arg, const struct event *ev)
{
	(void)arg;
	feed(0, *ev);
}

/* Prescans a device interrupt that wakes a thread, which sends a request after 1000 ns; the guest halts 200 ns after it
 * has finished. */
static void learn_device(struct prescan *s)
{
	static const struct episode_part with_thread[] = { { 1000, SVM_NPF }, { 500, SVM_HLT } },
	                                                 without_thread[] = { { 200, SVM_HLT } };
	int64_t t = 1000;
	struct event ev = event(100, EV_SWITCH, 0, -1);
	ev.sw.prev_tid = 0;
	ev.sw.next_tid = 154;
	prescan_feed(s, &ev);
	ev = kvm(200, EV_VCPU_ENTRY, 0, 0);
	prescan_feed(s, &ev);
	ev = kvm(500, EV_VCPU_EXIT, SVM_HLT, KERNEL);
	prescan_feed(s, &ev);
	for (int i = 0; i < 50; i++)
		t = feed_episode(learn, s, t, 40, with_thread, COUNT(with_thread));
	for (int i = 0; i < 5; i++)
		t = feed_episode(learn, s, t, 41, without_thread, COUNT(without_thread));
	prescan_finish(s);
}

static void test_estimate(void **state)
{
	(void)state;
	static const struct episode_part thread[] = { { 5000, SVM_NPF }, { 1000, SVM_HLT } }, none[] = { { 300, SVM_HLT } };
	static const struct episode_part late[] = { { 1600, SVM_HLT } }, later[] = { { 1601, SVM_HLT } };
	struct prescan s = PRESCAN_INIT;
	setup_full(true, true, false, false);
	learn_device(&s);
	assert_int_equal(model_begin(model, 0, 0, &s, NULL), 0);
	sw(0, 10, 0, 0, RUN_RUNNABLE, 154);
	enter(15);
	leave(18, SVM_NPF);  /* exit reasons are known after this exit */
	enter(20);
	leave(1020, SVM_HLT);
	expect(VCPU, 20, VCPU_RUNNING);
	expect(VCPU, 739, VCPU_RUNNING);
	expect(VCPU, 740, VCPU_IDLE);     /* seven fifths of the shortest time to a halt */
	feed_episode(replay, NULL, 10000, 40, thread, COUNT(thread));
	expect(VCPU, 10000, VCPU_IDLE);
	expect(VCPU, 10599, VCPU_IDLE);   /* six tenths of the time until its thread sends the next request */
	expect(VCPU, 10600, VCPU_RUNNING);
	expect(VCPU, 15000, VCPU_VMM);
	expect(VCPU, 15100, VCPU_RUNNING);
	expect(VCPU, 15819, VCPU_RUNNING);
	expect(VCPU, 15820, VCPU_IDLE);
	expect(VCPU, 16100, VCPU_VMM);
	feed_episode(replay, NULL, 20000, 41, none, COUNT(none));
	expect(VCPU, 20000, VCPU_IDLE);
	expect(VCPU, 20299, VCPU_IDLE);
	assert_int_equal(rec_sum(&rec, VCPU, VCPU_RUNNING, 20000, 20300), 0);
	/* Up to eight times the typical time of the idle thread, no thread ran. */
	feed_episode(replay, NULL, 30000, 41, late, COUNT(late));
	assert_int_equal(rec_sum(&rec, VCPU, VCPU_RUNNING, 30000, 31600), 0);
	feed_episode(replay, NULL, 40000, 41, later, COUNT(later));
	assert_int_equal(rec_sum(&rec, VCPU, VCPU_RUNNING, 40000, 41601), 1601 - 300 - 280);
	/* An interrupt that always wakes a thread has woken a thread even if the guest halts early. */
	feed_episode(replay, NULL, 50000, 40, (struct episode_part[]){ { 1000, SVM_HLT } }, 1);
	assert_int_equal(rec_sum(&rec, VCPU, VCPU_RUNNING, 50000, 51000), 1000 - 600 - 280);
	teardown();
	prescan_release(&s);
}

/* Prescans a timer interrupt that programs the timer after 100 ns; the guest halts 50 ns later, but every fifth
 * interrupt wakes a thread, which is in user space 300 ns later. */
static void learn_timer(struct prescan *s)
{
	static const struct episode_part without_thread[] = { { 100, SVM_MSR }, { 50, SVM_HLT } };
	static const struct episode_part thread[] = { { 100, SVM_MSR }, { 300, SVM_NPF }, { 200, SVM_HLT } };
	int64_t t = 1000;
	struct event ev = event(100, EV_SWITCH, 0, -1);
	ev.sw.prev_tid = 0;
	ev.sw.next_tid = 154;
	prescan_feed(s, &ev);
	ev = kvm(200, EV_VCPU_ENTRY, 0, 0);
	prescan_feed(s, &ev);
	ev = kvm(500, EV_VCPU_EXIT, SVM_HLT, KERNEL);
	prescan_feed(s, &ev);
	for (int i = 0; i < 50; i++)
		t = i % 5 ? feed_episode(learn, s, t, 236, without_thread, COUNT(without_thread))
		    : feed_episode(learn, s, t, 236, thread, COUNT(thread));
	prescan_finish(s);
}

/* Begins after the prescan: the vCPU has its CPU, and halts. */
static void begin_halted(const struct prescan *s)
{
	assert_int_equal(model_begin(model, 0, 0, s, NULL), 0);
	sw(0, 10, 0, 0, RUN_RUNNABLE, 154);
	enter(20);
	leave(1020, SVM_HLT);
}

static void begin_learnt(struct prescan *s, void (*learn_some)(struct prescan *s))
{
	setup_full(true, true, false, false);
	learn_some(s);
	begin_halted(s);
}

static void end_learnt(struct prescan *s)
{
	teardown();
	prescan_release(s);
}

static int64_t ran(int64_t t, const struct episode_part *part, size_t n)
{
	int64_t end = feed_episode(replay, NULL, t, 236, part, n);
	return rec_sum(&rec, VCPU, VCPU_RUNNING, t, end);
}
#define RAN(t, ...) ran(t, (struct episode_part[]){ __VA_ARGS__ }, COUNT(((struct episode_part[]){ __VA_ARGS__ })))

/* The path out of a timer interrupt is long, but no thread runs on it; after that, the time of the halt decides. */
static void test_timer(void **state)
{
	(void)state;
	struct prescan s = PRESCAN_INIT;
	begin_learnt(&s, learn_timer);
	assert_int_equal(RAN(10000, { 100, SVM_MSR }, { 50, SVM_HLT }), 0);
	assert_int_equal(RAN(20000, { 9000, SVM_MSR }, { 50, SVM_HLT }), 0);
	assert_int_equal(RAN(40000, { 5000, SVM_INTR }, { 5000, SVM_MSR }, { 50, SVM_HLT }), 0);
	assert_int_equal(RAN(60000, { 100, SVM_MSR }, { 125, SVM_HLT }), 0);
	assert_int_equal(RAN(70000, { 100, SVM_MSR }, { 200, SVM_HLT }), 200 - 75 - 70);
	assert_int_equal(RAN(80000, { 100, SVM_MSR }, { 225, SVM_INTR }, { 10, SVM_NPF }, { 60, SVM_HLT }), 10);
	assert_int_equal(RAN(90000, { 100, SVM_MSR }, { 226, SVM_INTR }, { 10, SVM_NPF }, { 60, SVM_HLT }), 226 - 75 + 10);
	end_learnt(&s);
}

/* An IPI to a sibling, or a wakeup of its thread, may come from an interrupt handler while no thread runs: the time
 * decides. */
static void test_sends(void **state)
{
	(void)state;
	const struct event ipi = kvm(30110, EV_IPI, 0, 0);
	struct prescan s = PRESCAN_INIT;
	begin_learnt(&s, learn_timer);
	feed(0, kvm(30000, EV_INJECT, 236, 0));
	enter(30000);
	leave(30100, SVM_MSR);
	feed(0, ipi);
	enter(30200);
	leave(31200, SVM_INTR);
	expect(VCPU, 30099, VCPU_IDLE);
	expect(VCPU, 30274, VCPU_IDLE);
	expect(VCPU, 30275, VCPU_RUNNING);
	sw(0, 31300, 0, 154, RUN_RUNNABLE, 7);
	expect(VCPU, 31300, VCPU_PREEMPTED);
	end_learnt(&s);
}

/* If an interrupt always wakes a thread that sends an IPI, a write does not show that no thread runs. */
static void test_sends_learnt(void **state)
{
	(void)state;
	struct prescan s = PRESCAN_INIT;
	setup_full(true, true, false, false);
	struct event ev = event(100, EV_SWITCH, 0, -1);
	ev.sw.prev_tid = 0;
	ev.sw.next_tid = 154;
	prescan_feed(&s, &ev);
	for (int64_t i = 0, t = 1000; i < 50; i++, t += 5000) {
		const struct event each[] = {
			kvm(t, EV_VCPU_EXIT, SVM_HLT, 0), kvm(t + 1000, EV_INJECT, 251, 0), kvm(t + 1000, EV_VCPU_ENTRY, 0, 0),
			kvm(t + 2000, EV_VCPU_EXIT, SVM_MSR, KERNEL), kvm(t + 2010, EV_IPI, 0, 0), kvm(t + 2100, EV_VCPU_ENTRY, 0, 0),
		};
		for (size_t k = 0; k < COUNT(each); k++)
			prescan_feed(&s, &each[k]);
	}
	prescan_finish(&s);
	begin_halted(&s);
	feed(0, kvm(30000, EV_INJECT, 251, 0));
	enter(30000);
	leave(34000, SVM_MSR);
	expect(VCPU, 30599, VCPU_IDLE);
	expect(VCPU, 30600, VCPU_RUNNING);
	end_learnt(&s);
}

/* Interrupted at its halt, the guest is idle, although a thread ran before. */
static void test_at_halt(void **state)
{
	(void)state;
	struct prescan s = PRESCAN_INIT;
	begin_learnt(&s, learn_timer);
	enter(2000);
	feed(0, kvm(3000, EV_VCPU_EXIT, SVM_INTR, USER));
	enter(3100);
	feed(0, kvm(4100, EV_VCPU_EXIT, SVM_INTR, HALT_AT + 1));
	expect(VCPU, 4029, VCPU_RUNNING);
	expect(VCPU, 4030, VCPU_IDLE);
	sw(0, 4200, 0, 154, RUN_RUNNABLE, 7);
	expect(VCPU, 4200, VCPU_IDLE);
	sw(0, 5000, 0, 7, RUN_BLOCKED, 154);
	enter(5100);
	feed(0, kvm(9000, EV_VCPU_EXIT, SVM_INTR, HALT_AT + 1));  /* still at the halt */
	assert_int_equal(rec_sum(&rec, VCPU, VCPU_RUNNING, 5100, 9000), 0);
	enter(9100);
	feed(0, kvm(9900, EV_VCPU_EXIT, SVM_INTR, HALT_AT + 100));
	expect(VCPU, 9149, VCPU_IDLE);
	expect(VCPU, 9150, VCPU_RUNNING);
	end_learnt(&s);
}

/* An interruption is no evidence, except in user space: then a thread ran. */
static void test_interrupted(void **state)
{
	(void)state;
	struct prescan s = PRESCAN_INIT;
	begin_learnt(&s, learn_device);
	feed(0, kvm(2000, EV_INJECT, 40, 0));
	enter(2000);
	leave(2900, SVM_INTR);
	expect(VCPU, 2899, VCPU_IDLE);
	sw(0, 2950, 0, 154, RUN_RUNNABLE, 7);
	expect(VCPU, 2950, VCPU_IDLE);
	sw(0, 3000, 0, 7, RUN_BLOCKED, 154);
	enter(3100);
	feed(0, kvm(4000, EV_VCPU_EXIT, SVM_INTR, USER));
	expect(VCPU, 3999, VCPU_RUNNING);
	sw(0, 4050, 0, 154, RUN_RUNNABLE, 7);
	expect(VCPU, 4050, VCPU_PREEMPTED);
	end_learnt(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_halted), cmocka_unit_test(test_traced), cmocka_unit_test(test_lost),
		cmocka_unit_test(test_estimate), cmocka_unit_test(test_timer), cmocka_unit_test(test_sends),
		cmocka_unit_test(test_sends_learnt), cmocka_unit_test(test_at_halt), cmocka_unit_test(test_interrupted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
