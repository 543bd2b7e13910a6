/* Progress of long work, and its cancellation. */
#ifndef STEALSCOPE_BASE_PROGRESS_H
#define STEALSCOPE_BASE_PROGRESS_H

#include <stdint.h>

/* Called every few milliseconds of work, from the thread that started it.  `done` and `total` are in `unit`s of
 * the phase (total 0 = unknown).  A result other than 0 cancels: the work stops with STATUS_CANCELLED.  In a phase that
 * has no end of its own (total PROGRESS_OPEN), the first such result ends the phase, and the work goes on with what it
 * has. */
#define PROGRESS_OPEN UINT64_MAX
struct progress {
	int (*tick)(void *arg, const char *phase, uint64_t done, uint64_t total);
	void *arg;
};

#endif
