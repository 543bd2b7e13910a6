/* The parts of a history outside a window on which answers about this window depend. They are not derived, but recorded:
 * all questions are asked once, while history_watch() reports each read outside the window.
 *
 * Cost: that of the questions, for each vCPU and thread of the window one flow and one critical path. Memory: 24 bytes per
 * part. */
#pragma once

#include <pthread.h>

#include "base/progress.h"
#include "history/history.h"

/* Part of an attribute. */
struct recorded_read {
	int64_t start, end;  /* ns, closed */
	uint32_t attr;
};

struct recorded_reads {
	struct recorded_read *part;  /* sorted by attribute and start; neither overlapping nor adjacent */
	size_t len, cap, merged;     /* merged: number of parts that are sorted already */
	pthread_mutex_t lock;        /* protects the members above */
};

/* Asks the questions about the window [from, to]. The caller releases *r, also on failure. Returns 0 or -1. */
int recorded_reads_collect(struct recorded_reads *r, struct history *h, int64_t from, int64_t to, struct progress progress,
                           struct error *err);
void recorded_reads_release(struct recorded_reads *r);

/* Returns the index of the first part of the attributes [attr, last], and the number of their parts in *n. */
size_t recorded_reads_find(const struct recorded_reads *r, uint32_t attr, uint32_t last, size_t *n);
