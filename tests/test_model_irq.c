/* Interrupt handlers: nesting, names, wakeups and locks in them. */
#include "model_events.h"

static void test_interrupts(void **state)
{
	(void)state;
	static const char path[] = "/Host/CPUs/CPU0/Interrupt";
	setup_full(true, true, true, false);
	struct { int64_t t; uint16_t kind; int64_t number, name; } e[] = {
		{ 10, EV_SOFTIRQ_ENTRY, 7, EVENT_ABSENT }, { 20, EV_IRQ_ENTRY, 27, VIRTIO }, { 30, EV_TIMER_ENTRY, 5, 0 },
		{ 35, EV_TIMER_EXIT, 5, 0 }, { 40, EV_IRQ_EXIT, 27, 0 }, { 50, EV_SOFTIRQ_EXIT, 7, 0 },
		{ 60, EV_TIMER_ENTRY, 6, 0 }, { 70, EV_TIMER_EXIT, 6, 0 }, { 80, EV_IRQ_EXIT, 99, 0 },
		{ 90, EV_IRQ_ENTRY, 4, 0 }, { 100, EV_SOFTIRQ_ENTRY, 42, 0 },
	};
	for (size_t i = 0; i < COUNT(e); i++) {
		struct event ev = event(e[i].t, e[i].kind, 0, 1);
		ev.irq.number = e[i].number;
		ev.irq.name = e[i].name;
		feed(0, ev);
		feed(1, ev);
	}
	static const struct { int64_t t; const char *text; } want[] = {
		{ 10, "softirq/7-SCHED" }, { 20, "irq/27-virtio0" }, { 30, "irq/27-virtio0" }, { 35, "irq/27-virtio0" },
		{ 40, "softirq/7-SCHED" }, { 50, "(null)" }, { 60, "timer" }, { 70, "(null)" }, { 80, "(null)" },
		{ 90, "irq/4" }, { 100, "softirq/42" },
	};
	for (size_t i = 0; i < COUNT(want); i++) {
		assert_string_equal(rec_text(&rec, want[i].t, path), want[i].text);
		assert_string_equal(rec_text(&rec, want[i].t, DEBIAN "/CPUs/CPU0/Interrupt"), want[i].text);
	}
	sw(0, 110, 0, 1, RUN_RUNNABLE, 2);  /* the exits were lost */
	assert_string_equal(rec_text(&rec, 110, path), "(null)");
	assert_string_equal(rec_text(&rec, 110, DEBIAN "/CPUs/CPU0/Interrupt"), "softirq/42");
	for (int i = 0; i < 3 * IRQ_NEST_MAX; i++) {
		struct event ev = event(120 + i, EV_IRQ_ENTRY, 0, 2);
		ev.irq.number = i;
		feed(0, ev);
	}
	for (int i = 3 * IRQ_NEST_MAX; i-- > 0; ) {
		struct event ev = event(200 - i, EV_IRQ_EXIT, 0, 2);
		ev.irq.number = i;
		feed(0, ev);
	}
	assert_string_equal(rec_text(&rec, 150, path), "irq/7");
	assert_string_equal(rec_text(&rec, 200, path), "(null)");
	teardown();
}

static void handler(int64_t t, uint16_t kind, int64_t number, int64_t name)
{
	struct event ev = event(t, kind, 0, 601);
	ev.irq.number = number;
	ev.irq.name = name;
	feed(0, ev);
}

/* An exit ends the handler of its number, and the handlers inside it with lost exits, but no other handler. */
static void test_exits_of_others(void **state)
{
	(void)state;
	static const char path[] = "/Host/CPUs/CPU0/Interrupt";
	setup_full(true, true, false, false);
	handler(10, EV_IRQ_ENTRY, 27, VIRTIO);
	handler(20, EV_IRQ_EXIT, 28, 0);
	assert_string_equal(rec_text(&rec, 20, path), "irq/27-virtio0");
	handler(30, EV_SOFTIRQ_EXIT, 27, 0);
	assert_string_equal(rec_text(&rec, 30, path), "irq/27-virtio0");
	handler(40, EV_IRQ_ENTRY, 28, 0);
	handler(50, EV_SOFTIRQ_ENTRY, 1, 0);
	handler(60, EV_IRQ_EXIT, 27, 0);
	assert_string_equal(rec_text(&rec, 60, path), "(null)");
	for (int i = 0; i <= IRQ_NEST_MAX; i++)
		handler(70 + i, EV_IRQ_ENTRY, i, 0);
	assert_string_equal(rec_text(&rec, 79, path), "irq/7");
	handler(80, EV_IRQ_EXIT, 3, 0);  /* exit of a handler that is too deep to be stored */
	assert_string_equal(rec_text(&rec, 80, path), "irq/7");
	handler(85, EV_IRQ_EXIT, 3 * IRQ_NEST_MAX, 0);  /* matches none, because all handlers are stored now */
	assert_string_equal(rec_text(&rec, 85, path), "irq/7");
	handler(90, EV_IRQ_EXIT, 7, 0);
	assert_string_equal(rec_text(&rec, 90, path), "irq/6");
	handler(95, EV_IRQ_EXIT, 5, 0);
	assert_string_equal(rec_text(&rec, 95, path), "irq/4");
	teardown();
}

