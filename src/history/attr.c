/* Access to an attribute's chunks: its record in the file, its index rows, and the chunk that contains a time. */
#include "history/file.h"

int attr_open(struct attr *a, const struct history *h, uint32_t id, struct error *err)
{
	if (id >= h->attributes)
		return error_set(err, STATUS_INPUT, NULL, "%s: there is no attribute %u", h->path, id);
	uint64_t at = h->section[SECTION_ATTRIBUTES].offset + (uint64_t)id * ATTR_BYTES;
	if (file_check(h, SECTION_ATTRIBUTES, at, ATTR_BYTES, err))
		return -1;
	const uint8_t *r = h->map + at;
	const uint64_t index = get64(r + ATTR_INDEX);
	const unsigned type = INDEX_TYPE(index);
	*a = (struct attr){
		.h = h, .id = id, .parent = get32(r + ATTR_PARENT), .name = get32(r + ATTR_NAME),
		.child = get32(r + ATTR_CHILD), .children = get32(r + ATTR_CHILDREN), .chunks = get32(r + ATTR_CHUNKS),
		.mask = get32(r + ATTR_MASK), .index = INDEX_OFFSET(index), .set = INDEX_SET(index),
		.type = type == ATTR_INNER ? -1 : (int)type,
	};
	if ((type > HISTORY_REF && type != ATTR_INNER) || (type == HISTORY_STATE && a->set >= h->sets) ||
	    (id ? a->parent >= id : a->parent != HISTORY_NONE) ||
	    (a->children && (a->child <= id || a->child > h->attributes || a->children > h->attributes - a->child)) ||
	    (type == ATTR_INNER && a->chunks))
		return file_fail_damaged(h, at, "an attribute is malformed", err);
	a->sums = type == HISTORY_STATE && a->chunks > 1 ? (unsigned)__builtin_popcount(a->mask) : 0;
	a->row = ROW_SUMS + 8 * a->sums;
	uint64_t low = h->section[SECTION_INDEX].offset, size = h->section[SECTION_INDEX].size;
	if (a->index < low || a->index - low > size || (uint64_t)a->chunks * a->row > size - (a->index - low))
		return file_fail_damaged(h, at, "the index of an attribute lies outside of its section", err);
	a->rows = h->map + a->index;
	return 0;
}

int attr_open_states(struct attr *a, const struct history *h, uint32_t id, struct error *err)
{
	if (attr_open(a, h, id, err))
		return -1;
	if (a->type != HISTORY_STATE)
		return error_set(err, STATUS_INPUT, NULL, "%s: '%s' has no states", h->path, history_name(h, id));
	return 0;
}

/* Returns the last of the rows [low, low + n) that starts at or before t, or `low`. The rows are not verified. */
static uint32_t search_rows(const struct attr *a, int64_t t, uint32_t low, uint32_t n)
{
	while (n > 1) {
		uint32_t half = n / 2;
		low += attr_start(a, low + half) <= t ? half : 0;
		n -= half;
	}
	return low;
}

/* Verifies the result of a search in unverified rows: row i starts at or before t, row i + 1 after t. *chunk is i;
 * `chunks` if t precedes the first change. */
static int prove_result(const struct attr *a, int64_t t, uint32_t i, uint32_t *chunk, struct error *err)
{
	bool last = i + 1 == a->chunks;
	*chunk = a->chunks;
	if (file_check(a->h, SECTION_INDEX, a->index + (uint64_t)i * a->row, last ? a->row : 2 * a->row, err))
		return -1;
	int64_t start = attr_start(a, i);
	if (start > t && i == 0)
		return 0;
	if (start <= t && (last || attr_start(a, i + 1) > t)) {
		*chunk = i;
		return 0;
	}
	if (file_check(a->h, SECTION_INDEX, a->index, (uint64_t)a->chunks * a->row, err))
		return -1;
	return file_fail_damaged(a->h, a->index + (uint64_t)i * a->row, "the index is out of order", err);
}

int attr_seek_hint(const struct attr *a, int64_t t, uint32_t hint, uint32_t *chunk, struct error *err)
{
	*chunk = a->chunks;
	if (!a->chunks)
		return 0;
	uint32_t low = hint < a->chunks ? hint : a->chunks - 1, high = low + 1, step = 1;
	/* Double the step until [low, high) contains the answer. */
	while (low && attr_start(a, low) > t) {
		high = low;
		low -= step < low ? step : low;
		step *= 2;
	}
	while (high < a->chunks && attr_start(a, high) <= t) {
		low = high;
		high += step < a->chunks - high ? step : a->chunks - high;
		step *= 2;
	}
	return prove_result(a, t, search_rows(a, t, low, high - low), chunk, err);
}

int attr_seek(const struct attr *a, int64_t t, uint32_t *chunk, struct error *err)
{
	const struct history *h = a->h;
	const double share = ((double)t - (double)h->begin) / ((double)h->end - (double)h->begin + 1);
	return attr_seek_hint(a, t, share > 0 && share < 1 ? (uint32_t)(share * a->chunks) : 0, chunk, err);
}

