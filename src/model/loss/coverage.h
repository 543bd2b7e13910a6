/* A trace's events, and between them, as losses, what of its CPUs was not recorded: a buffer may begin later than the
 * others, end earlier, or be missing (struct trace_cpu).  Where its clock was set back, and nothing tells when (struct
 * clock_piece), nobody knows their order: they are left out, another loss.  In order of time; O(1) more per event,
 * O(pieces) with a clock that was set back.  Memory: 88 bytes per loss of a CPU. */
#ifndef STEALSCOPE_MODEL_LOSS_COVERAGE_H
#define STEALSCOPE_MODEL_LOSS_COVERAGE_H

#include "base/notes.h"
#include "sync/sync.h"
#include "trace/trace.h"

struct cover {
	struct trace_cursor *cursor;
	const struct clock_map *back;  /* a clock that was set back; or NULL */
	struct event *silence;  /* EV_LOST, in order */
	size_t silences, cap, at;
	int64_t plain_until;    /* ns: the cursor's events before that are given as they are */
	const struct event *ahead;  /* read from the cursor, and not given yet */
	int got;                /* what reading it gave; -1: not read */
};

/* All events of these kinds; EV_LOST always.  clock: borrowed, NULL: the host's own. */
int cover_open(struct cover *c, const struct trace *trace, const struct clock_map *clock, event_kinds kinds,
               struct error *err);
/* 1, 0 = end, -1.  The event is borrowed until the next call. */
static inline int cover_next(struct cover *c, const struct event **ev, struct error *err);
void cover_close(struct cover *c);  /* of zeroes: nothing */

/* Were events lost, or are they left out here? */
bool cover_loses(const struct trace *trace, const struct clock_map *clock);

/* Notes each CPU of which a part worth mentioning is missing; at(of, t) is the host's time of t. */
void cover_notes(const struct trace *trace, int64_t (*at)(const void *of, int64_t t), const void *of, struct notes *notes);

/* Of what the cursor gave and the next silence, the earlier one. */
int cover_choose(struct cover *c, int got, const struct event **ev, struct error *err);

static inline int cover_next(struct cover *c, const struct event **ev, struct error *err)
{
	if (c->got >= 0)
		return cover_choose(c, c->got, ev, err);
	const int got = trace_cursor_borrow(c->cursor, ev, err);
	return got > 0 && (*ev)->ts < c->plain_until ? got : cover_choose(c, got, ev, err);
}

#endif
