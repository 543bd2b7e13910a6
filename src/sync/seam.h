/* Where one piece of a clock ends and the next begins, when the clock jumps there (private to sync/).
 *
 * Between the last pair that the later piece contradicts and the first one that the earlier piece does, pairs leave
 * it open which one holds.  The guest's other events are more: each lies in guest mode under the one, the other or both. */
#ifndef STEALSCOPE_SYNC_SEAM_H
#define STEALSCOPE_SYNC_SEAM_H

#include "sync/coarse.h"

/* Does the clock jump to piece i, or only change its rate? */
bool seam_jumps(const struct clock_map *clock, size_t i);

/* Moves the seams at which the clock jumps, by half a piece at most and as far as the pairs allow it, to where most
 * events lie in guest mode.  O(n log n) in the number of events that tell. */
void seams_place(const struct versus *v, const struct pair_list *pairs, struct clock_map *clock);

#endif
