/* CFS quotas: a throttled vCPU does not get a CPU that is idle or runs far lighter tasks. */
#include "model_throttling.h"

/* Feeds interrupts every `each` ms. */
static void ticks(double from, double end, double each, int32_t tid)
{
	for (double t = from + each; t < end; t += each) {
		simple(0, (int64_t)(t * MS), EV_TIMER_ENTRY, 0, tid);
		simple(0, (int64_t)(t * MS) + 1000, EV_TIMER_EXIT, 0, tid);
	}
}

/* The CPU was idle while the thread was runnable: throttled since the wait began, whichever thread had the CPU first. */
static void test_idle(void **state)
{
	(void)state;
	begin();
	to(20, 154, RUN_RUNNABLE, 7, 0);
	to(25, 7, RUN_BLOCKED, 0, 0);
	to(97, 0, RUN_RUNNABLE, 7, 0);
	to(99, 7, RUN_BLOCKED, 154, 0);
	at(19.9, HISTORY_NULL);
	at(20, OUT_QUOTA);
	at(96.9, OUT_QUOTA);
	at(97, OUT_QUOTA_OR_OTHERS);  /* after this time it may have waited for thread 7 */
	at(99, HISTORY_NULL);
	to(110, 154, RUN_RUNNABLE, 0, 0);
	to(110.9, 0, RUN_RUNNABLE, 154, 0);  /* a migration, or another short delay */
	at(110.5, HISTORY_NULL);
	teardown();
}

/* An idle CPU is evidence with and without KVM events. */
static void test_idle_without_kvm(void **state)
{
	(void)state;
	setup_full(true, false, true, false);
	to(1, 0, RUN_RUNNABLE, 154, 0);
	to(20, 154, RUN_RUNNABLE, 0, 0);
	ticks(20, 90, 10, 0);
	to(97, 0, RUN_RUNNABLE, 154, 0);
	at(19.9, HISTORY_NULL);
	at(20, OUT_QUOTA);
	at(97, HISTORY_NULL);
	teardown();
}

/* Interrupts in quick succession until the thread runs: any of them may have refilled the quota. */
static void test_stirred(void **state)
{
	(void)state;
	begin();
	to(20, 154, RUN_RUNNABLE, 0, 0);
	ticks(20, 60, 10, 0);
	ticks(97, 97.03, 0.005, 0);
	to(97.03, 0, RUN_RUNNABLE, 154, 0);
	at(97.004, OUT_QUOTA);
	at(97.005, HISTORY_NULL);
	to(120, 154, RUN_RUNNABLE, 0, 0);
	simple(0, 130 * MS, EV_SOFTIRQ_ENTRY, 0, 0);
	to(130.06, 0, RUN_RUNNABLE, 154, 0);  /* a long interrupt */
	at(129.9, OUT_QUOTA);
	at(130, HISTORY_NULL);
	teardown();
}

/* A light task with interrupts does not keep the CPU for so long while a heavy one is runnable; a task of about the same
 * weight does. */
static void test_weight(void **state)
{
	(void)state;
	begin();
	to(20, 154, RUN_RUNNABLE, 240, 19);
	ticks(20, 100, 10, 240);
	to(100, 240, RUN_RUNNABLE, 154, 0);
	at(50, OUT_QUOTA);
	at(100, HISTORY_NULL);
	to(120, 154, RUN_RUNNABLE, 240, 5);
	ticks(120, 200, 10, 240);
	to(200, 240, RUN_RUNNABLE, 154, 0);
	at(150, OUT_QUOTA_OR_OTHERS);  /* the task may have a heavy cgroup */
	to(220, 154, RUN_RUNNABLE, 240, 19);
	ticks(220, 232, 2, 240);
	to(232, 240, RUN_RUNNABLE, 154, 0);  /* the task's slice */
	at(225, HISTORY_NULL);
	to(240, 154, RUN_RUNNABLE, 50, -51);
	ticks(240, 300, 10, 50);
	to(300, 50, RUN_BLOCKED, 154, 0);  /* a real-time task goes first */
	at(270, HISTORY_NULL);
	to(310, 154, RUN_RUNNABLE, 240, EVENT_ABSENT);  /* the task's weight is unknown */
	ticks(310, 400, 10, 240);
	to(400, 240, RUN_RUNNABLE, 154, 0);
	at(350, HISTORY_NULL);
	teardown();
}

