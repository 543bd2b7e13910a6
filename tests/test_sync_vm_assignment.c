/* sync/: guests that fit several VMs, and VMs that several guests fit: who is told to be whose, and by which clock. */
#include "test.h"

#include <stdlib.h>

#include "sync/sync.h"
#include "trace/trace.h"

enum { TURNS = 64, TURN = 97001, MIDDLE = TURNS / 2 };  /* ns; whole ms are no whole turns */

struct machine {
	const char *name;
	struct event ev[16 * TURNS];
	size_t len;
};

/* Of the VM that the guest is, -1: none; how unsure its clock is in the middle; of the process that it moved to. */
struct told { int32_t pid; int64_t band; int32_t moved; };

static struct machine host, guest[2];

static struct event *add(struct machine *m, int64_t ts, enum event_kind kind, unsigned cpu, int tid)
{
	struct event *ev = &m->ev[m->len++];
	assert_true(m->len <= COUNT(m->ev));
	*ev = (struct event){ .ts = ts, .kind = (uint16_t)kind, .cpu = (uint16_t)cpu, .tid = tid, .pid = tid / 10 * 10 };
	for (int i = 0; i < 6; i++)
		ev->arg[i] = EVENT_ABSENT;
	return ev;
}

static void begin(void)
{
	host = (struct machine){ .name = "host" };
	guest[0] = (struct machine){ .name = "First" };
	guest[1] = (struct machine){ .name = "Second" };
}

/* That thread is in guest mode at the begin of those turns. */
static void stay(int tid, int from, int to, int step)
{
	for (int64_t turn = from; turn < to; turn += step) {
		const unsigned cpu = (unsigned)tid / 10;
		add(&host, turn * TURN, EV_KVM_ENTRY, cpu, tid)->comm = 1;
		add(&host, turn * TURN + 9000, EV_KVM_EXIT, cpu, tid)->comm = 1;
	}
}

/* What a guest does meanwhile, by a clock that is so much ahead. */
static void act(struct machine *m, int from, int to, int step, int64_t ahead)
{
	for (int64_t turn = from; turn < to; turn += step) {
		add(m, turn * TURN + 1000 + ahead, EV_OTHER, 0, 1);
		add(m, turn * TURN + 8000 + ahead, EV_OTHER, 0, 1);
	}
}

static void add_sync(struct machine *m, int64_t ts, enum sync_end end, int tid, int64_t key)
{
	struct event *ev = add(m, ts, EV_SYNC, 0, tid);
	ev->sync.end = end;
	ev->sync.key = key;
}

/* Keys that the first guest sends, and gets, in a turn. */
static void send_keys(int64_t turn, int keys, int64_t ahead)
{
	for (int k = 0; k < keys; k++) {
		add_sync(&guest[0], turn * TURN + 2000 + 500 * k + ahead, SYNC_A, 1, 100 * turn + 2 * k);
		add_sync(&guest[0], turn * TURN + 2200 + 500 * k + ahead, SYNC_D, 1, 100 * turn + 2 * k + 1);
	}
}

/* They come from that vCPU and to it, so late. */
static void serve_keys(int tid, int64_t turn, int keys, int64_t late, int64_t early)
{
	for (int k = 0; k < keys; k++) {
		add_sync(&host, turn * TURN + 2000 + 500 * k + late, SYNC_B, tid, 100 * turn + 2 * k);
		add_sync(&host, turn * TURN + 2200 + 500 * k - early, SYNC_C, tid, 100 * turn + 2 * k + 1);
	}
}

static int by_time(const void *pa, const void *pb)
{
	const struct event *a = pa, *b = pb;
	return a->ts < b->ts ? -1 : a->ts > b->ts;
}

static struct trace *trace_of(struct machine *m, enum trace_role role)
{
	static const char *const strings[] = { "", "CPU 0/KVM" };
	qsort(m->ev, m->len, sizeof *m->ev, by_time);
	return trace_from_events(m->name, role, m->ev, m->len, strings, COUNT(strings));
}

