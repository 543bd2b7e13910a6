#include "model/loss/coverage.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/timefmt.h"

enum { ROOM_FOR_RANGE = 24 };  /* bytes of ", CPU65535-65535" */
enum { WORTH_IT = 100 };  /* a silence is noted from that part of the trace on */

static void add_silence(struct cover *c, unsigned cpu, int64_t from, int64_t to)
{
	*ARRAY_PUSH(c->silence, c->silences, c->cap) = (struct event){ .ts = from, .kind = EV_LOST, .cpu = (uint16_t)cpu,
		.tid = -1, .pid = -1, .lost = { to, EVENT_ABSENT } };
}

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;
	return x->ts != y->ts ? (x->ts < y->ts ? -1 : 1) : (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

static bool is_set_back(const struct clock_map *clock)
{
	for (size_t i = 0; clock && i < clock->pieces; i++)
		if (clock->piece[i].repeats)
			return true;
	return false;
}

bool cover_loses(const struct trace *trace, const struct clock_map *clock)
{
	return trace_info(trace)->lost || trace_info(trace)->uncounted || is_set_back(clock);
}

static void add_repeats(struct cover *c, const struct trace_info *info)
{
	for (size_t i = 0; c->back && i < c->back->pieces; i++) {
		const struct clock_piece *p = &c->back->piece[i];
		const int64_t from = p->unsure_from > info->begin ? p->unsure_from : info->begin;
		const int64_t to = p->unsure_to <= info->end ? p->unsure_to - 1 : info->end;
		for (unsigned cpu = 0; p->repeats && from <= to && cpu < info->cpus; cpu++)
			if (info->cpu[cpu].begin <= info->cpu[cpu].end)
				add_silence(c, cpu, from, to);
	}
}

static bool is_left_out(const struct cover *c, const struct event *ev)
{
	for (size_t i = 0; c->back && ev->kind != EV_LOST && i < c->back->pieces; i++) {
		const struct clock_piece *p = &c->back->piece[i];
		if (p->repeats && ev->ts >= p->unsure_from && ev->ts < p->unsure_to)
			return true;
	}
	return false;
}

/* Up to there the cursor's events are all there is. */
static int64_t plain_until(const struct cover *c)
{
	return c->back ? INT64_MIN : c->at < c->silences ? c->silence[c->at].ts : INT64_MAX;
}

int cover_open(struct cover *c, const struct trace *trace, const struct clock_map *clock, event_kinds kinds,
               struct error *err)
{
	const struct trace_info *info = trace_info(trace);
	*c = (struct cover){ .back = is_set_back(clock) ? clock : NULL, .got = -1 };
	add_repeats(c, info);
	for (unsigned i = 0; i < info->cpus_told; i++) {
		const struct trace_cpu *cpu = &info->cpu[i];
		if (cpu->missing && info->begin <= info->end)
			add_silence(c, i, info->begin, info->end);
		if (i >= info->cpus || cpu->begin > cpu->end)
			continue;
		if (cpu->begin > info->begin)
			add_silence(c, i, info->begin, cpu->begin - 1);
		if (cpu->end < info->end)
			add_silence(c, i, cpu->end + 1, info->end);
	}
	if (c->silences)
		qsort(c->silence, c->silences, sizeof *c->silence, by_time);
	c->plain_until = plain_until(c);
	c->cursor = trace_cursor_open(trace, kinds | KIND(EV_LOST), -1, err);
	return c->cursor ? 0 : -1;
}

int cover_choose(struct cover *c, int got, const struct event **ev, struct error *err)
{
	if (c->got < 0) {
		while (got > 0 && is_left_out(c, *ev))
			got = trace_cursor_borrow(c->cursor, ev, err);
		if (got < 0)
			return got;
		c->ahead = *ev;
		c->got = got;
	}
	if (c->at < c->silences && (!got || c->silence[c->at].ts <= c->ahead->ts)) {
		*ev = &c->silence[c->at++];
		c->plain_until = plain_until(c);
		return 1;
	}
	*ev = c->ahead;
	c->got = got ? -1 : 0;
	return got;
}

void cover_close(struct cover *c)
{
	trace_cursor_close(c->cursor);
	free(c->silence);
	*c = (struct cover){ .cursor = NULL };
}

static void note_silence(const struct trace_info *info, unsigned cpu, int64_t ns, int64_t from, int64_t to, bool late,
                         struct notes *notes)
{
	char length[TIME_TEXT], at[TIME_TEXT];
	if (ns <= 0 || ns < (info->end - info->begin) / WORTH_IT)
		return;
	notes_add_at(notes, NOTE_LOSS, info->machine, from, to, "its CPU%u was recorded %s %s (host; the others %s longer): "
	             "what it did %s is unknown but for what its host tells", cpu, late ? "from" : "up to",
	             time_clock(at, late ? to + 1 : from - 1, 6), time_duration(length, ns), late ? "before" : "then");
}

/* "CPU1, CPU4-7 and 3 more". */
static void note_missing(const struct trace_info *info, struct notes *notes)
{
	char list[160] = "", more[32] = "";
	unsigned left_out = 0;
	size_t len = 0;
	for (unsigned from = 0, to; from < info->cpus_told; from = to + 1) {
		for (to = from; to < info->cpus_told && info->cpu[to].missing; )
			to++;
		if (to == from)
			continue;
		if (len + ROOM_FOR_RANGE > sizeof list) {
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
		notes_add(notes, NOTE_LOSS, info->machine, "nothing was recorded on %s%s, where its other CPUs sent threads: who "
		          "ran there is unknown, and so is what became of threads while they had none of its other CPUs, unless "
		          "they were woken from sleep on one of these; record all CPUs", list, more);
}

void cover_notes(const struct trace *trace, int64_t (*at)(const void *of, int64_t t), const void *of, struct notes *notes)
{
	const struct trace_info *info = trace_info(trace);
	note_missing(info, notes);
	for (unsigned i = 0; i < info->cpus; i++) {
		const struct trace_cpu *cpu = &info->cpu[i];
		if (cpu->begin > cpu->end)
			continue;
		note_silence(info, i, cpu->begin - info->begin, at(of, info->begin), at(of, cpu->begin - 1), true, notes);
		note_silence(info, i, info->end - cpu->end, at(of, cpu->end + 1), at(of, info->end), false, notes);
	}
}
