/* Finds the time of a clock step (private to sync/).
 *
 * Pairs restrict the time to the interval between the last pair that contradicts the later segment and the first pair
 * that contradicts the earlier segment. The guest's other events narrow it: each may be in guest mode under the one
 * segment, the other, or both. A clock that is set forward skips times, at which there are no events. */
#pragma once

#include "sync/fit/pairs.h"
#include "sync/evidence/evidence.h"

/* Moves the clock's steps, within the limits set by the pairs, to the times at which most events are in guest mode,
 * and sets the ambiguous interval that remains (struct clock_segment). Returns false if no segment begins with a step.
 * O(n log n) in the number of events between those pairs. */
bool steps_place(const struct evidence *evidence, const struct pair_list *pairs, struct clock_map *clock);