void attr_prefetch(const struct attr *a, uint32_t i, uint32_t next)
{
	uint64_t location = get64(a->rows + (uint64_t)a->row * i + ROW_LOCATION), offset = LOCATION_OFFSET(location);
	for (unsigned at = 0; at < LOCATION_SIZE(location) && offset + at < a->h->size; at += 64)
		__builtin_prefetch(a->h->map + offset + at);
	for (unsigned at = 0; next < a->chunks && at < 2 * a->row; at += 64)
		__builtin_prefetch(a->rows + (uint64_t)a->row * next + at);
}

int attr_fail_damaged(const struct attr *a, uint32_t chunk, const char *why, struct error *err)
{
	return file_fail_damaged(a->h, LOCATION_OFFSET(get64(a->rows + (uint64_t)a->row * chunk + ROW_LOCATION)), why, err);
}

/* Position in a leader's intervals: decodes one chunk of the leader at a time, for the durations of its follower. */
struct leader {
	struct attr a;
	uint32_t k;
	size_t n;                /* interval count */
	int64_t start;
	uint64_t less[CHUNK_MAX];  /* durations - 1 of all intervals but the last */
};

static int leader_load(struct leader *l, uint32_t k, struct error *err)
{
	struct chunk c;
	if (attr_chunk(&l->a, k, &c, err))
		return -1;
	column_get(&c.duration, l->less, c.n - 1);
	l->k = k;
	l->n = c.n;
	l->start = c.start;
	return 0;
}

/* Opens the leader at its chunk that contains t. */
static int leader_seek(struct leader *l, const struct attr *follower, int64_t t, struct error *err)
{
	uint32_t k;
	if (attr_open_states(&l->a, follower->h, follower->leader, err) || attr_seek(&l->a, t, &k, err))
		return -1;
	return k < l->a.chunks ? leader_load(l, k, err)
	                       : file_fail_damaged(l->a.h, l->a.index, "an attribute begins before its leader", err);
}

/* Decodes a CHUNK_LINKED: replaces the numbers of leader intervals by durations in c->computed. */
static int compute_durations(const struct attr *a, uint32_t k, struct chunk *c, struct error *err)
{
	struct leader l;
	uint64_t skipped[CHUNK_MAX];
	const size_t n = c->n - 1;
	size_t at = 0, to;
	column_get(&c->duration, skipped, c->n - 1);
	if (leader_seek(&l, a, c->start, err))
		return -1;
	uint64_t before = (uint64_t)c->start - (uint64_t)l.start, previous = (uint64_t)c->end - (uint64_t)c->start;
	while (at + 1 < l.n && l.less[at] < before)
		before -= l.less[at++] + 1;
	uint64_t remaining = previous + before;  /* ns from the start of a leader interval to the end of the follower's chunk */
	for (size_t i = 0; i < n; i++, previous = remaining) {
		for (to = at + skipped[i] + 1; to >= l.n; at = 0) {
			to -= l.n;
			if (skipped[i] > CHUNK_SKIP_MAX || l.k + 1 == l.a.chunks || attr_start(&l.a, l.k + 1) > c->end)
				return attr_fail_damaged(a, k, "a linked chunk counts more intervals than its leader has", err);
			if (leader_load(&l, l.k + 1, err))
				return -1;
			remaining = (uint64_t)c->end - (uint64_t)l.start;
		}
		for (; at < to; at++) {
			if (l.less[at] >= remaining)
				return attr_fail_damaged(a, k, "a linked chunk counts more intervals than its leader has", err);
			remaining -= l.less[at] + 1;
		}
		put64(c->computed + 8 * i, previous - remaining - 1);
	}
	c->duration = (struct packed_column){ .packed = c->computed, .n = c->n - 1, .width = 64 };
	c->linked = false;
	return 0;
}

int attr_chunk(const struct attr *a, uint32_t i, struct chunk *c, struct error *err)
{
	const struct history *h = a->h;
	bool last = i + 1 == a->chunks;
	if (file_check(h, SECTION_INDEX, a->index + (uint64_t)i * a->row, last ? a->row : 2 * a->row, err))
		return -1;
	uint64_t location = get64(a->rows + (uint64_t)a->row * i + ROW_LOCATION), offset = LOCATION_OFFSET(location);
	const int64_t start = attr_start(a, i), next = last ? h->end : attr_start(a, i + 1);
	if (start < h->begin || (last ? next < start : next <= start) || next - !last > h->end)
		return file_fail_damaged(h, a->index + (uint64_t)i * a->row, "the index is out of order", err);
	if (file_check(h, SECTION_CHUNKS, offset, LOCATION_SIZE(location), err))
		return -1;
	const char *why = chunk_parse(c, h->map + offset, LOCATION_SIZE(location), a->type == HISTORY_STATE, start,
	                              next - !last);
	if (why)
		return file_fail_damaged(h, offset, why, err);
	return c->linked ? compute_durations(a, i, c, err) : 0;
}
