/* Detects traces that were given twice, whole or as an excerpt (private to sync/). */
#pragma once

#include "trace/trace.h"

/* Sets is_duplicate[i] for each trace that is contained in another trace. Of two equal traces the host's is kept;
 * otherwise the one with more events; otherwise the first. Returns 0, or -1 with *err set. */
int duplicate_traces_find(struct trace *const *trace, size_t n, bool *is_duplicate, struct error *err);
