#include "model/inference/post_irq_activity.h"

struct irq_followups *irq_followups_create(struct map *all, int64_t tid)
{
	struct irq_followups *p = mem_new(1, sizeof *p);
	*map_put(all, (uint64_t)tid, NULL) = (uint64_t)(uintptr_t)p;
	return p;
}

struct irq_followups *irq_followups_find(const struct map *all, int64_t tid)
{
	const uint64_t *slot = map_find(all, (uint64_t)tid);
	return slot ? (struct irq_followups *)(uintptr_t)*slot : NULL;
}

void irq_followups_release(struct map *all)
{
	uint64_t tid, slot;
	for (size_t at = 0; map_each(all, &at, &tid, &slot); ) {
		struct irq_followups *p = (struct irq_followups *)(uintptr_t)slot;
		free(p->item);
		free(p);
	}
	map_release(all);
}

void irq_followups_add(struct irq_followups *p, int64_t t)
{
	if (p->first_open == p->n)
		p->guest = 0;
	const int32_t guest_ns = p->guest > INT32_MAX ? INT32_MAX : (int32_t)p->guest;
	*ARRAY_PUSH(p->item, p->n, p->cap) = (struct irq_followup){
		.at = t, .rest = guest_ns, .end = FOLLOWUP_NONE, .vector = -1 };
}

void irq_followups_ipi(struct irq_followups *p)
{
	if (p->first_open < p->n)
		p->item[p->n - 1].sent = true;
}

void irq_followups_ran(struct irq_followups *p, int64_t ns)
{
	if (ns > 0 && p->first_open < p->n && p->guest <= INT32_MAX)
		p->guest += ns < INT32_MAX ? ns : INT32_MAX;
}

void irq_followups_end(struct irq_followups *p, uint8_t end, int16_t vector)
{
	for (; p->first_open < p->n; p->first_open++) {
		struct irq_followup *item = &p->item[p->first_open];
		const int64_t rest = p->guest - item->rest;
		item->rest = rest > INT32_MAX ? INT32_MAX : (int32_t)rest;
		item->end = end;
		item->vector = vector;
	}
}

const struct irq_followup *irq_followups_at(struct irq_followups *p, int64_t t)
{
	while (p->next < p->n && p->item[p->next].at < t)
		p->next++;
	return p->next < p->n && p->item[p->next].at == t ? &p->item[p->next] : NULL;
}
