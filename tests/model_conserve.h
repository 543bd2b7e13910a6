/* Indexes traces into a history and checks conservation of time in it. */
#pragma once

#include <stdbool.h>

#include "history/history.h"
#include "sync/sync.h"

/* Result of indexing the traces below a directory. */
struct indexed {
	struct history *h;
	struct machine_window {
		char name[64];      /* "host" or the name of the VM */
		size_t parent;      /* index of the machine that runs it; 0: the host, also for itself */
		int64_t begin, end; /* start and end of its trace, host ns; begin > end: no trace */
		unsigned cpus;
	} machine[64];
	size_t machines;
	uint64_t events, lost;
};

/* Indexes the traces; fails the test on any error. perfect: simulated with perfect clocks; the mapping of threads to vCPUs
 * is taken from the truth files. lossy: 0, or the seed of bursts of lost events, or NO_CONTEXT: events do not contain the
 * current thread. */
#define NO_CONTEXT UINT64_MAX
void index_traces(const char *dir, const char *file, bool perfect, uint64_t lossy, struct indexed *out);
void indexed_release(struct indexed *x);

/* Returns all intervals of an attribute, to be freed; *n = 0 if there is no such attribute. */
struct interval *all_intervals(const struct history *h, uint32_t attr, size_t *n);
/* Returns the attribute below `parent`, at a path of at most two names (the second may be NULL). */
uint32_t below(const struct history *h, uint32_t parent, const char *first, const char *second);

/* Checks that for each CPU the time of its current threads equals their RUNNING (and VIRT_PREEMPTED) time there, that
 * the states of vCPUs allow it, and that nothing runs twice. Returns the number of pairs compared. */
size_t check_conservation(const struct history *h, const char *what);
