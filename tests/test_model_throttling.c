/* Other reasons why a vCPU does not run: pauses, migrations, page faults; and further attributes of threads: locks, nice
 * levels. */
#include "model_throttling.h"

#include <errno.h>

enum { SVM_INTR = 0x60, SVM_HLT = 0x78, SVM_NPF = 0x400, KVM_MMIO = 6, KVM_INTR = 10 };

static void kvm_of(double t, uint16_t cpu, int32_t tid, uint16_t kind, int64_t reason)
{
	struct event ev = event((int64_t)(t * MS), kind, cpu, tid);
	if (kind == EV_USERSPACE_EXIT) {
		ev.userspace.reason = reason;
		ev.userspace.error = reason == KVM_INTR ? -EINTR : 0;
	} else if (kind == EV_VCPU_EXIT) {
		ev.vcpu_exit.reason = reason;
		ev.vcpu_exit.isa = ISA_SVM;
	}
	feed(0, ev);
}

static void kvm(double t, uint16_t kind, int64_t reason)
{
	kvm_of(t, 0, 154, kind, reason);
}

/* The vCPU returns to its VMM, sleeps, and is in the guest again when the VMM continues. */
static void test_pause(void **state)
{
	(void)state;
	begin();
	kvm(2, EV_VCPU_ENTRY, 0);
	kvm(10, EV_VCPU_EXIT, SVM_INTR);
	kvm(11, EV_USERSPACE_EXIT, KVM_INTR);
	to(12, 154, RUN_BLOCKED, 0, 0);
	wake(0, 50 * MS, 0, 0, 154, 0);
	to(51, 0, RUN_RUNNABLE, 154, 0);
	to(52, 154, RUN_BLOCKED, 0, 0);
	wake(0, 300 * MS, 0, 0, 154, 0);
	to(301, 0, RUN_RUNNABLE, 154, 0);
	kvm(302, EV_USERSPACE_EXIT, KVM_INTR);
	kvm(303, EV_VCPU_ENTRY, 0);
	at(10.9, HISTORY_NULL);
	at(11, OUT_PAUSE);
	at(302.9, OUT_PAUSE);
	at(303, HISTORY_NULL);
	kvm(310, EV_VCPU_EXIT, SVM_INTR);  /* the tracer does not record the return */
	to(312, 154, RUN_BLOCKED, 0, 0);
	wake(0, 400 * MS, 0, 0, 154, 0);
	to(401, 0, RUN_RUNNABLE, 154, 0);
	kvm(402, EV_VCPU_ENTRY, 0);
	at(311, HISTORY_NULL);
	at(350, OUT_PAUSE);
	teardown();
}

/* A guest that sleeps, or waits for a device of its VMM, is not paused; nor is a guest that its VMM needs for a short
 * time. */
static void test_no_pause(void **state)
{
	(void)state;
	begin();
	kvm(2, EV_VCPU_ENTRY, 0);
	kvm(10, EV_VCPU_EXIT, SVM_HLT);
	to(12, 154, RUN_BLOCKED, 0, 0);
	wake(0, 100 * MS, 0, 0, 154, 0);
	to(101, 0, RUN_RUNNABLE, 154, 0);
	kvm(102, EV_VCPU_ENTRY, 0);
	at(50, HISTORY_NULL);
	kvm(110, EV_VCPU_EXIT, 0x400);
	kvm(111, EV_USERSPACE_EXIT, KVM_MMIO);
	to(112, 154, RUN_BLOCKED, 0, 0);
	wake(0, 200 * MS, 0, 0, 154, 0);
	to(201, 0, RUN_RUNNABLE, 154, 0);
	kvm(202, EV_VCPU_ENTRY, 0);
	at(150, HISTORY_NULL);
	kvm(210, EV_VCPU_EXIT, SVM_INTR);
	kvm(211, EV_USERSPACE_EXIT, KVM_INTR);
	to(212, 154, RUN_BLOCKED, 0, 0);
	wake(0, 213 * MS, 0, 0, 154, 0);
	to(214, 0, RUN_RUNNABLE, 154, 0);
	kvm(215, EV_VCPU_ENTRY, 0);
	at(212, HISTORY_NULL);
	teardown();
}

