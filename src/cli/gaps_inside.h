/* stealscope gaps --inside: lists the guest code in which vCPUs were preempted. */
#pragma once

#include "cli/query_context.h"

/* target_text: VM or vCPU (NULL: all); kallsyms: copy of the guest's /proc/kallsyms (NULL: none); top: rows for each
 * vCPU (0: all). */
int gaps_inside(struct query_context *s, const char *target_text, const char *kallsyms, size_t top, struct report_how how,
                struct error *err);
