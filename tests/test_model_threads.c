/* The model on hand-made events: threads. */
#include "model_events.h"

/* ---- threads */

static void test_life_of_a_thread(void **state)
{
	(void)state;
	setup_full(true, true, false, false);
	struct event ev = event(10, EV_FORK, 0, 1);
	ev.comm = INIT;
	ev.pid = 1;
	ev.fork.parent_tid = 1;
	ev.fork.child_tid = 300;
	ev.fork.child_pid = 300;
	ev.fork.child_comm = INIT;
	feed(0, ev);
	wake(0, 12, 0, 1, 300, 1);
	sw(0, 20, 1, 0, RUN_RUNNABLE, 300);
	ev = event(30, EV_EXEC, 1, 300);
	ev.exec.tid = 300;
	ev.exec.filename = FILE_NAME;
	feed(0, ev);
	ev = event(35, EV_RENAME, 1, 300);
	ev.rename.tid = 300;
	ev.rename.comm = FIB;
	feed(0, ev);
	ev = event(40, EV_EXIT, 1, 300);
	ev.exit.tid = 300;
	feed(0, ev);
	sw(0, 50, 1, 300, RUN_DEAD, 0);
	assert_null(thread_find(model->machine[0], 300));
	ev = event(60, EV_FORK, 0, 1);
	ev.fork.child_tid = 300;
	ev.fork.child_pid = 299;
	ev.fork.child_comm = BASH;
	feed(0, ev);

	static const char path[] = "/Host/Threads/300/Status";
	expect(path, 9, HISTORY_NULL);
	expect(path, 10, THREAD_BLOCKED);
	expect(path, 12, THREAD_PREEMPTED);
	expect(path, 20, THREAD_RUNNING);
	expect(path, 49, THREAD_RUNNING);
	expect(path, 50, HISTORY_NULL);
	expect(path, 59, HISTORY_NULL);
	expect(path, 60, THREAD_BLOCKED);
	expect("/Host/Threads/300/CPU", 10, 0);
	expect("/Host/Threads/300/CPU", 12, 1);
	expect("/Host/Threads/300/PID", 20, 300);
	expect("/Host/Threads/300/PID", 49, 300);
	expect("/Host/Threads/300/PID", 50, HISTORY_NULL);
	expect("/Host/Threads/300/PID", 59, HISTORY_NULL);
	expect("/Host/Threads/300/PID", 60, 299);
	assert_string_equal(rec_text(&rec, 29, "/Host/Threads/300/Name"), "init");
	assert_string_equal(rec_text(&rec, 30, "/Host/Threads/300/Name"), "fibonacci-sum-l");
	assert_string_equal(rec_text(&rec, 35, "/Host/Threads/300/Name"), "fibonacci");
	assert_string_equal(rec_text(&rec, 60, "/Host/Threads/300/Name"), "bash");
	assert_string_equal(rec_text(&rec, 10, "/Host/Threads/1/Name"), "init");
	teardown();
}

static void test_statedump(void **state)
{
	(void)state;
	setup_full(true, true, false, false);
	struct event ev = event(10, EV_PROCESS, 0, 1);
	ev.process.tid = 154;
	ev.process.pid = 151;
	ev.process.comm = VCPU0;
	ev.process.state = RUN_BLOCKED;
	ev.process.cpu = 1;
	feed(0, ev);
	expect("/Host/Threads/154/Status", 10, THREAD_BLOCKED);
	expect("/Host/Threads/154/PID", 10, 151);
	expect("/Host/Threads/154/CPU", 10, 1);
	expect(VCPU, 10, VCPU_IDLE);
	expect("/Host/Threads/1/Status", 10, THREAD_RUNNING);
	ev.ts = 20;
	ev.process.tid = 1;
	ev.process.state = RUN_RUNNABLE;  /* it is current, whatever the dump contains */
	feed(0, ev);
	expect("/Host/Threads/1/Status", 20, THREAD_RUNNING);
	ev.ts = 30;
	ev.process.tid = 400;
	ev.process.state = RUN_DEAD;  /* a zombie */
	feed(0, ev);
	assert_null(thread_find(model->machine[0], 400));
	teardown();
}

