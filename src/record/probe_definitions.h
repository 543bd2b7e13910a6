/* Definitions of probes in tracefs. They are global, unlike the events that an instance enables.
 *
 * A group of probes is named stealscope_PID_START (with a suffix that begins with '_'): PID and start time of the recorder
 * that owns it. */
#pragma once

#include "base/base.h"

/* Returns the name of this process's group; suffix: "" or "_...". The caller frees. */
char *probe_group(const char *suffix);

/* Defines one probe: kind "p", "r" or "e"; name "GROUP/EVENT"; place and fetch arguments. Returns NULL, or the reason of a
 * failure, which the caller frees. */
char *probe_define(const char *tracefs, const char *kind, const char *name, const char *place);
/* Removes a definition, which no instance may use. Returns false on failure. */
bool probe_undefine(const char *tracefs, const char *name);

/* Removes definitions of processes that have ended. Returns their number; *failed: number that could not be removed. */
size_t probes_clean(const char *root, const char *tracefs, size_t *failed);

/* Appends a line to a file of tracefs. Returns 0 or -1 with errno. The file must not be truncated: this would remove the
 * probes of other users. */
int tracefs_append_line(const char *tracefs, const char *file, const char *line);
