/* index/: a trace that grows while it is indexed makes its history stale. */
#include <unistd.h>

#include "index/index.h"
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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(growing_trace_is_stale) };
	return cmocka_run_group_tests(tests, files_begin, files_end);
}
