/* sync/: what the host saw: windows of guest mode, lives of TIDs, which thread is which vCPU. */
#include "test.h"

#include "sync/evidence/activity.h"
#include "sync/evidence/vm_candidates.h"
#include "sync_sim.h"

/* ---- the host's walk */

static struct event make(int64_t ts, enum event_kind kind, unsigned cpu, int tid)
{
	struct event ev = { .ts = ts, .kind = (uint16_t)kind, .cpu = (uint16_t)cpu, .tid = tid, .pid = tid < 0 ? -1 : 10 };
	for (int i = 0; i < 6; i++)
		ev.arg[i] = EVENT_ABSENT;
	return ev;
}

static struct event lost(int64_t ts, int64_t to, unsigned cpu)
{
	struct event ev = make(ts, EV_LOST, cpu, -1);
	ev.lost.end = to;
	ev.lost.count = 1;
	return ev;
}

static const struct map *known_tids;

static void load_view(struct host_view *v, const struct event *ev, size_t n, struct trace **trace)
{
	static const char *const strings[] = { "", "qemu:One", "CPU 0/KVM", "CPU 1/KVM" };
	struct error err = ERROR_INIT;
	*trace = trace_from_events("h", ROLE_HOST, ev, n, strings, COUNT(strings));
	assert_int_equal(host_view_load(v, *trace, known_tids, 1, NULL, &err), 0);
}

static enum guest_mode mode_at(const struct host_view *v, int tid, int64_t t)
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
		make(0, EV_OTHER, 0, 1),
		make(50, EV_KVM_EXIT, 0, 11),    /* was in the guest when the trace began */
		make(100, EV_KVM_ENTRY, 0, 11), make(200, EV_KVM_EXIT, 0, 11),
		make(300, EV_KVM_ENTRY, 0, 11),  /* and is when it ends */
		make(310, EV_KVM_ENTRY, 1, 12), make(320, EV_KVM_EXIT, 1, 12),
		make(1000, EV_OTHER, 0, 1),
	};
	struct host_view v;
	struct trace *t;
	load_view(&v, ev, COUNT(ev), &t);
	static const struct { int tid; int64_t at; enum guest_mode mode; } want[] = {
		{ 11, 10, MODE_IN }, { 11, 50, MODE_IN }, { 11, 51, MODE_OUT }, { 11, 99, MODE_OUT }, { 11, 100, MODE_IN },
		{ 11, 200, MODE_IN }, { 11, 201, MODE_OUT }, { 11, 300, MODE_IN }, { 11, 999, MODE_IN },
		{ 12, 5, MODE_BLIND }, { 12, 49, MODE_BLIND },  /* nobody's entries may be recorded yet */
		{ 12, 50, MODE_OUT }, { 12, 315, MODE_IN }, { 12, 900, MODE_OUT },
	};
	for (size_t i = 0; i < COUNT(want); i++)
		assert_int_equal(mode_at(&v, want[i].tid, want[i].at), want[i].mode);
	host_view_release(&v);
	trace_free(t);
}

/* Of what a guest does faster than its host can leave guest mode and come back, the first and the last tell all. */
static void test_quiet(void **state)
{
	(void)state;
	const struct event ev[] = {
		make(0, EV_OTHER, 0, 1), make(100, EV_KVM_ENTRY, 0, 11), make(200, EV_KVM_EXIT, 0, 11),
		make(700, EV_KVM_ENTRY, 0, 11), make(800, EV_KVM_EXIT, 0, 11), make(2000, EV_KVM_ENTRY, 0, 11),
		make(3000, EV_KVM_EXIT, 0, 11),
	};
	static const int64_t at[] = { 100, 300, 400, 600, 1090, 1600, 1700 }, kept[] = { 100, 600, 1090, 1600, 1700 };
	struct event did[COUNT(at)];
	struct host_view v;
	struct activity a;
	struct error err = ERROR_INIT;
	struct trace *t;
	load_view(&v, ev, COUNT(ev), &t);
	assert_int_equal(v.quiet, 500 - 5 - 1);
	for (size_t i = 0; i < COUNT(at); i++)
		did[i] = make(at[i], EV_OTHER, 0, 1);
	struct trace *guest = trace_from_events("g", ROLE_GUEST, did, COUNT(did), (const char *const[]){ "" }, 1);
	assert_int_equal(activity_load(&a, guest, 490, NULL, &err), 0);
	assert_int_equal(a.len, COUNT(kept));
	for (size_t i = 0; i < COUNT(kept); i++)
		assert_int_equal(a.cpu[0].ts[i], kept[i]);
	activity_release(&a);
	trace_free(guest);
	host_view_release(&v);
	trace_free(t);
}

