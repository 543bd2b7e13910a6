/* A corridor that holds the clock, which is not quite a line (private to sync/).
 *
 * The more pairs a line bears, the narrower its corridor; but clocks wander, and then so narrow a corridor is no virtue.
 * What the pairs of a short time leave to the clock does not depend on how evenly it runs at other times. */
#ifndef STEALSCOPE_SYNC_FIT_ERROR_BOUNDS_H
#define STEALSCOPE_SYNC_FIT_ERROR_BOUNDS_H

#include "sync/fit/pairs.h"
#include "sync/evidence/activity.h"

/* How a clock bends, as far as its pieces tell. */
struct corridor_bend {
	bool bends;              /* it is more than one piece */
	int64_t turn;            /* by how much its rate may differ from the line's, as it turns into that of the pieces
	                            beside, 2^-60; 0: it does not */
	const struct pair *pair; /* of the piece and of those beside that it does not jump to, in order of x */
	size_t n;
};

/* Opens the corridor of *piece to where its pairs [0, n), in order of x, leave the clock for a short time each: by as
 * much as the pairs of a good time leave, and by more where some contradict the line, or when the clock is known to bend
 * elsewhere.  Between two lines that are not the same a clock may turn slowly, and then it is neither: what a pair says of
 * it then holds for the times beside, give or take `turn`.  last: guest ns up to which the piece holds, if that is after
 * its pairs.  Linear, but that some thousand pairs are asked about each point of a clock that bends; memory: the
 * corridor's outline, of at most some thousand points. */
void corridor_open(const struct pair *pair, size_t n, const struct corridor_bend *bend, int64_t last,
                   struct clock_piece *piece);

/* The width that these pairs leave to the piece's clock for a short time each, in the median, ns; rejected ones do not
 * count.  -1: they do not tell. */
int64_t corridor_width(const struct pair *pair, size_t n, const struct clock_piece *piece);

/* In that stretch the corridor becomes as wide as to hold that of another clock, too, as far as it is within `most` ns of
 * the piece's line; false: there is none. */
bool corridor_join(struct clock_piece *p, const struct clock_map *other, struct segment at, int64_t most);

/* Puts k points, in order of time, in the place of those between the first and the last of them. */
void corridor_splice(struct clock_edge *e, const struct clock_point *with, size_t k);

#endif
