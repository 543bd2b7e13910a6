/* Time per state.
 *
 * Each index row holds the cumulative time per state from the first change up to its chunk, F(start).  F(t) is that
 * plus a part of one chunk; a window is F(t1 + 1) - F(t0), whatever it spans.  Cells in a row share their edges, and
 * the chunks of the edges to come are fetched from memory while one is decoded. */
#include "history/file.h"

#define AHEAD 8    /* cells whose chunks are fetched before their turn */
#define STRIDE 8  /* durations decoded at a time; their codes (5 bits at most) fit one word */
#define NO_STATE HISTORY_STATES

/* A moving F(t). */
struct tally {
	struct attr a;
	struct chunk c;
	uint32_t k;                 /* the chunk that is loaded, or UINT32_MAX */
	uint32_t row;               /* its sums are F where part[] is zero: k, or k + 1 for a walk from the end */
	unsigned i;                 /* interval in the chunk */
	unsigned from, to;          /* less[] holds the durations of [from, to) */
	unsigned exception;         /* of the durations, the next one to decode */
	int64_t at;                 /* start of i */
	uint64_t part[32];          /* time per code from the row's time to `at`; modulo 2^64, as it may be behind */
	uint64_t less[STRIDE];      /* durations - 1 */
	unsigned codes;             /* that a chunk's width allows */
	uint8_t state[32];          /* of each code, or NO_STATE */
};

static int tally_open(struct tally *y, const struct history *h, uint32_t attr, struct error *err)
{
	y->k = UINT32_MAX;
	y->row = 0;
	return attr_open_states(&y->a, h, attr, err);
}

/* Decodes the next durations; returns their sum when there are STRIDE of them, else more than any time. */
static uint64_t tally_decode(struct tally *y)
{
	unsigned last = y->c.n - 1;
	y->from = y->to;
	if (last - y->to >= STRIDE && y->c.duration.width < 64) {
		y->to += STRIDE;
		return column_eight(&y->c.duration, y->less, y->from, &y->exception) + STRIDE;
	}
	y->to = last - y->to < STRIDE ? last : y->to + STRIDE;
	column_part(&y->c.duration, y->less, y->from, y->to, &y->exception);
	return UINT64_MAX;
}

/* Adds the STRIDE durations at hand to the time of their codes; backwards takes them away. */
static inline __attribute__((always_inline)) void tally_add(struct tally *y, bool backwards)
{
	unsigned width = y->c.code.width, mask = (1u << width) - 1;
	size_t bit = (size_t)y->from * width;
	uint64_t codes = get64(y->c.code.packed + bit / 8) >> bit % 8;
#define TALLY_STEP(j) y->part[codes & mask] += backwards ? ~y->less[j] : y->less[j] + 1, codes >>= width
	TALLY_STEP(0);
	TALLY_STEP(1);
	TALLY_STEP(2);
	TALLY_STEP(3);
	TALLY_STEP(4);
	TALLY_STEP(5);
	TALLY_STEP(6);
	TALLY_STEP(7);
#undef TALLY_STEP
}

/* What state each code is. */
static void tally_states(struct tally *y)
{
	const struct chunk *c = &y->c;
	y->codes = 1u << c->code.width;
	bool plain = !c->dict && c->base + 1 <= HISTORY_STATES - y->codes;  /* a base of -1 is null, modulo 32 its state */
	for (unsigned code = 0; plain && code < 32; code++)
		y->state[code] = (uint8_t)(c->base + code) % HISTORY_STATES;
	for (unsigned code = 0; !plain && code < y->codes; code++) {
		int64_t value;
		y->state[code] = !chunk_decode(c, code, &value) ? NO_STATE : value == HISTORY_NULL ? NULL_STATE : (uint8_t)value;
	}
}

/* From the front of the chunk. */
static void tally_front(struct tally *y)
{
	for (unsigned code = 0; code < y->codes; code++)
		y->part[code] = 0;
	y->i = y->from = y->to = y->exception = 0;
	y->at = y->c.start;
	y->row = y->k;
}

