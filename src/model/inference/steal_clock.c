#include "model/inference/steal_clock.h"

#include "base/int128.h"
#include "model/inference/provider_pattern.h"
#include "model/state/state.h"

#define STALE_NS 10000000     /* ns before the previous read in which a gap that this read shows may lie: one tick */
#define SILENCES_MAX 4096     /* most silences of a CPU that are searched */
#define GAP_MIN 1000          /* shorter gaps are not written, ns: less than the cost of two events */

/* Interval between two successive events of a CPU. doubt: part of `stolen` that may belong to other silences, ns. */
struct silence { int64_t begin, end, stolen, doubt; };

struct cpu_reads {
	struct silence *silence;  /* those since the previous read, and older ones within STALE_NS */
	size_t len, cap;
	size_t since;             /* first silence since the previous read */
	int64_t last;             /* time of the last event; INT64_MIN: none */
	int64_t value;            /* value of the last read; -1: none */
};

struct steal_reader {
	struct steal_clock *out;
	const struct clock_map *clock;
	struct cpu_reads *cpu;
	uint32_t cpus;
	bool own_only;            /* the trace has reads of the event's own CPU: others are ignored */
	struct clock_watch watch;
};

static struct cpu_reads *cpu_reads_of(struct steal_reader *r, uint32_t cpu)
{
	if (cpu >= r->cpus) {
		const uint32_t n = cpu + 1;
		r->cpu = mem_resize(r->cpu, n, sizeof *r->cpu);
		for (uint32_t i = r->cpus; i < n; i++)
			r->cpu[i] = (struct cpu_reads){ .last = INT64_MIN, .value = -1 };
		r->cpus = n;
	}
	return &r->cpu[cpu];
}

static void add_gap(struct steal_clock *s, uint32_t cpu, int64_t begin, int64_t end, int64_t bound, uint8_t kind)
{
	*ARRAY_PUSH(s->gap, s->gaps, s->gaps_cap) =
		(struct steal_gap){ .begin = begin, .end = end, .bound = bound, .cpu = cpu, .kind = kind };
}

/* Fills silences [from, to) with up to `ns`, the longest first. Returns the rest. The part of a silence that the others
 * have room for is in doubt; all is in doubt if the silences are too short, because the clock of the trace stood still
 * for a part of the time, or if they are not those of the read. */
static int64_t fill_silences(struct cpu_reads *c, size_t from, size_t to, int64_t ns, bool of_read)
{
	int128 all = 0;
	for (size_t i = from; i < to && ns > 0; i++)
		all += c->silence[i].end - c->silence[i].begin - c->silence[i].stolen;
	const int128 spare = of_read && all >= ns ? all - ns : INT64_MAX;
	while (ns > 0) {
		struct silence *best = NULL;
		for (size_t i = from; i < to; i++) {
			struct silence *s = &c->silence[i];
			if (!best || s->end - s->begin - s->stolen > best->end - best->begin - best->stolen)
				best = s;
		}
		const int64_t room = best ? best->end - best->begin - best->stolen : 0;
		if (room <= 0)
			break;
		const int64_t placed = ns < room ? ns : room;
		best->stolen += placed;
		best->doubt += spare - (room - placed) < placed ? (int64_t)(spare - (room - placed)) : placed;
		ns -= placed;
	}
	return ns;
}

/* Moves the silences that are older than STALE_NS, or too many, to the gaps. */
static void retire_silences(struct steal_reader *r, uint32_t cpu, bool all)
{
	struct cpu_reads *c = &r->cpu[cpu];
	size_t n = 0;
	while (n < c->since && (all || c->len - n > SILENCES_MAX || c->silence[n].end < c->last - STALE_NS)) {
		const struct silence *s = &c->silence[n++];
		const int64_t bound = s->end - s->begin - s->stolen + s->doubt;
		if (s->stolen >= GAP_MIN)
			add_gap(r->out, cpu, s->end - s->stolen, s->end, bound, OUT_PROVIDER);
	}
	for (size_t i = n; i < c->len; i++)
		c->silence[i - n] = c->silence[i];
	c->len -= n;
	c->since -= n;
}

/* Reads of the event's own CPU are never stale: a lower value is a clock that was set back, as of a vCPU that was unplugged
 * and plugged again. Its increase since the previous read is unknown. */
