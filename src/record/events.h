/* Which events are recorded: one table for hosts and guests of all architectures. */
#ifndef STEALSCOPE_RECORD_EVENTS_H
#define STEALSCOPE_RECORD_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

enum event_side { SIDE_HOST = 1, SIDE_GUEST = 2, SIDE_BOTH = 3 };

/* "system/name" of every event that machines of that side and architecture (uname -m; NULL: any) should have, and then the
 * `extra` ones, which the user wants too, written "system:name".  The caller frees the names and the array. */
char **events_wanted(enum event_side side, const char *machine, const char *const *extra, size_t extras, size_t *n);
void events_free(char **name, size_t n);

/* Is it of a form that a kernel may have, and that no shell takes for anything else? */
bool event_is_name(const char *name);

#endif
