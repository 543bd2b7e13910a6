/* The history builder beside the model: what the model sets goes through a queue and is set as a chore
 * (base/ordered_jobs.h).
 *
 * What has an answer (attributes, texts that were not asked for before) comes when the queue is empty, so the builder
 * gets the same calls in the same order as without: the same bytes. Its first failure is told by whatever is called
 * next, and by the end. Cost: some nanoseconds for each change, and a lock per batch of them. */
#ifndef STEALSCOPE_MODEL_SINK_ASYNC_H
#define STEALSCOPE_MODEL_SINK_ASYNC_H

#include "base/ordered_jobs.h"
#include "model/model_sink.h"

struct sink_beside;

extern const struct model_sink_ops sink_beside;  /* `to` is a struct sink_beside */

struct sink_beside *sink_beside_begin(struct history_builder *b, struct chores *chores);
int sink_beside_end(struct sink_beside *s, struct error *err);  /* all is set; NULL is allowed */

#endif
