#include "model/model_sink.h"

#include <string.h>

unsigned sink_state_set(struct model_sink *s, const char *name, const char *const *state, unsigned n)
{
	return s->ops->state_set(s->to, name, state, n);
}

_Static_assert((int)SCHEMA_STATE == HISTORY_STATE && (int)SCHEMA_INT == HISTORY_INT &&
               (int)SCHEMA_STRING == HISTORY_STRING && (int)SCHEMA_REF == HISTORY_REF, "the types have one order");

uint32_t sink_attribute(struct model_sink *s, const char *node, const struct schema_attr *a, unsigned set)
{
	char path[NODE_MAX + 100];
	if (s->failed)
		return HISTORY_NONE;
	stpcpy(stpcpy(stpcpy(path, node), "/"), a->name);
	uint32_t attr = s->ops->attribute(s->to, path, (enum history_type)a->type, set, &s->err);
	s->failed = attr == HISTORY_NONE;
	return attr;
}

int64_t sink_id(struct model_sink *s, const char *text)
{
	int64_t id = s->failed ? -1 : s->ops->text(s->to, text, &s->err);
	s->failed = id < 0;
	return id;
}
