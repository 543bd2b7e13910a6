/* history/: the rules of history.h one by one, and the parts of the module. */
#include "test.h"

#include <unistd.h>

#include "base/mem.h"
#include "history/chunk.h"
#include "history/crc32c.h"
#include "history/history.h"
#include "history/paged_table.h"
#include "history/interval_pool.h"
#include "stream.h"

#define FILE_NAME "test_history_rules.tmp"

static const char *const states[] = { "IDLE", "RUNNING", "VMM" };

static struct history_builder *create_builder(void)
{
	struct error err = ERROR_INIT;
	struct history_builder *b = history_create(FILE_NAME, &(struct history_options){ .chunk = 2 }, &err);
	assert_non_null(b);
	assert_int_equal(history_state_set(b, "vcpu", states, 3), 0);
	return b;
}

static struct history *finish_and_open(struct history_builder *b, int64_t begin, int64_t end)
{
	struct error err = ERROR_INIT;
	assert_int_equal(history_finish(b, begin, end, &err), 0);
	struct history *h = history_open(FILE_NAME, &err);
	assert_non_null(h);
	return h;
}

/* Compares the intervals of an attribute, formatted as "start-end:value ...". */
static void assert_intervals(const struct history *h, const char *path, const char *want)
{
	struct history_cursor c;
	struct interval iv;
	struct error err = ERROR_INIT;
	char text[512] = "";
	size_t n = 0;
	assert_int_equal(history_range(&c, h, history_find(h, path), history_begin(h), history_end(h), &err), 0);
	while (history_range_next(&c, &iv, &err) == 1) {
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%lld-%lld:", n ? " " : "", (long long)iv.start,
		                      (long long)iv.end);
		if (iv.value == HISTORY_NULL)
			n += (size_t)snprintf(text + n, sizeof text - n, "null");
		else
			n += (size_t)snprintf(text + n, sizeof text - n, "%lld", (long long)iv.value);
	}
	assert_string_equal(text, want);
}

struct change_at { int64_t t, value; };

static void assert_changes(const struct change_at *step, size_t n, const char *want)
{
	struct error err = ERROR_INIT;
	struct history_builder *b = create_builder();
	uint32_t a = history_attribute(b, "/a", HISTORY_INT, 0, &err);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(history_set(b, step[i].t, a, step[i].value, &err), 0);
	struct history *h = finish_and_open(b, 0, 100);
	assert_intervals(h, "/a", want);
	history_close(h);
}
#define ASSERT_CHANGES(want, ...) \
	assert_changes((const struct change_at[]){ __VA_ARGS__ }, COUNT(((const struct change_at[]){ __VA_ARGS__ })), want)

