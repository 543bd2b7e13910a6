#include "sync/fit/error_bounds.h"

#include <stdlib.h>

#include "base/bisect.h"
#include "base/mem.h"

#define BLOCK_NS 2000000000LL  /* a short time, unless there are less than ... */
#define BLOCKS_MANY 32
#define BLOCKS_MAX 512         /* ... or more than so many of them */
#define BLOCKS_MIN 4           /* fewer tell nothing of each other */
#define BLOCK_PAIRS 4          /* of each side, at least */
#define BEND_STEPS 4           /* of a block, at which a clock that bends is looked at */
#define BEND_PAIRS 4096        /* that are asked about one time, at most */
#define FAR_NS (INT64_MAX / 8)

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

struct bounds { int64_t low, high; };

/* ---- what the pairs of a short time tell */

struct time_block {
	int64_t from;        /* guest ns; it ends where the next one begins */
	struct bounds in;    /* where the clock is, ns from the line of the piece; low > high: its pairs disagree */
	size_t pairs[2];     /* by side */
	int64_t beyond;      /* how far the pairs put it out of the corridor, ns; 0 = they do not */
};

struct block_list {
	struct time_block *block;
	size_t n, cap;
	int64_t end;         /* of the last one */
	int64_t width;       /* that a block leaves whose pairs are good: the lower quartile, ns */
};

static int by_value(const void *pa, const void *pb)
{
	int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
	return a < b ? -1 : a > b;
}

/* The width that one in `of` blocks leaves at most. */
static int64_t width_of(const struct block_list *l, size_t of)
{
	int64_t *width = mem_new(l->n, sizeof *width);
	for (size_t i = 0; i < l->n; i++)
		width[i] = l->block[i].in.high - l->block[i].in.low;
	qsort(width, l->n, sizeof *width, by_value);
	const int64_t found = width[l->n / of];
	free(width);
	return found;
}

/* Where the clock moves, the pairs of a block leave less room than those of others do, or none at all: then it may be
 * off by as much again. */
static void level(struct block_list *l)
{
	l->width = width_of(l, 4);
	for (size_t i = 0; i < l->n; i++) {
		struct bounds *in = &l->block[i].in;
		int64_t lacks = larger(0, l->width - (in->high - in->low));
		in->low -= lacks;
		in->high += lacks;
	}
}

static bool is_full(const struct time_block *b, int64_t length, int64_t now)
{
	return now - b->from >= length && b->pairs[HULL_UPPER] >= BLOCK_PAIRS && b->pairs[HULL_LOWER] >= BLOCK_PAIRS;
}

/* How far the pair says that the clock is out of the corridor. */
static int64_t beyond(const struct pair *p, const struct clock_piece *piece)
{
	if (p->rejected != PAIR_SUSPECT)
		return 0;
	int64_t by = p->side == HULL_UPPER ? clock_edge_at(&piece->low, p->x) - p->y : p->y - clock_edge_at(&piece->high, p->x);
	return larger(0, by);
}

static bool has_corridor(const struct clock_piece *p)
{
	return p->low.points > 0 && p->high.points > 0;
}

/* suspects: pairs that contradict the piece's line count as well; then it has a corridor. */
static struct block_list make_blocks(const struct pair *pair, size_t n, const struct clock_piece *piece, bool suspects)
{
	struct block_list l = { .end = n == 0 ? 0 : pair[n - 1].x };
	int64_t span = n == 0 ? 0 : l.end - pair[0].x;
	int64_t length = larger(smaller(BLOCK_NS, span / BLOCKS_MANY), span / BLOCKS_MAX);
	for (size_t i = 0; i < n; i++) {
		const struct pair *p = &pair[i];
		int64_t off = p->y - clock_line_at(&piece->line, p->x);
		if (p->rejected == PAIR_GROSS || (p->rejected == PAIR_SUSPECT && !suspects))
			continue;
		if (l.n == 0 || is_full(&l.block[l.n - 1], length, p->x))
			*ARRAY_PUSH(l.block, l.n, l.cap) = (struct time_block){ .from = p->x, .in = { INT64_MIN, INT64_MAX } };
		struct time_block *b = &l.block[l.n - 1];
		b->pairs[p->side]++;
		b->beyond = larger(b->beyond, beyond(p, piece));
		if (p->side == HULL_UPPER)
			b->in.high = smaller(b->in.high, off);
		else
			b->in.low = larger(b->in.low, off);
	}
	if (l.n > 0 && !is_full(&l.block[l.n - 1], 0, l.block[l.n - 1].from))
		l.n--;  /* the one before goes on to the end */
	return l;
}

