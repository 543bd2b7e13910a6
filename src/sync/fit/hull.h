/* Convex hulls that bound a line (private to sync/).
 *
 * Points of two kinds bound an unknown line y = alpha x + beta: the line passes under (or through) every upper point and
 * over (or through) every lower point. Here x is guest time and y host time: a message from guest to host yields an
 * upper point (sent, received), a message from host to guest a lower point (received, sent).
 *
 * Invariants: side[HULL_UPPER] is the lower convex chain of the upper points, side[HULL_LOWER] the upper chain of the
 * lower points, both in strictly increasing x. `min_slope` and `max_slope` are the separating lines of extreme slope.
 *
 * Cost: points may be added in any order; in order of x an addition is O(1) amortised, and a tangent is searched only
 * when a point cuts an extreme line. Memory: the chains' vertices, not all points.
 *
 * Exact: coordinates are relative to the first point, cross products have 128 bits. A point more than 2^61 ns (73 years)
 * from the first point is refused.
 *
 * Source: the fully incremental convex hull of Gebai et al. 2014, section "Trace synchronization". */
#pragma once

#include "base/base.h"
#include "sync/sync.h"

enum hull_side { HULL_UPPER, HULL_LOWER };

struct hull_point { int64_t x, y; };

struct hull_chain {
	struct hull_point *point;  /* relative to the hull's origin */
	size_t len, cap;
};

/* A line through the points a and b, a.x < b.x. */
struct hull_line {
	bool known;
	struct hull_point a, b;
};

/* One of the four rays at the error bounds' ends: starts at the point `at`, slope dy / dx, dx > 0. */
struct hull_ray {
	bool known;
	struct hull_point at;
	int64_t dx, dy;
};

struct hull_rays {
	struct hull_ray low_left, low_right, high_left, high_right;
	bool cut;  /* the slope limit replaced an extreme line */
};

struct hull {
	bool started;
	struct hull_point origin;
	struct hull_chain side[2];
	struct hull_line min_slope;  /* line with the smallest slope: a is an upper point, b a lower point */
	struct hull_line max_slope;   /* line with the greatest slope: a is a lower point, b an upper point */
	uint64_t count[2];       /* points added, by side */
	struct hull_rays rays;   /* rays for slopes within rays_limit ppm of 1; valid if rays_known */
	unsigned rays_limit;
	bool rays_known;
};

enum hull_effect {
	HULL_NOTHING,      /* the bounds are unchanged */
	HULL_TIGHTER,
	HULL_CONTRADICTS,  /* no line satisfies this point and the others: it was not added */
};

void hull_init(struct hull *h);
void hull_release(struct hull *h);
enum hull_effect hull_add(struct hull *h, enum hull_side side, int64_t x, int64_t y);

enum sync_quality hull_quality(const struct hull *h);

/* Gets the bounds of y at x over all lines that satisfy the points and have a slope within limit_ppm of 1 (0: any
 * slope). *low is rounded down, *high up. Returns false if a bound does not exist; it is then INT64_MIN or INT64_MAX. */
bool hull_bounds(struct hull *h, int64_t x, unsigned limit_ppm, int64_t *low, int64_t *high);

/* Sets line (the bounds' middle, relative to x = ref), error bounds, quality and pairs of *segment; `from` and
 * `rejected` are unchanged. The bounds are malloc'ed; clock_map_release() frees them. With points of one side only, the
 * line touches them with slope 1. */
void hull_make_segment(struct hull *h, int64_t ref, unsigned limit_ppm, struct clock_segment *segment);
