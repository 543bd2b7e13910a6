/* The model on hand-made events: lost events, reported and not. */
#include "model_events.h"

static void test_lost_on_host(void **state)
{
	(void)state;
	setup_full(true, true, true, false);
	sw(1, 5, 0, 0, RUN_RUNNABLE, 900);
	sw(0, 10, 1, 216, RUN_RUNNABLE, 154);
	sw(0, 11, 0, 0, RUN_RUNNABLE, 300);
	simple(0, 20, EV_KVM_ENTRY, 1, 154);
	struct event ev = event(30, EV_LOST, 1, -1);
	ev.lost.end = 39;
	feed(0, ev);
	expect("/Host/CPUs/CPU1/Current Thread", 30, HISTORY_NULL);
	assert_string_equal(rec.owner[rec_at(&rec, 30, "/Host/CPUs/CPU1/Owner")], "unknown");
	expect("/Host/Threads/154/Status", 30, THREAD_UNKNOWN);
	expect("/Host/Threads/216/Status", 30, THREAD_UNKNOWN);  /* was queued there */
	expect("/Host/Threads/300/Status", 30, THREAD_RUNNING);  /* on another CPU */
	expect(VCPU, 30, VCPU_UNKNOWN);
	expect(DEBIAN "/Threads/900/Status", 30, THREAD_UNKNOWN);
	simple(0, 40, EV_TIMER_ENTRY, 1, 154);  /* it is current; in which mode, who knows */
	expect("/Host/Threads/154/Status", 40, THREAD_RUNNING);
	expect("/Host/CPUs/CPU1/Current Thread", 40, 154);
	expect(VCPU, 40, VCPU_UNKNOWN);
	simple(0, 50, EV_KVM_EXIT, 1, 154);
	expect(VCPU, 50, VCPU_VMM);
	expect(DEBIAN "/Threads/900/Status", 50, THREAD_VIRT_PREEMPTED);
	ev.ts = 60;
	feed(0, ev);
	expect(VCPU, 60, VCPU_UNKNOWN);
	sw(0, 70, 1, 216, RUN_RUNNABLE, 154);
	expect(VCPU, 70, VCPU_VMM);
	expect("/Host/Threads/216/Status", 70, THREAD_PREEMPTED);
	teardown();
}

static void test_lost_on_guest(void **state)
{
	(void)state;
	setup_full(true, true, true, false);
	sw(0, 10, 1, 0, RUN_RUNNABLE, 154);
	simple(0, 20, EV_KVM_ENTRY, 1, 154);
	sw(1, 25, 0, 0, RUN_RUNNABLE, 900);
	struct event ev = event(27, EV_MARK, 0, 900);
	ev.mark.op = MARK_START;
	ev.mark.id = 5;
	feed(1, ev);
	feed(1, event(30, EV_LOST, 0, -1));
	expect(VCPU, 30, VCPU_UNKNOWN);  /* RUNNING or IDLE */
	expect("/Requests/Debian/5/State", 30, 2);
	expect(DEBIAN "/Threads/900/Status", 30, THREAD_UNKNOWN);
	expect(DEBIAN "/CPUs/CPU0/Current Thread", 30, HISTORY_NULL);
	simple(0, 40, EV_KVM_EXIT, 1, 154);
	expect(VCPU, 40, VCPU_VMM);      /* that much is certain */
	simple(0, 50, EV_KVM_ENTRY, 1, 154);
	simple(1, 60, EV_OTHER, 0, 901);
	expect(VCPU, 59, VCPU_UNKNOWN);
	expect(VCPU, 60, VCPU_RUNNING);
	expect(DEBIAN "/Threads/901/Status", 60, THREAD_RUNNING);
	teardown();
}

/* After a loss the next mention of a thread tells what it was since the loss was over. */
static void test_recovered(void **state)
{
	struct event ev[] = {
		event(5, EV_TIMER_ENTRY, 1, 20), event(10, EV_LOST, 1, -1), event(25, EV_WAKING, 0, 0),
		event(40, EV_TIMER_ENTRY, 0, 0), event(60, EV_WAKING, 1, 20), event(61, EV_WAKING, 1, 20),
		event(70, EV_SWITCH, 1, 20), event(80, EV_SWITCH, 1, 30), event(90, EV_WAKING, 1, 40), event(95, EV_FORK, 1, 40),
		event(96, EV_WAKING, 1, 40),
	};
	struct start start = START_INIT;
	(void)state;
	ev[1].lost.end = 30;
	ev[2].wake.tid = 10;   /* while events of CPU 1 were still lost: proves 10, for that moment */
	ev[4].wake.tid = 11;   /* slept since 30 */
	ev[5].wake.tid = 154;  /* a vCPU slept, too */
	for (int i = 6; i <= 7; i++) {
		ev[i].sw.prev_tid = i == 6 ? 20 : 30;
		ev[i].sw.next_tid = i == 6 ? 30 : 40;
		ev[i].sw.prev_state = RUN_BLOCKED;
	}
	ev[8].wake.tid = 20;   /* it ran in between: this says nothing of the time before */
	ev[9].fork.child_tid = 50;
	ev[10].wake.tid = 50;  /* it did not exist */
	for (size_t i = 0; i < COUNT(ev); i++)
		start_feed(&start, &ev[i]);
	setup_full(true, true, false, false);
	assert_int_equal(model_begin(model, 0, 0, &start, NULL), 0);
	for (size_t i = 0; i < COUNT(ev); i++)
		feed(0, ev[i]);
	expect("/Host/Threads/20/Status", 5, THREAD_RUNNING);
	expect("/Host/Threads/20/Status", 40, THREAD_UNKNOWN);
	expect("/Host/Threads/20/Status", 60, THREAD_RUNNING);
	expect("/Host/Threads/11/Status", 25, HISTORY_NULL);
	expect("/Host/Threads/11/Status", 40, THREAD_BLOCKED);
	expect("/Host/Threads/154/Status", 40, THREAD_BLOCKED);
	expect(VCPU, 40, VCPU_IDLE);
	expect("/Host/Threads/30/Status", 40, THREAD_PREEMPTED);
	expect("/Host/Threads/50/Status", 94, HISTORY_NULL);
	start_release(&start);
	teardown();
}

