/* A cursor over all of a trace that a thread of its own reads ahead, when there is more than one worker (private to
 * sync/).  The events are the same.  For a walk that takes as long as reading does.  Memory: some 90 KiB a batch. */
#ifndef STEALSCOPE_SYNC_EVIDENCE_PREFETCH_CURSOR_H
#define STEALSCOPE_SYNC_EVIDENCE_PREFETCH_CURSOR_H

#include "trace/trace.h"

struct cursor_ahead;

struct cursor_ahead *cursor_ahead_open(const struct trace *t, event_kinds kinds, unsigned workers, struct error *err);
/* *ev stays valid until the following call: 1, 0 = end, -1. */
int cursor_ahead_next(struct cursor_ahead *c, const struct event **ev, struct error *err);
void cursor_ahead_close(struct cursor_ahead *c);  /* at any time; NULL is allowed */

#endif
