/* What the host alone tells of a guest: when it has nothing to do. */
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
	leave(80, SVM_NPF);  /* a thread of it runs */
	expect(VCPU, 70, VCPU_RUNNING);
	sw(0, 90, 0, 154, RUN_RUNNABLE, 7);
	expect(VCPU, 90, VCPU_PREEMPTED);
	sw(0, 100, 0, 7, RUN_BLOCKED, 154);
	sw(0, 110, 0, 154, RUN_BLOCKED, 0);  /* its monitor works for it */
	expect(VCPU, 110, VCPU_HOST_BLOCKED);
	wake(0, 120, 0, 0, 154, 0);
	expect(VCPU, 120, VCPU_PREEMPTED);
	teardown();
}

/* Where its own trace tells, that holds; where that is lost, a halt still proves that it is idle. */
static void test_traced(void **state)
{
	(void)state;
	setup_full(true, true, true, false);
	sw(0, 10, 0, 0, RUN_RUNNABLE, 154);
	enter(20);
	sw(1, 25, 0, 0, RUN_RUNNABLE, 6);
	leave(30, SVM_HLT);  /* so it says, and yet a thread is current */
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

/* Among what was lost it may have halted, or not: nobody knows which, until it is entered again. */
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

/* A stretch after a halt: an entry with an interrupt, exits, a halt again.  ns in guest mode, and why it ended. */
struct halt_part { int64_t ns, reason; };

static int64_t stretch(void (*to)(void *arg, const struct event *ev), void *arg, int64_t t, int64_t vector,
                       const struct halt_part *part, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct event ev = kvm(t, EV_INJECT, vector, 0);
		if (i == 0)
			to(arg, &ev);
		ev = kvm(t, EV_KVM_ENTRY, 0, 0);
		to(arg, &ev);
		t += part[i].ns;
		ev = kvm(t, EV_KVM_EXIT, part[i].reason, KERNEL);
		to(arg, &ev);
		t += 100;
	}
	return t;
}

static void learn(void *arg, const struct event *ev)
{
	start_feed(arg, ev);
}

static void replay(void *arg, const struct event *ev)
{
	(void)arg;
	feed(0, *ev);
}

/* A device's interrupt whose thread asks for more after 1000 ns, and halts 200 ns after it is done. */
static void learn_device(struct start *s)
{
	static const struct halt_part usual[] = { { 1000, SVM_NPF }, { 500, SVM_HLT } }, nobody[] = { { 200, SVM_HLT } };
	int64_t t = 1000;
	struct event ev = event(100, EV_SWITCH, 0, -1);
	ev.sw.prev_tid = 0;
	ev.sw.next_tid = 154;
	start_feed(s, &ev);
	ev = kvm(200, EV_KVM_ENTRY, 0, 0);
	start_feed(s, &ev);
	ev = kvm(500, EV_KVM_EXIT, SVM_HLT, KERNEL);
	start_feed(s, &ev);
	for (int i = 0; i < 50; i++)
		t = stretch(learn, s, t, 40, usual, COUNT(usual));
	for (int i = 0; i < 5; i++)
		t = stretch(learn, s, t, 41, nobody, COUNT(nobody));
	start_finish(s);
}