/* A pause stops all vCPUs; it may last to the end of the recording. */
static void test_all(void **state)
{
	(void)state;
	static const struct sync_vcpu vcpu[] = { { 0, 154, VCPU_BY_NAME, false }, { 1, 155, VCPU_BY_NAME, false },
	                                         { 2, 156, VCPU_BY_NAME, false } };
	begin_with(vcpu, COUNT(vcpu));
	for (int round = 0; round < 2; round++) {
		double t = 1000 * round;
		for (uint16_t c = 0; c < 2; c++) {
			sw(0, (int64_t)((t + c) * MS), c, 0, RUN_RUNNABLE, 154 + c);
			kvm_of(t + 2 + c, c, 154 + c, EV_VCPU_ENTRY, 0);
		}
		for (uint16_t c = 0; c < round + 1; c++) {
			kvm_of(t + 10 + c, c, 154 + c, EV_VCPU_EXIT, SVM_INTR);
			kvm_of(t + 10 + c, c, 154 + c, EV_USERSPACE_EXIT, KVM_INTR);
			sw(0, (int64_t)((t + 12 + c) * MS), c, 154 + c, RUN_BLOCKED, 0);
		}
		if (round)
			break;
		sw(0, 200 * MS, 0, 0, RUN_RUNNABLE, 154);
		kvm(201, EV_VCPU_ENTRY, 0);
		sw(0, 202 * MS, 0, 154, RUN_BLOCKED, 0);
		sw(0, 202 * MS, 1, 155, RUN_BLOCKED, 0);
		at(100, HISTORY_NULL);  /* the other vCPU continued */
	}
	simple(0, 1500 * MS, EV_OTHER, 0, 0);
	assert_int_equal(model_end(model, 0, (int64_t)1500 * MS, NULL), 0);
	at(1009, HISTORY_NULL);
	at(1010, OUT_PAUSE);
	expect(DEBIAN "/CPUs/CPU1/Out By", 1013 * (int64_t)MS, OUT_PAUSE);
	at(1500, HISTORY_NULL);
	teardown();
}

/* Migration to another process: its thread existed before, and runs the vCPU from its first entry. */
static void test_moved(void **state)
{
	(void)state;
	static const struct sync_vcpu vcpu[] = { { 0, 154, VCPU_BY_NAME, false }, { 0, 233, VCPU_BY_NAME, false } };
	static const struct sync_vcpu_lifetime life[] = { { 0, 10 * MS }, { 400 * MS, INT64_MAX } };
	struct machine_setup setup[] = {
		{ .name = "host", .parent = -1, .traced = true, .has_entries = true, .host_pid = -1, .names = { name_of, NULL } },
		{ .name = "Debian", .parent = 0, .traced = true, .host_pid = -1, .vcpu = vcpu, .life = life, .vcpus = 2,
		  .names = { name_of, NULL } },
	};
	rec_init(&rec);
	model = model_new(setup, COUNT(setup), false, &rec_ops, &rec, NULL);
	assert_int_equal(model_begin(model, 0, 0, NULL, NULL), 0);
	assert_int_equal(model_begin(model, 1, 0, NULL, NULL), 0);
	to(1, 0, RUN_RUNNABLE, 154, 0);
	sw(1, MS + 1, 0, 0, RUN_RUNNABLE, 5);
	kvm(2, EV_VCPU_ENTRY, 0);
	kvm(10, EV_VCPU_EXIT, SVM_INTR);
	kvm(11, EV_USERSPACE_EXIT, KVM_INTR);
	to(12, 154, RUN_BLOCKED, 233, 0);
	to(20, 233, RUN_BLOCKED, 0, 0);  /* the thread waits for the VM to arrive */
	to(398, 0, RUN_RUNNABLE, 233, 0);
	kvm_of(400, 0, 233, EV_VCPU_ENTRY, 0);
	expect(DEBIAN "/CPUs/CPU0/Host Thread", 399 * MS, 154);
	expect(VCPU, 399 * MS, VCPU_HOST_BLOCKED);
	at(10, HISTORY_NULL);
	at(11, OUT_MIGRATION);
	at(399, OUT_MIGRATION);
	at(400, HISTORY_NULL);
	expect(DEBIAN "/CPUs/CPU0/Host Thread", 400 * MS, 233);
	expect(VCPU, 400 * MS, VCPU_RUNNING);
	sw(0, 410 * MS, 1, 154, RUN_BLOCKED, 0);  /* the old process ends */
	expect(VCPU, 411 * MS, VCPU_RUNNING);
	teardown();
}

