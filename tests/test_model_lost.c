/* The model on hand-made events: lost events, reported and not. */
#include "model_events.h"

static void test_lost_on_host(void **state)
{
	(void)state;
	setup_full(true, true, true, false);
	sw(1, 5, 0, 0, RUN_RUNNABLE, 900);
	sw(0, 10, 1, 216, RUN_RUNNABLE, 154);
	sw(0, 11, 0, 0, RUN_RUNNABLE, 300);
	simple(0, 20, EV_VCPU_ENTRY, 1, 154);
	struct event ev = event(30, EV_LOST, 1, -1);
	ev.lost.end = 39;
	feed(0, ev);
	expect("/Host/CPUs/CPU1/Current Thread", 30, HISTORY_NULL);
	assert_string_equal(rec.owner[rec_at(&rec, 30, "/Host/CPUs/CPU1/Owner")], "unknown");
	expect("/Host/Threads/154/Status", 30, THREAD_UNKNOWN);
	expect("/Host/Threads/216/Status", 30, THREAD_UNKNOWN);  /* the thread was queued on the CPU with the loss */
	expect("/Host/Threads/300/Status", 30, THREAD_RUNNING);  /* current on another CPU */
	expect(VCPU, 30, VCPU_UNKNOWN);
	expect(DEBIAN "/Threads/900/Status", 30, THREAD_UNKNOWN);
	simple(0, 40, EV_TIMER_ENTRY, 1, 154);  /* current, in an unknown mode */
	expect("/Host/Threads/154/Status", 40, THREAD_RUNNING);
	expect("/Host/CPUs/CPU1/Current Thread", 40, 154);
	expect(VCPU, 40, VCPU_UNKNOWN);
	simple(0, 50, EV_VCPU_EXIT, 1, 154);
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
	simple(0, 20, EV_VCPU_ENTRY, 1, 154);
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
	simple(0, 40, EV_VCPU_EXIT, 1, 154);
	expect(VCPU, 40, VCPU_VMM);      /* known for certain */
	simple(0, 50, EV_VCPU_ENTRY, 1, 154);
	simple(1, 60, EV_OTHER, 0, 901);
	expect(VCPU, 59, VCPU_UNKNOWN);
	expect(VCPU, 60, VCPU_RUNNING);
	expect(DEBIAN "/Threads/901/Status", 60, THREAD_RUNNING);
	teardown();
}

/* Events that are prescanned and then fed to a host: add..., play(), expect..., played(). */
static struct event list[64];
static size_t listed;
static struct prescan start;

static struct event *add(int64_t t, uint16_t kind, uint16_t cpu, int32_t tid)
{
	assert_true(listed < COUNT(list));
	list[listed] = event(t, kind, cpu, tid);
	return &list[listed++];
}

static void add_switch(int64_t t, uint16_t cpu, int32_t prev, enum run_state state, int32_t next)
{
	struct event *ev = add(t, EV_SWITCH, cpu, prev);
	ev->sw.prev_tid = prev;
	ev->sw.prev_state = state;
	ev->sw.next_tid = next;
}

static struct event *add_wake(int64_t t, uint16_t kind, int32_t tid, int64_t target)
{
	struct event *ev = add(t, kind, 0, -1);
	ev->wake.tid = tid;
	ev->wake.target_cpu = target;
	ev->wake.comm = BASH;
	return ev;
}

/* Adds a wakeup by thread `by` on CPU 1, without a target CPU. */
static void add_wake_by(int64_t t, int32_t by, int32_t tid)
{
	struct event *ev = add_wake(t, EV_WAKING, tid, EVENT_ABSENT);
	ev->cpu = 1;
	ev->tid = by;
}

static void add_loss(int64_t t, uint16_t cpu, int64_t end)
{
	add(t, EV_LOST, cpu, -1)->lost.end = end;
}

static void play(void)
{
	start = (struct prescan)PRESCAN_INIT;
	for (size_t i = 0; i < listed; i++)
		prescan_feed(&start, &list[i]);
	prescan_finish(&start);
	setup_full(true, true, false, false);
	assert_int_equal(model_begin(model, 0, 0, &start, NULL), 0);
	for (size_t i = 0; i < listed; i++)
		feed(0, list[i]);
}

static void end_play(void)
{
	prescan_release(&start);
	teardown();
	listed = 0;
}

#define T(tid) "/Host/Threads/" #tid "/Status"
#define IRQ "/Host/CPUs/CPU0/Interrupt"

