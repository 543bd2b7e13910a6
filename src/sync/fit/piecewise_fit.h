/* Fits a piecewise linear clock to sync pairs, robust against outliers and steps (private to sync/).
 *
 * Algorithm:
 *   1. Gross outliers are rejected: pairs that contradict most of their neighbours both before and after them.
 *   2. The other pairs are added to a hull in order of guest time. A pair that no line satisfies is a suspect.
 *   FIT_SUSPECTS suspects of one side in a row show that the clock changed (a step, a pause of the VM, another drift): a
 *   new segment begins with the first of them. Fewer suspects are outliers.
 *   3. Adjacent segments that agree except for a few pairs are merged.
 *   4. If the rate changes without a step, the change lies between the last pair that contradicts the later line and the
 *   first pair that contradicts the earlier line: pairs between them count for neither line, and the error bounds
 *   include both lines.
 *   5. Clocks wander: the error bounds are widened to the bounds that pairs of a short time yield (error_bounds.h).
 *
 * Cost: linear in the number of pairs except for pathological data. Memory: the pairs. */
#pragma once

#include "sync/fit/pairs.h"

/* Fits *map with reference time ref (guest ns) and sets `rejected` of the outliers. *map has no segments if there are no
 * pairs. */
void fit_pairs(struct pair_list *l, int64_t ref, struct clock_map *map);

/* Counts consecutive intervals of pairs that no clock within the drift limit satisfies; a fit needs an outlier or
 * another segment for each of them. O(1) per pair; the list is unchanged. */
size_t fit_conflicts(const struct pair_list *l);

/* Returns true if segment i begins with a step, false if only the rate changes. */
bool fit_is_step(const struct clock_map *clock, size_t i);
/* Sets ambiguous_from and ambiguous_to of segment i, which begins with a step, to the interval that the pairs leave
 * open: at most from the start of the previous segment (or `begin`) to the end of segment i (or `end`). */
void fit_limit_step(const struct pair_list *l, struct clock_map *clock, size_t i, int64_t begin, int64_t end);

/* Widens the error bounds of a clock fitted to these pairs to the bounds that pairs of a short time yield: the last
 * stage of a fit. */
void fit_widen_bounds(const struct pair_list *l, struct clock_map *map);

#define THIN_PAIRS 8192  /* longer lists are thinned, block by block */
/* Thins each block of `block` pairs from index `from`: keeps pairs that can be vertices of a hull, rejected pairs, and
 * pairs that contradict the block's hull. */
void pairs_thin(struct pair_list *l, size_t from, size_t block);
