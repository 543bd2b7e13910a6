/* Tests records with the maximum number of event kinds. */
#include "trace/trace.h"
#define EVENT_KIND_COUNT EVENT_KINDS_MAX
#define KINDS_8(X) X(, , 6) X(, , 5) X(, , 4) X(, , 3) X(, , 2) X(, , 2) X(, , 1) X(, , 0)
#define KINDS_32(X) KINDS_8(X) KINDS_8(X) KINDS_8(X) KINDS_8(X)
#define RECORD_KINDS(X) KINDS_32(X) KINDS_32(X) KINDS_32(X) KINDS_32(X)
#include "trace/store.c"
#include "trace/cursor.c"
#include "trace/decode_output.h"

#include "test.h"

#define ARGS(code, name, args) args,
const unsigned char event_args[EVENT_KINDS_MAX] = { RECORD_KINDS(ARGS) };

static struct event make_event(size_t i)
{
	static const int64_t values[] = { INT64_MAX, INT64_MIN + 1, 77, -1, 1, EVENT_ABSENT, 0 };
	struct event ev = { .ts = (int64_t)i * 1000, .kind = (uint16_t)(i * 7 % EVENT_KIND_COUNT),
		.cpu = (uint16_t)(i % 3 * 30000), .tid = (int32_t)(i / 5), .pid = -1, .comm = (uint32_t)i / 9 };
	for (size_t k = 0; k < EVENT_ARGS; k++)
		ev.arg[k] = k < event_args[ev.kind] ? values[(i / 3 + k) % COUNT(values)] : EVENT_ABSENT;
	return ev;
}

/* Events of all kinds, with absent and extreme arguments, are read back unchanged. */
static void test_all_kinds(void **state)
{
	(void)state;
	enum { N = 100000 };
	struct error err = ERROR_INIT;
	struct store *store = store_new(SIZE_MAX, NULL, &err);
	struct stream stream;
	struct writer w;
	struct reader r;
	const struct event *got;
	stream_init(&stream);
	writer_open(&w, store, &stream);
	for (size_t i = 0; i < N; i++) {
		const struct event ev = make_event(i);
		assert_int_equal(writer_put(&w, &ev, &err), 0);
	}
	assert_int_equal(writer_close(&w, &err), 0);
	assert_true(stream.kinds == ALL_KINDS);
	reader_open(&r, store, &stream, 0, 1);
	for (size_t i = 0; i < N; i++) {
		const struct event want = make_event(i);
		assert_int_equal(reader_next(&r, &got, &err), 1);
		assert_memory_equal(got, &want, sizeof want);
	}
	assert_int_equal(reader_next(&r, &got, &err), 0);
	reader_close(&r);
	stream_release(&stream, store);
	store_unref(store);
}

/* The longest possible record fits into RECORD_MAX. */
static void test_longest(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	struct store *store = store_new(SIZE_MAX, NULL, &err);
	struct stream stream;
	struct writer w;
	stream_init(&stream);
	writer_open(&w, store, &stream);
	struct event ev = { .ts = INT64_MAX, .kind = 120, .cpu = UINT16_MAX, .tid = INT32_MIN, .pid = INT32_MIN,
		.comm = UINT32_MAX };
	for (size_t k = 0; k < EVENT_ARGS; k++)
		ev.arg[k] = k % 2 ? INT64_MAX : INT64_MIN + 1;
	assert_int_equal(event_args[ev.kind], EVENT_ARGS);
	assert_int_equal(writer_put(&w, &ev, &err), 0);
	assert_true(w.used > 70 && w.used + BLOCK_PADDING <= RECORD_MAX);
	assert_int_equal(writer_close(&w, &err), 0);
	stream_release(&stream, store);
	store_unref(store);
}

/* A task whose decoder died is decoded again: released results can be released and filled again. */
static void test_release_twice(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	struct store *store = store_new(SIZE_MAX, NULL, &err);
	struct task t = { 0 };
	for (int i = 0; i < 2; i++) {
		assert_non_null(task_add_stream(&t));
		assert_int_equal(t.outs, 1);
		task_release_results(&t, store);
		assert_null(t.out);
		task_release_results(&t, store);
	}
	store_unref(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_all_kinds), cmocka_unit_test(test_longest),
		cmocka_unit_test(test_release_twice) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
