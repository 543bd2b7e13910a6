/* Tasks side by side: tasks 0 .. n - 1 are taken in that order by several threads, while the caller watches. */
#ifndef STEALSCOPE_BASE_PARALLEL_H
#define STEALSCOPE_BASE_PARALLEL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct parallel {
	unsigned workers;                    /* threads at most; see parallel_workers() */
	int (*task)(void *arg, size_t i);    /* in any thread, several at a time; not 0: begin no more tasks */
	bool (*watch)(void *arg);            /* in the calling thread, now and then; false: begin no more tasks.  NULL: none */
	void *arg;
};

/* Returns when all tasks that were begun are done: the result of the first one, by number, that was not 0, else 0. */
int parallel_run(const struct parallel *p, size_t tasks);

/* As pthread_create(), with a stack that does not depend on the shell's limit. */
int parallel_thread(pthread_t *thread, void *(*run)(void *), void *arg);

/* `wanted`, or as many as there are cores (0); within what is sensible. */
unsigned parallel_workers(unsigned wanted);

#endif
