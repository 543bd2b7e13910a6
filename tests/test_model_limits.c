/* What keeps a vCPU from its CPU although nobody else needs that: quotas and pauses. */
#include "model_events.h"

#include <errno.h>

#define MS 1000000
#define OUT_BY DEBIAN "/CPUs/CPU0/Out By"
enum { SVM_INTR = 0x60, SVM_HLT = 0x78, SVM_NPF = 0x400, KVM_MMIO = 6, KVM_INTR = 10 };

/* A switch to a thread of that nice level; times in ms. */
static void to(double t, int32_t prev, enum run_state state, int32_t next, int64_t nice)
{
	struct event ev = event((int64_t)(t * MS), EV_SWITCH, 0, prev);
	ev.sw.prev_tid = prev;
	ev.sw.prev_state = state;
	ev.sw.next_tid = next;
	ev.sw.next_prio = nice;
	feed(0, ev);
}

/* Interrupts, every so many ms. */
static void ticks(double from, double end, double each, int32_t tid)
{
	for (double t = from + each; t < end; t += each) {
		simple(0, (int64_t)(t * MS), EV_TIMER_ENTRY, 0, tid);
		simple(0, (int64_t)(t * MS) + 1000, EV_TIMER_EXIT, 0, tid);
	}
}

static void at(double t, int64_t why)
{
	expect(OUT_BY, (int64_t)(t * MS), why);
}

static void begin(void)
{
	setup_full(true, true, true, false);
	to(1, 0, RUN_RUNNABLE, 154, 0);
}

/* A host that is traced, and a guest with these vCPUs that is not. */
static void begin_with(const struct sync_vcpu *vcpu, size_t vcpus)
{
	struct machine_setup setup[] = {
		{ .name = "host", .parent = -1, .traced = true, .has_kvm = true, .host_pid = -1, .names = { name_of, NULL } },
		{ .name = "Debian", .parent = 0, .host_pid = 151, .vcpu = vcpu, .vcpus = vcpus, .names = { name_of, NULL } },
	};
	rec_init(&rec);
	model = model_new(setup, COUNT(setup), false, &rec_ops, &rec, NULL);
	assert_int_equal(model_begin(model, 0, 0, NULL, NULL), 0);
}

/* Its CPU was left to nobody while it could run: from when it came to be out, whoever had the CPU first. */
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
	at(97, HISTORY_NULL);  /* from here on it may have waited for 7 */
	to(110, 154, RUN_RUNNABLE, 0, 0);
	to(110.9, 0, RUN_RUNNABLE, 154, 0);  /* being moved, or whatever takes no time */
	at(110.5, HISTORY_NULL);
	teardown();
}

/* Interrupts that come right behind each other until it goes on: any of them may have given the quota anew. */
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
	to(130.06, 0, RUN_RUNNABLE, 154, 0);  /* a long one */
	at(129.9, OUT_QUOTA);
	at(130, HISTORY_NULL);
	teardown();
}

/* A light task that is interrupted does not keep the CPU for that long while a heavy one may have it; one of about its
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
	at(150, HISTORY_NULL);
	to(220, 154, RUN_RUNNABLE, 240, 19);
	ticks(220, 232, 2, 240);
	to(232, 240, RUN_RUNNABLE, 154, 0);  /* its slice */
	at(225, HISTORY_NULL);
	to(240, 154, RUN_RUNNABLE, 50, -51);
	ticks(240, 300, 10, 50);
	to(300, 50, RUN_BLOCKED, 154, 0);  /* real time goes first */
	at(270, HISTORY_NULL);
	to(310, 154, RUN_RUNNABLE, 240, EVENT_ABSENT);  /* its weight is not known */
	ticks(310, 400, 10, 240);
	to(400, 240, RUN_RUNNABLE, 154, 0);
	at(350, HISTORY_NULL);
	teardown();
}

