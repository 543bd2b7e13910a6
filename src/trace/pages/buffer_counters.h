/* The kernel's counters of a CPU's ring buffer (per_cpu/cpuN/stats in tracefs). */
#pragma once

#include <stdint.h>

struct cpu_stat {
	unsigned cpu;
	uint64_t events;     /* lower bound of the number of events recorded and not overwritten */
	uint64_t lost;       /* events overrun and dropped */
	int64_t now;         /* time at which the counters were read, ns; INT64_MAX: unknown, or in cycles */
};

/* Parses the file's text. The caller must set `cpu`, which the text does not contain. */
struct cpu_stat cpu_stat_parse(const char *text);