static void waking(int64_t t, uint16_t cpu, int32_t by, int32_t tid)
{
	struct event ev = event(t, EV_WAKING, cpu, by);
	ev.wake.tid = tid;
	feed(0, ev);
}

/* Wakes with sched_waking and sched_wakeup, immediately on the CPU of the queue. */
static void rouse(int64_t t, int32_t by, int32_t tid)
{
	waking(t, 0, by, tid);
	wake(0, t, 0, by, tid, 0);
}

/* "Woken In" is "thread" only if handlers would be recorded; the idle thread itself wakes no thread. */
static void test_woken_in(void **state)
{
	(void)state;
	static const char path[] = "/Host/Threads/600/Woken In";
	setup_full(true, true, false, false);
	sw(0, 10, 0, 600, RUN_BLOCKED, 601);
	rouse(20, 601, 600);
	assert_string_equal(rec_text(&rec, 20, path), "(null)");
	sw(0, 30, 0, 601, RUN_RUNNABLE, 600);
	sw(0, 40, 0, 600, RUN_BLOCKED, 601);
	handler(50, EV_IRQ_ENTRY, 27, VIRTIO);
	handler(51, EV_SOFTIRQ_ENTRY, 4, 0);
	rouse(52, 601, 600);
	handler(53, EV_SOFTIRQ_EXIT, 4, 0);
	handler(54, EV_IRQ_EXIT, 27, 0);
	assert_string_equal(rec_text(&rec, 52, path), "(null)");  /* a timer may have interrupted the thread: no timer
	                                                           * handler was recorded */
	sw(0, 60, 0, 601, RUN_RUNNABLE, 600);
	sw(0, 70, 0, 600, RUN_BLOCKED, 601);
	handler(71, EV_TIMER_ENTRY, 0x1234, EVENT_ABSENT);
	handler(72, EV_TIMER_EXIT, 0x1234, EVENT_ABSENT);
	rouse(80, 601, 600);
	assert_string_equal(rec_text(&rec, 80, path), "thread");
	assert_string_equal(rec_text(&rec, 80, "/Host/Threads/600/Woken By"), "host/601");
	sw(0, 90, 0, 601, RUN_BLOCKED, 600);
	sw(0, 100, 0, 600, RUN_BLOCKED, 0);
	rouse(110, 0, 600);
	assert_string_equal(rec_text(&rec, 110, path), "(null)");
	assert_string_equal(rec_text(&rec, 110, "/Host/Threads/600/Woken By"), "host/0");
	sw(0, 120, 0, 0, RUN_RUNNABLE, 600);
	sw(0, 130, 0, 600, RUN_BLOCKED, 0);
	handler(131, EV_SOFTIRQ_ENTRY, 9, 0);
	handler(132, EV_TIMER_ENTRY, 0x1234, EVENT_ABSENT);  /* expired while the softirq ran */
	rouse(133, 0, 600);
	assert_string_equal(rec_text(&rec, 133, path), "timer");
	assert_string_equal(rec_text(&rec, 133, "/Host/CPUs/CPU0/Interrupt"), "softirq/9-RCU");
	handler(134, EV_TIMER_EXIT, 0x1234, EVENT_ABSENT);
	handler(135, EV_SOFTIRQ_EXIT, 9, 0);
	sw(0, 140, 0, 0, RUN_RUNNABLE, 600);
	sw(0, 150, 0, 600, RUN_BLOCKED, 0);
	handler(151, EV_SOFTIRQ_ENTRY, 9, 0);
	rouse(151, 0, 600);
	handler(152, EV_SOFTIRQ_EXIT, 9, 0);
	assert_string_equal(rec_text(&rec, 151, path), "softirq/9-RCU");
	sw(0, 160, 0, 0, RUN_RUNNABLE, 600);
	sw(0, 170, 0, 600, RUN_BLOCKED, 601);
	sw(0, 180, 0, 601, RUN_RUNNABLE, 600);  /* no wakeup was recorded: the previous waker does not count */
	assert_string_equal(rec_text(&rec, 180, path), "(null)");
	assert_string_equal(rec_text(&rec, 180, "/Host/Threads/600/Woken By"), "(null)");
	teardown();
}

