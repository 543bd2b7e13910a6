#include "sync/evidence/prefetch_cursor.h"

#include "base/base.h"
#include "base/prefetch.h"
#include "base/streaming_store.h"

enum { BATCH_EVENTS = 1024 };  /* 90 KiB; processing a batch takes about 30 us */

struct event_batch {
	size_t len;
	struct event ev[BATCH_EVENTS];
};

struct prefetch_cursor {
	struct trace_cursor *cursor;  /* used only by the reading thread until prefetch_cursor_close() */
	struct ordered_jobs *ordered_jobs;
	struct prefetch *ahead;
	const struct event_batch *batch;
	size_t at;                    /* index of the next event in the batch */
};

static STREAMING_INLINE int fill_batch(struct trace_cursor *c, struct event_batch *batch, bool streaming, struct error *err)
{
	const struct event *ev;
	size_t n = 0;
	int got = 1;
	while (n < BATCH_EVENTS && (got = trace_cursor_borrow(c, &ev, err)) > 0)
		store_streaming(&batch->ev[n++], ev, sizeof *ev, streaming);
	batch->len = n;
	return got;
}

static int fill_next_batch(void *arg, void *to, struct error *err)
{
	const struct prefetch_cursor *c = arg;
	if (!ordered_jobs_have_threads(c->ordered_jobs))
		return fill_batch(c->cursor, to, false, err);
	const int got = fill_batch(c->cursor, to, true, err);
	streaming_fence();
	return got;
}

struct prefetch_cursor *prefetch_cursor_open(const struct trace *t, event_kinds kinds, unsigned workers, struct error *err)
{
	struct trace_cursor *cursor = trace_cursor_open(t, kinds, -1, err);
	if (!cursor)
		return NULL;
	struct prefetch_cursor *c = mem_new(1, sizeof *c);
	c->cursor = cursor;
	c->ordered_jobs = ordered_jobs_begin(workers);
	c->ahead = prefetch_begin(c->ordered_jobs, sizeof(struct event_batch), fill_next_batch, c);
	return c;
}

int prefetch_cursor_next(struct prefetch_cursor *c, const struct event **ev, struct error *err)
{
	while (!c->batch || c->at == c->batch->len) {
		const void *batch;
		const int got = prefetch_next(c->ahead, &batch, err);
		if (got <= 0)
			return got;
		c->batch = batch;
		c->at = 0;
	}
	*ev = &c->batch->ev[c->at++];
	return 1;
}

void prefetch_cursor_close(struct prefetch_cursor *c)
{
	if (!c)
		return;
	prefetch_end(c->ahead);
	ordered_jobs_end(c->ordered_jobs);
	trace_cursor_close(c->cursor);
	free(c);
}