/* A TID of a vCPU thread is one only in the VM's process. */
static void test_tid_reuse_of_vcpu(void **state)
{
	(void)state;
	setup_full(true, true, false, false);
	struct event ev = event(10, EV_FORK, 0, 1);
	ev.fork.child_tid = 154;
	ev.fork.child_pid = 154;  /* another process, before the VM */
	feed(0, ev);
	expect(VCPU, 10, HISTORY_NULL);
	sw(0, 20, 1, 0, RUN_RUNNABLE, 154);
	assert_string_equal(rec.owner[rec_at(&rec, 20, "/Host/CPUs/CPU1/Owner")], "host");
	sw(0, 30, 1, 154, RUN_DEAD, 0);
	expect(VCPU, 20, HISTORY_NULL);
	ev.ts = 40;
	ev.fork.child_pid = 151;
	feed(0, ev);
	sw(0, 50, 1, 0, RUN_RUNNABLE, 154);
	expect(VCPU, 50, VCPU_VMM);
	assert_string_equal(rec.owner[rec_at(&rec, 50, "/Host/CPUs/CPU1/Owner")], "Debian");
	sw(0, 60, 1, 154, RUN_DEAD, 0);
	expect(VCPU, 60, HISTORY_NULL);
	expect(DEBIAN "/CPUs/CPU0/Host Thread", 60, HISTORY_NULL);
	expect(DEBIAN "/CPUs/CPU0/pCPU", 60, HISTORY_NULL);
	teardown();
}

/* A vCPU is unplugged and plugged again with another thread; its first TID becomes another thread of the same process. */
static void test_vcpu_comes_back(void **state)
{
	static const struct sync_vcpu vcpu[] = { { 1, 160, VCPU_BY_NAME, false }, { 1, 170, VCPU_BY_NAME, false } };
	static const struct sync_vcpu_lifetime life[] = { { 10, 30 }, { 40, INT64_MAX } };
	struct machine_setup setup[] = {
		{ .name = "host", .parent = -1, .traced = true, .host_pid = -1 },
		{ .name = "Debian", .parent = 0, .host_pid = 151, .vcpu = vcpu, .life = life, .vcpus = 2 },
	};
	(void)state;
	rec_init(&rec);
	model = model_new(setup, COUNT(setup), false, &rec_ops, &rec, NULL);
	assert_int_equal(model_begin(model, 0, 0, NULL, NULL), 0);
	for (int i = 0; i < 3; i++) {
		struct event ev = event(10 + 30 * i, EV_FORK, 0, 1);
		ev.fork.child_tid = i == 1 ? 170 : 160;
		ev.fork.child_pid = 151;
		feed(0, ev);
		sw(0, 12 + 30 * i, 1, 0, RUN_RUNNABLE, i == 1 ? 170 : 160);
		if (i < 2)
			sw(0, 30 + 30 * i, 1, i == 1 ? 170 : 160, RUN_DEAD, 0);
	}
	expect(DEBIAN "/CPUs/CPU1/Status", 12, VCPU_RUNNING);
	expect(DEBIAN "/CPUs/CPU1/Host Thread", 12, 160);
	expect(DEBIAN "/CPUs/CPU1/Status", 30, HISTORY_NULL);
	expect(DEBIAN "/CPUs/CPU1/Status", 42, VCPU_RUNNING);
	expect(DEBIAN "/CPUs/CPU1/Host Thread", 42, 170);
	expect(DEBIAN "/CPUs/CPU1/Status", 60, HISTORY_NULL);
	expect(DEBIAN "/CPUs/CPU1/Status", 72, HISTORY_NULL);
	expect("/Host/Threads/160/Status", 72, THREAD_RUNNING);
	teardown();
}

