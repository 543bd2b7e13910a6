#include "model/state/irq_nesting.h"

#include <stdlib.h>

#include "base/mem.h"

const uint16_t nest_entry_of[EVENT_KIND_COUNT] = {
	[EV_IRQ_ENTRY] = EV_IRQ_ENTRY, [EV_SOFTIRQ_ENTRY] = EV_SOFTIRQ_ENTRY, [EV_TIMER_ENTRY] = EV_TIMER_ENTRY,
	[EV_IRQ_EXIT] = EV_IRQ_ENTRY, [EV_SOFTIRQ_EXIT] = EV_SOFTIRQ_ENTRY, [EV_TIMER_EXIT] = EV_TIMER_ENTRY,
};

struct nest_frame *nest_enter(struct nest *n, const struct event *ev)
{
	if (!n->frame)
		n->frame = mem_new(NEST_DEEP, sizeof *n->frame);
	uint32_t at = n->depth;
	n->depth += at < UINT32_MAX;
	if (at >= NEST_DEEP)
		return NULL;
	n->frame[at] = (struct nest_frame){ .number = ev->arg[0], .entry = ev->kind };
	return &n->frame[at];
}

bool nest_leave(struct nest *n, const struct event *ev)
{
	const uint16_t entry = nest_entry_of[ev->kind];
	if (n->depth > NEST_DEEP) {
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

void nest_release(struct nest *n)
{
	free(n->frame);
	*n = (struct nest){ 0 };
}
