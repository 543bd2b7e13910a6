/* Evidence from the host: guest-mode windows, lifetimes of TIDs, threads of vCPUs. */
#include "test.h"

#include "sync/evidence/activity.h"
#include "sync/evidence/thread_lifetimes.h"
#include "sync/evidence/vm_candidates.h"
#include "sync_sim.h"

/* ---- reading the host's trace */

static struct event make_event(int64_t ts, enum event_kind kind, unsigned cpu, int tid)
{
	struct event ev = { .ts = ts, .kind = (uint16_t)kind, .cpu = (uint16_t)cpu, .tid = tid, .pid = tid < 0 ? -1 : 10 };
	for (int i = 0; i < 6; i++)
		ev.arg[i] = EVENT_ABSENT;
	return ev;
}

static struct event make_loss(int64_t ts, int64_t to, unsigned cpu)
{
	struct event ev = make_event(ts, EV_LOST, cpu, -1);
	ev.lost.end = to;
	ev.lost.count = 1;
	return ev;
}

static const struct map *known_tids;

static void load_view(struct host_timeline *v, const struct event *ev, size_t n, struct trace **trace)
{
	static const char *const strings[] = { "", "qemu:One", "CPU 0/KVM", "CPU 1/KVM" };
	struct error err = ERROR_INIT;
	*trace = trace_from_events("h", ROLE_HOST, ev, n, strings, COUNT(strings));
	assert_int_equal(host_timeline_load(v, *trace, known_tids, 1, NULL, &err), 0);
}

static enum guest_mode mode_at(const struct host_timeline *v, int tid, int64_t t)
{
	for (size_t i = 0; i < v->threads; i++) {
		size_t near = 0;
		if (v->thread[i].tid == tid && v->thread[i].from <= t && t <= v->thread[i].to)
			return vthread_mode(&v->thread[i], t, &near);
	}
	fail_msg("no thread %d at %lld", tid, (long long)t);
	return MODE_OUT;
}

static void test_windows(void **state)
{
	(void)state;
	const struct event ev[] = {
		make_event(0, EV_OTHER, 0, 1),
		make_event(50, EV_VCPU_EXIT, 0, 11),    /* in guest mode at the start of the trace */
		make_event(100, EV_VCPU_ENTRY, 0, 11), make_event(200, EV_VCPU_EXIT, 0, 11),
		make_event(300, EV_VCPU_ENTRY, 0, 11),  /* in guest mode at its end */
		make_event(310, EV_VCPU_ENTRY, 1, 12), make_event(320, EV_VCPU_EXIT, 1, 12),
		make_event(1000, EV_OTHER, 0, 1),
	};
	struct host_timeline v;
	struct trace *t;
	load_view(&v, ev, COUNT(ev), &t);
	static const struct { int tid; int64_t at; enum guest_mode mode; } want[] = {
		{ 11, 10, MODE_IN }, { 11, 50, MODE_IN }, { 11, 51, MODE_OUT }, { 11, 99, MODE_OUT }, { 11, 100, MODE_IN },
		{ 11, 200, MODE_IN }, { 11, 201, MODE_OUT }, { 11, 300, MODE_IN }, { 11, 999, MODE_IN },
		{ 12, 5, MODE_UNKNOWN }, { 12, 49, MODE_UNKNOWN },  /* VM entries may not be recorded yet */
		{ 12, 50, MODE_OUT }, { 12, 315, MODE_IN }, { 12, 900, MODE_OUT },
	};
	for (size_t i = 0; i < COUNT(want); i++)
		assert_int_equal(mode_at(&v, want[i].tid, want[i].at), want[i].mode);
	host_timeline_release(&v);
	trace_free(t);
}

