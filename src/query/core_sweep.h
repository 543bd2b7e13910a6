/* Walks rows along the lanes of a sweep (steal_sweep.h) and sums their running time by the use of the other CPUs of the
 * core. Private to query/. */
#pragma once

#include "query/steal_sweep.h"

struct core_sweep_row {
	struct core_time time;
	int first_cpu, last_cpu;  /* first and last known pCPU: indexes into catalog->cpu; -1: none */
	struct gap_walk walk;     /* over its running intervals */
	struct interval part;     /* interval that was read but not added yet; start > end: none */
	int64_t memory_node;      /* node with most of the memory of its VM; -1: unknown */
	bool done;
};

struct core_sweep {
	struct sweep sweep;
	struct core_sweep_row *row;  /* by index of sweep.rows->row */
};

/* Opens a sweep; borrows rows and catalog. memory_node: by machine; borrowed while the sweep is opened. */
int core_sweep_open(struct core_sweep *s, const struct catalog *catalog, const struct gap_rows *rows,
                    const int64_t *memory_node, int64_t from, int64_t to, struct error *err);
/* Sweeps one slice. Returns 1 after the last slice, 0 if there are more, -1 on error. */
int core_sweep_step(struct core_sweep *s);
void core_sweep_release(struct core_sweep *s);

/* Counts a move from one pCPU to another. */
void core_time_count_move(const struct catalog *catalog, struct core_time *time, int from, int to);