/* What lost events hide is not known; what they cannot hide is. */
static void test_losses(void **state)
{
	(void)state;
	const struct event ev[] = {
		make(0, EV_OTHER, 0, 1), make(0, EV_OTHER, 1, 1),
		make(100, EV_KVM_ENTRY, 0, 11), make(110, EV_KVM_ENTRY, 1, 12),
		make(120, EV_KVM_ENTRY, 2, 13), make(130, EV_KVM_EXIT, 2, 13),
		lost(200, 300, 0),
		make(250, EV_KVM_EXIT, 1, 12),   /* may go to CPU 0 now */
		make(400, EV_KVM_EXIT, 0, 11),   /* was in the guest since some time in the loss */
		make(500, EV_KVM_ENTRY, 1, 12),  /* was out of it since some time in the loss */
		make(600, EV_KVM_ENTRY, 2, 13), make(610, EV_KVM_EXIT, 2, 13),
		make(1000, EV_OTHER, 0, 1),
	};
	struct host_view v;
	struct trace *t;
	load_view(&v, ev, COUNT(ev), &t);
	static const struct { int tid; int64_t at; enum guest_mode mode; } want[] = {
		{ 11, 150, MODE_IN }, { 11, 199, MODE_IN }, { 11, 250, MODE_BLIND }, { 11, 301, MODE_IN }, { 11, 400, MODE_IN },
		{ 11, 450, MODE_OUT },
		{ 12, 150, MODE_IN }, { 12, 240, MODE_IN }, { 12, 260, MODE_BLIND }, { 12, 310, MODE_OUT }, { 12, 501, MODE_IN },
		{ 13, 125, MODE_IN }, { 13, 150, MODE_OUT }, { 13, 250, MODE_BLIND }, { 13, 350, MODE_OUT }, { 13, 605, MODE_IN },
	};
	for (size_t i = 0; i < COUNT(want); i++)
		assert_int_equal(mode_at(&v, want[i].tid, want[i].at), want[i].mode);
	host_view_release(&v);
	trace_free(t);
}

static struct event fork_of(int64_t ts, int child, int pid)
{
	struct event ev = make(ts, EV_FORK, 3, 1);
	ev.fork.parent_tid = 1;
	ev.fork.child_tid = child;
	ev.fork.child_pid = pid;
	return ev;
}

/* TID 11 belongs to one VM, then to another one; nothing but scheduling tells who runs on a CPU.  Between its exit and its
 * last switch a thread is preempted, which is no other thread. */
static void test_lives(void **state)
{
	(void)state;
	struct event first_end = make(300, EV_EXIT, 0, -1);
	first_end.exit.tid = 11;
	struct event in = make(90, EV_SWITCH, 0, -1);
	in.sw.next_tid = 11;
	struct event process = make(1, EV_PROCESS, 0, -1), dying = make(310, EV_SWITCH, 0, -1);
	process.process.tid = dying.sw.prev_tid = 11;
	process.process.pid = 10;
	dying.sw.prev_comm = 2;  /* "CPU 0/KVM" */
	struct event ev[] = {
		make(0, EV_OTHER, 0, 1), process, in, make(100, EV_KVM_ENTRY, 0, -1), make(200, EV_KVM_EXIT, 0, -1), first_end,
		dying, fork_of(400, 11, 40), make(500, EV_KVM_ENTRY, 1, 11), make(600, EV_KVM_EXIT, 1, 11), make(1000, EV_OTHER, 0, 1),
	};
	ev[8].pid = ev[9].pid = 40;
	struct host_view v;
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
	host_view_release(&v);
	trace_free(t);
}

