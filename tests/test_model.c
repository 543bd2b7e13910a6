/* The model on hand-made events: states of vCPUs, degraded inputs, begin and end of traces. */
#include "model_events.h"

/* ---- the table of vCPU states */

static void test_table(void **state)
{
	(void)state;
	enum { MODES = MODE_GUEST + 1, CURRENTS = CURRENT_BUSY + 1 };
	assert_int_equal(vcpu_status(HOST_IN, MODE_GUEST, CURRENT_BUSY), VCPU_RUNNING);
	assert_int_equal(vcpu_status(HOST_IN, MODE_GUEST, CURRENT_IDLE), VCPU_IDLE);
	for (int c = 0; c < CURRENTS; c++)
		assert_int_equal(vcpu_status(HOST_IN, MODE_VMM, (enum vcpu_current)c), VCPU_VMM);
	for (int m = 0; m < MODES; m++) {  /* scheduled out, the mode does not matter */
		enum vcpu_mode mode = (enum vcpu_mode)m;
		assert_int_equal(vcpu_status(HOST_BLOCKED, mode, CURRENT_IDLE), VCPU_IDLE);
		assert_int_equal(vcpu_status(HOST_RUNNABLE, mode, CURRENT_IDLE), VCPU_IDLE);
		assert_int_equal(vcpu_status(HOST_RUNNABLE, mode, CURRENT_BUSY), VCPU_PREEMPTED);
		assert_int_equal(vcpu_status(HOST_BLOCKED, mode, CURRENT_BUSY), VCPU_HOST_BLOCKED);
		assert_int_equal(vcpu_status(HOST_WOKEN, mode, CURRENT_BUSY), VCPU_PREEMPTED);
		assert_int_equal(vcpu_status(HOST_WOKEN, mode, CURRENT_IDLE), VCPU_WAKING);
		assert_int_equal(vcpu_status(HOST_QUEUED, mode, CURRENT_BUSY), VCPU_PREEMPTED);
		assert_int_equal(vcpu_status(HOST_QUEUED, mode, CURRENT_IDLE), VCPU_UNKNOWN);
		assert_int_equal(vcpu_status(HOST_BLOCKED, mode, CURRENT_UNTRACED), VCPU_IDLE);
		assert_int_equal(vcpu_status(HOST_RUNNABLE, mode, CURRENT_UNTRACED), VCPU_PREEMPTED);
		assert_int_equal(vcpu_status(HOST_WOKEN, mode, CURRENT_UNTRACED), VCPU_WAKING);
		assert_int_equal(vcpu_status(HOST_QUEUED, mode, CURRENT_UNTRACED), VCPU_UNKNOWN);
		assert_int_equal(vcpu_status(HOST_BLOCKED, mode, CURRENT_UNKNOWN), VCPU_UNKNOWN);
		assert_int_equal(vcpu_status(HOST_BLOCKED, mode, CURRENT_NO_EVENTS), VCPU_IDLE);
		assert_int_equal(vcpu_status(HOST_RUNNABLE, mode, CURRENT_NO_EVENTS), VCPU_UNKNOWN);
		assert_int_equal(vcpu_status(HOST_WOKEN, mode, CURRENT_NO_EVENTS), VCPU_UNKNOWN);
		assert_int_equal(vcpu_status(HOST_UNKNOWN, mode, CURRENT_BUSY), VCPU_UNKNOWN);
		assert_int_equal(vcpu_status(HOST_ABSENT, mode, CURRENT_BUSY), STATUS_NULL);
		assert_int_equal(vcpu_status(HOST_UNTRACED, mode, CURRENT_BUSY), VCPU_RUNNING);
		assert_int_equal(vcpu_status(HOST_UNTRACED, mode, CURRENT_IDLE), VCPU_IDLE);
		assert_int_equal(vcpu_status(HOST_UNTRACED, mode, CURRENT_UNTRACED), VCPU_UNKNOWN);
	}
	assert_int_equal(vcpu_status(HOST_IN, MODE_UNTRACED, CURRENT_BUSY), VCPU_RUNNING);
	assert_int_equal(vcpu_status(HOST_IN, MODE_UNTRACED, CURRENT_IDLE), VCPU_IDLE);
	assert_int_equal(vcpu_status(HOST_IN, MODE_GUEST, CURRENT_UNTRACED), VCPU_RUNNING);
	assert_int_equal(vcpu_status(HOST_IN, MODE_GUEST, CURRENT_UNKNOWN), VCPU_UNKNOWN);
	assert_int_equal(vcpu_status(HOST_IN, MODE_GUEST, CURRENT_NO_EVENTS), VCPU_UNKNOWN);
	assert_int_equal(vcpu_status(HOST_IN, MODE_UNKNOWN, CURRENT_BUSY), VCPU_UNKNOWN);
	for (int s = VCPU_UNKNOWN; s < VCPU_STATE_COUNT; s++)
		assert_int_equal(vcpu_fold(s), s == VCPU_HOST_BLOCKED ? VCPU_PREEMPTED : s == VCPU_WAKING ? VCPU_IDLE : s);
}

