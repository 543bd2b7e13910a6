/* Rates of traces with times in cycles of the TSC that are recorded together with their host. */
#pragma once

#include "index/index.h"

/* If there is a trace of a host, sets tsc_millihertz of all specifications with traces in cycles: the rate measured from
 * the trace's own timer expirations, or --tsc-hz, or the host's rate. The traces must be loaded again then.
 * Without a host, the synchronization converts the times. Returns 1 if it set a rate, 0 if not, -1 with *err set. */
int tsc_rates_find(struct input *in, struct trace *const *trace, struct error *err);
void tsc_rates_add_notes(const struct input *in, struct trace *const *trace, struct notes *notes);