/* A light task that nothing interrupts, or one of the kernel's own, is not asked whether it leaves. */
static void test_not_asked(void **state)
{
	(void)state;
	begin();
	to(20, 154, RUN_RUNNABLE, 240, 19);
	ticks(20, 22, 0.5, 240);  /* what comes together is one, and the CPU stands still afterwards */
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
	to(211, 240, RUN_RUNNABLE, 154, 0);  /* not once since that was woken */
	at(200, HISTORY_NULL);
	teardown();
}

/* Waking up takes time, also on an idle CPU, which may be held up itself; but that is not where others come and go. */
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
	teardown();
}

/* Who had the CPU while events were lost is not known. */
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

static void kvm_of(double t, uint16_t cpu, int32_t tid, uint16_t kind, int64_t reason)
{
	struct event ev = event((int64_t)(t * MS), kind, cpu, tid);
	if (kind == EV_USERSPACE_EXIT) {
		ev.userspace.reason = reason;
		ev.userspace.error = reason == KVM_INTR ? -EINTR : 0;
	} else if (kind == EV_KVM_EXIT) {
		ev.kvm.reason = reason;
		ev.kvm.isa = ISA_SVM;
	}
	feed(0, ev);
}

static void kvm(double t, uint16_t kind, int64_t reason)
{
	kvm_of(t, 0, 154, kind, reason);
}

/* Called back by its monitor, asleep, and again back when that lets it go on. */
static void test_pause(void **state)
{
	(void)state;
	begin();
	kvm(2, EV_KVM_ENTRY, 0);
	kvm(10, EV_KVM_EXIT, SVM_INTR);
	kvm(11, EV_USERSPACE_EXIT, KVM_INTR);
	to(12, 154, RUN_BLOCKED, 0, 0);
	wake(0, 50 * MS, 0, 0, 154, 0);
	to(51, 0, RUN_RUNNABLE, 154, 0);
	to(52, 154, RUN_BLOCKED, 0, 0);
	wake(0, 300 * MS, 0, 0, 154, 0);
	to(301, 0, RUN_RUNNABLE, 154, 0);
	kvm(302, EV_USERSPACE_EXIT, KVM_INTR);
	kvm(303, EV_KVM_ENTRY, 0);
	at(10.9, HISTORY_NULL);
	at(11, OUT_PAUSE);
	at(302.9, OUT_PAUSE);
	at(303, HISTORY_NULL);
	kvm(310, EV_KVM_EXIT, SVM_INTR);  /* the tracer does not record the way back */
	to(312, 154, RUN_BLOCKED, 0, 0);
	wake(0, 400 * MS, 0, 0, 154, 0);
	to(401, 0, RUN_RUNNABLE, 154, 0);
	kvm(402, EV_KVM_ENTRY, 0);
	at(311, HISTORY_NULL);
	at(350, OUT_PAUSE);
	teardown();
}

/* A guest that sleeps, or waits for a device of its monitor, is not paused; nor is one that its monitor needs shortly. */
static void test_no_pause(void **state)
{
	(void)state;
	begin();
	kvm(2, EV_KVM_ENTRY, 0);
	kvm(10, EV_KVM_EXIT, SVM_HLT);
	to(12, 154, RUN_BLOCKED, 0, 0);
	wake(0, 100 * MS, 0, 0, 154, 0);
	to(101, 0, RUN_RUNNABLE, 154, 0);
	kvm(102, EV_KVM_ENTRY, 0);
	at(50, HISTORY_NULL);
	kvm(110, EV_KVM_EXIT, 0x400);
	kvm(111, EV_USERSPACE_EXIT, KVM_MMIO);
	to(112, 154, RUN_BLOCKED, 0, 0);
	wake(0, 200 * MS, 0, 0, 154, 0);
	to(201, 0, RUN_RUNNABLE, 154, 0);
	kvm(202, EV_KVM_ENTRY, 0);
	at(150, HISTORY_NULL);
	kvm(210, EV_KVM_EXIT, SVM_INTR);
	kvm(211, EV_USERSPACE_EXIT, KVM_INTR);
	to(212, 154, RUN_BLOCKED, 0, 0);
	wake(0, 213 * MS, 0, 0, 154, 0);
	to(214, 0, RUN_RUNNABLE, 154, 0);
	kvm(215, EV_KVM_ENTRY, 0);
	at(212, HISTORY_NULL);
	teardown();
}

