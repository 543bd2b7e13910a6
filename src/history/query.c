/* Interval queries: one attribute at a time, all attributes at a time, ranges. */
#include "history/file.h"

/* Sets *iv to the interval of null before the first change: the whole span if the attribute never changed. */
static void interval_before_first(const struct attr *a, struct interval *iv)
{
	*iv = (struct interval){ a->h->begin, a->chunks ? attr_start(a, 0) - 1 : a->h->end, HISTORY_NULL };
}

/* Finds the interval of a chunk that contains t. Returns NULL, or a description of the damage. */
static const char *locate_interval(const struct chunk *c, int64_t t, struct interval *iv)
{
	uint64_t less[CHUNK_MAX];
	uint64_t before = (uint64_t)t - (uint64_t)c->start, at = 0;
	unsigned i = 0, last = c->n - 1;
	column_get(&c->duration, less, last);
	/* The loop stops at a duration that is too long, so `at` cannot overflow. */
	while (i < last && less[i] < before - at)
		at += less[i++] + 1;
	iv->start = (int64_t)((uint64_t)c->start + at);
	uint64_t remaining = (uint64_t)c->end - (uint64_t)iv->start;
	if (i < last && less[i] >= remaining)
		return "the intervals of a chunk are longer than the chunk";
	iv->end = i < last ? (int64_t)((uint64_t)iv->start + less[i]) : c->end;
	return chunk_value(c, i, &iv->value) ? NULL : "a value is out of range";
}

/* Finds the interval that contains t, in chunk k or, if k == chunks, before the first change. */
static int stab_chunk(const struct attr *a, uint32_t k, int64_t t, struct interval *iv, struct error *err)
{
	struct chunk c;
	if (k == a->chunks) {
		interval_before_first(a, iv);
		return 0;
	}
	if (attr_chunk(a, k, &c, err))
		return -1;
	const char *why = locate_interval(&c, t, iv);
	return why ? attr_fail_damaged(a, k, why, err) : 0;
}

static int64_t clamp_time(const struct history *h, int64_t t)
{
	return t < h->begin ? h->begin : t > h->end ? h->end : t;
}

static int open_typed(struct attr *a, const struct history *h, uint32_t attr, struct error *err)
{
	if (attr_open(a, h, attr, err))
		return -1;
	if (a->type < 0)
		return error_set(err, STATUS_INPUT, NULL, "%s: '%s' is a node with children, it has no value", h->path,
		                 history_name(h, attr));
	return 0;
}

int history_stab(const struct history *h, uint32_t attr, int64_t t, struct interval *iv, struct error *err)
{
	struct attr a;
	uint32_t k;
	t = clamp_time(h, t);
	if (open_typed(&a, h, attr, err) || attr_seek(&a, t, &k, err))
		return -1;
	if (stab_chunk(&a, k, t, iv, err))
		return -1;
	file_report_read(h, attr, iv->start, iv->end);
	return 0;
}

/* history_full() processes attributes in a pipeline, to hide the latency of memory: it opens attribute i, seeks the
 * chunk of attribute i - SEEK_DISTANCE, and decodes attribute i - OPEN_DISTANCE. */
#define OPEN_DISTANCE 16u
#define SEEK_DISTANCE 8u

int history_full(const struct history *h, int64_t t, int64_t *value, struct error *err)
{
	struct { struct attr a; uint32_t k; } ring[OPEN_DISTANCE], *r;
	t = clamp_time(h, t);
	for (uint64_t i = 0; i < (uint64_t)h->attributes + OPEN_DISTANCE; i++) {
		if (i >= OPEN_DISTANCE) {
			r = &ring[i % OPEN_DISTANCE];
			struct interval iv = { .value = HISTORY_NULL };
			if (r->a.type >= 0 && stab_chunk(&r->a, r->k, t, &iv, err))
				return -1;
			if (r->a.type >= 0)
				file_report_read(h, r->a.id, iv.start, iv.end);
			value[i - OPEN_DISTANCE] = iv.value;
		}
		if (i < h->attributes) {
			r = &ring[i % OPEN_DISTANCE];
			if (attr_open(&r->a, h, (uint32_t)i, err))
				return -1;
			__builtin_prefetch(r->a.rows + (uint64_t)r->a.row * (r->a.chunks / 2));
		}
		if (i >= SEEK_DISTANCE && i - SEEK_DISTANCE < h->attributes) {
			r = &ring[(i - SEEK_DISTANCE) % OPEN_DISTANCE];
			if (attr_seek(&r->a, t, &r->k, err))
				return -1;
			if (r->k < r->a.chunks)
				attr_prefetch(&r->a, r->k, r->k);
		}
	}
	return 0;
}

/* ---- Ranges --------------------------------------------------------------------------------------------- */

/* Fields of a cursor's private state. The chunk is parsed again at each step, which costs little and keeps the cursor
 * small. */
enum { CURSOR_CHUNK, CURSOR_INDEX, CURSOR_START, CURSOR_DONE };

