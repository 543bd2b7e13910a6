/* Stack of the interrupt handlers in which a CPU is: irq over softirq over thread.
 *
 * All code that replays events uses it to find the handler that an exit ends: the innermost handler of its kind and
 * number, and all handlers inside that one, with lost exits. An exit that matches no handler belongs to a handler with
 * an unrecorded entry. */
#pragma once

#include "base/base.h"
#include "trace/trace.h"

#define IRQ_NEST_MAX 8  /* handlers stored per CPU; deeper ones are only counted */

struct irq_frame {
	int64_t number; /* number of the interrupt, as in struct event */
	int64_t text;   /* string id of the handler's name, set by the stack's owner */
	uint16_t entry; /* kind of its entry event */
};

struct irq_nest {
	struct irq_frame *frame;  /* IRQ_NEST_MAX frames, allocated at the first handler */
	uint32_t depth;
};

/* By event kind: the kind of the corresponding entry event, for entries and exits of handlers; EV_OTHER for all other
 * events. */
extern const uint16_t irq_entry_kind[EVENT_KIND_COUNT];
/* Pushes a handler. Returns its frame, for the name; NULL: the stack is too deep to store it. */
struct irq_frame *irq_nest_push(struct irq_nest *n, const struct event *ev);
/* Pops a handler. Returns false if its entry was not recorded. */
bool irq_nest_pop(struct irq_nest *n, const struct event *ev);
void irq_nest_release(struct irq_nest *n);

/* Returns the innermost stored handler; NULL: the CPU is not in a handler. */
static inline const struct irq_frame *irq_nest_top(const struct irq_nest *n)
{
	return n->depth ? &n->frame[(n->depth < IRQ_NEST_MAX ? n->depth : IRQ_NEST_MAX) - 1] : NULL;
}
