/* The course of a data stream, whoever decodes it: events are put as they come, losses where they can have been.
 *
 * All times are ns, NO_TIME where the trace does not say; all functions return 0, or -1 with outlet->err filled.  The
 * calls of a packet come in this order: lost and lost_packets (what its header counts), packet, event ..., packet_end. */
#ifndef STEALSCOPE_TRACE_LOSS_PLACEMENT_H
#define STEALSCOPE_TRACE_LOSS_PLACEMENT_H

#include "trace/reader.h"

#define NO_TIME INT64_MIN
#define COURSE_TAIL 8  /* a switch of LTTng takes 64 bytes without its contexts, and no event fewer than 8 */

struct course {
	struct outlet *outlet;
	bool lost_tail;       /* as in struct layout */
	bool passed;          /* a packet is behind */
	int64_t ts;           /* the latest time of what was put, NO_TIME: nothing yet */
	int64_t last_ts;      /* of the last event of the packet that was put */
	bool last_exit;       /* that is an exit from a guest */
	int64_t begin;        /* of the packet */
	uint16_t cpu;         /* of the packet */
	struct event lost;    /* found at the beginning of a packet whose tail is missing; ts NO_TIME: none */
	struct event held[COURSE_TAIL];  /* the last ones of such a packet: the loss may come before them */
	unsigned helds;
};

void course_begin(struct course *c, struct outlet *out);
int course_event(struct course *c, const struct event *ev);
/* Events were lost before or in the packet that comes; count may be EVENT_ABSENT. */
int course_lost(struct course *c, int64_t begin, int64_t end, int64_t count);
/* What is missing between the packets before and the one that comes is counted nowhere else. */
int course_gap(struct course *c, int64_t begin, int64_t end);
int course_lost_packets(struct course *c, int64_t begin, int64_t end, uint64_t packets);
int course_packet(struct course *c, int64_t cpu, int64_t begin);  /* cpu -1: as before */
int course_packet_end(struct course *c, int64_t end);
int course_broken(struct course *c);  /* the packet cannot be read further */

#endif