/* Of guest events closer together than the shortest gap between windows, only the first and the last are stored. */
static void test_min_gap(void **state)
{
	(void)state;
	const struct event ev[] = {
		make_event(0, EV_OTHER, 0, 1), make_event(100, EV_VCPU_ENTRY, 0, 11), make_event(200, EV_VCPU_EXIT, 0, 11),
		make_event(700, EV_VCPU_ENTRY, 0, 11), make_event(800, EV_VCPU_EXIT, 0, 11), make_event(2000, EV_VCPU_ENTRY, 0, 11),
		make_event(3000, EV_VCPU_EXIT, 0, 11),
	};
	static const int64_t at[] = { 100, 300, 400, 600, 1090, 1600, 1700 }, kept[] = { 100, 600, 1090, 1600, 1700 };
	struct event did[COUNT(at)];
	struct host_timeline v;
	struct activity a;
	struct error err = ERROR_INIT;
	struct trace *t;
	load_view(&v, ev, COUNT(ev), &t);
	assert_int_equal(v.min_gap_ns, 500 - 5 - 1);
	for (size_t i = 0; i < COUNT(at); i++)
		did[i] = make_event(at[i], EV_OTHER, 0, 1);
	struct trace *guest = trace_from_events("g", ROLE_GUEST, did, COUNT(did), (const char *const[]){ "" }, 1);
	assert_int_equal(activity_load(&a, guest, 490, NULL, &err), 0);
	assert_int_equal(a.len, COUNT(kept));
	for (size_t i = 0; i < COUNT(kept); i++)
		assert_int_equal(a.cpu[0].ts[i], kept[i]);
	activity_release(&a);
	trace_free(guest);
	host_timeline_release(&v);
	trace_free(t);
}

/* The mode is unknown where lost events may have changed it, and only there. */
static void test_losses(void **state)
{
	(void)state;
	const struct event ev[] = {
		make_event(0, EV_OTHER, 0, 1), make_event(0, EV_OTHER, 1, 1),
		make_event(100, EV_VCPU_ENTRY, 0, 11), make_event(110, EV_VCPU_ENTRY, 1, 12),
		make_event(120, EV_VCPU_ENTRY, 2, 13), make_event(130, EV_VCPU_EXIT, 2, 13),
		make_loss(200, 300, 0),
		make_event(250, EV_VCPU_EXIT, 1, 12),   /* may migrate to CPU 0 after this exit */
		make_event(400, EV_VCPU_EXIT, 0, 11),   /* in guest mode since an unknown time in the loss */
		make_event(500, EV_VCPU_ENTRY, 1, 12),  /* outside guest mode since an unknown time in the loss */
		make_event(600, EV_VCPU_ENTRY, 2, 13), make_event(610, EV_VCPU_EXIT, 2, 13),
		make_event(1000, EV_OTHER, 0, 1),
	};
	struct host_timeline v;
	struct trace *t;
	load_view(&v, ev, COUNT(ev), &t);
	static const struct { int tid; int64_t at; enum guest_mode mode; } want[] = {
		{ 11, 150, MODE_IN }, { 11, 199, MODE_IN }, { 11, 250, MODE_UNKNOWN }, { 11, 301, MODE_IN }, { 11, 400, MODE_IN },
		{ 11, 450, MODE_OUT },
		{ 12, 150, MODE_IN }, { 12, 240, MODE_IN }, { 12, 260, MODE_UNKNOWN }, { 12, 310, MODE_OUT }, { 12, 501, MODE_IN },
		{ 13, 125, MODE_IN }, { 13, 150, MODE_OUT }, { 13, 250, MODE_UNKNOWN }, { 13, 350, MODE_OUT }, { 13, 605, MODE_IN },
	};
	for (size_t i = 0; i < COUNT(want); i++)
		assert_int_equal(mode_at(&v, want[i].tid, want[i].at), want[i].mode);
	host_timeline_release(&v);
	trace_free(t);
}

static struct event fork_of(int64_t ts, int child, int pid)
{
	struct event ev = make_event(ts, EV_FORK, 3, 1);
	ev.fork.parent_tid = 1;
	ev.fork.child_tid = child;
	ev.fork.child_pid = pid;
	return ev;
}

/* TID 11 belongs to one VM, then to another; only scheduling events show the thread of a CPU. Between its exit and its
 * last switch a preempted thread is still the same. */
