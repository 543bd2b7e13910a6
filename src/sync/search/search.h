/* A guest's clock by containment alone: no synchronization event, no agent in the guest (private to sync/).
 *
 * Coarse search -> guesses, swept -> each narrowed and tested on a segment, then on twice as much of the trace and so on,
 * as long as it stays among the best -> the one that contains the whole trace, if there is one and no other one comes
 * near.  Otherwise: no answer, with a reason. */
#ifndef STEALSCOPE_SYNC_SEARCH_SEARCH_H
#define STEALSCOPE_SYNC_SEARCH_SEARCH_H

#include "sync/search/clock_candidate.h"

#define SHARE_MIN 0.995  /* of the activity must be contained ... */
#define PROVED 0.98      /* ... of a clock that steps, and of one that pairs prove as well */
extern const char *const search_nowhere;  /* why it is not */

/* steps: the clock may step (a VM that was paused); slower, for those that no single line fits. */
void search_containment(const struct seen *seen, bool steps, struct hypothesis *out);

#endif