/* One TID is an ordinary thread, then one vCPU, then another vCPU, in the same process. */
static void test_tid_of_two_vcpus(void **state)
{
	static const struct sync_vcpu vcpu[] = { { 1, 160, VCPU_BY_NAME, false }, { 2, 160, VCPU_BY_NAME, false } };
	static const struct sync_vcpu_lifetime life[] = { { 10, 30 }, { 40, 60 } };
	struct machine_setup setup[] = {
		{ .name = "host", .parent = -1, .traced = true, .host_pid = -1 },
		{ .name = "Debian", .parent = 0, .host_pid = -1, .vcpu = vcpu, .life = life, .vcpus = 2 },
	};
	(void)state;
	rec_init(&rec);
	model = model_new(setup, COUNT(setup), false, &rec_ops, &rec, NULL);
	assert_int_equal(model_begin(model, 0, 0, NULL, NULL), 0);
	sw(0, 2, 1, 0, RUN_RUNNABLE, 160);
	sw(0, 4, 1, 160, RUN_DEAD, 0);
	sw(0, 12, 1, 0, RUN_RUNNABLE, 160);
	sw(0, 30, 1, 160, RUN_DEAD, 0);
	sw(0, 42, 1, 0, RUN_RUNNABLE, 160);
	assert_string_equal(rec.owner[rec_at(&rec, 2, "/Host/CPUs/CPU1/Owner")], "host");
	expect(DEBIAN "/CPUs/CPU1/Host Thread", 2, HISTORY_NULL);
	expect(DEBIAN "/CPUs/CPU1/Host Thread", 12, 160);
	expect(DEBIAN "/CPUs/CPU2/Host Thread", 12, HISTORY_NULL);
	expect(DEBIAN "/CPUs/CPU1/Host Thread", 42, HISTORY_NULL);
	expect(DEBIAN "/CPUs/CPU2/Host Thread", 42, 160);
	teardown();
}

/* A thread is the vCPU only within its lifetime, both ends included. */
static void test_edges_of_a_life(void **state)
{
	static const struct sync_vcpu vcpu[] = { { 1, 160, VCPU_BY_NAME, false } };
	static const struct sync_vcpu_lifetime life[] = { { 10, 30 } };
	static const struct { int64_t met, thread; } met[] =
	    { { 9, HISTORY_NULL }, { 10, 160 }, { 30, 160 }, { 31, HISTORY_NULL } };
	struct machine_setup setup[] = {
		{ .name = "host", .parent = -1, .traced = true, .host_pid = -1 },
		{ .name = "Debian", .parent = 0, .host_pid = -1, .vcpu = vcpu, .life = life, .vcpus = 1 },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(met); i++) {
		rec_init(&rec);
		model = model_new(setup, COUNT(setup), false, &rec_ops, &rec, NULL);
		assert_int_equal(model_begin(model, 0, 0, NULL, NULL), 0);
		sw(0, met[i].met, 1, 0, RUN_RUNNABLE, 160);
		expect(DEBIAN "/CPUs/CPU1/Host Thread", met[i].met, met[i].thread);
		teardown();
	}
}

/* The end of a vCPU's thread was not recorded; another thread replaces it. */
static void test_vcpu_replaced(void **state)
{
	static const struct sync_vcpu vcpu[] = { { 1, 160, VCPU_BY_NAME, false }, { 1, 170, VCPU_BY_NAME, false } };
	static const struct sync_vcpu_lifetime life[] = { { 10, 30 }, { 20, INT64_MAX } };
	struct machine_setup setup[] = {
		{ .name = "host", .parent = -1, .traced = true, .host_pid = -1 },
		{ .name = "Debian", .parent = 0, .host_pid = -1, .vcpu = vcpu, .life = life, .vcpus = 2 },
	};
	(void)state;
	rec_init(&rec);
	model = model_new(setup, COUNT(setup), false, &rec_ops, &rec, NULL);
	assert_int_equal(model_begin(model, 0, 0, NULL, NULL), 0);
	sw(0, 12, 1, 0, RUN_RUNNABLE, 160);
	sw(0, 30, 1, 160, RUN_BLOCKED, 0);
	sw(0, 42, 0, 0, RUN_RUNNABLE, 170);
	expect(DEBIAN "/CPUs/CPU1/Host Thread", 41, 160);
	expect(DEBIAN "/CPUs/CPU1/Host Thread", 42, 170);
	expect(DEBIAN "/CPUs/CPU1/Status", 42, VCPU_RUNNING);
	sw(0, 50, 1, 0, RUN_RUNNABLE, 160);  /* it is unknown which thread that is */
	expect(DEBIAN "/CPUs/CPU1/Host Thread", 50, 170);
	assert_string_equal(rec.owner[rec_at(&rec, 50, "/Host/CPUs/CPU1/Owner")], "host");
	teardown();
}

/* A traced guest's CPU without an event is idle or busy; if its thread sleeps, or if it was plugged during the trace, it
 * is idle. */
