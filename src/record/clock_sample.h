/* A clock sample: simultaneous readings of the clocks of one machine. */
#pragma once

#include "base/base.h"

struct clock_sample {
	bool known;         /* the fields are valid */
	uint64_t clock;     /* trace clock: x86-tsc cycles, or ns */
	int64_t monotonic;  /* CLOCK_MONOTONIC, ns; 0: unknown */
	int64_t realtime;   /* CLOCK_REALTIME, ns since the epoch */
	int64_t error;      /* largest error of realtime, ns; 0: unknown */
};

/* Samples this machine's clocks. Of many tries, the one with the smallest uncertainty is returned. tsc: the trace
 * clock is x86-tsc; otherwise mono. */
struct clock_sample clock_sample_now(bool tsc);

/* Parses a sample sent by a guest: a line "realtime NS" (or "realtime SECONDS"), then per_cpu/cpuN/stats with the trace
 * clock in the line "now ts", then a line "realtime_after NS"; without the last line, the error is unknown. known is false
 * if the text is malformed. */
struct clock_sample clock_sample_parse(const char *text);

/* Returns the TSC frequency between two samples in millihertz (cycles per 1000 s); 0: unknown. */
uint64_t clock_sample_frequency(const struct clock_sample *a, const struct clock_sample *b);
