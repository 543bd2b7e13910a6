/* Traces -> history, and whether time is conserved in it. */
#ifndef STEALSCOPE_TESTS_MODEL_CONSERVE_H
#define STEALSCOPE_TESTS_MODEL_CONSERVE_H

#include <stdbool.h>

#include "history/history.h"
#include "sync/sync.h"

/* What became of the traces below a folder. */
struct indexed {
	struct history *h;
	struct machine_span {
		char name[64];           /* "host" or the VM's */
		size_t parent;           /* index of the machine that runs it; 0 = the host, which runs on itself */
		int64_t begin, end;      /* of its trace, host ns; begin > end: none */
		unsigned cpus;
	} machine[64];
	size_t machines;
	uint64_t events, lost;
};

/* Fails the test when anything is refused.  `perfect`: simulated, with perfect clocks; which thread is which vCPU is
 * taken from the truth beside the traces.  `lossy`: 0, or the seed of bursts of lost events,
 * or NO_CONTEXT: no event tells who was current. */
#define NO_CONTEXT UINT64_MAX
void index_traces(const char *dir, const char *file, bool perfect, uint64_t lossy, struct indexed *out);
void indexed_release(struct indexed *x);

/* All intervals of an attribute, malloc'ed; *n = 0 when there is no such attribute. */
struct interval *all_intervals(const struct history *h, uint32_t attr, size_t *n);
/* The attribute below `parent` at a path of at most two names (the second may be NULL). */
uint32_t below(const struct history *h, uint32_t parent, const char *first, const char *second);

/* For every CPU the time of its current threads, and for every thread its RUNNING (and VIRT_PREEMPTED) time on each
 * CPU, are the same; states of a vCPU that allow it; nothing runs twice.  Returns the number of pairs compared. */
size_t check_conservation(const struct history *h, const char *what);

#endif
