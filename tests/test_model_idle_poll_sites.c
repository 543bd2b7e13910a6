/* An untraced guest: idleness without halts is unknown at idle poll sites; the waker of a halted vCPU shows the purpose
 * of the wakeup; a vCPU that never ran is not idle. */
#include "model_events.h"

#include "model/state/exit_reasons.h"

enum { SVM_INTR = 0x60, SVM_VINTR = 0x64, SVM_CPUID = 0x72, SVM_HLT = 0x78, SVM_MSR = 0x7c, SVM_CALL = 0x81,
       SVM_NPF = 0x400 };
enum { VMX_INTERRUPT = 1, VMX_WINDOW = 7, VMX_HLT = 12 };
#define LOOP (-4096)         /* an address in the guest kernel */
#define USER 0x401234

static struct event kvm_exit(int64_t t, int64_t isa, int64_t reason, int64_t ip)
{
	struct event ev = event(t, EV_VCPU_EXIT, 0, 154);
	ev.vcpu_exit.isa = isa;
	ev.vcpu_exit.reason = reason;
	ev.vcpu_exit.ip = ip;
	return ev;
}

static struct { int n; struct event ev; } fed[100];
static size_t feds;

static void see(int n, int64_t isa, int64_t reason, int64_t ip)
{
	fed[feds].n = n;
	fed[feds++].ev = kvm_exit(0, isa, reason, ip);
}

static bool doubts(int64_t isa, int64_t reason, int64_t ip)
{
	const struct event ev = kvm_exit(0, isa, reason, ip);
	struct poll_sites seen = { .found = MAP_INIT };
	for (size_t i = 0; i < feds; i++)
		for (int n = 0; n < fed[i].n; n++)
			poll_sites_feed(&seen, 154, &fed[i].ev, exit_flags(&fed[i].ev));
	poll_sites_finish(&seen);
	const bool result = poll_sites_match(&seen, 154, &ev, exit_flags(&ev));
	poll_sites_release(&seen);
	return result;
}

static int forget(void **state)
{
	(void)state;
	feds = 0;
	return 0;
}

/* Minimum number of interruptions, and minimum share of all interruptions in the kernel. */
static void test_often(void **state)
{
	(void)state;
	see(7, ISA_VMX, VMX_INTERRUPT, LOOP);
	assert_false(doubts(ISA_VMX, VMX_INTERRUPT, LOOP));
	see(1, ISA_VMX, VMX_INTERRUPT, LOOP + 2);
	assert_true(doubts(ISA_VMX, VMX_INTERRUPT, LOOP));
	assert_true(doubts(ISA_VMX, VMX_INTERRUPT, LOOP + 31));   /* a loop has several instructions */
	assert_false(doubts(ISA_VMX, VMX_INTERRUPT, LOOP - 1));
	assert_false(doubts(ISA_VMX, VMX_HLT, LOOP));
	see(1000, ISA_VMX, VMX_INTERRUPT, USER);                  /* other exits do not count */
	see(1000, ISA_VMX, VMX_WINDOW, LOOP + 4096);              /* nor interrupt windows */
	assert_true(doubts(ISA_VMX, VMX_INTERRUPT, LOOP));
	for (int i = 0; i < 28; i++)
		see(1, ISA_VMX, VMX_INTERRUPT, LOOP - 4096 * (i + 1));
	assert_false(doubts(ISA_VMX, VMX_INTERRUPT, LOOP));       /* 8 of 36 */
	see(2, ISA_VMX, VMX_INTERRUPT, LOOP);
	assert_true(doubts(ISA_VMX, VMX_INTERRUPT, LOOP));        /* 10 of 38 */
	assert_false(doubts(ISA_VMX, VMX_INTERRUPT, USER));
}

/* A guest that halts when idle is not idle at poll sites; a few halts are waits for locks. */
static void test_halts(void **state)
{
	(void)state;
	see(20, ISA_SVM, SVM_INTR, LOOP);
	see(2, ISA_SVM, SVM_HLT, LOOP + 4096);
	assert_true(doubts(ISA_SVM, SVM_INTR, LOOP));
	see(1, ISA_SVM, SVM_HLT, LOOP + 4096);
	assert_false(doubts(ISA_SVM, SVM_INTR, LOOP));
}

static void leave(int64_t t, int64_t reason, int64_t ip)
{
	feed(0, kvm_exit(t, ISA_SVM, reason, ip));
	simple(0, t + 1, EV_VCPU_ENTRY, 0, 154);
}

