/* Finds a guest's clock by containment alone, without sync events (private to sync/).
 *
 * Stages: cross-correlation and offset refinement yield estimates (initial_offsets.h); each estimate is narrowed and
 * tested on an interval of the trace, then on twice as much, and so on, while it is among the best. The result is the
 * candidate that fits the whole trace, if no alternative comes close; otherwise none, with a reason. */
#pragma once

#include "sync/search/clock_candidate.h"

/* Fills *out. steps: allow clock steps (a paused VM), which is slower; for guests that no single line fits. */
void search_containment(const struct evidence *evidence, bool steps, struct clock_candidate *out);