/* Where events were lost, a life may begin and end unseen: what is seen last and first tells who took whose place. */
static void test_lives_and_losses(void **state)
{
	(void)state;
	struct event other = make(450, EV_RENAME, 1, 21);
	other.rename.tid = 21;
	other.rename.comm = 1;
	struct event ev[] = {
		make(0, EV_OTHER, 0, 1), make(100, EV_KVM_ENTRY, 0, 11), make(200, EV_KVM_EXIT, 0, 11), lost(300, 400, 0), other,
		make(500, EV_KVM_ENTRY, 1, 12), make(600, EV_KVM_EXIT, 1, 12), lost(610, 620, 0),
		make(650, EV_KVM_ENTRY, 0, 21), make(700, EV_KVM_EXIT, 0, 21), fork_of(800, 12, 40), make(1000, EV_OTHER, 0, 1),
	};
	for (size_t i = 1; i < 10; i++)
		ev[i].comm = ev[i].kind == EV_LOST ? 0 : ev[i].kind == EV_RENAME ? 1 : 2;  /* 2: "CPU 0/KVM" */
	struct host_view v;
	struct trace *t;
	struct vm_list vms;
	load_view(&v, ev, COUNT(ev), &t);
	assert_int_equal(v.threads, 3);
	assert_int_equal(v.thread[0].to, INT64_MAX);
	assert_int_equal(v.thread[1].from, 500);
	assert_int_equal(v.thread[1].earliest, 0);    /* never seen before */
	assert_int_equal(v.thread[1].to, 600);        /* it was not seen again, and its TID is used by another thread */
	assert_int_equal(v.thread[2].from, 650);
	assert_int_equal(v.thread[2].earliest, 451);  /* then another thread had the TID, perhaps */
	assert_int_equal(mode_at(&v, 12, 550), MODE_IN);
	assert_true(vthread_blind(&v.thread[1], 450, 450));
	vm_list_make(&v, &vms);
	assert_int_equal(vms.len, 1);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(vms.vm[0].vcpu[i].number, 0);
		assert_int_equal(vms.vm[0].vcpu[i].evidence, VCPU_BY_NAME);
	}
	assert_int_equal(v.thread[0].to, 200);
	assert_int_equal(v.thread[2].to, INT64_MAX);
	vm_list_release(&vms);
	host_view_release(&v);
	trace_free(t);
}

/* Once its thread has ended, a loss may hide another one that became the same vCPU. */
static void test_succession(void **state)
{
	(void)state;
	struct event end = make(300, EV_EXIT, 0, 11);
	end.exit.tid = 11;
	const struct event ev[] = {
		make(0, EV_OTHER, 0, 1), make(100, EV_KVM_ENTRY, 0, 11), make(200, EV_KVM_EXIT, 0, 11), end, lost(400, 500, 0),
		make(1000, EV_OTHER, 0, 1),
	};
	struct host_view v;
	struct trace *t;
	load_view(&v, ev, COUNT(ev), &t);
	assert_int_equal(v.thread[0].to, 300);
	assert_false(vthread_blind(&v.thread[0], 301, 399));
	assert_true(vthread_blind(&v.thread[0], 600, 600));
	host_view_release(&v);
	trace_free(t);
}

/* Behind a loss a TID is another thread's if it is of another process, or has the name of another vCPU. */
static void check_apart(int pid, uint32_t comm, size_t lives)
{
	struct event ev[] = {
		make(0, EV_OTHER, 0, 1), make(100, EV_KVM_ENTRY, 0, 11), make(200, EV_KVM_EXIT, 0, 11), lost(300, 400, 0),
		make(500, EV_KVM_ENTRY, 0, 11), make(600, EV_KVM_EXIT, 0, 11), make(1000, EV_OTHER, 0, 1),
	};
	struct host_view v;
	struct trace *t;
	ev[1].comm = ev[2].comm = 2;
	ev[4].comm = ev[5].comm = comm;
	ev[4].pid = ev[5].pid = pid;
	load_view(&v, ev, COUNT(ev), &t);
	assert_int_equal(v.threads, lives);
	assert_int_equal(v.thread[0].pid, 10);
	assert_int_equal(v.thread[lives - 1].pid, pid);
	host_view_release(&v);
	trace_free(t);
}

static void test_apart(void **state)
{
	(void)state;
	check_apart(10, 2, 1);
	check_apart(40, 2, 2);
	check_apart(10, 3, 2);
}

/* TID 11 was a process, whose end was lost; now a vCPU's thread has it, of which process is not known. */
static void test_leader(void **state)
{
	(void)state;
	struct event process = make(1, EV_PROCESS, 0, -1), in = make(500, EV_SWITCH, 0, -1);
	process.process.tid = process.process.pid = in.sw.next_tid = 11;
	process.process.comm = 1;
	in.sw.next_comm = 2;
	const struct event ev[] = {
		make(0, EV_OTHER, 0, 1), process, lost(300, 400, 0), in, make(510, EV_KVM_ENTRY, 0, -1),
		make(600, EV_KVM_EXIT, 0, -1), make(1000, EV_OTHER, 0, 1),
	};
	struct host_view v;
	struct trace *t;
	load_view(&v, ev, COUNT(ev), &t);
	assert_int_equal(v.threads, 1);
	assert_int_equal(v.thread[0].pid, -1);
	host_view_release(&v);
	trace_free(t);
}

