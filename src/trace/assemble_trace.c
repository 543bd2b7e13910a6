/* Assembles the decoded streams into the machines' traces. */
#include "base/base.h"
#include "trace/load.h"
#include "trace/clock_setback.h"

#define DAMAGES_LISTED 8  /* damages of a stream that get a note each; the last damage gets one in addition */

/* Moves the blocks of a part of a stream to the stream's end; *from is empty afterwards. A part that begins before
 * the end of the previous part adds a setback of the clock. */
static void stream_append(struct stream *to, struct stream *from)
{
	if (to->begin <= to->end && from->begin <= from->end && from->begin < to->end)
		stream_add_setback(to, from->begin, to->end);
	for (size_t i = 0; i < from->setbacks; i++)
		stream_add_setback(to, from->setback[i].begin, from->setback[i].end);
	for (size_t i = 0; i < from->len; i++)
		*ARRAY_PUSH(to->block, to->len, to->cap) = from->block[i];
	to->events += from->events;
	to->kinds |= from->kinds;
	to->begin = from->begin < to->begin ? from->begin : to->begin;
	to->end = from->end > to->end ? from->end : to->end;
	cpu_set_add(&to->cpus, &from->cpus);
	destinations_add(&to->sent, &from->sent);
	free(from->block);
	cpu_set_release(&from->cpus);
	destinations_release(&from->sent);
	free(from->setback);
	stream_init(from);
}

struct fault_sums { uint64_t lost_events, clamped; struct faults faults; bool has_skipped; };

static void note_damage(const struct trace *t, const char *unit, const char *name, const struct decoded *d, uint64_t before,
                        struct notes *notes)
{
	for (size_t i = 0; i < d->damages; i++) {
		const struct damage *at = &d->damage[i];
		if (i >= DAMAGES_LISTED && i + 1 < d->damages)
			continue;
		note_add(notes, STREAM_DAMAGED, t->machine, name, (unsigned long long)(before + at->events),
		         at->continues ? unit : "stream", at->why);
	}
	if (d->damages > DAMAGES_LISTED + 1)
		note_add(notes, STREAM_DAMAGED_MORE, t->machine, name, d->damages - DAMAGES_LISTED - 1);
}

static void append_decoded(struct trace *t, const char *unit, const char *name, struct decoded *d, struct stream *to,
                           struct fault_sums *sum, struct notes *notes)
{
	note_damage(t, unit, name, d, to->events, notes);
	stream_append(to, &d->records);
	for (size_t i = 0; i < d->coverages; i++)
		trace_add_coverage(t, d->coverage[i].cpu, d->coverage[i].begin, d->coverage[i].end, true);
	sum->lost_events += d->lost_events;
	sum->clamped += d->clamped;
}

static void add_faults(struct fault_sums *sum, const struct faults *f)
{
	sum->faults.uncounted += f->uncounted;
	sum->faults.lost_packets += f->lost_packets;
	sum->faults.untimed += f->untimed;
}

static struct stream *add_stream(struct trace *t, size_t *cap)
{
	struct stream *s = ARRAY_PUSH(t->stream, t->streams, *cap);
	stream_init(s);
	return s;
}

static void append_streams(struct load *l, const struct source *s, struct trace *t, size_t *cap, struct fault_sums *sum,
                           struct notes *notes)
{
	for (size_t i = 0; i < s->streams; i++) {
		const struct source_stream *from = &s->stream[i];
		struct stream *to = add_stream(t, cap);
		for (size_t k = from->first_task; k < from->first_task + from->tasks; k++) {
			const struct task *task = &l->task[k];
			add_faults(sum, &task->faults);
			for (size_t o = 0; o < task->outs; o++)
				append_decoded(t, s->reader->unit, from->name, task->out[o], to, sum, notes);
		}
	}
}

