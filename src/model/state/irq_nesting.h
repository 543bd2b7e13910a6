/* The interrupt handlers that a CPU is in, within each other: irq over softirq over thread.
 *
 * Whoever replays events decides by this alone which handler an exit ends.  An exit ends the innermost handler of its
 * kind and number and all within that one, whose exits were lost; one that ends none had begun unseen. */
#ifndef STEALSCOPE_MODEL_STATE_IRQ_NESTING_H
#define STEALSCOPE_MODEL_STATE_IRQ_NESTING_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/trace.h"

#define NEST_DEEP 8  /* handlers of one CPU that are kept apart; deeper ones are counted, not kept */

struct nest_frame {
	int64_t number;      /* as in struct event */
	int64_t text;        /* the owner's: the id of its name */
	uint16_t entry;      /* the kind of event that begins it */
};

struct nest {
	struct nest_frame *frame;  /* NEST_DEEP of them, from the first handler on */
	uint32_t depth;
};

/* By kind of event, the one that begins handlers of this kind: of entries and exits; EV_OTHER for all other kinds. */
extern const uint16_t nest_entry_of[EVENT_KIND_COUNT];
/* A handler begins.  Its frame, to fill in the name; NULL when it is too deep to be kept. */
struct nest_frame *nest_enter(struct nest *n, const struct event *ev);
/* A handler ends.  False: it is none of those that were seen to begin. */
bool nest_leave(struct nest *n, const struct event *ev);
void nest_release(struct nest *n);

/* The innermost of those that are kept; NULL when the CPU is in no handler. */
static inline const struct nest_frame *nest_top(const struct nest *n)
{
	return n->depth ? &n->frame[(n->depth < NEST_DEEP ? n->depth : NEST_DEEP) - 1] : NULL;
}

#endif
