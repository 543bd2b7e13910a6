/* A guest's clock by containment alone: no synchronization event, no agent in the guest (private to sync/).
 *
 * Coarse search -> the best guesses, swept -> each locked over the whole trace -> the one that contains, if there is
 * one and nothing else comes near.  Otherwise: no answer, with a reason. */
#ifndef STEALSCOPE_SYNC_SEARCH_H
#define STEALSCOPE_SYNC_SEARCH_H

#include "sync/coarse.h"
#include "sync/lock.h"

struct found {
	struct clock_map clock;  /* no pieces: nothing that can be told apart from chance */
	struct lock lock;
	double share;            /* of the activity that is contained */
	bool sure;
	const char *doubt;       /* why not, when it is not sure */
};

/* steps: the clock may step (a VM that was paused); slower, for those that no single line fits. */
void search_containment(const struct host_view *host, const struct vm_view *vm, const struct activity *act,
                        bool steps, struct found *out);
void found_release(struct found *f);

#endif