static void test_changes(void **state)
{
	(void)state;
	const int64_t null = HISTORY_NULL;
	ASSERT_CHANGES("0-9:null 10-100:1", { 10, 1 });
	ASSERT_CHANGES("0-100:1", { 0, 1 });
	ASSERT_CHANGES("0-9:null 10-19:1 20-100:2", { 10, 1 }, { 20, 2 });
	ASSERT_CHANGES("0-9:null 10-100:1", { 10, 1 }, { 20, 1 });
	/* The last change at the same time wins. */
	ASSERT_CHANGES("0-9:null 10-100:3", { 10, 1 }, { 10, 2 }, { 10, 3 });
	/* A change back to the previous value cancels the change. */
	ASSERT_CHANGES("0-9:null 10-100:1", { 10, 1 }, { 20, 2 }, { 20, 1 });
	ASSERT_CHANGES("0-9:null 10-29:1 30-100:2", { 10, 1 }, { 20, 2 }, { 20, 1 }, { 30, 2 });
	ASSERT_CHANGES("0-9:null 10-19:1 20-100:3", { 10, 1 }, { 20, 2 }, { 20, 1 }, { 20, 3 });
	ASSERT_CHANGES("0-100:null", { 10, 1 }, { 10, null });
	ASSERT_CHANGES("0-29:null 30-100:4", { 10, 1 }, { 10, null }, { 30, 4 });
	ASSERT_CHANGES("0-100:null", { 10, null });
	ASSERT_CHANGES("0-9:null 10-19:1 20-100:null", { 10, 1 }, { 20, null });
	ASSERT_CHANGES("0-9:null 10-11:1 12-12:2 13-13:3 14-100:4", { 10, 1 }, { 12, 2 }, { 13, 3 }, { 14, 4 });
	/* The same across chunk boundaries (chunks of two intervals). */
	ASSERT_CHANGES("0-9:null 10-10:1 11-11:2 12-12:1 13-13:2 14-100:3",
	               { 10, 1 }, { 11, 2 }, { 12, 1 }, { 13, 2 }, { 14, 1 }, { 14, 2 }, { 14, 3 });
	ASSERT_CHANGES("0-100:-9223372036854775807", { 0, INT64_MIN + 1 });
	ASSERT_CHANGES("0-99:null 100-100:5", { 100, 5 });
	/* Cancelling a change that had reopened an earlier interval: the intervals before it stay unchanged. */
	ASSERT_CHANGES("0-0:null 1-4:1 5-11:null 12-100:4", { 1, 1 }, { 5, 2 }, { 9, 3 }, { 9, 2 }, { 5, null }, { 12, 4 });
	ASSERT_CHANGES("0-0:null 1-1:1 2-2:2 3-3:3 4-4:4 5-11:null 12-100:4", { 1, 1 }, { 2, 2 }, { 3, 3 }, { 4, 4 }, { 5, 2 },
	               { 9, 3 }, { 9, 2 }, { 5, null }, { 12, 4 });
}

static void test_refusals(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	struct history_builder *b = create_builder();
	uint32_t s = history_attribute(b, "/s", HISTORY_STATE, 0, &err);
	uint32_t i = history_attribute(b, "/i", HISTORY_INT, 0, &err);
	uint32_t x = history_attribute(b, "/x", HISTORY_STRING, 0, &err);
	uint32_t r = history_attribute(b, "/r", HISTORY_REF, 0, &err);
	assert_int_equal(history_set(b, 10, s, 2, &err), 0);
	assert_int_equal(history_set(b, 11, s, 3, &err), -1);
	assert_non_null(strstr(err.text, "state 3"));
	assert_int_equal(history_set(b, 11, s, -1, &err), -1);
	assert_int_equal(history_set(b, 11, x, 1 << 30, &err), -1);
	assert_int_equal(history_set(b, 11, x, -1, &err), -1);
	assert_int_equal(history_set(b, 11, r, history_ref(1 << 30, 7), &err), -1);
	assert_int_equal(history_set(b, 11, r, 7 - ((int64_t)1 << 32), &err), -1);
	assert_int_equal(history_set_string(b, 11, r, "text", &err), -1);
	assert_int_equal(history_set(b, 11, x, HISTORY_NULL, &err), 0);
	assert_int_equal(history_set_string(b, 11, i, "text", &err), -1);
	assert_int_equal(history_set(b, 12, i, 1, &err), 0);
	assert_int_equal(history_set(b, 11, i, 2, &err), -1);
	assert_true(strstr(err.text, " 11") && strstr(err.text, " 12"));
	assert_int_equal(history_set(b, 12, 77, 2, &err), -1);
	assert_int_equal(history_set(b, INT64_MAX, i, 2, &err), -1);
	assert_int_equal(history_attribute(b, "/s", HISTORY_INT, 0, &err), HISTORY_NONE);
	assert_int_equal(history_attribute(b, "/t", HISTORY_STATE, 9, &err), HISTORY_NONE);
	static const char *const bad[] = { "", "/", "a", "//", "/a//b", "/a/", "/%", "/%2", "/%zz", "/%00" };
	for (size_t k = 0; k < COUNT(bad); k++)
		assert_int_equal(history_attribute(b, bad[k], HISTORY_INT, 0, &err), HISTORY_NONE);
	/* Refused calls do not damage the builder. */
	struct history *h = finish_and_open(b, 0, 20);
	assert_intervals(h, "/s", "0-9:null 10-20:2");
	assert_intervals(h, "/i", "0-11:null 12-20:1");
	assert_intervals(h, "/x", "0-20:null");
	assert_int_equal(history_attribute_count(h), 5);
	history_close(h);
}