static void test_estimate(void **state)
{
	(void)state;
	static const struct halt_part thread[] = { { 5000, SVM_NPF }, { 1000, SVM_HLT } }, none[] = { { 300, SVM_HLT } };
	static const struct halt_part late[] = { { 1600, SVM_HLT } }, later[] = { { 1601, SVM_HLT } };
	struct start s = START_INIT;
	setup_full(true, true, false, false);
	learn_device(&s);
	assert_int_equal(model_begin(model, 0, 0, &s, NULL), 0);
	sw(0, 10, 0, 0, RUN_RUNNABLE, 154);
	enter(15);
	leave(18, SVM_NPF);  /* from here on its exits are known */
	enter(20);
	leave(1020, SVM_HLT);
	expect(VCPU, 20, VCPU_RUNNING);
	expect(VCPU, 739, VCPU_RUNNING);
	expect(VCPU, 740, VCPU_IDLE);     /* seven fifths of the least that a halt takes */
	stretch(replay, NULL, 10000, 40, thread, COUNT(thread));
	expect(VCPU, 10000, VCPU_IDLE);
	expect(VCPU, 10599, VCPU_IDLE);   /* six tenths of the time until its thread asks for more */
	expect(VCPU, 10600, VCPU_RUNNING);
	expect(VCPU, 15000, VCPU_VMM);
	expect(VCPU, 15100, VCPU_RUNNING);
	expect(VCPU, 15819, VCPU_RUNNING);
	expect(VCPU, 15820, VCPU_IDLE);
	expect(VCPU, 16100, VCPU_VMM);
	stretch(replay, NULL, 20000, 41, none, COUNT(none));
	expect(VCPU, 20000, VCPU_IDLE);
	expect(VCPU, 20299, VCPU_IDLE);
	assert_int_equal(rec_sum(&rec, VCPU, VCPU_RUNNING, 20000, 20300), 0);
	/* Up to eight times as long as the idle thread takes usually, no thread ran. */
	stretch(replay, NULL, 30000, 41, late, COUNT(late));
	assert_int_equal(rec_sum(&rec, VCPU, VCPU_RUNNING, 30000, 31600), 0);
	stretch(replay, NULL, 40000, 41, later, COUNT(later));
	assert_int_equal(rec_sum(&rec, VCPU, VCPU_RUNNING, 40000, 41601), 1601 - 300 - 280);
	/* An interrupt that always wakes a thread has woken one when the guest halts early, too. */
	stretch(replay, NULL, 50000, 40, (struct halt_part[]){ { 1000, SVM_HLT } }, 1);
	assert_int_equal(rec_sum(&rec, VCPU, VCPU_RUNNING, 50000, 51000), 1000 - 600 - 280);
	teardown();
	start_release(&s);
}

/* A timer's interrupt programs the timer after 100 ns, and the guest halts 50 ns later; every fifth one wakes a thread,
 * which is in user space 300 ns later. */
static void learn_timer(struct start *s)
{
	static const struct halt_part nobody[] = { { 100, SVM_MSR }, { 50, SVM_HLT } };
	static const struct halt_part thread[] = { { 100, SVM_MSR }, { 300, SVM_NPF }, { 200, SVM_HLT } };
	int64_t t = 1000;
	struct event ev = event(100, EV_SWITCH, 0, -1);
	ev.sw.prev_tid = 0;
	ev.sw.next_tid = 154;
	start_feed(s, &ev);
	ev = kvm(200, EV_KVM_ENTRY, 0, 0);
	start_feed(s, &ev);
	ev = kvm(500, EV_KVM_EXIT, SVM_HLT, KERNEL);
	start_feed(s, &ev);
	for (int i = 0; i < 50; i++)
		t = i % 5 ? stretch(learn, s, t, 236, nobody, COUNT(nobody)) : stretch(learn, s, t, 236, thread, COUNT(thread));
	start_finish(s);
}

/* From what was learnt on: the vCPU has its CPU, and halts. */
static void begin_halted(const struct start *s)
{
	assert_int_equal(model_begin(model, 0, 0, s, NULL), 0);
	sw(0, 10, 0, 0, RUN_RUNNABLE, 154);
	enter(20);
	leave(1020, SVM_HLT);
}

static void begin_learnt(struct start *s, void (*learn_some)(struct start *s))
{
	setup_full(true, true, false, false);
	learn_some(s);
	begin_halted(s);
}

static void end_learnt(struct start *s)
{
	teardown();
	start_release(s);
}

