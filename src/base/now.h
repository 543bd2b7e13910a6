/* The clock for everything that measures itself. */
#ifndef STEALSCOPE_BASE_NOW_H
#define STEALSCOPE_BASE_NOW_H

#include <stdint.h>
#include <time.h>

/* ns since some moment; runs on while the wall clock is set. */
static inline int64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

#endif
