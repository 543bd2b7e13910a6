/* State of a guest from the host's events alone: exit reasons, preempted instruction, and halt polling. */
#include "model_exits.h"

#include "model/state/exit_reasons.h"
#include "model/state/state.h"

#define EXIT DEBIAN "/CPUs/CPU0/Exit"

/* ---- names */

static void test_names(void **state)
{
	(void)state;
	static const struct { int64_t isa, reason, ret; const char *name; enum exit_class class; } want[] = {
		{ ISA_VMX, 12, EVENT_ABSENT, "HLT", EXIT_HALT }, { ISA_VMX, 1, EVENT_ABSENT, "EXTERNAL_INTERRUPT", EXIT_INTERRUPT },
		{ ISA_VMX, 32, EVENT_ABSENT, "MSR_WRITE", EXIT_TIMER }, { ISA_VMX, 48, EVENT_ABSENT, "EPT_VIOLATION", EXIT_OTHER },
		{ ISA_VMX, 5, EVENT_ABSENT, "5", EXIT_OTHER }, { ISA_VMX, 0x80000021, EVENT_ABSENT, "2147483681", EXIT_OTHER },
		{ ISA_SVM, 0x78, EVENT_ABSENT, "hlt", EXIT_HALT }, { ISA_SVM, 0x400, EVENT_ABSENT, "npf", EXIT_OTHER },
		{ ISA_SVM, 0x77, EVENT_ABSENT, "pause", EXIT_OTHER }, { ISA_SVM, 0x64, EVENT_ABSENT, "vintr", EXIT_INTERRUPT },
		{ ISA_SVM, 0xffffffff, EVENT_ABSENT, "invalid_guest_state", EXIT_OTHER },
		{ ISA_SVM, 0x99, EVENT_ABSENT, "153", EXIT_OTHER },
		{ EVENT_ABSENT, 0x24, 2, "DABT_LOW", EXIT_OTHER }, { EVENT_ABSENT, 0x01, 2, "WFx", EXIT_HALT },
		{ EVENT_ABSENT, 0, 0, "IRQ", EXIT_INTERRUPT }, { EVENT_ABSENT, 0x3f, 2, "63", EXIT_OTHER },
		{ EVENT_ABSENT, 12, EVENT_ABSENT, "12", EXIT_OTHER },
		    { EVENT_ABSENT, EVENT_ABSENT, EVENT_ABSENT, "unknown", EXIT_OTHER },
	};
	for (size_t i = 0; i < COUNT(want); i++) {
		char buf[EXIT_NAME];
		struct event ev = event(0, EV_VCPU_EXIT, 0, 154);
		ev.vcpu_exit.isa = want[i].isa;
		ev.vcpu_exit.reason = want[i].reason;
		ev.vcpu_exit.ret = want[i].ret;
		assert_string_equal(exit_name(&ev, buf), want[i].name);
		assert_int_equal(exit_class(&ev), want[i].class);
	}
}

/* The exit reason is valid until the next exit, but not across a loss. Two exits with the same reason are distinct. */
static void test_exit(void **state)
{
	(void)state;
	setup_full(true, true, true, false);
	sw(0, 10, 0, 0, RUN_RUNNABLE, 154);
	enter(20);
	assert_string_equal(rec_text(&rec, 20, EXIT), "(null)");
	leave(30, SVM_NPF);
	assert_string_equal(rec_text(&rec, 30, EXIT), "npf");
	assert_string_equal(rec_text(&rec, 30, DEBIAN "/ISA"), "SVM");
	sw(0, 40, 0, 154, RUN_BLOCKED, 0);
	sw(0, 50, 0, 0, RUN_RUNNABLE, 154);
	enter(60);
	assert_string_equal(rec_text(&rec, 60, EXIT), "npf");
	leave(70, 0x99);
	assert_string_equal(rec_text(&rec, 70, EXIT), "153");
	leave(75, 0x99);
	assert_string_equal(rec_text(&rec, 74, EXIT), "(null)");
	assert_string_equal(rec_text(&rec, 75, EXIT), "153");
	struct event ev = event(80, EV_LOST, 0, -1);
	ev.lost.end = 90;
	feed(0, ev);
	assert_string_equal(rec_text(&rec, 80, EXIT), "(null)");
	teardown();
}

