/* stealscope sync --audit: clocks that somebody else made, held against guest mode. */
#ifndef STEALSCOPE_CLI_CLOCK_AUDIT_H
#define STEALSCOPE_CLI_CLOCK_AUDIT_H

#include "index/index.h"
#include "report/report.h"

/* Prints one row per guest that was traced.  -1 with STATUS_ASSERTION: the events refute a clock. */
int clock_audit(const struct input *in, const struct sync_result *sync, struct report_how how, struct error *err);

#endif
