#include "model/loss/unseen_handlers.h"

#define NONE UINT32_MAX

static struct handler_cpu *get_cpu(struct unseen_handlers *h, uint32_t number)
{
	if (number >= h->cpus) {
		h->cpu = mem_resize(h->cpu, (size_t)number + 1, sizeof *h->cpu);
		while (h->cpus <= number)
			h->cpu[h->cpus++] = (struct handler_cpu){ .first = NONE, .last = NONE };
	}
	return &h->cpu[number];
}

static void add_unseen(struct unseen_handlers *h, struct handler_cpu *c, const struct event *ev, uint16_t entry_kind)
{
	uint32_t index = (uint32_t)h->len;
	*ARRAY_PUSH(h->handler, h->len, h->cap) = (struct handler){ .number = ev->arg[0], .kind = entry_kind, .gap = c->gap,
		.next = NONE };
	*(c->last == NONE ? &c->first : &h->handler[c->last].next) = index;
	c->last = index;
}

static void enter_handler(struct unseen_handlers *h, struct handler_cpu *c, const struct event *ev)
{
	h->entries[ev->kind] = true;
	if (ev->kind == EV_IRQ_ENTRY && ev->irq.name > 0)
		*map_put(&h->name, (uint64_t)ev->irq.number, NULL) = (uint64_t)ev->irq.name;
	irq_nest_push(&c->seen, ev);
}

void unseen_handlers_feed(struct unseen_handlers *h, const struct event *ev)
{
	uint16_t entry = irq_entry_kind[ev->kind];
	bool ends = ev->kind == EV_LOST || ev->kind == EV_SWITCH;
	if (!entry && !ends)
		return;
	struct handler_cpu *c = get_cpu(h, ev->cpu);
	if (ends) {
		c->seen.depth = 0;
		c->settled = ev->kind == EV_SWITCH;
		c->gap += ev->kind == EV_LOST;
	} else if (entry == ev->kind) {
		enter_handler(h, c, ev);
	} else if (!irq_nest_pop(&c->seen, ev) && !c->settled) {
		add_unseen(h, c, ev, entry);
	}
}

bool unseen_handlers_inside(const struct unseen_handlers *h, uint32_t cpu)
{
	return cpu < h->cpus && h->cpu[cpu].seen.depth > 0;
}

void unseen_handlers_release(struct unseen_handlers *h)
{
	for (uint32_t i = 0; i < h->cpus; i++)
		irq_nest_release(&h->cpu[i].seen);
	free(h->handler);
	free(h->cpu);
	map_release(&h->name);
	*h = (struct unseen_handlers)UNSEEN_HANDLERS_INIT;
}

unsigned handlers_without_exit(event_kinds kinds, unsigned enabled)
{
	unsigned entries = 0, exits = enabled / ENABLED_EXITS & HANDLERS_ALL;
	for (unsigned kind = 0; kind < EVENT_KIND_COUNT; kind++) {
		entries |= kinds & KIND(kind) ? handlers_kind(kind) : 0;
		exits |= kinds & KIND(kind) ? handlers_exit_kind(kind) : 0;
	}
	return entries & ~exits;
}

size_t unseen_handlers_at_gap(const struct unseen_handlers *h, uint32_t cpu, uint32_t gap, uint32_t *at,
                          struct event out[IRQ_NEST_MAX])
{
	size_t n = 0;
	if (cpu >= h->cpus)
		return 0;
	uint32_t i = *at == NONE ? h->cpu[cpu].first : h->handler[*at].next;
	for (; i != NONE && h->handler[i].gap <= gap; *at = i, i = h->handler[i].next) {
		const struct handler *found = &h->handler[i];
		if (found->gap < gap || n == IRQ_NEST_MAX || !h->entries[found->kind])
			continue;
		memmove(out + 1, out, n++ * sizeof *out);  /* the innermost handler ends first */
		out[0] = (struct event){ .kind = found->kind, .cpu = (uint16_t)cpu, .tid = -1, .pid = -1 };
		for (size_t k = 0; k < sizeof out[0].arg / sizeof *out[0].arg; k++)
			out[0].arg[k] = EVENT_ABSENT;
		out[0].irq.number = found->number;
		uint64_t *name = found->kind == EV_IRQ_ENTRY ? map_find(&h->name, (uint64_t)found->number) : NULL;
		out[0].irq.name = name ? (int64_t)*name : EVENT_ABSENT;
	}
	return n;
}
