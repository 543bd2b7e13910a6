/* stealscope sync --audit: checks whether guest events, on clocks that were recorded with the traces, lie within guest
 * mode. */
#pragma once

#include "index/index.h"
#include "report/report.h"

/* Prints a row for each traced guest. Returns -1 with STATUS_ASSERTION if the events contradict a clock. */
int clock_audit(const struct input *in, const struct sync_result *sync, struct report_how how, struct error *err);
