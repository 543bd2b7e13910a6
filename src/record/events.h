/* Events that are recorded on hosts and guests, by architecture. */
#pragma once

#include "base/base.h"

enum event_side { SIDE_HOST = 1, SIDE_GUEST = 2, SIDE_BOTH = 3 };

/* Returns the events ("system/name") for a role and an architecture (`machine`: uname -m; NULL: all architectures),
 * followed by the user's extra events, which are written "system:name". The caller frees the list with events_free(). */
char **events_wanted(enum event_side side, const char *machine, const char *const *extra, size_t extras, size_t *n);
void events_free(char **name, size_t n);

/* Returns true if the text has the form SYSTEM:NAME or SYSTEM/NAME and contains no special characters of a shell. */
bool event_is_name(const char *name);

/* Returns true for the probes of guest.sh: "stealscope_PID_START/steal_switch" or ".../steal_timer", with a suffix _cN of
 * the group for one CPU. */
bool event_is_steal_probe(const char *event);
