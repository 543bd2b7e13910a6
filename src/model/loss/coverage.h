/* Cursor over a trace's events, with the unrecorded times of its CPUs inserted as losses (EV_LOST), in order of
 * time.
 *
 * A buffer may begin later than the others, end earlier, or be missing (struct trace_cpu). If the clock was set back at
 * an unknown time (struct clock_segment), the order of events around that time is unknown: they are skipped and count as
 * a loss. Cost: O(1) more per event, O(segments) with a clock that was set back. Memory: 88 bytes per loss. */
#pragma once

#include "base/notes.h"
#include "sync/sync.h"
#include "trace/trace.h"

struct coverage {
	struct trace_cursor *cursor;
	const struct clock_map *set_back_clock;  /* clock with a setback; NULL: the clock was not set back */
	struct event *loss;          /* EV_LOST events to insert, in order of time */
	size_t losses, cap, at;
	int64_t direct_until;        /* time before which the cursor's events are returned unchanged, ns */
	const struct event *pending; /* event read from the cursor, but not returned yet */
	int got;                     /* result of reading `pending`; -1: nothing read */
};

/* Opens the events of these kinds, and EV_LOST. clock: borrowed; NULL: the host's own clock. Returns 0, or -1 with *err
 * set. */
int coverage_open(struct coverage *c, const struct trace *trace, const struct clock_map *clock, event_kinds kinds,
               struct error *err);
/* Returns 1, 0 at the end, or -1 with *err set. The event is borrowed until the next call. */
static inline int coverage_next(struct coverage *c, const struct event **ev, struct error *err);
void coverage_close(struct coverage *c);  /* a zeroed struct is allowed */

/* Returns true if events of the trace were lost, or are skipped because the clock was set back. */
bool coverage_has_losses(const struct trace *trace, const struct clock_map *clock);

/* Adds notes about CPUs with at least 1/100 of the trace and 10 ms missing. at(ctx, t) converts t to host time. */
void coverage_add_notes(const struct trace *trace, int64_t (*at)(const void *of, int64_t t), const void *of,
                        struct notes *notes);

/* Returns the earlier of the cursor's event and the next loss. got: result of reading the cursor. Returns as
 * coverage_next(). */
int coverage_choose(struct coverage *c, int got, const struct event **ev, struct error *err);

static inline int coverage_next(struct coverage *c, const struct event **ev, struct error *err)
{
	if (c->got >= 0)
		return coverage_choose(c, c->got, ev, err);
	const int got = trace_cursor_borrow(c->cursor, ev, err);
	return got > 0 && (*ev)->ts < c->direct_until ? got : coverage_choose(c, got, ev, err);
}