/* Fig. 5: the cycle RUNNING - VMM - PREEMPTED - VMM - RUNNING - VMM - IDLE - VMM, including the guest's thread. */
static void test_figure_5(void **state)
{
	static const struct { int64_t t; int from, to, thread; } step[] = {
		{ 40, VCPU_VMM, VCPU_RUNNING, THREAD_RUNNING },  /* transition 1 */
		{ 50, VCPU_RUNNING, VCPU_VMM, THREAD_VIRT_PREEMPTED },  /* transition 2 */
		{ 60, VCPU_VMM, VCPU_PREEMPTED, THREAD_VIRT_PREEMPTED },  /* transition 5 */
		{ 70, VCPU_PREEMPTED, VCPU_VMM, THREAD_VIRT_PREEMPTED },  /* transition 6 */
		{ 80, VCPU_VMM, VCPU_RUNNING, THREAD_RUNNING },  /* transition 1 */
		{ 90, VCPU_RUNNING, VCPU_IDLE, THREAD_BLOCKED },
		{ 100, VCPU_IDLE, VCPU_VMM, THREAD_BLOCKED },  /* transition 3 */
		{ 110, VCPU_VMM, VCPU_IDLE, THREAD_BLOCKED },  /* transition 4 */
		{ 130, VCPU_WAKING, VCPU_VMM, THREAD_BLOCKED },  /* transition 3 */
	};
	(void)state;
	setup_full(true, true, true, false);
	sw(0, 10, 1, 0, RUN_RUNNABLE, 154);
	sw(1, 20, 0, 0, RUN_RUNNABLE, 900);
	expect(VCPU, 10, VCPU_VMM);
	expect(DEBIAN "/Threads/900/Status", 20, THREAD_VIRT_PREEMPTED);
	simple(0, 40, EV_VCPU_ENTRY, 1, 154);
	simple(0, 50, EV_VCPU_EXIT, 1, 154);
	sw(0, 60, 1, 154, RUN_RUNNABLE, 216);
	sw(0, 70, 1, 216, RUN_RUNNABLE, 154);
	simple(0, 80, EV_VCPU_ENTRY, 1, 154);
	sw(1, 90, 0, 900, RUN_BLOCKED, 0);
	simple(0, 100, EV_VCPU_EXIT, 1, 154);
	sw(0, 110, 1, 154, RUN_BLOCKED, 0);
	wake(0, 120, 0, 77, 154, 1);
	sw(0, 130, 1, 0, RUN_RUNNABLE, 154);
	for (size_t i = 0; i < COUNT(step); i++) {
		expect(VCPU, step[i].t - 1, step[i].from);
		expect(VCPU, step[i].t, step[i].to);
		expect(DEBIAN "/Threads/900/Status", step[i].t, step[i].thread);
	}
	expect(VCPU, 120, VCPU_WAKING);
	expect("/Host/Threads/154/Status", 119, THREAD_BLOCKED);
	expect("/Host/Threads/154/Status", 120, THREAD_PREEMPTED);
	expect("/Host/Threads/154/Status", 130, THREAD_RUNNING);
	expect("/Host/CPUs/CPU1/Current Thread", 65, 216);
	expect("/Host/CPUs/CPU1/Current Thread", 115, 0);
	expect(DEBIAN "/CPUs/CPU0/Host Thread", 10, 154);
	expect(DEBIAN "/CPUs/CPU0/pCPU", 60, 1);
	expect(DEBIAN "/CPUs/CPU0/Current Thread", 89, 900);
	expect(DEBIAN "/CPUs/CPU0/Current Thread", 90, 0);
	assert_string_equal(rec_text(&rec, 120, "/Host/Threads/154/Woken By"), "host/77");
	assert_string_equal(rec_text(&rec, 120, "/Host/Threads/154/VM"), "Debian/0");
	assert_string_equal(rec.owner[rec_at(&rec, 10, "/Host/CPUs/CPU1/Owner")], "Debian");
	assert_string_equal(rec.owner[rec_at(&rec, 60, "/Host/CPUs/CPU1/Owner")], "host");
	assert_string_equal(rec.owner[rec_at(&rec, 110, "/Host/CPUs/CPU1/Owner")], "idle");
	assert_null(rec_find(&rec, "/Host/Threads/0/Status"));
	assert_null(rec_find(&rec, DEBIAN "/Threads/0/Status"));
	teardown();
}