/* All vCPUs, or it is none; and a pause may last to the end of the recording. */
static void test_all(void **state)
{
	(void)state;
	static const struct sync_vcpu vcpu[] = { { 0, 154, VCPU_BY_NAME }, { 1, 155, VCPU_BY_NAME }, { 2, 156, VCPU_BY_NAME } };
	begin_with(vcpu, COUNT(vcpu));
	for (int round = 0; round < 2; round++) {
		double t = 1000 * round;
		for (uint16_t c = 0; c < 2; c++) {
			sw(0, (int64_t)((t + c) * MS), c, 0, RUN_RUNNABLE, 154 + c);
			kvm_of(t + 2 + c, c, 154 + c, EV_KVM_ENTRY, 0);
		}
		for (uint16_t c = 0; c < round + 1; c++) {
			kvm_of(t + 10 + c, c, 154 + c, EV_KVM_EXIT, SVM_INTR);
			kvm_of(t + 10 + c, c, 154 + c, EV_USERSPACE_EXIT, KVM_INTR);
			sw(0, (int64_t)((t + 12 + c) * MS), c, 154 + c, RUN_BLOCKED, 0);
		}
		if (round)
			break;
		sw(0, 200 * MS, 0, 0, RUN_RUNNABLE, 154);
		kvm(201, EV_KVM_ENTRY, 0);
		sw(0, 202 * MS, 0, 154, RUN_BLOCKED, 0);
		sw(0, 202 * MS, 1, 155, RUN_BLOCKED, 0);
		at(100, HISTORY_NULL);  /* the other one went on */
	}
	simple(0, 1500 * MS, EV_OTHER, 0, 0);
	assert_int_equal(model_end(model, 0, (int64_t)1500 * MS, NULL), 0);
	at(1009, HISTORY_NULL);
	at(1010, OUT_PAUSE);
	expect(DEBIAN "/CPUs/CPU1/Out By", 1013 * (int64_t)MS, OUT_PAUSE);
	at(1500, HISTORY_NULL);
	teardown();
}

/* Another process goes on with it: its thread was there before, and is the vCPU from its first entry on. */
static void test_moved(void **state)
{
	(void)state;
	static const struct sync_vcpu vcpu[] = { { 0, 154, VCPU_BY_NAME }, { 0, 233, VCPU_BY_NAME } };
	static const struct sync_life life[] = { { 0, 10 * MS }, { 400 * MS, INT64_MAX } };
	struct machine_setup setup[] = {
		{ .name = "host", .parent = -1, .traced = true, .has_kvm = true, .host_pid = -1, .names = { name_of, NULL } },
		{ .name = "Debian", .parent = 0, .traced = true, .host_pid = -1, .vcpu = vcpu, .life = life, .vcpus = 2,
		  .names = { name_of, NULL } },
	};
	rec_init(&rec);
	model = model_new(setup, COUNT(setup), false, &rec_ops, &rec, NULL);
	assert_int_equal(model_begin(model, 0, 0, NULL, NULL), 0);
	assert_int_equal(model_begin(model, 1, 0, NULL, NULL), 0);
	to(1, 0, RUN_RUNNABLE, 154, 0);
	sw(1, MS + 1, 0, 0, RUN_RUNNABLE, 5);
	kvm(2, EV_KVM_ENTRY, 0);
	kvm(10, EV_KVM_EXIT, SVM_INTR);
	kvm(11, EV_USERSPACE_EXIT, KVM_INTR);
	to(12, 154, RUN_BLOCKED, 233, 0);
	to(20, 233, RUN_BLOCKED, 0, 0);  /* it waits for the machine to come */
	to(398, 0, RUN_RUNNABLE, 233, 0);
	kvm_of(400, 0, 233, EV_KVM_ENTRY, 0);
	expect(DEBIAN "/CPUs/CPU0/Host Thread", 399 * MS, 154);
	expect(VCPU, 399 * MS, VCPU_HOST_BLOCKED);
	at(10, HISTORY_NULL);
	at(11, OUT_MIGRATION);
	at(399, OUT_MIGRATION);
	at(400, HISTORY_NULL);
	expect(DEBIAN "/CPUs/CPU0/Host Thread", 400 * MS, 233);
	expect(VCPU, 400 * MS, VCPU_RUNNING);
	sw(0, 410 * MS, 1, 154, RUN_BLOCKED, 0);  /* what is left of the old one ends */
	expect(VCPU, 411 * MS, VCPU_RUNNING);
	teardown();
}

