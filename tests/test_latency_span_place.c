/* Servers of spans that name only their process: threads whose process was not recorded. */
#include "latency_world.h"

#include <string.h>

#include "latency/span_place.h"

static void add_thread(struct latency_world *w, int tid, int pid, int64_t state)
{
	char path[64];
	snprintf(path, sizeof path, "/Host/Threads/%d/Status", tid);
	fill_values(row_add(w, SET_THREAD, path), 0, WORLD_NS - 1, state);
	snprintf(path, sizeof path, "/Host/Threads/%d/PID", tid);
	if (pid)
		fill_values(row_add(w, SET_INT, path), 0, WORLD_NS - 1, pid);
}

/* Places a span of process 500 in a world with two threads of it, one of another process, and thread 59 of an unknown
 * process in this state. Returns the numbers of threads and members. */
static void place(int64_t unknown, size_t *threads, size_t *members, bool is_process_known)
{
	struct latency_world *w = mem_new(1, sizeof *w);
	struct error err = ERROR_INIT;
	add_thread(w, 501, is_process_known ? 500 : 7, THREAD_RUNNING);
	add_thread(w, 502, is_process_known ? 500 : 7, THREAD_PREEMPTED);
	add_thread(w, 600, 600, THREAD_RUNNING);
	add_thread(w, 59, 0, unknown);
	world_open(w);
	struct span_source source = { .host = { "h" }, .pid = 500 };
	struct span span = { .trace = "1", .id = "1", .tid = -1, .start = 100, .end = 200 };
	struct spans spans = { .span = &span, .len = 1, .source = &source, .sources = 1 };
	struct span_clock clock[2] = { { .hostname = "h", .known = true, .end = WORLD_NS } };
	const struct span_clocks clocks = { .machine = clock };
	struct span_places *p = span_places_open(&w->catalog, &spans, &clocks);
	struct span_place out = { 0 };
	assert_int_not_equal(span_machine(p, &span), NO_MACHINE);
	assert_int_equal(span_place_find(p, 0, 100, 199, 0, &out, &err), 0);
	assert_false(out.is_known_thread);
	*threads = out.threads;
	*members = out.members;
	free(out.thread);
	span_places_close(p);
	world_free(w);
}

static void test_unknown_process(void **state)
{
	size_t threads, members;
	(void)state;
	place(THREAD_BLOCKED, &threads, &members, true);  /* it slept: the span is placed in its process */
	assert_int_equal(threads, 2);
	assert_int_equal(members, 2);
	place(THREAD_RUNNING, &threads, &members, true);  /* it may be the server, so its time counts, too */
	assert_int_equal(threads, 3);
	assert_int_equal(members, 2);
	place(THREAD_RUNNING, &threads, &members, false);  /* no thread of the process is known: the machine as a whole */
	assert_int_equal(threads, 0);
	assert_int_equal(members, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_unknown_process) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
