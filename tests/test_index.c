/* index/: what a history is made of is what lay there when its traces were read. */
#include <unistd.h>

#include "index/index.h"
#include "test.h"
#include "trace_files.h"

/* Somebody who still copies the trace. */
struct copying {
	const char *file;
	bool done;
};

static int copy_more(void *arg, const char *what, uint64_t done, uint64_t all)
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

static bool fits(const char *history, char *dir, char *why, size_t size)
{
	struct error err = ERROR_INIT;
	struct input in;
	assert_int_equal(input_resolve(&in, &(struct input_options){ .what = &dir, .whats = 1 }, &err), 0);
	const int fit = cache_fits(history, &in, why, size, &err);
	assert_true(fit >= 0);
	input_release(&in);
	return fit;
}

static void build(char *dir, const char *history, struct progress progress)
{
	struct error err = ERROR_INIT;
	struct input in;
	assert_int_equal(input_resolve(&in, &(struct input_options){ .what = &dir, .whats = 1 }, &err), 0);
	if (index_build(&in, history, progress, NULL, NULL, &err))
		fail_msg("%s", err.text);
	input_release(&in);
}

static void traces_grow_meanwhile(void **state)
{
	(void)state;
	char why[512], *dir = copy_trace("growing", "host"), *history = path_of("growing.steal"), *file = path_of("growing/ch_0");
	struct copying copying = { .file = file };
	build(dir, history, (struct progress){ .tick = copy_more, .arg = &copying });
	assert_true(copying.done);
	assert_false(fits(history, dir, why, sizeof why));
	assert_non_null(strstr(why, "ch_0 changed its size"));
	build(dir, history, (struct progress){ 0 });
	assert_true(fits(history, dir, why, sizeof why));
	free(file);
	free(history);
	free(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(traces_grow_meanwhile) };
	return cmocka_run_group_tests(tests, files_begin, files_end);
}