/* It touched memory that was not there: as long as its thread sleeps for that, signals or no. */
static void test_fault(void **state)
{
	(void)state;
	begin();
	sw(1, MS, 0, 0, RUN_RUNNABLE, 900);  /* of the guest: it has something to do */
	kvm(2, EV_KVM_ENTRY, 0);
	kvm(5, EV_KVM_EXIT, SVM_NPF);
	to(6, 154, RUN_UNINTERRUPTIBLE, 0, 0);  /* nobody has told of a monitor: this may be its */
	to(8, 0, RUN_RUNNABLE, 154, 0);
	kvm(9, EV_USERSPACE_EXIT, KVM_MMIO);
	kvm(10, EV_KVM_ENTRY, 0);
	at(7, HISTORY_NULL);
	kvm(20, EV_KVM_EXIT, SVM_NPF);
	to(21, 154, RUN_UNINTERRUPTIBLE, 7, 0);
	wake(0, 25 * MS, 0, 7, 154, 0);
	to(27, 7, RUN_RUNNABLE, 154, 0);
	to(28, 154, RUN_UNINTERRUPTIBLE, 7, 0);  /* and once more, before the guest goes on */
	wake(0, 30 * MS, 0, 7, 154, 0);
	to(31, 7, RUN_RUNNABLE, 154, 0);
	kvm(32, EV_KVM_ENTRY, 0);
	at(20.9, HISTORY_NULL);
	at(21, OUT_FAULT);
	expect(OUT_BY, 25 * MS - 1, OUT_FAULT);
	at(25, HISTORY_NULL);  /* from here on it waits for its CPU */
	expect(OUT_BY, 28 * MS - 1, HISTORY_NULL);
	at(28, OUT_FAULT);
	at(30, HISTORY_NULL);
	assert_int_equal(rec_sum(&rec, OUT_BY, OUT_FAULT, 0, 40 * MS), 6 * MS);
	expect(VCPU, 22 * MS, VCPU_HOST_BLOCKED);
	teardown();
}

/* What else makes it sleep: nothing is said. */
static void test_no_fault(void **state)
{
	(void)state;
	begin();
	kvm(2, EV_USERSPACE_EXIT, KVM_MMIO);
	kvm(3, EV_KVM_ENTRY, 0);
	kvm(5, EV_KVM_EXIT, SVM_NPF);
	to(6, 154, RUN_BLOCKED, 7, 0);           /* a sleep that signals end is none for memory */
	to(8, 7, RUN_RUNNABLE, 154, 0);
	kvm(9, EV_USERSPACE_EXIT, KVM_MMIO);
	to(10, 154, RUN_UNINTERRUPTIBLE, 7, 0);  /* the monitor's own: a device of its */
	to(12, 7, RUN_RUNNABLE, 154, 0);
	kvm(13, EV_KVM_ENTRY, 0);
	kvm(15, EV_KVM_EXIT, SVM_HLT);
	to(16, 154, RUN_UNINTERRUPTIBLE, 7, 0);
	to(18, 7, RUN_RUNNABLE, 154, 0);
	kvm(19, EV_KVM_ENTRY, 0);
	kvm(20, EV_KVM_EXIT, SVM_NPF);
	to(21, 154, RUN_RUNNABLE, 7, 0);         /* it did not sleep */
	to(22, 7, RUN_RUNNABLE, 154, 0);
	assert_int_equal(rec_sum(&rec, OUT_BY, OUT_FAULT, 0, 40 * MS), 0);
	teardown();
}

