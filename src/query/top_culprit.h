/* Selection of the main culprit, for one line of text. Private to query/. */
#pragma once

#include "query/query_internal.h"

/* Groups of actors. The actors of one machine are a group, except the hypervisor's work for the target itself
 * (CULPRIT_SERVICE). Actors without a machine or without a CPU (CULPRIT_NOBODY: an idle CPU, a quota, a sleeper) are
 * compared one by one and not summed. */
enum { CULPRIT_NOBODY, CULPRIT_SERVICE, CULPRIT_MACHINES };
unsigned culprit_group(const struct catalog *catalog, const struct target *self, const struct actor *p);
/* Finds the main culprit among n actors; ns[i]: time that actor[i] took. */
void culprit_find(const struct catalog *catalog, const struct target *self, const struct actor *actor, const int64_t *ns,
                  size_t n, struct top_culprit *out);
