/* Time per state, and the next or previous interval in a set of states.
 *
 * Each index row holds the cumulative time per state from the first change up to its chunk, F(start).  F(t) is that
 * plus a part of one chunk; a window is F(t1 + 1) - F(t0), whatever it spans.  The same sums find intervals: a state
 * occurs in a chunk exactly when its sum grows over it, so a bisection over the rows finds the next chunk
 * with a state of a set. */
#include "history/file.h"

/* A moving F(t). */
struct tally {
	struct attr a;
	struct chunk c;
	uint32_t k;                 /* the chunk, or a.chunks: before the first change; UINT32_MAX: nowhere yet */
	unsigned i;                 /* interval in the chunk */
	int64_t at;                 /* its start */
	uint64_t base[HISTORY_STATES];  /* F(start of the chunk) */
	uint64_t part[32];          /* time per code from there to `at` */
	uint64_t less[CHUNK_MAX];
};

static int tally_open(struct tally *y, const struct history *h, uint32_t attr, struct error *err)
{
	y->k = UINT32_MAX;
	if (attr_open(&y->a, h, attr, err))
		return -1;
	if (y->a.type != HISTORY_STATE)
		return error_set(err, STATUS_INPUT, NULL, "%s: '%s' holds no states", h->path, history_name(h, attr));
	return 0;
}

static int tally_load(struct tally *y, uint32_t k, struct error *err)
{
	y->k = UINT32_MAX;
	if (attr_chunk(&y->a, k, &y->c, err))
		return -1;
	const uint8_t *sum = y->a.rows + (uint64_t)y->a.row * k + ROW_SUMS;
	memset(y->base, 0, sizeof y->base);
	if (y->a.sums)
		for (uint32_t left = y->a.mask; left; left &= left - 1, sum += 8)
			y->base[__builtin_ctz(left)] = get64(sum);
	memset(y->part, 0, sizeof y->part);
	column_get(&y->c.duration, y->less, y->c.n - 1);
	y->i = 0;
	y->at = y->c.start;
	y->k = k;
	return 0;
}

/* F(t) into f; t lies within the span or one behind it. */
static int tally_to(struct tally *y, int64_t t, uint64_t f[HISTORY_STATES], struct error *err)
{
	if (y->k >= y->a.chunks || t < y->at || t - 1 > y->c.end) {
		uint32_t k;
		if (attr_seek(&y->a, t, &k, err))
			return -1;
		if (k == y->a.chunks) {
			memset(f, 0, HISTORY_STATES * sizeof *f);
			return 0;
		}
		if (tally_load(y, k, err))
			return -1;
	}
	uint64_t left = (uint64_t)t - (uint64_t)y->at;
	unsigned i = y->i, last = y->c.n - 1, width = y->c.code.width;
	const uint8_t *packed = y->c.code.packed;
	for (; i < last && y->less[i] < left; i++) {
		left -= y->less[i] + 1;
		y->part[packed_get(packed, width, i)] += y->less[i] + 1;
	}
	y->i = i;
	y->at = (int64_t)((uint64_t)t - left);
	memcpy(f, y->base, sizeof y->base);
	uint64_t now = packed_get(packed, width, i);
	for (unsigned code = 0; code < 1u << width; code++) {
		uint64_t ns = y->part[code] + (code == now ? left : 0);
		int64_t state;
		if (!ns)
			continue;
		if (!chunk_decode(&y->c, code, &state))
			return attr_damaged(&y->a, y->k, "a value is out of range", err);
		f[state == HISTORY_NULL ? NULL_STATE : (unsigned)state] += ns;
	}
	return 0;
}

/* Time of [t0, t1) before the first change. */
static uint64_t before_first(const struct attr *a, int64_t t0, int64_t t1)
{
	int64_t first = a->chunks ? attr_start(a, 0) : a->h->end + 1;
	int64_t until = t1 < first ? t1 : first;
	return until > t0 ? (uint64_t)until - (uint64_t)t0 : 0;
}

int history_sums_cells(const struct history *h, uint32_t attr, const int64_t *edge, unsigned n,
                       int64_t (*sums)[HISTORY_STATES], struct error *err)
{
	struct tally y;
	uint64_t f[2][HISTORY_STATES];
	int64_t from = 0;
	if (tally_open(&y, h, attr, err))
		return -1;
	for (unsigned i = 0; i <= n; i++) {
		int64_t t = edge[i] < h->begin ? h->begin : edge[i] > h->end ? h->end + 1 : edge[i];
		if (i && t < from)
			return error_set(err, STATUS_USAGE, NULL, "%s: the edges of cells do not ascend", h->path);
		if (tally_to(&y, t, f[i & 1], err))
			return -1;
		for (unsigned s = 0; i && s < HISTORY_STATES; s++)
			sums[i - 1][s] = (int64_t)(f[i & 1][s] - f[~i & 1][s]);
		if (i)
			sums[i - 1][NULL_STATE] += (int64_t)before_first(&y.a, from, t);
		from = t;
	}
	return 0;
}

int history_sums(const struct history *h, uint32_t attr, int64_t t0, int64_t t1, int64_t sums[HISTORY_STATES],
                 struct error *err)
{
	int64_t edge[2] = { t0, t1 < INT64_MAX ? t1 + 1 : t1 };
	if (edge[1] < edge[0])
		edge[1] = edge[0];
	return history_sums_cells(h, attr, edge, 1, (int64_t (*)[HISTORY_STATES])sums, err);
}

