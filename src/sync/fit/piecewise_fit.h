/* Pairs -> a clock that survives bad pairs and steps (private to sync/).
 *
 * Pairs are taken in order of guest time into one hull.  A pair that no line can satisfy is a suspect; when suspects
 * of one side follow each other without a good pair of that side between them, the clock has changed (a step, a VM
 * that was paused, another drift) and a new piece begins with the first of them; otherwise they are outliers.
 * Gross outliers go before that: those that contradict the bulk of their neighbours before and after them.
 * Adjacent pieces that turn out to agree but for a few pairs are joined.  A clock that changes its rate, but does not
 * jump, does so some time between the last pair that contradicts the line after and the first that contradicts the line
 * before: those in between count for neither line, and the corridor holds both.
 * Clocks wander: corridors are opened to what the pairs of a short time allow (error_bounds.h).
 * Linear in the number of pairs but for pathological data; memory: the pairs. */
#ifndef STEALSCOPE_SYNC_FIT_PIECEWISE_FIT_H
#define STEALSCOPE_SYNC_FIT_PIECEWISE_FIT_H

#include "sync/fit/pairs.h"

/* So many in a row, of one side, say that the clock has changed. */
#define FIT_SUSPECTS 6

/* No clock of a VM is believed to drift more than this against the host's. */
#define DRIFT_LIMIT_PPM 1000

/* Fills *map, referred to guest time ref; sets `rejected` of the pairs that were left out.  No pairs: no pieces. */
void fit_pairs(struct pair_list *l, int64_t ref, struct clock_map *map);

/* How many stretches, one after the other, no clock bears throughout that drifts within the limit: each of them costs a fit
 * a pair, or a piece.  O(1) a pair; the list is left as it is. */
size_t fit_conflicts(const struct pair_list *l);

/* By so much the corridors of two pieces of a clock that only bends may miss each other where they meet. */
#define JUMP_NS 20000
#define BEND_PPM 10.0  /* more than the temperature does to an oscillator */

/* Does the clock jump to piece i, or only change its rate? */
bool fit_jumps(const struct clock_map *clock, size_t i);
/* Where the pairs leave it open when the clock jumped to piece i: they set its unsure_from and unsure_to, at most from
 * the begin of the piece before (or begin) to the end of this one (or end). */
void fit_jump_limits(const struct pair_list *l, struct clock_map *clock, size_t i, int64_t begin, int64_t end);

/* Opens the corridors of a clock that was fitted to these pairs to what they allow for a short time each: for good. */
void fit_open(const struct pair_list *l, struct clock_map *map);

#define THIN_PAIRS 8192  /* more than so many are thinned out, block by block, to those that can matter */
/* Of each block of pairs from index `from` on, leaves those that can be vertices of a hull, and those that contradict
 * them; a block may lose gross outliers, which *rejected counts (may be NULL). */
void pairs_thin(struct pair_list *l, size_t from, size_t block);

#endif
