/* Sink that runs the history builder in parallel with the model: changes go through a queue and are written by an ordered
 * job (base/ordered_jobs.h).
 *
 * Calls with a result (attributes, new strings) wait until the queue is empty, so the builder receives the same calls in
 * the same order, and the file has the same bytes. The next call, or the end, reports the builder's first failure.
 * Cost: some ns per change, and a lock per batch. */
#pragma once

#include "base/ordered_jobs.h"
#include "model/model_sink.h"

struct sink_async;

extern const struct model_sink_ops sink_async;  /* requires `to` to be a struct sink_async */

struct sink_async *sink_async_begin(struct history_builder *b, struct ordered_jobs *ordered_jobs);
/* Waits until all changes are written and frees the sink; NULL is allowed. Returns 0, or -1 with *err set. */
int sink_async_end(struct sink_async *s, struct error *err);
