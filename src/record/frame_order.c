#include "record/frame_order.h"

#define IN(state) (1U << GUEST_##state)

/* States in which a kind of frame is accepted, and the maximum frame count; 0: unlimited. */
static const struct { unsigned states, max; } rules[FRAME_KINDS] = {
	[FRAME_REFUSE] = { ~0U, 1 },
	[FRAME_CLEANED] = { IN(CALLED), 1 },
	[FRAME_ABOUT] = { IN(CALLED), 1 },
	[FRAME_PROGRAMS] = { IN(CALLED), 1 },
	[FRAME_PROGRAM] = { IN(CALLED), 0 },  /* guest_requests.c counts these */
	[FRAME_DEFINED] = { IN(CALLED), 0 },
	[FRAME_HEADER_PAGE] = { IN(CALLED), 1 },
	[FRAME_HEADER_EVENT] = { IN(CALLED), 1 },
	[FRAME_FORMATS] = { IN(CALLED), 1 },
	[FRAME_THREADS] = { IN(CALLED) | IN(SENDING), 2 },
	[FRAME_READY] = { IN(CALLED), 1 },
	[FRAME_STARTED] = { IN(STARTING), 1 },
	[FRAME_STOPPED] = { IN(STOPPING), 1 },
	[FRAME_PAGES] = { IN(STARTED) | IN(STOPPING) | IN(SENDING), 0 },
	[FRAME_STATS] = { IN(SENDING), FRAME_CPUS },
	[FRAME_CMDLINES] = { IN(SENDING), 1 },
	[FRAME_TGIDS] = { IN(SENDING), 1 },
	[FRAME_END] = { IN(SENDING), 1 },
};

int frame_order_check(struct frame_order *o, enum guest_state state, bool trace, bool overwrite, enum frame kind,
                      struct error *err)
{
	unsigned states = rules[kind].states;
	if (!trace)
		states &= IN(CALLED);
	if (!trace && kind == FRAME_END)
		states = IN(CALLED);
	if (overwrite && kind == FRAME_PAGES)
		states = IN(SENDING);
	const bool expected = states >> state & 1;
	if (!expected || (rules[kind].max && o->count[kind] >= rules[kind].max) ||
	    (kind == FRAME_READY && !o->count[FRAME_ABOUT]))
		return error_set(err, STATUS_INPUT, NULL, "protocol error: the guest sent the frame '%s' out of order",
		                 frame_name(kind));
	static const enum frame needed[] = { FRAME_ABOUT, FRAME_HEADER_PAGE, FRAME_HEADER_EVENT, FRAME_FORMATS };
	for (size_t i = 0; trace && kind == FRAME_END && i < sizeof needed / sizeof *needed; i++)
		if (!o->count[needed[i]])
			return error_set(err, STATUS_INPUT, NULL, "protocol error: the guest sent no frame '%s'",
			                 frame_name(needed[i]));
	o->count[kind] += kind != FRAME_PAGES;
	return 0;
}

void frame_order_reset(struct frame_order *o)
{
	static const enum frame repeated[] = { FRAME_STARTED, FRAME_STOPPED, FRAME_STATS, FRAME_CMDLINES, FRAME_TGIDS,
		FRAME_END };
	for (size_t i = 0; i < sizeof repeated / sizeof *repeated; i++)
		o->count[repeated[i]] = 0;
	if (o->count[FRAME_THREADS])
		o->count[FRAME_THREADS] = 1;
}
