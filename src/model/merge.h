/* The traces of all machines as one stream in host time.
 *
 * A stream is a trace, its clock, and one event read ahead.  A machine's time never runs backwards: where two
 * pieces of a clock overlap, its events stand still until the clock has caught up.  Equal times: lower index first,
 * so the host before its guests.  Next costs O(log machines).
 * This is a chore (base/ordered_jobs.h), done some thousand steps ahead where there are threads; the steps are the same. */
#ifndef STEALSCOPE_MODEL_MERGE_H
#define STEALSCOPE_MODEL_MERGE_H

#include "base/prefetch.h"
#include "sync/sync.h"
#include "trace/trace.h"

enum merge_what { MERGE_BEGIN, MERGE_EVENT, MERGE_END };

struct merge_step {
	struct merge_moment {
		int64_t t;          /* host ns */
		uint32_t machine;
		uint16_t what;      /* enum merge_what; not an int: steps go from one processor to another */
		bool others;        /* MERGE_END: another machine's trace goes on */
	} at;
	struct event ev;        /* MERGE_EVENT */
};

struct merge {
	struct streams *streams;  /* what makes the steps; its thread's alone until merge_close() */
	struct ahead *ahead;
	const struct merge_step *at, *end;  /* the next of those that were made, and the one behind the last */
};

/* machine i of n has trace[i] (NULL: none) and clock[i].  The arrays are the caller's. */
int merge_open(struct merge *m, const struct trace *const *trace, const struct clock_map *const *clock, size_t n,
               struct chores *chores, struct error *err);
int merge_more(struct merge *m, struct error *err);  /* for what follows: 1 = there are more steps, 0, -1 */
/* The next thing of all: *s stays valid until the following call.  Each machine's first is MERGE_BEGIN, at its
 * first event; its last MERGE_END, 1 ns after its last event.  1, 0 = over, -1. */
static inline int merge_next(struct merge *m, const struct merge_step **s, struct error *err)
{
	const int got = m->at < m->end ? 1 : merge_more(m, err);
	*s = m->at;
	m->at += got > 0;
	return got;
}
int64_t merge_last(const struct merge *m);  /* host ns of the last event of all, once it is over */
void merge_close(struct merge *m);

#endif
