/* How far towards the ends of a trace what a guest did speaks for its clock (private to sync/).
 *
 * Had the clock stepped shortly before the end, what came after that would lie where it does by chance: in guest mode or
 * not, at an edge of that or not.  How often that is so under clocks that are wrong, the same clock shows when it is moved
 * to some other times.  The clock is that which was found as far as the events after that, on their own, are too many for
 * chance; and towards the begin as far as those before it are.  What lies beside the host's trace, or where guest mode is
 * not known, speaks for nothing. */
#ifndef STEALSCOPE_SYNC_SEARCH_CONFIDENCE_RANGE_H
#define STEALSCOPE_SYNC_SEARCH_CONFIDENCE_RANGE_H

#include "sync/search/clock_candidate.h"

/* The times before which, and after which, there are so many nats of evidence; false: there is no time between these.
 * O(n log n) in the number of windows with events, and nine walks over these. */
bool reach_find(const struct seen *seen, const struct clock_map *clock, double evidence, struct segment *out);

#endif
