/* Throttled threads and vCPUs, as events show them. */
#include "model_throttling.h"

#include "model/loss/initial_state.h"
#include "model/state/state.h"

static void throttled(double t, int32_t tid, int64_t on)
{
	struct event ev = event((int64_t)(t * MS), EV_THROTTLED, 0, -1);
	ev.throttled.tid = tid;
	ev.throttled.on = on;
	feed(0, ev);
}

#define THREAD_LIMIT "/Host/Threads/7/Out By"

static void thread_at(double t, int64_t value)
{
	expect(THREAD_LIMIT, (int64_t)(t * MS), value);
}

/* Events show which thread is throttled, on a busy CPU: from its switch-out to the refill, and no further; not if it
 * sleeps instead, or runs again. What other threads take after the refill is theirs. */
static void test_recorded_thread(void **state)
{
	(void)state;
	begin();
	to(10, 8, RUN_RUNNABLE, 7, 0);
	throttled(19.999, 7, 1);
	to(20, 7, RUN_RUNNABLE, 8, 0);
	throttled(97, 7, 0);
	to(99, 8, RUN_RUNNABLE, 7, 0);
	thread_at(19.9995, HISTORY_NULL);
	thread_at(20, OUT_QUOTA);
	thread_at(96.9, OUT_QUOTA);
	thread_at(97, HISTORY_NULL);
	throttled(109.999, 7, 1);
	to(110, 7, RUN_BLOCKED, 8, 0);
	throttled(130, 7, 0);
	thread_at(120, HISTORY_NULL);
	wake(0, 140 * MS, 0, 8, 7, 0);
	to(141, 8, RUN_RUNNABLE, 7, 0);
	throttled(150, 7, 1);
	to(151, 7, RUN_RUNNABLE, 8, 0);
	to(160, 8, RUN_RUNNABLE, 7, 0);  /* runs without an event that ends it */
	throttled(161, 7, 0);
	thread_at(159.9, OUT_QUOTA);
	thread_at(160, HISTORY_NULL);
	throttled(170, 7, 1);
	to(171, 7, RUN_RUNNABLE, 8, 0);
	assert_int_equal(model_end(model, 0, 180 * MS, NULL), 0);
	thread_at(179, OUT_QUOTA);
	thread_at(180, HISTORY_NULL);
	throttled(181, 4711, 0);  /* no such thread */
	teardown();
}

/* A thread that was throttled when the trace began: its first event is the end. A later one without a start does not count. */
static void test_throttled_before(void **state)
{
	struct machine_setup setup[] = {
		{ .name = "host", .parent = -1, .traced = true, .host_pid = -1, .names = { name_of, NULL } } };
	struct prescan start = PRESCAN_INIT;
	struct event ev = event(54 * MS, EV_THROTTLED, 0, 8);
	(void)state;
	ev.throttled.tid = 7;
	ev.throttled.on = 0;
	prescan_feed(&start, &ev);
	prescan_finish(&start);
	rec_init(&rec);
	model = model_new(setup, COUNT(setup), false, &rec_ops, &rec, NULL);
	assert_int_equal(model_begin(model, 0, 10 * MS, &start, NULL), 0);
	throttled(54, 7, 0);
	to(60, 8, RUN_RUNNABLE, 7, 0);
	expect("/Host/Threads/7/Status", 10 * MS, THREAD_PREEMPTED);
	thread_at(10, OUT_QUOTA);
	thread_at(53.9, OUT_QUOTA);
	thread_at(54, HISTORY_NULL);
	to(70, 7, RUN_RUNNABLE, 8, 0);
	throttled(80, 7, 0);
	thread_at(75, HISTORY_NULL);
	model_free(model);
	rec_release(&rec);
	prescan_release(&start);
}

/* The same for a vCPU on a busy CPU: the events decide, and nothing is inferred beside them. */
static void test_recorded_vcpu(void **state)
{
	(void)state;
	begin();
	throttled(19.999, 154, 1);
	to(20, 154, RUN_RUNNABLE, 7, 0);
	throttled(80, 154, 0);
	to(99, 7, RUN_RUNNABLE, 154, 0);
	at(20, OUT_QUOTA);
	at(79.9, OUT_QUOTA);
	at(80, HISTORY_NULL);
	to(120, 154, RUN_RUNNABLE, 0, 0);  /* waits for an idle CPU, which is no proof beside events */
	to(197, 0, RUN_RUNNABLE, 154, 0);
	at(150, HISTORY_NULL);
	teardown();
}

