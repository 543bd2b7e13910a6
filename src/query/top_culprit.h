/* Who took most, for whom one line is room.  Private to query/. */
#ifndef STEALSCOPE_QUERY_TOP_CULPRIT_H
#define STEALSCOPE_QUERY_TOP_CULPRIT_H

#include "query/query_internal.h"

/* Counted together is what is of one machine, but for the hypervisor's work for the subject itself, which is not its
 * siblings' doing.  THIEF_NOBODY's, who is of none, are not: no CPU was idle because of a quota.  Whoever sleeps has no
 * CPU either. */
enum { THIEF_NOBODY, THIEF_SERVICE, THIEF_MACHINES };
unsigned thief_group(const struct topo *topo, const struct subject *self, const struct party *p);
/* party[i] took ns[i]. */
void thief_find(const struct topo *topo, const struct subject *self, const struct party *party, const int64_t *ns,
                size_t n, struct thief *out);

#endif
