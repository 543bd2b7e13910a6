/* From a rough clock to the exact one, by containment (private to sync/).
 *
 * An event whose possible host times, given the corridor so far, meet exactly one window of its vCPU lies in that
 * window: its vm entry came before it, its vm exit after it.  Such statements are pairs like those of synchronization
 * events and go into the same hull, which narrows the corridor, which decides more events, until nothing changes.
 * Events that could be in several windows say nothing; so a corridor that is right at the start stays right.
 * Each round is linear in the number of events. */
#ifndef STEALSCOPE_SYNC_LOCK_H
#define STEALSCOPE_SYNC_LOCK_H

#include "sync/search/coarse.h"
#include "sync/estimate/fit.h"

struct lock {
	uint64_t decided, ambiguous, violations;  /* events of the last round */
	uint64_t windows;   /* that contain decided events */
	double evidence;    /* how unlikely such a fit is by chance: sum of -ln(duty) over those windows, nats; of several
	                       pieces that of the one with least */
	uint64_t pairs, used;
};

/* Narrows *clock in place.  extra: pairs to use besides, or NULL; their `rejected` is set. */
void lock_clock(const struct versus *v, const struct pair_list *extra, struct clock_map *clock, struct lock *out);

/* When all is decided: opens the corridor to what the same pairs allow for a short time each; see fit_open(). */
void lock_open(const struct versus *v, const struct pair_list *extra, struct clock_map *clock);

#endif