/* Another vCPU of the machine ran on its CPU meanwhile: that was no time without a quota. */
static void test_sibling(void **state)
{
	(void)state;
	static const struct sync_vcpu vcpu[] = { { 0, 154, VCPU_BY_NAME }, { 1, 155, VCPU_BY_NAME } };
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
	to(125, 7, RUN_BLOCKED, 155, 0);  /* which has waited since 40, from 100 on for others */
	expect(DEBIAN "/CPUs/CPU1/Out By", 40 * MS, OUT_QUOTA);
	expect(DEBIAN "/CPUs/CPU1/Out By", 99 * MS, OUT_QUOTA);
	expect(DEBIAN "/CPUs/CPU1/Out By", 110 * MS, HISTORY_NULL);
	teardown();
}

/* It waits for a lock of its monitor, which has another thread: that is said of its thread, and only where the system call
 * is told. */
static void test_monitor_lock(void **state)
{
	(void)state;
	static const char lock[] = "/Host/Threads/154/Lock";
	begin();
	sw(1, MS, 0, 0, RUN_RUNNABLE, 900);
	kvm(2, EV_KVM_ENTRY, 0);
	kvm(5, EV_KVM_EXIT, SVM_NPF);
	kvm(6, EV_USERSPACE_EXIT, KVM_MMIO);
	struct event futex = event(7 * MS, EV_FUTEX_BEGIN, 0, 154);
	futex.lock.flags = 0;  /* FUTEX_WAIT */
	futex.lock.value = 2;
	feed(0, futex);
	to(8, 154, RUN_BLOCKED, 0, 0);
	wake(0, 20 * MS, 1, 151, 154, 0);
	to(21, 0, RUN_RUNNABLE, 154, 0);
	simple(0, 22 * MS, EV_FUTEX_END, 0, 154);
	kvm(23, EV_KVM_ENTRY, 0);
	assert_string_equal(rec_text(&rec, 8 * MS, lock), "futex");
	assert_string_equal(rec_text(&rec, 21 * MS, lock), "futex");
	expect(lock, 22 * MS, HISTORY_NULL);
	expect(VCPU, 10 * MS, VCPU_HOST_BLOCKED);
	at(10, HISTORY_NULL);  /* of the vCPU no reason is made of it */
	teardown();
}

/* A thread of the host that has a row of its level: from where it was first switched in at another than 0. */
static void test_nice(void **state)
{
	(void)state;
	begin();
	to(10, 154, RUN_RUNNABLE, 240, 19);
	to(20, 240, RUN_RUNNABLE, 7, 0);
	to(25, 7, RUN_RUNNABLE, 240, EVENT_ABSENT);
	to(30, 240, RUN_RUNNABLE, 50, -11);
	to(32, 50, RUN_BLOCKED, 240, 0);
	to(33, 240, RUN_RUNNABLE, 51, -51);
	to(40, 51, RUN_BLOCKED, 240, -20);
	to(45, 240, RUN_DEAD, 154, 0);
	expect("/Host/Threads/240/Nice", 10 * MS, 19);
	expect("/Host/Threads/240/Nice", 32 * MS - 1, 19);
	expect("/Host/Threads/240/Nice", 32 * MS, 0);
	expect("/Host/Threads/240/Nice", 40 * MS, -20);
	expect("/Host/Threads/240/Nice", 45 * MS, HISTORY_NULL);
	expect("/Host/Threads/50/Nice", 31 * MS, -11);
	expect("/Host/Threads/51/Nice", 33 * MS, NICE_RT);
	assert_null(rec_find(&rec, "/Host/Threads/154/Nice"));
	assert_null(rec_find(&rec, "/Host/Threads/7/Nice"));
	teardown();
}