/* A light task without interrupts, or a kernel thread, is not preempted. */
static void test_not_asked(void **state)
{
	(void)state;
	begin();
	to(20, 154, RUN_RUNNABLE, 240, 19);
	ticks(20, 22, 0.5, 240);  /* close interrupts count as one, and no further interrupt occurs */
	ticks(98, 99.5, 0.5, 240);
	to(100, 240, RUN_RUNNABLE, 154, 0);
	at(50, HISTORY_NULL);
	struct event khugepaged = event(110 * MS, EV_PROCESS, 0, 154);
	khugepaged.process.tid = khugepaged.process.pid = 47;
	khugepaged.process.state = RUN_BLOCKED;
	khugepaged.process.type = PROCESS_KERNEL;
	feed(0, khugepaged);
	to(120, 154, RUN_RUNNABLE, 47, 19);
	ticks(120, 150, 4, 47);
	to(150, 47, RUN_RUNNABLE, 154, 0);
	at(130, HISTORY_NULL);
	to(160, 154, RUN_BLOCKED, 240, 19);
	ticks(160, 190, 4, 240);
	wake(0, 190 * MS, 0, 240, 154, 0);
	to(211, 240, RUN_RUNNABLE, 154, 0);  /* no interrupt since the wakeup */
	at(200, HISTORY_NULL);
	teardown();
}

/* A wakeup takes time, even on an idle CPU, which may be held up itself; not on a CPU on which other tasks ran in
 * between. */
static void test_woken(void **state)
{
	(void)state;
	begin();
	to(10, 154, RUN_BLOCKED, 0, 0);
	wake(0, 20 * MS, 0, 0, 154, 0);
	to(26, 0, RUN_RUNNABLE, 154, 0);
	at(22, HISTORY_NULL);
	to(30, 154, RUN_BLOCKED, 0, 0);
	wake(0, 40 * MS, 0, 0, 154, 0);
	to(100, 0, RUN_RUNNABLE, 154, 0);
	at(60, HISTORY_NULL);
	to(110, 154, RUN_BLOCKED, 0, 0);
	wake(0, 120 * MS, 0, 0, 154, 0);
	to(130, 0, RUN_RUNNABLE, 7, 0);
	to(131, 7, RUN_BLOCKED, 0, 0);
	to(180, 0, RUN_RUNNABLE, 154, 0);
	at(119, HISTORY_NULL);
	at(120, OUT_QUOTA);
	at(179, OUT_QUOTA);
	at(180, HISTORY_NULL);
	to(190, 154, RUN_BLOCKED, 0, 0);
	wake(0, 200 * MS, 0, 0, 154, 0);
	to(202, 0, RUN_RUNNABLE, 7, 0);  /* the thread is queued there, and 7 left the CPU idle */
	to(202.1, 7, RUN_BLOCKED, 0, 0);
	to(210, 0, RUN_RUNNABLE, 154, 0);
	at(199, HISTORY_NULL);
	at(200, OUT_QUOTA);
	at(209.9, OUT_QUOTA);
	at(210, HISTORY_NULL);
	teardown();
}

/* An idle CPU reschedules after each interrupt: the third one at the latest must run the thread. */
static void test_woken_asked(void **state)
{
	(void)state;
	begin();
	to(10, 154, RUN_BLOCKED, 0, 0);
	wake(0, 20 * MS, 0, 0, 154, 0);
	ticks(20, 30, 3, 0);
	to(32, 0, RUN_RUNNABLE, 154, 0);
	at(19.9, HISTORY_NULL);
	at(20, OUT_QUOTA);
	at(31.9, OUT_QUOTA);
	at(32, HISTORY_NULL);
	to(40, 154, RUN_BLOCKED, 0, 0);
	ticks(40, 49, 1.5, 0);
	wake(0, 50 * MS, 0, 0, 154, 0);
	ticks(50, 57, 3, 0);  /* two interrupts since the wakeup: the CPU may be held up */
	to(90, 0, RUN_RUNNABLE, 154, 0);
	at(60, HISTORY_NULL);
	to(100, 154, RUN_BLOCKED, 0, 0);
	wake(0, 120 * MS, 0, 0, 154, 0);
	ticks(120, 122, 0.4, 0);  /* in quick succession: the CPU was held up in between */
	to(190, 0, RUN_RUNNABLE, 154, 0);
	at(130, HISTORY_NULL);
	to(200, 154, RUN_BLOCKED, 0, 0);
	wake(0, 220 * MS, 0, 0, 154, 0);
	ticks(220, 227, 3, 0);
	wake(0, (int64_t)(229.5 * MS), 0, 0, 20, 0);  /* still right after the interrupt before */
	ticks(229.6, 229.8, 0.1, 0);
	to(230, 0, RUN_RUNNABLE, 154, 0);
	at(225, HISTORY_NULL);
	teardown();
}

