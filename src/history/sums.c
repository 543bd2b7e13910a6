/* Time per state.
 *
 * Each index row contains F(start): the time per state from the first change to the start of its chunk. F(t) is F(start)
 * plus the time in a part of one chunk. A window's sums are F(t1 + 1) - F(t0), whatever its length. Adjacent cells share
 * their edges, and the next edges' chunks are prefetched while one is decoded. */
#include "history/file.h"

#define PREFETCH_CELLS 8    /* cells prefetched in advance */
#define GROUP 8  /* durations decoded at a time; their codes (at most 5 bits each) fit into one word */
#define NO_STATE HISTORY_STATES

/* Computes F(t) for ascending t. */
struct tally {
	struct attr a;
	struct chunk c;
	uint32_t k;                 /* loaded chunk, or UINT32_MAX */
	uint32_t row;            /* index row with the sums F for which part[] is zero: k, or k + 1 after reading backwards
	                          * from the end */
	unsigned i;              /* the interval's index in the chunk that contains the last t */
	unsigned from, to;          /* less[] holds the durations in [from, to) */
	unsigned exception;      /* the durations' next exception */
	int64_t at;              /* when interval i starts */
	uint64_t part[32];       /* time per code between the row's time and `at`; modulo 2^64, because it may be negative */
	uint64_t less[GROUP];    /* durations - 1 */
	unsigned codes;          /* codes that the chunk's width can express */
	uint8_t state[32];          /* each code's state, or NO_STATE */
};

static int tally_open(struct tally *y, const struct history *h, uint32_t attr, struct error *err)
{
	y->k = UINT32_MAX;
	y->row = 0;
	return attr_open_states(&y->a, h, attr, err);
}

/* Decodes the next durations into less[]. Returns their sum if there are STRIDE durations, otherwise UINT64_MAX. */
static uint64_t tally_decode(struct tally *y)
{
	unsigned last = y->c.n - 1;
	y->from = y->to;
	if (last - y->to >= GROUP && y->c.duration.width < 64) {
		y->to += GROUP;
		return column_eight(&y->c.duration, y->less, y->from, &y->exception) + GROUP;
	}
	y->to = last - y->to < GROUP ? last : y->to + GROUP;
	column_part(&y->c.duration, y->less, y->from, y->to, &y->exception);
	return UINT64_MAX;
}

/* Adds the STRIDE decoded durations to their codes' times; backwards: subtracts them. */
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

/* Maps each code to its state. */
static void tally_states(struct tally *y)
{
	const struct chunk *c = &y->c;
	y->codes = 1u << c->code.width;
	bool plain = !c->dict && c->base + 1 <= HISTORY_STATES - y->codes;  /* a base of -1 is null; modulo 32 it is the null
	                                                                     * state */
	for (unsigned code = 0; plain && code < 32; code++)
		y->state[code] = (uint8_t)(c->base + code) % HISTORY_STATES;
	for (unsigned code = 0; !plain && code < y->codes; code++) {
		int64_t value;
		y->state[code] = !chunk_decode(c, code, &value) ? NO_STATE : value == HISTORY_NULL ? NULL_STATE : (uint8_t)value;
	}
}

/* Starts to read at the chunk's front. */
static void tally_start_front(struct tally *y)
{
	for (unsigned code = 0; code < y->codes; code++)
		y->part[code] = 0;
	y->i = y->from = y->to = y->exception = 0;
	y->at = y->c.start;
	y->row = y->k;
}

/* Reads backwards from the chunk's end to a group of STRIDE durations that begins at or before t. */
static void tally_start_back(struct tally *y, int64_t t)
{
	const struct packed_column *d = &y->c.duration;
	unsigned first = d->exceptions;
	tally_start_front(y);
	y->row++;
	y->from = y->c.n;
	for (uint64_t remaining = (uint64_t)y->c.end + 1 - (uint64_t)t, sum; y->from >= GROUP; remaining -= sum) {
		y->from -= GROUP;
		while (first && d->exception[first - 1] >= y->from)
			first--;
		y->exception = first;
		sum = column_eight(d, y->less, y->from, &y->exception) + GROUP;
		tally_add(y, true);
		if (sum < remaining)
			continue;
		y->i = y->from;
		y->to = y->from + GROUP < y->c.n ? y->from + GROUP : y->c.n - 1;
		y->at = (int64_t)((uint64_t)t + remaining - sum);
		return;
	}
	tally_start_front(y);  /* t is in the incomplete group at the chunk's start */
}

/* Loads chunk k, and starts reading for time t from the closer end. */
static int tally_load(struct tally *y, uint32_t k, int64_t t, struct error *err)
{
	y->k = UINT32_MAX;
	if (attr_chunk(&y->a, k, &y->c, err))
		return -1;
	y->k = k;
	tally_states(y);
	if (y->c.duration.n == y->c.n && y->c.duration.width < 64 && k + 1 < y->a.chunks &&
	    (uint64_t)y->c.end - (uint64_t)t < (uint64_t)t - (uint64_t)y->c.start)
		tally_start_back(y, t);
	else
		tally_start_front(y);
	return 0;
}