static void host_blocked(bool paper)
{
	setup_full(true, true, true, paper);
	sw(0, 10, 1, 0, RUN_RUNNABLE, 154);
	simple(0, 20, EV_VCPU_ENTRY, 1, 154);
	sw(1, 30, 0, 0, RUN_RUNNABLE, 900);
	simple(0, 40, EV_VCPU_EXIT, 1, 154);
	sw(0, 50, 1, 154, RUN_BLOCKED, 0);  /* the hypervisor waits, while the guest has a thread to run */
	wake(0, 60, 0, 7, 154, 0);
	sw(0, 70, 0, 7, RUN_RUNNABLE, 154);
	expect(VCPU, 50, paper ? VCPU_PREEMPTED : VCPU_HOST_BLOCKED);
	expect(DEBIAN "/Threads/900/Status", 50, THREAD_VIRT_PREEMPTED);
	expect(VCPU, 60, VCPU_PREEMPTED);
	expect(DEBIAN "/CPUs/CPU0/pCPU", 60, 0);
	expect(VCPU, 70, VCPU_VMM);
	simple(0, 80, EV_VCPU_ENTRY, 0, 154);
	sw(1, 90, 0, 900, RUN_BLOCKED, 0);
	sw(0, 100, 0, 154, RUN_BLOCKED, 0);  /* the exit is missing */
	expect(VCPU, 100, VCPU_IDLE);
	wake(0, 110, 0, 0, 154, 0);
	expect(VCPU, 110, paper ? VCPU_IDLE : VCPU_WAKING);
	teardown();
}

static void test_refinements(void **state)
{
	(void)state;
	host_blocked(false);
	host_blocked(true);
}

static void test_no_kvm_events(void **state)
{
	(void)state;
	setup_full(true, false, true, false);
	sw(1, 5, 0, 0, RUN_RUNNABLE, 900);
	sw(0, 10, 1, 0, RUN_RUNNABLE, 154);
	sw(0, 20, 1, 154, RUN_RUNNABLE, 216);
	sw(0, 30, 1, 216, RUN_BLOCKED, 154);
	sw(1, 40, 0, 900, RUN_BLOCKED, 0);
	sw(0, 50, 1, 154, RUN_BLOCKED, 0);
	expect(VCPU, 10, VCPU_RUNNING);
	expect(DEBIAN "/Threads/900/Status", 10, THREAD_RUNNING);
	expect(VCPU, 20, VCPU_PREEMPTED);
	expect(VCPU, 30, VCPU_RUNNING);
	expect(VCPU, 40, VCPU_IDLE);
	expect(VCPU, 50, VCPU_IDLE);
	teardown();
}

