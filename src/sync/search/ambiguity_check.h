/* Finds all offsets at which a clock would contain about as many events, by elimination (private to sync/).
 *
 * The given clock's drift is known; its offset may be wrong if guest or host behave periodically. An event that
 * would be outside guest mode at an offset is a violation of that offset. Violations by a sample of the events exclude
 * offsets, in bins, over the whole range in which at least a quarter of the sample falls into the host's trace; the
 * remaining bins are tested with all events. Cost: O(events of the sample x windows) at most; usually a few events
 * exclude everything. */
#pragma once

#include "sync/search/clock_candidate.h"

#define ALTERNATIVES_MAX 16

struct alternative {
	int64_t shift, tolerance;          /* offset added to the clock, and its possible error, ns */
	uint64_t violations, informative;  /* events of the sample outside guest mode, and events of the sample with a known
	                                    * mode */
};

struct alternatives {
	struct alternative alternative[ALTERNATIVES_MAX];  /* offsets with the fewest violations */
	size_t n;
	bool complete;/* false: there may be further alternatives */
};

/* Finds the alternatives to the candidate's clock that have hardly more events outside guest mode. Alternatives closer
 * than AMBIGUITY_NS are skipped. */
void alternatives_find(const struct evidence *evidence, const struct clock_candidate *h, struct alternatives *out);
