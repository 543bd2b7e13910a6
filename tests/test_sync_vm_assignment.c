/* Guests that fit several VMs, and VMs that several guests fit: which guest is assigned to which VM, and with which
 * clock. */
#include "test.h"

#include <stdlib.h>

#include "sync/sync.h"
#include "trace/trace.h"

enum { PERIODS = 64, PERIOD = 97001, MIDDLE = PERIODS / 2 };  /* PERIOD: ns, not a whole number of ms */

struct machine {
	const char *name;
	struct event ev[16 * PERIODS];
	size_t len;
};

/* PID of the guest's VM, -1: none; width of the error bounds in the middle, ns; PID of the process to which the VM
 * migrated. */
struct outcome { int32_t pid; int64_t band; int32_t migrated_pid; };

static struct machine host, guest[2];

static struct event *add_event(struct machine *m, int64_t ts, enum event_kind kind, unsigned cpu, int tid)
{
	struct event *ev = &m->ev[m->len++];
	assert_true(m->len <= COUNT(m->ev));
	*ev = (struct event){ .ts = ts, .kind = (uint16_t)kind, .cpu = (uint16_t)cpu, .tid = tid, .pid = tid / 10 * 10 };
	for (int i = 0; i < 6; i++)
		ev->arg[i] = EVENT_ABSENT;
	return ev;
}

static void machines_init(void)
{
	host = (struct machine){ .name = "host" };
	guest[0] = (struct machine){ .name = "First" };
	guest[1] = (struct machine){ .name = "Second" };
}

/* Adds windows of the thread at the start of the periods from, from + step, ... to. */
static void run_thread(int tid, int from, int to, int step)
{
	for (int64_t period = from; period < to; period += step) {
		const unsigned cpu = (unsigned)tid / 10;
		add_event(&host, period * PERIOD, EV_VCPU_ENTRY, cpu, tid)->comm = 1;
		add_event(&host, period * PERIOD + 9000, EV_VCPU_EXIT, cpu, tid)->comm = 1;
	}
}

/* Adds guest events in these periods, by a clock that is `ahead` ns ahead. */
static void add_activity(struct machine *m, int from, int to, int step, int64_t ahead)
{
	for (int64_t period = from; period < to; period += step) {
		add_event(m, period * PERIOD + 1000 + ahead, EV_OTHER, 0, 1);
		add_event(m, period * PERIOD + 8000 + ahead, EV_OTHER, 0, 1);
	}
}

static void add_sync(struct machine *m, int64_t ts, enum sync_end end, int tid, int64_t key)
{
	struct event *ev = add_event(m, ts, EV_SYNC, 0, tid);
	ev->sync.end = end;
	ev->sync.key = key;
}

/* Adds keys that the first guest sends and receives in a period. */
static void send_keys(int64_t period, int keys, int64_t ahead)
{
	for (int k = 0; k < keys; k++) {
		add_sync(&guest[0], period * PERIOD + 2000 + 500 * k + ahead, SYNC_A, 1, 100 * period + 2 * k);
		add_sync(&guest[0], period * PERIOD + 2200 + 500 * k + ahead, SYNC_D, 1, 100 * period + 2 * k + 1);
	}
}

