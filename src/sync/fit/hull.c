#include "sync/fit/hull.h"

#include "base/bisect.h"
#include "base/int128.h"

#define FAR (INT64_C(1) << 61)

void hull_init(struct hull *h)
{
	memset(h, 0, sizeof *h);
}

void hull_release(struct hull *h)
{
	free(h->side[HULL_UPPER].point);
	free(h->side[HULL_LOWER].point);
	hull_init(h);
}

/* Returns a positive value if c lies above the line through a and b (a.x < b.x), a negative one if below, 0 if on it. */
static int128 height_above(struct hull_point a, struct hull_point b, struct hull_point c)
{
	return (int128)(b.x - a.x) * (c.y - a.y) - (int128)(b.y - a.y) * (c.x - a.x);
}

/* Returns the sign of slope(p) - slope(q). */
static int slope_cmp(const struct hull_line *p, const struct hull_line *q)
{
	int128 d = (int128)(p->b.y - p->a.y) * (q->b.x - q->a.x) - (int128)(q->b.y - q->a.y) * (p->b.x - p->a.x);
	return d > 0 ? 1 : d < 0 ? -1 : 0;
}

/* Returns +1 if only points below the chain of this side change it, -1 if only points above. */
static int side_sign(enum hull_side side)
{
	return side == HULL_UPPER ? 1 : -1;
}

/* Returns the index of the first vertex with at least this x; c->len: none. */
static size_t chain_find(const struct hull_chain *c, int64_t x)
{
	size_t at;
	if (c->len > 0 && c->point[c->len - 1].x < x)
		return c->len;  /* the common case: points are added in order */
	BISECT(at, c->len, c->point[at].x < x);
	return at;
}

/* Adds a point to its chain. Returns false if the chain implies the point already. */
static bool chain_add(struct hull_chain *c, enum hull_side side, struct hull_point p)
{
	int sign = side_sign(side);
	size_t at = chain_find(c, p.x);
	bool same = at < c->len && c->point[at].x == p.x;
	if (same && (p.y - c->point[at].y) * sign >= 0)
		return false;
	if (!same && at > 0 && at < c->len && height_above(c->point[at - 1], c->point[at], p) * sign >= 0)
		return false;
	/* vertices [from, to) become redundant */
	size_t from = at, to = same ? at + 1 : at;
	while (from >= 2 && height_above(c->point[from - 2], p, c->point[from - 1]) * sign >= 0)
		from--;
	while (to + 1 < c->len && height_above(p, c->point[to + 1], c->point[to]) * sign >= 0)
		to++;
	if (to == from) {
		(void)ARRAY_PUSH(c->point, c->len, c->cap);
		memmove(&c->point[from + 1], &c->point[from], (c->len - 1 - from) * sizeof *c->point);
	} else {
		memmove(&c->point[from + 1], &c->point[to], (c->len - to) * sizeof *c->point);
		c->len -= to - from - 1;
	}
	c->point[from] = p;
	return true;
}

/* Updates the extreme lines: tries the lines through p and each vertex of the other chain, and keeps the tightest. */
static void tighten_lines(struct hull *h, enum hull_side side, struct hull_point p)
{
	const struct hull_chain *other = &h->side[side == HULL_UPPER ? HULL_LOWER : HULL_UPPER];
	/* An upper point can be the right end of max_slope and the left end of min_slope; a lower point the other way round. */
	struct hull_line *as_right = side == HULL_UPPER ? &h->max_slope : &h->min_slope;
	struct hull_line *as_left = side == HULL_UPPER ? &h->min_slope : &h->max_slope;
	int sign = side_sign(side);  /* as_right: an upper point lowers the slope, a lower point raises it */
	bool cuts_right = !as_right->known || height_above(as_right->a, as_right->b, p) * sign < 0;
	bool cuts_left = !as_left->known || height_above(as_left->a, as_left->b, p) * sign < 0;
	size_t at = chain_find(other, p.x);
	for (size_t i = 0; cuts_right && i < at; i++) {
		struct hull_line line = { true, other->point[i], p };
		if (!as_right->known || slope_cmp(&line, as_right) * sign < 0)
			*as_right = line;
	}
	for (size_t i = at; cuts_left && i < other->len; i++) {
		struct hull_line line = { true, p, other->point[i] };
		if (line.b.x > p.x && (!as_left->known || slope_cmp(&line, as_left) * sign > 0))
			*as_left = line;
	}
}

/* Returns true if p lies beyond the bound of the other side at p.x (for an upper point the lower bound); false also if
 * there is no bound. */
static bool point_contradicts(const struct hull *h, enum hull_side side, struct hull_point p)
{
	const struct hull_chain *other = &h->side[side == HULL_UPPER ? HULL_LOWER : HULL_UPPER];
	int sign = side_sign(side);
	/* Left of its anchor the lower bound runs on max_slope, right of its anchor on min_slope; the upper bound is the
	 * mirror image. */
	const struct hull_line *left = side == HULL_UPPER ? &h->max_slope : &h->min_slope;
	const struct hull_line *right = side == HULL_UPPER ? &h->min_slope : &h->max_slope;
	if (left->known && p.x <= left->a.x)
		return height_above(left->a, left->b, p) * sign < 0;
	if (right->known && p.x >= right->b.x)
		return height_above(right->a, right->b, p) * sign < 0;
	size_t at = chain_find(other, p.x);
	if (at < other->len && other->point[at].x == p.x)
		return (p.y - other->point[at].y) * sign < 0;
	if (at == 0 || at == other->len)
		return false;
	return height_above(other->point[at - 1], other->point[at], p) * sign < 0;
}

/* Makes the coordinates of p relative to the origin. Returns false if the point is too far away. */
static bool make_relative(struct hull *h, int64_t x, int64_t y, struct hull_point *p)
{
	if (!h->started) {
		h->started = true;
		h->origin = (struct hull_point){ x, y };
	}
	if (__builtin_sub_overflow(x, h->origin.x, &p->x) || __builtin_sub_overflow(y, h->origin.y, &p->y))
		return false;
	return p->x > -FAR && p->x < FAR && p->y > -FAR && p->y < FAR;
}

enum hull_effect hull_add(struct hull *h, enum hull_side side, int64_t x, int64_t y)
{
	struct hull_point p;
	if (!make_relative(h, x, y, &p) || point_contradicts(h, side, p))
		return HULL_CONTRADICTS;
	h->count[side]++;
	if (!chain_add(&h->side[side], side, p))
		return HULL_NOTHING;
	h->rays_known = false;
	tighten_lines(h, side, p);
	return HULL_TIGHTER;
}

enum sync_quality hull_quality(const struct hull *h)
{
	if (h->count[HULL_UPPER] == 0 && h->count[HULL_LOWER] == 0)
		return SYNC_ABSENT;
	if (!h->min_slope.known && !h->max_slope.known)
		return SYNC_INCOMPLETE;
	return h->min_slope.known && h->max_slope.known ? SYNC_ACCURATE : SYNC_APPROXIMATE;
}