/* Kinds of handlers that were requested and never occurred do not exist. */
static void test_asked(void **state)
{
	(void)state;
	static const char path[] = "/Host/Threads/600/Woken In";
	static const unsigned asked[] = { HANDLERS_ALL, HANDLERS_ALL & ~HANDLERS_IRQ };
	for (size_t i = 0; i < COUNT(asked); i++) {
		struct prescan s = PRESCAN_INIT;
		s.asked = asked[i];
		setup_full(true, true, false, false);
		assert_int_equal(model_begin(model, 0, 0, &s, NULL), 0);
		sw(0, 10, 0, 600, RUN_BLOCKED, 601);
		rouse(20, 601, 600);
		assert_string_equal(rec_text(&rec, 20, path), i ? "(null)" : "thread");
		teardown();
	}
}

/* The duration of handlers without exit events is unknown. Kinds that never occurred do not matter. */
static void test_endless(void **state)
{
	(void)state;
	assert_int_equal(handlers_without_exit(0, 0), 0);
	assert_int_equal(handlers_without_exit(KIND(EV_SOFTIRQ_ENTRY) | KIND(EV_SOFTIRQ_EXIT), 0), 0);
	assert_int_equal(handlers_without_exit(KIND(EV_IRQ_ENTRY) | KIND(EV_TIMER_ENTRY) | KIND(EV_TIMER_EXIT), 0), HANDLERS_IRQ);
	assert_int_equal(handlers_without_exit(KIND(EV_SOFTIRQ_ENTRY) | KIND(EV_TIMER_ENTRY) | KIND(EV_SOFTIRQ_EXIT), 0),
	                 HANDLERS_TIMER);
}

/* The only interrupt of a trace is interrupted by a loss: its exit was enabled, so its entry counts. */
static void test_lost_exit(void **state)
{
	(void)state;
	const unsigned enabled = HANDLERS_IRQ | ENABLED_EXITS * HANDLERS_IRQ;
	assert_int_equal(handlers_without_exit(KIND(EV_IRQ_ENTRY), enabled), 0);
	assert_int_equal(handlers_without_exit(KIND(EV_IRQ_ENTRY), HANDLERS_IRQ | ENABLED_EXITS * HANDLERS_TIMER), HANDLERS_IRQ);
	assert_int_equal(handlers_without_exit(KIND(EV_IRQ_ENTRY) | KIND(EV_TIMER_ENTRY), enabled), HANDLERS_TIMER);
}

/* A wakeup that takes long to reach another CPU: the waker is written at the time of the waking, also the second time. */
static void test_woken_early(void **state)
{
	(void)state;
	static const char path[] = "/Host/Threads/600/Woken By";
	setup_full(true, true, false, false);
	for (int64_t t = 0; t <= 1000000; t += 1000000) {
		sw(0, t + 10, 0, 600, RUN_BLOCKED, 601);
		waking(t + 20000, 0, 601, 600);
		wake(0, t + 90000, 1, 0, 600, 1);
		assert_string_equal(rec_text(&rec, t + 19999, path), "(null)");
		assert_string_equal(rec_text(&rec, t + 20000, path), "host/601");
		expect("/Host/Threads/600/Status", t + 89999, THREAD_BLOCKED);
		expect("/Host/Threads/600/Status", t + 90000, THREAD_PREEMPTED);
		sw(0, t + 95000, 0, 601, RUN_RUNNABLE, 600);
	}
	teardown();
}

/* Without sched_wakeup: a thread that leaves its CPU after a waking and runs again without another waking was woken by
 * it, or by an unrecorded waker: it may have waited while others had its CPU. */
