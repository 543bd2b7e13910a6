/* All offsets at which a clock would contain about as much, by elimination (private to sync/).
 *
 * Given a clock, its drift is known; what may be wrong is the offset, when the guest or the host repeats itself.  An
 * event that would lie out of guest mode under an offset speaks against it.  A sample of the events strikes out
 * offsets, in bins, over all that leave a quarter of the sample in the host's trace; the bins that are left are
 * tested with all events.  O(events of the sample x windows) at most; usually some events strike out everything. */
#ifndef STEALSCOPE_SYNC_SEARCH_AMBIGUITY_CHECK_H
#define STEALSCOPE_SYNC_SEARCH_AMBIGUITY_CHECK_H

#include "sync/search/clock_candidate.h"

#define RIVALS_MAX 16

struct rival {
	int64_t shift, room;     /* ns to add to the clock, and how far the clock may be off then */
	uint64_t misses, meets;  /* events of the sample that lie outside, and those that can be compared */
};

struct rivals {
	struct rival rival[RIVALS_MAX];  /* those with the fewest misses */
	size_t n;
	bool all;   /* there are no others */
};

/* Those under which few events more than under the hypothesis's clock lie outside; what is nearer than DOUBTED_NS to it is
 * left out. */
void rivals_find(const struct seen *seen, const struct hypothesis *h, struct rivals *out);

#endif