/* A VM exit without a record: its time is unknown. */
static void test_exit_unseen(void **state)
{
	(void)state;
	setup_full(true, true, true, false);
	sw(0, 10, 0, 0, RUN_RUNNABLE, 154);
	enter(20);
	leave(30, SVM_NPF);
	enter(40);
	sw(0, 50, 0, 154, RUN_BLOCKED, 0);
	assert_string_equal(rec_text(&rec, 50, EXIT), "npf");
	sw(0, 60, 0, 0, RUN_RUNNABLE, 154);
	assert_string_equal(rec_text(&rec, 60, EXIT), "(null)");
	teardown();
}

/* ---- preempted instruction */

#define INSIDE DEBIAN "/CPUs/CPU0/Preempted At"

static void test_kernel_addresses(void **state)
{
	(void)state;
	static const struct { int64_t isa, ret; uint64_t ip; int64_t is; } want[] = {
		{ ISA_VMX, EVENT_ABSENT, 0xffffffff81000000, (int64_t)0xffffffff81000000 },
		{ ISA_SVM, EVENT_ABSENT, 0xff11000000001000, (int64_t)0xff11000000001000 },  /* 5 levels of page tables */
		{ ISA_SVM, EVENT_ABSENT, 0x00007fffffffffff, 0 }, { ISA_VMX, EVENT_ABSENT, 0x00ffffffffffffff, 0 },
		{ ISA_VMX, EVENT_ABSENT, 0x0100000000000000, EVENT_ABSENT },
		    { ISA_SVM, EVENT_ABSENT, 0xfeffffffffffffff, EVENT_ABSENT },
		{ EVENT_ABSENT, 0, 0xffff800008010000, (int64_t)0xffff800008010000 }, { EVENT_ABSENT, 0, 0x000fffffffffffff, 0 },
		{ EVENT_ABSENT, 0, 0xff11000000001000, EVENT_ABSENT },  /* arm64 has no such addresses */
		{ EVENT_ABSENT, EVENT_ABSENT, 0xffffffff81000000, EVENT_ABSENT },  /* unknown ISA: the halves of the address
		                                                                    * space are unknown */
	};
	for (size_t i = 0; i < COUNT(want); i++) {
		struct event ev = event(0, EV_VCPU_EXIT, 0, 154);
		ev.vcpu_exit.isa = want[i].isa;
		ev.vcpu_exit.ret = want[i].ret;
		ev.vcpu_exit.ip = (int64_t)want[i].ip;
		assert_int_equal(exit_kernel_address(&ev), want[i].is);
	}
}

static void leave_at(int64_t t, int64_t ip)
{
	feed(0, kvm(t, EV_VCPU_EXIT, SVM_INTR, ip));
}

static void test_preempted_code(void **state)
{
	(void)state;
	setup_full(true, true, false, false);
	sw(0, 10, 0, 7, RUN_RUNNABLE, 154);
	enter(20);
	leave_at(30, KERNEL);
	expect(INSIDE, 35, HISTORY_NULL);
	sw(0, 40, 0, 154, RUN_RUNNABLE, 7);
	expect(INSIDE, 40, KERNEL);
	sw(0, 50, 0, 7, RUN_RUNNABLE, 154);
	expect(INSIDE, 49, KERNEL);
	expect(INSIDE, 50, HISTORY_NULL);
	enter(60);
	leave_at(70, USER);
	sw(0, 80, 0, 154, RUN_RUNNABLE, 7);
	expect(INSIDE, 80, 0);
	sw(0, 90, 0, 7, RUN_RUNNABLE, 154);
	enter(100);
	leave_at(110, KERNEL);
	sw(0, 120, 0, 154, RUN_BLOCKED, 7);  /* voluntary switch */
	wake(0, 130, 0, 7, 154, 0);
	expect(INSIDE, 135, HISTORY_NULL);
	sw(0, 140, 0, 7, RUN_RUNNABLE, 154);
	enter(150);
	sw(0, 160, 0, 154, RUN_RUNNABLE, 7);  /* the exit was not recorded */
	expect(VCPU, 165, VCPU_PREEMPTED);
	expect(INSIDE, 165, HISTORY_NULL);
	teardown();
}