static void test_time_range(void **state)
{
	(void)state;
	static const struct { int64_t begin, end; int result; } cases[] = {
		{ 10, 20, 0 }, { 11, 20, -1 }, { 10, 19, -1 }, { 5, 4, -1 }, { INT64_MIN, 20, -1 }, { 0, INT64_MAX, -1 },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct error err = ERROR_INIT;
		unlink(FILE_NAME);
		struct history_builder *b = create_builder();
		uint32_t a = history_attribute(b, "/a", HISTORY_INT, 0, &err);
		assert_int_equal(history_set(b, 10, a, 1, &err), 0);
		assert_int_equal(history_set(b, 20, a, 2, &err), 0);
		assert_int_equal(history_finish(b, cases[i].begin, cases[i].end, &err), cases[i].result);
		assert_int_equal(access(FILE_NAME, F_OK), cases[i].result);
	}
	/* A history without changes, and one without attributes. */
	struct history *h = finish_and_open(create_builder(), -7, 7);
	assert_int_equal(history_attribute_count(h), 1);
	assert_int_equal(history_intervals(h), 0);
	assert_int_equal(history_find(h, "/"), 0);
	assert_int_equal(history_find(h, "/a"), HISTORY_NONE);
	assert_int_equal(history_child(h, 0, HISTORY_NONE), HISTORY_NONE);
	history_close(h);
}

static int collect_attribute(void *arg, uint32_t attr)
{
	uint32_t *found = arg;
	found[++found[0]] = attr;
	return found[0] == 5 ? 42 : 0;
}

static void test_tree(void **state)
{
	(void)state;
	static const char *const paths[] = { "/Host/Threads/7/Status", "/Host/Threads/42/Status", "/Host/Threads/7/Name",
		"/Virtual Machines/a%2fb%25/CPUs", "/Host", "/Host/Threads/7", "/%2a/x", "/\xc3\xa9/\n" };
	struct error err = ERROR_INIT;
	struct history_builder *b = create_builder();
	for (size_t i = 0; i < COUNT(paths); i++)
		assert_int_not_equal(history_attribute(b, paths[i], HISTORY_STATE, 0, &err), HISTORY_NONE);
	struct history *h = finish_and_open(b, 0, 1);
	for (size_t i = 0; i < COUNT(paths); i++) {
		uint32_t a = history_find(h, paths[i]);
		assert_int_not_equal(a, HISTORY_NONE);
		assert_int_equal(history_type(h, a), HISTORY_STATE);
		assert_int_equal(history_child_named(h, history_parent(h, a), history_name(h, a)), a);
	}
	assert_string_equal(history_name(h, history_parent(h, history_find(h, paths[3]))), "a/b%");
	assert_int_equal(history_type(h, history_find(h, "/Host/Threads")), -1);
	static const char *const absent[] = { "", "Host", "/Host/", "/Hos", "/Host/Threads/8", "/Host/Threads/7/Status/x" };
	for (size_t i = 0; i < COUNT(absent); i++)
		assert_int_equal(history_find(h, absent[i]), HISTORY_NONE);

	uint32_t found[8] = { 0 };
	assert_int_equal(history_match(h, "/Host/Threads/*/Status", collect_attribute, found), 0);
	assert_int_equal(found[0], 2);
	assert_int_equal(found[1], history_find(h, "/Host/Threads/42/Status"));
	found[0] = 0;
	assert_int_equal(history_match(h, "/*", collect_attribute, found), 0);
	assert_int_equal(found[0], 4);
	found[0] = 0;
	assert_int_equal(history_match(h, "/%2a/*", collect_attribute, found), 0);
	assert_int_equal(found[0], 1);
	found[0] = 3;
	assert_int_equal(history_match(h, "/*/*", collect_attribute, found), 42);  /* by collect_attribute() */
	found[0] = 0;
	assert_int_equal(history_match(h, "/", collect_attribute, found), 0);
	assert_int_equal(found[0], 1);
	assert_int_equal(found[1], 0);
	history_close(h);
}

