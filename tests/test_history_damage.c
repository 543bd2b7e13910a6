/* history/: a damaged file gives an error with its name and the offset, or the right answer; nothing else. (This test is
 * most useful under sanitizers.) */
#include "test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "history/format.h"
#include "history_walk.h"
#include "stream.h"

#define SMALL "test_history_damage.tmp"
#define BROKEN "test_history_broken.tmp"
#define MAX_QUERIES 100000

struct file_bytes { uint8_t *p; size_t n; };

static struct file_bytes read_file(const char *path)
{
	struct file_bytes b = { 0 };
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	b.n = (size_t)ftell(f);
	rewind(f);
	b.p = mem_new(b.n, 1);
	assert_int_equal(fread(b.p, 1, b.n, f), b.n);
	fclose(f);
	return b;
}

/* Overwrites in place: truncating first would make some file systems write to the disk each time. */
static void write_bytes(const char *path, const uint8_t *p, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0666);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, p, n), n);
	assert_int_equal(ftruncate(fd, (off_t)n), 0);
	close(fd);
}

static void build_history(const char *path, unsigned threads, unsigned changes, struct history_options options)
{
	static const char *const states[] = { "RUNNING", "BLOCKED", "PREEMPTED" };
	struct error err = ERROR_INIT;
	struct history_builder *b = history_create(path, &options, &err);
	uint32_t attr[3 * 64];
	uint64_t s = 5;
	assert_non_null(b);
	unsigned set = history_state_set(b, "thread", states, 3);
	history_meta_set(b, "key", "value\0with zero", 15);
	history_meta_set(b, "empty", "", 0);
	for (unsigned i = 0; i < 3 * threads; i++) {
		char name[64];
		snprintf(name, sizeof name, "/m%u/a%%2fb/x%u", i % 2, i);
		attr[i] = history_attribute(b, name, (enum history_type)(i % 3), set, &err);
	}
	int64_t t = STREAM_START;
	for (unsigned i = 0; i < changes; i++) {
		uint64_t r = stream_random(&s);
		unsigned a = (unsigned)(r >> 8) % (3 * threads);
		int64_t value = (int64_t)(r >> 40) % 3;
		t += (int64_t)(stream_random(&s) % 1000) * (r % 50 ? 1 : 1000000);
		if (a % 3 == HISTORY_INT) {
			value = r % 13 ? value * (1 << r % 30) : HISTORY_NULL;
			assert_int_equal(history_set(b, t, attr[a], value, &err), 0);
			continue;
		}
		a -= a % 3;  /* a state, and a text that changes together with it, but not each time */
		assert_int_equal(history_set(b, t, attr[a], r % 13 ? value : HISTORY_NULL, &err), 0);
		const char *text = r % 13 == 0 ? NULL : value ? "name 1" : "name 0";
		assert_int_equal(history_set_string(b, t, attr[a + 2], text, &err), 0);
	}
	assert_int_equal(history_finish(b, STREAM_START - 5, t + 5, &err), 0);
}

static uint64_t file_digest(const char *path)
{
	struct error err = ERROR_INIT;
	struct history *h = history_open(path, &err);
	assert_non_null(h);
	uint64_t digest = history_walk(h, MAX_QUERIES, &err);
	assert_int_equal(err.status, STATUS_OK);
	history_close(h);
	return digest;
}

/* Checks that the file gives either an error with an offset or the right digest. Returns true if it was an error. */
static bool check_error_or_digest(const char *path, uint64_t want)
{
	struct error err = ERROR_INIT;
	struct history *h = history_open(path, &err);
	if (h) {
		uint64_t digest = history_walk(h, MAX_QUERIES, &err);
		history_close(h);
		if (!err.status) {
			assert_true(digest == want);
			return false;
		}
	}
	assert_int_equal(err.status, STATUS_INPUT);
	assert_true(!strncmp(err.text, path, strlen(path)));
	assert_non_null(strstr(err.text, "offset"));
	return true;
}