static void test_woken_by_a_waking_alone(void **state)
{
	(void)state;
	static const char path[] = "/Host/Threads/600/Status";
	struct prescan s = PRESCAN_INIT;
	s.wakings = 1;
	setup_full(true, true, false, false);
	assert_int_equal(model_begin(model, 0, 0, &s, NULL), 0);
	sw(0, 1, 0, 0, RUN_RUNNABLE, 600);
	waking(10, 1, 601, 600);
	sw(0, 20, 0, 600, RUN_BLOCKED, 602);
	sw(0, 5000, 0, 602, RUN_RUNNABLE, 600);
	expect(path, 19, THREAD_RUNNING);
	expect(path, 20, THREAD_UNKNOWN);
	expect(path, 4999, THREAD_UNKNOWN);
	expect(path, 5000, THREAD_RUNNING);
	sw(0, 6000, 0, 600, RUN_BLOCKED, 602);
	waking(7000, 0, 602, 600);
	expect(path, 6999, THREAD_BLOCKED);
	expect(path, 7000, THREAD_PREEMPTED);
	teardown();
}

/* A waking while the thread leaves its CPU ends its sleep, and its own CPU completes the wakeup. If a second waking or
 * the wakeup itself follows immediately, the thread did not sleep. */
static void test_woken_before_it_sleeps(void **state)
{
	(void)state;
	static const struct { bool wakeup, again; const char *by; } cases[] = {
		{ false, false, "host/601" }, { true, false, "host/0" }, { false, true, "host/602" },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		setup_full(true, true, false, false);
		sw(0, 1, 0, 0, RUN_RUNNABLE, 600);
		sw(1, 2, 1, 0, RUN_RUNNABLE, 601);
		waking(10, 1, 601, 600);
		if (cases[i].wakeup)
			wake(0, 11, 1, 601, 600, 0);
		sw(0, 40000, 0, 600, RUN_BLOCKED, 0);
		if (cases[i].again) {
			sw(0, 40001, 1, 601, RUN_BLOCKED, 602);
			waking(60000, 1, 602, 600);
		}
		if (cases[i].wakeup)
			waking(90000, 0, 0, 600);
		wake(0, 90000, 0, 0, 600, 0);
		assert_string_equal(rec_text(&rec, 90000, "/Host/Threads/600/Woken By"), cases[i].by);
		assert_string_equal(rec_text(&rec, 39999, "/Host/Threads/600/Woken By"), "(null)");
		assert_string_equal(rec_text(&rec, 40000, "/Host/Threads/600/Woken By"), i == 0 ? "host/601" : "(null)");
		expect("/Host/Threads/600/Status", 89999, THREAD_BLOCKED);
		expect("/Host/Threads/600/Status", 90000, THREAD_PREEMPTED);
		teardown();
	}
}

/* Without sched_waking, a wakeup on the CPU where the thread is queued may come from another CPU: the interrupted thread
 * is not the waker. The waker of an earlier sleep does not count. */
static void test_woken_elsewhere(void **state)
{
	(void)state;
	static const char by[] = "/Host/Threads/600/Woken By", in[] = "/Host/Threads/600/Woken In";
	static const struct { uint16_t cpu; int target; bool in_timer, in_softirq; const char *by, *in; } cases[] = {
		{ 1, 0, false, false, "host/601", "thread" },  /* not on the CPU where the thread is queued */
		{ 0, 0, false, false, "(null)", "(null)" },
		{ 0, 0, true, false, "host/602", "timer" },    /* a timer handler is not interrupted */
		{ 0, 0, false, true, "(null)", "(null)" },
		{ 0, -1, false, false, "(null)", "(null)" },
		{ 1, 0, false, false, "host/601", "thread" },
	};
	struct prescan s = PRESCAN_INIT;
	s.asked = HANDLERS_ALL;
	s.wakeups = 1;
	setup_full(true, true, false, false);
	assert_int_equal(model_begin(model, 0, 0, &s, NULL), 0);
	sw(0, 1, 1, 0, RUN_RUNNABLE, 601);
	for (size_t i = 0; i < COUNT(cases); i++) {
		const int64_t t = 100000 * (int64_t)(i + 1);
		sw(0, t, 0, 600, RUN_BLOCKED, 602);
		if (cases[i].in_timer)
			handler(t + 10, EV_TIMER_ENTRY, 0x1234, EVENT_ABSENT);
		if (cases[i].in_softirq)
			handler(t + 10, EV_SOFTIRQ_ENTRY, 7, 0);
		wake(0, t + 20, cases[i].cpu, cases[i].cpu ? 601 : 602, 600, cases[i].target);
		handler(t + 30, cases[i].in_timer ? EV_TIMER_EXIT : EV_SOFTIRQ_EXIT, cases[i].in_timer ? 0x1234 : 7, 0);
		assert_string_equal(rec_text(&rec, t + 20, by), cases[i].by);
		assert_string_equal(rec_text(&rec, t + 20, in), cases[i].in);
		sw(0, t + 50, 0, 602, RUN_RUNNABLE, 600);
	}
	struct event born = event(700000, EV_FORK, 1, 601);
	born.fork.parent_tid = 601;
	born.fork.child_tid = 603;
	feed(0, born);
	wake(0, 700010, 1, 601, 603, 1);  /* first wakeup */
	assert_string_equal(rec_text(&rec, 700010, "/Host/Threads/603/Woken By"), "host/601");
	teardown();
}

