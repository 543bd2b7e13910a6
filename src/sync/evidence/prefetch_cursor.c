#include "sync/evidence/prefetch_cursor.h"

#include <stdlib.h>

#include "base/prefetch.h"
#include "base/mem.h"
#include "base/streaming_store.h"

enum { EVENTS = 1024 };  /* 90 KiB, some 30 us of work */

struct event_batch {
	size_t len;
	struct event ev[EVENTS];
};

struct cursor_ahead {
	struct trace_cursor *cursor;  /* its thread's alone, until the end */
	struct chores *chores;
	struct ahead *ahead;
	const struct event_batch *batch;
	size_t at;                    /* the next event in it */
};

static PASS_ON_INLINE int fill_batch(struct trace_cursor *c, struct event_batch *batch, bool away, struct error *err)
{
	const struct event *ev;
	size_t n = 0;
	int got = 1;
	while (n < EVENTS && (got = trace_cursor_borrow(c, &ev, err)) > 0)
		pass_on(&batch->ev[n++], ev, sizeof *ev, away);
	batch->len = n;
	return got;
}

static int fill(void *arg, void *to, struct error *err)
{
	const struct cursor_ahead *c = arg;
	if (!chores_have_threads(c->chores))
		return fill_batch(c->cursor, to, false, err);
	const int got = fill_batch(c->cursor, to, true, err);
	pass_on_all();
	return got;
}

struct cursor_ahead *cursor_ahead_open(const struct trace *t, event_kinds kinds, unsigned workers, struct error *err)
{
	struct trace_cursor *cursor = trace_cursor_open(t, kinds, -1, err);
	if (!cursor)
		return NULL;
	struct cursor_ahead *c = mem_new(1, sizeof *c);
	c->cursor = cursor;
	c->chores = chores_begin(workers);
	c->ahead = ahead_begin(c->chores, sizeof(struct event_batch), fill, c);
	return c;
}

int cursor_ahead_next(struct cursor_ahead *c, const struct event **ev, struct error *err)
{
	while (!c->batch || c->at == c->batch->len) {
		const void *batch;
		const int got = ahead_next(c->ahead, &batch, err);
		if (got <= 0)
			return got;
		c->batch = batch;
		c->at = 0;
	}
	*ev = &c->batch->ev[c->at++];
	return 1;
}

void cursor_ahead_close(struct cursor_ahead *c)
{
	if (!c)
		return;
	ahead_end(c->ahead);
	chores_end(c->chores);
	trace_cursor_close(c->cursor);
	free(c);
}
