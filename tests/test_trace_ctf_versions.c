/* Compares traces with their conversions to CTF 2: every event with time, stream, CPU and fields, all losses, all trace
 * properties. test_readers.py compares with the command babeltrace2. */
#include "test.h"

#include <unistd.h>

#include "ctf2.h"
#include "remove_all.h"
#include "sim/simulate.h"
#include "slice.h"
#include "trace/internal.h"
#include "trace/trace.h"

struct loaded_traces {
	struct trace_spec *spec;
	size_t n;
	struct trace *trace[80];
	struct notes notes;
	struct error err;
	int status;
};

static void load_traces(const char *root, unsigned workers, struct loaded_traces *l)
{
	const struct trace_options options = { .workers = workers };
	*l = (struct loaded_traces){ 0 };
	if (trace_discover(root, &l->spec, &l->n, NULL, &l->err))
		fail_msg("%s", l->err.text);
	if (l->n > COUNT(l->trace))
		fail_msg("%s: %zu machines", root, l->n);
	l->status = trace_load(l->spec, l->n, &options, l->trace, &l->notes, &l->err);
}

static void release_traces(struct loaded_traces *l)
{
	for (size_t i = 0; i < l->n && !l->status; i++)
		trace_free(l->trace[i]);
	trace_specs_free(l->spec, l->n);
	notes_release(&l->notes);
}

static bool is_text(unsigned kind, unsigned arg)
{
	const struct role *role = layout_role(kind, arg);
	return role && role->is_text;
}

static void assert_same_text(const struct trace *a, int64_t x, const struct trace *b, int64_t y)
{
	if (x == EVENT_ABSENT || y == EVENT_ABSENT)
		assert_true(x == y);
	else
		assert_string_equal(trace_string(a, x), trace_string(b, y));
}

static void assert_same_event(const struct trace *a, const struct event *x, const struct trace *b, const struct event *y,
                              const char *path, size_t number)
{
	if (x->ts != y->ts || x->kind != y->kind || x->cpu != y->cpu || x->tid != y->tid || x->pid != y->pid)
		fail_msg("%s: event %zu: %s %lld cpu %u tid %d pid %d; %s %lld cpu %u tid %d pid %d", path, number,
		         event_kind_name[x->kind], (long long)x->ts, x->cpu, x->tid, x->pid, event_kind_name[y->kind],
		         (long long)y->ts, y->cpu, y->tid, y->pid);
	assert_same_text(a, x->comm, b, y->comm);
	for (unsigned i = 0; i < event_args[x->kind]; i++) {
		if (is_text(x->kind, i))
			assert_same_text(a, x->arg[i], b, y->arg[i]);
		else if (x->arg[i] != y->arg[i])
			fail_msg("%s: event %zu: %s at %lld: argument %u is %lld and %lld", path, number,
			         event_kind_name[x->kind], (long long)x->ts, i, (long long)x->arg[i], (long long)y->arg[i]);
	}
}

static void assert_same_stream(const struct trace *a, const struct trace *b, size_t i)
{
	struct reader x, y;
	struct error err = ERROR_INIT;
	const struct event *ex, *ey;
	reader_open(&x, a->store, &a->stream[i], 0, 1);
	reader_open(&y, b->store, &b->stream[i], 0, 1);
	for (size_t n = 0;; n++) {
		const int more = reader_next(&x, &ex, &err);
		assert_true(more >= 0);
		assert_int_equal(reader_next(&y, &ey, &err), more);
		if (!more)
			break;
		assert_same_event(a, ex, b, ey, a->dir, n);
	}
	reader_close(&x);
	reader_close(&y);
}

static void assert_same_trace(const struct trace *a, const struct trace *b)
{
	const struct trace_info *x = &a->info, *y = &b->info;
	assert_string_equal(x->machine, y->machine);
	assert_string_equal(x->hostname, y->hostname);
	assert_string_equal(x->tracer, y->tracer);
	assert_string_equal(x->layout, y->layout);
	assert_string_equal(x->uuid, y->uuid);
	assert_true(x->begin == y->begin && x->end == y->end && x->events == y->events);
	assert_true(x->lost == y->lost && x->uncounted == y->uncounted);
	assert_true(x->bytes == y->bytes && x->cpus == y->cpus && x->role == y->role);
	for (unsigned i = 0; i < x->cpus; i++)
		assert_true(x->cpu[i].begin == y->cpu[i].begin && x->cpu[i].end == y->cpu[i].end &&
		            x->cpu[i].is_recorded == y->cpu[i].is_recorded);
	assert_int_equal(a->streams, b->streams);
	for (size_t i = 0; i < a->streams; i++)
		assert_same_stream(a, b, i);
}

static const char *srcdir(void)
{
	const char *dir = getenv("srcdir");
	return dir ? dir : ".";
}

/* Only the file sizes differ. may_be_refused: the reader may reject the trace. */
static void assert_same_in_ctf2(const char *root, bool may_be_refused)
{
	struct loaded_traces a, b;
	char dir[] = "/tmp/stealscope-ctf2-XXXXXX";
	load_traces(root, 1, &a);
	if (a.status && may_be_refused) {
		release_traces(&a);
		return;
	}
	assert_non_null(mkdtemp(dir));
	ctf2_convert(root, dir);
	load_traces(dir, 2, &b);
	if (a.status || b.status)
		fail_msg("%s: %s; %s", root, a.err.text, b.err.text);
	assert_int_equal(a.n, b.n);
	for (size_t i = 0; i < a.n; i++) {
		b.trace[i]->info.bytes = a.trace[i]->info.bytes;
		assert_same_trace(a.trace[i], b.trace[i]);
	}
	release_traces(&a);
	release_traces(&b);
	remove_all(dir);
}

static void test_recording(void **state)
{
	(void)state;
	char path[1024];
	snprintf(path, sizeof path, "%s/tests/data/fibonacci", srcdir());
	assert_same_in_ctf2(path, false);
}

/* Compares recorded LTTng traces. Skips recordings of trace-cmd. */
static void test_lttng_recordings(void **state)
{
	(void)state;
	char *dir[MAX_RECORDINGS], host[4700];
	size_t n = slice_recordings(dir, 1);
	if (!n)
		skip();
	for (size_t i = 0; i < n; i++) {
		snprintf(host, sizeof host, "%s/host", dir[i]);
		if (access(host, F_OK) == 0) {
			assert_same_in_ctf2(dir[i], true);
		}
		free(dir[i]);
	}
}

static void test_simulated(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		char dir[] = "/tmp/stealscope-twins-XXXXXX";
		struct error err = ERROR_INIT;
		struct sim_result result;
		assert_non_null(mkdtemp(dir));
		const struct options o = { .scenario = "random", .out = dir, .seed = seed, .events = 30000, .pcpus = 2 + seed % 4,
			.beacon_hz = 20, .no_truth = true, .packet = 4096 << seed % 5, .lost = seed % 2 ? 50000 : 0 };
		if (simulate(&o, &result, &err))
			fail_msg("%s", err.text);
		assert_same_in_ctf2(dir, false);
		remove_all(dir);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recording), cmocka_unit_test(test_simulated), cmocka_unit_test(test_lttng_recordings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
