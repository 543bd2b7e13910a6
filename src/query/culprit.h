/* Table of actors: equal actors get equal numbers, in the order of their first occurrence. Private to query/. */
#pragma once

#include "base/map.h"
#include "query/query.h"

#define ACTORS_RECENT 64

struct actors {
	struct actor *actor;
	size_t len, cap;
	struct map by_hash;               /* hash of the actor (linear probing) -> its number */
	uint32_t recent[ACTORS_RECENT];  /* number + 1 of a recent actor, by hash: neighbours in time alternate between few;
	                                  * 0: none */
};

uint32_t actors_put(struct actors *p, const struct actor *actor);
void actors_release(struct actors *p);
