/* A guest's clock by containment alone: no synchronization event, no agent in the guest (private to sync/).
 *
 * Coarse search -> guesses, swept -> each locked and tested on a segment, then on twice as much of the trace and so on,
 * as long as it stays among the best -> the one that contains the whole trace, if there is one and no other one comes
 * near.  Otherwise: no answer, with a reason. */
#ifndef STEALSCOPE_SYNC_SEARCH_H
#define STEALSCOPE_SYNC_SEARCH_H

#include "sync/search/lock.h"

#define SHARE_MIN 0.995       /* of the activity must be contained ... */
#define PARTS_SHARE_MIN 0.98  /* ... of a clock that steps */
extern const char *const search_nowhere;  /* why it is not */

struct found {
	struct clock_map clock;  /* no pieces: nothing that can be told apart from chance */
	struct lock lock;
	double share;            /* of the activity that is contained */
	bool sure;
	const char *doubt;       /* why not, when it is not sure */
	bool partial;            /* a part of the trace was proved to fit, the whole does not */
	bool hopeless;           /* ... and to look at parts of the trace would not help */
};

/* steps: the clock may step (a VM that was paused); slower, for those that no single line fits. */
void search_containment(const struct versus *v, bool steps, struct found *out);
void found_release(struct found *f);

#endif
