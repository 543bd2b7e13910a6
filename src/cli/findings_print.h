/* Findings as lines of text. */
#pragma once

#include "cli/query_context.h"

/* Computes the findings on the window; target NULL: on all machines. The caller releases *out. */
int findings_query(struct query_context *s, const struct target *target, struct findings *out, struct error *err);
/* Prints the first `most` findings, each with its longest interval and the command that shows it. */
void findings_print(const struct query_context *s, const struct findings *l, size_t most);
/* Prints what stealscope record ends with: the findings, the notes, and commands that show more. Indexes the recording if
 * needed. */
int findings_print_recording(char *recording, struct error *err);
