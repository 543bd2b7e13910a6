/* Time correction that trace-cmd record -A measures for a guest's CPUs. Only `sync --audit` applies it.
 *
 * trace-cmd reads the clocks of the guest's CPUs at intervals, one CPU after the other, and interpolates linearly between
 * each CPU's samples. With PTP, each sample is wrong by tens of microseconds, differently on every CPU. So the
 * corrected times of CPUs that share one clock diverge, and guest events no longer lie in guest mode. The synchronization
 * of stealscope is a thousand times more precise, and uses the guest's recorded times. */
#pragma once

#include "base/base.h"

struct time_shift_point { int64_t time, offset; };  /* ns; corrected = time + offset */

struct time_shift {                /* correction of one CPU */
	struct time_shift_point *point;  /* sorted by time */
	size_t points;
};

/* Returns true if the correction can be applied: it has at least one point, the points are sorted both before and after
 * the correction, and all values are less than a quarter of the range of int64_t. */
bool time_shift_is_valid(const struct time_shift *s);

/* Returns the corrected time of a recorded time, ns, as trace-cmd interpolates it. */
int64_t time_shift_apply(const struct time_shift *s, int64_t recorded);
