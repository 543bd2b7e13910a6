/* Order of a guest's frames: a table of the states in which each kind of frame is accepted. */
#pragma once

#include "record/frames.h"

enum guest_state {
	GUEST_NONE,      /* not recorded */
	GUEST_CALLED,    /* the script was sent to the guest's shell */
	GUEST_READY,     /* trace buffers are allocated */
	GUEST_STARTING,  /* the command to start tracing was sent */
	GUEST_STARTED,   /* tracing */
	GUEST_STOPPING,  /* the command to stop tracing was sent */
	GUEST_STOPPED,   /* tracing has stopped */
	GUEST_SENDING,   /* the command to send all data was sent */
	GUEST_SENT,      /* all data was received */
	GUEST_ENDED,     /* the tasks check or clean are complete */
	GUEST_FAILED,    /* reason: failure */
};

/* Frames received so far. */
struct frame_order {
	unsigned count[FRAME_KINDS];  /* frames of each kind; parts of pages frames are not counted */
};

/* Counts a frame. Returns -1 with *err if this kind is not allowed in this state, or if there are too many. trace: the
 * guest records; otherwise its task is check or clean. overwrite: flight recording; the guest sends no pages while it
 * traces. */
int frame_order_check(struct frame_order *o, enum guest_state state, bool trace, bool overwrite, enum frame kind,
                      struct error *err);
/* Allows the frames from `started` to `end` again, for the next snapshot of a flight recording. */
void frame_order_reset(struct frame_order *o);