/* From the end of the chunk back to a stride that begins at or before t. */
static void tally_back(struct tally *y, int64_t t)
{
	const struct packed_column *d = &y->c.duration;
	unsigned first = d->exceptions;
	tally_front(y);
	y->row++;
	y->from = y->c.n;
	for (uint64_t left = (uint64_t)y->c.end + 1 - (uint64_t)t, sum; y->from >= STRIDE; left -= sum) {
		y->from -= STRIDE;
		while (first && d->place[first - 1] >= y->from)
			first--;
		y->exception = first;
		sum = column_eight(d, y->less, y->from, &y->exception) + STRIDE;
		tally_add(y, true);
		if (sum < left)
			continue;
		y->i = y->from;
		y->to = y->from + STRIDE < y->c.n ? y->from + STRIDE : y->c.n - 1;
		y->at = (int64_t)((uint64_t)t + left - sum);
		return;
	}
	tally_front(y);  /* t lies in what is left of a chunk that is no multiple of a stride */
}

/* Loads chunk k for a time in it, from the end that is nearer. */
static int tally_load(struct tally *y, uint32_t k, int64_t t, struct error *err)
{
	y->k = UINT32_MAX;
	if (attr_chunk(&y->a, k, &y->c, err))
		return -1;
	y->k = k;
	tally_states(y);
	if (y->c.duration.n == y->c.n && y->c.duration.width < 64 && k + 1 < y->a.chunks &&
	    (uint64_t)y->c.end - (uint64_t)t < (uint64_t)t - (uint64_t)y->c.start)
		tally_back(y, t);
	else
		tally_front(y);
	return 0;
}

/* Moves on to the interval that holds t; returns how far into it t is. */
static uint64_t tally_walk(struct tally *y, int64_t t)
{
	uint64_t left = (uint64_t)t - (uint64_t)y->at;
	unsigned last = y->c.n - 1, width = y->c.code.width;
	for (;;) {
		for (; y->i < y->to && y->less[y->i - y->from] < left; y->i++) {
			uint64_t ns = y->less[y->i - y->from] + 1;
			left -= ns;
			y->part[packed_get(y->c.code.packed, width, y->i)] += ns;
		}
		if (y->i < y->to || y->i >= last)
			break;
		for (uint64_t sum; (sum = tally_decode(y)) <= left; left -= sum) {
			tally_add(y, false);
			y->i = y->to;
		}
	}
	y->at = (int64_t)((uint64_t)t - left);
	return left;
}

/* F(t) into f, where t lies in chunk k or is one behind it; k == chunks: t precedes the first change.  States that
 * the attribute never has stay as they are in f. */
static int tally_to(struct tally *y, uint32_t k, int64_t t, uint64_t f[HISTORY_STATES + 1], struct error *err)
{
	bool before = k == y->a.chunks;
	if (!before && (y->k != k || t < y->at) && tally_load(y, k, t, err))
		return -1;
	const uint8_t *sum = y->a.rows + (uint64_t)y->a.row * y->row + ROW_SUMS;
	bool sums = !before && y->a.sums;
	for (uint32_t states = y->a.mask; states; states &= states - 1, sum += 8)
		f[__builtin_ctz(states)] = sums ? get64(sum) : 0;
	if (before)
		return 0;
	uint64_t left = tally_walk(y, t), now = packed_get(y->c.code.packed, y->c.code.width, y->i);
	uint64_t seen = 0;
	for (unsigned code = 0; code < y->codes; code++) {
		uint64_t ns = y->part[code] + (code == now ? left : 0);
		f[y->state[code]] += ns;
		seen |= (uint64_t)(ns != 0) << y->state[code];
	}
	return seen & ~(uint64_t)y->a.mask ? attr_damaged(&y->a, k, "a chunk has a state that its attribute has not", err) : 0;
}