static void test_quiet_vcpu(void **state)
{
	static const struct sync_vcpu vcpu[] = { { 0, 154, VCPU_BY_NAME, false }, { 1, 160, VCPU_BY_NAME, false },
	                                         { 2, 170, VCPU_BY_NAME, false } };
	struct machine_setup setup[] = {
		{ .name = "host", .parent = -1, .traced = true, .host_pid = -1 },
		{ .name = "Debian", .parent = 0, .traced = true, .host_pid = 151, .vcpu = vcpu, .vcpus = 3 },
	};
	struct event ev = event(40, EV_FORK, 0, 1);
	(void)state;
	rec_init(&rec);
	model = model_new(setup, COUNT(setup), false, &rec_ops, &rec, NULL);
	assert_int_equal(model_begin(model, 0, 0, NULL, NULL), 0);
	sw(0, 5, 1, 0, RUN_RUNNABLE, 160);
	expect(DEBIAN "/CPUs/CPU1/Status", 5, VCPU_RUNNING);  /* the guest is not traced yet */
	assert_int_equal(model_begin(model, 1, 10, NULL, NULL), 0);
	sw(1, 20, 0, 0, RUN_RUNNABLE, 5);
	sw(0, 30, 1, 160, RUN_BLOCKED, 0);
	ev.fork.child_tid = 170;
	ev.fork.child_pid = 151;
	feed(0, ev);
	wake(0, 45, 1, 1, 170, 2);
	sw(0, 50, 2, 0, RUN_RUNNABLE, 170);
	expect(DEBIAN "/CPUs/CPU1/Status", 20, VCPU_UNKNOWN);
	expect(DEBIAN "/CPUs/CPU1/Status", 30, VCPU_IDLE);
	expect(DEBIAN "/CPUs/CPU2/Status", 40, VCPU_IDLE);
	expect(DEBIAN "/CPUs/CPU2/Status", 50, VCPU_IDLE);
	sw(1, 60, 2, 0, RUN_RUNNABLE, 7);
	expect(DEBIAN "/CPUs/CPU2/Status", 60, VCPU_RUNNING);
	teardown();
}

/* The end of a thread was not recorded, and its TID is reused. */
static void test_born_twice(void **state)
{
	(void)state;
	setup_full(true, true, false, false);
	sw(0, 10, 1, 0, RUN_RUNNABLE, 300);
	struct event ev = event(20, EV_FORK, 0, 1);
	ev.fork.child_tid = 300;
	ev.fork.child_pid = 7;
	feed(0, ev);
	expect("/Host/Threads/300/Status", 20, THREAD_BLOCKED);
	sw(0, 30, 1, 0, RUN_RUNNABLE, 300);  /* it has waited for its CPU, since an unknown time */
	expect("/Host/Threads/300/Status", 20, THREAD_UNKNOWN);
	expect("/Host/Threads/300/Status", 30, THREAD_RUNNING);
	expect("/Host/Threads/300/PID", 20, 7);
	expect("/Host/CPUs/CPU1/Current Thread", 20, HISTORY_NULL);
	teardown();
}

static void test_exec_by_other_thread(void **state)
{
	(void)state;
	setup_full(true, true, false, false);
	struct event ev = event(10, EV_VCPU_EXIT, 0, 501);
	ev.pid = 500;
	feed(0, ev);
	ev = event(20, EV_EXEC, 0, 500);
	ev.pid = 500;
	ev.exec.tid = 500;
	ev.exec.filename = FILE_NAME;
	feed(0, ev);
	expect("/Host/Threads/501/Status", 19, THREAD_RUNNING);
	expect("/Host/Threads/501/Status", 20, HISTORY_NULL);
	expect("/Host/Threads/500/Status", 20, THREAD_RUNNING);
	teardown();
}

/* sched_waking shows the waker, sched_wakeup the time. */
static void test_waker(void **state)
{
	(void)state;
	setup_full(true, true, false, false);
	sw(0, 10, 0, 600, RUN_BLOCKED, 601);
	struct event ev = event(20, EV_WAKING, 0, 601);
	ev.wake.tid = 600;
	ev.wake.target_cpu = 1;
	feed(0, ev);
	expect("/Host/Threads/600/Status", 20, THREAD_BLOCKED);
	wake(0, 25, 1, 0, 600, 1);
	expect("/Host/Threads/600/Status", 25, THREAD_PREEMPTED);
	expect("/Host/Threads/600/CPU", 25, 1);
	assert_string_equal(rec_text(&rec, 25, "/Host/Threads/600/Woken By"), "host/601");
	wake(0, 30, 1, 0, 601, 1);  /* the thread is running: nothing changes */
	expect("/Host/Threads/601/Status", 30, THREAD_RUNNING);
	expect("/Host/Threads/601/CPU", 30, 0);
	ev = event(35, EV_MIGRATE, 0, 601);
	ev.migrate.tid = 600;
	ev.migrate.dest_cpu = 0;
	feed(0, ev);
	expect("/Host/Threads/600/CPU", 35, 0);
	teardown();
}