static void test_no_guest_trace(void **state)
{
	(void)state;
	setup_full(true, true, false, false);
	sw(0, 10, 1, 0, RUN_RUNNABLE, 154);
	simple(0, 20, EV_VCPU_ENTRY, 1, 154);
	simple(0, 30, EV_VCPU_EXIT, 1, 154);
	sw(0, 40, 1, 154, RUN_RUNNABLE, 216);
	sw(0, 50, 1, 216, RUN_RUNNABLE, 154);
	sw(0, 60, 1, 154, RUN_BLOCKED, 216);
	wake(0, 70, 1, 216, 154, 1);
	expect(VCPU, 9, HISTORY_NULL);
	expect(VCPU, 10, VCPU_VMM);
	expect(VCPU, 20, VCPU_RUNNING);
	expect(VCPU, 30, VCPU_VMM);
	expect(VCPU, 40, VCPU_PREEMPTED);
	expect(VCPU, 50, VCPU_VMM);
	expect(VCPU, 60, VCPU_IDLE);
	expect(VCPU, 70, VCPU_WAKING);
	teardown();
}

static void test_guest_only(void **state)
{
	(void)state;
	setup_full(false, false, true, false);
	sw(1, 10, 0, 0, RUN_RUNNABLE, 900);
	sw(1, 20, 0, 900, RUN_RUNNABLE, 901);
	sw(1, 30, 0, 901, RUN_BLOCKED, 900);
	sw(1, 40, 0, 900, RUN_BLOCKED, 0);
	expect(DEBIAN "/Threads/900/Status", 10, THREAD_RUNNING);
	expect(DEBIAN "/Threads/900/Status", 20, THREAD_PREEMPTED);
	expect(DEBIAN "/Threads/901/Status", 20, THREAD_RUNNING);
	expect(DEBIAN "/Threads/901/Status", 30, THREAD_BLOCKED);
	expect(DEBIAN "/CPUs/CPU0/Current Thread", 20, 901);
	expect(VCPU, 20, VCPU_RUNNING);
	expect(VCPU, 40, VCPU_IDLE);
	expect("/Host/CPUs/CPU0/Current Thread", 20, HISTORY_NULL);
	teardown();
}

/* Imperfect clocks: guest switches at times at which the vCPU is preempted or in the hypervisor change only the waiting
 * thread. */
static void test_guest_switch_while_out(void **state)
{
	(void)state;
	setup_full(true, true, true, false);
	sw(0, 10, 1, 0, RUN_RUNNABLE, 154);
	simple(0, 20, EV_VCPU_ENTRY, 1, 154);
	sw(1, 30, 0, 0, RUN_RUNNABLE, 900);
	simple(0, 40, EV_VCPU_EXIT, 1, 154);
	sw(0, 50, 1, 154, RUN_RUNNABLE, 216);
	sw(1, 55, 0, 900, RUN_RUNNABLE, 901);
	expect(DEBIAN "/Threads/900/Status", 55, THREAD_PREEMPTED);
	expect(DEBIAN "/Threads/901/Status", 55, THREAD_VIRT_PREEMPTED);
	sw(1, 57, 0, 901, RUN_BLOCKED, 0);
	expect(VCPU, 57, VCPU_IDLE);
	sw(1, 58, 0, 0, RUN_RUNNABLE, 900);
	expect(VCPU, 58, VCPU_PREEMPTED);
	sw(0, 60, 1, 216, RUN_RUNNABLE, 154);
	simple(0, 70, EV_VCPU_ENTRY, 1, 154);
	expect(VCPU, 70, VCPU_RUNNING);
	expect(DEBIAN "/Threads/900/Status", 70, THREAD_RUNNING);
	expect(DEBIAN "/Threads/901/Status", 70, THREAD_BLOCKED);
	teardown();
}