static void read_value(struct steal_reader *r, uint32_t cpu, int64_t value)
{
	struct cpu_reads *c = &r->cpu[cpu];
	const int64_t rise = c->value >= 0 && value > c->value ? value - c->value : 0;
	if (value < c->value && !r->own_only)
		return;  /* a stale read */
	if (rise) {
		int64_t rest = fill_silences(c, c->since, c->len, rise, true);
		if (!r->own_only)  /* the read may be a stale one of the previous silences */
			rest = fill_silences(c, 0, c->since, rest, false);
		r->out->stolen = saturate64((int128)r->out->stolen + rise);
		r->out->unplaced = saturate64((int128)r->out->unplaced + rest);
	}
	c->value = value;
	c->since = c->len;
	retire_silences(r, cpu, false);
}

static void add_event(struct steal_reader *r, const struct event *ev)
{
	struct cpu_reads *c = cpu_reads_of(r, ev->cpu);
	const int64_t t = clock_map_at(r->clock, ev->ts);
	if (c->last != INT64_MIN && t > c->last + 1) {
		*ARRAY_PUSH(c->silence, c->len, c->cap) = (struct silence){ .begin = c->last + 1, .end = t };
		clock_watch_silence(&r->watch, ev->cpu, c->last + 1, t);
	}
	if (c->len - c->since >= SILENCES_MAX) {  /* no reads for long: keeps the longest half by dropping short ones */
		int64_t sum = 0;
		for (size_t i = c->since; i < c->len; i++)
			sum += c->silence[i].end - c->silence[i].begin;
		const int64_t mean = sum / (int64_t)(c->len - c->since);
		size_t n = c->since;
		for (size_t i = c->since; i < c->len; i++)
			if (c->silence[i].end - c->silence[i].begin > mean)
				c->silence[n++] = c->silence[i];
		c->len = n;
	}
	c->last = t > c->last ? t : c->last;
	if (ev->kind == EV_STEAL && (ev->steal.own == 1 || !r->own_only))
		read_value(r, ev->cpu, ev->steal.ns);
	if (ev->kind == EV_TIMER_ENTRY && ev->timer.now > 0)
		clock_watch_timer(&r->watch, t, ev->timer.now);
}

ORDER_BY(compare_gap, struct steal_gap, RISING(begin) RISING(cpu))

ORDER_BY(compare_change, struct steal_change, RISING(t) FALLING(is_end) RISING(gap))

/* Cuts gaps that begin before their CPU's previous gap has ended: a broken clock can show pauses in stolen time. */
static void separate_gaps(struct steal_clock *s)
{
	int64_t *last = mem_new(s->cpus + 1, sizeof *last);
	size_t n = 0;
	for (size_t i = 0; i < s->gaps; i++) {
		struct steal_gap gap = s->gap[i];
		if (gap.begin < last[gap.cpu])
			gap.begin = last[gap.cpu];
		if (gap.begin >= gap.end)
			continue;
		last[gap.cpu] = gap.end;
		s->gap[n++] = gap;
	}
	s->gaps = n;
	free(last);
}

static void order_changes(struct steal_clock *s)
{
	s->change = mem_new(2 * s->gaps + 1, sizeof *s->change);
	for (uint32_t i = 0; i < s->gaps; i++) {
		s->change[2 * i] = (struct steal_change){ s->gap[i].begin, i, false };
		s->change[2 * i + 1] = (struct steal_change){ s->gap[i].end, i, true };
	}
	if (s->gaps)
		qsort(s->change, 2 * s->gaps, sizeof *s->change, compare_change);
}

/* Returns 1 if the trace has reads of the event's own CPU, 0 if not, -1 on error. */
static int has_own_reads(const struct trace *trace, struct error *err)
{
	struct trace_cursor *c = trace_cursor_open(trace, KIND(EV_STEAL), -1, err);
	const struct event *ev;
	int got = c ? 0 : -1;
	bool own = false;
	while (c && !own && (got = trace_cursor_borrow(c, &ev, err)) > 0)
		own = ev->steal.own == 1;
	trace_cursor_close(c);
	return got < 0 ? -1 : own;
}

