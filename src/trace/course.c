#include "trace/course.h"

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

int course_event(struct course *c, const struct event *ev)
{
	c->last_ts = ev->ts;
	return put(c, ev);
}

static struct event lost_event(const struct course *c, int64_t begin, int64_t end, int64_t count)
{
	begin = begin == NO_TIME ? end : begin;
	return (struct event){ .ts = begin, .kind = EV_LOST, .cpu = c->cpu, .tid = -1, .pid = -1,
		.lost = { end < begin ? begin : end, count } };
}

/* LTTng counts a packet's losses when it closes it, and it loses events when the packet is full and the next one is
 * not free: they are missing between the last event and the end of the packet whose counter grew.  Then the span
 * (the whole packet) is narrowed to that tail.  So is what was lost before or in the first packet, for which there is
 * no time at which it could be put. */
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

void course_packet(struct course *c, int64_t cpu, int64_t begin)
{
	if (cpu >= 0 && cpu <= UINT16_MAX)
		c->cpu = (uint16_t)cpu;
	c->lost.cpu = c->cpu;
	if (begin != NO_TIME && c->lost.ts > begin)
		c->lost.ts = begin;
	c->last_ts = NO_TIME;
	c->begin = begin;
}

int course_packet_end(struct course *c, int64_t end)
{
	c->passed = true;
	if (end != NO_TIME && c->begin != NO_TIME && outlet_covers(c->outlet, c->cpu, c->begin, end))
		return -1;
	if (c->lost.ts == NO_TIME)
		return 0;
	struct event ev = c->lost;
	c->lost.ts = NO_TIME;
	if (c->last_ts > ev.ts)
		ev.ts = c->last_ts;
	if (end != NO_TIME)
		ev.lost.end = end;
	if (ev.lost.end < ev.ts)
		ev.lost.end = ev.ts;
	return put(c, &ev);
}

int course_broken(struct course *c)
{
	c->passed = true;
	struct event ev = c->lost;
	c->lost.ts = NO_TIME;
	if (ev.ts == NO_TIME)
		return 0;
	ev.ts = ev.lost.end = c->ts > ev.ts ? c->ts : ev.ts;
	return put(c, &ev);
}