static void test_lifetimes(void **state)
{
	(void)state;
	struct event first_end = make_event(300, EV_EXIT, 0, -1);
	first_end.exit.tid = 11;
	struct event in = make_event(90, EV_SWITCH, 0, -1);
	in.sw.next_tid = 11;
	struct event process = make_event(1, EV_PROCESS, 0, -1), dying = make_event(310, EV_SWITCH, 0, -1);
	process.process.tid = dying.sw.prev_tid = 11;
	process.process.pid = 10;
	dying.sw.prev_comm = 2;  /* "CPU 0/KVM" */
	struct event ev[] = {
		make_event(0, EV_OTHER, 0, 1), process, in, make_event(100, EV_VCPU_ENTRY, 0, -1),
			make_event(200, EV_VCPU_EXIT, 0, -1), first_end,
		dying, fork_of(400, 11, 40), make_event(500, EV_VCPU_ENTRY, 1, 11), make_event(600, EV_VCPU_EXIT, 1, 11),
			make_event(1000, EV_OTHER, 0, 1),
	};
	ev[8].pid = ev[9].pid = 40;
	struct host_timeline v;
	struct trace *t;
	struct vm_list vms;
	load_view(&v, ev, COUNT(ev), &t);
	assert_int_equal(v.threads, 2);
	assert_int_equal(v.thread[0].to, 300);
	assert_int_equal(v.thread[1].from, 400);
	vm_list_make(&v, &vms);
	assert_int_equal(vms.len, 2);
	assert_int_equal(vms.vm[0].pid, 10);
	assert_int_equal(vms.vm[1].pid, 40);
	assert_ptr_equal(vm_thread_at(&v, &vms.vm[1], 0, 550), &v.thread[1]);
	assert_null(vm_thread_at(&v, &vms.vm[0], 1, 150));
	vm_list_release(&vms);
	host_timeline_release(&v);
	trace_free(t);
}

/* Where events were lost, a lifetime may start or end unrecorded; the last event of one thread and the first event of
 * the next thread limit it. */
static void test_lifetimes_and_losses(void **state)
{
	(void)state;
	struct event other = make_event(450, EV_RENAME, 1, 21);
	other.rename.tid = 21;
	other.rename.comm = 1;
	struct event ev[] = {
		make_event(0, EV_OTHER, 0, 1), make_event(100, EV_VCPU_ENTRY, 0, 11), make_event(200, EV_VCPU_EXIT, 0, 11),
			make_loss(300, 400, 0), other,
		make_event(500, EV_VCPU_ENTRY, 1, 12), make_event(600, EV_VCPU_EXIT, 1, 12), make_loss(610, 620, 0),
		make_event(650, EV_VCPU_ENTRY, 0, 21), make_event(700, EV_VCPU_EXIT, 0, 21), fork_of(800, 12, 40),
			make_event(1000, EV_OTHER, 0, 1),
	};
	for (size_t i = 1; i < 10; i++)
		ev[i].comm = ev[i].kind == EV_LOST ? 0 : ev[i].kind == EV_RENAME ? 1 : 2;  /* 2: "CPU 0/KVM" */
	struct host_timeline v;
	struct trace *t;
	struct vm_list vms;
	load_view(&v, ev, COUNT(ev), &t);
	assert_int_equal(v.threads, 3);
	assert_int_equal(v.thread[0].to, INT64_MAX);
	assert_int_equal(v.thread[1].from, 500);
	assert_int_equal(v.thread[1].earliest_start, 0);    /* no earlier event */
	assert_int_equal(v.thread[1].to, 600);              /* no later event, and its TID is reused */
	assert_int_equal(v.thread[2].from, 650);
	assert_int_equal(v.thread[2].earliest_start, 451);  /* another thread may have had the TID before */
	assert_int_equal(mode_at(&v, 12, 550), MODE_IN);
	assert_true(vthread_is_unknown(&v.thread[1], 450, 450));
	vm_list_make(&v, &vms);
	assert_int_equal(vms.len, 1);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(vms.vm[0].vcpu[i].number, 0);
		assert_int_equal(vms.vm[0].vcpu[i].evidence, VCPU_BY_NAME);
	}
	assert_int_equal(v.thread[0].to, 200);
	assert_int_equal(v.thread[2].to, INT64_MAX);
	vm_list_release(&vms);
	host_timeline_release(&v);
	trace_free(t);
}