/* A page fault lasts while the thread sleeps uninterruptibly. */
static void test_fault(void **state)
{
	(void)state;
	begin();
	sw(1, MS, 0, 0, RUN_RUNNABLE, 900);  /* the guest has a thread to run */
	kvm(2, EV_VCPU_ENTRY, 0);
	kvm(5, EV_VCPU_EXIT, SVM_NPF);
	to(6, 154, RUN_UNINTERRUPTIBLE, 0, 0);  /* no return to the VMM was recorded yet: the sleep may be the VMM's */
	to(8, 0, RUN_RUNNABLE, 154, 0);
	kvm(9, EV_USERSPACE_EXIT, KVM_MMIO);
	kvm(10, EV_VCPU_ENTRY, 0);
	at(7, HISTORY_NULL);
	kvm(20, EV_VCPU_EXIT, SVM_NPF);
	to(21, 154, RUN_UNINTERRUPTIBLE, 7, 0);
	wake(0, 25 * MS, 0, 7, 154, 0);
	to(27, 7, RUN_RUNNABLE, 154, 0);
	to(28, 154, RUN_UNINTERRUPTIBLE, 7, 0);  /* again, before the guest continues */
	wake(0, 30 * MS, 0, 7, 154, 0);
	to(31, 7, RUN_RUNNABLE, 154, 0);
	kvm(32, EV_VCPU_ENTRY, 0);
	at(20.9, HISTORY_NULL);
	at(21, OUT_PAGE_FAULT);
	expect(OUT_BY, 25 * MS - 1, OUT_PAGE_FAULT);
	at(25, HISTORY_NULL);  /* after this time the thread waits for its CPU */
	expect(OUT_BY, 28 * MS - 1, HISTORY_NULL);
	at(28, OUT_PAGE_FAULT);
	at(30, HISTORY_NULL);
	assert_int_equal(rec_sum(&rec, OUT_BY, OUT_PAGE_FAULT, 0, 40 * MS), 6 * MS);
	expect(VCPU, 22 * MS, VCPU_HOST_BLOCKED);
	teardown();
}

/* Other sleeps: no reason is written. */
static void test_no_fault(void **state)
{
	(void)state;
	begin();
	kvm(2, EV_USERSPACE_EXIT, KVM_MMIO);
	kvm(3, EV_VCPU_ENTRY, 0);
	kvm(5, EV_VCPU_EXIT, SVM_NPF);
	to(6, 154, RUN_BLOCKED, 7, 0);           /* an interruptible sleep is not a page fault */
	to(8, 7, RUN_RUNNABLE, 154, 0);
	kvm(9, EV_USERSPACE_EXIT, KVM_MMIO);
	to(10, 154, RUN_UNINTERRUPTIBLE, 7, 0);  /* sleep of the VMM itself, for a device */
	to(12, 7, RUN_RUNNABLE, 154, 0);
	kvm(13, EV_VCPU_ENTRY, 0);
	kvm(15, EV_VCPU_EXIT, SVM_HLT);
	to(16, 154, RUN_UNINTERRUPTIBLE, 7, 0);
	to(18, 7, RUN_RUNNABLE, 154, 0);
	kvm(19, EV_VCPU_ENTRY, 0);
	kvm(20, EV_VCPU_EXIT, SVM_NPF);
	to(21, 154, RUN_RUNNABLE, 7, 0);         /* the thread did not sleep */
	to(22, 7, RUN_RUNNABLE, 154, 0);
	assert_int_equal(rec_sum(&rec, OUT_BY, OUT_PAGE_FAULT, 0, 40 * MS), 0);
	teardown();
}

/* A thread waits for a lock of its VMM that another thread has: written for the thread, and only if the system call is
 * recorded. */
static void test_monitor_lock(void **state)
{
	(void)state;
	static const char lock[] = "/Host/Threads/154/Lock";
	begin();
	sw(1, MS, 0, 0, RUN_RUNNABLE, 900);
	kvm(2, EV_VCPU_ENTRY, 0);
	kvm(5, EV_VCPU_EXIT, SVM_NPF);
	kvm(6, EV_USERSPACE_EXIT, KVM_MMIO);
	struct event futex = event(7 * MS, EV_FUTEX_BEGIN, 0, 154);
	futex.lock.flags = 0;  /* FUTEX_WAIT */
	futex.lock.value = 2;
	feed(0, futex);
	to(8, 154, RUN_BLOCKED, 0, 0);
	wake(0, 20 * MS, 1, 151, 154, 0);
	to(21, 0, RUN_RUNNABLE, 154, 0);
	simple(0, 22 * MS, EV_FUTEX_END, 0, 154);
	kvm(23, EV_VCPU_ENTRY, 0);
	assert_string_equal(rec_text(&rec, 8 * MS, lock), "futex");
	assert_string_equal(rec_text(&rec, 21 * MS, lock), "futex");
	expect(lock, 22 * MS, HISTORY_NULL);
	expect(VCPU, 10 * MS, VCPU_HOST_BLOCKED);
	at(10, HISTORY_NULL);  /* no reason for the vCPU */
	teardown();
}

/* A host thread has a nice attribute from its first switch at a level other than 0. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pause),
		cmocka_unit_test(test_no_pause),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_fault),
		cmocka_unit_test(test_no_fault),
		cmocka_unit_test(test_monitor_lock),
		cmocka_unit_test(test_nice),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
