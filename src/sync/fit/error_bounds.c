#include "sync/fit/error_bounds.h"

#include "base/base.h"
#include "base/bisect.h"

#define BLOCK_NS 2000000000LL  /* a block's length, unless this yields fewer than BLOCKS_TARGET blocks ... */
#define BLOCKS_TARGET 32
#define BLOCKS_MAX 512         /* ... or more than BLOCKS_MAX blocks */
#define BLOCKS_MIN 4           /* with fewer blocks, a comparison is meaningless */
#define BLOCK_PAIRS 4          /* fewest pairs of each side in a block */
#define DRIFT_STEPS 4           /* points of the bounds per block while the rate changes */
#define DRIFT_PAIRS 4096        /* most pairs examined for one point */
#define FAR_NS (INT64_MAX / 8)

struct bounds { int64_t low, high; };

/* ---- bounds from pairs of a short time */

struct time_block {
	int64_t from;        /* the block's start, guest ns; the block ends at the start of the next block */
	struct bounds in;    /* bounds of the clock relative to the segment's line, ns; low > high: the pairs disagree */
	size_t pairs[2];     /* by side */
	int64_t outside_ns;  /* greatest distance from the error bounds to a clock that the pairs require, ns; 0: the pairs
	                      * agree with the bounds */
};

struct block_list {
	struct time_block *block;
	size_t n, cap;
	int64_t end;         /* end of the last block, guest ns */
	int64_t width;       /* width of a block with good pairs: lower quartile of all widths, ns */
};

/* Returns the width that 1 in `of` blocks do not exceed, ns. */
static int64_t width_quantile(const struct block_list *l, size_t of)
{
	int64_t *width = mem_new(l->n, sizeof *width);
	for (size_t i = 0; i < l->n; i++)
		width[i] = l->block[i].in.high - l->block[i].in.low;
	qsort(width, l->n, sizeof *width, order_int64);
	const int64_t found = width[l->n / of];
	free(width);
	return found;
}

/* Widens blocks narrower than l->width to that width: where the clock moves, the pairs of a block yield narrower bounds,
 * or contradict each other. */
static void widen_narrow_blocks(struct block_list *l)
{
	l->width = width_quantile(l, 4);
	for (size_t i = 0; i < l->n; i++) {
		struct bounds *in = &l->block[i].in;
		int64_t missing = max64(0, l->width - (in->high - in->low));
		in->low -= missing;
		in->high += missing;
	}
}

static bool is_block_full(const struct time_block *b, int64_t length, int64_t now)
{
	return now - b->from >= length && b->pairs[HULL_UPPER] >= BLOCK_PAIRS && b->pairs[HULL_LOWER] >= BLOCK_PAIRS;
}

/* Returns the distance from the error bounds to the clock that the pair requires, ns; 0: the pair does not contradict
 * the bounds. */
static int64_t distance_outside(const struct pair *p, const struct clock_segment *segment)
{
	if (p->rejected != PAIR_SUSPECT)
		return 0;
	int64_t by = p->side == HULL_UPPER ? clock_bound_at(&segment->low, p->x) - p->y
	                                   : p->y - clock_bound_at(&segment->high, p->x);
	return max64(0, by);
}

static bool has_error_bounds(const struct clock_segment *p)
{
	return p->low.points > 0 && p->high.points > 0;
}

/* Divides the pairs into blocks of time. suspects: includes pairs that contradict the line; the segment then needs error
 * bounds. */
static struct block_list make_blocks(const struct pair *pair, size_t n, const struct clock_segment *segment, bool suspects)
{
	struct block_list l = { .end = n == 0 ? 0 : pair[n - 1].x };
	int64_t span = n == 0 ? 0 : l.end - pair[0].x;
	int64_t length = max64(min64(BLOCK_NS, span / BLOCKS_TARGET), span / BLOCKS_MAX);
	for (size_t i = 0; i < n; i++) {
		const struct pair *p = &pair[i];
		int64_t off = p->y - clock_line_at(&segment->line, p->x);
		if (p->rejected == PAIR_GROSS || (p->rejected == PAIR_SUSPECT && !suspects))
			continue;
		if (l.n == 0 || is_block_full(&l.block[l.n - 1], length, p->x))
			*ARRAY_PUSH(l.block, l.n, l.cap) = (struct time_block){ .from = p->x, .in = { INT64_MIN, INT64_MAX } };
		struct time_block *b = &l.block[l.n - 1];
		b->pairs[p->side]++;
		b->outside_ns = max64(b->outside_ns, distance_outside(p, segment));
		if (p->side == HULL_UPPER)
			b->in.high = min64(b->in.high, off);
		else
			b->in.low = max64(b->in.low, off);
	}
	if (l.n > 0 && !is_block_full(&l.block[l.n - 1], 0, l.block[l.n - 1].from))
		l.n--;  /* the previous block extends to the end */
	return l;
}

