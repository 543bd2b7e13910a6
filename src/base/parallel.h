/* Parallel tasks: several threads run the tasks 0 .. n - 1, started in that order, while the caller reports progress. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct parallel {
	unsigned workers;                    /* maximum thread count; see parallel_workers() */
	int (*task)(void *arg, size_t i);    /* runs in any thread, concurrently; a result other than 0 prevents further
	                                      * tasks */
	bool (*watch)(void *arg);            /* runs in the calling thread every 20 ms; false prevents further tasks; may be
	                                      * NULL */
	void *arg;
};

/* Runs all tasks. Returns the nonzero result of the task with the lowest number, or 0 if there is none. */
int parallel_run(const struct parallel *p, size_t tasks);

/* Starts a thread with a stack size that does not depend on the shell's limit. Returns like pthread_create(). */
int parallel_thread(pthread_t *thread, void *(*run)(void *), void *arg);

/* Returns the worker count: `wanted`, or the number of CPUs if that is 0; at most 64. */
unsigned parallel_workers(unsigned wanted);
