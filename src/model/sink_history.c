#include "model/model_sink.h"

static unsigned history_sink_state_set(void *to, const char *name, const char *const *state, unsigned n)
{
	return history_state_set(to, name, state, n);
}

static uint32_t history_sink_attribute(void *to, const char *path, enum history_type type, unsigned set,
                                       struct error *err)
{
	return history_attribute(to, path, type, set, err);
}

static int history_sink_set(void *to, int64_t t, uint32_t attr, int64_t value, struct error *err)
{
	return history_set(to, t, attr, value, err);
}

static int64_t history_sink_text(void *to, const char *text, struct error *err)
{
	return history_text(to, text, err);
}

const struct model_sink_ops sink_history = {
	.state_set = history_sink_state_set,
	.attribute = history_sink_attribute,
	.set = history_sink_set,
	.text = history_sink_text,
};
