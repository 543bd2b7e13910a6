/* What trace-cmd record -A added to the times of a guest's CPU, and how to take it away again.
 *
 * trace-cmd asks the guest's CPUs for the time now and then, one after the other, and libtracecmd draws a line through
 * the answers of each CPU.  Over PTP each answer is wrong by tens of microseconds, in another way on every CPU: times
 * of one guest's CPUs that were the same clock are none any more, and fit into no guest mode.  Our own clocks are a
 * thousand times better, but they need the guest's clock as it was.
 *
 * The result is the time that was recorded, to within the rounding of libtracecmd (2 ns), and keeps the order. */
#ifndef STEALSCOPE_TRACE_TRACECMD_TRACECMD_OFFSET_H
#define STEALSCOPE_TRACE_TRACECMD_TRACECMD_OFFSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shift_point { int64_t time, offset; };  /* ns; corrected = time + offset */

struct shift {                /* of one CPU */
	struct shift_point *point;  /* by time */
	size_t points;
};

/* Can it be taken away: are there points, in order before and after the correction, within a quarter of the range
 * of time? */
bool shift_is_sane(const struct shift *s);

int64_t shift_undo(const struct shift *s, int64_t corrected);

#endif
