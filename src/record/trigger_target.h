/* Threads and control groups that a trigger names (private to record/): "thread:redis-server", "web.service", "/a/b". */
#pragma once

#include "base/base.h"

/* Calls visit() for each thread with this name, or in this control group (by its name or path). Returns their number. */
size_t trigger_target_threads(const char *root, const char *name, void (*visit)(void *arg, int32_t pid, int32_t tid),
                              void *arg);
/* Returns the path of the control group with this name or path, or of a thread with this name. NULL: there is none. The
 * caller frees. */
char *trigger_target_group(const char *root, const char *name);

/* A file whose new lines are searched. */
struct trigger_log { const char *file, *text; int fd; uint64_t inode, at; char line[4096]; size_t line_len; };
/* Begins at the file's end. It need not exist yet. */
void trigger_log_open(struct trigger_log *l);
/* Returns true if a complete line since the last call contains the text. Follows a file that is renamed or truncated. */
bool trigger_log_check(struct trigger_log *l);
void trigger_log_close(struct trigger_log *l);
