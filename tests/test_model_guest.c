/* What the host alone tells of a guest: exits by name, and when it has nothing to do. */
#include "model_events.h"

#include "model/exit_reasons.h"

#define EXIT DEBIAN "/CPUs/CPU0/Exit"
enum { SVM_INTR = 0x60, SVM_HLT = 0x78, SVM_MSR = 0x7c, SVM_NPF = 0x400 };
#define KERNEL (-1000)       /* an address of a guest's kernel */
#define HALT_AT (-5000)      /* the address at which it halts */
#define USER 0x401234

static struct event kvm(int64_t t, uint16_t kind, int64_t reason, int64_t ip)
{
	struct event ev = event(t, kind, 0, 154);
	if (kind == EV_INJECT) {
		ev.inject.vector = reason;
	} else if (kind == EV_KVM_EXIT) {
		ev.kvm.reason = reason;
		ev.kvm.isa = ISA_SVM;
		ev.kvm.ip = reason == SVM_HLT ? HALT_AT : ip;
	}
	return ev;
}

static void leave(int64_t t, int64_t reason)
{
	feed(0, kvm(t, EV_KVM_EXIT, reason, KERNEL));
}

static void enter(int64_t t)
{
	feed(0, kvm(t, EV_KVM_ENTRY, 0, 0));
}

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
		{ EVENT_ABSENT, 12, EVENT_ABSENT, "12", EXIT_OTHER }, { EVENT_ABSENT, EVENT_ABSENT, EVENT_ABSENT, "unknown", EXIT_OTHER },
	};
	for (size_t i = 0; i < COUNT(want); i++) {
		char buf[EXIT_NAME];
		struct event ev = event(0, EV_KVM_EXIT, 0, 154);
		ev.kvm.isa = want[i].isa;
		ev.kvm.reason = want[i].reason;
		ev.kvm.ret = want[i].ret;
		assert_string_equal(exit_name(&ev, buf), want[i].name);
		assert_int_equal(exit_class(&ev), want[i].class);
	}
}

/* The reason stands until there is another one, and not through a loss.  An exit behind another one of the same reason
 * can be told from it. */
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

/* Out of guest mode without a word: nothing is known of when. */
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

/* ---- a guest without a trace */

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
	setup_full(true, true, false, false);
	learn_timer(&s);
	begin_halted(&s);
	assert_int_equal(RAN(10000, { 100, SVM_MSR }, { 50, SVM_HLT }), 0);
	assert_int_equal(RAN(20000, { 9000, SVM_MSR }, { 50, SVM_HLT }), 0);
	assert_int_equal(RAN(40000, { 5000, SVM_INTR }, { 5000, SVM_MSR }, { 50, SVM_HLT }), 0);
	assert_int_equal(RAN(60000, { 100, SVM_MSR }, { 125, SVM_HLT }), 0);
	assert_int_equal(RAN(70000, { 100, SVM_MSR }, { 200, SVM_HLT }), 200 - 75 - 70);
	assert_int_equal(RAN(80000, { 100, SVM_MSR }, { 225, SVM_INTR }, { 10, SVM_NPF }, { 60, SVM_HLT }), 10);
	assert_int_equal(RAN(90000, { 100, SVM_MSR }, { 226, SVM_INTR }, { 10, SVM_NPF }, { 60, SVM_HLT }), 226 - 75 + 10);
	teardown();
	start_release(&s);
}

/* What sends an interrupt to a sibling, or wakes its thread, may be an interrupt's handler while nobody runs: the time tells. */
static void test_sends(void **state)
{
	(void)state;
	const struct event ipi = kvm(30110, EV_IPI, 0, 0);
	struct start s = START_INIT;
	setup_full(true, true, false, false);
	learn_timer(&s);
	begin_halted(&s);
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
	teardown();
	start_release(&s);
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
	teardown();
	start_release(&s);
}

/* Interrupted at its halt, the guest is idle, although a thread ran before. */
static void test_at_halt(void **state)
{
	(void)state;
	struct start s = START_INIT;
	setup_full(true, true, false, false);
	learn_timer(&s);
	begin_halted(&s);
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
	teardown();
	start_release(&s);
}

/* An interruption tells nothing, unless the guest was in user space: then a thread ran. */
static void test_interrupted(void **state)
{
	(void)state;
	struct start s = START_INIT;
	setup_full(true, true, false, false);
	learn_device(&s);
	begin_halted(&s);
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
	teardown();
	start_release(&s);
}

/* ---- inside the kernel */

#define INSIDE DEBIAN "/CPUs/CPU0/Preempted At"

