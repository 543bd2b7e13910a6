/* Work of another program part as a query, so that one worker runs all of them. A part of query/query.h. */
#ifndef STEALSCOPE_QUERY_QUERY_TASK_H
#define STEALSCOPE_QUERY_QUERY_TASK_H

#include "query/query.h"

struct task_kind {
	/* Works on the task; until: end of the time slice, ns, CLOCK_MONOTONIC. Returns 1 at its end, 0 if there is more to do,
	 * -1 on error. */
	int (*step)(void *state, int64_t until, struct error *err);
	void (*release)(void *state);  /* frees the state */
};

struct query *query_task_open(const struct task_kind *kind, void *state);  /* takes ownership of the state */
void *query_task_state(struct query *q);  /* borrowed from the query */

#endif