/* ---- limits */

/* A damaged packet contains a CPU that the machine does not have: that costs a row of the table and its own attributes. */
static void test_absurd_cpu(void **state)
{
	(void)state;
	setup_full(true, true, true, false);
	sw(0, 10, 0, 1, RUN_BLOCKED, 154);
	size_t before = rec.attrs;
	for (uint32_t machine = 0; machine < 2; machine++) {
		simple(machine, 20, EV_IRQ_ENTRY, UINT16_MAX, -1);
		struct event ev = event(30, EV_LOST, UINT16_MAX - 1, -1);
		ev.lost.end = 40;
		feed(machine, ev);
		assert_int_equal(model->machine[machine]->cpus, UINT16_MAX + 1);
	}
	wake(0, 50, UINT16_MAX, 1, 2, UINT16_MAX);
	wake(0, 60, 0, 154, 3, INT32_MAX);
	assert_true(rec.attrs <= before + 4 * 4 + 2 * 6);
	assert_int_equal(model->vcpus, 3);
	expect("/Host/CPUs/CPU65535/Current Thread", 60, 1);
	expect("/Host/Threads/2/CPU", 60, UINT16_MAX);
	expect("/Host/Threads/154/CPU", 60, 0);
	expect("/Host/Threads/154/Status", 60, THREAD_RUNNING);
	assert_int_equal(model_end(model, 1, 70, NULL), 0);
	assert_int_equal(model_end(model, 0, 80, NULL), 0);
	assert_int_equal(model->machine[0]->cpu[40000].nest.depth, 0);
	assert_null(model->machine[0]->cpu[40000].nest.frame);
	teardown();
}

/* A million threads over the time of a trace: only the live ones are stored. */
static void test_many_threads(void **state)
{
	enum { LIVE = 50, THREADS = 20000 };
	(void)state;
	setup_full(true, true, false, false);
	for (int i = 0; i < THREADS; i++) {
		struct event ev = event(10 * i, EV_FORK, 0, 1);
		ev.fork.child_tid = 1000 + i;
		ev.fork.child_pid = 1000 + i;
		feed(0, ev);
		if (i < LIVE)
			continue;
		sw(0, 10 * i + 2, 0, 1, RUN_RUNNABLE, 1000 + i - LIVE);
		sw(0, 10 * i + 4, 0, 1000 + i - LIVE, RUN_DEAD, 1);
		assert_int_equal(model->machine[0]->thread.len, LIVE + 1);
	}
	assert_true(model->machine[0]->thread.cap <= 4 * LIVE);
	teardown();
}

static void move(int64_t t, int64_t to)
{
	struct event ev = event(t, EV_MIGRATE, 0, 0);
	ev.migrate.tid = 154;
	ev.migrate.dest_cpu = to;
	feed(0, ev);
}

