/* Namespaces of threads in a recording of stealscope-record(1). */
#pragma once

#include "trace/pages/pages.h"
#include "trace/pages/ring_records.h"

/* Puts the events of a state dump without states, with the names from the file saved_cmdlines, at the begin of the
 * recording, on its first CPU. Returns 0, or -1 with out->err set. */
int pages_put_namespaces(const struct pages *p, struct ring *r, struct event_sink *out);
