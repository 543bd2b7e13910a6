#include "sync/evidence/duplicate_traces.h"

#include <string.h>

#define LOOKED 1000  /* events of one that are looked for in the other */
#define COMMON 4     /* one in so many is in it: two machines hardly do the same on the same CPU at the same ns */

/* Of two that are the same, does that one go? */
static bool yields(const struct trace_info *a, const struct trace_info *b, bool later)
{
	return a->role != b->role ? b->role == ROLE_HOST : a->events != b->events ? a->events < b->events : later;
}

static bool is_within(const struct trace_info *a, const struct trace_info *b)
{
	return a->begin >= b->begin && a->end <= b->end;
}

/* What needs no look at the events. */
static bool may_be_same(const struct trace_info *a, const struct trace_info *b)
{
	return a->events > 0 && b->events > 0 && strcmp(a->hostname, b->hostname) == 0 && (is_within(a, b) || is_within(b, a));
}

static bool is_same(const struct event *a, const struct event *b)
{
	return a->ts == b->ts && a->kind == b->kind && a->cpu == b->cpu && a->tid == b->tid;
}

/* Looks for the events of the first one, from the time on that both cover, in the other one. */
static int compare(struct trace_cursor *c[2], int64_t from, size_t *looked, size_t *common, struct error *err)
{
	const struct event *x, *y;
	int got = 0, other = trace_cursor_borrow(c[1], &y, err);
	for (*looked = *common = 0; *looked < LOOKED && other == 1 && (got = trace_cursor_borrow(c[0], &x, err)) == 1;) {
		if (x->ts < from)
			continue;
		while (other == 1 && (y->ts < x->ts || (y->ts == x->ts && !is_same(x, y))))
			other = trace_cursor_borrow(c[1], &y, err);
		++*looked;
		*common += other == 1 && is_same(x, y);
	}
	return got < 0 || other < 0 ? -1 : 0;
}

static int is_copy(const struct trace *a, const struct trace *b, bool *is, struct error *err)
{
	const event_kinds kinds = ALL_KINDS & ~KIND(EV_LOST);
	const int64_t begin[2] = { trace_info(a)->begin, trace_info(b)->begin };
	struct trace_cursor *c[2] = { trace_cursor_open(a, kinds, -1, err), NULL };
	size_t looked, common;
	c[1] = c[0] ? trace_cursor_open(b, kinds, -1, err) : NULL;
	const int status = c[1] ? compare(c, begin[0] > begin[1] ? begin[0] : begin[1], &looked, &common, err) : -1;
	trace_cursor_close(c[0]);
	trace_cursor_close(c[1]);
	*is = status == 0 && common > 0 && common * COMMON >= looked;
	return status;
}

int copies_find(struct trace *const *trace, size_t n, bool *is, struct error *err)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n && !is[i]; k++) {
			const struct trace_info *a = trace_info(trace[i]), *b = trace_info(trace[k]);
			if (k != i && may_be_same(a, b) && yields(a, b, k < i) && is_copy(trace[i], trace[k], &is[i], err) != 0)
				return -1;
		}
	return 0;
}