int history_range(struct history_cursor *c, const struct history *h, uint32_t attr, int64_t t0, int64_t t1,
                  struct error *err)
{
	struct attr a;
	uint32_t k;
	*c = (struct history_cursor){ .h = h, .t1 = t1, .attr = attr };
	c->state[CURSOR_DONE] = 1;
	if (open_typed(&a, h, attr, err))
		return -1;
	if (t1 < t0 || t1 < h->begin || t0 > h->end)
		return 0;
	t0 = clamp_time(h, t0);
	if (attr_seek(&a, t0, &k, err))
		return -1;
	c->state[CURSOR_DONE] = 0;
	c->state[CURSOR_CHUNK] = UINT32_MAX;  /* the interval of null before the first change */
	if (k == a.chunks)
		return 0;
	struct chunk chunk;
	int64_t start[CHUNK_MAX];
	if (attr_chunk(&a, k, &chunk, err))
		return -1;
	const char *why = chunk_starts(&chunk, start, chunk.n);
	if (why)
		return attr_fail_damaged(&a, k, why, err);
	unsigned i = 0;
	while (i + 1 < chunk.n && start[i + 1] <= t0)
		i++;
	c->state[CURSOR_CHUNK] = k;
	c->state[CURSOR_INDEX] = i;
	c->state[CURSOR_START] = (uint64_t)start[i];
	return 0;
}

/* Reads the numbers [from, to) of a column into x[]. */
static void column_read(const struct packed_column *c, uint64_t *x, unsigned from, unsigned to)
{
	unsigned exception = 0;
	while (exception < c->exceptions && c->exception[exception] < from)
		exception++;
	column_part(c, x, from, to, &exception);
}

/* Maps dictionary indices to values; the dictionary is decoded first. Returns false if an index or an entry is out of
 * range. */
static bool look_up_values(const struct chunk *c, const uint64_t *code, unsigned n, struct interval *iv)
{
	int64_t value[CHUNK_DICT_MAX];
	for (unsigned i = 0; i < c->dict_len; i++)
		if (!chunk_decode(c, i, &value[i]))
			return false;
	for (unsigned i = 0; i < n; i++) {
		if (code[i] >= c->dict_len)
			return false;
		iv[i].value = value[code[i]];
	}
	return true;
}

/* Decodes the values [from, to) of a chunk into iv[]. Returns false if a value is out of range. */
static bool read_values(const struct chunk *c, unsigned from, unsigned to, struct interval *iv)
{
	uint64_t code[CHUNK_MAX];
	const unsigned n = to - from;
	bool ok = true;
	if (n == 1)
		return chunk_value(c, from, &iv->value);
	column_read(&c->code, code, from, to);
	if (c->dict)
		return look_up_values(c, code, n, iv);
	for (unsigned i = 0; i < n && c->state; i++) {
		const uint64_t state = c->base + code[i];  /* -1: null */
		ok &= state + 1 <= NULL_STATE;
		iv[i].value = state + 1 ? (int64_t)state : HISTORY_NULL;
	}
	for (unsigned i = 0; i < n && !c->state; i++)
		ok &= chunk_decode(c, code[i], &iv[i].value);
	return ok;
}

/* Decodes up to max intervals of a chunk, starting at interval i. Returns their number; -1 on damage. */
static int decode_intervals(const struct attr *a, uint32_t k, const struct chunk *chunk, unsigned i, int64_t start,
                       struct interval *iv, unsigned max, struct error *err)
{
	uint64_t less[CHUNK_MAX];
	const unsigned end = max < chunk->n - i ? i + max : chunk->n, last = end < chunk->n ? end : chunk->n - 1;
	column_read(&chunk->duration, less, i, last);
	for (unsigned at = 0; at < last - i; at++) {
		if (less[at] >= (uint64_t)chunk->end - (uint64_t)start)
			return attr_fail_damaged(a, k, "the intervals of a chunk are longer than the chunk", err);
		iv[at].start = start;
		iv[at].end = (int64_t)((uint64_t)start + less[at]);
		start = (int64_t)((uint64_t)iv[at].end + 1);
	}
	if (last < end) {
		iv[last - i].start = start;
		iv[last - i].end = chunk->end;
	}
	if (!read_values(chunk, i, end, iv))
		return attr_fail_damaged(a, k, "a value is out of range", err);
	return (int)(end - i);
}

int history_range_next(struct history_cursor *c, struct interval *iv, struct error *err)
{
	return history_range_read(c, iv, 1, err);
}

int history_range_read(struct history_cursor *c, struct interval *iv, unsigned max, struct error *err)
{
	struct attr a;
	struct chunk chunk;
	if (c->state[CURSOR_DONE] || max == 0)
		return 0;
	const uint32_t k = (uint32_t)c->state[CURSOR_CHUNK];
	const bool before_first = k == UINT32_MAX;
	const unsigned i = (unsigned)c->state[CURSOR_INDEX];
	int n = attr_open(&a, c->h, c->attr, err) || (!before_first && attr_chunk(&a, k, &chunk, err)) ? -1 : 1;
	if (n > 0 && before_first)
		interval_before_first(&a, iv);
	else if (n > 0)
		n = decode_intervals(&a, k, &chunk, i, (int64_t)c->state[CURSOR_START], iv, max, err);
	if (n < 0) {
		c->state[CURSOR_DONE] = 1;
		return -1;
	}
	const bool more = !before_first && i + (unsigned)n < chunk.n;
	c->state[CURSOR_CHUNK] = more ? k : k + 1;
	c->state[CURSOR_INDEX] = more ? i + (unsigned)n : 0;
	c->state[CURSOR_START] = (uint64_t)iv[n - 1].end + 1;
	c->state[CURSOR_DONE] = !more && k + 1 == a.chunks;
	for (int m = iv[n - 1].end < c->t1 ? n : 0; m < n; m++)
		if (iv[m].end >= c->t1) {
			c->state[CURSOR_DONE] = 1;
			n = m + 1;
		}
	file_report_read(c->h, c->attr, iv[0].start, iv[n - 1].end);
	return n;
}