static void test_doubt(void **state)
{
	(void)state;
	struct prescan s = PRESCAN_INIT;
	for (int i = 0; i < 100; i++) {
		struct event ev = kvm_exit(i, ISA_SVM, SVM_INTR, LOOP);
		prescan_feed(&s, &ev);
	}
	prescan_finish(&s);
	setup_full(true, true, false, false);
	assert_int_equal(model_begin(model, 0, 0, &s, NULL), 0);
	sw(0, 10, 0, 0, RUN_RUNNABLE, 154);
	simple(0, 20, EV_VCPU_ENTRY, 0, 154);
	leave(30, SVM_INTR, USER);
	leave(40, SVM_INTR, LOOP);       /* between these two it began to poll, or to work in its kernel */
	expect(VCPU, 21, VCPU_RUNNING);
	expect(VCPU, 31, VCPU_UNKNOWN);
	expect(VCPU, 40, VCPU_VMM);
	leave(50, SVM_MSR, LOOP - 4096);  /* a timer interrupt sets the next timer, whatever it interrupted */
	leave(60, SVM_VINTR, LOOP - 8192);
	feed(0, kvm_exit(70, ISA_SVM, SVM_INTR, LOOP));
	for (int64_t t = 41; t < 70; t += 10)
		expect(VCPU, t, VCPU_UNKNOWN);
	sw(0, 75, 0, 154, RUN_RUNNABLE, 7);
	expect(VCPU, 75, VCPU_UNKNOWN);  /* unknown whether time is lost */
	sw(0, 80, 0, 7, RUN_BLOCKED, 154);
	simple(0, 85, EV_VCPU_ENTRY, 0, 154);
	leave(90, SVM_CPUID, LOOP - 8192);  /* an action of a thread */
	expect(VCPU, 85, VCPU_UNKNOWN);
	expect(VCPU, 91, VCPU_RUNNING);
	feed(0, kvm_exit(100, ISA_SVM, SVM_MSR, LOOP - 4096));
	sw(0, 110, 0, 154, RUN_RUNNABLE, 7);
	expect(VCPU, 91, VCPU_RUNNING);
	expect(VCPU, 110, VCPU_PREEMPTED);
	teardown();
	prescan_release(&s);
}

/* ---- without recorded injections */

#define IDLE_AT (-8192)      /* the instruction at which its idle loop halts */
#define WAIT_AT (-12288)     /* halt of a thread that waits for a lock */
#define VCPU1 155            /* the thread of its sibling */
#define NOBODY (-1)          /* woken by a handler, not by a thread */

typedef void to_events(void *arg, const struct event *ev);

static void learn(void *arg, const struct event *ev)
{
	prescan_feed(arg, ev);
}

static void replay(void *arg, const struct event *ev)
{
	(void)arg;
	feed(0, *ev);
}

static void give(to_events *to, void *arg, int64_t t, enum event_kind kind, int32_t tid, int64_t value)
{
	struct event ev = event(t, (uint16_t)kind, tid == 154 ? 0 : 1, tid);
	if (kind == EV_SWITCH) {
		ev.sw.prev_tid = tid == 154 && value != 154 ? tid : 0;
		ev.sw.prev_state = ev.sw.prev_tid ? RUN_BLOCKED : RUN_RUNNABLE;
		ev.sw.next_tid = value;
		ev.tid = (int32_t)ev.sw.prev_tid;
	} else if (kind == EV_VCPU_EXIT) {
		ev.vcpu_exit.isa = ISA_SVM;
		ev.vcpu_exit.reason = value & 0xffff;
		ev.vcpu_exit.ip = -(value >> 16);
	} else if (kind == EV_WAKING || kind == EV_WAKEUP) {
		ev.wake.tid = value;
		ev.wake.target_cpu = 0;
	}
	to(arg, &ev);
}
#define AT(ip, reason) ((int64_t)-(ip) << 16 | (reason))

/* The vCPU, halted at `ip`, blocks; is woken by a handler, or by its sibling with a last exit for `reason`; and exits
 * for `does` after ns. Returns the time of its VM entry. */
static int64_t sleep_once(to_events *to, void *arg, int64_t t, int64_t ip, int32_t by, int64_t reason, int64_t ns,
                          int64_t does)
{
	give(to, arg, t, EV_VCPU_EXIT, 154, AT(ip, SVM_HLT));
	give(to, arg, t + 10, EV_SWITCH, 154, 0);
	give(to, arg, t + 20, EV_VCPU_ENTRY, VCPU1, 0);
	give(to, arg, t + 90, EV_VCPU_EXIT, VCPU1, AT(-4096, reason));
	if (by == NOBODY)
		give(to, arg, t + 95, EV_TIMER_ENTRY, VCPU1, 0);
	give(to, arg, t + 100, EV_WAKING, VCPU1, 154);
	give(to, arg, t + 101, EV_WAKEUP, VCPU1, 154);
	if (by == NOBODY)
		give(to, arg, t + 105, EV_TIMER_EXIT, VCPU1, 0);
	give(to, arg, t + 110, EV_SWITCH, 154, 154);
	give(to, arg, t + 120, EV_VCPU_ENTRY, 154, 0);
	give(to, arg, t + 120 + ns, EV_VCPU_EXIT, 154, does);
	give(to, arg, t + 120 + ns + 10, EV_VCPU_ENTRY, 154, 0);
	return t + 120;
}

/* Prescans a timer handler in the guest that halts again after 200 ns; a sibling that wakes a thread on the vCPU, which
 * touches memory after 1000 ns; and waits for a lock. */
