#include "sync/seen/cursor_ahead.h"

#include <stdlib.h>

#include "base/ahead.h"
#include "base/mem.h"

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

static int fill(void *arg, void *to, struct error *err)
{
	struct event_batch *batch = to;
	int got = 1;
	for (batch->len = 0; batch->len < EVENTS && got > 0; batch->len += got > 0)
		got = trace_cursor_next(arg, &batch->ev[batch->len], err);
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
	c->ahead = ahead_begin(c->chores, sizeof(struct event_batch), fill, cursor);
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