static void expire(double t, int32_t current, int64_t timer)
{
	struct event ev = event((int64_t)(t * MS), EV_TIMER_ENTRY, 0, current);
	ev.timer.timer = timer;
	feed(0, ev);
	ev.kind = EV_TIMER_EXIT;
	ev.ts += 1000;
	feed(0, ev);
}

enum { TICK = 0x100, REFILL = 0x7000 };

/* Periods of 100 ms, of each of which it may run for 20; from this one on. */
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

/* The timer by which its quota came back each time tells how long it lasts, also where others have its CPU by then. */
static void test_refill(void **state)
{
	(void)state;
	begin();
	double t = periods(0, 6);  /* the last of 6 is the fourth before which one was seen */
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
	to(t + 180, 7, RUN_BLOCKED, 154, 0);  /* it did not take that */
	at(t + 149.9, OUT_QUOTA);
	at(t + 150, HISTORY_NULL);
	teardown();
}

/* It wakes when the quota is used up, and its CPU is idle, but not for long. */
static void test_refill_woken(void **state)
{
	(void)state;
	begin();
	double t = periods(0, 6);
	to(t + 1, 154, RUN_BLOCKED, 0, 0);
	wake(0, (int64_t)((t + 90) * MS), 0, 0, 154, 0);
	expire(t + 99.9, 0, REFILL);
	to(t + 100, 0, RUN_RUNNABLE, 154, 0);
	at(t + 89.9, HISTORY_NULL);
	at(t + 90, OUT_QUOTA);
	at(t + 99.8, OUT_QUOTA);
	at(t + 100, HISTORY_NULL);
	to(t + 101, 154, RUN_BLOCKED, 0, 0);
	wake(0, (int64_t)((t + 199.5) * MS), 0, 0, 154, 0);  /* waking up takes as long */
	expire(t + 199.9, 0, REFILL);
	to(t + 200, 0, RUN_RUNNABLE, 154, 0);
	at(t + 199.6, HISTORY_NULL);
	to(t + 201, 154, RUN_BLOCKED, 0, 0);
	wake(0, (int64_t)((t + 290) * MS), 0, 0, 154, 0);
	expire(t + 299.9, 0, REFILL);
	to(t + 303, 0, RUN_RUNNABLE, 154, 0);  /* it never took that long */
	at(t + 291, HISTORY_NULL);
	to(t + 304, 154, RUN_BLOCKED, 0, 0);
	wake(0, (int64_t)((t + 310) * MS), 0, 0, 154, 0);
	to(t + 320, 0, RUN_RUNNABLE, 154, 0);
	at(t + 311, HISTORY_NULL);
	teardown();
}

/* Five periods, or six of which one was two: it might be another timer. */
static void test_refill_unknown(void **state)
{
	(void)state;
	for (int again = 0; again < 2; again++) {
		begin();
		double t = periods(0, 5);
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
		at(t + 50, HISTORY_NULL);
		teardown();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_stirred),
		cmocka_unit_test(test_weight),
		cmocka_unit_test(test_not_asked),
		cmocka_unit_test(test_woken),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_pause),
		cmocka_unit_test(test_no_pause),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_fault),
		cmocka_unit_test(test_no_fault),
		cmocka_unit_test(test_monitor_lock),
		cmocka_unit_test(test_sibling),
		cmocka_unit_test(test_nice),
		cmocka_unit_test(test_refill),
		cmocka_unit_test(test_refill_woken),
		cmocka_unit_test(test_refill_unknown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