/* Returns block k extended to its neighbours' bounds: the clock moves within a block as much as between adjacent
 * blocks. */
static struct time_block merge_neighbours(const struct block_list *l, size_t k)
{
	struct time_block a = l->block[k];
	for (size_t i = k > 0 ? k - 1 : k; i <= k + 1 && i < l->n; i++) {
		a.in.low = min64(a.in.low, l->block[i].in.low);
		a.in.high = max64(a.in.high, l->block[i].in.high);
		a.outside_ns = max64(a.outside_ns, l->block[i].outside_ns);
	}
	return a;
}

int64_t error_bounds_width(const struct pair *pair, size_t n, const struct clock_segment *segment)
{
	struct block_list l = make_blocks(pair, n, segment, false);
	const int64_t width = l.n < BLOCKS_TARGET / 2 ? -1 : width_quantile(&l, 2);
	free(l.block);
	return width;
}

/* ---- error bounds */

static bool bounds_at(const struct clock_segment *p, int64_t t, struct bounds *out)
{
	struct clock_segment copy = *p;
	return clock_map_bounds(&(struct clock_map){ .segment = &copy, .segments = 1 }, t, &out->low, &out->high);
}

struct outline {
	struct clock_point *low, *high;
	size_t n;
};

static void add_points(struct outline *o, int64_t t, struct bounds at)
{
	o->low[o->n] = (struct clock_point){ t, at.low };
	o->high[o->n++] = (struct clock_point){ t, at.high };
}

/* Returns the bounds *at widened to the block's bounds, but not by an implausible amount. local: width of a good
 * block, ns; line: host time of the segment's line. */
static struct bounds widen_by_block(int64_t local, const struct time_block *b, int64_t line, struct bounds at,
                                    bool multi_segment)
{
	struct bounds in = { line + b->in.low, line + b->in.high };
	int64_t width = at.high - at.low, by = max64(0, local - width);
	if (multi_segment || b->outside_ns > 0)
		by += width + b->outside_ns;
	if (in.low <= at.high && at.low <= in.high)
		in = (struct bounds){ max64(in.low, at.low - by), min64(in.high, at.high + by) };
	return (struct bounds){ min64(in.low, at.low), max64(in.high, at.high) };
}

/* ---- changing rate: each pair bounds the clock at nearby times */

/* Returns a clock's error after `ns` ns at a rate that is wrong by drift_change. */
static int64_t drifted_ns(int64_t drift_change, int64_t ns)
{
	return (int64_t)((double)drift_change / (double)(INT64_C(1) << 60) * (double)llabs(ns)) + 1;
}

static void tighten_by_pair(const struct error_bounds_drift *c, const struct clock_line *line, size_t i, int64_t t,
                            struct bounds *in)
{
	const struct pair *p = &c->pair[i];
	const int64_t off = p->y - clock_line_at(line, p->x), by = drifted_ns(c->drift_change, p->x - t);
	if (p->rejected == PAIR_GROSS)
		return;
	if (p->side == HULL_UPPER)
		in->high = min64(in->high, off + by);
	else
		in->low = max64(in->low, off - by);
}

/* Returns the bounds *at widened to include all clocks that satisfy the pairs around t and have a rate wrong by at most
 * c->drift_change. */
static struct bounds widen_by_pairs(const struct error_bounds_drift *c, int64_t width, const struct clock_segment *p,
                                    int64_t t, struct bounds at)
{
	const int64_t line = clock_line_at(&p->line, t);
	if (c->drift_change == 0)
		return at;
	struct bounds in = { -FAR_NS, FAR_NS };
	size_t after, before;
	BISECT(after, c->n, c->pair[after].x < t);
	before = after;
	while ((before > 0 || after < c->n) && after - before < DRIFT_PAIRS) {
		const bool back = after == c->n || (before > 0 && t - c->pair[before - 1].x < c->pair[after].x - t);
		const size_t i = back ? --before : after++;
		if (drifted_ns(c->drift_change, c->pair[i].x - t) > in.high - in.low)
			break;
		tighten_by_pair(c, &p->line, i, t, &in);
	}
	const int64_t missing = max64(0, width - (in.high - in.low));
	if (in.low == -FAR_NS || in.high == FAR_NS)
		return at;
	return (struct bounds){ min64(at.low, line + in.low - missing), max64(at.high, line + in.high + missing) };
}

