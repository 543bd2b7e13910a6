/* Search for the next or previous interval in a set of states.
 *
 * It uses the cumulative sums of the index: a state occurs in a chunk exactly if its sum grows over the chunk, because
 * no interval is shorter than 1 ns. So a binary search over the rows finds the next chunk with a state of the set at any
 * distance: O(log n), and at most two chunks are decoded. */
#include "history/file.h"

/* *sum: time in the states of the mask from the first change to the start of chunk k, ns. */
static int row_time(const struct attr *a, uint32_t k, uint32_t mask, uint64_t *sum, struct error *err)
{
	uint64_t offset = a->index + (uint64_t)a->row * k;
	if (file_check(a->h, SECTION_INDEX, offset, a->row, err))
		return -1;
	const uint8_t *p = a->h->map + offset + ROW_SUMS;
	*sum = 0;
	for (uint32_t rest = a->mask; rest; rest &= rest - 1, p += 8)
		if (rest & -rest & mask)
			*sum += get64(p);
	return 0;
}

static bool state_in_mask(int64_t value, uint32_t mask)
{
	return mask >> (value == HISTORY_NULL ? NULL_STATE : (unsigned)value) & 1;
}

/* Finds, in chunk k, the first interval of the mask that starts after t, or (not forward) the last one that ends before
 * t. Returns 1 if found, 0 if not, -1 on damage. */
static int scan_chunk(const struct attr *a, uint32_t k, int64_t t, uint32_t mask, bool forward, struct interval *iv,
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
		else if (state_in_mask(value, mask)) {
			*iv = (struct interval){ start[i], end, value };
			return 1;
		}
	}
	return why ? attr_fail_damaged(a, k, why, err) : 0;
}

/* Finds the first chunk, starting at k, in which a state of the mask occurs. The last chunk has no next row, so it is
 * returned if no earlier one matches. */
static int first_chunk_with(const struct attr *a, uint32_t k, uint32_t mask, uint32_t *found, struct error *err)
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

/* Finds the last chunk before k in which a state of the mask occurs. *any: false if there is none. */
static int last_chunk_with(const struct attr *a, uint32_t k, uint32_t mask, uint32_t *found, bool *any,
                        struct error *err)
{
	uint64_t until, sum;
	if (row_time(a, k, mask, &until, err))
		return -1;
	*any = until > 0;
	uint32_t low = 0, high = k;  /* invariant with F = row_time(): F(low) < until, F(high) == until */
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

static int find_next(const struct history *h, uint32_t attr, int64_t t, uint64_t mask, struct interval *iv,
                     struct error *err)
{
	struct attr opened;
	const struct attr *a = &opened;
	uint32_t k, m = (uint32_t)mask;
	if (attr_open_states(&opened, h, attr, err))
		return -1;
	if (t >= h->end)
		return 0;
	int64_t at = t < h->begin ? h->begin : t;
	if (attr_seek(a, at, &k, err))
		return -1;
	bool leading = k == a->chunks;
	if (leading && t < h->begin && state_in_mask(HISTORY_NULL, m)) {
		*iv = (struct interval){ h->begin, a->chunks ? attr_start(a, 0) - 1 : h->end, HISTORY_NULL };
		return 1;
	}
	if (!a->chunks)
		return 0;
	if (leading)
		k = 0;
	int found = scan_chunk(a, k, t, m, true, iv, err);
	if (found || k + 1 == a->chunks)
		return found;
	if (first_chunk_with(a, k + 1, m, &k, err))
		return -1;
	return scan_chunk(a, k, t, m, true, iv, err);
}

static int find_prev(const struct history *h, uint32_t attr, int64_t t, uint64_t mask, struct interval *iv,
                     struct error *err)
{
	struct attr opened;
	const struct attr *a = &opened;
	uint32_t k, m = (uint32_t)mask;
	bool any = false;
	if (attr_open_states(&opened, h, attr, err))
		return -1;
	if (t <= h->begin || attr_seek(a, t > h->end ? h->end : t, &k, err))
		return t <= h->begin ? 0 : -1;
	if (k < a->chunks) {
		int found = scan_chunk(a, k, t, m, false, iv, err);
		if (found)
			return found;
		if (k && last_chunk_with(a, k, m, &k, &any, err))
			return -1;
		if (any)
			return scan_chunk(a, k, t, m, false, iv, err);
	}
	int64_t first = a->chunks ? attr_start(a, 0) : h->end + 1;
	if (!state_in_mask(HISTORY_NULL, m) || first == h->begin || first > t)
		return 0;
	*iv = (struct interval){ h->begin, first - 1, HISTORY_NULL };
	return 1;
}

int history_next(const struct history *h, uint32_t attr, int64_t t, uint64_t mask, struct interval *iv,
                 struct error *err)
{
	const int found = find_next(h, attr, t, mask, iv, err);
	if (found > 0)
		file_report_read(h, attr, iv->start, iv->end);
	return found;
}

int history_prev(const struct history *h, uint32_t attr, int64_t t, uint64_t mask, struct interval *iv,
                 struct error *err)
{
	const int found = find_prev(h, attr, t, mask, iv, err);
	if (found > 0)
		file_report_read(h, attr, iv->start, iv->end);
	return found;
}
