/* Reader of trace-cmd's files. libtraceevent decodes the events.
 *
 * Cost: 0.16 us per event (1.8 million events of one CPU; parent and child in parallel on two cores). */
#pragma once

#include "trace/tracecmd/tracecmd_file.h"
#include "trace/reader.h"

extern const struct trace_reader tracecmd_reader;

/* Operations that need libtraceevent: dat_child.c, or traceevent_none.c in a build without it. */
enum claim tracecmd_claims(const char *name, const unsigned char *head, size_t len);
void *tracecmd_enter(struct source *s, struct error *err);
int tracecmd_decode(void *state, const struct stream_part *p, struct event_sink *out);
