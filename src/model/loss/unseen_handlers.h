/* Interrupt handlers that nobody saw begin: they were entered before the trace began, or while events were lost.
 *
 * Their exits show them, afterwards.  So looking ahead tells which handlers a CPU was in when its events begin, or begin
 * again; a switch, which no handler does, ends the search.  O(depth) per event of a handler.  Memory: 32 bytes per
 * handler that was found and per CPU, and 128 per CPU that handles interrupts. */
#ifndef STEALSCOPE_MODEL_LOSS_UNSEEN_HANDLERS_H
#define STEALSCOPE_MODEL_LOSS_UNSEEN_HANDLERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "model/state/irq_nesting.h"
#include "trace/trace.h"

struct handler {
	int64_t number;         /* as in struct event */
	uint16_t kind;          /* the event that was not seen: EV_IRQ_ENTRY, ... */
	uint32_t gap;           /* of this CPU: 0 = the beginning of the trace, n = its n-th loss */
	uint32_t next;          /* of this CPU, the one that ends next; UINT32_MAX none */
};

struct handlers {
	struct handler *handler;
	size_t len, cap;
	struct handler_cpu {
		uint32_t first, last;       /* index in handler */
		uint32_t gap;
		bool settled;               /* since the gap there was a switch: whatever it was in is over */
		struct nest seen;           /* handlers that were seen to begin */
	} *cpu;
	uint32_t cpus;
	struct map name;            /* number of an interrupt -> string id */
	bool entries[EVENT_KIND_COUNT];  /* this kind of entry is recorded at all */
};

#define HANDLERS_INIT { .handler = NULL }

void handlers_feed(struct handlers *h, const struct event *ev);
bool handlers_inside(const struct handlers *h, uint32_t cpu);  /* now it is in one that was seen to begin */
void handlers_release(struct handlers *h);

/* The kinds (HANDLERS_IRQ ...) of which a trace with events of those kinds has beginnings and no ends. */
unsigned handlers_endless(event_kinds kinds);

/* The handlers that CPU `cpu` was in at the end of its gap, the outermost first, as the events of their beginning (time
 * and context are not filled in).  *at: of that CPU, UINT32_MAX at first, to be passed in again; gaps come in order. */
size_t handlers_of(const struct handlers *h, uint32_t cpu, uint32_t gap, uint32_t *at, struct event out[NEST_DEEP]);

#endif