/* ---- halt polling */

#define POLLING DEBIAN "/CPUs/CPU0/Polling"

static void window(int64_t t, int64_t old, int64_t ns)
{
	struct event ev = event(t, EV_HALT_POLL, 0, 154);
	ev.halt_poll.old = old;
	ev.halt_poll.ns = ns;
	feed(0, ev);
}

static void over(int64_t t, int64_t ns, bool waited)
{
	struct event ev = event(t, EV_VCPU_WAKEUP, 0, 154);
	ev.wakeup.ns = ns;
	ev.wakeup.waited = waited;
	feed(0, ev);
}

/* Halts at `from` and blocks after `out`. */
static void halt_and_sleep(int64_t from, int64_t out, int64_t until)
{
	leave(from, SVM_HLT);
	sw(0, out, 0, 154, RUN_BLOCKED, 0);
	wake(0, until - 2, 0, 0, 154, 0);
	sw(0, until - 1, 0, 0, RUN_RUNNABLE, 154);
}

static void test_polling(void **state)
{
	(void)state;
	setup_full(true, true, false, false);
	sw(0, 10, 0, 7, RUN_RUNNABLE, 154);
	enter(20);
	halt_and_sleep(100, 150, 300);
	over(300, 190, true);           /* the limit is unknown */
	expect(POLLING, 109, HISTORY_NULL);
	expect(POLLING, 110, POLL_UNKNOWN);
	enter(310);
	leave(400, SVM_HLT);
	window(439, 100, 200);
	expect(POLLING, 399, POLL_UNKNOWN);
	over(440, 35, false);
	expect(POLLING, 404, POLL_UNKNOWN);
	expect(POLLING, 405, POLL_SUCCEEDED);
	expect(POLLING, 439, POLL_SUCCEEDED);
	expect(POLLING, 440, HISTORY_NULL);
	enter(450);
	halt_and_sleep(500, 800, 900);  /* polls for 200 ns, then does other work */
	over(900, 400, true);
	expect(POLLING, 500, POLL_FAILED);
	expect(POLLING, 699, POLL_FAILED);
	expect(POLLING, 700, HISTORY_NULL);
	enter(910);
	halt_and_sleep(1000, 1050, 1100);  /* polls less, because another thread wants its CPU; a halt that is longer than
	                                    * the time since the last exit is ignored */
	window(1100, 200, 0);
	over(1100, 5000, true);
	expect(POLLING, 999, HISTORY_NULL);
	expect(POLLING, 1000, POLL_FAILED);
	expect(POLLING, 1050, HISTORY_NULL);
	enter(1110);
	halt_and_sleep(1200, 1210, 1300);  /* the limit is 0 from here */
	over(1300, 95, true);
	leave(1350, SVM_HLT);
	over(1360, 5, false);
	expect(POLLING, 1250, HISTORY_NULL);
	expect(POLLING, 1357, HISTORY_NULL);
	window(1360, 0, 50);
	enter(1370);
	leave(1400, SVM_HLT);
	struct event lost = event(1410, EV_LOST, 0, -1);
	lost.lost.end = 1500;
	feed(0, lost);
	over(1510, 100, false);         /* end of a halt that was not recorded */
	expect(POLLING, 1450, HISTORY_NULL);
	expect(POLLING, 1509, HISTORY_NULL);
	teardown();
}

/* ---- offline CPUs */

/* The guest's last record on the CPU is the switch to the stopper thread; its next record there is in the idle thread's
 * context. */
