/* history/: known digests of the synthetic stream, two million changes. */
#include "test.h"

#include <unistd.h>

#include "bench/stream_history.h"

static void check_stream(const struct golden *g, const struct history_options *options, double max_bytes)
{
	struct error err = ERROR_INIT;
	uint64_t checksum;
	assert_int_equal(stream_build("test_history_stream.tmp", g->attributes, g->changes, options, &checksum, &err), 0);
	assert_true(checksum == g->checksum);
	struct history *h = history_open("test_history_stream.tmp", &err);
	assert_non_null(h);
	assert_true(stream_check(h, g));
	assert_true((double)history_bytes(h) <= max_bytes * (double)history_intervals(h));
	history_close(h);
	unlink("test_history_stream.tmp");
}

static void test_few_attributes(void **state)
{
	(void)state;
	check_stream(&stream_golden[0], NULL, 5.5);
}

static void test_many_attributes(void **state)
{
	(void)state;
	check_stream(&stream_golden[1], NULL, 5.5);
}

/* A builder with too little memory for full chunks still gives the right answers. */
static void test_little_memory(void **state)
{
	(void)state;
	check_stream(&stream_golden[1], &(struct history_options){ .memory = 3 << 20, .chunk = 50, .block = 4096 }, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_attributes),
		cmocka_unit_test(test_many_attributes),
		cmocka_unit_test(test_little_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
