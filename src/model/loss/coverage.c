#include "model/loss/coverage.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/timefmt.h"

enum { RANGE_BYTES = 24 };  /* maximum length of ", CPU65535-65535" */
enum { NOTE_PART = 100 };  /* minimum length of a gap with a note: 1/100 of the trace */

static void add_loss(struct coverage *c, unsigned cpu, int64_t from, int64_t to)
{
	*ARRAY_PUSH(c->loss, c->losses, c->cap) = (struct event){ .ts = from, .kind = EV_LOST, .cpu = (uint16_t)cpu,
		.tid = -1, .pid = -1, .lost = { to, EVENT_ABSENT } };
}

static int compare_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;
	return x->ts != y->ts ? (x->ts < y->ts ? -1 : 1) : (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

static bool is_set_back(const struct clock_map *clock)
{
	for (size_t i = 0; clock && i < clock->segments; i++)
		if (clock->segment[i].repeats)
			return true;
	return false;
}

bool coverage_has_losses(const struct trace *trace, const struct clock_map *clock)
{
	return trace_info(trace)->lost || trace_info(trace)->uncounted || is_set_back(clock);
}

static void add_set_back_losses(struct coverage *c, const struct trace_info *info)
{
	for (size_t i = 0; c->set_back_clock && i < c->set_back_clock->segments; i++) {
		const struct clock_segment *p = &c->set_back_clock->segment[i];
		const int64_t from = p->ambiguous_from > info->begin ? p->ambiguous_from : info->begin;
		const int64_t to = p->ambiguous_to <= info->end ? p->ambiguous_to - 1 : info->end;
		for (unsigned cpu = 0; p->repeats && from <= to && cpu < info->cpus; cpu++)
			if (info->cpu[cpu].begin <= info->cpu[cpu].end)
				add_loss(c, cpu, from, to);
	}
}

static bool is_skipped(const struct coverage *c, const struct event *ev)
{
	for (size_t i = 0; c->set_back_clock && ev->kind != EV_LOST && i < c->set_back_clock->segments; i++) {
		const struct clock_segment *p = &c->set_back_clock->segment[i];
		if (p->repeats && ev->ts >= p->ambiguous_from && ev->ts < p->ambiguous_to)
			return true;
	}
	return false;
}

/* Returns the time before which the cursor's events can be returned unchanged. */
static int64_t direct_until(const struct coverage *c)
{
	return c->set_back_clock ? INT64_MIN : c->at < c->losses ? c->loss[c->at].ts : INT64_MAX;
}

int coverage_open(struct coverage *c, const struct trace *trace, const struct clock_map *clock, event_kinds kinds,
               struct error *err)
{
	const struct trace_info *info = trace_info(trace);
	*c = (struct coverage){ .set_back_clock = is_set_back(clock) ? clock : NULL, .got = -1 };
	add_set_back_losses(c, info);
	for (unsigned i = 0; i < info->cpus_listed; i++) {
		const struct trace_cpu *cpu = &info->cpu[i];
		if (cpu->missing && info->begin <= info->end)
			add_loss(c, i, info->begin, info->end);
		if (i >= info->cpus || cpu->begin > cpu->end)
			continue;
		if (cpu->begin > info->begin)
			add_loss(c, i, info->begin, cpu->begin - 1);
		if (cpu->end < info->end)
			add_loss(c, i, cpu->end + 1, info->end);
	}
	if (c->losses)
		qsort(c->loss, c->losses, sizeof *c->loss, compare_time);
	c->direct_until = direct_until(c);
	c->cursor = trace_cursor_open(trace, kinds | KIND(EV_LOST), -1, err);
	return c->cursor ? 0 : -1;
}

int coverage_choose(struct coverage *c, int got, const struct event **ev, struct error *err)
{
	if (c->got < 0) {
		while (got > 0 && is_skipped(c, *ev))
			got = trace_cursor_borrow(c->cursor, ev, err);
		if (got < 0)
			return got;
		c->pending = *ev;
		c->got = got;
	}
	if (c->at < c->losses && (!got || c->loss[c->at].ts <= c->pending->ts)) {
		*ev = &c->loss[c->at++];
		c->direct_until = direct_until(c);
		return 1;
	}
	*ev = c->pending;
	c->got = got ? -1 : 0;
	return got;
}

void coverage_close(struct coverage *c)
{
	trace_cursor_close(c->cursor);
	free(c->loss);
	*c = (struct coverage){ .cursor = NULL };
}

static void note_unrecorded(const struct trace_info *info, unsigned cpu, int64_t ns, int64_t from, int64_t to, bool late,
                         struct notes *notes)
{
	char length[TIME_TEXT], at[TIME_TEXT];
	if (ns <= 0 || ns < (info->end - info->begin) / NOTE_PART)
		return;
	time_duration(length, ns);
	if (late)
		note_add_at(notes, CPU_BEGINS_LATE, from, to, info->machine, cpu, time_clock(at, to + 1, 6), length);
	else
		note_add_at(notes, CPU_ENDS_EARLY, from, to, info->machine, cpu, time_clock(at, from - 1, 6), length);
}

/* Adds a note with a list of CPUs such as "CPU1, CPU4-7 and 3 more". */
static void note_missing(const struct trace_info *info, struct notes *notes)
{
	char list[160] = "", more[32] = "";
	unsigned left_out = 0;
	size_t len = 0;
	for (unsigned from = 0, to; from < info->cpus_listed; from = to + 1) {
		for (to = from; to < info->cpus_listed && info->cpu[to].missing; )
			to++;
		if (to == from)
			continue;
		if (len + RANGE_BYTES > sizeof list) {
			left_out += to - from;
			continue;
		}
		len += (size_t)snprintf(list + len, sizeof list - len, "%sCPU%u", len ? ", " : "", from);
		if (to - from > 1)
			len += (size_t)snprintf(list + len, sizeof list - len, "-%u", to - 1);
	}
	if (left_out)
		snprintf(more, sizeof more, " and %u more", left_out);
	if (len)
		note_add(notes, CPUS_NOT_RECORDED, info->machine, list, more);
}

void coverage_add_notes(const struct trace *trace, int64_t (*at)(const void *of, int64_t t), const void *of,
                        struct notes *notes)
{
	const struct trace_info *info = trace_info(trace);
	note_missing(info, notes);
	for (unsigned i = 0; i < info->cpus; i++) {
		const struct trace_cpu *cpu = &info->cpu[i];
		if (cpu->begin > cpu->end)
			continue;
		note_unrecorded(info, i, cpu->begin - info->begin, at(of, info->begin), at(of, cpu->begin - 1), true, notes);
		note_unrecorded(info, i, info->end - cpu->end, at(of, cpu->end + 1), at(of, info->end), false, notes);
	}
}
