/* Reader of CTF directories that uses libbabeltrace2. */
#ifndef STEALSCOPE_TRACE_BABELTRACE_BABELTRACE_H
#define STEALSCOPE_TRACE_BABELTRACE_BABELTRACE_H

#include "trace/reader.h"

extern const struct trace_reader babeltrace_reader;

#endif
