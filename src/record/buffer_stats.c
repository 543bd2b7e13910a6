/* Parses a CPU's buffer statistics (per_cpu/cpuN/stats). */
#include <stdlib.h>

#include "record/proc.h"
#include "record/tracer.h"

static uint64_t stats_number(const char *text, const char *key)
{
	char *value = proc_field(text, key);
	uint64_t n = 0;
	if (value && !proc_parse_number(value, UINT64_MAX, &n))
		n = 0;
	free(value);
	return n;
}

struct cpu_stats cpu_stats_parse(const char *text)
{
	return (struct cpu_stats){
		.entries = stats_number(text, "entries"),
		.overrun = stats_number(text, "overrun"),
		.dropped = stats_number(text, "dropped events") + stats_number(text, "commit overrun"),
		.bytes = stats_number(text, "bytes"),
	};
}

uint64_t cpu_stats_lost(const struct cpu_stats *s)
{
	return s->overrun > UINT64_MAX - s->dropped ? UINT64_MAX : s->overrun + s->dropped;
}
