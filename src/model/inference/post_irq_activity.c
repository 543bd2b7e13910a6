#include "model/inference/post_irq_activity.h"

#include <stdlib.h>

#include "base/mem.h"

struct prospects *prospects_make(struct map *all, int64_t tid)
{
	struct prospects *p = mem_new(1, sizeof *p);
	*map_put(all, (uint64_t)tid, NULL) = (uint64_t)(uintptr_t)p;
	return p;
}

struct prospects *prospects_of(const struct map *all, int64_t tid)
{
	const uint64_t *slot = map_find(all, (uint64_t)tid);
	return slot ? (struct prospects *)(uintptr_t)*slot : NULL;
}

void prospects_release(struct map *all)
{
	uint64_t tid, slot;
	for (size_t at = 0; map_each(all, &at, &tid, &slot); ) {
		struct prospects *p = (struct prospects *)(uintptr_t)slot;
		free(p->one);
		free(p);
	}
	map_release(all);
}

void prospects_left(struct prospects *p, int64_t t)
{
	if (p->open == p->n)
		p->guest = 0;
	const int32_t so_far = p->guest > INT32_MAX ? INT32_MAX : (int32_t)p->guest;
	*ARRAY_PUSH(p->one, p->n, p->cap) = (struct prospect){ .at = t, .rest = so_far, .end = PROSPECT_NONE, .vector = -1 };
}

void prospects_sent(struct prospects *p)
{
	if (p->open < p->n)
		p->one[p->n - 1].sent = true;
}

void prospects_ran(struct prospects *p, int64_t ns)
{
	if (ns > 0 && p->open < p->n && p->guest <= INT32_MAX)
		p->guest += ns < INT32_MAX ? ns : INT32_MAX;
}

void prospects_end(struct prospects *p, uint8_t end, int16_t vector)
{
	for (; p->open < p->n; p->open++) {
		struct prospect *one = &p->one[p->open];
		const int64_t rest = p->guest - one->rest;
		one->rest = rest > INT32_MAX ? INT32_MAX : (int32_t)rest;
		one->end = end;
		one->vector = vector;
	}
}

const struct prospect *prospects_at(struct prospects *p, int64_t t)
{
	while (p->next < p->n && p->one[p->next].at < t)
		p->next++;
	return p->next < p->n && p->one[p->next].at == t ? &p->one[p->next] : NULL;
}