/* A nested VM: its vCPU is a thread of a guest, and executes only while that guest's vCPU does. */
static void test_nested(void **state)
{
	static const struct sync_vcpu outer[] = { { 0, 154, VCPU_BY_NAME, false } },
	                                        inner[] = { { 0, 950, VCPU_BY_NAME, false } };
	struct machine_setup setup[] = {
		{ .name = "host", .parent = -1, .traced = true, .has_entries = true, .host_pid = -1 },
		{ .name = "Debian", .parent = 0, .traced = true, .has_entries = true, .host_pid = 151, .vcpu = outer, .vcpus = 1 },
		{ .name = "in/ner", .parent = 1, .traced = true, .host_pid = -1, .vcpu = inner, .vcpus = 1 },
	};
	(void)state;
	rec_init(&rec);
	model = model_new(setup, COUNT(setup), false, &rec_ops, &rec, NULL);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(model_begin(model, i, 0, NULL, NULL), 0);
	sw(0, 10, 1, 0, RUN_RUNNABLE, 154);
	simple(0, 20, EV_VCPU_ENTRY, 1, 154);
	sw(1, 30, 0, 0, RUN_RUNNABLE, 950);
	simple(1, 40, EV_VCPU_ENTRY, 0, 950);
	sw(2, 50, 0, 0, RUN_RUNNABLE, 42);
	simple(0, 60, EV_VCPU_EXIT, 1, 154);
	sw(0, 70, 1, 154, RUN_RUNNABLE, 216);
	sw(0, 80, 1, 216, RUN_RUNNABLE, 154);
	simple(0, 90, EV_VCPU_ENTRY, 1, 154);
#define INNER "/Virtual Machines/in%2fner"
	expect(INNER "/CPUs/CPU0/Status", 30, VCPU_VMM);
	expect(INNER "/CPUs/CPU0/Status", 50, VCPU_RUNNING);
	expect(INNER "/Threads/42/Status", 50, THREAD_RUNNING);
	expect(DEBIAN "/Threads/950/Status", 60, THREAD_VIRT_PREEMPTED);
	expect(INNER "/CPUs/CPU0/Status", 60, VCPU_PREEMPTED);
	expect(INNER "/Threads/42/Status", 70, THREAD_VIRT_PREEMPTED);
	expect(INNER "/CPUs/CPU0/Status", 90, VCPU_RUNNING);
	expect(INNER "/Threads/42/Status", 90, THREAD_RUNNING);
	teardown();
}

static void test_many_vms(void **state)
{
	enum { VMS = 40 };
	struct machine_setup setup[1 + VMS] = { { .name = "host", .parent = -1, .traced = true, .host_pid = -1 } };
	struct sync_vcpu vcpu[VMS];
	char name[VMS][16];
	(void)state;
	for (int i = 0; i < VMS; i++) {
		snprintf(name[i], sizeof name[i], "vm%d", i);
		vcpu[i] = (struct sync_vcpu){ 0, 1000 + i, VCPU_BY_NAME, false };
		setup[1 + i] = (struct machine_setup){ .name = name[i], .host_pid = -1, .vcpu = &vcpu[i], .vcpus = 1 };
	}
	rec_init(&rec);
	model = model_new(setup, COUNT(setup), false, &rec_ops, &rec, NULL);
	assert_int_equal(model_begin(model, 0, 0, NULL, NULL), 0);
	sw(0, 10, 0, 0, RUN_RUNNABLE, 1003);
	sw(0, 20, 0, 1003, RUN_RUNNABLE, 1039);
	assert_string_equal(rec.owner[rec_at(&rec, 10, "/Host/CPUs/CPU0/Owner")], "vm3");
	assert_string_equal(rec.owner[rec_at(&rec, 20, "/Host/CPUs/CPU0/Owner")], "other VM");
	expect("/Virtual Machines/vm39/CPUs/CPU0/Status", 20, VCPU_RUNNING);
	teardown();
}

/* ---- begin and end of traces */

