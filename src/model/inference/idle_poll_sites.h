/* Where in its kernel a guest is found that does not halt.
 *
 * A guest that has nothing to do halts, and its host sees that; unless it waits in a loop (idle=poll), or its halts do not
 * leave guest mode (cpu-pm).  Then an idle CPU of it looks like a busy one, but for this: whenever an interrupt stops it,
 * it is at the same few instructions of its kernel.  So may be one that clears pages, or spins: found there, it is in
 * doubt, until it is found in user space or does what only a thread does.  Looking ahead counts where each vCPU is found.
 *
 * O(1) per exit.  Memory: 17 bytes and more per cell of the kernel's code while looking ahead, at most
 * CELLS_MOST of a trace. */
#ifndef STEALSCOPE_MODEL_INFERENCE_IDLE_POLL_SITES_H
#define STEALSCOPE_MODEL_INFERENCE_IDLE_POLL_SITES_H

#include <stdbool.h>

#include "base/map.h"
#include "trace/trace.h"

struct spots {
	struct map found;       /* TID and cell of its kernel's code -> how often it was interrupted there */
	struct map halts;       /* TID -> how often it halted */
};

void spots_feed(struct spots *s, int64_t tid, const struct event *ev, unsigned is);  /* EV_KVM_EXIT; is: exit_is() */
void spots_finish(struct spots *s);  /* of all cells, those are left that are in doubt */
void spots_release(struct spots *s);
/* The guest was left where it is found so often that nobody knows whether it works there. */
bool spots_has(const struct spots *s, int64_t tid, const struct event *ev, unsigned is);
static inline bool spots_doubt(const struct spots *s, int64_t tid, const struct event *ev, unsigned is)
{
	return s->found.len && spots_has(s, tid, ev, is);
}

#endif