/* A TID is another thread's since its last event with another name or process, if events were lost. */
static void test_last_other(void **state)
{
	(void)state;
	static const struct { int64_t ts, comm, pid; uint64_t other; } seen[] = {
		{ 10, 1, 7, 0 }, { 20, 1, 7, 0 }, { 30, 2, 7, 20 }, { 40, 2, 7, 20 }, { 50, 2, 8, 40 }, { 60, 0, 0, 40 },
		{ 70, 3, -1, 60 }, { 80, -1, 9, 70 },
	};
	for (int has_loss = 0; has_loss < 2; has_loss++) {
		struct host_timeline v = { .has_loss = has_loss };
		for (size_t i = 0; i < COUNT(seen); i++) {
			lifetime_record_sighting(&v, seen[i].ts, 11, seen[i].comm, seen[i].pid);
			const uint64_t *other = map_find(&v.last_other, 11);
			assert_int_equal(other ? *other : 0, has_loss ? seen[i].other : 0);
		}
		host_timeline_release(&v);
	}
}

/* VMs to which hints give the same guest are one VM, unless the trace shows two processes. */
static void check_merged(int first_pid, int second_pid, size_t len, int pid)
{
	struct event ev[] = {
		make_event(0, EV_OTHER, 0, 1), make_event(100, EV_VCPU_ENTRY, 0, 11), make_event(200, EV_VCPU_EXIT, 0, 11),
		make_event(300, EV_VCPU_ENTRY, 0, 21), make_event(400, EV_VCPU_EXIT, 0, 21), make_event(1000, EV_OTHER, 0, 1),
	};
	const struct sync_hint_vcpu vcpu[] = { { 0, 11 }, { 1, 21 } };
	const struct sync_hint hint = { .guest = (char *)(uintptr_t)"web", .vcpu = (struct sync_hint_vcpu *)(uintptr_t)vcpu, .vcpus = 2 };
	struct host_timeline v;
	struct trace *t;
	struct vm_list vms;
	ev[0].pid = ev[5].pid = -1;
	ev[1].pid = ev[2].pid = first_pid;
	ev[3].pid = ev[4].pid = second_pid;
	ev[1].comm = ev[2].comm = 2;
	ev[3].comm = ev[4].comm = 3;
	load_view(&v, ev, COUNT(ev), &t);
	vm_list_make(&v, &vms);
	vm_list_apply_hints(&v, &vms, &hint, 1);
	assert_int_equal(vms.len, len);
	assert_int_equal(vms.vm[0].pid, pid);
	assert_int_equal(vms.vm[0].vcpus, 3 - len);
	vm_list_release(&vms);
	host_timeline_release(&v);
	trace_free(t);
}

static void test_merged(void **state)
{
	(void)state;
	check_merged(10, 20, 2, 10);
	check_merged(10, -1, 1, 10);
	check_merged(-1, 20, 1, 20);
	check_merged(10, 10, 1, 10);
}

/* After the end of a thread, a loss may hide another thread that became the same vCPU. */
static void test_succession(void **state)
{
	(void)state;
	struct event end = make_event(300, EV_EXIT, 0, 11);
	end.exit.tid = 11;
	const struct event ev[] = {
		make_event(0, EV_OTHER, 0, 1), make_event(100, EV_VCPU_ENTRY, 0, 11), make_event(200, EV_VCPU_EXIT, 0, 11), end,
			make_loss(400, 500, 0),
		make_event(1000, EV_OTHER, 0, 1),
	};
	struct host_timeline v;
	struct trace *t;
	load_view(&v, ev, COUNT(ev), &t);
	assert_int_equal(v.thread[0].to, 300);
	assert_false(vthread_is_unknown(&v.thread[0], 301, 399));
	assert_true(vthread_is_unknown(&v.thread[0], 600, 600));
	host_timeline_release(&v);
	trace_free(t);
}

