#include "model/handlers.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define NONE UINT32_MAX

static struct handler_cpu *cpu_at(struct handlers *h, uint32_t number)
{
	if (number >= h->cpus) {
		h->cpu = mem_resize(h->cpu, (size_t)number + 1, sizeof *h->cpu);
		while (h->cpus <= number)
			h->cpu[h->cpus++] = (struct handler_cpu){ .first = NONE, .last = NONE };
	}
	return &h->cpu[number];
}

static void unseen(struct handlers *h, struct handler_cpu *c, const struct event *ev, uint16_t entry_kind)
{
	uint32_t index = (uint32_t)h->len;
	*ARRAY_PUSH(h->handler, h->len, h->cap) = (struct handler){ .number = ev->arg[0], .kind = entry_kind, .gap = c->gap,
		.next = NONE };
	*(c->last == NONE ? &c->first : &h->handler[c->last].next) = index;
	c->last = index;
}

static void enter(struct handlers *h, struct handler_cpu *c, const struct event *ev)
{
	h->entries[ev->kind] = true;
	if (ev->kind == EV_IRQ_ENTRY && ev->irq.name > 0)
		*map_put(&h->name, (uint64_t)ev->irq.number, NULL) = (uint64_t)ev->irq.name;
	if (!c->seen)
		c->seen = mem_new(HANDLERS_DEEP, sizeof *c->seen);
	if (c->depth < HANDLERS_DEEP) {
		c->seen[c->depth].kind = ev->kind;
		c->seen[c->depth].number = ev->arg[0];
	}
	c->depth++;
}

/* As irq.c takes exits, so that both agree on what is left. */
static void leave(struct handlers *h, struct handler_cpu *c, const struct event *ev, uint16_t entry_kind)
{
	if (c->depth > HANDLERS_DEEP) {
		c->depth--;
		return;
	}
	for (uint32_t i = c->depth; i-- > 0; )
		if (c->seen[i].kind == entry_kind && c->seen[i].number == ev->arg[0]) {
			c->depth = i;
			return;
		}
	if (!c->settled)
		unseen(h, c, ev, entry_kind);
}

void handlers_feed(struct handlers *h, const struct event *ev)
{
	static const uint16_t entry_of[EVENT_KIND_COUNT] = { [EV_IRQ_EXIT] = EV_IRQ_ENTRY,
		[EV_SOFTIRQ_EXIT] = EV_SOFTIRQ_ENTRY, [EV_TIMER_EXIT] = EV_TIMER_ENTRY };
	bool entry = ev->kind == EV_IRQ_ENTRY || ev->kind == EV_SOFTIRQ_ENTRY || ev->kind == EV_TIMER_ENTRY;
	bool ends = ev->kind == EV_LOST || ev->kind == EV_SWITCH;
	if (!entry && !ends && !entry_of[ev->kind])
		return;
	struct handler_cpu *c = cpu_at(h, ev->cpu);
	if (entry)
		enter(h, c, ev);
	else if (!ends)
		leave(h, c, ev, entry_of[ev->kind]);
	else
		c->depth = 0;
	if (ends)
		c->settled = ev->kind == EV_SWITCH;
	c->gap += ev->kind == EV_LOST;
}

void handlers_release(struct handlers *h)
{
	for (uint32_t i = 0; i < h->cpus; i++)
		free(h->cpu[i].seen);
	free(h->handler);
	free(h->cpu);
	map_release(&h->name);
	*h = (struct handlers)HANDLERS_INIT;
}

size_t handlers_of(const struct handlers *h, uint32_t cpu, uint32_t gap, uint32_t *at, struct event out[HANDLERS_DEEP])
{
	size_t n = 0;
	if (cpu >= h->cpus)
		return 0;
	uint32_t i = *at == NONE ? h->cpu[cpu].first : h->handler[*at].next;
	for (; i != NONE && h->handler[i].gap <= gap; *at = i, i = h->handler[i].next) {
		const struct handler *found = &h->handler[i];
		if (found->gap < gap || n == HANDLERS_DEEP || !h->entries[found->kind])
			continue;
		memmove(out + 1, out, n++ * sizeof *out);  /* the innermost ends first */
		out[0] = (struct event){ .kind = found->kind, .cpu = (uint16_t)cpu, .tid = -1, .pid = -1 };
		for (size_t k = 0; k < sizeof out[0].arg / sizeof *out[0].arg; k++)
			out[0].arg[k] = EVENT_ABSENT;
		out[0].irq.number = found->number;
		uint64_t *name = found->kind == EV_IRQ_ENTRY ? map_find(&h->name, (uint64_t)found->number) : NULL;
		out[0].irq.name = name ? (int64_t)*name : EVENT_ABSENT;
	}
	return n;
}
