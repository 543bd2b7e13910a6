/* Parties by number: equal ones get equal numbers, in the order in which they come.  Private to query/. */
#ifndef STEALSCOPE_QUERY_CULPRIT_H
#define STEALSCOPE_QUERY_CULPRIT_H

#include "base/map.h"
#include "query/query.h"

#define PARTIES_RECENT 64

struct parties {
	struct party *party;
	size_t len, cap;
	struct map by_hash;               /* probed upwards -> number */
	uint32_t recent[PARTIES_RECENT];  /* number + 1, by hash: neighbours in time alternate between few */
};

uint32_t parties_put(struct parties *p, const struct party *who);
void parties_release(struct parties *p);

#endif
