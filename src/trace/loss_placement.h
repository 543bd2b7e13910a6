/* Loss placement: passes the events of a data stream on to the sink, and inserts EV_LOST events over the intervals where
 * events may be missing. Used by all decoders of packets.
 *
 * All times are ns; NO_TIME where the trace contains no time. All functions return 0, or -1 with sink->err filled. Order
 * of calls for each packet: lost and lost_packets (as counted in the packet's header), packet, event ..., packet_end or
 * broken. */
#pragma once

#include "trace/reader.h"

#define NO_TIME INT64_MIN
#define TAIL_EVENTS 8  /* A switch event of LTTng takes 64 bytes without its contexts, any other event at least 8: so
                        * this many small events take as much space as one switch. */

struct loss_placer {
	struct event_sink *event_sink;
	bool lost_tail;       /* losses are at the packet ends, see struct layout */
	bool has_packet;      /* at least one packet has ended */
	int64_t ts;           /* latest time passed on to the sink; NO_TIME: none yet */
	int64_t last_ts;      /* time of the last event of this packet passed on; NO_TIME: none yet */
	bool last_is_exit;    /* the last event passed on is a VM exit */
	int64_t begin;        /* the packet's start; NO_TIME: unknown */
	uint16_t cpu;         /* the packet's CPU */
	struct event lost;    /* loss at the end of the current packet, from the counters in its header; ts NO_TIME: none */
	struct event delayed[TAIL_EVENTS];  /* last events of a packet with a loss; delayed, because the loss may precede
	                                     * them */
	unsigned n_delayed;
};

void loss_placer_init(struct loss_placer *c, struct event_sink *out);
int loss_placer_event(struct loss_placer *c, const struct event *ev);
/* Records that events were lost before or in the next packet. count may be EVENT_ABSENT. */
int loss_placer_lost(struct loss_placer *c, int64_t begin, int64_t end, int64_t count);
/* Inserts a loss between the previous packet and the next one that no counter of the tracer includes. */
int loss_placer_gap(struct loss_placer *c, int64_t begin, int64_t end);
int loss_placer_lost_packets(struct loss_placer *c, int64_t begin, int64_t end, uint64_t packets);
int loss_placer_packet(struct loss_placer *c, int64_t cpu, int64_t begin);  /* starts a packet; cpu -1: unchanged */
int loss_placer_packet_end(struct loss_placer *c, int64_t end);
int loss_placer_broken(struct loss_placer *c);  /* the rest of the current packet cannot be decoded */
