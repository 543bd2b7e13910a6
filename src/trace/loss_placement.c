#include "trace/loss_placement.h"

#include <string.h>

void course_begin(struct course *c, struct outlet *out)
{
	*c = (struct course){ .outlet = out, .ts = NO_TIME, .last_ts = NO_TIME, .begin = NO_TIME, .lost = { .ts = NO_TIME } };
}

/* A loss of which the trace tells no time, before anything else has one, has no place: it is counted. */
static int put(struct course *c, const struct event *ev)
{
	if (ev->ts == NO_TIME) {
		c->outlet->faults.uncounted++;
		return 0;
	}
	c->ts = ev->ts > c->ts ? ev->ts : c->ts;
	return outlet_put(c->outlet, ev);
}

static int put_told(struct course *c, const struct event *ev)
{
	c->last_ts = ev->ts;
	c->last_exit = ev->kind == EV_KVM_EXIT;
	return put(c, ev);
}

/* The first of those that are held. */
static int let_go(struct course *c)
{
	const struct event ev = c->held[0];
	memmove(c->held, c->held + 1, --c->helds * sizeof *c->held);
	return put_told(c, &ev);
}

static int let_all_go(struct course *c)
{
	while (c->helds > 0)
		if (let_go(c))
			return -1;
	return 0;
}

int course_event(struct course *c, const struct event *ev)
{
	if (c->lost.ts == NO_TIME)
		return put_told(c, ev);
	if (c->helds == COURSE_TAIL && let_go(c))
		return -1;
	c->held[c->helds++] = *ev;
	return 0;
}

static struct event lost_event(const struct course *c, int64_t begin, int64_t end, int64_t count)
{
	begin = begin == NO_TIME ? end : begin;
	return (struct event){ .ts = begin, .kind = EV_LOST, .cpu = c->cpu, .tid = -1, .pid = -1,
		.lost = { end < begin ? begin : end, count } };
}

/* LTTng counts a packet's losses when it closes it, and it loses events when the packet is full and the next one is
 * not free: they are missing at the end of the packet whose counter grew.  Then the span (the whole packet) is narrowed to
 * that tail.  So is what was lost before or in the first packet, for which there is no time at which it could be put.
 * The tail begins where there was room for a switch the last time.  For small events there still may have been: so not
 * at the last event, but at the last switch, or, as a switch takes no more room than COURSE_TAIL events, that many back. */
int course_lost(struct course *c, int64_t begin, int64_t end, int64_t count)
{
	begin = begin == NO_TIME ? c->ts : begin;
	end = end == NO_TIME ? begin : end;
	struct event ev = lost_event(c, begin, end, count);
	c->outlet->faults.uncounted += count == EVENT_ABSENT;
	if (!c->lost_tail && c->passed)
		return put(c, &ev);
	c->lost = ev;
	return 0;
}

int course_gap(struct course *c, int64_t begin, int64_t end)
{
	struct event ev = lost_event(c, begin, end == NO_TIME ? c->ts : end, EVENT_ABSENT);
	return put(c, &ev);
}

int course_lost_packets(struct course *c, int64_t begin, int64_t end, uint64_t packets)
{
	c->outlet->faults.lost_packets += packets;
	begin = begin == NO_TIME ? c->ts : begin;
	return course_gap(c, begin, end == NO_TIME ? begin : end);
}

/* Where the packet before was full to its last byte, the tracer had closed it before it lost what this one counts: that is
 * missing between the two, and maybe in the tail of this one, too. */
int course_packet(struct course *c, int64_t cpu, int64_t begin)
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
	const struct event hole = lost_event(c, closed + 1, begin, 0);
	return put(c, &hole);
}

/* How many of those that are held came after the last switch. */
static unsigned behind_switch(const struct course *c)
{
	unsigned n = 0;
	while (n < c->helds && c->held[c->helds - 1 - n].kind != EV_SWITCH)
		n++;
	return n;
}

/* At the last event, which may lie in a handler of which nothing was seen; an exit from a guest lies in none: behind it. */
static int64_t tail_begin(const struct course *c)
{
	if (c->last_ts == NO_TIME || c->last_ts < c->lost.ts)
		return c->lost.ts;
	return c->last_ts + (c->last_exit && c->last_ts < INT64_MAX);
}

/* Before each that came when there was no room for a switch one may be missing: it tells of its own moment alone. */
static int put_tail(struct course *c)
{
	for (unsigned behind = behind_switch(c); c->helds > 0;) {
		const int64_t from = tail_begin(c);
		const struct event gap = lost_event(c, from, c->held[0].ts, 0);
		if ((c->helds <= behind && from < c->held[0].ts && put(c, &gap)) || let_go(c))
			return -1;
	}
	return 0;
}

int course_packet_end(struct course *c, int64_t end)
{
	c->passed = true;
	if (end != NO_TIME && c->begin != NO_TIME && outlet_covers(c->outlet, c->cpu, c->begin, end))
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
	return put(c, &ev);
}

int course_broken(struct course *c)
{
	c->passed = true;
	if (let_all_go(c))
		return -1;
	struct event ev = c->lost;
	c->lost.ts = NO_TIME;
	if (ev.ts == NO_TIME)
		return 0;
	ev.ts = ev.lost.end = c->ts > ev.ts ? c->ts : ev.ts;
	return put(c, &ev);
}
