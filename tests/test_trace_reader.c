/* Tests of trace/: recorded intervals of CPUs, and windows. */
#include "test.h"

#include <unistd.h>

#include "trace/trace.h"
#include "trace/tracecmd/tracecmd.h"
#include "trace_loaded.h"

static void check_covered(const struct trace *t, bool is_recorded)
{
	const struct trace_info *info = trace_info(t);
	assert_true(info->cpus > 0);
	for (unsigned i = 0; i < info->cpus; i++) {
		assert_int_equal(info->cpu[i].is_recorded, is_recorded);
		assert_true(info->begin <= info->cpu[i].begin && info->cpu[i].begin <= info->cpu[i].end);
		assert_true(info->cpu[i].end <= info->end);
	}
}

/* The recorded interval of each CPU comes from the tracer, or from its events if the tracer does not record it. */
static void test_covered(void **state)
{
	(void)state;
	struct loaded_traces l;
	char path[4096];
	load(data("fibonacci"), NULL, &l);
	for (size_t i = 0; i < l.n; i++)
		check_covered(l.trace[i], true);
	unload(&l);
	const struct event ev[] = {
		{ .ts = 10, .kind = EV_OTHER, .cpu = 0 }, { .ts = 50, .kind = EV_OTHER, .cpu = 0 },
		{ .ts = 30, .kind = EV_OTHER, .cpu = 2 }, { .ts = 40, .kind = EV_OTHER, .cpu = 2 },
	};
	struct trace *t = trace_from_events("m", ROLE_GUEST, ev, COUNT(ev), NULL, 0);
	const struct trace_cpu *cpu = trace_info(t)->cpu;
	assert_true(cpu[0].begin == 10 && cpu[0].end == 50 && !cpu[0].is_recorded);
	assert_true(cpu[1].begin > cpu[1].end);
	assert_true(cpu[2].begin == 30 && cpu[2].end == 40);
	trace_free(t);
	snprintf(path, sizeof path, "%s/../shared/traces/cpu_ends_early", getenv("srcdir") ? getenv("srcdir") : ".");
	if (access(path, F_OK) != 0 || tracecmd_claims("", (const unsigned char *)"\x17\x08\x44tracing", 10) == CLAIM_NONE)
		return;
	load(path, NULL, &l);
	check_covered(find(&l, "hypervisor"), true);
	t = (struct trace *)find(&l, "Debian");
	check_covered(t, false);
	cpu = trace_info(t)->cpu;
	assert_true(cpu[1].end - cpu[0].end > 3000000000);
	unload(&l);
}

/* ---- windows */

/* Returns the next event in the window, from a cursor of the whole trace. In a window, events without a rule in the
 * layout have names. */
static bool next_within(struct trace_cursor *c, const struct trace_window *w, struct event *ev)
{
	struct error err = ERROR_INIT;
	int got;
	while ((got = trace_cursor_next(c, ev, &err)) > 0)
		if (ev->ts <= w->to && (ev->kind == EV_LOST ? ev->lost.end : ev->ts) >= w->from)
			return true;
	assert_int_equal(got, 0);
	return false;
}

static void check_same(const struct trace *whole, const struct trace *part, const struct trace_window *w)
{
	struct error err = ERROR_INIT;
	struct trace_cursor *a = trace_cursor_open(whole, ALL_KINDS, -1, &err),
						*b = trace_cursor_open(part, ALL_KINDS, -1, &err);
	struct event x, y;
	while (next_within(a, w, &x)) {
		assert_int_equal(trace_cursor_next(b, &y, &err), 1);
		assert_true(x.ts == y.ts && x.cpu == y.cpu && x.tid == y.tid && x.pid == y.pid);
		assert_string_equal(trace_string(whole, x.comm), trace_string(part, y.comm));
		if (x.kind == EV_OTHER)
			assert_true(y.kind == EV_NAMED && *trace_string(part, y.named.name));
		else
			assert_int_equal(x.kind, y.kind);
	}
	assert_int_equal(trace_cursor_next(b, &y, &err), 0);
	trace_cursor_close(a);
	trace_cursor_close(b);
}

/* Tests a window at each eighth of the trace, a window with the whole trace, and windows outside it. */
static void check_windows(const char *root)
{
	struct loaded_traces whole;
	load(root, &(struct trace_options){ .workers = 2 }, &whole);
	for (int i = -1; i < 10; i++) {
		struct trace_window window[8];
		struct loaded_traces part;
		for (size_t m = 0; m < whole.n; m++) {
			const struct trace_info *info = trace_info(whole.trace[m]);
			const int64_t span = info->end - info->begin, from = info->begin + span / 8 * i;
			window[m] = (struct trace_window){ from, i == 0 ? info->end : from + (i % 2 ? span / 100 : span / 8) };
		}
		load(root, &(struct trace_options){ .workers = 2, .window = window }, &part);
		assert_int_equal(part.n, whole.n);
		for (size_t m = 0; m < whole.n; m++)
			check_same(whole.trace[m], part.trace[m], &window[m]);
		unload(&part);
	}
	unload(&whole);
}

/* A window contains the same events as this part of the whole trace, for each reader. */
static void test_window(void **state)
{
	static const char *const more[] = { "fibonacci_tracecmd", "fibonacci_tca", "lost", "hostonly" };
	(void)state;
	check_windows(data("fibonacci"));
	for (size_t i = 0; i < COUNT(more); i++) {
		char path[4096];
		snprintf(path, sizeof path, "%s/../shared/traces/%s", getenv("srcdir") ? getenv("srcdir") : ".", more[i]);
		const bool is_dat = strstr(path, "_t") != NULL;
		if (access(path, F_OK) == 0 &&
		    !(is_dat && tracecmd_claims("", (const unsigned char *)"\x17\x08\x44tracing", 10) == CLAIM_NONE))
			check_windows(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_covered), cmocka_unit_test(test_window) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
