/* Containment: after the transform each event of vCPU v must lie within a span in which v's host thread was in guest
 * mode (private to sync/). */
#ifndef STEALSCOPE_SYNC_ASSIGN_CONTAINMENT_H
#define STEALSCOPE_SYNC_ASSIGN_CONTAINMENT_H

#include "sync/sync.h"
#include "sync/evidence/vm_candidates.h"

struct containment {
	uint64_t inside, outside;  /* events; those at times when the mode is not known are in neither */
	uint64_t refuted;          /* of those outside: wherever in its corridor the clock is */
	uint64_t missing;          /* of those: of CPUs that the VM does not have */
	int64_t worst;             /* ns from the event that is farthest outside to the nearest window */
	struct nearness *nearest;  /* malloc'ed; NULL: nothing was measured, as of most combinations of guests and VMs */
};

/* Of each span of the guest's trace. */
struct nearness {
	int64_t ns[2][SYNC_SPANS];  /* from an event inside to the end of its window, and from its begin: the least; INT64_MAX =
	                               none */
	bool held[SYNC_SPANS];      /* it has events inside */
	bool denied[SYNC_SPANS];    /* ... and some that are refuted */
};

/* Something else to do meanwhile: -1 with *err set when it failed. */
struct beside {
	int (*run)(void *arg, struct error *err);
	void *arg;
};

/* One walk over the guest's events, by so many threads.  Events beyond the host's trace do not count.  beside: or NULL. */
int containment_measure(const struct host_view *host, const struct vm_view *vm, const struct trace *guest,
                        const struct clock_map *clock, unsigned workers, const struct beside *beside,
                        struct containment *out, struct error *err);
void containment_release(struct containment *c);
double containment_share(const struct containment *c);     /* 0..1, -1 = no event counted */
double containment_possible(const struct containment *c);  /* the same of those that are not refuted */
/* Are so many of its events more than one in a hundred? */
static inline bool containment_notable(const struct containment *c, uint64_t n)
{
	return n * 100 > c->inside + c->outside;
}

/* Of one guest, by one clock, in two VMs: is it a that runs it?  What happens in a guest makes its VM exit, and what its VM
 * was entered for happens in it: right beside the edges of the windows.  In others' it happens anywhere. */
bool containment_closer(const struct containment *a, const struct containment *b);

#endif
