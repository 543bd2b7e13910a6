#include "history_walk.h"

#include <string.h>

#include "history/crc32c.h"
#include "history/format.h"

struct history_walk {
	const struct history *h;
	uint64_t digest, budget;
	struct error *err;
};

static void digest_add(struct history_walk *w, uint64_t x)
{
	w->digest = (w->digest ^ x) * 0x100000001B3ULL;
	w->digest ^= w->digest >> 29;
}

static void digest_add_text(struct history_walk *w, const char *s)
{
	for (; s && *s; s++)
		digest_add(w, (unsigned char)*s);
	digest_add(w, 0);
}

static void digest_add_interval(struct history_walk *w, uint32_t attr, const struct interval *iv)
{
	digest_add(w, (uint64_t)iv->start);
	digest_add(w, (uint64_t)iv->end);
	digest_add(w, (uint64_t)iv->value);
	if (history_type(w->h, attr) == HISTORY_STRING)
		digest_add_text(w, history_string(w->h, iv->value));
	else if (history_type(w->h, attr) == HISTORY_REF)
		digest_add_text(w, history_string(w->h, history_ref_text(iv->value)));
	else if (history_type(w->h, attr) == HISTORY_STATE && iv->value != HISTORY_NULL)
		digest_add_text(w, history_state_name(w->h, attr, (unsigned)iv->value));
}

static bool keep_failure(struct history_walk *w, int result, const struct error *err)
{
	if (result < 0 && !w->err->status)
		*w->err = *err;
	digest_add(w, (uint64_t)result);
	return result < 0;
}

static void walk_states(struct history_walk *w, uint32_t attr, int64_t t)
{
	struct error err = ERROR_INIT;
	int64_t sums[4][HISTORY_STATES], edge[5];
	struct interval iv;
	int64_t begin = history_begin(w->h), end = history_end(w->h);
	for (int i = 0; i < 5; i++)
		edge[i] = t > end - i * (end / 8 - begin / 8) ? end : t + i * (end / 8 - begin / 8);
	if (!keep_failure(w, history_sums(w->h, attr, t, end, sums[0], &err), &err))
		for (int i = 0; i < HISTORY_STATES; i++)
			digest_add(w, (uint64_t)sums[0][i]);
	if (!keep_failure(w, history_sums_cells(w->h, attr, edge, 4, sums, &err), &err))
		for (int i = 0; i < 4 * HISTORY_STATES; i++)
			digest_add(w, (uint64_t)sums[i / HISTORY_STATES][i % HISTORY_STATES]);
	for (unsigned m = 0; m < 4; m++) {
		uint64_t mask = m < 3 ? UINT64_C(5) << m : UINT64_C(1) << (HISTORY_STATES - 1);
		int found = history_next(w->h, attr, t, mask, &iv, &err);
		if (!keep_failure(w, found, &err) && found)
			digest_add_interval(w, attr, &iv);
		found = history_prev(w->h, attr, t, mask, &iv, &err);
		if (!keep_failure(w, found, &err) && found)
			digest_add_interval(w, attr, &iv);
	}
}

/* Reads several intervals with one call. */
static void walk_range(struct history_walk *w, uint32_t attr, int64_t t)
{
	struct error err = ERROR_INIT;
	struct history_cursor c;
	struct interval iv[24];
	int n = history_range(&c, w->h, attr, t, history_end(w->h), &err) < 0 ? -1 : history_range_read(&c, iv, 24, &err);
	if (keep_failure(w, n, &err))
		return;
	for (int i = 0; i < n; i++)
		digest_add_interval(w, attr, &iv[i]);
}

static void walk_attribute(struct history_walk *w, uint32_t attr)
{
	struct error err = ERROR_INIT;
	struct history_cursor c;
	struct interval iv;
	int more = 0;
	int64_t t = history_begin(w->h);
	if (keep_failure(w, history_range(&c, w->h, attr, t, history_end(w->h), &err), &err))
		return;
	for (uint64_t n = 0; n < w->budget && (more = history_range_next(&c, &iv, &err)) > 0; n++) {
		digest_add_interval(w, attr, &iv);
		if (n % 16)
			continue;
		struct interval same;
		t = iv.start;
		if (!keep_failure(w, history_stab(w->h, attr, iv.end, &same, &err), &err))
			digest_add_interval(w, attr, &same);
		walk_range(w, attr, t);
		if (history_type(w->h, attr) == HISTORY_STATE)
			walk_states(w, attr, t);
	}
	keep_failure(w, more, &err);
}

static int visit_attribute(void *arg, uint32_t attr)
{
	struct history_walk *w = arg;
	digest_add(w, attr);
	return !w->budget-- ? 1 : 0;
}

