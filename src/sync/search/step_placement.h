/* Where one piece of a clock ends and the next begins, when the clock jumps there (private to sync/).
 *
 * Between the last pair that the later piece contradicts and the first one that the earlier piece does, pairs leave
 * it open which one holds.  The guest's other events are more: each may lie in guest mode under the one, the other or
 * both.  And a clock that is set ahead leaves out the times that it skips: no event has one of these. */
#ifndef STEALSCOPE_SYNC_SEARCH_STEP_PLACEMENT_H
#define STEALSCOPE_SYNC_SEARCH_STEP_PLACEMENT_H

#include "sync/fit/pairs.h"
#include "sync/evidence/evidence.h"

/* Moves the jumps of the clock, as far as the pairs allow it, to where most events can lie in guest mode,
 * and says where they leave that open (struct clock_piece); false: it only bends.  O(n log n) in the number of events
 * between those pairs. */
bool jumps_place(const struct seen *seen, const struct pair_list *pairs, struct clock_map *clock);

#endif
