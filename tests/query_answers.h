/* Answers of two queries in the form that most tests need. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "query/query.h"

static inline int steal_matrix(const struct catalog *catalog, enum steal_by by, const struct target *only, int64_t from,
                               int64_t to, struct steal *out, struct error *err)
{
	const struct steal_options options = { .by = by, .only = only, .from = from, .to = to };
	return query_answer(steal_open(catalog, &options), out, err);
}

/* Writes the viewer's line about a target at t; "" on failure. */
static inline int explain_status(const struct catalog *catalog, const struct target *s, int64_t t, char *buf, size_t size,
                                 struct error *err)
{
	char *text;
	const int rc = query_answer(status_open(catalog, s, t), &text, err);
	snprintf(buf, size, "%s", text ? text : "");
	free(text);
	return rc;
}