static int by_order(const void *a, const void *b)
{
	const struct decoded *x = *(struct decoded *const *)a, *y = *(struct decoded *const *)b;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Appends the streams of a source without known streams, which it reported during decoding. */
static void append_reported_streams(struct load *l, const struct source *s, struct trace *t, size_t *cap,
                                    struct fault_sums *sum, struct notes *notes)
{
	for (size_t i = 0; i < l->tasks; i++) {
		struct task *task = &l->task[i];
		if (task->source != s)
			continue;
		add_faults(sum, &task->faults);
		if (task->outs)
			qsort(task->out, task->outs, sizeof(struct decoded *), by_order);
		for (size_t o = 0; o < task->outs; o++)
			append_decoded(t, s->reader->unit, "", task->out[o], add_stream(t, cap), sum, notes);
	}
}

static void note_machine(struct notes *notes, const struct trace *t, const struct fault_sums *sum, bool has_layout)
{
	const struct trace_info *info = &t->info;
	if (!info->events && !sum->has_skipped)
		note_add(notes, TRACE_EMPTY, t->machine, t->dir);
	else if (info->events && !has_layout)
		note_add(notes, NO_LAYOUT, t->machine);
	if (info->lost)
		note_add(notes, LOST_EVENTS, t->machine, (unsigned long long)info->lost,
		         (unsigned long long)(info->lost + info->events));
	if (info->uncounted)
		note_add(notes, UNCOUNTED_LOSSES, t->machine, (unsigned long long)info->uncounted);
	if (sum->faults.lost_packets)
		note_add(notes, LOST_PACKETS, t->machine, (unsigned long long)sum->faults.lost_packets);
	if (sum->clamped)
		note_add(notes, CLOCK_BACKWARDS, t->machine, (unsigned long long)sum->clamped);
	if (sum->faults.untimed)
		note_add(notes, UNTIMED_EVENTS, t->machine, (unsigned long long)sum->faults.untimed);
	if (atomic_load(&t->names.full))
		note_add(notes, TOO_MANY_NAMES, t->machine);
}

static void append_source(struct load *l, const struct source *s, struct trace *t, size_t *cap, struct fault_sums *sum,
                          struct notes *notes)
{
	for (size_t i = 0; i < s->notes.len; i++)
		notes_copy(notes, &s->notes.item[i], t->machine);
	sum->has_skipped |= s->is_skipped;
	if (s->reader->add_notes)
		s->reader->add_notes(s, t->machine, notes);
	if (s->streams)
		append_streams(l, s, t, cap, sum, notes);
	else
		append_reported_streams(l, s, t, cap, sum, notes);
	for (size_t i = 0; i < s->locations; i++)
		if (s->location[i]->lost > sum->lost_events)
			sum->lost_events = s->location[i]->lost;
}

int assemble_trace(struct load *l, size_t machine, struct notes *notes, struct error *err)
{
	struct load_machine *m = &l->machine[machine];
	struct trace *t = m->trace;
	struct fault_sums sum = { 0 };
	size_t cap = 0, layout = 0;
	bool has_layout = false, has_own_events = false;
	for (size_t i = 0; i < l->sources; i++) {
		struct source *s = l->source[i];
		if (s->machine != machine)
			continue;
		layout = layout ? layout : atomic_load(&s->mapping.chosen);
		t->info.asked |= atomic_load(&s->mapping.enabled_events);
		t->info.reader = s->reader->name;
		has_own_events = s->reader->has_own_events;
		append_source(l, s, t, &cap, &sum, notes);
	}
	/* A live trace may have begun before any event class of a layout was known, so `chosen` is not enough. */
	for (size_t i = 0; i < t->streams; i++)
		has_layout |= (t->stream[i].kinds & ~(KIND(EV_OTHER) | KIND(EV_NAMED) | KIND(EV_LOST))) != 0;
	t->info.lost = sum.lost_events;
	t->info.uncounted = sum.faults.uncounted;
	t->layout = mem_dup(has_own_events ? t->info.reader : m->layout[layout ? layout - 1 : 0]->name);
	trace_publish(t, m->spec->role);
	/* Hypervisors let no guest set the frequencies of CPUs: a machine that does so is physical. */
	if (l->machines == 1 && m->spec->role == ROLE_UNKNOWN && (t->info.kinds & KIND(EV_FREQUENCY)) && !t->info.guest_only)
		t->info.role = ROLE_HOST;
	note_machine(notes, t, &sum, has_layout || layout);
	return setbacks_find(t, notes, err);
}