/* With sched_waking alone, the time and the CPU of the queue are unknown: the IPI may not have arrived. */
static void test_waking(void **state)
{
	(void)state;
	for (int later = 0; later < 2; later++) {
		begin();
		model->machine[0]->waking_is_wakeup = true;
		to(10, 154, RUN_BLOCKED, 0, 0);
		struct event ev = event(20 * MS, EV_WAKING, 0, 0);
		ev.wake.tid = 154;
		ev.wake.target_cpu = 0;
		feed(0, ev);
		to(21, 0, RUN_RUNNABLE, 7, 0);
		to(22, 7, RUN_BLOCKED, 0, 0);
		to(later ? 60 : 30, 0, RUN_RUNNABLE, 154, 0);
		at(25, later ? OUT_QUOTA : HISTORY_NULL);
		to(70, 154, RUN_BLOCKED, 0, 0);
		ev.ts = 80 * MS;
		feed(0, ev);
		ticks(80, 140, 4, 0);
		to(140, 0, RUN_RUNNABLE, 154, 0);
		at(100, HISTORY_NULL);
		teardown();
	}
}

/* The thread that had the CPU during the loss is unknown. */
static void test_lost(void **state)
{
	(void)state;
	begin();
	to(20, 154, RUN_RUNNABLE, 0, 0);
	struct event ev = event(40 * MS, EV_LOST, 0, -1);
	ev.lost.end = 60 * MS;
	feed(0, ev);
	to(90, 0, RUN_RUNNABLE, 154, 0);
	at(30, HISTORY_NULL);
	at(80, HISTORY_NULL);
	to(100, 154, RUN_RUNNABLE, 0, 0);
	to(150, 0, RUN_RUNNABLE, 154, 0);
	at(120, OUT_QUOTA);
	teardown();
}

/* Another vCPU of the VM ran on its CPU in between: the quota was available then. */
static void test_sibling(void **state)
{
	(void)state;
	static const struct sync_vcpu vcpu[] = { { 0, 154, VCPU_BY_NAME, false }, { 1, 155, VCPU_BY_NAME, false } };
	begin_with(vcpu, COUNT(vcpu));
	to(1, 0, RUN_RUNNABLE, 154, 0);
	to(20, 154, RUN_RUNNABLE, 0, 0);
	to(30, 0, RUN_RUNNABLE, 155, 0);
	to(40, 155, RUN_RUNNABLE, 0, 0);
	to(100, 0, RUN_RUNNABLE, 154, 0);
	at(35, HISTORY_NULL);
	at(39.9, HISTORY_NULL);
	at(40, OUT_QUOTA);
	at(99.9, OUT_QUOTA);
	at(100, HISTORY_NULL);
	to(120, 154, RUN_RUNNABLE, 7, 0);
	to(125, 7, RUN_BLOCKED, 155, 0);  /* 155 waits since 40, after 100 for other tasks */
	expect(DEBIAN "/CPUs/CPU1/Out By", 40 * MS, OUT_QUOTA);
	expect(DEBIAN "/CPUs/CPU1/Out By", 99 * MS, OUT_QUOTA);
	expect(DEBIAN "/CPUs/CPU1/Out By", 110 * MS, HISTORY_NULL);
	teardown();
}

/* A task of the same weight keeps the CPU, although interrupted: if a vCPU of the VM was throttled within the longest
 * possible period, this may be throttling again. Short interruptions of that task do not matter. */