static void limit_at(int32_t tid, double t, int64_t value)
{
	char path[64];
	snprintf(path, sizeof path, "/Host/Threads/%d/Out By", (int)tid);
	expect(path, (int64_t)(t * MS), value);
}

/* The events of one throttled thread hold for the others in its group and below that wait for its CPU or are woken there, and
 * for no others: on another CPU, in another group, real-time threads. They end when it runs; when it moves away, the others
 * are in doubt until they run. Which quota throttled a
 * thread of a group with a quota in a group with a quota is unknown. */
static void test_with_others(void **state)
{
	enum { FIRST = 7, OTHER = 8, WAITS = 240, BELOW = 300, REMOTE = 301, REAL_TIME = 302, MOVED = 303 };
	struct control_groups groups = { 0 };
	(void)state;
	begin();
	control_groups_add_member(&groups, FIRST, "/a/x");
	control_groups_add_member(&groups, WAITS, "/a");
	control_groups_add_member(&groups, BELOW, "/a/y");
	control_groups_add_member(&groups, REMOTE, "/a/x");
	control_groups_add_member(&groups, REAL_TIME, "/a/x");
	control_groups_add_member(&groups, MOVED, "/a/x");
	groups.group[control_groups_put(&groups, "/a")].quota_ns = 10 * MS;
	groups.group[control_groups_put(&groups, "/a/y")].quota_ns = 5 * MS;
	groups_set(model, &groups);
	to(2, 154, RUN_RUNNABLE, REAL_TIME, -50);
	to(3, REAL_TIME, RUN_RUNNABLE, 154, 0);  /* waits, as if on its way to another CPU */
	wake(0, 5 * MS, 0, 154, WAITS, 0);
	wake(0, 5 * MS, 0, 154, REMOTE, 1);
	wake(0, 5 * MS, 0, 154, MOVED, 0);
	to(10, 154, RUN_RUNNABLE, FIRST, 0);
	throttled(19.999, FIRST, 1);
	to(20, FIRST, RUN_RUNNABLE, OTHER, 0);
	wake(0, 30 * MS, 0, OTHER, BELOW, 0);
	struct event move = event(40 * MS, EV_GROUP_MOVE, 0, OTHER);
	move.group_move.tid = MOVED;
	move.group_move.path = BASH;
	feed(0, move);
	throttled(97, FIRST, 0);
	limit_at(WAITS, 19.9, HISTORY_NULL);
	limit_at(BELOW, 29.9, HISTORY_NULL);
	limit_at(BELOW, 30, OUT_QUOTA);
	for (int i = 0; i < 3; i++) {
		const int32_t tid = i == 0 ? FIRST : i == 1 ? WAITS : BELOW;
		limit_at(tid, 30, OUT_QUOTA);
		limit_at(tid, 96.9, OUT_QUOTA);
		limit_at(tid, 97, HISTORY_NULL);
	}
	limit_at(MOVED, 39.9, OUT_QUOTA);
	limit_at(MOVED, 40, HISTORY_NULL);
	limit_at(REMOTE, 50, HISTORY_NULL);
	limit_at(REAL_TIME, 50, HISTORY_NULL);
	to(98, OTHER, RUN_RUNNABLE, BELOW, 0);
	throttled(99.999, BELOW, 1);
	to(100, BELOW, RUN_RUNNABLE, OTHER, 0);
	to(110, OTHER, RUN_RUNNABLE, FIRST, 0);
	limit_at(WAITS, 105, HISTORY_NULL);
	throttled(119.999, FIRST, 1);
	to(120, FIRST, RUN_RUNNABLE, OTHER, 0);
	to(130, OTHER, RUN_RUNNABLE, FIRST, 0);  /* runs without an event that ends it */
	limit_at(WAITS, 129.9, OUT_QUOTA);
	limit_at(WAITS, 130, HISTORY_NULL);
	throttled(140, BELOW, 0);  /* its own event */
	limit_at(BELOW, 100, OUT_QUOTA);
	limit_at(BELOW, 139.9, OUT_QUOTA);
	limit_at(BELOW, 140, HISTORY_NULL);
	throttled(149.999, FIRST, 1);
	to(150, FIRST, RUN_RUNNABLE, OTHER, 0);
	move = event(160 * MS, EV_GROUP_MOVE, 0, OTHER);  /* from now on nothing shows how long the others are throttled */
	move.group_move.tid = FIRST;
	move.group_move.path = BASH;
	feed(0, move);
	throttled(160.001, FIRST, 0);
	to(170, OTHER, RUN_RUNNABLE, WAITS, 0);
	limit_at(WAITS, 159.9, OUT_QUOTA);
	limit_at(WAITS, 160, OUT_QUOTA_OR_OTHERS);
	limit_at(WAITS, 169.9, OUT_QUOTA_OR_OTHERS);
	limit_at(WAITS, 170, HISTORY_NULL);
	teardown();
	control_groups_release(&groups);
}