static void begin_siblings(struct prescan *s)
{
	static const struct sync_vcpu vcpu[] = { { 0, 154, VCPU_BY_NAME, false }, { 1, VCPU1, VCPU_BY_NAME, false } };
	const struct machine_setup setup[] = {
		{ .name = "host", .parent = -1, .traced = true, .has_entries = true, .host_pid = -1, .names = { name_of, NULL } },
		{ .name = "Debian", .parent = 0, .host_pid = 151, .vcpu = vcpu, .vcpus = 2, .names = { name_of, NULL } },
	};
	give(learn, s, 1, EV_SWITCH, 154, 154);
	give(learn, s, 2, EV_SWITCH, VCPU1, VCPU1);
	give(learn, s, 3, EV_VCPU_ENTRY, VCPU1, 0);
	give(learn, s, 4, EV_VCPU_ENTRY, 154, 0);
	for (int64_t t = 10000; t < 1000000; t += 20000) {
		sleep_once(learn, s, t, IDLE_AT, NOBODY, SVM_MSR, 200, AT(IDLE_AT, SVM_HLT));
		sleep_once(learn, s, t + 5000, IDLE_AT, VCPU1, SVM_MSR, 1000, AT(-4096, SVM_NPF));
		if (t % 100000 == 10000)
			sleep_once(learn, s, t + 10000, WAIT_AT, VCPU1, SVM_CALL, 100, AT(-4096, SVM_NPF));
	}
	prescan_finish(s);
	rec_init(&rec);
	model = model_new(setup, COUNT(setup), false, &rec_ops, &rec, NULL);
	assert_int_equal(model_begin(model, 0, 0, s, NULL), 0);
	give(replay, NULL, 1, EV_SWITCH, 154, 154);
	give(replay, NULL, 2, EV_SWITCH, VCPU1, VCPU1);
	give(replay, NULL, 3, EV_VCPU_ENTRY, 154, 0);
	give(replay, NULL, 4, EV_VCPU_EXIT, 154, AT(-4096, SVM_NPF));
	give(replay, NULL, 5, EV_VCPU_ENTRY, 154, 0);
}

static void test_woken(void **state)
{
	(void)state;
	struct prescan s = PRESCAN_INIT;
	begin_siblings(&s);
	int64_t t = sleep_once(replay, NULL, 10000, IDLE_AT, NOBODY, SVM_MSR, 900, AT(IDLE_AT, SVM_HLT));
	assert_int_equal(rec_sum(&rec, VCPU, VCPU_RUNNING, t, t + 900), 0);  /* no thread ever ran then */
	t = sleep_once(replay, NULL, 20000, IDLE_AT, VCPU1, SVM_MSR, 900, AT(-4096, SVM_NPF));
	assert_int_equal(rec_sum(&rec, VCPU, VCPU_RUNNING, t, t + 900), 300);  /* 600 ns, as in test_model_guest */
	expect(VCPU, 20050, VCPU_IDLE);
	expect(VCPU, 20105, VCPU_WAKING);
	t = sleep_once(replay, NULL, 30000, WAIT_AT, VCPU1, SVM_CALL, 900, AT(-4096, SVM_NPF));
	expect(VCPU, 30050, VCPU_HOST_BLOCKED);  /* a thread of the guest waits */
	expect(VCPU, 30105, VCPU_PREEMPTED);
	assert_int_equal(rec_sum(&rec, VCPU, VCPU_RUNNING, t, t + 900), 900);
	teardown();
	prescan_release(&s);
}

/* The thread of a new vCPU waits for its VMM, not because of a halt. */
static void test_unused(void **state)
{
	(void)state;
	setup_full(true, true, false, false);
	struct event ev = event(10, EV_FORK, 0, 151);
	ev.fork.child_tid = 154;
	ev.fork.child_pid = 151;
	feed(0, ev);
	expect(VCPU, 10, VCPU_UNKNOWN);
	wake(0, 20, 0, 151, 154, 0);
	expect(VCPU, 20, VCPU_WAKING);
	sw(0, 30, 0, 151, RUN_BLOCKED, 154);
	expect(VCPU, 30, VCPU_VMM);
	sw(0, 40, 0, 154, RUN_BLOCKED, 0);
	expect(VCPU, 40, VCPU_UNKNOWN);
	wake(0, 50, 0, 0, 154, 0);
	sw(0, 60, 0, 0, RUN_RUNNABLE, 154);
	feed(0, event(70, EV_VCPU_ENTRY, 0, 154));
	feed(0, kvm_exit(80, ISA_SVM, SVM_HLT, LOOP));
	sw(0, 90, 0, 154, RUN_BLOCKED, 0);
	expect(VCPU, 90, VCPU_IDLE);
	teardown();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_often, forget),
		cmocka_unit_test_teardown(test_halts, forget),
		cmocka_unit_test(test_doubt),
		cmocka_unit_test(test_woken),
		cmocka_unit_test(test_unused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