static void test_kernel_addresses(void **state)
{
	(void)state;
	static const struct { int64_t isa, ret; uint64_t ip; int64_t is; } want[] = {
		{ ISA_VMX, EVENT_ABSENT, 0xffffffff81000000, (int64_t)0xffffffff81000000 },
		{ ISA_SVM, EVENT_ABSENT, 0xff11000000001000, (int64_t)0xff11000000001000 },  /* 5 levels of pages */
		{ ISA_SVM, EVENT_ABSENT, 0x00007fffffffffff, 0 }, { ISA_VMX, EVENT_ABSENT, 0x00ffffffffffffff, 0 },
		{ ISA_VMX, EVENT_ABSENT, 0x0100000000000000, EVENT_ABSENT }, { ISA_SVM, EVENT_ABSENT, 0xfeffffffffffffff, EVENT_ABSENT },
		{ EVENT_ABSENT, 0, 0xffff800008010000, (int64_t)0xffff800008010000 }, { EVENT_ABSENT, 0, 0x000fffffffffffff, 0 },
		{ EVENT_ABSENT, 0, 0xff11000000001000, EVENT_ABSENT },  /* arm64 has none there */
		{ EVENT_ABSENT, EVENT_ABSENT, 0xffffffff81000000, EVENT_ABSENT },  /* whose halves nobody knows */
	};
	for (size_t i = 0; i < COUNT(want); i++) {
		struct event ev = event(0, EV_KVM_EXIT, 0, 154);
		ev.kvm.isa = want[i].isa;
		ev.kvm.ret = want[i].ret;
		ev.kvm.ip = (int64_t)want[i].ip;
		assert_int_equal(exit_kernel_address(&ev), want[i].is);
	}
}

static void leave_at(int64_t t, int64_t ip)
{
	feed(0, kvm(t, EV_KVM_EXIT, SVM_INTR, ip));
}

static void test_inside(void **state)
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
	sw(0, 120, 0, 154, RUN_BLOCKED, 7);  /* of its own will */
	wake(0, 130, 0, 7, 154, 0);
	expect(INSIDE, 135, HISTORY_NULL);
	sw(0, 140, 0, 7, RUN_RUNNABLE, 154);
	enter(150);
	sw(0, 160, 0, 154, RUN_RUNNABLE, 7);  /* nobody saw how it left */
	expect(VCPU, 165, VCPU_PREEMPTED);
	expect(INSIDE, 165, HISTORY_NULL);
	teardown();
}

/* ---- polling */

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

/* Halts at `from` and sleeps from `out` on. */
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
	over(300, 190, true);           /* for how long it may was not told */
	expect(POLLING, 109, HISTORY_NULL);
	expect(POLLING, 110, POLL_UNTOLD);
	enter(310);
	leave(400, SVM_HLT);
	window(439, 100, 200);
	expect(POLLING, 399, POLL_UNTOLD);
	over(440, 35, false);
	expect(POLLING, 404, POLL_UNTOLD);
	expect(POLLING, 405, POLL_WON);
	expect(POLLING, 439, POLL_WON);
	expect(POLLING, 440, HISTORY_NULL);
	enter(450);
	halt_and_sleep(500, 800, 900);  /* up to 200, then it did something else */
	over(900, 400, true);
	expect(POLLING, 500, POLL_LOST);
	expect(POLLING, 699, POLL_LOST);
	expect(POLLING, 700, HISTORY_NULL);
	enter(910);
	halt_and_sleep(1000, 1050, 1100);  /* less: somebody wanted its CPU; and longer than since it was left: not that */
	window(1100, 200, 0);
	over(1100, 5000, true);
	expect(POLLING, 999, HISTORY_NULL);
	expect(POLLING, 1000, POLL_LOST);
	expect(POLLING, 1050, HISTORY_NULL);
	enter(1110);
	halt_and_sleep(1200, 1210, 1300);  /* it may no more */
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
	over(1510, 100, false);         /* the end of a halt of which nobody knows */
	expect(POLLING, 1450, HISTORY_NULL);
	expect(POLLING, 1509, HISTORY_NULL);
	teardown();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_exit),
		cmocka_unit_test(test_exit_unseen),
		cmocka_unit_test(test_halted),
		cmocka_unit_test(test_traced),
		cmocka_unit_test(test_estimate),
		cmocka_unit_test(test_timer),
		cmocka_unit_test(test_sends),
		cmocka_unit_test(test_sends_learnt),
		cmocka_unit_test(test_at_halt),
		cmocka_unit_test(test_interrupted),
		cmocka_unit_test(test_kernel_addresses),
		cmocka_unit_test(test_inside),
		cmocka_unit_test(test_polling),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