/* Time of [t0, t1) before the first change. */
static uint64_t before_first(const struct attr *a, int64_t t0, int64_t t1)
{
	int64_t first = a->chunks ? attr_start(a, 0) : a->h->end + 1;
	int64_t until = t1 < first ? t1 : first;
	return until > t0 ? (uint64_t)until - (uint64_t)t0 : 0;
}

/* The chunks of cells in a row, sought in order. */
struct seeker {
	const struct attr *a;
	uint32_t k, stride;         /* chunk of the last edge, and how far it was from the one before */
	int64_t until;              /* that chunk ends before */
	uint32_t chunk[AHEAD];      /* of edge i at i % AHEAD */
};

static int64_t clamp_edge(const struct history *h, int64_t t)
{
	return t < h->begin ? h->begin : t > h->end ? h->end + 1 : t;
}

/* Seeks edge i and has its chunk fetched: waiting for memory is most of the work when cells are wider than chunks. */
static int seek_edge(struct seeker *s, const int64_t *edge, unsigned i, struct error *err)
{
	const struct attr *a = s->a;
	uint32_t k, guess = s->k < a->chunks ? s->k + s->stride : 0;
	int64_t t = clamp_edge(a->h, edge[i]);
	if (i && t < s->until && edge[i] >= edge[i - 1]) {
		s->chunk[i % AHEAD] = s->k;
		return 0;
	}
	if (i ? attr_seek_near(a, t, guess, &k, err) : attr_seek(a, t, &k, err))
		return -1;
	s->until = k + 1 < a->chunks ? attr_start(a, k + 1) : k < a->chunks ? a->h->end + 2 : INT64_MIN;
	s->stride = i && s->k < k && k < a->chunks ? k - s->k : 0;
	if (k < a->chunks && (k != s->k || !i))
		attr_prefetch(a, k, k + s->stride);
	s->k = s->chunk[i % AHEAD] = k;
	return 0;
}

/* A cell of `length` ns, `leading` of them before the first change.  False when its states do not fill it. */
static bool cell_sums(const uint64_t *to, const uint64_t *from, uint64_t leading, uint64_t length, int64_t *sums)
{
	uint64_t total = leading, high = 0;
	for (unsigned s = 0; s < HISTORY_STATES; s++) {
		uint64_t ns = to[s] - from[s];
		sums[s] = (int64_t)ns;
		total += ns;
		high |= ns;
	}
	sums[NULL_STATE] = (int64_t)((uint64_t)sums[NULL_STATE] + leading);
	return total == length && !(high >> 63);
}

int history_sums_cells(const struct history *h, uint32_t attr, const int64_t *edge, unsigned n,
                       int64_t (*sums)[HISTORY_STATES], struct error *err)
{
	struct tally y;
	struct seeker seeker = { .a = &y.a };
	uint64_t f[2][HISTORY_STATES + 1] = { 0 };
	if (tally_open(&y, h, attr, err))
		return -1;
	int64_t t = 0, last;
	for (unsigned i = 0, next = 0; i <= n; i++) {
		for (; next <= n && next < i + AHEAD; next++)
			if (seek_edge(&seeker, edge, next, err))
				return -1;
		uint32_t k = seeker.chunk[i % AHEAD];
		last = t;
		t = clamp_edge(h, edge[i]);
		if (tally_to(&y, k, t, f[i & 1], err))
			return -1;
		if (!i)
			continue;
		if (edge[i] < edge[i - 1])
			return error_set(err, STATUS_USAGE, NULL, "%s: the edges of cells do not ascend", h->path);
		if (!cell_sums(f[i & 1], f[~i & 1], before_first(&y.a, last, t), (uint64_t)t - (uint64_t)last, sums[i - 1]))
			return file_damaged(h, y.a.index + (uint64_t)y.a.row * k, "the sums of the index do not add up", err);
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
