/* Progress reports of long operations, and their cancellation. */
#pragma once

#include <stdint.h>

/* Called every few milliseconds, in the thread that started the operation. `done` of `total` units of the phase are
 * finished (total 0: unknown). A result other than 0 cancels the operation with STATUS_CANCELLED. In a phase without an
 * end (total PROGRESS_OPEN) it ends the phase, and the operation continues with the data read until then. */
#define PROGRESS_OPEN UINT64_MAX
struct progress {
	int (*tick)(void *arg, const char *phase, uint64_t done, uint64_t total);
	void *arg;
};
