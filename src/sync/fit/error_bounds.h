/* Error bounds of a clock that is not exactly a line (private to sync/).
 *
 * The more pairs a line satisfies, the narrower its bounds; for a clock that wanders they become too narrow. Bounds
 * computed from the pairs of a short time do not depend on how evenly the clock runs at other times. */
#pragma once

#include "sync/fit/pairs.h"
#include "sync/evidence/activity.h"

/* Change of a clock's rate at a segment's ends, for error_bounds_widen(). */
struct error_bounds_drift {
	bool multi_segment;              /* the clock has several segments */
	int64_t drift_change;            /* greatest deviation from the line's rate while it changes to the rate of an
	                                  * adjacent segment, units of 2^-60; 0: none */
	const struct pair *pair;         /* pairs of the segment and of adjacent segments that are not separated by a step,
	                                  * sorted by x */
	size_t n;
};

/* Widens the error bounds of *segment to the bounds that its pairs [0, n), sorted by x, yield within a short time.
 *
 * The width is that of a time with good pairs. It is greater where pairs contradict the line, or if the clock has
 * several segments. While the rate changes slowly from one line to the next, a pair bounds the clock at a nearby time
 * only up to drift_change times the distance.
 *
 * last: the segment's end, guest ns, if that is after its pairs. Cost: linear, plus up to DRIFT_PAIRS pairs for each
 * point of the bounds while the rate changes. Memory: some thousand points. */
void error_bounds_widen(const struct pair *pair, size_t n, const struct error_bounds_drift *drift, int64_t last,
                        struct clock_segment *segment);

/* Returns the median width of the bounds that pairs of a short time yield around the line, ns, without rejected pairs;
 * -1: too few pairs. */
int64_t error_bounds_width(const struct pair *pair, size_t n, const struct clock_segment *segment);

/* Widens the error bounds within the interval to include the bounds of another clock, but at most to `most` ns from the
 * line. Returns false if the other clock has no bounds there. */
bool error_bounds_join(struct clock_segment *p, const struct clock_map *other, struct ns_interval at, int64_t most);

/* Replaces the points between the times of with[0] and with[k - 1] by these k points, which are sorted by time. */
void error_bounds_splice(struct clock_bound *e, const struct clock_point *with, size_t k);