static void test_unsure(void **state)
{
	(void)state;
	for (int before = 0; before < 2; before++) {
		begin();
		if (before) {
			to(20, 154, RUN_RUNNABLE, 0, 0);
			to(90, 0, RUN_RUNNABLE, 154, 0);
		}
		to(120, 154, RUN_RUNNABLE, 240, 0);
		ticks(120, 132, 4, 240);
		to(132, 240, RUN_RUNNABLE, 15, 0);
		to(132.2, 15, RUN_BLOCKED, 240, 0);
		ticks(132, 144, 4, 240);
		to(145, 240, RUN_RUNNABLE, 154, 0);
		at(119.9, HISTORY_NULL);
		at(120, before ? OUT_QUOTA_OR_OTHERS : HISTORY_NULL);
		at(144.9, before ? OUT_QUOTA_OR_OTHERS : HISTORY_NULL);
		to(160, 154, RUN_RUNNABLE, 240, 0);  /* the task's slice, and another task's */
		ticks(160, 172, 4, 240);
		to(172, 240, RUN_RUNNABLE, 241, 0);
		ticks(172, 184, 4, 241);
		to(184, 241, RUN_RUNNABLE, 154, 0);
		at(170, HISTORY_NULL);
		to(200, 154, RUN_RUNNABLE, 242, -5);  /* heavier than the vCPU's thread */
		ticks(200, 300, 4, 242);
		to(300, 242, RUN_RUNNABLE, 154, 0);
		at(250, HISTORY_NULL);
		to(1200, 154, RUN_RUNNABLE, 240, 0);  /* long ago */
		ticks(1200, 1300, 4, 240);
		to(1300, 240, RUN_RUNNABLE, 154, 0);
		at(1250, HISTORY_NULL);
		teardown();
	}
}

/* Without timers the interrupts that would prove throttling are not recorded: a light task is not called the culprit
 * either. */
static void test_unasked(void **state)
{
	(void)state;
	for (int timers = 0; timers < 2; timers++) {
		begin();
		if (timers)
			ticks(1, 6, 4, 154);
		to(20, 154, RUN_RUNNABLE, 240, 19);
		to(60, 240, RUN_RUNNABLE, 154, 0);
		at(19.9, HISTORY_NULL);
		at(30, timers ? HISTORY_NULL : OUT_QUOTA_OR_OTHERS);
		at(60, HISTORY_NULL);
		to(70, 154, RUN_RUNNABLE, 240, 5);  /* not light enough */
		to(110, 240, RUN_RUNNABLE, 154, 0);
		at(90, HISTORY_NULL);
		teardown();
	}
}

enum { TICK = 0x100, REFILL = 0x7000 };

/* Feeds n periods of 100 ms with a quota of 20 ms, starting at t. Returns the end. */
static double periods(double t, int n)
{
	for (; n-- > 0; t += 100) {
		expire(t + 10, 154, TICK);
		to(t + 20, 154, RUN_RUNNABLE, 0, 0);
		for (int i = 3; i < 10; i++)
			expire(t + 10 * i, 0, TICK);
		expire(t + 99.9, 0, REFILL);
		to(t + 100, 0, RUN_RUNNABLE, 154, 0);
	}
	return t;
}

/* The timer that refilled the quota each time determines the end, even if other tasks have the CPU by then. */
static void test_refill(void **state)
{
	(void)state;
	begin();
	double t = periods(0, 5);  /* the timers are recorded after the end of the first period */
	to(t + 20, 154, RUN_RUNNABLE, 0, 0);
	to(t + 50, 0, RUN_RUNNABLE, 7, 0);
	expire(t + 60, 7, TICK);
	expire(t + 99.9, 7, REFILL);
	to(t + 105, 7, RUN_BLOCKED, 154, 0);
	at(t + 21, OUT_QUOTA);
	at(t + 99.8, OUT_QUOTA);
	at(t + 99.9, HISTORY_NULL);
	to(t + 120, 154, RUN_RUNNABLE, 0, 0);
	to(t + 150, 0, RUN_RUNNABLE, 7, 0);
	to(t + 180, 7, RUN_BLOCKED, 154, 0);  /* the thread did not use that refill */
	at(t + 149.9, OUT_QUOTA);
	at(t + 150, OUT_QUOTA_OR_OTHERS);
	teardown();
}