static void lock(int64_t t, uint16_t kind, int64_t address, int64_t flags, int64_t value)
{
	struct event ev = event(t, kind, 0, 601);
	ev.lock.address = address;
	ev.lock.flags = flags;
	ev.lock.value = value;
	feed(0, ev);
}

/* A thread waits for the outermost lock, outside handlers; a futex counts only if it is a contended mutex. */
static void test_locks(void **state)
{
	(void)state;
	static const char path[] = "/Host/Threads/601/Lock";
	setup_full(true, true, true, false);
	sw(0, 5, 0, 1, RUN_RUNNABLE, 601);
	lock(10, EV_CONTENTION_BEGIN, 7, 32 | 1, EVENT_ABSENT);  /* spins while the owner runs ... */
	lock(20, EV_CONTENTION_BEGIN, 7, 32, EVENT_ABSENT);      /* ... and sleeps */
	lock(21, EV_CONTENTION_BEGIN, 8, 1, EVENT_ABSENT);
	lock(22, EV_CONTENTION_END, 8, 0, EVENT_ABSENT);
	lock(30, EV_CONTENTION_END, 7, 0, EVENT_ABSENT);
	handler(40, EV_IRQ_ENTRY, 27, VIRTIO);
	lock(41, EV_CONTENTION_BEGIN, 9, 1, EVENT_ABSENT);
	lock(42, EV_CONTENTION_END, 9, 0, EVENT_ABSENT);
	handler(43, EV_IRQ_EXIT, 27, VIRTIO);
	lock(50, EV_FUTEX_BEGIN, 100, 0x80, 2);
	lock(51, EV_CONTENTION_BEGIN, 8, 1, EVENT_ABSENT);
	lock(52, EV_CONTENTION_END, 8, 0, EVENT_ABSENT);
	lock(59, EV_FUTEX_END, EVENT_ABSENT, EVENT_ABSENT, EVENT_ABSENT);
	lock(60, EV_FUTEX_BEGIN, 100, 0x81, 1);                  /* FUTEX_WAKE */
	lock(70, EV_FUTEX_BEGIN, 100, 0x109, 161);               /* waits for the end of a thread */
	lock(80, EV_CONTENTION_BEGIN, 7, 2, EVENT_ABSENT);
	struct event loss = event(90, EV_LOST, 0, -1);
	loss.lost.end = 95;
	feed(0, loss);
	static const struct { int64_t t; const char *text; } want[] = {
		{ 9, "(null)" }, { 10, "mutex" }, { 22, "mutex" }, { 29, "mutex" }, { 30, "(null)" }, { 41, "(null)" },
		{ 50, "futex" }, { 58, "futex" }, { 59, "(null)" }, { 60, "(null)" }, { 70, "(null)" }, { 80, "rwsem" },
		{ 90, "(null)" },
	};
	for (size_t i = 0; i < COUNT(want); i++)
		assert_string_equal(rec_text(&rec, want[i].t, path), want[i].text);
	teardown();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interrupts),
		cmocka_unit_test(test_exits_of_others),
		cmocka_unit_test(test_locks),
		cmocka_unit_test(test_woken_in),
		cmocka_unit_test(test_asked), cmocka_unit_test(test_woken_elsewhere), cmocka_unit_test(test_endless),
		cmocka_unit_test(test_lost_exit),
		cmocka_unit_test(test_woken_early), cmocka_unit_test(test_woken_by_a_waking_alone),
		cmocka_unit_test(test_woken_before_it_sleeps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