static struct told run(enum sync_method method, size_t guests, size_t which)
{
	struct trace *trace[3];
	const struct sync_options options = { .method = method, .workers = 1 };
	struct sync_result result;
	struct error err = ERROR_INIT;
	struct told told = { -1, -1, -1 };
	trace[0] = trace_of(&host, ROLE_HOST);
	for (size_t i = 0; i < guests; i++)
		trace[i + 1] = trace_of(&guest[i], ROLE_GUEST);
	assert_int_equal(sync_run(trace, guests + 1, &options, &result, NULL, &err), 0);
	for (size_t i = 0; i < result.vms; i++)
		if (result.vm[i].guest == trace[which + 1])
			told = (struct told){ result.vm[i].host_pid, clock_map_band(&result.vm[i].clock, (int64_t)MIDDLE * TURN),
				result.vm[i].moved_pid };
	sync_result_release(&result);
	for (size_t i = 0; i <= guests; i++)
		trace_free(trace[i]);
	return told;
}

/* ---- one guest, whose keys are those of two VMs */

static void two_vms(void)
{
	begin();
	stay(11, 0, TURNS, 1);
	stay(21, 0, TURNS, 1);
	act(&guest[0], 0, TURNS, 1, 0);
}

/* In the first VM all of few pairs agree, in the second one all of many. */
static void test_more_pairs(void **state)
{
	(void)state;
	two_vms();
	for (int64_t turn = 0; turn < TURNS; turn++) {
		send_keys(turn, 1, 0);
		if (turn < 12)
			serve_keys(11, turn, 1, 100, 100);
		serve_keys(21, turn, 1, 100, 100);
	}
	assert_int_equal(run(SYNC_EVENTS, 1, 0).pid, 20);
}

/* In the first VM a third of many pairs contradict the others, in the second one none of few. */
static void test_contradicted(void **state)
{
	(void)state;
	two_vms();
	for (int64_t turn = 0; turn < TURNS; turn++) {
		send_keys(turn, 2, 0);
		serve_keys(11, turn, 2, turn % 3 ? 100 : -50000, 100);
		if (turn % 4 == 0)
			serve_keys(21, turn, 1, 100, 100);
	}
	assert_int_equal(run(SYNC_EVENTS, 1, 0).pid, 20);
}

/* The first VM was not there in two turns; late pairs of the second one leave a clock by which all of it may be true, but
 * not in the middle. */
static void test_possible(void **state)
{
	(void)state;
	begin();
	stay(11, 0, MIDDLE, 1);
	stay(11, MIDDLE + 2, TURNS, 1);
	stay(21, 0, TURNS, 1);
	act(&guest[0], 0, TURNS, 1, 0);
	for (int64_t turn = 0; turn < TURNS; turn++) {
		send_keys(turn, 1, 0);
		serve_keys(11, turn, 1, 100, 100);
		serve_keys(21, turn, 1, 100, 6000);
	}
	assert_int_equal(run(SYNC_EVENTS, 1, 0).pid, 20);
}

/* A quarter of all pairs contradict the others, but no other VM has any. */
static void test_only(void **state)
{
	(void)state;
	two_vms();
	for (int64_t turn = 0; turn < TURNS; turn++) {
		send_keys(turn, 2, 0);
		serve_keys(21, turn, 2, turn % 2 ? 100 : -50000, 100);
	}
	assert_int_equal(run(SYNC_EVENTS, 1, 0).pid, 20);
}

/* ---- given clocks */

/* A third of what it does is in the VM, which is more than chance, and no proof. */
static void test_third(void **state)
{
	(void)state;
	begin();
	stay(11, 0, TURNS, 1);
	act(&guest[0], 0, TURNS, 3, 0);
	act(&guest[0], 1, TURNS, 3, 47000);
	act(&guest[0], 2, TURNS, 3, 47000);
	assert_int_equal(run(SYNC_NONE, 1, 0).pid, -1);
}

/* Of two guests that fit the only VM the one that shows more of itself. */
static void test_more_inside(void **state)
{
	(void)state;
	begin();
	stay(11, 0, TURNS, 1);
	act(&guest[0], MIDDLE, MIDDLE + 1, 1, 0);
	act(&guest[1], 0, TURNS, 1, 0);
	assert_int_equal(run(SYNC_NONE, 2, 1).pid, 10);
	assert_int_equal(run(SYNC_NONE, 2, 0).pid, -1);
}

/* The second guest fits both VMs, and the first guest the first VM. */
static void two_guests(void)
{
	begin();
	stay(11, 0, TURNS, 1);
	stay(21, 1, TURNS, 2);
	act(&guest[0], 0, TURNS, 1, 0);
	act(&guest[1], 1, TURNS, 2, 0);
}