/* The thread wakes when the quota is used up, and its CPU is idle, but not for long. */
static void test_refill_woken(void **state)
{
	(void)state;
	begin();
	double t = periods(0, 5);
	to(t + 1, 154, RUN_BLOCKED, 0, 0);
	wake(0, (int64_t)((t + 90) * MS), 0, 0, 154, 0);
	expire(t + 99.9, 0, REFILL);
	to(t + 100, 0, RUN_RUNNABLE, 154, 0);
	at(t + 89.9, HISTORY_NULL);
	at(t + 90, OUT_QUOTA);
	at(t + 99.8, OUT_QUOTA);
	at(t + 100, HISTORY_NULL);
	to(t + 101, 154, RUN_BLOCKED, 0, 0);
	wake(0, (int64_t)((t + 199.5) * MS), 0, 0, 154, 0);  /* a wakeup takes as long */
	expire(t + 199.9, 0, REFILL);
	to(t + 200, 0, RUN_RUNNABLE, 154, 0);
	at(t + 199.6, HISTORY_NULL);
	to(t + 201, 154, RUN_BLOCKED, 0, 0);
	wake(0, (int64_t)((t + 290) * MS), 0, 0, 154, 0);
	expire(t + 299.9, 0, REFILL);
	to(t + 303, 0, RUN_RUNNABLE, 154, 0);  /* longer than the delay was before */
	at(t + 291, HISTORY_NULL);
	to(t + 304, 154, RUN_BLOCKED, 0, 0);
	wake(0, (int64_t)((t + 310) * MS), 0, 0, 154, 0);
	to(t + 320, 0, RUN_RUNNABLE, 154, 0);
	at(t + 311, HISTORY_NULL);
	teardown();
}

/* A tick in the same interrupt, which has expired again, does not hide the timer; a timer that expires later may be the
 * refill timer. */
static void test_refill_beside(void **state)
{
	(void)state;
	for (int later = 0; later < 2; later++) {
		begin();
		double t = 0;
		for (int i = 0; i < 6; i++, t += 100) {
			to(t + 20, 154, RUN_RUNNABLE, 0, 0);
			expire(t + 60, 0, TICK);
			expire(t + 99.9, 0, REFILL);
			expire(t + (later ? 99.95 : 99.905), 0, TICK);
			to(t + 100, 0, RUN_RUNNABLE, 154, 0);
		}
		to(t + 1, 154, RUN_BLOCKED, 0, 0);
		wake(0, (int64_t)((t + 90) * MS), 0, 0, 154, 0);
		expire(t + 99.9, 0, REFILL);
		to(t + 100, 0, RUN_RUNNABLE, 154, 0);
		at(t + 91, later ? HISTORY_NULL : OUT_QUOTA);
		teardown();
	}
}

/* The quota of one vCPU is usually shared with its sibling. */
static void test_refill_sibling(void **state)
{
	(void)state;
	static const struct sync_vcpu vcpu[] = { { 0, 154, VCPU_BY_NAME, false }, { 1, 155, VCPU_BY_NAME, false } };
	static const char out_by[] = DEBIAN "/CPUs/CPU1/Out By";
	begin_with(vcpu, COUNT(vcpu));
	to(1, 0, RUN_RUNNABLE, 154, 0);
	const double t = periods(0, 5);
	for (int i = 0; i < 2; i++) {
		const int64_t since = (int64_t)((t + 100 * i) * MS);
		sw(0, since + 1 * MS, 1, 0, RUN_RUNNABLE, 155);
		sw(0, since + 2 * MS, 1, 155, RUN_BLOCKED, 0);
		wake(0, since + 90 * MS, 1, 0, 155, 1);
		expire(t + 100 * i + 99.9, 154, REFILL);
		sw(0, since + (i ? 103 : 100) * MS, 1, 0, RUN_RUNNABLE, 155);
		expect(out_by, since + 90 * MS - 1, HISTORY_NULL);
		expect(out_by, since + 90 * MS, i ? HISTORY_NULL : OUT_QUOTA);  /* longer than the delay was before */
		expect(out_by, since + 99 * MS, i ? HISTORY_NULL : OUT_QUOTA);
		expect(out_by, since + 100 * MS, HISTORY_NULL);
	}
	teardown();
}

