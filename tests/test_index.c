/* index/: a trace that grows while it is indexed makes its history stale. */
#include <unistd.h>

#include "index/index.h"
#include "index/provenance.h"
#include "test.h"
#include "trace_files.h"

/* Simulates a copy of the trace that is still in progress. */
struct copying {
	const char *file;
	bool done;
};

static int append_to_file(void *arg, const char *what, uint64_t done, uint64_t all)
{
	struct copying *c = arg;
	(void)what, (void)done, (void)all;
	if (c->done)
		return 0;
	FILE *f = fopen(c->file, "ab");
	assert_non_null(f);
	assert_int_equal(ftruncate(fileno(f), ftell(f) + 4096), 0);
	assert_int_equal(fclose(f), 0);
	c->done = true;
	return 0;
}

static bool is_current(const char *history, char *dir, char *why, size_t size)
{
	struct error err = ERROR_INIT;
	struct input in;
	assert_int_equal(input_resolve(&in, &(struct input_options){ .what = &dir, .whats = 1 }, &err), 0);
	const int fit = cache_is_current(history, &in, why, size, &err);
	assert_true(fit >= 0);
	input_release(&in);
	return fit;
}

static void build_history(char *dir, const char *history, struct progress progress)
{
	struct error err = ERROR_INIT;
	struct input in;
	assert_int_equal(input_resolve(&in, &(struct input_options){ .what = &dir, .whats = 1 }, &err), 0);
	if (index_build(&in, history, progress, NULL, NULL, &err))
		fail_msg("%s", err.text);
	input_release(&in);
}

static void growing_trace_is_stale(void **state)
{
	(void)state;
	char why[512], *dir = copy_trace("growing", "host"), *history = path_of("growing.steal"), *file = path_of("growing/ch_0");
	struct copying copying = { .file = file };
	build_history(dir, history, (struct progress){ .tick = append_to_file, .arg = &copying });
	assert_true(copying.done);
	assert_false(is_current(history, dir, why, sizeof why));
	assert_non_null(strstr(why, "ch_0 changed its size"));
	build_history(dir, history, (struct progress){ 0 });
	assert_true(is_current(history, dir, why, sizeof why));
	free(file);
	free(history);
	free(dir);
}

/* Returns a history with the session of another one and this provenance. */
static struct history *with_provenance(const struct history *other, const char *provenance)
{
	struct error err = ERROR_INIT;
	char *path = path_of("other.steal");
	size_t size;
	const void *session = history_meta(other, "session", &size);
	assert_non_null(session);
	struct history_builder *b = history_create(path, NULL, &err);
	assert_non_null(b);
	assert_int_equal(history_meta_set(b, "session", session, size), 0);
	assert_int_equal(history_meta_set(b, PROVENANCE_KEY, provenance, strlen(provenance)), 0);
	assert_int_equal(history_finish(b, history_begin(other), history_end(other), &err), 0);
	struct history *h = history_open(path, &err);
	assert_non_null(h);
	free(path);
	return h;
}

/* The events of a history are read only if its session names the traces from which it was made. */
static void events_of_other_traces_are_refused(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	const struct raw_events_options all = { .from = INT64_MIN, .to = INT64_MAX, .jobs = 1 };
	char *dir = copy_trace("named", "host"), *path = path_of("named.steal"), *text;
	build_history(dir, path, (struct progress){ 0 });
	struct history *h = history_open(path, &err);
	assert_non_null(h);
	size_t size;
	const char *provenance = history_meta(h, PROVENANCE_KEY, &size);
	text = mem_printf("%.*s", (int)size, provenance);
	struct history *same = with_provenance(h, text);
	struct raw_events *events = raw_events_open(same, &all, &err);
	assert_non_null(events);
	raw_events_close(events);
	history_close(same);
	char *role = strstr(text, "\"role\":\"host\"");
	assert_non_null(role);
	memcpy(role + 8, "hos_", 4);
	struct history *other = with_provenance(h, text);
	assert_null(raw_events_open(other, &all, &err));
	assert_int_equal(err.status, STATUS_INPUT);
	history_close(other);
	history_close(h);
	free(text);
	free(path);
	free(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(growing_trace_is_stale),
	                                    cmocka_unit_test(events_of_other_traces_are_refused) };
	return cmocka_run_group_tests(tests, files_begin, files_end);
}