/* Threads of other CPUs, while CPU 1 loses events from 10 to 30. */
static void test_loss_elsewhere(void **state)
{
	struct event ev[14];
	struct start start = START_INIT;
	size_t n = 0;
	(void)state;
	for (int32_t tid = 60; tid <= 64; tid++, n++) {  /* all five sleep on CPU 0 */
		ev[n] = event(tid - 59, EV_SWITCH, 0, tid);
		ev[n].sw.prev_tid = tid;
		ev[n].sw.next_tid = tid < 64 ? tid + 1 : 0;
		ev[n].sw.prev_state = RUN_BLOCKED;
	}
	ev[n] = event(10, EV_LOST, 1, -1);
	ev[n++].lost.end = 30;
	for (int32_t tid = 61; tid <= 63; tid++, n++) {
		ev[n] = event(20, EV_WAKEUP, 0, 0);
		ev[n].wake.tid = tid;
		ev[n].wake.target_cpu = tid == 61;
	}
	ev[n++] = event(35, EV_TIMER_ENTRY, 0, 0);
	for (int i = 0; i < 2; i++, n++) {
		ev[n] = event(40 + i, EV_SWITCH, 0, i ? 60 : 0);
		ev[n].sw.prev_tid = i ? 60 : 0;
		ev[n].sw.next_tid = i ? 63 : 60;
		ev[n].sw.prev_state = RUN_RUNNABLE;
	}
	ev[n] = event(45, EV_WAKING, 0, 63);
	ev[n++].wake.tid = 61;
	ev[n] = event(46, EV_WAKING, 0, 63);
	ev[n++].wake.tid = 64;
	assert_int_equal(n, COUNT(ev));
	for (size_t i = 0; i < n; i++)
		start_feed(&start, &ev[i]);
	setup_full(true, true, false, false);
	assert_int_equal(model_begin(model, 0, 0, &start, NULL), 0);
	for (size_t i = 0; i < n; i++)
		feed(0, ev[i]);
#define T(tid) "/Host/Threads/" #tid "/Status"
	expect(T(60), 9, THREAD_BLOCKED);
	expect(T(60), 10, THREAD_UNKNOWN);    /* is switched in without having been woken */
	expect(T(60), 35, THREAD_PREEMPTED);
	expect(T(61), 10, THREAD_BLOCKED);
	expect(T(61), 20, THREAD_UNKNOWN);    /* waits for a CPU of which nobody knows what it does */
	expect(T(61), 35, THREAD_BLOCKED);    /* and sleeps again, for it is woken later */
	expect(T(62), 20, THREAD_PREEMPTED);
	expect(T(62), 35, THREAD_UNKNOWN);    /* never seen to get its CPU */
	expect(T(63), 20, THREAD_PREEMPTED);
	expect(T(63), 35, THREAD_PREEMPTED);
	expect(T(63), 41, THREAD_RUNNING);
	expect(T(64), 10, THREAD_BLOCKED);
	expect(T(64), 45, THREAD_BLOCKED);
	start_release(&start);
	teardown();
}

/* Without any lost record: a switch that contradicts what was believed costs certainty, not consistency. */
static void test_contradictions(void **state)
{
	(void)state;
	setup_full(true, true, false, false);
	sw(0, 10, 0, 0, RUN_RUNNABLE, 300);
	sw(0, 20, 1, 0, RUN_RUNNABLE, 300);  /* on both? */
	expect("/Host/CPUs/CPU0/Current Thread", 20, HISTORY_NULL);
	expect("/Host/CPUs/CPU1/Current Thread", 20, 300);
	expect("/Host/Threads/300/CPU", 20, 1);
	sw(0, 30, 1, 301, RUN_BLOCKED, 302);
	expect("/Host/Threads/300/Status", 30, THREAD_UNKNOWN);
	expect("/Host/Threads/301/Status", 30, THREAD_BLOCKED);
	simple(0, 40, EV_KVM_ENTRY, 1, -1);
	simple(0, 50, EV_KVM_ENTRY, 3, 154);  /* entry without exit, twice */
	simple(0, 60, EV_KVM_ENTRY, 3, 154);
	expect(VCPU, 60, VCPU_RUNNING);
	struct event ev = event(70, EV_SWITCH, 65535, -5);
	feed(0, ev);  /* nothing in it */
	ev.sw.prev_tid = INT64_MAX;
	ev.sw.next_tid = -7;
	ev.sw.prev_state = 99;
	feed(0, ev);
	teardown();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost_on_host),
		cmocka_unit_test(test_lost_on_guest),
		cmocka_unit_test(test_recovered),
		cmocka_unit_test(test_loss_elsewhere),
		cmocka_unit_test(test_contradictions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
