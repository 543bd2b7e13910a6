/* Where state changes go: a history builder in the program, an array in tests, nothing in a benchmark.
 *
 * The model is full of small writes, so a failure is kept here and looked at once per event.  Writes after a
 * failure do nothing.  Attribute HISTORY_NONE is declared by nobody and swallows its writes. */
#ifndef STEALSCOPE_MODEL_MODEL_SINK_H
#define STEALSCOPE_MODEL_MODEL_SINK_H

#include "base/schema.h"
#include "history/history.h"

struct model_sink_ops {
	unsigned (*state_set)(void *to, const char *name, const char *const *state, unsigned n);
	uint32_t (*attribute)(void *to, const char *path, enum history_type type, unsigned set, struct error *err);
	int (*set)(void *to, int64_t t, uint32_t attr, int64_t value, struct error *err);
	int64_t (*text)(void *to, const char *text, struct error *err);  /* its id, for set; -1 */
};

struct model_sink {
	const struct model_sink_ops *ops;
	void *to;           /* borrowed: the first argument of the operations */
	int64_t now;        /* ns host time of all writes; never runs backwards */
	bool failed;
	struct error err;   /* why */
};

extern const struct model_sink_ops sink_history;  /* `to` is a struct history_builder */

unsigned sink_state_set(struct model_sink *s, const char *name, const char *const *state, unsigned n);
#define NODE_LONGEST 1024
/* The attribute below a node, "/Host/Threads/42", of less than NODE_LONGEST bytes.  set: of a state. */
uint32_t sink_attribute(struct model_sink *s, const char *node, const struct schema_attr *attr, unsigned set);
int64_t sink_id(struct model_sink *s, const char *text);  /* what to set for it; -1 after a failure */

/* Told late: it has not changed since t.  Inline, as it happens more often than events do. */
static inline void sink_set_at(struct model_sink *s, int64_t t, uint32_t attr, int64_t value)
{
	if (!s->failed && attr != HISTORY_NONE)
		s->failed = s->ops->set(s->to, t, attr, value, &s->err) < 0;
}

static inline void sink_set(struct model_sink *s, uint32_t attr, int64_t value)
{
	sink_set_at(s, s->now, attr, value);
}

#endif
