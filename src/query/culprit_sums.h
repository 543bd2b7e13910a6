/* Sums of gaps by culprit of any window; part of query.h. */
#ifndef STEALSCOPE_QUERY_CULPRIT_SUMS_H
#define STEALSCOPE_QUERY_CULPRIT_SUMS_H

#include "query/query.h"

/* Computes the sums of a history, from which any window is answered without reading its gaps, and writes them into it: for
 * history_derive(). arg: const unsigned *, the number of threads (see parallel_workers()); NULL: one
 * per core. */
int culprit_sums_derive(void *arg, const struct history *h, struct history_builder *b, struct error *err);

/* Percentiles of sums are those of a histogram: they differ from the exact ones by at most 1/PERCENTILE_BOUND. */
#define PERCENTILE_BOUND 128

/* Time that one culprit took. */
struct culprit_ns {
	uint32_t culprit;        /* index into culprit_sums.actor */
	int64_t ns;
};

/* Gaps of a vCPU or thread within the window; gaps at its edges are cut there. */
struct culprit_sums_row {
	struct target target;
	uint32_t machine;        /* its machine */
	uint64_t gaps;
	int64_t lost;            /* sum of the gaps, ns: lost time without VMM time of vCPUs */
	int64_t longest, longest_start;  /* ns, and its time; the first one if several are equal */
	int64_t p50, p90, p99;   /* ns, within 1/PERCENTILE_BOUND */
	uint64_t bin[LENGTH_BINS];   /* gaps by length, as length_bin(); near the limit of a bin within 1/PERCENTILE_BOUND */
	struct culprit_ns *culprit;  /* longest first; they add up to `lost` */
	size_t culprits;
};

struct culprit_sums {
	int64_t start, end;
	struct culprit_sums_row *row;  /* rows with gaps: vCPUs, then threads */
	size_t rows;
	struct actor *actor;
	size_t actors;
	char **name;             /* raw names of the actors */
	size_t names;
};

/* Starts the query for the sums of the vCPUs of a VM, the threads of the host or of a container, one vCPU or one thread; s
 * NULL: of all vCPUs and all threads that execute none. Few blocks of the history and two sweeps of the parts before and
 * after them answer it: about 1 ms for 100 rows, whatever the length of the window. */
struct query *culprit_sums_open(const struct catalog *catalog, const struct target *s, int64_t from, int64_t to);
void culprit_sums_take(struct query *q, struct culprit_sums *out);
/* Runs the query until the answer is ready. */
int culprit_sums_of(const struct catalog *catalog, const struct target *s, int64_t from, int64_t to,
                    struct culprit_sums *out, struct error *err);
void culprit_sums_release(struct culprit_sums *s);

#endif