/* Appends points of the widened bounds in the interval: widened by block b (NULL: none) and by the rate's change. */
static void add_outline(const struct time_block *b, int64_t width, const struct clock_segment *p,
                        const struct error_bounds_drift *c, struct ns_interval at, struct outline *o)
{
	const int steps = c->drift_change == 0 ? 1 : b ? DRIFT_STEPS : DRIFT_STEPS * BLOCKS_MIN;
	struct bounds is;
	for (int i = 0; i <= steps; i++) {
		const int64_t t = i == steps ? at.to : at.from + (at.to - at.from) / steps * i;
		if ((i > 0 && t == at.from) || !bounds_at(p, t, &is))
			continue;
		if (b)
			is = widen_by_block(width, b, clock_line_at(&p->line, t), is, c->multi_segment);
		add_points(o, t, widen_by_pairs(c, width, p, t, is));
	}
}

/* Computes the widened bounds. A lower bound is concave and an upper bound convex, so two points per block suffice
 * unless the rate changes. */
static struct outline make_outline(const struct block_list *l, const struct clock_segment *p,
                                   const struct error_bounds_drift *c, struct ns_interval all)
{
	const size_t most = (l->n + BLOCKS_MIN) * (DRIFT_STEPS + 1);
	struct outline o = { mem_new(most, sizeof *o.low), mem_new(most, sizeof *o.high), 0 };
	for (size_t k = 0; k < l->n && l->n >= BLOCKS_MIN; k++) {
		struct time_block b = merge_neighbours(l, k);
		add_outline(&b, l->width, p, c, (struct ns_interval){ b.from, k + 1 < l->n ? l->block[k + 1].from - 1 : l->end },
		            &o);
	}
	if (l->n < BLOCKS_MIN && c->drift_change > 0)
		add_outline(NULL, 0, p, c, all, &o);
	return o;
}

void error_bounds_splice(struct clock_bound *e, const struct clock_point *with, size_t k)
{
	struct clock_point *point = mem_new(e->points + k, sizeof *point);
	size_t n = 0, i = 0;
	for (; i < e->points && e->point[i].guest < with[0].guest; i++)
		point[n++] = e->point[i];
	for (size_t j = 0; j < k; j++)
		point[n++] = with[j];
	for (; i < e->points; i++)
		if (e->point[i].guest > with[k - 1].guest)
			point[n++] = e->point[i];
	free(e->point);
	e->point = point;
	e->points = n;
	e->left = (struct clock_line){ point[0].guest, point[0].host, e->left.drift };
	e->right = (struct clock_line){ point[n - 1].guest, point[n - 1].host, e->right.drift };
}

void error_bounds_widen(const struct pair *pair, size_t n, const struct error_bounds_drift *drift, int64_t last,
                        struct clock_segment *segment)
{
	if (n == 0 || !has_error_bounds(segment))
		return;
	struct block_list l = make_blocks(pair, n, segment, true);
	if (l.n > 0) {
		widen_narrow_blocks(&l);
		l.block[0].from = min64(l.block[0].from, segment->from);
		l.end = max64(l.end, last);
	}
	const struct ns_interval all = { min64(pair[0].x, segment->from), max64(pair[n - 1].x, last) };
	struct outline o = make_outline(&l, segment, drift, all);
	if (o.n > 0) {
		error_bounds_splice(&segment->low, o.low, o.n);
		error_bounds_splice(&segment->high, o.high, o.n);
	}
	free(o.low);
	free(o.high);
	free(l.block);
}

/* Replaces the bound's points in the interval by points of the other clock's bound. Just outside the interval the bound
 * is unchanged, unless it ends there. Returns false if the other clock has no bounds in the interval. */
static bool join_edge(struct clock_segment *p, bool low, const struct clock_map *other, struct ns_interval at, int64_t most)
{
	struct clock_bound *e = low ? &p->low : &p->high;
	struct clock_point *with = mem_new(e->points + 4, sizeof *with);
	const bool before = e->point[0].guest < at.from, after = e->point[e->points - 1].guest > at.to;
	size_t n = 0;
	bool joined = true;
	if (before)
		with[n++].guest = at.from - 1;
	with[n++].guest = at.from;
	for (size_t i = 0; i < e->points; i++)
		if (e->point[i].guest > at.from && e->point[i].guest < at.to)
			with[n++].guest = e->point[i].guest;
	with[n++].guest = at.to;
	if (after)
		with[n++].guest = at.to + 1;
	for (size_t i = 0; i < n; i++) {
		const int64_t t = with[i].guest, line = clock_line_at(&p->line, t);
		struct bounds b = { line, line };
		if (t >= at.from && t <= at.to)
			joined = joined && clock_map_bounds(other, t, &b.low, &b.high);
		with[i].host = clock_bound_at(e, t);
		with[i].host = low ? min64(with[i].host, max64(b.low, line - most))
		                   : max64(with[i].host, min64(b.high, line + most));
	}
	if (joined)
		error_bounds_splice(e, with, n);
	free(with);
	return joined;
}

bool error_bounds_join(struct clock_segment *p, const struct clock_map *other, struct ns_interval at, int64_t most)
{
	return has_error_bounds(p) && join_edge(p, true, other, at, most) && join_edge(p, false, other, at, most);
}
