/* libbabeltrace2 as a library: its plugin for CTF, and its errors as ours. */
#ifndef STEALSCOPE_TRACE_BABELTRACE_LIBRARY_H
#define STEALSCOPE_TRACE_BABELTRACE_LIBRARY_H

#include <babeltrace2/babeltrace.h>

#include "base/error.h"

/* Also silences the library's log.  May be called from several threads. */
int library_find_ctf(const bt_plugin **plugin, struct error *err);
void library_put(const bt_plugin *plugin);

/* Moves libbabeltrace2's error of this thread into *err as "what: WHY".  Of its chain of causes the root says why; the
 * details that its messages end in (addresses, names of components) are left out.  Returns -1. */
int library_error(struct error *err, const char *what);

#endif