static void walk_tree(struct history_walk *w)
{
	const struct history *h = w->h;
	uint32_t n = history_attribute_count(h);
	if (n > w->budget)
		n = (uint32_t)w->budget;
	for (uint32_t a = 0; a < n; a++) {
		digest_add(w, (uint64_t)history_type(h, a));
		digest_add_text(w, history_name(h, a));
		digest_add(w, history_parent(h, a));
		digest_add(w, history_state_count(h, a));
		uint64_t remaining = w->budget;
		for (uint32_t c = history_child(h, a, HISTORY_NONE); c != HISTORY_NONE && remaining--; c = history_child(h, a, c)) {
			digest_add(w, c);
			digest_add(w, history_child_named(h, a, history_name(h, c)));
		}
		if (history_type(h, a) >= 0)
			walk_attribute(w, a);
	}
	uint64_t budget = w->budget;
	digest_add(w, (uint64_t)history_match(h, "/*/*/*", visit_attribute, w));
	w->budget = budget;
	digest_add(w, (uint64_t)history_match(h, "/*/a%2fb/*", visit_attribute, w));
	w->budget = budget;
	digest_add(w, history_find(h, "/m1/a%2fb/x1"));
}

uint64_t history_walk(const struct history *h, uint64_t budget, struct error *err)
{
	struct history_walk w = { .h = h, .budget = budget, .err = err };
	struct error query_err = ERROR_INIT;
	static const char *const keys[] = { "key", "empty", "absent" };
	*err = (struct error)ERROR_INIT;
	digest_add(&w, (uint64_t)history_begin(h));
	digest_add(&w, (uint64_t)history_end(h));
	digest_add(&w, history_intervals(h));
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		size_t size = 0;
		const unsigned char *p = history_meta(h, keys[i], &size);
		for (size_t k = 0; p && k < size; k++)
			digest_add(&w, p[k]);
		digest_add(&w, size);
	}
	walk_tree(&w);
	static int64_t value[4096];
	if (history_attribute_count(h) <= 4096)
		for (int i = 0; i < 4; i++) {
			int64_t t = history_begin(h) + i * (history_end(h) / 4 - history_begin(h) / 4);
			if (!keep_failure(&w, history_full(h, t, value, &query_err), &query_err))
				for (uint32_t a = 0; a < history_attribute_count(h); a++)
					digest_add(&w, (uint64_t)value[a]);
		}
	if (history_damage(h, &query_err) < 0 && !err->status)
		*err = query_err;
	return w.digest;
}

unsigned history_echoes(const uint8_t *file)
{
	const uint8_t *record = file + get64(file + HEADER_SECTION + 16 * SECTION_ATTRIBUTES);
	unsigned n = 0;
	for (uint32_t i = 0; i < get32(file + HEADER_ATTRIBUTES); i++, record += ATTR_BYTES)
		n += INDEX_TYPE(get64(record + ATTR_INDEX)) != HISTORY_STATE && get32(record + ATTR_LEADER) != 0;
	return n;
}

void history_repair_sums(uint8_t *file, size_t size)
{
	struct crc32c crc;
	crc32c_init(&crc);
	if (size < HEADER_BYTES)
		return;
	uint64_t block = get32(file + HEADER_BLOCK);
	const uint8_t *section = file + HEADER_SECTION;
	uint64_t sums = get64(section + 16 * SECTION_SUMS), sums_size = get64(section + 16 * SECTION_SUMS + 8);
	uint64_t sums2 = get64(section + 16 * SECTION_SUMS2), sums2_size = get64(section + 16 * SECTION_SUMS2 + 8);
	bool sane = block >= BLOCK_MIN && block <= BLOCK_MAX && sums <= size && sums_size <= size - sums &&
		sums2 <= size && sums2_size <= size - sums2 && sums >= HEADER_BYTES;
	for (uint64_t i = 0; sane && i < sums_size / 4 && i * block < sums; i++) {
		uint64_t from = i * block, to = from + block < sums ? from + block : sums;
		from = from < HEADER_BYTES ? HEADER_BYTES : from;
		put32(file + sums + 4 * i, from < to ? crc32c(&crc, file + from, to - from) : 0);
	}
	for (uint64_t i = 0; sane && i < sums2_size / 4 && i * block < sums_size; i++) {
		uint64_t from = i * block, n = sums_size - from < block ? sums_size - from : block;
		put32(file + sums2 + 4 * i, crc32c(&crc, file + sums + from, n));
	}
	if (sane)
		put32(file + HEADER_SUMS2, crc32c(&crc, file + sums2, sums2_size));
	put32(file + HEADER_CRC, crc32c(&crc, file, HEADER_CRC));
}
