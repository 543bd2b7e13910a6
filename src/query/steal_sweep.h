/* The steal matrix by machine, as one sweep along time.  Private to query/.
 *
 * Asking the resolver for each victim would decode what a pCPU did once per victim that waits for it.  The sweep
 * decodes it once: for a slice of time, every pCPU gets a lane, the list of who had it (16 bytes a piece, at most
 * SWEEP_PIECES at a time); then every row walks its gaps along the lane of the pCPU that it waits for.  Gaps that need
 * more than a pCPU (folded states, nested guests) go to the resolver.  Same answer, a fraction of the time. */
#ifndef STEALSCOPE_QUERY_STEAL_SWEEP_H
#define STEALSCOPE_QUERY_STEAL_SWEEP_H

#include "query/query_internal.h"

#define SWEEP_PIECES (1 << 18)
#define SWEEP_ROWS 16384      /* rows that lose time; more take the long way */
#define SWEEP_MACHINES 1024

/* Thieves: a machine, or one of these behind the machines. */
enum { THIEF_IDLE, THIEF_UNKNOWN, THIEF_WAITING, THIEF_LIMIT, THIEF_OTHERS = THIEF_LIMIT + OUT_REASON_COUNT + 1 };

struct sweep {
	const struct topo *topo;
	const struct gap_rows *rows;
	int64_t from, to, at;  /* the next slice begins at `at` */
	size_t thieves;        /* machines + THIEF_OTHERS */
	int64_t *ns;           /* [victim machine][thief] */
	size_t pieces;         /* that the lanes may hold: SWEEP_PIECES; tests use few, so that slices are short */
	int64_t length;        /* ns of the next slice, less 1 */
	struct resolver r;
	struct lane *lane;     /* by CPU of topo; the host's are used */
	size_t lane_pieces;
	struct sweep_row *row; /* those that lose time */
	size_t row_len, row_cap;
	uint32_t victim;       /* of the row at hand */
	struct error *err;
};

/* Rows and topology are borrowed.  1 = open, 0 = too many rows lose time, -1 = error. */
int sweep_open(struct sweep *s, const struct topo *topo, const struct gap_rows *rows, int64_t from, int64_t to,
               struct error *err);
/* One slice: 1 = that was the last, 0 = there are more, -1 = error. */
int sweep_step(struct sweep *s);
void sweep_release(struct sweep *s);

#endif
