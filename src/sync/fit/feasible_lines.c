/* A hull's feasible lines: bounds of y at one x, and the error bounds as a clock segment. */
#include "base/base.h"
#include "sync/fit/hull.h"

#include "base/bisect.h"
#include "base/int128.h"

#define PPM 1000000
#define DRIFT_ONE ((int128)1 << 60)

/* Returns a / b rounded down, b > 0; *rest: remainder in [0, b). */
static int128 floor_div(int128 a, int128 b, int128 *rest)
{
	int128 q = a / b, r = a % b;
	if (r < 0) {
		q--;
		r += b;
	}
	*rest = r;
	return q;
}

/* Returns y of the ray at x, rounded down; *fraction: the remainder in units of 1 / 65536. */
static int128 ray_at(const struct hull_ray *r, int64_t x, unsigned *fraction)
{
	int128 rest, q = floor_div(((int128)x - r->at.x) * r->dy, r->dx, &rest);
	*fraction = (unsigned)(rest * 65536 / r->dx);
	if (*fraction == 0 && rest != 0)
		*fraction = 1;  /* never 0 for a nonzero remainder, so that rounding up works */
	return q + r->at.y;
}

/* Returns the ray with this slope that touches the chain from outside. */
static struct hull_ray tangent_ray(const struct hull_chain *c, enum hull_side side, int64_t dx, int64_t dy)
{
	struct hull_ray r = { c->len > 0, { 0, 0 }, dx, dy };
	for (size_t i = 0; i < c->len; i++) {
		struct hull_point p = c->point[i];
		int128 above = (int128)(p.y - r.at.y) * dx - (int128)(p.x - r.at.x) * dy;
		if (i == 0 || (side == HULL_UPPER ? above < 0 : above > 0))
			r.at = p;
	}
	return r;
}

static struct hull_ray ray_along(const struct hull_line *line, struct hull_point at)
{
	return (struct hull_ray){ line->known, at, line->b.x - line->a.x, line->b.y - line->a.y };
}

/* Returns the sign of (slope of the line - (1 + ppm / 1e6)). */
static int compare_slope_ppm(const struct hull_line *line, int64_t ppm)
{
	int128 d = (int128)(line->b.y - line->a.y) * PPM - (int128)(line->b.x - line->a.x) * (PPM + ppm);
	return d > 0 ? 1 : d < 0 ? -1 : 0;
}

static void find_rays(struct hull *h, unsigned limit_ppm)
{
	if (h->rays_known && h->rays_limit == limit_ppm)
		return;
	int64_t limit = limit_ppm;
	const struct hull_chain *up = &h->side[HULL_UPPER], *low = &h->side[HULL_LOWER];
	struct hull_rays *r = &h->rays;
	/* If no line within the limit satisfies the points, the points take precedence. */
	if ((h->min_slope.known && compare_slope_ppm(&h->min_slope, limit) > 0) ||
	    (h->max_slope.known && compare_slope_ppm(&h->max_slope, -limit) < 0))
		limit = 0;
	const bool cut_most = limit > 0 && (!h->max_slope.known || compare_slope_ppm(&h->max_slope, limit) > 0);
	const bool cut_least = limit > 0 && (!h->min_slope.known || compare_slope_ppm(&h->min_slope, -limit) < 0);
	r->low_left = cut_most ? tangent_ray(low, HULL_LOWER, PPM, PPM + limit) : ray_along(&h->max_slope, h->max_slope.a);
	r->high_right = cut_most ? tangent_ray(up, HULL_UPPER, PPM, PPM + limit) : ray_along(&h->max_slope, h->max_slope.b);
	r->high_left = cut_least ? tangent_ray(up, HULL_UPPER, PPM, PPM - limit) : ray_along(&h->min_slope, h->min_slope.a);
	r->low_right = cut_least ? tangent_ray(low, HULL_LOWER, PPM, PPM - limit) : ray_along(&h->min_slope, h->min_slope.b);
	r->cut = cut_most || cut_least;
	h->rays_known = true;
	h->rays_limit = limit_ppm;
}

/* Gets y of one bound at x, rounded down, and its fraction. Returns false if no bound exists there. */
static bool edge_at(const struct hull_chain *c, const struct hull_ray *left, const struct hull_ray *right, int64_t x,
                    int128 *y, unsigned *fraction)
{
	if (left->known && x <= left->at.x) {
		*y = ray_at(left, x, fraction);
		return true;
	}
	if (right->known && x >= right->at.x) {
		*y = ray_at(right, x, fraction);
		return true;
	}
	if (c->len == 0 || x < c->point[0].x || x > c->point[c->len - 1].x)
		return false;
	size_t at;
	BISECT(at, c->len, c->point[at].x < x);  /* point[at - 1].x < x <= point[at].x */
	struct hull_point a = c->point[at > 0 ? at - 1 : 0], b = c->point[at];
	struct hull_ray edge = { true, a, at == 0 ? 1 : b.x - a.x, at == 0 ? 0 : b.y - a.y };
	*y = ray_at(&edge, x, fraction);
	return true;
}

