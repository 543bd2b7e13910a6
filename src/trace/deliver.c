/* Results: what was decoded becomes the machines' traces. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/load.h"

/* Moves the blocks of a part behind those of the parts before. */
static void append(struct stream *to, struct stream *from)
{
	for (size_t i = 0; i < from->len; i++)
		*ARRAY_PUSH(to->block, to->len, to->cap) = from->block[i];
	to->events += from->events;
	to->kinds |= from->kinds;
	to->begin = from->begin < to->begin ? from->begin : to->begin;
	to->end = from->end > to->end ? from->end : to->end;
	stream_add_cpus(to, from);
	free(from->block);
	free(from->cpu_set);
	stream_init(from);
}

struct sums { uint64_t lost_events, uncounted, lost_packets, clamped, untimed; };

static void deliver_part(const struct trace *t, const char *name, const char *what, struct decoded *d, struct stream *to,
                         struct sums *sum, struct notes *notes)
{
	if (d->broken)
		notes_add(notes, "%s: stream %s: damaged after %llu events; the rest of the %s is left out: %s",
		          t->machine, name, (unsigned long long)(to->events + d->records.events), what, d->broken);
	append(to, &d->records);
	sum->lost_events += d->lost_events;
	sum->uncounted += d->uncounted;
	sum->lost_packets += d->lost_packets;
	sum->clamped += d->clamped;
	sum->untimed += d->untimed;
}

static void deliver_port(struct load *l, const struct trace *t, const struct port *p, struct stream *to,
                         struct sums *sum, struct notes *notes)
{
	stream_init(to);
	for (size_t i = p->first_task; i < p->first_task + p->tasks; i++)
		for (size_t k = 0; k < l->task[i].parts; k++)
			deliver_part(t, p->file ? p->file->name : p->name, p->file ? "packet" : "stream",
			             &l->task[i].part[k], to, sum, notes);
}

static void note_file(struct notes *notes, const struct trace *t, const struct dat *d, size_t read)
{
	if (read < d->cpus)
		notes_add(notes, "%s: %s: damaged; the data of %zu of its %zu CPUs cannot be read", t->machine, d->path,
		          d->cpus - read, d->cpus);
	if (strcmp(d->clock, "local") == 0)
		notes_add(notes, "%s: recorded with the clock 'local', which differs between CPUs: what happened first is"
		          " not sure; record with -C mono", t->machine);
	if (strcmp(d->clock, "counter") == 0 || (strcmp(d->clock, "x86-tsc") == 0 && !d->scaled))
		notes_add(notes, "%s: recorded with the clock '%s': its times are not ns; record with -C mono", t->machine,
		          d->clock);
	if (d->shifted && !d->shift)
		notes_add(notes, "%s: times are corrected to the host's clock as trace-cmd measured it", t->machine);
}

static void note_live(struct notes *notes, const struct trace *t, const struct told *told)
{
	if (told->cut)
		notes_add(notes, "%s: %s: %s; what was recorded later is missing", t->machine, told->name, told->cut);
	if (told->stopped)
		notes_add(notes, "%s: reading was stopped while it was still recorded; the history ends with what had arrived",
		          t->machine);
}

static int by_order(const void *a, const void *b)
{
	const struct told_stream *x = *(struct told_stream *const *)a, *y = *(struct told_stream *const *)b;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void deliver_told(struct trace *t, struct told *told, size_t *cap, struct sums *sum, struct notes *notes)
{
	struct told_stream **stream = mem_new(told->streams + 1, sizeof(struct told_stream *));
	size_t n = 0;
	for (size_t i = 0; i < told->streams; i++)
		if (told->stream[i])
			stream[n++] = told->stream[i];
	if (n)
		qsort(stream, n, sizeof(struct told_stream *), by_order);
	if (told->kind->endless)
		note_live(notes, t, told);
	else
		note_file(notes, t, told->source, n);
	for (size_t i = 0; i < n; i++) {
		char name[64];
		struct told_stream *s = stream[i];
		struct stream *to = ARRAY_PUSH(t->stream, t->streams, *cap);
		snprintf(name, sizeof name, s->buffer ? "of CPU %u, buffer %u" : "of CPU %u", s->cpu, s->buffer);
		stream_init(to);
		deliver_part(t, name, "stream", &s->decoded, to, sum, notes);
	}
	free(stream);
	const struct dat *d = told->kind->endless ? NULL : told->source;
	if (d && d->lost > sum->lost_events)
		sum->lost_events = d->lost;
}

static void note_machine(struct notes *notes, const struct trace *t, const struct sums *sum, bool known)
{
	const struct trace_info *info = &t->info;
	if (!info->events)
		notes_add(notes, "%s: the trace in %s is empty: no event was recorded", t->machine, t->dir);
	else if (!known)
		notes_add(notes, "%s: no layout knows the events of this trace; name one, see stealscope-layout(5)",
		          t->machine);
	if (info->lost)
		notes_add(notes, "%s: the tracer lost %llu of %llu events; record with larger buffers", t->machine,
		          (unsigned long long)info->lost, (unsigned long long)(info->lost + info->events));
	if (info->uncounted)
		notes_add(notes, "%s: the tracer lost events without counting them, in places: %llu; record with larger buffers",
		          t->machine, (unsigned long long)info->uncounted);
	if (sum->lost_packets)
		notes_add(notes, "%s: packets missing from the trace: %llu", t->machine,
		          (unsigned long long)sum->lost_packets);
	if (sum->clamped)
		notes_add(notes, "%s: the clock went backwards; events whose time was raised: %llu", t->machine,
		          (unsigned long long)sum->clamped);
	if (sum->untimed)
		notes_add(notes, "%s: events left out because they have no usable time: %llu", t->machine,
		          (unsigned long long)sum->untimed);
	if (t->names.full)
		notes_add(notes, "%s: too many different names; some are left out", t->machine);
}

void deliver(struct load *l, size_t machine, struct notes *notes)
{
	struct machine *m = &l->machine[machine];
	struct trace *t = m->trace;
	struct sums sum = { 0 };
	size_t cap = 0, layout = 0;
	bool known = false;
	for (size_t k = 0; k < l->groups; k++) {
		struct group *g = &l->group[k];
		if (g->machine != machine)
			continue;
		layout = layout ? layout : atomic_load(&g->ctf.chosen);
		for (size_t i = 0; i < g->notes.len; i++)
			notes_add(notes, "%s: %s", t->machine, g->notes.line[i]);
		for (size_t p = 0; p < g->ports; p++)
			deliver_port(l, t, &g->port[p], ARRAY_PUSH(t->stream, t->streams, cap), &sum, notes);
	}
	if (m->told) {
		layout = atomic_load(&m->told->ctf.chosen);
		deliver_told(t, m->told, &cap, &sum, notes);
	}
	/* A live trace may have begun before it named the events that a layout knows. */
	for (size_t i = 0; i < t->streams; i++)
		known |= (t->stream[i].kinds & ~(1ULL << EV_OTHER | 1ULL << EV_LOST)) != 0;
	t->info.lost = sum.lost_events;
	t->info.uncounted = sum.uncounted;
	t->layout = mem_dup(m->layout[layout ? layout - 1 : 0]->name);
	trace_publish(t, m->spec->role);
	note_machine(notes, t, &sum, known || layout);
}
