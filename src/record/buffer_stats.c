/* What the kernel says of a CPU's buffer. */
#include <stdlib.h>

#include "record/proc.h"
#include "record/tracer.h"

static uint64_t number(const char *text, const char *key)
{
	char *value = proc_field(text, key);
	uint64_t n = 0;
	if (value && !proc_is_number(value, UINT64_MAX, &n))
		n = 0;
	free(value);
	return n;
}

struct cpu_stats cpu_stats_parse(const char *text)
{
	return (struct cpu_stats){
		.entries = number(text, "entries"),
		.overrun = number(text, "overrun"),
		.dropped = number(text, "dropped events") + number(text, "commit overrun"),
		.bytes = number(text, "bytes"),
	};
}

uint64_t cpu_stats_lost(const struct cpu_stats *s)
{
	return s->overrun > UINT64_MAX - s->dropped ? UINT64_MAX : s->overrun + s->dropped;
}