static void test_path(void **state)
{
	(void)state;
	char buf[64], small[8];
	assert_string_equal(history_path(buf, sizeof buf, "Host", "CPU0", NULL), "/Host/CPU0");
	assert_string_equal(history_path(buf, sizeof buf, "a/b", "5%", NULL), "/a%2fb/5%25");
	assert_string_equal(history_path(buf, sizeof buf, NULL), "");
	history_path(small, sizeof small, "abc", "defghi", NULL);
	assert_true(strlen(small) < sizeof small);
}

static void test_strings_and_meta(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	struct history_builder *b = create_builder();
	uint32_t a = history_attribute(b, "/name", HISTORY_STRING, 0, &err);
	char *huge = mem_new(100001, 1);
	memset(huge, 'x', 100000);
	static const char *const text[] = { "bash", "", "a\nb\x1b[2J", "\xff\xfe" };
	for (size_t i = 0; i < COUNT(text); i++)
		assert_int_equal(history_set_string(b, (int64_t)i, a, text[i], &err), 0);
	assert_int_equal(history_set_string(b, 10, a, huge, &err), 0);
	assert_int_equal(history_meta_set(b, "tool", "0.1", 3), 0);
	assert_int_equal(history_meta_set(b, "blob", huge, 100000), 0);
	assert_int_equal(history_meta_set(b, "tool", "0.2.1", 5), 0);
	assert_int_equal(history_meta_set(b, "", NULL, 0), 0);
	struct history *h = finish_and_open(b, 0, 20);
	uint32_t id = history_find(h, "/name");
	struct interval iv;
	for (size_t i = 0; i < COUNT(text); i++) {
		assert_int_equal(history_stab(h, id, (int64_t)i, &iv, &err), 0);
		assert_string_equal(history_string(h, iv.value), text[i]);
	}
	assert_int_equal(history_stab(h, id, 10, &iv, &err), 0);
	assert_int_equal(strlen(history_string(h, iv.value)), 65535);
	assert_string_equal(history_string(h, HISTORY_NULL), "");
	assert_string_equal(history_string(h, INT64_MAX), "");  /* no damage: test_invalid_arguments() */
	size_t size;
	assert_memory_equal(history_meta(h, "tool", &size), "0.2.1", 5);
	assert_int_equal(size, 5);
	assert_memory_equal(history_meta(h, "blob", &size), huge, 100000);
	assert_non_null(history_meta(h, "", &size));
	assert_int_equal(size, 0);
	assert_null(history_meta(h, "absent", &size));
	assert_int_equal(history_damage(h, &err), 0);
	history_close(h);
	free(huge);
}

/* New attributes are declared between changes until they alone exceed the memory limit: waiting intervals are flushed to
 * chunks again and again. */
static void test_many_attributes(void **state)
{
	(void)state;
	enum { MANY = 9000, LATER = 40000 };
	struct error err = ERROR_INIT;
	struct history_options options = { .memory = 400000 };
	struct history_builder *b = history_create(FILE_NAME, &options, &err);
	assert_non_null(b);
	uint32_t *attr = mem_new(MANY, sizeof *attr);
	char path[64];
	for (int64_t t = 0; t < MANY + LATER; t++) {
		if (t < MANY) {
			snprintf(path, sizeof path, "/t/%d/CPU", (int)t);
			attr[t] = history_attribute(b, path, HISTORY_INT, 0, &err);
			assert_int_equal(attr[t], t);
		}
		assert_int_equal(history_set(b, t, attr[t * 7 % (t < MANY ? t + 1 : MANY)], t, &err), 0);
	}
	struct history *h = finish_and_open(b, 0, MANY + LATER);
	/* Every change is the start of an interval with its value; asked backwards in time. */
	for (int64_t t = MANY + LATER - 1; t >= 0; t--) {
		struct interval iv;
		snprintf(path, sizeof path, "/t/%d/CPU", (int)(t * 7 % (t < MANY ? t + 1 : MANY)));
		assert_int_equal(history_stab(h, history_find(h, path), t, &iv, &err), 0);
		assert_int_equal(iv.start, t);
		assert_int_equal(iv.value, t);
	}
	assert_int_equal(history_verify(h, &err), 0);
	history_close(h);
	free(attr);
}

