/* Destination of state changes: the history builder in the program, an array in tests, nothing in a benchmark.
 *
 * The model writes from many functions, so the sink stores the first failure and the model checks it once per event.
 * Writes after a failure do nothing. Writes to attribute HISTORY_NONE, which stands for an undeclared attribute, are
 * dropped. */
#pragma once

#include "base/schema.h"
#include "history/history.h"

struct model_sink_ops {
	unsigned (*state_set)(void *to, const char *name, const char *const *state, unsigned n);
	uint32_t (*attribute)(void *to, const char *path, enum history_type type, unsigned set, struct error *err);
	int (*set)(void *to, int64_t t, uint32_t attr, int64_t value, struct error *err);
	int64_t (*text)(void *to, const char *text, struct error *err); /* returns the string's id, a value for set();
	                                                                 * -1 with *err set */
};

struct model_sink {
	const struct model_sink_ops *ops;
	void *to;         /* first argument of all operations, borrowed */
	int64_t now;      /* host time of all writes, ns; never decreases */
	bool failed;
	struct error err; /* first error, if failed */
};

extern const struct model_sink_ops sink_history;  /* requires `to` to be a struct history_builder */

unsigned sink_state_set(struct model_sink *s, const char *name, const char *const *state, unsigned n);
#define NODE_MAX 1024
/* Declares an attribute below a node such as "/Host/Threads/42" (shorter than NODE_MAX). set: state set, if it is a
 * state attribute. Returns HISTORY_NONE after a failure. */
uint32_t sink_attribute(struct model_sink *s, const char *node, const struct schema_attr *attr, unsigned set);
/* Returns the string's id, a value for sink_set(); -1 after a failure. */
int64_t sink_id(struct model_sink *s, const char *text);

/* Writes a value that has been valid since the past time t. Inline, because writes outnumber events. */
static inline void sink_set_at(struct model_sink *s, int64_t t, uint32_t attr, int64_t value)
{
	if (!s->failed && attr != HISTORY_NONE)
		s->failed = s->ops->set(s->to, t, attr, value, &s->err) < 0;
}

static inline void sink_set(struct model_sink *s, uint32_t attr, int64_t value)
{
	sink_set_at(s, s->now, attr, value);
}
