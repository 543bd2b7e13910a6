#include "model/sink.h"

unsigned sink_state_set(struct sink *s, const char *name, const char *const *state, unsigned n)
{
	return s->ops->state_set(s->to, name, state, n);
}

uint32_t sink_attribute(struct sink *s, const char *path, enum history_type type, unsigned set)
{
	if (s->failed)
		return HISTORY_NONE;
	uint32_t attr = s->ops->attribute(s->to, path, type, set, &s->err);
	s->failed = attr == HISTORY_NONE;
	return attr;
}

void sink_set(struct sink *s, uint32_t attr, int64_t value)
{
	if (!s->failed && attr != HISTORY_NONE)
		s->failed = s->ops->set(s->to, s->now, attr, value, &s->err) < 0;
}

void sink_text(struct sink *s, uint32_t attr, const char *value)
{
	if (!s->failed && attr != HISTORY_NONE)
		s->failed = s->ops->set_string(s->to, s->now, attr, value, &s->err) < 0;
}
