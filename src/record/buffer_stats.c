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

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

struct cpu_stats cpu_stats_parse(const char *text)
{
	return (struct cpu_stats){
		.entries = stats_number(text, "entries"),
		.overrun = stats_number(text, "overrun"),
		.dropped = add_saturated(stats_number(text, "dropped events"), stats_number(text, "commit overrun")),
		.bytes = stats_number(text, "bytes"),
	};
}

uint64_t cpu_stats_lost(const struct cpu_stats *s)
{
	return add_saturated(s->overrun, s->dropped);
}
