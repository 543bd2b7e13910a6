/* Threads whose events the kernel hides from tracers, as some providers' kernels do for their own services: the trace has
 * switches to them, but none from them, and no wakeups by them. The next event of their CPU then contradicts the state. */
#pragma once

#include "base/base.h"

#define HIDDEN_THREADS_MAX 64

struct hidden_threads {
	struct hidden_thread {
		int32_t tid;
		uint32_t name;      /* string id */
		uint64_t times;     /* number of times it left its CPU without an event */
	} thread[HIDDEN_THREADS_MAX];  /* most times first */
	size_t len;
};

/* Called if a thread of which no switch-out was recorded has left its CPU without one. */
void hidden_threads_add(struct hidden_threads *h, int32_t tid, uint32_t name);
/* Called if the switch-out of such a thread is recorded: it is not hidden. */
void hidden_threads_remove(struct hidden_threads *h, int32_t tid);
uint64_t hidden_threads_times(const struct hidden_threads *h);
