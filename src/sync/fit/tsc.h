/* Clock computed from the TSC: both traces have TSC timestamps, and KVM's offset and scaling ratio relate the guest's
 * TSC to the host's (private to sync/). */
#pragma once

#include "sync/sync.h"

/* Computes the line from guest time to the time of the machine that runs the guest, exact to 1 ns plus 1 ns per 1000 s.
 * Returns false if a trace has no TSC timestamps, or if the hint lacks the offset or is impossible. */
bool tsc_line(const struct trace_info *host, const struct trace_info *guest, const struct sync_hint *hint,
              struct clock_line *line);
