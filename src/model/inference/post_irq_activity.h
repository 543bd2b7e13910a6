/* What followed when a guest was interrupted by something that was not for it: how much longer it went on, in guest mode,
 * until it did something itself, and what that was.
 *
 * An interrupt for the host stops a guest anywhere, so what it was doing then shows only in what it does next.  Looking
 * ahead keeps that for each of them.  O(1) per event.  Memory: 16 bytes per interrupted stretch of guest mode, of those
 * events that are looked at (START_EVENTS). */
#ifndef STEALSCOPE_MODEL_INFERENCE_POST_IRQ_ACTIVITY_H
#define STEALSCOPE_MODEL_INFERENCE_POST_IRQ_ACTIVITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

#define PROSPECT_NONE 0xff  /* events were lost, an interrupt came in first, or the trace was over */

struct prospect {
	int64_t at;             /* when it left guest mode: ns, clock of the host's trace */
	int32_t rest;           /* ns in guest mode from then on */
	uint8_t end;            /* enum part_end, or PROSPECT_NONE */
	bool sent;              /* what it wrote then was an interrupt to a sibling */
	int16_t vector;         /* of the interrupt that came in first, -1 none */
};

/* Of one thread, in the order of time. */
struct prospects {
	struct prospect *one;
	size_t n, cap;
	size_t open;            /* from here on they wait for their end */
	int64_t guest;          /* ns in guest mode since the first of those */
	bool sends;             /* some of its writes are interrupts to siblings */
	size_t next;            /* replaying: the first that was not passed */
};

/* Those of a thread in a map by TID, which owns them. */
struct prospects *prospects_make(struct map *all, int64_t tid);
struct prospects *prospects_of(const struct map *all, int64_t tid);  /* NULL: there are none */
void prospects_release(struct map *all);

void prospects_left(struct prospects *p, int64_t t);   /* it left guest mode so that one wants to know what follows */
void prospects_sent(struct prospects *p);              /* that was to send an interrupt */
void prospects_ran(struct prospects *p, int64_t ns);
/* The guest did something; PROSPECT_NONE: nobody will know, since that interrupt came in, or events were lost (-1). */
void prospects_end(struct prospects *p, uint8_t end, int16_t vector);
/* That of the interrupt at t, NULL unknown; later ones are asked for later. */
const struct prospect *prospects_at(struct prospects *p, int64_t t);

#endif
