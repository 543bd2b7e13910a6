/* What the kernel says of a CPU's ring buffer (per_cpu/cpuN/stats). */
#ifndef STEALSCOPE_TRACE_PAGES_BUFFER_COUNTERS_H
#define STEALSCOPE_TRACE_PAGES_BUFFER_COUNTERS_H

#include <stdint.h>

struct cpu_stat {
	unsigned cpu;
	uint64_t events;     /* that were recorded at least, and not overwritten */
	uint64_t lost;       /* overrun and dropped */
	int64_t now;         /* ns: when that was; INT64_MAX: not said, or in cycles */
};

/* cpu is not in the text. */
struct cpu_stat cpu_stat_parse(const char *text);

#endif
