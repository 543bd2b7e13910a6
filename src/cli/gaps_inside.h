/* stealscope gaps --inside: where in its guest's code a vCPU was preempted. */
#ifndef STEALSCOPE_CLI_GAPS_INSIDE_H
#define STEALSCOPE_CLI_GAPS_INSIDE_H

#include "cli/query_context.h"

/* subject: NULL: all; kallsyms: a file, or NULL; top: rows of each vCPU, 0: all. */
int gaps_inside(struct scene *s, const char *subject, const char *kallsyms, size_t top, struct report_how how,
                struct error *err);

#endif
