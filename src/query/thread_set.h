/* Sets of threads as targets. Private to query/; catalog_select() is in query.h. */
#pragma once

#include "query/query.h"

struct thread_set {
	char *name;
	uint32_t machine;    /* index of their machine, which is no container */
	int32_t group;       /* the outer control group's index; -1: a process */
	int32_t *tid;        /* ascending */
	size_t threads;
};

bool thread_set_contains(const struct thread_set *set, uint32_t machine, int32_t tid);
void thread_set_free(struct thread_set *set);

/* The same as catalog_open(), with the set (owned from now on, also after an error) as the last machine. */
int catalog_open_set(struct catalog *catalog, const struct history *h, struct thread_set *set, struct error *err);