/* Without wakeups, a sleep may have ended while others have the CPU, but not while it is idle. */
static void test_unwoken(void **state)
{
	static const struct sync_vcpu vcpu[] = { { 0, 154, VCPU_BY_NAME, false } };
	struct machine_setup setup[] = {
		{ .name = "host", .parent = -1, .traced = true, .host_pid = -1, .names = { name_of, NULL } },
		{ .name = "Debian", .parent = 0, .host_pid = 151, .vcpu = vcpu, .vcpus = 1, .names = { name_of, NULL } },
	};
	static const struct { int64_t t; enum thread_state thread; enum vcpu_state vcpu; } want[] = {
		{ 20, THREAD_BLOCKED, VCPU_IDLE }, { 39, THREAD_BLOCKED, VCPU_IDLE }, { 50, THREAD_BLOCKED, VCPU_IDLE },
		{ 59, THREAD_BLOCKED, VCPU_IDLE }, { 60, THREAD_UNKNOWN, VCPU_UNKNOWN }, { 79, THREAD_UNKNOWN, VCPU_UNKNOWN },
		{ 80, THREAD_RUNNING, VCPU_RUNNING }, { 90, THREAD_UNKNOWN, VCPU_UNKNOWN }, { 99, THREAD_UNKNOWN, VCPU_UNKNOWN },
		{ 100, THREAD_PREEMPTED, VCPU_WAKING }, { 110, THREAD_RUNNING, VCPU_RUNNING },
		    { 120, THREAD_UNKNOWN, VCPU_UNKNOWN },
		{ 139, THREAD_UNKNOWN, VCPU_UNKNOWN },
	};
	struct prescan start = PRESCAN_INIT;
	(void)state;
	for (int moves = 1; moves >= 0; moves--) {
		rec_init(&rec);
		model = model_new(setup, COUNT(setup), false, &rec_ops, &rec, NULL);
		start.switches = 1;
		start.migrations = (uint64_t)moves;
		assert_int_equal(model_begin(model, 0, 0, &start, NULL), 0);
		sw(0, 5, 0, 0, RUN_RUNNABLE, moves ? 300 : 0);
		sw(0, 10, 1, 0, RUN_RUNNABLE, 154);
		sw(0, 20, 1, 154, RUN_BLOCKED, 0);
		sw(0, 40, 1, 0, RUN_RUNNABLE, 154);
		sw(0, 50, 1, 154, RUN_BLOCKED, 0);
		sw(0, 60, 1, 0, RUN_RUNNABLE, 216);
		sw(0, 80, 1, 216, RUN_RUNNABLE, 154);
		sw(0, 90, 1, 154, RUN_BLOCKED, 216);
		move(100, 0);
		sw(0, 110, 0, moves ? 300 : 0, RUN_BLOCKED, 154);
		sw(0, 120, 0, 154, RUN_BLOCKED, 300);
		assert_int_equal(model_end(model, 0, 140, NULL), 0);
		for (size_t i = 0; i < COUNT(want); i++) {
			expect("/Host/Threads/154/Status", want[i].t, want[i].thread);
			expect(VCPU, want[i].t, want[i].vcpu);
		}
		teardown();
	}
}

/* Without migrations: the thread waited until it had another CPU, on an unknown one. */
static void test_strays(void **state)
{
	static const struct { int64_t t, cpu; } want[] = {
		{ 19, 1 }, { 20, HISTORY_NULL }, { 39, HISTORY_NULL }, { 40, 0 }, { 59, 0 }, { 60, 1 }, { 70, 1 }, { 85, 1 },
	};
	(void)state;
	setup_full(true, true, false, false);
	sw(0, 10, 1, 0, RUN_RUNNABLE, 154);
	sw(0, 20, 1, 154, RUN_RUNNABLE, 216);
	sw(0, 40, 0, 0, RUN_RUNNABLE, 154);
	sw(0, 50, 0, 154, RUN_RUNNABLE, 300);
	move(60, 1);
	sw(0, 70, 1, 216, RUN_RUNNABLE, 154);
	sw(0, 80, 1, 154, RUN_RUNNABLE, 216);
	sw(0, 90, 1, 216, RUN_RUNNABLE, 154);
	for (size_t i = 0; i < COUNT(want); i++) {
		expect("/Host/Threads/154/CPU", want[i].t, want[i].cpu);
		expect(DEBIAN "/CPUs/CPU0/pCPU", want[i].t, want[i].cpu);
	}
	teardown();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life_of_a_thread), cmocka_unit_test(test_unwoken), cmocka_unit_test(test_strays),
		cmocka_unit_test(test_statedump),
		cmocka_unit_test(test_tid_reuse_of_vcpu), cmocka_unit_test(test_vcpu_comes_back),
		cmocka_unit_test(test_tid_of_two_vcpus), cmocka_unit_test(test_edges_of_a_life),
		cmocka_unit_test(test_vcpu_replaced), cmocka_unit_test(test_quiet_vcpu), cmocka_unit_test(test_born_twice),
		cmocka_unit_test(test_exec_by_other_thread), cmocka_unit_test(test_waker), cmocka_unit_test(test_absurd_cpu),
		cmocka_unit_test(test_many_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
