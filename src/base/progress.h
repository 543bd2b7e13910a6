/* Progress of long work, and its cancellation. */
#ifndef STEALSCOPE_BASE_PROGRESS_H
#define STEALSCOPE_BASE_PROGRESS_H

#include <stdint.h>

/* Called every few milliseconds of work, from the thread that started it.  `done` and `total` are in `unit`s of
 * the phase (total 0 = unknown).  A result other than 0 cancels: the work stops with STATUS_CANCELLED. */
struct progress {
	int (*tick)(void *arg, const char *phase, uint64_t done, uint64_t total);
	void *arg;
};

#endif