/* Random reads and writes of several paged tables return the right records, and the memory limit holds. */
static void test_pages(void **state)
{
	(void)state;
	enum { TABLES = 3, RECORDS = 9000, LIMIT = 10 * PAGE_BYTES };
	static uint64_t want[TABLES][RECORDS];
	struct error err = ERROR_INIT;
	struct out out;
	struct page_pool pool;
	struct paged table[TABLES], moved;
	bool failed = false;
	uint64_t s = 7;
	assert_int_equal(out_open(&out, FILE_NAME, 4096, false, &err), 0);
	pages_init(&pool, LIMIT, &out, &failed, &err);
	memset(want, 0, sizeof want);
	for (unsigned i = 0; i < TABLES; i++) {
		paged_init(&table[i], &pool);
		PAGED_GROW(&table[i], uint64_t, RECORDS);
	}
	for (unsigned n = 0; n < 100000; n++) {
		const uint64_t r = stream_random(&s), t = r % TABLES, i = r / TABLES % RECORDS;
		if (r >> 62)
			assert_true(*PAGED_READ(&table[t], uint64_t, i) == want[t][i]);
		else
			*PAGED_EDIT(&table[t], uint64_t, i) = want[t][i] = r;
		if (n == 50000) {
			paged_move(&moved, &table[1]);
			paged_move(&table[1], &moved);
			paged_release(&table[0]);
			paged_init(&table[0], &pool);
			PAGED_GROW(&table[0], uint64_t, RECORDS);
			memset(want[0], 0, sizeof want[0]);
		}
		assert_true(pages_memory(&pool) <= LIMIT);
		assert_int_equal((uintptr_t)PAGED_READ(&table[t], uint64_t, 0) % 64, 0);  /* 64 byte records are aligned */
	}
	uint8_t bytes[3 * PAGE_BYTES];
	paged_get(&table[2], 5, bytes, sizeof bytes);
	assert_memory_equal(bytes, (uint8_t *)want[2] + 5, sizeof bytes);
	paged_put(&table[1], 4000, bytes, sizeof bytes);
	paged_get(&table[1], 4000, want[0], sizeof bytes);
	assert_memory_equal(bytes, want[0], sizeof bytes);
	assert_false(failed);
	for (unsigned i = 0; i < TABLES; i++)
		paged_release(&table[i]);
	assert_int_equal(pages_memory(&pool), 0);
	pages_release(&pool);
	out_discard(&out);
}

/* Every declared attribute is found again, for any number of siblings. */
static void test_siblings(void **state)
{
	(void)state;
	enum { SIBLINGS = 300 };
	struct error err = ERROR_INIT;
	struct history_builder *b = create_builder();
	char path[64];
	for (uint32_t n = 0; n < SIBLINGS; n++) {
		for (uint32_t i = 0; i <= n; i++) {
			snprintf(path, sizeof path, "/t/%u", i);
			assert_int_equal(history_attribute(b, path, HISTORY_INT, 0, &err), i);
		}
	}
	struct history *h = finish_and_open(b, 0, 1);
	for (uint32_t i = 0; i < SIBLINGS; i++) {
		snprintf(path, sizeof path, "/t/%u", i);
		assert_int_not_equal(history_find(h, path), HISTORY_NONE);
	}
	assert_int_equal(history_verify(h, &err), 0);
	history_close(h);
}