/* After a loss a TID belongs to another thread if it has another process or the name of another vCPU. */
static void check_other_thread(int pid, uint32_t comm, size_t lifetimes)
{
	struct event ev[] = {
		make_event(0, EV_OTHER, 0, 1), make_event(100, EV_VCPU_ENTRY, 0, 11), make_event(200, EV_VCPU_EXIT, 0, 11),
			make_loss(300, 400, 0),
		make_event(500, EV_VCPU_ENTRY, 0, 11), make_event(600, EV_VCPU_EXIT, 0, 11), make_event(1000, EV_OTHER, 0, 1),
	};
	struct host_timeline v;
	struct trace *t;
	ev[1].comm = ev[2].comm = 2;
	ev[4].comm = ev[5].comm = comm;
	ev[4].pid = ev[5].pid = pid;
	load_view(&v, ev, COUNT(ev), &t);
	assert_int_equal(v.threads, lifetimes);
	assert_int_equal(v.thread[0].pid, 10);
	assert_int_equal(v.thread[lifetimes - 1].pid, pid);
	host_timeline_release(&v);
	trace_free(t);
}

static void test_other_thread(void **state)
{
	(void)state;
	check_other_thread(10, 2, 1);
	check_other_thread(40, 2, 2);
	check_other_thread(10, 3, 2);
}

/* TID 11 was a process with a lost exit; now it is a vCPU thread of an unknown process. */
static void test_leader(void **state)
{
	(void)state;
	struct event process = make_event(1, EV_PROCESS, 0, -1), in = make_event(500, EV_SWITCH, 0, -1);
	process.process.tid = process.process.pid = in.sw.next_tid = 11;
	process.process.comm = 1;
	in.sw.next_comm = 2;
	const struct event ev[] = {
		make_event(0, EV_OTHER, 0, 1), process, make_loss(300, 400, 0), in, make_event(510, EV_VCPU_ENTRY, 0, -1),
		make_event(600, EV_VCPU_EXIT, 0, -1), make_event(1000, EV_OTHER, 0, 1),
	};
	struct host_timeline v;
	struct trace *t;
	load_view(&v, ev, COUNT(ev), &t);
	assert_int_equal(v.threads, 1);
	assert_int_equal(v.thread[0].pid, -1);
	host_timeline_release(&v);
	trace_free(t);
}

/* vCPU numbers: by name, even for a vCPU that never ran; by a plausible vcpu_id; otherwise in the order of TIDs. */
static void check_numbers(int comm, int64_t hint, unsigned first, unsigned second, enum vcpu_evidence evidence)
{
	struct event ev[] = {
		make_event(0, EV_OTHER, 0, 1), make_event(100, EV_VCPU_ENTRY, 0, 12), make_event(150, EV_VCPU_EXIT, 0, 12),
		make_event(200, EV_VCPU_ENTRY, 1, 11), make_event(250, EV_VCPU_EXIT, 1, 11), make_event(900, EV_OTHER, 0, 1),
	};
	for (int i = 1; i < 5; i++) {
		ev[i].comm = (uint32_t)(comm == 0 ? 1 : i < 3 ? comm : 5 - comm);
		ev[i].vcpu_exit.vcpu = hint < 0 ? EVENT_ABSENT : i < 3 ? hint : hint == 7 ? 7 : 1 - hint;
	}
	struct host_timeline v;
	struct trace *t;
	struct vm_list vms;
	load_view(&v, ev, COUNT(ev), &t);
	vm_list_make(&v, &vms);
	assert_int_equal(vms.len, 1);
	assert_int_equal(vms.vm[0].vcpus, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(vms.vm[0].vcpu[i].number, i);
		assert_int_equal(vms.vm[0].vcpu[i].evidence, evidence);
		assert_int_equal(v.thread[vms.vm[0].vcpu[i].thread].tid, i == 0 ? first : second);
	}
	vm_list_release(&vms);
	host_timeline_release(&v);
	trace_free(t);
}

static void test_numbers(void **state)
{
	(void)state;
	check_numbers(2, -1, 12, 11, VCPU_BY_NAME);   /* 12 is "CPU 0/KVM", 11 is "CPU 1/KVM" */
	check_numbers(3, 0, 11, 12, VCPU_BY_NAME);    /* names override vcpu_id */
	check_numbers(0, 0, 12, 11, VCPU_BY_KVM_VCPU_ID);
	check_numbers(0, 7, 11, 12, VCPU_BY_ORDER);   /* the same vcpu_id twice is implausible */
	check_numbers(0, -1, 11, 12, VCPU_BY_ORDER);
}

