/* Setbacks of a machine's clock during the recording, and the times that therefore occur twice (private to trace/).
 *
 * Within a buffer, times never decrease. A time that is lower than the previous one by more than a rounding error means
 * that the clock was set back, or that the time is damaged. The order of the machine's events in the repeated interval
 * is unknown, especially between the buffers of different CPUs. So this interval's events are dropped, and the
 * interval counts as a loss on all CPUs. */
#pragma once

#include "trace/internal.h"

/* Merges the setbacks of all streams into t->setback, adds a stream with a loss per setback and CPU, and adds a note.
 * Call it before the trace is used. If there are more than SETBACKS_MAX intervals, the times are considered damaged, not
 * set back: nothing is added. Returns 0, or -1: the losses cannot be stored. */
int setbacks_find(struct trace *t, struct notes *notes, struct error *err);
/* Returns true if ts lies in an interval of times that occur twice. */
bool setbacks_contain(const struct trace *t, int64_t ts);
