#include "trace/loss_placement.h"

#include <string.h>

void loss_placer_init(struct loss_placer *c, struct event_sink *out)
{
	*c = (struct loss_placer){ .event_sink = out, .ts = NO_TIME, .last_ts = NO_TIME, .begin = NO_TIME,
		.lost = { .ts = NO_TIME } };
}

/* Passes an event on. A loss without any time, at the trace's start, cannot be placed and is only counted. */
static int put_event(struct loss_placer *c, const struct event *ev)
{
	if (ev->ts == NO_TIME) {
		c->event_sink->faults.uncounted++;
		return 0;
	}
	c->ts = ev->ts > c->ts ? ev->ts : c->ts;
	return event_sink_put(c->event_sink, ev);
}

static int put_recorded(struct loss_placer *c, const struct event *ev)
{
	c->last_ts = ev->ts;
	c->last_is_exit = ev->kind == EV_VCPU_EXIT;
	return put_event(c, ev);
}

/* Passes the oldest delayed event on. */
static int put_oldest(struct loss_placer *c)
{
	const struct event ev = c->delayed[0];
	memmove(c->delayed, c->delayed + 1, --c->n_delayed * sizeof *c->delayed);
	return put_recorded(c, &ev);
}

static int put_delayed(struct loss_placer *c)
{
	while (c->n_delayed > 0)
		if (put_oldest(c))
			return -1;
	return 0;
}

int loss_placer_event(struct loss_placer *c, const struct event *ev)
{
	if (c->lost.ts == NO_TIME)
		return put_recorded(c, ev);
	if (c->n_delayed == TAIL_EVENTS && put_oldest(c))
		return -1;
	c->delayed[c->n_delayed++] = *ev;
	return 0;
}

static struct event lost_event(const struct loss_placer *c, int64_t begin, int64_t end, int64_t count)
{
	begin = begin == NO_TIME ? end : begin;
	return (struct event){ .ts = begin, .kind = EV_LOST, .cpu = c->cpu, .tid = -1, .pid = -1,
		.lost = { end < begin ? begin : end, count } };
}

/* Where in a packet a loss is placed.
 *
 * LTTng loses events when a packet is full and the next one is not free, and counts them when it closes the full packet.
 * So they are missing at the end of the packet in which the counter increased (layout.lost_tail). The loss first covers
 * the whole packet, and is then narrowed to the packet's tail. This also applies to a loss before or in the first
 * packet, because no earlier time is known.
 *
 * The tail begins where a switch event last fitted into the packet. A smaller event may still fit when a switch does
 * not; so the tail begins at the last switch and not at the last event. If the packet has no switch among its last
 * TAIL_EVENTS events, the tail begins that many events before the end, because a switch is not larger than so many
 * events. */
int loss_placer_lost(struct loss_placer *c, int64_t begin, int64_t end, int64_t count)
{
	begin = begin == NO_TIME ? c->ts : begin;
	end = end == NO_TIME ? begin : end;
	struct event ev = lost_event(c, begin, end, count);
	c->event_sink->faults.uncounted += count == EVENT_ABSENT;
	if (!c->lost_tail && c->has_packet)
		return put_event(c, &ev);
	c->lost = ev;
	return 0;
}

int loss_placer_gap(struct loss_placer *c, int64_t begin, int64_t end)
{
	struct event ev = lost_event(c, begin, end == NO_TIME ? c->ts : end, EVENT_ABSENT);
	return put_event(c, &ev);
}

int loss_placer_lost_packets(struct loss_placer *c, int64_t begin, int64_t end, uint64_t packets)
{
	c->event_sink->faults.lost_packets += packets;
	begin = begin == NO_TIME ? c->ts : begin;
	return loss_placer_gap(c, begin, end == NO_TIME ? begin : end);
}

/* If the previous packet was full to its last byte, the tracer closed it before it lost the events counted here: they
 * are missing between the two packets, and perhaps also in the tail of this one. */
int loss_placer_packet(struct loss_placer *c, int64_t cpu, int64_t begin)
{
	if (cpu >= 0 && cpu <= UINT16_MAX)
		c->cpu = (uint16_t)cpu;
	c->lost.cpu = c->cpu;
	c->last_ts = NO_TIME;
	c->begin = begin;
	if (begin == NO_TIME || c->lost.ts == NO_TIME)
		return 0;
	const int64_t closed = c->lost.ts;
	c->lost.ts = begin;
	if (closed >= begin - 1)
		return 0;
	const struct event gap = lost_event(c, closed + 1, begin, 0);
	return put_event(c, &gap);
}

/* Returns the delayed event count after the last switch. */
static unsigned count_after_switch(const struct loss_placer *c)
{
	unsigned n = 0;
	while (n < c->n_delayed && c->delayed[c->n_delayed - 1 - n].kind != EV_SWITCH)
		n++;
	return n;
}

/* Returns the loss's start: the time of the last event, which may be inside a handler whose entry was lost. After a
 * VM exit, which cannot be inside a handler, the loss starts 1 ns later. */
static int64_t tail_begin(const struct loss_placer *c)
{
	if (c->last_ts == NO_TIME || c->last_ts < c->lost.ts)
		return c->lost.ts;
	return c->last_ts + (c->last_is_exit && c->last_ts < INT64_MAX);
}

/* Passes the delayed events on. One event may be missing before each event after the last switch, so a loss without a
 * count precedes each of these. */
static int put_tail(struct loss_placer *c)
{
	for (unsigned after_switch = count_after_switch(c); c->n_delayed > 0;) {
		const int64_t from = tail_begin(c);
		const struct event gap = lost_event(c, from, c->delayed[0].ts, 0);
		if ((c->n_delayed <= after_switch && from < c->delayed[0].ts && put_event(c, &gap)) || put_oldest(c))
			return -1;
	}
	return 0;
}

int loss_placer_packet_end(struct loss_placer *c, int64_t end)
{
	c->has_packet = true;
	const int64_t last = c->n_delayed ? c->delayed[c->n_delayed - 1].ts : c->last_ts;
	end = end != NO_TIME && end < last ? last : end;  /* LTTng up to 2.10, and packets of a crashed tracer */
	const bool has_times = c->begin != NO_TIME && c->begin >= 0 && end >= c->begin;  /* false: none, or a damaged header */
	if (has_times && event_sink_add_coverage(c->event_sink, c->cpu, c->begin, end))
		return -1;
	if (c->lost.ts == NO_TIME)
		return 0;
	if (put_tail(c))
		return -1;
	struct event ev = c->lost;
	if (end != NO_TIME)
		ev.lost.end = end;
	if (c->last_ts > ev.lost.end)
		ev.lost.end = c->last_ts;
	const int64_t begin = tail_begin(c);
	ev.ts = begin < ev.lost.end ? begin : ev.lost.end;
	c->lost.ts = NO_TIME;
	return put_event(c, &ev);
}

int loss_placer_broken(struct loss_placer *c)
{
	c->has_packet = true;
	if (put_delayed(c))
		return -1;
	struct event ev = c->lost;
	c->lost.ts = NO_TIME;
	if (ev.ts == NO_TIME)
		return 0;
	ev.ts = ev.lost.end = c->ts > ev.ts ? c->ts : ev.ts;
	return put_event(c, &ev);
}
