/* Convex hulls that bound a line (private to sync/).
 *
 * Points of two kinds bound an unknown line y = alpha x + beta: the line passes under (or through) every upper
 * point and over (or through) every lower point.  In this program x is a guest's time and y the host's: a message
 * from guest to host gives an upper point (sent, received), one from host to guest a lower point (received, sent).
 *
 * Invariants: side[HULL_UPPER] is the lower convex chain of the upper points, side[HULL_LOWER] the upper chain of
 * the lower ones, both in strictly increasing x; `least` and `most` are the separating lines of extreme slope.
 * Points may come in any order; in order of x an addition costs O(1) amortised, a tangent is searched only when a
 * point cuts an extreme line.  Memory: the vertices of the chains, not the points.
 * Exact: coordinates are kept relative to the first point, cross products are 128 bits wide.  A point farther than
 * 2^61 ns (73 years) from the first one is refused.
 * Source: the fully incremental convex hull of Gebai et al. 2014, section "Trace synchronization". */
#ifndef STEALSCOPE_SYNC_FIT_HULL_H
#define STEALSCOPE_SYNC_FIT_HULL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sync/sync.h"

enum hull_side { HULL_UPPER, HULL_LOWER };

struct hull_point { int64_t x, y; };

struct hull_chain {
	struct hull_point *point;  /* relative to the hull's origin */
	size_t len, cap;
};

/* A line through a and b, a.x < b.x. */
struct hull_line {
	bool known;
	struct hull_point a, b;
};

/* One of the four rays in which the corridor's edges end: through `at`, slope dy / dx, dx > 0. */
struct hull_ray {
	bool known;
	struct hull_point at;
	int64_t dx, dy;
};

struct hull_rays {
	struct hull_ray low_left, low_right, high_left, high_right;
	bool cut;  /* the limit took the place of an extreme line */
};

struct hull {
	bool started;
	struct hull_point origin;
	struct hull_chain side[2];
	struct hull_line least;  /* of least slope: a is an upper point, b a lower one */
	struct hull_line most;   /* of greatest slope: a is a lower point, b an upper one */
	uint64_t count[2];       /* points added, by side */
	bool contradicted;       /* hull_force() was given a point that no line can satisfy with the others */
	bool failed;             /* ... and the extreme lines have crossed */
	struct hull_rays rays;   /* for slopes within rays_limit ppm of 1; valid when rays_known */
	unsigned rays_limit;
	bool rays_known;
};

enum hull_effect {
	HULL_NOTHING,      /* the corridor is what it was */
	HULL_TIGHTER,
	HULL_CONTRADICTS,  /* no line satisfies this point and the others: it was not added */
};

void hull_init(struct hull *h);
void hull_release(struct hull *h);
enum hull_effect hull_add(struct hull *h, enum hull_side side, int64_t x, int64_t y);

/* The algorithm as published, without care for outliers: a point that contradicts pulls its end of the extreme line,
 * until the lines cross; from then on the quality is SYNC_FAIL and the lines stay as they are. */
void hull_force(struct hull *h, enum hull_side side, int64_t x, int64_t y);

enum sync_quality hull_quality(const struct hull *h);

/* Bounds of y at x over all lines that satisfy the points and whose slope is within `limit_ppm` of 1 (0 = any):
 * *low is rounded down, *high up.  False where a bound does not exist; it is then INT64_MIN or INT64_MAX. */
bool hull_bounds(struct hull *h, int64_t x, unsigned limit_ppm, int64_t *low, int64_t *high);

/* Writes the line in the middle of the corridor and the corridor's outline into *piece, referred to x = ref, its
 * quality and its pairs.  piece->from and ->rejected are left alone.  The outline is malloc'ed; clock_map_release()
 * frees it.  With points of one side only the line touches them with slope 1. */
void hull_piece(struct hull *h, int64_t ref, unsigned limit_ppm, struct clock_piece *piece);

/* The line as published: the bisector of the extreme lines; slope 1 through the middle of the last points of both
 * sides while an extreme line is missing; 1 and 0 before. */
void hull_published(const struct hull *h, double *alpha, double *beta);

#endif