/* A thread moves to another group of the session file, to one that only an event names, and there with a thread that was not
 * seen before; then to the root group. One group that only an event names is in one with a quota,
 * which limits it; the limit of the other one is unknown. */
static void test_moves(void **state)
{
	static const struct { int32_t tid; int64_t path, group; bool in_quota; } move[] = {
		{ 300, BASH, 1, false }, { 300, FILE_NAME, 3, true }, { 4711, FILE_NAME, 3, true }, { 4711, BURN, 4, true },
		{ 300, INIT, 0, false } };
	struct control_groups groups = { 0 };
	(void)state;
	begin();
	control_groups_add_member(&groups, 300, "init");
	control_groups_put(&groups, "bash");
	groups.group[control_groups_put(&groups, "/usr")].quota_ns = 5 * MS;
	groups_set(model, &groups);
	to(10, 8, RUN_RUNNABLE, 300, 0);
	expect("/Host/Threads/300/Group", 10 * MS, 0);
	for (int i = 0; i < (int)COUNT(move); i++) {
		struct event ev = event((20 + i) * MS, EV_GROUP_MOVE, 0, 8);
		ev.group_move.tid = move[i].tid;
		ev.group_move.path = move[i].path;
		feed(0, ev);
		expect(move[i].tid == 300 ? "/Host/Threads/300/Group" : "/Host/Threads/4711/Group", (20 + i) * MS, move[i].group);
		assert_int_equal(thread_find(model->machine[0], move[i].tid)->in_quota, move[i].in_quota);
	}
	assert_string_equal(rec_text(&rec, 21 * MS, "/Host/Groups/3/Name"), "fibonacci-sum-long");
	control_groups_release(&groups);
	teardown();
}

/* Two other threads share the CPU in slices until a timer expires, 100 ms after its last expiry, and the thread takes it back:
 * a note says that this may be a quota. None if the timer has no period, if the others leave the CPU by themselves, or if
 * the group of the thread was recorded. */
static void test_pattern(void **state)
{
	(void)state;
	enum { SEEN, IRREGULAR, GIVEN, RECORDED, WAYS };
	for (int way = 0; way < WAYS; way++) {
		struct control_groups groups = { 0 };
		struct notes notes = { 0 };
		setup_full(true, true, true, false);
		control_groups_add_member(&groups, 154, "/vm");
		if (way == RECORDED)
			groups_set(model, &groups);
		to(1, 0, RUN_RUNNABLE, 154, 0);
		for (int i = 0; i < 12; i++) {
			const double t = 100 * i + (way == IRREGULAR ? 3 * (i % 2) : 0);
			to(t + 20, 154, RUN_RUNNABLE, 240, 0);
			for (int k = 0; k < 4; k++) {
				to(t + 30 + 16 * k, 240, RUN_RUNNABLE, 8, 0);
				to(t + 38 + 16 * k, 8, RUN_RUNNABLE, 240, 0);
			}
			expire(t + 100, 240, 0x7000);
			to(t + 101, 240, way == GIVEN ? RUN_BLOCKED : RUN_RUNNABLE, 154, 0);
		}
		quota_pattern_add_notes(model, model->machine[1], &notes);
		assert_int_equal(notes.len, way == SEEN);
		at(50, HISTORY_NULL);
		at(1150, HISTORY_NULL);
		notes_release(&notes);
		teardown();
		control_groups_release(&groups);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_recorded_thread), cmocka_unit_test(test_throttled_before),
		cmocka_unit_test(test_recorded_vcpu), cmocka_unit_test(test_with_others), cmocka_unit_test(test_moves),
		cmocka_unit_test(test_pattern) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