/* After a loss, the next event of a thread shows its state since the end of the loss. */
static void test_recovered(void **state)
{
	(void)state;
	add(5, EV_TIMER_ENTRY, 1, 20);
	add_loss(10, 1, 30);
	add_wake(25, EV_WAKING, 10, EVENT_ABSENT)->tid = 0;  /* during the loss on CPU 1: proves the state of thread 10 at
	                                                      * that time only */
	add(40, EV_TIMER_ENTRY, 0, 0);
	add_wake_by(60, 20, 11);   /* slept since 30 */
	add_wake_by(61, 20, 154);  /* a vCPU slept, too */
	add_switch(70, 1, 20, RUN_BLOCKED, 30);
	add_switch(80, 1, 30, RUN_BLOCKED, 40);
	add_wake_by(90, 40, 20);   /* the thread ran in between: no information about the time before */
	add(95, EV_FORK, 1, 40)->fork.child_tid = 50;
	add_wake_by(96, 40, 50);   /* the thread did not exist */
	play();
	expect(T(20), 5, THREAD_RUNNING);
	expect(T(20), 40, THREAD_UNKNOWN);
	expect(T(20), 60, THREAD_RUNNING);
	expect(T(11), 25, HISTORY_NULL);
	expect(T(11), 40, THREAD_BLOCKED);
	expect(T(154), 40, THREAD_BLOCKED);
	expect(VCPU, 40, VCPU_IDLE);
	expect(T(30), 40, THREAD_PREEMPTED);
	expect(T(50), 94, HISTORY_NULL);
	end_play();
}

/* Threads that are not current, while CPU 1 loses events from 10 to 30. */
static void test_loss_elsewhere(void **state)
{
	(void)state;
	for (int32_t tid = 59; tid <= 65; tid++)  /* these threads block on CPU 0 */
		add_switch(tid - 58, 0, tid, RUN_BLOCKED, tid + 1);
	add_loss(10, 1, 30);
	add_switch(16, 0, 66, RUN_BLOCKED, 67);   /* blocks during the loss */
	add_switch(17, 0, 67, RUN_BLOCKED, 68);
	add_switch(18, 0, 68, RUN_RUNNABLE, 0);   /* another CPU may pull the thread unrecorded */
	add_wake(20, EV_WAKING, 59, 2);           /* the time of its migration is unknown */
	add_wake(20, EV_WAKING, 61, 0);
	add_wake(20, EV_WAKING, 62, 1);           /* the thread was on the CPU with the loss */
	add_wake(20, EV_WAKING, 63, 0);
	add_wake(21, EV_WAKEUP, 63, 0);
	add(35, EV_TIMER_ENTRY, 0, 0);
	add_switch(40, 0, 0, RUN_RUNNABLE, 60);   /* woken unrecorded */
	add_switch(41, 0, 60, RUN_RUNNABLE, 63);
	add_switch(42, 0, 63, RUN_RUNNABLE, 68);
	add_wake(45, EV_WAKING, 61, 0);           /* ran unrecorded after its last event */
	for (int32_t tid = 64; tid <= 70; tid += tid == 64 ? 2 : tid == 66 ? 3 : 1)  /* 64, 66, 69, 70 */
		add_wake(46, EV_WAKING, tid, tid == 70);
	play();
	expect(T(59), 10, THREAD_UNKNOWN);
	expect(T(60), 9, THREAD_BLOCKED);
	expect(T(60), 10, THREAD_UNKNOWN);
	expect(T(60), 35, THREAD_PREEMPTED);
	expect(T(61), 19, THREAD_BLOCKED);
	expect(T(61), 20, THREAD_UNKNOWN);
	expect(T(61), 35, THREAD_BLOCKED);
	expect(T(62), 10, THREAD_UNKNOWN);
	expect(T(62), 46, THREAD_UNKNOWN);    /* no later event */
	expect(T(63), 19, THREAD_BLOCKED);
	expect(T(63), 21, THREAD_UNKNOWN);    /* waits, or runs on the CPU with the loss */
	expect(T(63), 35, THREAD_PREEMPTED);
	expect(T(63), 41, THREAD_RUNNING);
	expect(T(64), 10, THREAD_BLOCKED);
	expect(T(64), 45, THREAD_BLOCKED);
	expect(T(65), 10, THREAD_UNKNOWN);    /* sleeps, or was woken and has exited */
	expect(T(65), 46, THREAD_UNKNOWN);
	expect(T(66), 15, THREAD_RUNNING);
	expect(T(66), 16, THREAD_BLOCKED);
	expect(T(66), 45, THREAD_BLOCKED);
	expect(T(67), 17, THREAD_UNKNOWN);
	expect(T(68), 17, THREAD_RUNNING);
	expect(T(68), 18, THREAD_UNKNOWN);
	expect(T(68), 35, THREAD_PREEMPTED);
	expect(T(69), 0, THREAD_BLOCKED);     /* first event after the loss: the thread slept all the time */
	expect(T(69), 45, THREAD_BLOCKED);
	assert_string_equal(rec_text(&rec, 0, "/Host/Threads/69/Name"), "bash");
	expect(T(70), 34, HISTORY_NULL);      /* blocked on the CPU with the loss, at the end of the loss at the latest */
	expect(T(70), 35, THREAD_BLOCKED);
	end_play();
}