static void test_every_byte(void **state)
{
	(void)state;
	static const uint8_t flips[] = { 0xff, 0x01, 0x80 };
	build_history(SMALL, 2, 120, (struct history_options){ .chunk = 3, .block = 64 });
	struct file_bytes b = read_file(SMALL);
	assert_true(history_echoes(b.p) > 0);
	uint64_t want = file_digest(SMALL);
	size_t right = 0;
	int fd = open(SMALL, O_RDWR);
	for (size_t i = 0; i < b.n; i++)
		for (size_t k = 0; k < COUNT(flips); k++) {
			uint8_t x = b.p[i] ^ flips[k];
			assert_int_equal(pwrite(fd, &x, 1, (off_t)i), 1);
			right += !check_error_or_digest(SMALL, want);
			assert_int_equal(pwrite(fd, &b.p[i], 1, (off_t)i), 1);
		}
	close(fd);
	assert_true(check_error_or_digest(SMALL, want) == false);
	/* The walk reads everything, so only damage of padding may remain undetected. */
	assert_true(right <= COUNT(flips) * 7 * SECTIONS);
	free(b.p);
	unlink(SMALL);
}

static void test_every_length(void **state)
{
	(void)state;
	build_history(SMALL, 2, 60, (struct history_options){ .chunk = 7, .block = 128 });
	struct file_bytes b = read_file(SMALL);
	uint64_t want = file_digest(SMALL);
	for (size_t n = 0; n < b.n; n++) {
		write_bytes(BROKEN, b.p, n);
		assert_true(check_error_or_digest(BROKEN, want));
	}
	uint8_t *longer = mem_new(b.n + 9, 1);
	memcpy(longer, b.p, b.n);
	for (size_t n = b.n + 1; n <= b.n + 9; n++) {
		write_bytes(BROKEN, longer, n);
		assert_true(check_error_or_digest(BROKEN, want));
	}
	free(longer);
	free(b.p);
	unlink(SMALL);
	unlink(BROKEN);
}

/* Applies random bytes, zeroed pages and moved blocks to a copy. */
static void damage_copy(struct file_bytes b, uint8_t *p, uint64_t *s)
{
	memcpy(p, b.p, b.n);
	for (uint64_t k = 1 + stream_random(s) % 3; k--;) {
		size_t at = stream_random(s) % b.n, n = 1 + stream_random(s) % (b.n - at);
		size_t from = stream_random(s) % b.n;
		n = n > 4096 ? 1 + n % 4096 : n;
		switch (stream_random(s) % 3) {
		case 0: p[at] ^= (uint8_t)(1 + stream_random(s) % 255); break;
		case 1: memset(p + at, 0, n); break;
		default: memcpy(p + at, b.p + from, n < b.n - from ? n : b.n - from);
		}
	}
}

static void test_random_damage(void **state)
{
	(void)state;
	build_history(SMALL, 20, 60000, (struct history_options){ 0 });
	struct file_bytes b = read_file(SMALL);
	uint8_t *p = mem_new(b.n, 1);
	uint64_t want = file_digest(SMALL), s = 9;
	for (int i = 0; i < 25; i++) {
		damage_copy(b, p, &s);
		write_bytes(BROKEN, p, b.n);
		check_error_or_digest(BROKEN, want);
	}
	free(p);
	free(b.p);
	unlink(SMALL);
	unlink(BROKEN);
}

