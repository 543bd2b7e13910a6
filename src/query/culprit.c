/* Table of actors. */
#include "query/culprit.h"

#include "base/base.h"
#include "base/hash.h"

static uint64_t actor_hash(const struct actor *p)
{
	return hash_end(hash_number((uint64_t)(uint32_t)p->tid << 32 | p->name,
	                            (uint64_t)p->reason << 40 ^ (uint64_t)(uint32_t)p->machine << 8 ^ p->kind));
}

/* Returns the number of the actor; adds the actor if it is new. hash: actor_hash() of the actor. */
static __attribute__((noinline)) uint32_t actors_find(struct actors *p, const struct actor *actor, uint64_t hash)
{
	uint32_t *recent = &p->recent[hash % ACTORS_RECENT];
	for (;; hash++) {
		bool is_new;
		uint64_t *at = map_put(&p->by_hash, hash, &is_new);
		if (is_new) {
			*at = p->len;
			*ARRAY_PUSH(p->actor, p->len, p->cap) = *actor;
		}
		if (actor_same(&p->actor[*at], actor)) {
			*recent = (uint32_t)*at + 1;
			return (uint32_t)*at;
		}
	}
}

uint32_t actors_put(struct actors *p, const struct actor *actor)
{
	const uint64_t hash = actor_hash(actor);
	const uint32_t recent = p->recent[hash % ACTORS_RECENT];
	return recent && actor_same(&p->actor[recent - 1], actor) ? recent - 1 : actors_find(p, actor, hash);
}

void actors_release(struct actors *p)
{
	free(p->actor);
	map_release(&p->by_hash);
	*p = (struct actors){ 0 };
}
