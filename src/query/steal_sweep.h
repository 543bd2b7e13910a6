/* The steal matrix by machine, computed in one sweep along time. Private to query/.
 *
 * The resolver would decode the activity of a pCPU once for each victim that waits for it. The sweep decodes it once:
 * for a slice of time, each pCPU gets a lane, the list of the culprits that have it (16 bytes per interval, at most
 * SWEEP_INTERVALS at a time). Then each row walks its gaps along the lane of the pCPU for which it waits. Gaps that
 * depend on more than one pCPU (folded states, nested guests) are left to the resolver. The result is the same as by the
 * resolver, in a fraction of the time. */
#ifndef STEALSCOPE_QUERY_STEAL_SWEEP_H
#define STEALSCOPE_QUERY_STEAL_SWEEP_H

#include "query/query_internal.h"

#define SWEEP_INTERVALS (1 << 18)
#define SWEEP_ROWS 16384      /* limit of rows that lose time; with more rows, the resolver computes the whole matrix */
#define SWEEP_MACHINES 1024

/* Index of a culprit: a machine, or the number of machines plus one of these. */
enum { CULPRIT_IDLE, CULPRIT_UNKNOWN, CULPRIT_WAITING, CULPRIT_LIMIT,
       CULPRIT_OTHERS = CULPRIT_LIMIT + OUT_REASON_COUNT + 1 };

struct sweep {
	const struct catalog *catalog;
	const struct gap_rows *rows;
	int64_t from, to, at;  /* at: start of the next slice, ns */
	size_t culprits;        /* machines + CULPRIT_OTHERS */
	int64_t *ns;           /* [victim machine][culprit] */
	size_t capacity;         /* capacity of all lanes in intervals: SWEEP_INTERVALS; tests use less, for short slices */
	int64_t length;        /* length of the next slice less 1, ns */
	struct resolver r;
	struct lane *lane;     /* by index of catalog->cpu; only the entries of host CPUs are used */
	size_t lane_intervals;
	struct sweep_row *row; /* the rows that lose time */
	size_t row_len, row_cap;
	uint32_t victim;       /* machine that loses the time of the current row */
	struct error *err;
};

/* Opens a sweep; borrows rows and catalog. Returns 1, 0 if too many rows lose time, -1 on error. */
int sweep_open(struct sweep *s, const struct catalog *catalog, const struct gap_rows *rows, int64_t from, int64_t to,
               struct error *err);
/* Sweeps one slice. Returns 1 after the last slice, 0 if there are more, -1 on error. */
int sweep_step(struct sweep *s);
void sweep_release(struct sweep *s);

#endif