/* Numbers of vCPUs: by name, also of one that never ran; by a plausible hint; else in the order of TIDs. */
static void check_numbers(int comm, int64_t hint, unsigned first, unsigned second, enum vcpu_evidence evidence)
{
	struct event ev[] = {
		make(0, EV_OTHER, 0, 1), make(100, EV_KVM_ENTRY, 0, 12), make(150, EV_KVM_EXIT, 0, 12),
		make(200, EV_KVM_ENTRY, 1, 11), make(250, EV_KVM_EXIT, 1, 11), make(900, EV_OTHER, 0, 1),
	};
	for (int i = 1; i < 5; i++) {
		ev[i].comm = (uint32_t)(comm == 0 ? 1 : i < 3 ? comm : 5 - comm);
		ev[i].kvm.vcpu = hint < 0 ? EVENT_ABSENT : i < 3 ? hint : hint == 7 ? 7 : 1 - hint;
	}
	struct host_view v;
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
	host_view_release(&v);
	trace_free(t);
}

static void test_numbers(void **state)
{
	(void)state;
	check_numbers(2, -1, 12, 11, VCPU_BY_NAME);   /* 12 is "CPU 0/KVM", 11 is "CPU 1/KVM" */
	check_numbers(3, 0, 11, 12, VCPU_BY_NAME);    /* names beat hints */
	check_numbers(0, 0, 12, 11, VCPU_BY_HINT);
	check_numbers(0, 7, 11, 12, VCPU_BY_ORDER);   /* the same hint twice: not plausible */
	check_numbers(0, -1, 11, 12, VCPU_BY_ORDER);
}

/* What the user names belongs together, though the trace tells the process of one thread alone; another VM's stay. */
static void test_named(void **state)
{
	(void)state;
	struct event seen = make(300, EV_SWITCH, 1, -1);
	seen.sw.prev_tid = 12;  /* all that is ever seen of it */
	struct event ev[] = {
		make(0, EV_OTHER, 0, 1), make(100, EV_KVM_ENTRY, 0, 11), make(200, EV_KVM_EXIT, 0, 11), seen,
		make(400, EV_KVM_ENTRY, 1, 41), make(500, EV_KVM_EXIT, 1, 41), make(900, EV_OTHER, 0, 1),
	};
	struct sync_hint_vcpu vcpu[] = { { 1, 11 }, { 0, 12 } };
	const struct sync_hint hint = { .guest = (char[]){ "One" }, .vcpu = vcpu, .vcpus = 2 };
	struct map known = MAP_INIT;
	struct host_view v;
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
	vm_list_hint(&v, &vms, &hint, 1);
	assert_int_equal(vms.len, 2);
	for (size_t i = 0; i < vms.len; i++) {
		bool mine = vms.vm[i].pid == 10;
		assert_int_equal(vms.vm[i].pid, mine ? 10 : 40);
		assert_int_equal(vms.vm[i].vcpus, mine ? 2 : 1);
		assert_int_equal(vms.vm[i].given != NULL, mine);
		assert_int_equal(v.thread[vms.vm[i].vcpu[0].thread].tid, mine ? 12 : 41);
	}
	vm_list_release(&vms);
	host_view_release(&v);
	map_release(&known);
	trace_free(t);
}

/* The user says that TID 11 is a vCPU: of its two lives that one which executes a guest. */
static void test_named_twice(void **state)
{
	(void)state;
	struct event first_end = make(300, EV_EXIT, 0, 11);
	struct event ev[] = {
		make(0, EV_OTHER, 0, 1), fork_of(100, 11, 10), first_end, fork_of(400, 11, 10), make(500, EV_KVM_ENTRY, 1, 11),
		make(600, EV_KVM_EXIT, 1, 11), make(1000, EV_OTHER, 0, 1),
	};
	struct map known = MAP_INIT;
	struct host_view v;
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
	host_view_release(&v);
	map_release(&known);
	trace_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows), cmocka_unit_test(test_quiet), cmocka_unit_test(test_losses),
		cmocka_unit_test(test_lives),
		cmocka_unit_test(test_lives_and_losses), cmocka_unit_test(test_succession), cmocka_unit_test(test_apart),
		cmocka_unit_test(test_leader), cmocka_unit_test(test_numbers), cmocka_unit_test(test_named),
		cmocka_unit_test(test_named_twice),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