static void test_begin_and_end(void **state)
{
	static const struct sync_vcpu vcpu[] = { { 0, 154, VCPU_BY_NAME, false } };
	struct machine_setup setup[] = {
		{ .name = "host", .parent = -1, .traced = true, .has_entries = true, .host_pid = -1, .names = { name_of, NULL } },
		{ .name = "Debian", .parent = 0, .traced = true, .host_pid = 151, .vcpu = vcpu, .vcpus = 1,
		  .names = { name_of, NULL } },
	};
	struct prescan start = PRESCAN_INIT;
	(void)state;
	rec_init(&rec);
	model = model_new(setup, COUNT(setup), false, &rec_ops, &rec, NULL);
	assert_int_equal(model_begin(model, 1, 10, NULL, NULL), 0);  /* the guest's trace begins first */
	sw(1, 15, 0, 0, RUN_RUNNABLE, 900);
	expect(VCPU, 15, VCPU_UNKNOWN);
	expect(DEBIAN "/Threads/900/Status", 15, THREAD_UNKNOWN);

	/* Result of the prescan: 154 runs in guest mode, 300 sleeps, 301 waits, 302 is not yet created. */
	struct event ev = event(21, EV_VCPU_EXIT, 1, 154);
	ev.comm = VCPU0;
	prescan_feed(&start, &ev);
	ev = event(21, EV_SWITCH, 3, 0);  /* 340 waited: that wakeups are recorded is shown by later events */
	ev.sw.prev_tid = 0;
	ev.sw.next_tid = 340;
	prescan_feed(&start, &ev);
	for (int dump = 0; dump < 2; dump++) {  /* 330 has just been renamed: its earlier name is unknown */
		ev = event(21, dump ? EV_PROCESS : EV_EXEC, 2, 330);
		ev.comm = FIB;
		if (dump) {
			ev.process.tid = 330;
			ev.process.comm = FIB;
		}
		prescan_feed(&start, &ev);
	}
	ev = event(22, EV_WAKEUP, 1, 154);
	ev.wake.tid = 300;
	ev.wake.comm = BASH;
	prescan_feed(&start, &ev);
	ev = event(23, EV_SWITCH, 1, 154);
	ev.sw.prev_tid = 154;
	ev.sw.next_tid = 301;
	prescan_feed(&start, &ev);
	ev = event(24, EV_FORK, 0, 310);
	ev.fork.child_tid = 302;
	prescan_feed(&start, &ev);
	ev = event(25, EV_WAKEUP, 0, 310);
	ev.wake.tid = 302;
	prescan_feed(&start, &ev);
	for (int32_t tid = 320; tid <= 321; tid++) {  /* migrated from 2 to 0: one is woken there, the other is switched in */
		ev = event(25, EV_MIGRATE, 0, 310);
		ev.migrate.tid = tid;
		ev.migrate.dest_cpu = 0;
		ev.migrate.orig_cpu = 2;
		prescan_feed(&start, &ev);
	}
	ev = event(25, EV_WAKING, 0, 310);
	ev.wake.tid = 320;
	ev.wake.target_cpu = 0;
	prescan_feed(&start, &ev);
	ev = event(25, EV_SWITCH, 0, 310);
	ev.sw.prev_tid = 310;
	ev.sw.next_tid = 321;
	prescan_feed(&start, &ev);
	for (int32_t tid = 350; tid <= 353; tid++) {  /* CPU 4 can only run 350; CPU 5 runs one of the others */
		ev = event(25, EV_PROCESS, 0, 310);
		ev.process.tid = tid;
		ev.process.state = tid < 353 ? RUN_RUNNABLE : RUN_BLOCKED;
		ev.process.cpu = tid > 350 ? 5 : 4;
		prescan_feed(&start, &ev);
	}
	prescan_add_silent(&start, 4);
	prescan_add_silent(&start, 5);
	ev = event(26, EV_LOST, 0, -1);
	prescan_feed(&start, &ev);
	ev = event(27, EV_WAKEUP, 0, 310);
	ev.wake.tid = 303;  /* after a loss the thread may be new */
	prescan_feed(&start, &ev);
	prescan_finish(&start);
	assert_int_equal(model_begin(model, 0, 20, &start, NULL), 0);
	expect("/Host/CPUs/CPU4/Current Thread", 20, 350);
	expect("/Host/Threads/350/Status", 20, THREAD_RUNNING);
	expect("/Host/CPUs/CPU5/Current Thread", 20, HISTORY_NULL);
	expect("/Host/Threads/351/Status", 20, THREAD_UNKNOWN);
	expect("/Host/Threads/352/Status", 20, THREAD_UNKNOWN);
	expect("/Host/Threads/353/Status", 20, THREAD_BLOCKED);
	expect("/Host/CPUs/CPU1/Current Thread", 20, 154);
	expect("/Host/CPUs/CPU0/Current Thread", 20, 310);
	expect("/Host/Threads/154/Status", 20, THREAD_RUNNING);
	assert_string_equal(rec_text(&rec, 20, "/Host/Threads/154/Name"), "CPU 0/KVM");
	assert_string_equal(rec_text(&rec, 20, "/Host/Threads/300/Name"), "bash");
	expect(VCPU, 20, VCPU_RUNNING);
	expect(DEBIAN "/Threads/900/Status", 20, THREAD_RUNNING);
	expect("/Host/Threads/300/Status", 20, THREAD_BLOCKED);
	expect("/Host/Threads/301/Status", 20, THREAD_PREEMPTED);
	expect("/Host/Threads/301/CPU", 20, 1);
	expect("/Host/Threads/330/Status", 20, THREAD_RUNNING);
	assert_null(rec_find(&rec, "/Host/Threads/330/Name"));
	expect("/Host/Threads/340/Status", 20, THREAD_PREEMPTED);
	expect("/Host/Threads/320/Status", 20, THREAD_BLOCKED);
	expect("/Host/Threads/320/CPU", 20, 2);
	expect("/Host/Threads/321/Status", 20, THREAD_PREEMPTED);
	expect("/Host/Threads/321/CPU", 20, 2);
	expect("/Host/Threads/302/Status", 20, HISTORY_NULL);
	expect("/Host/Threads/303/Status", 20, HISTORY_NULL);
	for (int32_t tid = 351; tid <= 352; tid++) {  /* the dump does not show which of them CPU 5 runs */
		ev = event(25, EV_PROCESS, 0, 310);
		ev.process.tid = tid;
		ev.process.state = RUN_RUNNABLE;
		ev.process.cpu = 5;
		feed(0, ev);
	}
	expect("/Host/Threads/351/Status", 25, THREAD_UNKNOWN);
	expect("/Host/Threads/352/Status", 25, THREAD_UNKNOWN);

	assert_int_equal(model_end(model, 1, 50, NULL), 0);  /* the guest's trace ends first: the host continues alone */
	expect(DEBIAN "/Threads/900/Status", 50, HISTORY_NULL);
	expect(DEBIAN "/CPUs/CPU0/Current Thread", 50, HISTORY_NULL);
	expect(VCPU, 50, VCPU_RUNNING);
	simple(0, 60, EV_VCPU_EXIT, 1, 154);
	sw(0, 70, 1, 154, RUN_BLOCKED, 0);
	expect(VCPU, 70, VCPU_IDLE);
	assert_int_equal(model_end(model, 0, 80, NULL), 0);
	expect(VCPU, 80, HISTORY_NULL);
	expect("/Host/CPUs/CPU1/Current Thread", 80, HISTORY_NULL);
	expect("/Host/Threads/154/Status", 80, HISTORY_NULL);
	assert_int_equal(model->machine[0]->thread.len, 0);
	prescan_release(&start);
	teardown();
}

