/* history_watch(): random reads of a history, and of another one that has only the window and the reported parts, return
 * the same. Each read starts where the one before ended. */
#include "test.h"

#include <unistd.h>

#include "base/mem.h"
#include "history/history.h"

#define ATTRS 4
#define STATES 3
#define CHANGES 60
#define SPAN 1000   /* ns */
#define READS 40
#define ROUNDS 400
#define WHOLE "test_history_watch.tmp"
#define PART "test_history_watch_part.tmp"

static uint64_t seed;

static int64_t random_below(int64_t n)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (int64_t)(seed >> 33) % n;
}

static uint32_t add_attribute(struct history_builder *b, int i, unsigned set)
{
	return history_attribute(b, (const char *[]){ "/a", "/b", "/c", "/d" }[i], i < 3 ? HISTORY_STATE : HISTORY_INT, set, NULL);
}

static struct history_builder *start_history(const char *path, unsigned *set)
{
	struct history_builder *b = history_create(path, &(struct history_options){ .chunk = 4 }, NULL);
	assert_non_null(b);
	*set = history_state_set(b, "set", (const char *const[]){ "x", "y", "z" }, STATES);
	return b;
}

static struct history *finish_history(struct history_builder *b, const char *path)
{
	assert_int_equal(history_finish(b, 0, SPAN, NULL), 0);
	struct history *h = history_open(path, NULL);
	assert_non_null(h);
	return h;
}

static struct history *build_whole(void)
{
	unsigned set;
	struct history_builder *b = start_history(WHOLE, &set);
	for (int i = 0; i < ATTRS; i++) {
		const uint32_t attr = add_attribute(b, i, set);
		int64_t t = random_below(SPAN / 2);
		for (int n = 0; n < CHANGES && t < SPAN; n++, t += 1 + random_below(40))
			assert_int_equal(history_set(b, t, attr, random_below(4) ? random_below(STATES) : HISTORY_NULL, NULL), 0);
	}
	return finish_history(b, WHOLE);
}

/* ---- Parts that were read */

struct parts {
	bool kept[ATTRS][SPAN + 1];
	uint32_t attr[ATTRS];
	int64_t from, to;
};

static void keep_part(void *arg, uint32_t attr, int64_t start, int64_t end)
{
	struct parts *p = arg;
	assert_true(start <= end && start >= 0 && end <= SPAN);
	assert_true(start < p->from || end > p->to);
	for (int i = 0; i < ATTRS; i++)
		for (int64_t t = start; p->attr[i] == attr && t <= end; t++)
			p->kept[i][t] = true;
}

static bool was_read(const struct parts *p, int i, const struct interval *iv)
{
	for (int64_t t = iv->start; t <= iv->end; t++)
		if (p->kept[i][t] || (t >= p->from && t <= p->to))
			return true;
	return false;
}

/* Returns true if the interval, or an interval of null next to it, was read: the end of null is the start of the next
 * interval. */
static bool is_kept(const struct parts *p, const struct history *h, int i, const struct interval *iv)
{
	struct interval next;
	bool kept = was_read(p, i, iv);
	if (iv->start > 0 && !kept)
		kept = history_stab(h, p->attr[i], iv->start - 1, &next, NULL) == 0 && next.value == HISTORY_NULL && was_read(p, i, &next);
	if (iv->end < SPAN && !kept)
		kept = history_stab(h, p->attr[i], iv->end + 1, &next, NULL) == 0 && next.value == HISTORY_NULL && was_read(p, i, &next);
	return kept;
}

static struct history *build_part(const struct parts *p, const struct history *h)
{
	unsigned set;
	struct history_builder *b = start_history(PART, &set);
	for (int i = 0; i < ATTRS; i++) {
		const uint32_t attr = add_attribute(b, i, set);
		for (struct interval iv = { .end = -1 }; iv.end < SPAN;) {
			assert_int_equal(history_stab(h, p->attr[i], iv.end + 1, &iv, NULL), 0);
			assert_int_equal(history_set(b, iv.start, attr, is_kept(p, h, i, &iv) ? iv.value : HISTORY_NULL, NULL), 0);
		}
	}
	return finish_history(b, PART);
}

/* ---- Reads */

/* Reads once, near t. Returns the number of values in out[]; *t: where to read next. */
static int read_once(const struct history *h, const uint32_t *attr, int64_t *t, int64_t out[HISTORY_STATES])
{
	struct interval iv = { 0 };
	struct history_cursor c;
	const int64_t i = random_below(ATTRS), mask = 1 + random_below(6), length = random_below(100);
	const int64_t forward = random_below(2), how = random_below(6);
	if (how == 5) {
		int64_t value[ATTRS + 1];  /* and the root */
		assert_int_equal(history_attribute_count(h), ATTRS + 1);
		assert_int_equal(history_full(h, *t, value, NULL), 0);
		for (int a = 0; a < ATTRS; a++)
			out[a] = value[attr[a]];
		return ATTRS;
	}
	if (how == 4 && i < 3) {
		assert_int_equal(history_sums(h, attr[i], *t, *t + length, out, NULL), 0);
		return HISTORY_STATES;
	}
	if (how == 3 && i < 3)
		out[3] = (forward ? history_next : history_prev)(h, attr[i], *t, (uint64_t)mask, &iv, NULL);
	else if (how == 2)
		out[3] = history_range(&c, h, attr[i], *t, *t + length, NULL) < 0 ? -1 : history_range_next(&c, &iv, NULL);
	else if (how == 1)
		out[3] = history_range(&c, h, attr[i], *t, *t + length, NULL) < 0 ? -1 : history_range_read(&c, &iv, 1, NULL);
	else
		out[3] = history_stab(h, attr[i], *t, &iv, NULL);
	assert_true(out[3] >= 0);
	out[0] = iv.start;
	out[1] = iv.end;
	out[2] = iv.value;
	*t = forward ? iv.end + 1 : iv.start - 1;
	*t = *t < 0 ? 0 : *t > SPAN ? SPAN : *t;
	return 4;
}

static void read_all(const struct history *h, const uint32_t *attr, uint64_t begin, int64_t t, int64_t *out)
{
	seed = begin;
	for (int n = 0; n < READS; n++)
		out += read_once(h, attr, &t, out);
}

static void test_same_reads(void **state)
{
	(void)state;
	int outside = 0;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		int64_t whole[READS * HISTORY_STATES] = { 0 }, part[READS * HISTORY_STATES] = { 0 };
		struct parts *p = mem_new(1, sizeof *p);
		uint32_t attr[ATTRS];
		seed = round;
		struct history *h = build_whole();
		p->from = random_below(SPAN);
		p->to = p->from + random_below(SPAN - p->from);
		for (int i = 0; i < ATTRS; i++)
			p->attr[i] = history_find(h, (const char *[]){ "/a", "/b", "/c", "/d" }[i]);
		const int64_t t = p->from + random_below(p->to - p->from + 1);
		history_watch(h, p->from, p->to, keep_part, p);
		read_all(h, p->attr, round, t, whole);
		history_watch(h, 0, 0, NULL, NULL);
		struct history *cut = build_part(p, h);
		for (int i = 0; i < ATTRS; i++)
			attr[i] = history_find(cut, (const char *[]){ "/a", "/b", "/c", "/d" }[i]);
		read_all(cut, attr, round, t, part);
		assert_memory_equal(whole, part, sizeof whole);
		outside += history_intervals(cut) < history_intervals(h);
		history_close(cut);
		history_close(h);
		free(p);
	}
	assert_true(outside > ROUNDS / 2);  /* most cuts lack something */
	unlink(WHOLE);
	unlink(PART);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_same_reads) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