static void test_invalid_arguments(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	struct history_builder *b = create_builder();
	history_attribute(b, "/d/i", HISTORY_INT, 0, &err);
	history_attribute(b, "/d/s", HISTORY_STATE, 0, &err);
	struct history *h = finish_and_open(b, 0, 20);
	struct interval iv;
	struct history_cursor c;
	int64_t sums[2][HISTORY_STATES];
	uint32_t i = history_find(h, "/d/i"), s = history_find(h, "/d/s"), d = history_find(h, "/d");
	assert_int_equal(history_stab(h, d, 1, &iv, &err), -1);
	assert_int_equal(history_stab(h, 99, 1, &iv, &err), -1);
	assert_int_equal(history_range(&c, h, d, 0, 1, &err), -1);
	assert_int_equal(history_range_next(&c, &iv, &err), 0);
	assert_int_equal(history_sums(h, i, 0, 1, sums[0], &err), -1);
	assert_int_equal(history_next(h, i, 0, 1, &iv, &err), -1);
	assert_int_equal(history_prev(h, i, 0, 1, &iv, &err), -1);
	assert_int_equal(history_sums_cells(h, s, (const int64_t[]){ 5, 4, 6 }, 2, sums, &err), -1);
	assert_int_equal(history_sums_cells(h, s, (const int64_t[]){ -5, 4, 60 }, 2, sums, &err), 0);
	assert_int_equal(sums[0][HISTORY_STATES - 1], 4);
	assert_int_equal(sums[1][HISTORY_STATES - 1], 17);
	assert_int_equal(history_sums(h, s, 9, 8, sums[0], &err), 0);
	assert_int_equal(sums[0][HISTORY_STATES - 1], 0);
	assert_int_equal(history_damage(h, &err), 0);
	history_close(h);
}

/* ---- Parts ---------------------------------------------------------------------------------------------- */

static void test_crc(void **state)
{
	(void)state;
	struct crc32c hard, soft;
	crc32c_init(&hard);
	crc32c_init_software(&soft);
	uint8_t data[64] = { 0 };
	assert_int_equal(crc32c(&soft, "123456789", 9), 0xe3069283);
	assert_int_equal(crc32c(&soft, data, 32), 0x8a9136aa);  /* RFC 3720 B.4 */
	memset(data, 0xff, 32);
	assert_int_equal(crc32c(&soft, data, 32), 0x62a8ab43);
	uint64_t s = 1;
	for (size_t n = 0; n < sizeof data; n++) {
		data[n] = (uint8_t)stream_random(&s);
		assert_int_equal(crc32c(&hard, data, n), crc32c(&soft, data, n));
	}
}

static size_t put_chunk(uint8_t *bytes, const struct change *row, unsigned n, bool is_state)
{
	int64_t sums[HISTORY_STATES], remaining = row[n].start - row[0].start;
	uint32_t present = 0;
	const size_t size = is_state ? chunk_put_states(bytes, row, n, HISTORY_STATES - 1, sums, &present)
	                             : chunk_put(bytes, row, n, NULL);
	for (unsigned v = 0; v < HISTORY_STATES; v++)
		remaining -= present >> v & 1 ? sums[v] : 0;
	assert_true(!is_state || remaining == 0);
	return size;
}

static int64_t random_value(uint64_t *s, unsigned shape, bool states_only)
{
	uint64_t r = stream_random(s);
	if (r % 7 == 0)
		return HISTORY_NULL;
	if (states_only)
		return (int64_t)(r >> 8) % (shape % 2 ? 3 : 31) & 31;
	switch (shape) {
	case 0: return (int64_t)(r >> 60);
	case 1: return (int64_t)(r >> 40) - 1000;
	case 2: return (int64_t)(r | 1);
	case 3: return INT64_MAX - (int64_t)(r >> 62);
	default: return r % 5 ? 12 : (int64_t)(r >> 3);
	}
}

