/* Records the guest's activity after an interrupt of the host: time in guest mode until its next own action, and that
 * action.
 *
 * An interrupt for the host stops a guest anywhere, so only the guest's next action shows what it was doing. The prescan
 * stores that action for each interruption. O(1) per event. Memory: 16 bytes per interruption, among the events that the
 * prescan reads (PRESCAN_EVENTS). */
#pragma once

#include "base/base.h"

#define FOLLOWUP_NONE 0xff  /* no action: events were lost, an interrupt was injected first, or the trace ended */

struct irq_followup {
	int64_t at;     /* the VM exit's time, ns of the host's trace */
	int32_t rest;   /* time in guest mode from that exit to the action, ns */
	uint8_t end;    /* action: enum interval_end, or FOLLOWUP_NONE */
	bool sent;      /* the action is a write that sent an IPI to a sibling */
	int16_t vector; /* interrupt injected before any action; -1: none */
};

/* Interruptions of one thread, in order of time. */
struct irq_followups {
	struct irq_followup *item;
	size_t n, cap;
	size_t first_open; /* index of the first interruption without an action */
	int64_t guest;     /* time in guest mode since that interruption, ns */
	bool sends;        /* some of its writes send IPIs to siblings */
	size_t next;       /* replay: index of the next interruption */
};

/* Creates the list of a thread in a map by TID, which owns the list. */
struct irq_followups *irq_followups_create(struct map *all, int64_t tid);
/* Returns the list of a thread; NULL: none. */
struct irq_followups *irq_followups_find(const struct map *all, int64_t tid);
void irq_followups_release(struct map *all);

/* Adds an interruption, or a write, to be completed by the next action. */
void irq_followups_add(struct irq_followups *p, int64_t t);
void irq_followups_ipi(struct irq_followups *p);              /* Marks the last item: its write sent an IPI. */
void irq_followups_ran(struct irq_followups *p, int64_t ns);
/* Completes all pending items with the action `end`. FOLLOWUP_NONE: no action, because `vector` was injected, or (-1)
 * events were lost. */
void irq_followups_end(struct irq_followups *p, uint8_t end, int16_t vector);
/* Returns the item at time t; NULL: unknown. t must not decrease between calls. */
const struct irq_followup *irq_followups_at(struct irq_followups *p, int64_t t);
