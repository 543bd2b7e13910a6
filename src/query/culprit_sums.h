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

#endif