static void test_chunks(void **state)
{
	(void)state;
	static uint8_t bytes[CHUNK_BYTES_MAX + 8];
	uint64_t s = 2;
	for (unsigned round = 0; round < 20000; round++) {
		unsigned n = 1 + (unsigned)(stream_random(&s) % CHUNK_MAX), shape = (unsigned)(stream_random(&s) % 5);
		bool is_state = stream_random(&s) & 1;
		int64_t begin = -TIME_LIMIT, at = begin, start[CHUNK_MAX], got;
		struct change row[CHUNK_MAX + 1];
		unsigned shift = (unsigned)(stream_random(&s) % 64);
		for (unsigned i = 0; i < n; i++) {
			uint64_t less = stream_random(&s) >> (stream_random(&s) % 20 ? shift < 10 ? 10 : shift : 10);
			row[i] = (struct change){ at, random_value(&s, shape, is_state) };
			at += (int64_t)less + 1;
		}
		row[n].start = at;
		assert_true(put_chunk(bytes, row, 1, is_state) >= CHUNK_HEADER);
		const size_t size = put_chunk(bytes, row, n, is_state);
		assert_true(size <= CHUNK_BYTES_MAX);
		struct chunk c;
		assert_null(chunk_parse(&c, bytes, size, is_state, begin, at - 1));
		assert_int_equal(c.n, n);
		assert_null(chunk_starts(&c, start, n));
		for (unsigned i = 0; i < n; i++) {
			assert_int_equal(start[i], row[i].start);
			assert_true(chunk_value(&c, i, &got));
			assert_int_equal(got, row[i].value);
			if (i + 1 < n)
				assert_true((int64_t)column_one(&c.duration, i) == row[i + 1].start - row[i].start - 1);
		}
		assert_non_null(chunk_parse(&c, bytes, size - 1, is_state, begin, at - 1));
		assert_non_null(chunk_parse(&c, bytes, size + 1, is_state, begin, at - 1));
	}
}

/* A chunk with values from a dictionary; a dictionary that claims more entries than allowed is refused. */
static void test_dictionary(void **state)
{
	(void)state;
	uint8_t bytes[CHUNK_BYTES_MAX + 8 + UINT8_MAX * 8] = { 0 };
	struct change row[CHUNK_MAX + 1];
	struct chunk c;
	for (unsigned i = 0; i <= CHUNK_MAX; i++)
		row[i] = (struct change){ i, (int64_t)(i % CHUNK_DICT_MAX) << 50 };
	size_t size = chunk_put(bytes, row, CHUNK_MAX, NULL);
	assert_null(chunk_parse(&c, bytes, size, false, 0, CHUNK_MAX - 1));
	assert_int_equal(c.dict_len, CHUNK_DICT_MAX);
	const size_t dict_end = (size_t)(c.dict - bytes) + c.dict_len * c.dict_entry_bytes;
	memmove(bytes + dict_end + c.dict_entry_bytes, bytes + dict_end, size - dict_end);
	bytes[4]++;
	assert_non_null(chunk_parse(&c, bytes, size + c.dict_entry_bytes, false, 0, CHUNK_MAX - 1));
}

static void test_pool(void **state)
{
	(void)state;
	struct pool p;
	struct chain chain[3] = { { 0 } };
	unsigned n[3] = { 0 };
	struct change row[3][CHUNK_MAX + 1], got[CHUNK_MAX + 1];
	int64_t end[3] = { 0 };
	uint64_t s = 4;
	assert_int_equal(pool_init(&p, 1 << 14), 0);
	for (unsigned i = 0; i < 100000; i++) {
		unsigned k = (unsigned)(stream_random(&s) % 3);
		if (n[k] == CHUNK_MAX || pool_is_full(&p) || stream_random(&s) % 97 == 0) {
			row[k][n[k]] = (struct change){ end[k], HISTORY_NULL };
			pool_take(&p, &chain[k], got, n[k], end[k]);
			assert_memory_equal(got, row[k], (n[k] + 1) * sizeof *got);
			n[k] = 0;
			continue;
		}
		const uint64_t duration = 1 + (stream_random(&s) >> stream_random(&s) % 64);
		row[k][n[k]] = (struct change){ end[k], random_value(&s, (unsigned)(stream_random(&s) % 5), false) };
		pool_push(&p, &chain[k], duration, row[k][n[k]++].value);
		end[k] = (int64_t)((uint64_t)end[k] + duration);
	}
	pool_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_time_range),
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_strings_and_meta),
		cmocka_unit_test(test_many_attributes),
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_siblings),
		cmocka_unit_test(test_invalid_arguments),
		cmocka_unit_test(test_crc),
		cmocka_unit_test(test_chunks), cmocka_unit_test(test_dictionary),
		cmocka_unit_test(test_pool),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(FILE_NAME);
	return failed;
}
