/* Clock of a guest without a host trace whose trace contains TSC cycles: from timer expirations.
 *
 * hrtimer_expire_entry contains `now`, CLOCK_MONOTONIC in ns when the interrupt began, so each such event is a pair of
 * the TSC and the guest's clock; the TSC is never early. The rate is the median slope over RATE_PAIRS neighbouring pairs,
 * then refined over the longest part without a jump of the clock: a pause, after which the TSC is ahead, or a
 * migration. Cost: two passes over the timer events; memory: 16 bytes per pair, at most PAIRS_MAX. */
#pragma once

#include "sync/sync.h"

/* Sets *line to the line that converts cycles to ns of CLOCK_MONOTONIC. Returns 1, 0 = too few timer events, -1 = error. */
int tsc_rate_line(const struct trace *trace, struct clock_line *line, struct error *err);

/* Returns the line that converts cycles to ns at the frequency hz, in [TSC_HZ_MIN, TSC_HZ_MAX]; 0 cycles are 0 ns.
 * cycles: reference point of the line. */
struct clock_line tsc_given_line(int64_t cycles, int64_t hz);
