/* Containment: on the host's clock, each event of a vCPU must be within a guest-mode window of its host thread
 * (private to sync/). */
#pragma once

#include "sync/confidence.h"
#include "sync/sync.h"
#include "sync/evidence/vm_candidates.h"

struct containment {
	uint64_t inside, outside;          /* events inside and outside guest mode; neither includes events at times of
	                                    * unknown mode */
	uint64_t contradictions;           /* events outside guest mode for every clock within the error bounds */
	uint64_t missing;                  /* events of CPUs that the VM does not have, included in contradictions */
	int64_t worst;                     /* greatest distance of an event from the nearest window, ns */
	struct window_distances *nearest;  /* closest events by slice, malloc'ed; NULL: not measured */
};

/* Window edges closest to an event, by slice of the guest's trace. */
struct window_distances {
	int64_t ns[2][SYNC_DELAY_SLICES];  /* [SYNC_ABOVE]: smallest distance from an event inside to its window's end;
	                                    * [SYNC_BELOW]: from the start of the window to the event; INT64_MAX: none */
	bool has_inside[SYNC_DELAY_SLICES];  /* the slice has events inside guest mode */
	bool has_contradiction[SYNC_DELAY_SLICES];  /* the slice has events that contradict the clock */
};

/* A task that runs in parallel with the measurement; returns -1 with *err set on failure. */
struct side_task {
	int (*run)(void *arg, struct error *err);
	void *arg;
};

/* Measures the containment of all guest events within the host's trace, in one pass with `workers` threads. side_task:
 * NULL: none. Returns 0, or -1 with *err set. */
int containment_measure(const struct host_timeline *host, const struct vm_candidate *vm, const struct trace *guest,
                        const struct clock_map *clock, unsigned workers, const struct side_task *side_task,
                        struct containment *out, struct error *err);
void containment_release(struct containment *c);
double containment_share(const struct containment *c);     /* Returns the contained share, 0..1; -1: no event counted. */
/* Returns the contained share, 0..1, if only contradictions count as outside; -1: no event counted. */
double containment_possible_share(const struct containment *c);
/* Returns true if n is more than one in NOTABLE_ONE_IN events. */
static inline bool containment_notable(const struct containment *c, uint64_t n)
{
	return n * NOTABLE_ONE_IN > c->inside + c->outside;
}

/* Returns true if the guest, with one clock, fits VM a better than VM b: its events are closer to the edges of a's
 * windows, because actions of a guest cause VM exits, and VM entries cause events in the guest. */
bool containment_closer(const struct containment *a, const struct containment *b);
