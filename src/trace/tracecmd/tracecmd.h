/* trace-cmd's files, decoded through libtracecmd.
 *
 * Costs: 0.16 us per event (one CPU's 1.8 million events; parent and child run at the same time on two cores). */
#ifndef STEALSCOPE_TRACE_TRACECMD_TRACECMD_H
#define STEALSCOPE_TRACE_TRACECMD_TRACECMD_H

#include "trace/tracecmd/tracecmd_file.h"
#include "trace/reader.h"

extern const struct trace_reader tracecmd_reader;

/* Those of its operations that need the library: tracecmd_child.c, or tracecmd_none.c in a build without it. */
enum claim tracecmd_claims(const char *name, const unsigned char *head, size_t len);
void *tracecmd_enter(struct source *s, struct error *err);
int tracecmd_decode(void *entered, const struct stretch *p, struct outlet *out);

#endif