bool hull_bounds(struct hull *h, int64_t x, unsigned limit_ppm, int64_t *low, int64_t *high)
{
	int64_t at;
	int128 y;
	unsigned fraction;
	*low = INT64_MIN;
	*high = INT64_MAX;
	if (__builtin_sub_overflow(x, h->origin.x, &at) || at > INT64_MAX / 2 || at < -INT64_MAX / 2)
		return false;
	find_rays(h, limit_ppm);
	bool has_low = edge_at(&h->side[HULL_LOWER], &h->rays.low_left, &h->rays.low_right, at, &y, &fraction);
	if (has_low)
		*low = saturate64(y + h->origin.y);
	bool has_high = edge_at(&h->side[HULL_UPPER], &h->rays.high_left, &h->rays.high_right, at, &y, &fraction);
	if (has_high)
		*high = saturate64(y + h->origin.y + (fraction > 0));
	return has_low && has_high;
}

/* Returns slope - 1 in units of 2^-60, rounded to the nearest. */
static int64_t drift_of(const struct hull_ray *r)
{
	int128 rest, d = floor_div(((int128)r->dy - r->dx) * DRIFT_ONE, r->dx, &rest);
	int128 most = 7 * DRIFT_ONE;
	d += rest >= r->dx - rest;
	return (int64_t)(d > most ? most : d < -most ? -most : d);
}

static struct clock_line line_of(const struct hull *h, const struct hull_ray *r, int64_t ref)
{
	unsigned fraction;
	int128 y = ray_at(r, ref - h->origin.x, &fraction);
	return (struct clock_line){ ref, saturate64(y + h->origin.y + (fraction >= 32768)), drift_of(r) };
}

/* Returns the line in the middle of two rays. */
static struct clock_line middle_line(const struct hull *h, const struct hull_ray *a, const struct hull_ray *b, int64_t ref)
{
	unsigned fa, fb;
	int128 ya = ray_at(a, ref - h->origin.x, &fa), yb = ray_at(b, ref - h->origin.x, &fb), rest;
	int128 y = floor_div((ya + yb) * 65536 + fa + fb + 65536, (int128)2 << 16, &rest);
	int128 drift = floor_div((int128)drift_of(a) + drift_of(b), 2, &rest);
	return (struct clock_line){ ref, saturate64(y + h->origin.y), (int64_t)drift };
}

/* Copies the part of a chain between the ends of two rays, in absolute coordinates, and the rays. */
static void copy_outline(const struct hull *h, enum hull_side side, const struct hull_ray *left,
                         const struct hull_ray *right, int64_t ref, struct clock_bound *edge)
{
	const struct hull_chain *c = &h->side[side];
	edge->left = line_of(h, left, ref);
	edge->right = line_of(h, right, ref);
	edge->point = mem_new(c->len, sizeof *edge->point);
	edge->points = 0;
	for (size_t i = 0; i < c->len; i++) {
		struct hull_point p = c->point[i];
		if (p.x >= left->at.x && p.x <= right->at.x)
			edge->point[edge->points++] = (struct clock_point){ p.x + h->origin.x, p.y + h->origin.y };
	}
}

void hull_make_segment(struct hull *h, int64_t ref, unsigned limit_ppm, struct clock_segment *segment)
{
	segment->quality = hull_quality(h);
	segment->pairs_ab = h->count[HULL_UPPER];
	segment->pairs_cd = h->count[HULL_LOWER];
	segment->line = (struct clock_line){ ref, ref, 0 };
	find_rays(h, limit_ppm);
	struct hull_rays *r = &h->rays;
	struct hull_ray up = tangent_ray(&h->side[HULL_UPPER], HULL_UPPER, 1, 1);
	struct hull_ray low = tangent_ray(&h->side[HULL_LOWER], HULL_LOWER, 1, 1);
	bool bounded = r->low_left.known && r->low_right.known && r->high_left.known && r->high_right.known;
	if (bounded && !r->cut) {
		segment->line = middle_line(h, &r->low_left, &r->low_right, ref);
	} else if (bounded) {
		/* mean slope, and the middle of the two lines with that slope */
		int64_t dx = INT64_C(1) << 60, dy = dx + drift_of(&r->low_left) / 2 + drift_of(&r->low_right) / 2;
		up = tangent_ray(&h->side[HULL_UPPER], HULL_UPPER, dx, dy);
		low = tangent_ray(&h->side[HULL_LOWER], HULL_LOWER, dx, dy);
		segment->line = middle_line(h, &up, &low, ref);
	} else if (up.known && low.known) {
		/* the points take precedence, and only one extreme line exists */
		segment->line = line_of(h, h->min_slope.known ? &r->low_right : &r->low_left, ref);
	} else if (up.known || low.known) {
		segment->line = line_of(h, up.known ? &up : &low, ref);
	}
	segment->lowest = segment->highest = segment->line;
	if (!bounded)
		return;
	segment->lowest = line_of(h, &r->low_right, ref);
	segment->highest = line_of(h, &r->low_left, ref);
	copy_outline(h, HULL_LOWER, &r->low_left, &r->low_right, ref, &segment->low);
	copy_outline(h, HULL_UPPER, &r->high_left, &r->high_right, ref, &segment->high);
}
