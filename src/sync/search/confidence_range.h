/* Finds the time range of a clock that is supported by the events (private to sync/).
 *
 * If the clock had stepped shortly before the trace's end, later events would lie at random positions: inside guest
 * mode, at a window's edge, or outside. The frequency of these positions under wrong clocks is measured by shifting
 * the clock to some other times. The clock is verified up to the time after which the remaining events alone provide
 * just enough evidence against chance; at the beginning of the trace the range starts at the corresponding time. Events
 * outside the host's trace or at times of unknown mode do not count. */
#pragma once

#include "sync/search/clock_candidate.h"

/* Gets the earliest time with min_nats nats of evidence before it and the latest time with as many after it. Returns
 * false if the first is not before the second. O(n log n) in the number of windows with events, and nine passes over
 * them. */
bool confidence_range_find(const struct evidence *evidence, const struct clock_map *clock, double min_nats,
                           struct ns_interval *out);
