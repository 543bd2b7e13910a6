/* Times that come twice (private to trace/): where a machine's clock was set back while it was recorded.
 *
 * In a buffer times never go back, so where they do by more than rounding, the clock did, or a time is damaged.  Which of
 * the machine's events of that stretch came before and which after nobody can tell, those of its other CPUs' buffers least
 * of all.  They are left out, and what all its CPUs did then is a loss. */
#ifndef STEALSCOPE_TRACE_CLOCK_SETBACK_H
#define STEALSCOPE_TRACE_CLOCK_SETBACK_H

#include "trace/internal.h"

/* Of all streams of the trace, before it is published: t->twice, and the losses as a stream of its own.  A clock that goes
 * back more often than TWICE_MOST times was not set back: then times are raised, as ever. */
int twice_find(struct trace *t, struct notes *notes, struct error *err);
/* Does it come twice? */
bool twice_has(const struct trace *t, int64_t ts);

#endif