/* ---- any input keeps the state consistent */

static void check_consistent(const struct model *m)
{
	for (uint32_t i = 0; i < m->machines; i++) {
		const struct machine *mc = m->machine[i];
		uint64_t tid, p;
		for (uint32_t k = 0; k < mc->cpus; k++) {
			const struct cpu *c = &mc->cpu[k];
			assert_int_equal(c->state == CPU_BUSY, c->current != NULL);
			if (c->current) {
				assert_int_equal(c->current->on_cpu, k);
				assert_ptr_equal(thread_find(mc, c->current->tid), c->current);
			}
		}
		for (size_t at = 0; map_each(&mc->thread, &at, &tid, &p); ) {
			const struct thread *th = (const struct thread *)(uintptr_t)p;
			assert_true(th->on_cpu < 0 || mc->cpu[th->on_cpu].current == th);
			if (th->on_cpu < 0)
				assert_int_equal(th->status, th->sched);
			else if (i == 0)
				assert_int_equal(th->status, THREAD_RUNNING);
			else
				assert_int_equal(th->status, vcpu_guest_thread(m->vcpu[mc->cpu[th->on_cpu].vcpu].status));
			if (th->vcpu != NONE)
				assert_ptr_equal(m->vcpu[th->vcpu].thread, th);
		}
	}
}

