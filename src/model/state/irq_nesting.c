#include "model/state/irq_nesting.h"

const uint16_t irq_entry_kind[EVENT_KIND_COUNT] = {
	[EV_IRQ_ENTRY] = EV_IRQ_ENTRY, [EV_SOFTIRQ_ENTRY] = EV_SOFTIRQ_ENTRY, [EV_TIMER_ENTRY] = EV_TIMER_ENTRY,
	[EV_IRQ_EXIT] = EV_IRQ_ENTRY, [EV_SOFTIRQ_EXIT] = EV_SOFTIRQ_ENTRY, [EV_TIMER_EXIT] = EV_TIMER_ENTRY,
};

struct irq_frame *irq_nest_push(struct irq_nest *n, const struct event *ev)
{
	if (!n->frame)
		n->frame = mem_new(IRQ_NEST_MAX, sizeof *n->frame);
	uint32_t at = n->depth;
	n->depth += at < UINT32_MAX;
	if (at >= IRQ_NEST_MAX)
		return NULL;
	n->frame[at] = (struct irq_frame){ .number = ev->arg[0], .entry = ev->kind };
	return &n->frame[at];
}

bool irq_nest_pop(struct irq_nest *n, const struct event *ev)
{
	const uint16_t entry = irq_entry_kind[ev->kind];
	if (n->depth > IRQ_NEST_MAX) {
		n->depth--;
		return true;
	}
	for (uint32_t i = n->depth; i-- > 0; )
		if (n->frame[i].entry == entry && n->frame[i].number == ev->arg[0]) {
			n->depth = i;
			return true;
		}
	return false;
}

void irq_nest_release(struct irq_nest *n)
{
	free(n->frame);
	*n = (struct irq_nest){ 0 };
}