/* Advances to the interval that contains t. Returns t's offset in this interval, ns. */
static uint64_t tally_advance(struct tally *y, int64_t t)
{
	uint64_t remaining = (uint64_t)t - (uint64_t)y->at;
	unsigned last = y->c.n - 1, width = y->c.code.width;
	for (;;) {
		for (; y->i < y->to && y->less[y->i - y->from] < remaining; y->i++) {
			uint64_t ns = y->less[y->i - y->from] + 1;
			remaining -= ns;
			y->part[packed_get(y->c.code.packed, width, y->i)] += ns;
		}
		if (y->i < y->to || y->i >= last)
			break;
		for (uint64_t sum; (sum = tally_decode(y)) <= remaining; remaining -= sum) {
			tally_add(y, false);
			y->i = y->to;
		}
	}
	y->at = (int64_t)((uint64_t)t - remaining);
	return remaining;
}

/* Computes F(t) into f. t is in chunk k or directly after it; k == chunks: t precedes the first change. f does not
 * change for states that the attribute never has. */
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
	uint64_t remaining = tally_advance(y, t), now = packed_get(y->c.code.packed, y->c.code.width, y->i);
	uint64_t used_states = 0;
	for (unsigned code = 0; code < y->codes; code++) {
		uint64_t ns = y->part[code] + (code == now ? remaining : 0);
		f[y->state[code]] += ns;
		used_states |= (uint64_t)(ns != 0) << y->state[code];
	}
	if (!(used_states & ~(uint64_t)y->a.mask))
		return 0;
	return attr_fail_damaged(&y->a, k, "a chunk contains a state that its attribute does not declare", err);
}

/* Returns the part of [t0, t1) before the first change, ns. */
static uint64_t before_first(const struct attr *a, int64_t t0, int64_t t1)
{
	int64_t first = a->chunks ? attr_start(a, 0) : a->h->end + 1;
	int64_t until = t1 < first ? t1 : first;
	return until > t0 ? (uint64_t)until - (uint64_t)t0 : 0;
}

/* Finds the chunks for the cells' edges, in ascending order. */
struct edge_seeker {
	const struct attr *a;
	uint32_t k, stride;      /* the last edge's chunk; its distance from the previous edge's chunk */
	int64_t until;           /* where that chunk ends, excluded */
	uint32_t chunk[PREFETCH_CELLS];  /* edge i's chunk at index i % PREFETCH_CELLS */
};

static int64_t clamp_edge(const struct history *h, int64_t t)
{
	return t < h->begin ? h->begin : t > h->end ? h->end + 1 : t;
}

/* Finds edge i's chunk and prefetches it: for cells wider than chunks the memory latency dominates. */
static int seek_edge(struct edge_seeker *s, const int64_t *edge, unsigned i, struct error *err)
{
	const struct attr *a = s->a;
	uint32_t k, hint = s->k < a->chunks ? s->k + s->stride : 0;
	int64_t t = clamp_edge(a->h, edge[i]);
	if (i && t < s->until && edge[i] >= edge[i - 1]) {
		s->chunk[i % PREFETCH_CELLS] = s->k;
		return 0;
	}
	if (i > 1 ? attr_seek_hint(a, t, hint, &k, err) : attr_seek(a, t, &k, err))
		return -1;
	s->until = k + 1 < a->chunks ? attr_start(a, k + 1) : k < a->chunks ? a->h->end + 2 : INT64_MIN;
	s->stride = i && s->k < k && k < a->chunks ? k - s->k : 0;
	if (k < a->chunks && (k != s->k || !i))
		attr_prefetch(a, k, k + s->stride);
	s->k = s->chunk[i % PREFETCH_CELLS] = k;
	return 0;
}

/* Sets a cell's sums; it has `length` ns, and `leading` ns before the first change. Returns false if they do not
 * add up to its length. */
static bool set_cell_sums(const uint64_t *to, const uint64_t *from, uint64_t leading, uint64_t length, int64_t *sums)
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
	struct edge_seeker edge_seeker = { .a = &y.a };
	uint64_t f[2][HISTORY_STATES + 1] = { 0 };
	if (tally_open(&y, h, attr, err))
		return -1;
	if (clamp_edge(h, edge[0]) < clamp_edge(h, edge[n]))
		file_report_read(h, attr, clamp_edge(h, edge[0]), clamp_edge(h, edge[n]) - 1);
	int64_t t = 0, last;
	for (unsigned i = 0, next = 0; i <= n; i++) {
		for (; next <= n && next < i + PREFETCH_CELLS; next++)
			if (seek_edge(&edge_seeker, edge, next, err))
				return -1;
		uint32_t k = edge_seeker.chunk[i % PREFETCH_CELLS];
		last = t;
		t = clamp_edge(h, edge[i]);
		if (tally_to(&y, k, t, f[i & 1], err))
			return -1;
		if (!i)
			continue;
		if (edge[i] < edge[i - 1])
			return error_set(err, STATUS_USAGE, NULL, "%s: the edges of cells do not ascend", h->path);
		if (!set_cell_sums(f[i & 1], f[~i & 1], before_first(&y.a, last, t), (uint64_t)t - (uint64_t)last, sums[i - 1]))
			return file_fail_damaged(h, y.a.index + (uint64_t)y.a.row * k, "the sums of the index do not add up", err);
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