static void check_offline(int64_t comm, int halted, uint64_t contradictions)
{
	setup_full(true, true, true, false);
	sw(0, 10, 0, 0, RUN_RUNNABLE, 154);
	enter(20);
	struct event ev = event(30, EV_SWITCH, 0, 0);
	ev.sw.prev_tid = 0;
	ev.sw.prev_state = RUN_RUNNABLE;
	ev.sw.next_tid = 19;
	ev.sw.next_comm = comm;
	feed(1, ev);
	leave(40, SVM_NPF);
	enter(50);
	expect(VCPU, 50, VCPU_RUNNING);
	leave(60, SVM_HLT);
	sw(0, 70, 0, 154, RUN_BLOCKED, 0);
	expect(VCPU, 70, halted);
	sw(0, 1000, 0, 0, RUN_RUNNABLE, 154);
	enter(1010);
	sw(1, 1020, 0, 0, RUN_RUNNABLE, 1);
	expect(VCPU, 1020, VCPU_RUNNING);
	assert_int_equal(model->machine[1]->contradictions[EV_SWITCH], contradictions);
	teardown();
}

static void test_offline(void **state)
{
	(void)state;
	check_offline(STOPPER, VCPU_IDLE, 0);
	check_offline(BURN, VCPU_HOST_BLOCKED, 1);  /* a thread that waits for a spinlock */
}

/* A CPU of the host goes offline in the same way, without a halt. back: the first event is in the idle thread's context. */
static void check_host_offline(int64_t comm, bool back, bool was_offline)
{
	setup_full(true, true, false, false);
	struct event ev = event(30, EV_SWITCH, 1, 0);
	ev.sw.prev_tid = 0;
	ev.sw.prev_state = RUN_RUNNABLE;
	ev.sw.next_tid = 19;
	ev.sw.next_comm = comm;
	feed(0, ev);
	wake(0, 40, 1, 19, 7, 0);
	sw(0, 500, 0, 0, RUN_RUNNABLE, 7);
	if (back)
		simple(0, 1000, EV_TIMER_ENTRY, 1, 0);
	sw(0, 1010, 1, 0, RUN_RUNNABLE, 19);
	expect("/Host/CPUs/CPU1/Current Thread", 40, 19);
	expect("/Host/CPUs/CPU1/Current Thread", 41, was_offline ? 0 : 19);
	expect("/Host/Threads/19/Status", 40, THREAD_RUNNING);
	expect("/Host/Threads/19/Status", 41, was_offline ? THREAD_BLOCKED : THREAD_RUNNING);
	expect("/Host/Threads/19/Status", 1010, THREAD_RUNNING);
	assert_int_equal(model->machine[0]->contradictions[back ? EV_TIMER_ENTRY : EV_SWITCH], !was_offline);
	teardown();
}

/* Without recorded wakeups only the time at which the stopper thread ran last is known about its sleep. */
static void test_untold_offline(void **state)
{
	(void)state;
	setup_full(true, true, false, false);
	model->machine[0]->has_wakeups = false;
	sw(0, 20, 0, 0, RUN_RUNNABLE, 7);
	struct event ev = event(30, EV_SWITCH, 1, 0);
	ev.sw.prev_tid = 0;
	ev.sw.prev_state = RUN_RUNNABLE;
	ev.sw.next_tid = 19;
	ev.sw.next_comm = STOPPER1;
	feed(0, ev);
	simple(0, 50, EV_TIMER_ENTRY, 1, 0);
	simple(0, 60, EV_TIMER_EXIT, 1, 0);
	sw(0, 1010, 1, 0, RUN_RUNNABLE, 19);
	expect("/Host/Threads/19/Status", 30, THREAD_RUNNING);
	expect("/Host/Threads/19/Status", 31, THREAD_UNKNOWN);
	expect("/Host/Threads/19/Status", 1009, THREAD_UNKNOWN);
	expect("/Host/Threads/19/Status", 1010, THREAD_RUNNING);
	teardown();
}

static void test_host_offline(void **state)
{
	(void)state;
	check_host_offline(STOPPER1, true, true);
	check_host_offline(STOPPER1, false, true);
	check_host_offline(STOPPER, true, false);  /* stopper of another CPU */
	check_host_offline(BURN, true, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names), cmocka_unit_test(test_exit), cmocka_unit_test(test_exit_unseen),
		cmocka_unit_test(test_kernel_addresses), cmocka_unit_test(test_preempted_code), cmocka_unit_test(test_polling),
		cmocka_unit_test(test_offline), cmocka_unit_test(test_host_offline), cmocka_unit_test(test_untold_offline),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
