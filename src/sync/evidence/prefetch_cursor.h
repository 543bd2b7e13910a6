/* Cursor over a whole trace that is read ahead by a second thread if there is more than one worker (private to sync/).
 * The events are those of trace_cursor_open(). Useful if processing takes as long as reading. Memory: 90 KiB per batch. */
#pragma once

#include "trace/trace.h"

struct prefetch_cursor;

struct prefetch_cursor *prefetch_cursor_open(const struct trace *t, event_kinds kinds, unsigned workers, struct error *err);
/* Returns 1, 0 at the end, or -1 on error. *ev is valid until the next call. */
int prefetch_cursor_next(struct prefetch_cursor *c, const struct event **ev, struct error *err);
void prefetch_cursor_close(struct prefetch_cursor *c);  /* allowed before the end; c may be NULL */
