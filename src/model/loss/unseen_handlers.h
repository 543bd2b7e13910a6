/* Interrupt handlers without a recorded entry: entered before the trace began, or during a loss.
 *
 * Their exits are recorded later and reveal them. So the prescan finds the handlers in which a CPU was when its
 * recording began, or continued after a loss; a switch, which never happens inside a handler, ends the search. Cost:
 * O(depth) per handler event. Memory: 32 bytes per handler found and per CPU, and 128 per CPU that handles interrupts. */
#pragma once

#include "base/base.h"
#include "model/state/irq_nesting.h"
#include "trace/trace.h"

struct handler {
	int64_t number; /* number of the interrupt, as in struct event */
	uint16_t kind;  /* kind of its missing entry event: EV_IRQ_ENTRY, ... */
	uint32_t gap;   /* unrecorded time of this CPU before the handler's exit: 0: before the trace; n: its n-th loss */
	uint32_t next;  /* index of the handler of this CPU that ends next; UINT32_MAX: none */
};

struct unseen_handlers {
	struct handler *handler;
	size_t len, cap;
	struct handler_cpu {
		uint32_t first, last; /* indices in handler[]; UINT32_MAX: none */
		uint32_t gap;
		bool settled;         /* a switch was recorded since the gap: no unseen handler can follow */
		struct irq_nest seen; /* handlers with a recorded entry */
	} *cpu;
	uint32_t cpus;
	struct map name; /* number of an interrupt -> string id */
	bool entries[EVENT_KIND_COUNT];  /* by entry kind: the trace contains such events */
};

#define UNSEEN_HANDLERS_INIT { .handler = NULL }

void unseen_handlers_feed(struct unseen_handlers *h, const struct event *ev);
/* Returns true if the CPU is in a handler with a recorded entry. */
bool unseen_handlers_inside(const struct unseen_handlers *h, uint32_t cpu);
void unseen_handlers_release(struct unseen_handlers *h);

/* Returns the kinds of handlers (HANDLERS_IRQ ...) of which the trace records entries, but not exits. kinds: of its
 * events; enabled: see trace_info.asked: enabled exits may be missing because they were lost. */
unsigned handlers_without_exit(event_kinds kinds, unsigned enabled);

/* Gets in out[] the entry events of the handlers in which the CPU was at the gap's end, outermost first, without
 * time and context. Returns their number. *at: search position of that CPU, initially UINT32_MAX; gaps must be requested
 * in order. */
size_t unseen_handlers_at_gap(const struct unseen_handlers *h, uint32_t cpu, uint32_t gap, uint32_t *at,
                          struct event out[IRQ_NEST_MAX]);
