/* The steal matrix by machine, as one sweep along time.  Private to flow/.
 *
 * Asking the resolver for each victim would decode what a pCPU did once per victim that waits for it.  The sweep
 * decodes it once: for a slice of time, every pCPU gets a lane, the list of who had it (16 bytes a piece, at most
 * SWEEP_PIECES at a time); then every row walks its gaps along the lane of the pCPU that it waits for.  Gaps that need
 * more than a pCPU (folded states, nested guests) go to the resolver.  Same answer, a fraction of the time. */
#ifndef STEALSCOPE_FLOW_SWEEP_H
#define STEALSCOPE_FLOW_SWEEP_H

#include "flow/resolve.h"

#define SWEEP_PIECES (2 << 20)
#define SWEEP_ROWS 16384      /* rows that lose time; more take the long way */
#define SWEEP_MACHINES 1024

/* Thieves: a machine, or one of these behind the machines. */
enum { THIEF_IDLE, THIEF_UNKNOWN, THIEF_WAITING, THIEF_OTHERS };

struct sweep {
	const struct topo *topo;
	size_t thieves;        /* machines + THIEF_OTHERS */
	int64_t *ns;           /* [victim machine][thief] */
	size_t pieces;         /* that the lanes may hold: SWEEP_PIECES; tests use few, so that slices are short */
};

void sweep_init(struct sweep *s, const struct topo *topo);
void sweep_release(struct sweep *s);
void sweep_add(struct sweep *s, uint32_t victim, const struct piece *p, int64_t ns);

/* Sums [from, to] of the rows of every machine, or of `only`.  1 = done, 0 = too many rows, -1 = error. */
int sweep_run(struct sweep *s, const struct subject *only, int64_t from, int64_t to, struct error *err);

#endif
