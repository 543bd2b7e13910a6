/* Results: what was decoded becomes the machines' traces. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/load.h"
#include "trace/clock_setback.h"

#define FEW 8  /* places of damage in a stream that are told one by one; of more, the last is, too */

/* Moves the blocks of a part behind those of the parts before. */
static void append(struct stream *to, struct stream *from)
{
	if (to->begin <= to->end && from->begin <= from->end && from->begin < to->end)
		stream_steps_back(to, from->begin, to->end);
	for (size_t i = 0; i < from->backs; i++)
		stream_steps_back(to, from->back[i].begin, from->back[i].end);
	for (size_t i = 0; i < from->len; i++)
		*ARRAY_PUSH(to->block, to->len, to->cap) = from->block[i];
	to->events += from->events;
	to->kinds |= from->kinds;
	to->begin = from->begin < to->begin ? from->begin : to->begin;
	to->end = from->end > to->end ? from->end : to->end;
	cpu_set_add(&to->cpus, &from->cpus);
	sends_add(&to->sent, &from->sent);
	free(from->block);
	cpu_set_release(&from->cpus);
	sends_release(&from->sent);
	free(from->back);
	stream_init(from);
}

struct sums { uint64_t lost_events, clamped; struct faults faults; bool left_out; };

static void note_damage(const struct trace *t, const char *unit, const char *name, const struct decoded *d, uint64_t before,
                        struct notes *notes)
{
	for (size_t i = 0; i < d->damages; i++) {
		const struct damage *at = &d->damage[i];
		if (i >= FEW && i + 1 < d->damages)
			continue;
		notes_add(notes, NOTE_DAMAGE, t->machine,
		          "stream %s: damaged after %llu event%s; the rest of the %s is left out: %s", name,
		          (unsigned long long)(before + at->events), before + at->events == 1 ? "" : "s",
		          at->goes_on ? unit : "stream", at->why);
	}
	if (d->damages > FEW + 1)
		notes_add(notes, NOTE_DAMAGE, t->machine, "stream %s: damaged in %zu more place%s", name, d->damages - FEW - 1,
		          d->damages == FEW + 2 ? "" : "s");
}

static void deliver_part(struct trace *t, const char *unit, const char *name, struct decoded *d, struct stream *to,
                         struct sums *sum, struct notes *notes)
{
	note_damage(t, unit, name, d, to->events, notes);
	append(to, &d->records);
	for (size_t i = 0; i < d->covers; i++)
		trace_covers(t, d->covered[i].cpu, d->covered[i].begin, d->covered[i].end, true);
	sum->lost_events += d->lost_events;
	sum->clamped += d->clamped;
}

static void add_faults(struct sums *sum, const struct faults *f)
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

static void deliver_streams(struct load *l, const struct source *s, struct trace *t, size_t *cap, struct sums *sum,
                            struct notes *notes)
{
	for (size_t i = 0; i < s->streams; i++) {
		const struct source_stream *from = &s->stream[i];
		struct stream *to = add_stream(t, cap);
		for (size_t k = from->first_task; k < from->first_task + from->tasks; k++) {
			const struct task *task = &l->task[k];
			add_faults(sum, &task->faults);
			for (size_t o = 0; o < task->outs; o++)
				deliver_part(t, s->reader->unit, from->name, task->out[o], to, sum, notes);
		}
	}
}

static int by_order(const void *a, const void *b)
{
	const struct decoded *x = *(struct decoded *const *)a, *y = *(struct decoded *const *)b;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Of a source that tells its streams as they come. */
static void deliver_told(struct load *l, const struct source *s, struct trace *t, size_t *cap, struct sums *sum,
                         struct notes *notes)
{
	for (size_t i = 0; i < l->tasks; i++) {
		struct task *task = &l->task[i];
		if (task->source != s)
			continue;
		add_faults(sum, &task->faults);
		if (task->outs)
			qsort(task->out, task->outs, sizeof(struct decoded *), by_order);
		for (size_t o = 0; o < task->outs; o++)
			deliver_part(t, s->reader->unit, "", task->out[o], add_stream(t, cap), sum, notes);
	}
}

static void note_machine(struct notes *notes, const struct trace *t, const struct sums *sum, bool known)
{
	const struct trace_info *info = &t->info;
	if (!info->events && !sum->left_out)
		notes_add(notes, NOTE_LOSS, t->machine, "the trace in %s is empty: no event was recorded", t->dir);
	else if (info->events && !known)
		notes_add(notes, NOTE_DAMAGE, t->machine,
		          "no layout knows the events of this trace; name one, see stealscope-layout(5)");
	if (info->lost)
		notes_add(notes, NOTE_LOSS, t->machine, "the tracer lost %llu of %llu events; record with larger buffers",
		          (unsigned long long)info->lost, (unsigned long long)(info->lost + info->events));
	if (info->uncounted)
		notes_add(notes, NOTE_LOSS, t->machine,
		          "the tracer lost events without counting them, in places: %llu; record with larger buffers",
		          (unsigned long long)info->uncounted);
	if (sum->faults.lost_packets)
		notes_add(notes, NOTE_LOSS, t->machine, "packets missing from the trace: %llu",
		          (unsigned long long)sum->faults.lost_packets);
	if (sum->clamped)
		notes_add(notes, NOTE_CLOCK, t->machine, "the clock went backwards; events whose time was raised: %llu",
		          (unsigned long long)sum->clamped);
	if (sum->faults.untimed)
		notes_add(notes, NOTE_LOSS, t->machine, "events left out because they have no usable time: %llu",
		          (unsigned long long)sum->faults.untimed);
	if (atomic_load(&t->names.full))
		notes_add(notes, NOTE_LOSS, t->machine, "too many different names; some are left out");
}

static void deliver_source(struct load *l, const struct source *s, struct trace *t, size_t *cap, struct sums *sum,
                           struct notes *notes)
{
	for (size_t i = 0; i < s->notes.len; i++)
		notes_copy(notes, &s->notes.item[i], t->machine);
	sum->left_out |= s->left_out;
	if (s->reader->remark)
		s->reader->remark(s, t->machine, notes);
	if (s->streams)
		deliver_streams(l, s, t, cap, sum, notes);
	else
		deliver_told(l, s, t, cap, sum, notes);
	for (size_t i = 0; i < s->places; i++)
		if (s->place[i]->lost > sum->lost_events)
			sum->lost_events = s->place[i]->lost;
}

int deliver(struct load *l, size_t machine, struct notes *notes, struct error *err)
{
	struct load_machine *m = &l->machine[machine];
	struct trace *t = m->trace;
	struct sums sum = { 0 };
	size_t cap = 0, layout = 0;
	bool known = false;
	for (size_t i = 0; i < l->sources; i++) {
		struct source *s = l->source[i];
		if (s->machine != machine)
			continue;
		layout = layout ? layout : atomic_load(&s->meaning.chosen);
		t->info.asked |= atomic_load(&s->meaning.asked);
		t->info.reader = s->reader->name;
		deliver_source(l, s, t, &cap, &sum, notes);
	}
	/* A live trace may have begun before it named the events that a layout knows. */
	for (size_t i = 0; i < t->streams; i++)
		known |= (t->stream[i].kinds & ~(KIND(EV_OTHER) | KIND(EV_NAMED) | KIND(EV_LOST))) != 0;
	t->info.lost = sum.lost_events;
	t->info.uncounted = sum.faults.uncounted;
	t->layout = mem_dup(m->layout[layout ? layout - 1 : 0]->name);
	trace_publish(t, m->spec->role);
	note_machine(notes, t, &sum, known || layout);
	return twice_find(t, notes, err);
}