/* Threads named by the user belong to one VM, even if the trace shows the process of only one of them; other VMs are
 * unaffected. */
static void test_named(void **state)
{
	(void)state;
	struct event seen = make_event(300, EV_SWITCH, 1, -1);
	seen.sw.prev_tid = 12;  /* the only event of the thread */
	struct event ev[] = {
		make_event(0, EV_OTHER, 0, 1), make_event(100, EV_VCPU_ENTRY, 0, 11), make_event(200, EV_VCPU_EXIT, 0, 11), seen,
		make_event(400, EV_VCPU_ENTRY, 1, 41), make_event(500, EV_VCPU_EXIT, 1, 41), make_event(900, EV_OTHER, 0, 1),
	};
	struct sync_hint_vcpu vcpu[] = { { 1, 11 }, { 0, 12 } };
	const struct sync_hint hint = { .guest = (char[]){ "One" }, .vcpu = vcpu, .vcpus = 2 };
	struct map known = MAP_INIT;
	struct host_timeline v;
	struct trace *t;
	struct vm_list vms;
	ev[4].pid = ev[5].pid = 40;
	map_put(&known, 11, NULL);
	map_put(&known, 12, NULL);
	known_tids = &known;
	load_view(&v, ev, COUNT(ev), &t);
	known_tids = NULL;
	vm_list_make(&v, &vms);
	assert_int_equal(vms.len, 3);
	vm_list_apply_hints(&v, &vms, &hint, 1);
	assert_int_equal(vms.len, 2);
	for (size_t i = 0; i < vms.len; i++) {
		bool mine = vms.vm[i].pid == 10;
		assert_int_equal(vms.vm[i].pid, mine ? 10 : 40);
		assert_int_equal(vms.vm[i].vcpus, mine ? 2 : 1);
		assert_int_equal(vms.vm[i].guest_name != NULL, mine);
		assert_int_equal(v.thread[vms.vm[i].vcpu[0].thread].tid, mine ? 12 : 41);
	}
	vm_list_release(&vms);
	host_timeline_release(&v);
	map_release(&known);
	trace_free(t);
}

/* TID 11 has two lifetimes; the user names it as a vCPU: the lifetime with kvm events is used. */
static void test_named_twice(void **state)
{
	(void)state;
	struct event first_end = make_event(300, EV_EXIT, 0, 11);
	struct event ev[] = {
		make_event(0, EV_OTHER, 0, 1), fork_of(100, 11, 10), first_end, fork_of(400, 11, 10),
			make_event(500, EV_VCPU_ENTRY, 1, 11),
		make_event(600, EV_VCPU_EXIT, 1, 11), make_event(1000, EV_OTHER, 0, 1),
	};
	struct map known = MAP_INIT;
	struct host_timeline v;
	struct trace *t;
	struct vm_list vms;
	map_put(&known, 11, NULL);
	known_tids = &known;
	load_view(&v, ev, COUNT(ev), &t);
	known_tids = NULL;
	assert_int_equal(v.threads, 2);
	vm_list_make(&v, &vms);
	assert_int_equal(vms.len, 1);
	assert_int_equal(vms.vm[0].vcpus, 1);
	assert_int_equal(v.thread[vms.vm[0].vcpu[0].thread].from, 400);
	vm_list_release(&vms);
	host_timeline_release(&v);
	map_release(&known);
	trace_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows), cmocka_unit_test(test_min_gap), cmocka_unit_test(test_losses),
		cmocka_unit_test(test_lifetimes), cmocka_unit_test(test_last_other), cmocka_unit_test(test_merged),
		cmocka_unit_test(test_lifetimes_and_losses), cmocka_unit_test(test_succession), cmocka_unit_test(test_other_thread),
		cmocka_unit_test(test_leader), cmocka_unit_test(test_numbers), cmocka_unit_test(test_named),
		cmocka_unit_test(test_named_twice),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