/* Valid checksums over wrong contents: any answer is allowed, but the walk ends soon and nothing crashes. */
static void test_deception(void **state)
{
	(void)state;
	build_history(SMALL, 2, 150, (struct history_options){ .chunk = 3, .block = 256 });
	struct file_bytes b = read_file(SMALL);
	assert_true(history_echoes(b.p) > 0);
	uint8_t *p = mem_new(b.n, 1);
	uint64_t s = 11, opened = 0;
	for (int i = 0; i < 20000; i++) {
		memcpy(p, b.p, b.n);
		for (uint64_t k = 1 + stream_random(&s) % 4; k--;)
			p[stream_random(&s) % b.n] = (uint8_t)(stream_random(&s) >> stream_random(&s) % 8);
		if (i % 4 == 0)
			memcpy(p + stream_random(&s) % (b.n / 8) * 8, &(int64_t){ i % 8 ? INT64_MAX : INT64_MIN }, 8);
		history_repair_sums(p, b.n);
		write_bytes(BROKEN, p, b.n);
		struct error err = ERROR_INIT;
		struct history *h = history_open(BROKEN, &err);
		if (h)
			history_walk(h, 200, &err);
		opened += h != NULL;
		history_close(h);
	}
	assert_true(opened > 10000);
	free(p);
	free(b.p);
	unlink(SMALL);
	unlink(BROKEN);
}

static void assert_refused(const char *path)
{
	struct error err = ERROR_INIT;
	assert_null(history_open(path, &err));
	assert_true(err.status != STATUS_OK && err.text[0]);
}

/* An index with valid checksums but wrong sums: an error, and never a cell with states that do not add up to its width. */
static void test_wrong_sums(void **state)
{
	(void)state;
	build_history(SMALL, 1, 200, (struct history_options){ .chunk = 20 });
	struct file_bytes b = read_file(SMALL);
	struct error err = ERROR_INIT;
	int64_t sums[HISTORY_STATES];
	const uint64_t attributes = get64(b.p + HEADER_SECTION + 16 * SECTION_ATTRIBUTES);
	struct history *h = history_open(SMALL, &err);
	const uint32_t a = history_find(h, "/m0/a%2fb/x0");
	const uint8_t *record = b.p + attributes + (uint64_t)a * ATTR_BYTES;
	const unsigned row = ROW_SUMS + 8 * (unsigned)__builtin_popcount(get32(record + ATTR_MASK));
	assert_true(get32(record + ATTR_CHUNKS) > 2);
	uint8_t *second = b.p + INDEX_OFFSET(get64(record + ATTR_INDEX)) + row;
	const int64_t begin = history_begin(h), at = (int64_t)get64(second + ROW_START) + 1;
	assert_int_equal(history_sums(h, a, begin, at, sums, &err), 0);
	history_close(h);
	put64(second + ROW_SUMS, get64(second + ROW_SUMS) + 1000);
	history_repair_sums(b.p, b.n);
	write_bytes(BROKEN, b.p, b.n);
	h = history_open(BROKEN, &err);
	assert_non_null(h);
	assert_int_equal(history_sums(h, a, begin, at, sums, &err), -1);
	assert_non_null(strstr(err.text, "sums"));
	history_close(h);
	free(b.p);
	unlink(SMALL);
	unlink(BROKEN);
}

static void test_not_a_history(void **state)
{
	(void)state;
	assert_refused("no such file");
	assert_refused(".");
	assert_refused("/dev/null");
	unlink(BROKEN);
	assert_int_equal(mkfifo(BROKEN, 0600), 0);
	assert_refused(BROKEN);
	unlink(BROKEN);
	write_bytes(BROKEN, (const uint8_t *)"# not a history, but a text that is longer than a header would be.............."
	            "..............................................................................................."
	            "...............................................................................................", 260);
	assert_refused(BROKEN);
	/* The next version of the format is refused by its number. */
	build_history(SMALL, 1, 5, (struct history_options){ 0 });
	struct file_bytes b = read_file(SMALL);
	put32(b.p + HEADER_VERSION, FORMAT_VERSION + 1);
	history_repair_sums(b.p, b.n);
	write_bytes(BROKEN, b.p, b.n);
	struct error err = ERROR_INIT;
	assert_null(history_open(BROKEN, &err));
	char version[32];
	snprintf(version, sizeof version, "version %u", FORMAT_VERSION + 1);
	assert_non_null(strstr(err.text, version));
	free(b.p);
	unlink(SMALL);
	unlink(BROKEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_random_damage),
		cmocka_unit_test(test_deception),
		cmocka_unit_test(test_wrong_sums),
		cmocka_unit_test(test_not_a_history),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