/* Four periods, or five with one of double length: the timer may be another one. */
static void test_refill_unknown(void **state)
{
	(void)state;
	for (int again = 0; again < 2; again++) {
		begin();
		double t = periods(0, 4);
		if (again) {
			to(t + 20, 154, RUN_RUNNABLE, 0, 0);
			expire(t + 99.9, 0, REFILL);
			expire(t + 199.9, 0, REFILL);
			to(t + 200, 0, RUN_RUNNABLE, 154, 0);
			t = periods(t + 200, 3);
		}
		to(t + 20, 154, RUN_RUNNABLE, 0, 0);
		to(t + 50, 0, RUN_RUNNABLE, 7, 0);
		expire(t + 99.9, 7, REFILL);
		to(t + 105, 7, RUN_BLOCKED, 154, 0);
		at(t + 49.9, OUT_QUOTA);
		at(t + 50, OUT_QUOTA_OR_OTHERS);
		teardown();
	}
}

/* Six periods in which another task of the same weight has the CPU until the quota is refilled, and some ms more; the
 * timers are recorded from the first period. Then a wait may be throttled, and so may the six waits, unless a reason was
 * written since. */
static void test_refill_contested(void **state)
{
	(void)state;
	enum { SEEN, TWICE, EARLY, FEW, REASON, WAYS };
	for (int way = 0; way < WAYS; way++) {
		begin();
		double t = 0;
		for (int i = 0; i < (way == FEW ? 6 : 8); i++, t += 100) {
			to(t + 20, 154, RUN_RUNNABLE, 240, 0);
			for (int k = 6; k < 23; k++)
				expire(t + 4 * k, 240, TICK);
			if (way == TWICE && i == 4)
				expire(t + 55, 240, REFILL);
			expire(t + (way == EARLY && i == 4 ? 85 : 93 + i % 5), 240, REFILL);
			to(t + 100, 240, RUN_RUNNABLE, 154, 0);
			to(t + 110, 154, RUN_RUNNABLE, 240, 0);  /* a slice */
			to(t + 118, 240, RUN_RUNNABLE, 154, 0);
			if (way == REASON && i == 3) {
				to(t + 118.2, 154, RUN_RUNNABLE, 0, 0);
				to(t + 119.5, 0, RUN_RUNNABLE, 154, 0);
			}
		}
		at(50, HISTORY_NULL);
		at(119.9, HISTORY_NULL);
		at(120, way == SEEN ? OUT_QUOTA_OR_OTHERS : HISTORY_NULL);
		at(193.9, way == SEEN ? OUT_QUOTA_OR_OTHERS : HISTORY_NULL);
		at(194.1, HISTORY_NULL);
		at(418.3, way == REASON ? OUT_QUOTA : HISTORY_NULL);
		at(450, way == SEEN || way == REASON ? OUT_QUOTA_OR_OTHERS : HISTORY_NULL);
		if (way == REASON) {
			teardown();
			continue;
		}
		at(t - 190, HISTORY_NULL);
		at(t - 80.1, HISTORY_NULL);
		at(t - 80, way == SEEN ? OUT_QUOTA_OR_OTHERS : HISTORY_NULL);
		at(t - 5.1, way == SEEN ? OUT_QUOTA_OR_OTHERS : HISTORY_NULL);
		at(t - 4.9, HISTORY_NULL);
		at(t + 15, HISTORY_NULL);
		teardown();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_idle_without_kvm),
		cmocka_unit_test(test_stirred),
		cmocka_unit_test(test_weight),
		cmocka_unit_test(test_not_asked),
		cmocka_unit_test(test_woken),
		cmocka_unit_test(test_woken_asked),
		cmocka_unit_test(test_waking),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_sibling),
		cmocka_unit_test(test_unsure),
		cmocka_unit_test(test_unasked),
		cmocka_unit_test(test_refill),
		cmocka_unit_test(test_refill_woken),
		cmocka_unit_test(test_refill_beside),
		cmocka_unit_test(test_refill_sibling),
		cmocka_unit_test(test_refill_unknown),
		cmocka_unit_test(test_refill_contested),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