static void finish_reads(struct steal_reader *r)
{
	struct steal_clock *s = r->out;
	for (uint32_t i = 0; i < r->cpus; i++) {
		if (r->cpu[i].value < 0)
			continue;
		s->cpus = i + 1;
		retire_silences(r, i, true);
	}
	s->has_reads = mem_new(s->cpus + 1, sizeof *s->has_reads);
	for (uint32_t i = 0; i < s->cpus; i++)
		s->has_reads[i] = r->cpu[i].value >= 0;
	if (s->cpus) {
		ARRAY_SORT(s->gap, s->gaps, compare_gap);
		provider_pattern_find(s, &r->watch);
		ARRAY_SORT(s->gap, s->gaps, compare_gap);
		separate_gaps(s);
	}
	order_changes(s);
}

int steal_clock_read(struct steal_clock *s, const struct trace *trace, const struct clock_map *clock, struct error *err)
{
	struct steal_reader r = { .out = s, .clock = clock };
	*s = (struct steal_clock){ 0 };
	if (!(trace_info(trace)->kinds & KIND(EV_STEAL)))
		return 0;
	const int own = has_own_reads(trace, err);
	if (own < 0)
		return -1;
	r.own_only = own;
	struct trace_cursor *c = trace_cursor_open(trace, ALL_KINDS, -1, err);
	const struct event *ev;
	int got = c ? 0 : -1;
	while (c && (got = trace_cursor_borrow(c, &ev, err)) > 0)
		add_event(&r, ev);
	trace_cursor_close(c);
	if (got == 0)
		finish_reads(&r);
	for (uint32_t i = 0; i < r.cpus; i++)
		free(r.cpu[i].silence);
	free(r.cpu);
	clock_watch_release(&r.watch);
	return got < 0 ? -1 : 0;
}

/* Declares the attributes of the vCPUs that have a steal clock, also of those without gaps: they show that the stolen
 * time is known. */
static void declare_attributes(struct steal_clock *s, struct machine *mc)
{
	for (uint32_t i = 0; i < s->cpus; i++)
		if (s->has_reads[i]) {
			const uint32_t v = vcpu_get(mc, i);
			mc->model->vcpu[v].attr_steal_bound = cpu_attribute(mc, i, CPU_STEAL_BOUND);
			mc->model->vcpu[v].attr_out_by = cpu_attribute(mc, i, CPU_OUT_BY);
		}
	s->declared = true;
}

int64_t steal_clock_advance(struct steal_clock *s, struct machine *mc, int64_t t)
{
	struct model *m = mc->model;
	if (!s->declared && s->cpus && mc->active)
		declare_attributes(s, mc);
	for (; s->declared && s->next < 2 * s->gaps && s->change[s->next].t <= t; s->next++) {
		const struct steal_change *change = &s->change[s->next];
		const struct steal_gap *gap = &s->gap[change->gap];
		struct vcpu *v = &m->vcpu[vcpu_get(mc, gap->cpu)];
		m->sink.now = change->t > m->sink.now ? change->t : m->sink.now;
		const enum vcpu_host_state off = gap->kind == OUT_PROVIDER_PAUSE ? HOST_BLOCKED : HOST_WOKEN;
		v->steal_state = (uint8_t)(change->is_end ? HOST_UNTRACED : off);
		sink_set(&m->sink, v->attr_out_by, change->is_end ? HISTORY_NULL : gap->kind);
		sink_set(&m->sink, v->attr_steal_bound, change->is_end ? HISTORY_NULL : gap->bound);
		update_vcpu(m, v);
	}
	return s->declared && s->next < 2 * s->gaps ? s->change[s->next].t : INT64_MAX;
}

void steal_clock_add_notes(const struct steal_clock *s, const struct machine *mc, size_t machines, bool guest_only,
                           struct notes *notes)
{
	char text[TIME_TEXT];
	const char *of = machines == 1 ? NULL : mc->name;
	if (!s->cpus && !mc->is_virtual)
		note_add(notes, MACHINE_KIND_UNKNOWN, of);
	else if (!s->cpus && guest_only)
		note_add(notes, NO_STEAL_SOURCE, of);
	else if (!s->cpus && mc->vm_thread)
		note_add(notes, VM_BY_THREAD, of, mc->vm_thread);
	else if (!s->cpus)
		note_add(notes, NO_STEAL_CLOCK, of);
	else if (s->unplaced > s->stolen / 100)
		note_add(notes, STEAL_UNPLACED, mc->name, time_duration(text, s->unplaced));
}

void steal_clock_release(struct steal_clock *s)
{
	free(s->gap);
	free(s->change);
	free(s->has_reads);
}