static int64_t ran(int64_t t, const struct halt_part *part, size_t n)
{
	int64_t end = stretch(replay, NULL, t, 236, part, n);
	return rec_sum(&rec, VCPU, VCPU_RUNNING, t, end);
}
#define RAN(t, ...) ran(t, (struct halt_part[]){ __VA_ARGS__ }, COUNT(((struct halt_part[]){ __VA_ARGS__ })))

/* The way out of a timer's interrupt is long, but no thread runs on it; after that, how late the guest halts tells. */
static void test_timer(void **state)
{
	(void)state;
	struct start s = START_INIT;
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

/* What sends an interrupt to a sibling, or wakes its thread, may be an interrupt's handler while nobody runs: the time tells. */
static void test_sends(void **state)
{
	(void)state;
	const struct event ipi = kvm(30110, EV_IPI, 0, 0);
	struct start s = START_INIT;
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

/* Where an interrupt always wakes a thread that sends one, a write is no sign that nobody runs. */
static void test_sends_learnt(void **state)
{
	(void)state;
	struct start s = START_INIT;
	setup_full(true, true, false, false);
	struct event ev = event(100, EV_SWITCH, 0, -1);
	ev.sw.prev_tid = 0;
	ev.sw.next_tid = 154;
	start_feed(&s, &ev);
	for (int64_t i = 0, t = 1000; i < 50; i++, t += 5000) {
		const struct event each[] = {
			kvm(t, EV_KVM_EXIT, SVM_HLT, 0), kvm(t + 1000, EV_INJECT, 251, 0), kvm(t + 1000, EV_KVM_ENTRY, 0, 0),
			kvm(t + 2000, EV_KVM_EXIT, SVM_MSR, KERNEL), kvm(t + 2010, EV_IPI, 0, 0), kvm(t + 2100, EV_KVM_ENTRY, 0, 0),
		};
		for (size_t k = 0; k < COUNT(each); k++)
			start_feed(&s, &each[k]);
	}
	start_finish(&s);
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
	struct start s = START_INIT;
	begin_learnt(&s, learn_timer);
	enter(2000);
	feed(0, kvm(3000, EV_KVM_EXIT, SVM_INTR, USER));
	enter(3100);
	feed(0, kvm(4100, EV_KVM_EXIT, SVM_INTR, HALT_AT + 1));
	expect(VCPU, 4029, VCPU_RUNNING);
	expect(VCPU, 4030, VCPU_IDLE);
	sw(0, 4200, 0, 154, RUN_RUNNABLE, 7);
	expect(VCPU, 4200, VCPU_IDLE);
	sw(0, 5000, 0, 7, RUN_BLOCKED, 154);
	enter(5100);
	feed(0, kvm(9000, EV_KVM_EXIT, SVM_INTR, HALT_AT + 1));  /* still there */
	assert_int_equal(rec_sum(&rec, VCPU, VCPU_RUNNING, 5100, 9000), 0);
	enter(9100);
	feed(0, kvm(9900, EV_KVM_EXIT, SVM_INTR, HALT_AT + 100));
	expect(VCPU, 9149, VCPU_IDLE);
	expect(VCPU, 9150, VCPU_RUNNING);
	end_learnt(&s);
}

/* An interruption tells nothing, unless the guest was in user space: then a thread ran. */
static void test_interrupted(void **state)
{
	(void)state;
	struct start s = START_INIT;
	begin_learnt(&s, learn_device);
	feed(0, kvm(2000, EV_INJECT, 40, 0));
	enter(2000);
	leave(2900, SVM_INTR);
	expect(VCPU, 2899, VCPU_IDLE);
	sw(0, 2950, 0, 154, RUN_RUNNABLE, 7);
	expect(VCPU, 2950, VCPU_IDLE);
	sw(0, 3000, 0, 7, RUN_BLOCKED, 154);
	enter(3100);
	feed(0, kvm(4000, EV_KVM_EXIT, SVM_INTR, USER));
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