/* After a loss the same TID belongs to another process. */
static void add_dump(int64_t t, int32_t tid, int64_t cpu)
{
	struct event *ev = add(t, EV_PROCESS, 0, 300);
	ev->process.tid = tid;
	ev->process.state = RUN_RUNNABLE;
	ev->process.cpu = cpu;
}

/* A state dump also lists current threads as runnable, for example the current thread of a CPU after a loss. */
static void test_dumped_after(void **state)
{
	(void)state;
	listed = 0;
	add_switch(5, 0, 0, RUN_RUNNABLE, 300);
	add_switch(6, 1, 0, RUN_RUNNABLE, 301);
	add_loss(30, 1, 39);
	add(40, EV_OTHER, 0, 300);
	add_dump(42, 303, 1);  /* current there */
	add_dump(43, 304, 1);  /* queued there */
	add_dump(44, 305, 0);  /* 300 is current there */
	add_switch(50, 1, 303, RUN_BLOCKED, 304);
	add_dump(52, 306, 1);
	play();
	expect("/Host/Threads/303/Status", 40, HISTORY_NULL);
	expect("/Host/Threads/303/Status", 42, THREAD_UNKNOWN);
	expect("/Host/Threads/304/Status", 49, THREAD_UNKNOWN);
	expect("/Host/Threads/305/Status", 44, THREAD_PREEMPTED);
	expect("/Host/Threads/303/Status", 50, THREAD_BLOCKED);
	expect("/Host/Threads/304/Status", 50, THREAD_RUNNING);
	expect("/Host/Threads/306/Status", 52, THREAD_PREEMPTED);
	end_play();
}

static void test_reused_unseen(void **state)
{
	(void)state;
	add(1, EV_TIMER_ENTRY, 0, 80)->pid = 79;
	add_switch(2, 0, 80, RUN_RUNNABLE, 0);
	list[listed - 1].sw.prev_comm = FIB;
	add_loss(10, 1, 30);
	add_switch(40, 0, 0, RUN_RUNNABLE, 80);
	list[listed - 1].sw.next_comm = BASH;
	add(50, EV_TIMER_ENTRY, 0, 80)->pid = 81;
	play();
	expect("/Host/Threads/80/PID", 39, 79);
	expect("/Host/Threads/80/PID", 40, HISTORY_NULL);
	expect("/Host/Threads/80/PID", 50, 81);
	end_play();
}

/* A handler without a recorded entry is found by its exit: at the beginning, and after a loss on its CPU. */
static void test_handlers_unseen(void **state)
{
	(void)state;
	add(2, EV_OTHER, 0, 90);
	add(3, EV_SOFTIRQ_ENTRY, 0, 90)->irq.number = 7;
	add(4, EV_SOFTIRQ_EXIT, 0, 90)->irq.number = 7;
	add(5, EV_IRQ_EXIT, 0, 90)->irq.number = 27;      /* inside a softirq, since before the trace */
	add(6, EV_SOFTIRQ_EXIT, 0, 90)->irq.number = 4;
	struct event *named = add(7, EV_IRQ_ENTRY, 0, 90);
	named->irq.number = 27;
	named->irq.name = VIRTIO;
	add_loss(10, 0, 20);
	add(25, EV_OTHER, 0, 90);
	add(26, EV_IRQ_EXIT, 0, 90)->irq.number = 27;
	add(27, EV_TIMER_EXIT, 0, 90)->timer.timer = 5;   /* no entries of this kind are recorded, so nothing follows */
	add_switch(28, 0, 90, RUN_RUNNABLE, 91);
	add(29, EV_IRQ_EXIT, 0, 91)->irq.number = 27;     /* no handler outlives a switch */
	add_loss(30, 0, 35);
	add_switch(36, 0, 90, RUN_RUNNABLE, 91);
	add(37, EV_IRQ_EXIT, 0, 91)->irq.number = 27;
	play();
	static const struct { int64_t t; const char *text; } want[] = {
		{ 0, "irq/27-virtio0" }, { 2, "irq/27-virtio0" }, { 3, "softirq/7-SCHED" }, { 4, "irq/27-virtio0" },
		{ 5, "softirq/4-BLOCK" }, { 6, "(null)" }, { 7, "irq/27-virtio0" }, { 10, "(null)" }, { 24, "(null)" },
		{ 25, "irq/27-virtio0" }, { 26, "(null)" }, { 27, "(null)" }, { 28, "(null)" }, { 36, "(null)" }, { 37, "(null)" },
	};
	for (size_t i = 0; i < COUNT(want); i++)
		if (strcmp(rec_text(&rec, want[i].t, IRQ), want[i].text))
			fail_msg("at %" PRId64 ": %s, not %s", want[i].t, rec_text(&rec, want[i].t, IRQ), want[i].text);
	end_play();
}