/* A block with its neighbours: the clock moves within it as it does from one to the next. */
static struct time_block about(const struct block_list *l, size_t k)
{
	struct time_block a = l->block[k];
	for (size_t i = k > 0 ? k - 1 : k; i <= k + 1 && i < l->n; i++) {
		a.in.low = smaller(a.in.low, l->block[i].in.low);
		a.in.high = larger(a.in.high, l->block[i].in.high);
		a.beyond = larger(a.beyond, l->block[i].beyond);
	}
	return a;
}

int64_t corridor_width(const struct pair *pair, size_t n, const struct clock_piece *piece)
{
	struct block_list l = make_blocks(pair, n, piece, false);
	const int64_t width = l.n < BLOCKS_MANY / 2 ? -1 : width_of(&l, 2);
	free(l.block);
	return width;
}

/* ---- corridors */

static bool bounds_at(const struct clock_piece *p, int64_t t, struct bounds *out)
{
	struct clock_piece copy = *p;
	return clock_map_bounds(&(struct clock_map){ .piece = &copy, .pieces = 1 }, t, &out->low, &out->high);
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

/* The corridor *at opened to where the block leaves the clock, as far as that can be believed. */
static struct bounds opened(int64_t local, const struct time_block *b, int64_t line, struct bounds at,
                            bool bends)
{
	struct bounds in = { line + b->in.low, line + b->in.high };
	int64_t width = at.high - at.low, by = larger(0, local - width);
	if (bends || b->beyond > 0)
		by += width + b->beyond;
	if (in.low <= at.high && at.low <= in.high)
		in = (struct bounds){ larger(in.low, at.low - by), smaller(in.high, at.high + by) };
	return (struct bounds){ smaller(in.low, at.low), larger(in.high, at.high) };
}

/* ---- clocks that bend: what every pair says of the time around it */

/* How far a clock whose rate is off by `turn` is away after so long; at most far away. */
static int64_t turned(int64_t turn, int64_t ns)
{
	return (int64_t)((double)turn / (double)(INT64_C(1) << 60) * (double)llabs(ns)) + 1;
}

static void tighten(const struct corridor_bend *c, const struct clock_line *line, size_t i, int64_t t, struct bounds *in)
{
	const struct pair *p = &c->pair[i];
	const int64_t off = p->y - clock_line_at(line, p->x), by = turned(c->turn, p->x - t);
	if (p->rejected == PAIR_GROSS)
		return;
	if (p->side == HULL_UPPER)
		in->high = smaller(in->high, off + by);
	else
		in->low = larger(in->low, off - by);
}

/* The corridor *at opened to where the pairs about t leave a clock whose rate is off the line's by c->turn at most. */
static struct bounds bent(const struct corridor_bend *c, int64_t width, const struct clock_piece *p, int64_t t,
                          struct bounds at)
{
	const int64_t line = clock_line_at(&p->line, t);
	if (c->turn == 0)
		return at;
	struct bounds in = { -FAR_NS, FAR_NS };
	size_t after, before;
	BISECT(after, c->n, c->pair[after].x < t);
	before = after;
	while ((before > 0 || after < c->n) && after - before < BEND_PAIRS) {
		const bool back = after == c->n || (before > 0 && t - c->pair[before - 1].x < c->pair[after].x - t);
		const size_t i = back ? --before : after++;
		if (turned(c->turn, c->pair[i].x - t) > in.high - in.low)
			break;
		tighten(c, &p->line, i, t, &in);
	}
	const int64_t lacks = larger(0, width - (in.high - in.low));
	if (in.low == -FAR_NS || in.high == FAR_NS)
		return at;
	return (struct bounds){ smaller(at.low, line + in.low - lacks), larger(at.high, line + in.high + lacks) };
}

/* Points from `from` to `to`, at which the corridor is opened: by what a block tells, if there is one, and by how the clock
 * bends. */
static void draw_span(const struct time_block *b, int64_t width, const struct clock_piece *p, const struct corridor_bend *c,
                      struct segment at, struct outline *o)
{
	const int steps = c->turn == 0 ? 1 : b ? BEND_STEPS : BEND_STEPS * BLOCKS_MIN;
	struct bounds is;
	for (int i = 0; i <= steps; i++) {
		const int64_t t = i == steps ? at.to : at.from + (at.to - at.from) / steps * i;
		if ((i > 0 && t == at.from) || !bounds_at(p, t, &is))
			continue;
		if (b)
			is = opened(width, b, clock_line_at(&p->line, t), is, c->bends);
		add_points(o, t, bent(c, width, p, t, is));
	}
}

/* Low edges are concave and high ones are convex: they lie within their chords, so two points for each block do, but where
 * the clock bends. */
static struct outline draw(const struct block_list *l, const struct clock_piece *p, const struct corridor_bend *c,
                           struct segment all)
{
	const size_t most = (l->n + BLOCKS_MIN) * (BEND_STEPS + 1);
	struct outline o = { mem_new(most, sizeof *o.low), mem_new(most, sizeof *o.high), 0 };
	for (size_t k = 0; k < l->n && l->n >= BLOCKS_MIN; k++) {
		struct time_block b = about(l, k);
		draw_span(&b, l->width, p, c, (struct segment){ b.from, k + 1 < l->n ? l->block[k + 1].from - 1 : l->end }, &o);
	}
	if (l->n < BLOCKS_MIN && c->turn > 0)
		draw_span(NULL, 0, p, c, all, &o);
	return o;
}

void corridor_splice(struct clock_edge *e, const struct clock_point *with, size_t k)
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

void corridor_open(const struct pair *pair, size_t n, const struct corridor_bend *bend, int64_t last,
                   struct clock_piece *piece)
{
	if (n == 0 || !has_corridor(piece))
		return;
	struct block_list l = make_blocks(pair, n, piece, true);
	if (l.n > 0) {
		level(&l);
		l.block[0].from = smaller(l.block[0].from, piece->from);
		l.end = larger(l.end, last);
	}
	const struct segment all = { smaller(pair[0].x, piece->from), larger(pair[n - 1].x, last) };
	struct outline o = draw(&l, piece, bend, all);
	if (o.n > 0) {
		corridor_splice(&piece->low, o.low, o.n);
		corridor_splice(&piece->high, o.high, o.n);
	}
	free(o.low);
	free(o.high);
	free(l.block);
}

/* The edge's points from `from` to `to` and those ends give way to the other clock's edge; just before and after them it
 * stays where it is, unless it ends there. */
static bool join_edge(struct clock_piece *p, bool low, const struct clock_map *other, struct segment at, int64_t most)
{
	struct clock_edge *e = low ? &p->low : &p->high;
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
		with[i].host = clock_edge_at(e, t);
		with[i].host = low ? smaller(with[i].host, larger(b.low, line - most))
		                   : larger(with[i].host, smaller(b.high, line + most));
	}
	if (joined)
		corridor_splice(e, with, n);
	free(with);
	return joined;
}

bool corridor_join(struct clock_piece *p, const struct clock_map *other, struct segment at, int64_t most)
{
	return has_corridor(p) && join_edge(p, true, other, at, most) && join_edge(p, false, other, at, most);
}