/* ---- Next and previous ---------------------------------------------------------------------------------- */

/* Cumulative time in the states of the mask up to chunk k. */
static int row_time(const struct attr *a, uint32_t k, uint32_t mask, uint64_t *sum, struct error *err)
{
	uint64_t offset = a->index + (uint64_t)a->row * k;
	if (file_check(a->h, SECTION_INDEX, offset, a->row, err))
		return -1;
	const uint8_t *p = a->h->map + offset + ROW_SUMS;
	*sum = 0;
	for (uint32_t left = a->mask; left; left &= left - 1, p += 8)
		if (left & -left & mask)
			*sum += get64(p);
	return 0;
}

static bool in_mask(int64_t value, uint32_t mask)
{
	return mask >> (value == HISTORY_NULL ? NULL_STATE : (unsigned)value) & 1;
}

/* Within chunk k: the first interval of the mask that starts after t, or the last that ends before t. */
static int scan(const struct attr *a, uint32_t k, int64_t t, uint32_t mask, bool forward, struct interval *iv,
                struct error *err)
{
	struct chunk c;
	int64_t start[CHUNK_MAX];
	if (attr_chunk(a, k, &c, err))
		return -1;
	const char *why = chunk_starts(&c, start, c.n);
	for (unsigned j = 0; !why && j < c.n; j++) {
		unsigned i = forward ? j : c.n - 1 - j;
		int64_t end = i + 1 < c.n ? start[i + 1] - 1 : c.end, value;
		if (forward ? start[i] <= t : end >= t)
			continue;
		if (!chunk_value(&c, i, &value))
			why = "a value is out of range";
		else if (in_mask(value, mask)) {
			*iv = (struct interval){ start[i], end, value };
			return 1;
		}
	}
	return why ? attr_damaged(a, k, why, err) : 0;
}

/* The first chunk from k on in which the mask occurs; the last chunk has no sum behind it and is the last resort. */
static int chunk_after(const struct attr *a, uint32_t k, uint32_t mask, uint32_t *found, struct error *err)
{
	uint64_t from, sum;
	uint32_t low = k, high = a->chunks - 1;
	if (row_time(a, k, mask, &from, err))
		return -1;
	while (low < high) {  /* the answer is in [low, high] */
		uint32_t middle = low + (high - low) / 2;
		if (row_time(a, middle + 1, mask, &sum, err))
			return -1;
		if (sum > from)
			high = middle;
		else
			low = middle + 1;
	}
	*found = low;
	return 0;
}

/* The last chunk before k in which the mask occurs; false in *any when there is none. */
static int chunk_before(const struct attr *a, uint32_t k, uint32_t mask, uint32_t *found, bool *any,
                        struct error *err)
{
	uint64_t until, sum;
	if (row_time(a, k, mask, &until, err))
		return -1;
	*any = until > 0;
	uint32_t low = 0, high = k;  /* F(low) < until; F(high) == until */
	while (*any && high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (row_time(a, middle, mask, &sum, err))
			return -1;
		if (sum < until)
			low = middle;
		else
			high = middle;
	}
	*found = low;
	return 0;
}

int history_next(const struct history *h, uint32_t attr, int64_t t, uint64_t mask, struct interval *iv,
                 struct error *err)
{
	struct tally y;
	uint32_t k;
	uint32_t m = (uint32_t)mask;
	if (tally_open(&y, h, attr, err))
		return -1;
	const struct attr *a = &y.a;
	if (t >= h->end)
		return 0;
	int64_t at = t < h->begin ? h->begin : t;
	if (attr_seek(a, at, &k, err))
		return -1;
	bool leading = k == a->chunks;
	if (leading && t < h->begin && in_mask(HISTORY_NULL, m)) {
		*iv = (struct interval){ h->begin, a->chunks ? attr_start(a, 0) - 1 : h->end, HISTORY_NULL };
		return 1;
	}
	if (!a->chunks)
		return 0;
	if (leading)
		k = 0;
	int found = scan(a, k, t, m, true, iv, err);
	if (found || k + 1 == a->chunks)
		return found;
	if (chunk_after(a, k + 1, m, &k, err))
		return -1;
	return scan(a, k, t, m, true, iv, err);
}

int history_prev(const struct history *h, uint32_t attr, int64_t t, uint64_t mask, struct interval *iv,
                 struct error *err)
{
	struct tally y;
	uint32_t k;
	uint32_t m = (uint32_t)mask;
	bool any = false;
	if (tally_open(&y, h, attr, err))
		return -1;
	const struct attr *a = &y.a;
	if (t <= h->begin || attr_seek(a, t > h->end ? h->end : t, &k, err))
		return t <= h->begin ? 0 : -1;
	if (k < a->chunks) {
		int found = scan(a, k, t, m, false, iv, err);
		if (found)
			return found;
		if (k && chunk_before(a, k, m, &k, &any, err))
			return -1;
		if (any)
			return scan(a, k, t, m, false, iv, err);
	}
	int64_t first = a->chunks ? attr_start(a, 0) : h->end + 1;
	if (!in_mask(HISTORY_NULL, m) || first == h->begin || first > t)
		return 0;
	*iv = (struct interval){ h->begin, first - 1, HISTORY_NULL };
	return 1;
}