/* Adds the same keys on a host thread, `late` ns after they were sent and `early` ns before they are received. */
static void receive_keys(int tid, int64_t period, int keys, int64_t late, int64_t early)
{
	for (int k = 0; k < keys; k++) {
		add_sync(&host, period * PERIOD + 2000 + 500 * k + late, SYNC_B, tid, 100 * period + 2 * k);
		add_sync(&host, period * PERIOD + 2200 + 500 * k - early, SYNC_C, tid, 100 * period + 2 * k + 1);
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

static struct outcome run_sync(enum sync_method method, size_t guests, size_t which)
{
	struct trace *trace[3];
	const struct sync_options options = { .method = method, .workers = 1 };
	struct sync_result result;
	struct error err = ERROR_INIT;
	struct outcome outcome = { -1, -1, -1 };
	trace[0] = trace_of(&host, ROLE_HOST);
	for (size_t i = 0; i < guests; i++)
		trace[i + 1] = trace_of(&guest[i], ROLE_GUEST);
	assert_int_equal(sync_run(trace, guests + 1, &options, &result, NULL, &err), 0);
	for (size_t i = 0; i < result.vms; i++)
		if (result.vm[i].guest == trace[which + 1])
			outcome = (struct outcome){ result.vm[i].host_pid,
				clock_map_error_width(&result.vm[i].clock, (int64_t)MIDDLE * PERIOD),
				result.vm[i].migrated_pid };
	sync_result_release(&result);
	for (size_t i = 0; i <= guests; i++)
		trace_free(trace[i]);
	return outcome;
}

/* ---- one guest whose keys occur in two VMs */

static void two_vms(void)
{
	machines_init();
	run_thread(11, 0, PERIODS, 1);
	run_thread(21, 0, PERIODS, 1);
	add_activity(&guest[0], 0, PERIODS, 1, 0);
}

/* In the first VM all of few pairs agree, in the second VM all of many pairs. */
static void test_more_pairs(void **state)
{
	(void)state;
	two_vms();
	for (int64_t period = 0; period < PERIODS; period++) {
		send_keys(period, 1, 0);
		if (period < 12)
			receive_keys(11, period, 1, 100, 100);
		receive_keys(21, period, 1, 100, 100);
	}
	assert_int_equal(run_sync(SYNC_EVENTS, 1, 0).pid, 20);
}

/* In the first VM a third of many pairs contradict the others, in the second VM none of few pairs. */
static void test_contradicted(void **state)
{
	(void)state;
	two_vms();
	for (int64_t period = 0; period < PERIODS; period++) {
		send_keys(period, 2, 0);
		receive_keys(11, period, 2, period % 3 ? 100 : -50000, 100);
		if (period % 4 == 0)
			receive_keys(21, period, 1, 100, 100);
	}
	assert_int_equal(run_sync(SYNC_EVENTS, 1, 0).pid, 20);
}

/* The first VM did not run in two periods. Late pairs in the second VM allow a clock under which everything may be
 * inside, though not with the middle clock. */
static void test_possible(void **state)
{
	(void)state;
	machines_init();
	run_thread(11, 0, MIDDLE, 1);
	run_thread(11, MIDDLE + 2, PERIODS, 1);
	run_thread(21, 0, PERIODS, 1);
	add_activity(&guest[0], 0, PERIODS, 1, 0);
	for (int64_t period = 0; period < PERIODS; period++) {
		send_keys(period, 1, 0);
		receive_keys(11, period, 1, 100, 100);
		receive_keys(21, period, 1, 100, 6000);
	}
	assert_int_equal(run_sync(SYNC_EVENTS, 1, 0).pid, 20);
}

/* A quarter of all pairs contradict the others, but no other VM has any. */
static void test_only(void **state)
{
	(void)state;
	two_vms();
	for (int64_t period = 0; period < PERIODS; period++) {
		send_keys(period, 2, 0);
		receive_keys(21, period, 2, period % 2 ? 100 : -50000, 100);
	}
	assert_int_equal(run_sync(SYNC_EVENTS, 1, 0).pid, 20);
}

/* ---- given clocks */

/* A third of the guest's events are in the VM, which is more than chance, but no proof. */
static void test_third(void **state)
{
	(void)state;
	machines_init();
	run_thread(11, 0, PERIODS, 1);
	add_activity(&guest[0], 0, PERIODS, 3, 0);
	add_activity(&guest[0], 1, PERIODS, 3, 47000);
	add_activity(&guest[0], 2, PERIODS, 3, 47000);
	assert_int_equal(run_sync(SYNC_NONE, 1, 0).pid, -1);
}

/* Of two guests that fit the only VM, the guest with more events inside is assigned. */
static void test_more_inside(void **state)
{
	(void)state;
	machines_init();
	run_thread(11, 0, PERIODS, 1);
	add_activity(&guest[0], MIDDLE, MIDDLE + 1, 1, 0);
	add_activity(&guest[1], 0, PERIODS, 1, 0);
	assert_int_equal(run_sync(SYNC_NONE, 2, 1).pid, 10);
	assert_int_equal(run_sync(SYNC_NONE, 2, 0).pid, -1);
}

/* Makes two guests: the second guest fits both VMs, the first guest only the first VM. */
static void two_guests(void)
{
	machines_init();
	run_thread(11, 0, PERIODS, 1);
	run_thread(21, 1, PERIODS, 2);
	add_activity(&guest[0], 0, PERIODS, 1, 0);
	add_activity(&guest[1], 1, PERIODS, 2, 0);
}

/* The first VM is proven to be the first guest. */
static void test_vm_of_other_guest(void **state)
{
	(void)state;
	two_guests();
	assert_int_equal(run_sync(SYNC_NONE, 2, 0).pid, 10);
	assert_int_equal(run_sync(SYNC_NONE, 2, 1).pid, 20);
}

/* The first VM is not proven to be the first guest: an event is outside guest mode there, or the first guest fits a
 * third VM as well. */
static void test_maybe_vm_of_other_guest(void **state)
{
	(void)state;
	two_guests();
	add_activity(&guest[0], MIDDLE, MIDDLE + 1, 1, 40000);
	assert_int_equal(run_sync(SYNC_NONE, 2, 1).pid, -1);
	two_guests();
	run_thread(31, 0, PERIODS, 1);
	assert_int_equal(run_sync(SYNC_NONE, 2, 1).pid, -1);
}

/* A guest traced until its VM migrated fits the source process and the migrated VM. */
static void test_migrated(void **state)
{
	(void)state;
	machines_init();
	struct event *fork = add_event(&host, 0, EV_FORK, 0, 1);
	fork->fork.parent_tid = fork->fork.child_pid = 20;
	fork->fork.child_tid = 21;
	run_thread(11, 0, MIDDLE, 1);
	run_thread(21, MIDDLE, PERIODS, 1);
	add_activity(&guest[0], 0, MIDDLE, 1, 0);
	assert_int_equal(run_sync(SYNC_NONE, 1, 0).pid, 10);
}

/* A guest continues in threads of another process, which existed before; `more` of these have no counterpart in the
 * first process. */
static struct outcome run_migration(unsigned more)
{
	machines_init();
	for (unsigned cpu = 0; cpu <= more; cpu++) {
		struct event *fork = add_event(&host, 0, EV_FORK, cpu, 1);
		fork->fork.parent_tid = fork->fork.child_pid = 20;
		fork->fork.child_tid = 21 + (int)cpu;
	}
	run_thread(11, 0, MIDDLE, 1);
	for (unsigned cpu = 0; cpu <= more; cpu++)
		run_thread(21 + (int)cpu, MIDDLE, PERIODS, 1);
	add_activity(&guest[0], 0, PERIODS, 1, 0);
	return run_sync(SYNC_NONE, 1, 0);
}

/* A migration is found only if both processes have the same number of CPUs. */
static void test_continued(void **state)
{
	(void)state;
	assert_int_equal(run_migration(0).migrated_pid, 20);
	assert_int_equal(run_migration(1).migrated_pid, -1);
}

/* ---- clocks with few pairs that show a change */

/* For an eighth of the time the clock is ahead, shown by the pairs of one period: the clock is known before and after,
 * but has no bounds there. */
static void check_ahead(int64_t ahead)
{
	enum { FIRST = MIDDLE - 4, LAST = MIDDLE + 4 };
	machines_init();
	run_thread(11, 0, PERIODS, 1);
	add_activity(&guest[0], 0, FIRST, 1, 0);
	add_activity(&guest[0], FIRST, LAST, 1, ahead);
	add_activity(&guest[0], LAST, PERIODS, 1, 0);
	if (ahead == 0)  /* events of a vCPU without a host thread are no evidence about the clock */
		for (int64_t period = 0; period < PERIODS; period += 4)
			add_event(&guest[0], period * PERIOD + 1000, EV_OTHER, 1, 1);
	for (int64_t period = 0; period < PERIODS; period++)
		if (period < FIRST || period >= LAST || period == MIDDLE) {
			send_keys(period, 1, period == MIDDLE ? ahead : 0);
			receive_keys(11, period, 1, ahead == 0 && period == MIDDLE ? -30000 : 100, 100);
		}
	const struct outcome outcome = run_sync(SYNC_EVENTS, 1, 0);
	assert_int_equal(outcome.pid, 10);
	if (ahead == 0)
		assert_in_range(outcome.band, 0, 1000);
	else
		assert_int_equal(outcome.band, -1);
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
		cmocka_unit_test(test_more_inside), cmocka_unit_test(test_vm_of_other_guest),
		cmocka_unit_test(test_maybe_vm_of_other_guest), cmocka_unit_test(test_migrated), cmocka_unit_test(test_continued),
		cmocka_unit_test(test_ahead),
	};
	return cmocka_run_group_tests_name("sync winners", tests, NULL, NULL);
}
