/* Reader of traces as text, see text_line.h. */
#pragma once

#include "trace/reader.h"

extern const struct trace_reader text_reader;

/* Returns true if the file's first part contains an event as text. For files that the user named: others are recognized
 * by their first line. */
bool text_reader_finds_event(const char *path);