/* Without a reported loss: a switch that contradicts the state makes it unknown, and keeps it consistent. */
static void test_contradictions(void **state)
{
	(void)state;
	setup_full(true, true, false, false);
	sw(0, 10, 0, 0, RUN_RUNNABLE, 300);
	sw(0, 20, 1, 0, RUN_RUNNABLE, 300);  /* seems to be current on both CPUs */
	expect("/Host/CPUs/CPU0/Current Thread", 20, HISTORY_NULL);
	expect("/Host/CPUs/CPU1/Current Thread", 20, 300);
	expect("/Host/Threads/300/CPU", 20, 1);
	sw(0, 30, 1, 301, RUN_BLOCKED, 302);
	expect("/Host/Threads/300/Status", 30, THREAD_UNKNOWN);
	expect("/Host/Threads/301/Status", 30, THREAD_BLOCKED);
	simple(0, 40, EV_VCPU_ENTRY, 1, -1);
	simple(0, 50, EV_VCPU_ENTRY, 3, 154);  /* an entry without an exit, twice */
	simple(0, 60, EV_VCPU_ENTRY, 3, 154);
	expect(VCPU, 60, VCPU_RUNNING);
	struct event ev = event(70, EV_SWITCH, 65535, -5);
	feed(0, ev);  /* no valid field */
	ev.sw.prev_tid = INT64_MAX;
	ev.sw.next_tid = -7;
	ev.sw.prev_state = 99;
	feed(0, ev);
	teardown();
}

/* ---- threads whose events the kernel hides */

/* 60 is switched in on CPU 2 again and again, and leaves it unseen. It may have woken 341 unseen, too, so that 341 did not
 * wait since the beginning; without such switches it did. */
static void test_hidden_threads(void **state)
{
	struct machine_setup setup[] = { { .name = "host", .parent = -1, .traced = true, .host_pid = -1,
	                                   .names = { name_of, NULL } } };
	struct hidden_threads seen = { .len = 0 };
	static const int32_t seen_tid[] = { 1, 2, 3, 3, 2, 3 };
	(void)state;
	for (size_t i = 0; i < COUNT(seen_tid); i++)
		hidden_threads_add(&seen, seen_tid[i], 0);
	for (int32_t i = 0; i < 3; i++)  /* the most frequent first */
		assert_int_equal(seen.thread[i].tid, 3 - i);
	for (int hides = 0; hides < 2; hides++) {
		struct prescan scan = PRESCAN_INIT;
		rec_init(&rec);
		model = model_new(setup, COUNT(setup), false, &rec_ops, &rec, NULL);
		scan.asked = ENABLED_FORKS;
		for (int i = 0; i < 6; i++)
			for (int k = 0; k < (hides ? 1 : 2); k++) {
				struct event ev = event(21 + 2 * i + k, EV_SWITCH, 2, k ? 60 : 70);
				ev.sw.prev_tid = k ? 60 : 70;
				ev.sw.next_tid = k ? 70 : 60;
				prescan_feed(&scan, &ev);
			}
		struct event ev = event(40, EV_WAKEUP, 3, 0);
		ev.wake.tid = 340;
		prescan_feed(&scan, &ev);
		ev = event(41, EV_SWITCH, 3, 0);
		ev.sw.prev_tid = 0;
		ev.sw.next_tid = 341;
		prescan_feed(&scan, &ev);
		prescan_finish(&scan);
		assert_int_equal(model_begin(model, 0, 20, &scan, NULL), 0);
		expect("/Host/Threads/340/Status", 20, THREAD_BLOCKED);
		expect("/Host/Threads/341/Status", 20, hides ? THREAD_UNKNOWN : THREAD_PREEMPTED);
		for (int i = 0; i < 3; i++)
			sw(0, 50 + i, 2, 70, RUN_RUNNABLE, 60);
		assert_int_equal(hidden_threads_times(&model->machine[0]->hidden), 2);
		sw(0, 60, 2, 60, RUN_RUNNABLE, 70);  /* it is not hidden */
		assert_int_equal(hidden_threads_times(&model->machine[0]->hidden), 0);
		prescan_release(&scan);
		teardown();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hidden_threads), cmocka_unit_test(test_lost_on_host),
		cmocka_unit_test(test_lost_on_guest),
		cmocka_unit_test(test_recovered),
		cmocka_unit_test(test_loss_elsewhere),
		cmocka_unit_test(test_dumped_after), cmocka_unit_test(test_reused_unseen),
		cmocka_unit_test(test_handlers_unseen),
		cmocka_unit_test(test_contradictions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
