#include "sync/evidence/duplicate_traces.h"

#include <string.h>

#define COMPARED_MAX 1000  /* events of one trace that are looked up in the other */
#define COMMON_FRACTION 4     /* a trace is a duplicate if 1 in 4 events is found: two machines hardly record the same
                               * events on the same CPU at the same ns */

/* Returns true if trace a is dropped in favour of its duplicate b. */
static bool is_dropped(const struct trace_info *a, const struct trace_info *b, bool later)
{
	return a->role != b->role ? b->role == ROLE_HOST : a->events != b->events ? a->events < b->events : later;
}

static bool is_within(const struct trace_info *a, const struct trace_info *b)
{
	return a->begin >= b->begin && a->end <= b->end;
}

/* Returns false if hostnames or times show that the traces differ; quick, without reading events. */
static bool may_be_duplicate(const struct trace_info *a, const struct trace_info *b)
{
	return a->events > 0 && b->events > 0 && strcmp(a->hostname, b->hostname) == 0 && (is_within(a, b) || is_within(b, a));
}

static bool is_same(const struct event *a, const struct event *b)
{
	return a->ts == b->ts && a->kind == b->kind && a->cpu == b->cpu && a->tid == b->tid;
}

/* Counts the events of the first trace that the second trace contains as well, within the time that both cover. */
static int count_common(struct trace_cursor *c[2], int64_t from, size_t *compared, size_t *common, struct error *err)
{
	const struct event *x, *y;
	int got = 0, other = trace_cursor_borrow(c[1], &y, err);
	for (*compared = *common = 0; *compared < COMPARED_MAX && other == 1 &&
	     (got = trace_cursor_borrow(c[0], &x, err)) == 1;) {
		if (x->ts < from)
			continue;
		while (other == 1 && (y->ts < x->ts || (y->ts == x->ts && !is_same(x, y))))
			other = trace_cursor_borrow(c[1], &y, err);
		++*compared;
		*common += other == 1 && is_same(x, y);
	}
	return got < 0 || other < 0 ? -1 : 0;
}

static int compare_traces(const struct trace *a, const struct trace *b, bool *is_duplicate, struct error *err)
{
	const event_kinds kinds = ALL_KINDS & ~KIND(EV_LOST);
	const int64_t begin[2] = { trace_info(a)->begin, trace_info(b)->begin };
	struct trace_cursor *c[2] = { trace_cursor_open(a, kinds, -1, err), NULL };
	size_t compared, common;
	c[1] = c[0] ? trace_cursor_open(b, kinds, -1, err) : NULL;
	const int status = c[1] ? count_common(c, begin[0] > begin[1] ? begin[0] : begin[1], &compared, &common, err) : -1;
	trace_cursor_close(c[0]);
	trace_cursor_close(c[1]);
	*is_duplicate = status == 0 && common > 0 && common * COMMON_FRACTION >= compared;
	return status;
}

int duplicate_traces_find(struct trace *const *trace, size_t n, bool *is_duplicate, struct error *err)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n && !is_duplicate[i]; k++) {
			const struct trace_info *a = trace_info(trace[i]), *b = trace_info(trace[k]);
			if (k != i && may_be_duplicate(a, b) && is_dropped(a, b, k < i) &&
			    compare_traces(trace[i], trace[k], &is_duplicate[i], err) != 0)
				return -1;
		}
	return 0;
}
