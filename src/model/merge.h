/* The traces of all machines as one stream in host time.
 *
 * A stream is a trace, its clock, and one event read ahead.  A machine's time never runs backwards: where two
 * pieces of a clock overlap, its events stand still until the clock has caught up.  Equal times: lower index first,
 * so the host before its guests.  Next costs O(log machines). */
#ifndef STEALSCOPE_MODEL_MERGE_H
#define STEALSCOPE_MODEL_MERGE_H

#include "sync/sync.h"
#include "trace/trace.h"

enum merge_what { MERGE_BEGIN, MERGE_EVENT, MERGE_END };

struct merge_stream {
	uint32_t machine;
	const struct trace *trace;
	const struct clock_map *clock;  /* NULL: the host's own clock */
	struct trace_cursor *cursor;
	int64_t begin, end;             /* host ns of the first and the last event */
	int64_t t;                      /* host ns of what comes next */
	enum merge_what what;
	struct event ev;
};

struct merge {
	struct merge_stream *stream;
	uint32_t *heap;                 /* streams that are not over, the earliest first */
	size_t streams, len;
};

/* machine i of n has trace[i] (NULL: none) and clock[i].  The arrays are the caller's. */
int merge_open(struct merge *m, const struct trace *const *trace, const struct clock_map *const *clock, size_t n,
               struct error *err);
/* The next thing of all: *s stays valid until the following call.  Each machine's first is MERGE_BEGIN, at its
 * first event; its last MERGE_END, 1 ns after its last event.  1, 0 = over, -1. */
int merge_next(struct merge *m, const struct merge_stream **s, struct error *err);
void merge_close(struct merge *m);

#endif
