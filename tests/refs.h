/* Sets references in hand-written histories, given as text like "host/42" (as `stealscope intervals` prints them). */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "history/history.h"
#include "test.h"

static inline int set_ref(struct history_builder *b, int64_t t, uint32_t attr, const char *text, struct error *err)
{
	char name[128];
	const char *slash = strrchr(text, '/');
	assert_non_null(slash);
	snprintf(name, sizeof name, "%.*s", (int)(slash - text), text);
	return history_set(b, t, attr, history_ref(history_text(b, name, err), (uint32_t)strtoul(slash + 1, NULL, 10)), err);
}