/* That VM is the first guest's. */
static void test_anothers(void **state)
{
	(void)state;
	two_guests();
	assert_int_equal(run(SYNC_NONE, 2, 0).pid, 10);
	assert_int_equal(run(SYNC_NONE, 2, 1).pid, 20);
}

/* It is not, or nobody knows: something of the first guest lies out of guest mode there, or it fits a third VM, too. */
static void test_perhaps_anothers(void **state)
{
	(void)state;
	two_guests();
	act(&guest[0], MIDDLE, MIDDLE + 1, 1, 40000);
	assert_int_equal(run(SYNC_NONE, 2, 1).pid, -1);
	two_guests();
	stay(31, 0, TURNS, 1);
	assert_int_equal(run(SYNC_NONE, 2, 1).pid, -1);
}

/* A guest that was traced until its VM moved to another process fits what it was and what it became. */
static void test_moved(void **state)
{
	(void)state;
	begin();
	struct event *fork = add(&host, 0, EV_FORK, 0, 1);
	fork->fork.parent_tid = fork->fork.child_pid = 20;
	fork->fork.child_tid = 21;
	stay(11, 0, MIDDLE, 1);
	stay(21, MIDDLE, TURNS, 1);
	act(&guest[0], 0, MIDDLE, 1, 0);
	assert_int_equal(run(SYNC_NONE, 1, 0).pid, 10);
}

/* A guest goes on where the threads of another process do, which were there before, and of which `more` had nobody in the
 * first process. */
static struct told run_moving(unsigned more)
{
	begin();
	for (unsigned cpu = 0; cpu <= more; cpu++) {
		struct event *fork = add(&host, 0, EV_FORK, cpu, 1);
		fork->fork.parent_tid = fork->fork.child_pid = 20;
		fork->fork.child_tid = 21 + (int)cpu;
	}
	stay(11, 0, MIDDLE, 1);
	for (unsigned cpu = 0; cpu <= more; cpu++)
		stay(21 + (int)cpu, MIDDLE, TURNS, 1);
	act(&guest[0], 0, TURNS, 1, 0);
	return run(SYNC_NONE, 1, 0);
}

/* Only where both processes have as many CPUs. */
static void test_goes_on(void **state)
{
	(void)state;
	assert_int_equal(run_moving(0).moved, 20);
	assert_int_equal(run_moving(1).moved, -1);
}

/* ---- clocks of which few pairs tell */

/* For an eighth of the time it is ahead, of which one turn's pairs tell: its clock is known before and after, but no
 * corridor holds it. */
static void check_ahead(int64_t ahead)
{
	enum { FIRST = MIDDLE - 4, LAST = MIDDLE + 4 };
	begin();
	stay(11, 0, TURNS, 1);
	act(&guest[0], 0, FIRST, 1, 0);
	act(&guest[0], FIRST, LAST, 1, ahead);
	act(&guest[0], LAST, TURNS, 1, 0);
	if (ahead == 0)  /* what a vCPU does that the host does not show says nothing of the clock */
		for (int64_t turn = 0; turn < TURNS; turn += 4)
			add(&guest[0], turn * TURN + 1000, EV_OTHER, 1, 1);
	for (int64_t turn = 0; turn < TURNS; turn++)
		if (turn < FIRST || turn >= LAST || turn == MIDDLE) {
			send_keys(turn, 1, turn == MIDDLE ? ahead : 0);
			serve_keys(11, turn, 1, ahead == 0 && turn == MIDDLE ? -30000 : 100, 100);
		}
	const struct told told = run(SYNC_EVENTS, 1, 0);
	assert_int_equal(told.pid, 10);
	if (ahead == 0)
		assert_in_range(told.band, 0, 1000);
	else
		assert_int_equal(told.band, -1);
}

static void test_ahead(void **state)
{
	(void)state;
	check_ahead(0);
	check_ahead(30000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_more_pairs), cmocka_unit_test(test_contradicted), cmocka_unit_test(test_possible),
		cmocka_unit_test(test_only), cmocka_unit_test(test_third),
		cmocka_unit_test(test_more_inside), cmocka_unit_test(test_anothers),
		cmocka_unit_test(test_perhaps_anothers), cmocka_unit_test(test_moved), cmocka_unit_test(test_goes_on),
		cmocka_unit_test(test_ahead),
	};
	return cmocka_run_group_tests_name("sync winners", tests, NULL, NULL);
}
