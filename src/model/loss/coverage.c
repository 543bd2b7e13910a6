#include "model/loss/coverage.h"

#include "base/base.h"

enum { RANGE_BYTES = 24 };  /* maximum length of ", CPU65535-65535" */
enum { NOTE_PART = 100, NOTE_MIN = 10000000 };  /* minimum length of a gap with a note: 1/100 of the trace, and 10 ms */
enum { NOTED_CPUS = 2 };  /* number of CPUs up to which each has a note of its own */

static void add_loss(struct coverage *c, unsigned cpu, int64_t from, int64_t to)
{
	*ARRAY_PUSH(c->loss, c->losses, c->cap) = (struct event){ .ts = from, .kind = EV_LOST, .cpu = (uint16_t)cpu,
		.tid = -1, .pid = -1, .lost = { to, EVENT_ABSENT } };
}

ORDER_BY(compare_time, struct event, RISING(ts) RISING(cpu))

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
	ARRAY_SORT(c->loss, c->losses, compare_time);
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

/* Unrecorded times at one end of the trace. */
struct unrecorded {
	unsigned cpu[NOTED_CPUS], cpus;  /* the first ones; number of all */
	int64_t longest;                 /* ns */
	unsigned longest_cpu;
};

/* Returns the time that is missing at the start or at the end of the CPU's recording, ns; 0: too little for a note. Idle
 * CPUs have no events, so small differences mean nothing. */
static int64_t missing_ns(const struct trace_info *info, unsigned cpu, bool late)
{
	const struct trace_cpu *c = &info->cpu[cpu];
	const int64_t ns = c->begin > c->end ? 0 : late ? c->begin - info->begin : info->end - c->end;
	return ns >= NOTE_MIN && ns >= (info->end - info->begin) / NOTE_PART ? ns : 0;
}

static void note_cpu(const struct trace_info *info, unsigned cpu, int64_t (*at)(const void *of, int64_t t), const void *of,
                     bool late, struct notes *notes)
{
	char length[TIME_TEXT], clock[TIME_TEXT];
	const struct trace_cpu *c = &info->cpu[cpu];
	time_duration(length, missing_ns(info, cpu, late));
	if (late)
		note_add_at(notes, CPU_BEGINS_LATE, at(of, info->begin), at(of, c->begin - 1), info->machine, cpu,
		            time_clock(clock, at(of, c->begin), 6), length);
	else
		note_add_at(notes, CPU_ENDS_EARLY, at(of, c->end + 1), at(of, info->end), info->machine, cpu,
		            time_clock(clock, at(of, c->end), 6), length);
}

/* Adds a note for each CPU with an unrecorded end of the trace, or one for all if there are many. */
static void note_unrecorded(const struct trace_info *info, int64_t (*at)(const void *of, int64_t t), const void *of,
                            bool late, struct notes *notes)
{
	struct unrecorded u = { .cpus = 0 };
	char length[TIME_TEXT];
	for (unsigned i = 0; i < info->cpus; i++) {
		const int64_t ns = missing_ns(info, i, late);
		if (!ns)
			continue;
		if (u.cpus < NOTED_CPUS)
			u.cpu[u.cpus] = i;
		u.cpus++;
		u.longest_cpu = ns > u.longest ? i : u.longest_cpu;
		u.longest = ns > u.longest ? ns : u.longest;
	}
	for (unsigned i = 0; i < u.cpus && u.cpus <= NOTED_CPUS; i++)
		note_cpu(info, u.cpu[i], at, of, late, notes);
	if (u.cpus <= NOTED_CPUS)
		return;
	time_duration(length, u.longest);
	if (late)
		note_add_at(notes, CPUS_BEGIN_LATE, at(of, info->begin), at(of, info->begin + u.longest - 1), info->machine, u.cpus,
		            length, u.longest_cpu);
	else
		note_add_at(notes, CPUS_END_EARLY, at(of, info->end - u.longest + 1), at(of, info->end), info->machine, u.cpus,
		            length, u.longest_cpu);
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
	note_unrecorded(info, at, of, true, notes);
	note_unrecorded(info, at, of, false, notes);
}
