#include "trace/clock_setback.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/timefmt.h"

static int by_begin(const void *a, const void *b)
{
	const struct trace_span *x = a, *y = b;
	return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Joins those that overlap. */
static void join(struct trace *t)
{
	size_t n = 0;
	if (t->twices > 0)
		qsort(t->twice, t->twices, sizeof *t->twice, by_begin);
	for (size_t i = 0; i < t->twices; i++) {
		const struct trace_span s = t->twice[i];
		if (n == 0 || s.begin > t->twice[n - 1].end)
			t->twice[n++] = s;
		else if (s.end > t->twice[n - 1].end)
			t->twice[n - 1].end = s.end;
	}
	t->twices = n;
}

static int lose(struct trace *t, struct writer *w, const struct cpu_set *cpus, struct error *err)
{
	for (size_t i = 0; i < t->twices; i++)
		for (int cpu = cpus->min; cpu <= cpus->max; cpu++)
			if (cpu_set_has(cpus, cpu) &&
			    writer_put(w, &(struct event){ .ts = t->twice[i].begin, .kind = EV_LOST, .cpu = (uint16_t)cpu, .tid = -1,
			               .pid = -1, .lost = { t->twice[i].end, EVENT_ABSENT } }, err))
				return -1;
	return 0;
}

static int add_losses(struct trace *t, struct error *err)
{
	struct writer w;
	struct cpu_set cpus = NO_CPUS;
	struct stream losses;
	stream_init(&losses);
	for (size_t i = 0; i < t->streams; i++)
		cpu_set_add(&cpus, &t->stream[i].cpus);
	writer_open(&w, t->store, &losses);
	int status = lose(t, &w, &cpus, err);
	status = writer_close(&w, status ? NULL : err) || status ? -1 : 0;
	cpu_set_release(&cpus);
	t->stream = mem_resize(t->stream, t->streams + 1, sizeof *t->stream);
	t->stream[t->streams++] = losses;
	return status;
}

static void tell(const struct trace *t, struct notes *notes)
{
	int64_t ns = 0;
	char text[TIME_TEXT];
	for (size_t i = 0; i < t->twices; i++)
		ns += t->twice[i].end - t->twice[i].begin + 1;
	notes_add(notes, NOTE_CLOCK, t->machine, "the clock was set back, and %s of its time came twice: what happened then is "
	          "unknown", time_duration(text, ns));
}

int twice_find(struct trace *t, struct notes *notes, struct error *err)
{
	size_t cap = 0;
	for (size_t i = 0; i < t->streams; i++)
		for (size_t k = 0; k < t->stream[i].backs; k++)
			*ARRAY_PUSH(t->twice, t->twices, cap) = t->stream[i].back[k];
	join(t);
	if (t->twices > TWICE_MOST)
		t->twices = 0;
	if (t->twices == 0)
		return 0;
	tell(t, notes);
	t->info.uncounted += t->twices;
	t->info.twice = t->twice;
	t->info.twices = t->twices;
	return add_losses(t, err);
}

bool twice_has(const struct trace *t, int64_t ts)
{
	for (size_t i = 0; i < t->twices; i++)
		if (ts >= t->twice[i].begin && ts <= t->twice[i].end)
			return true;
	return false;
}