static int64_t draw(uint64_t *random, uint64_t n)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return (int64_t)(*random % n);
}

/* Random events, and a random end of each trace. */
static void test_garbage(void **state)
{
	static const struct sync_vcpu outer[] = { { 0, 3, 0, false }, { 1, 4, 0, false }, { 1, 5, 0, false } },
	                                        inner[] = { { 0, 3, 0, false } };
	struct machine_setup setup[] = {
		{ .name = "host", .parent = -1, .traced = true, .has_entries = true, .host_pid = -1 },
		{ .name = "a", .parent = 0, .traced = true, .has_entries = true, .host_pid = 3, .vcpu = outer, .vcpus = 3 },
		{ .name = "b", .parent = 1, .traced = true, .host_pid = -1, .vcpu = inner, .vcpus = 1 },
	};
	uint64_t random = 88172645463325252ULL;
	(void)state;
	for (int round = 0; round < 20; round++) {
		rec_init(&rec);
		model = model_new(setup, COUNT(setup), round % 2, &rec_ops, &rec, NULL);
		for (uint32_t i = 0; i < COUNT(setup); i++)
			assert_int_equal(model_begin(model, i, 0, NULL, NULL), 0);
		for (int64_t t = 1; t < 3000; t++) {
			uint32_t machine = (uint32_t)draw(&random, COUNT(setup));
			struct event ev = event(t / 2, (uint16_t)draw(&random, EVENT_KIND_COUNT + 1), (uint16_t)draw(&random, 3),
			                        (int32_t)draw(&random, 9) - 1);
			ev.pid = (int32_t)draw(&random, 4);
			ev.comm = (uint32_t)draw(&random, COUNT(names) + 2);
			for (size_t i = 0; i < COUNT(ev.arg); i++)
				ev.arg[i] = draw(&random, 50) ? draw(&random, 8) : draw(&random, 2) ? EVENT_ABSENT :
				            draw(&random, 2) ? INT64_MAX : -draw(&random, 9);
			if (ev.kind == EV_LOST && draw(&random, 4))
				ev.kind = EV_SWITCH;
			feed(machine, ev);
			check_consistent(model);
			if (draw(&random, 2000) == 0) {
				assert_int_equal(model_end(model, machine, t / 2, NULL), 0);
				check_consistent(model);
				assert_int_equal(model_begin(model, machine, t / 2, NULL, NULL), 0);
			}
		}
		teardown();
	}
}

static void test_sink_failure(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	setup_full(true, true, true, false);
	rec.fail_after = 3;
	int r = 0;
	for (int i = 0; i < 50 && r == 0; i++) {
		struct event ev = event(10 + i, EV_SWITCH, 0, -1);
		ev.sw.prev_tid = 10 + i;
		ev.sw.next_tid = 11 + i;
		ev.sw.prev_state = RUN_BLOCKED;
		r = model_feed(model, 0, ev.ts, &ev, &err);
	}
	assert_int_equal(r, -1);
	assert_string_equal(err.text, "disk: full");
	teardown();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_figure_5),
		cmocka_unit_test(test_refinements),
		cmocka_unit_test(test_no_kvm_events),
		cmocka_unit_test(test_no_guest_trace),
		cmocka_unit_test(test_guest_only),
		cmocka_unit_test(test_guest_switch_while_out),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_many_vms),
		cmocka_unit_test(test_begin_and_end),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_sink_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
