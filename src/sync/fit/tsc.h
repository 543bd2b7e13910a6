/* A guest's clock that need not be estimated: both sides counted the same TSC, and KVM says how the guest's is made of
 * the host's (private to sync/). */
#ifndef STEALSCOPE_SYNC_FIT_TSC_H
#define STEALSCOPE_SYNC_FIT_TSC_H

#include "sync/sync.h"

/* The guest's time -> that of the machine that runs it, to 1 ns and 1 ns per 1000 s.  false: a trace has no TSC times, the
 * hint does not say how, or it says what cannot be. */
bool tsc_line(const struct trace_info *host, const struct trace_info *guest, const struct sync_hint *hint,
              struct clock_line *line);

#endif
