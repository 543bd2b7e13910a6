#include "trace/clock_setback.h"

#include "base/base.h"

ORDER_BY(by_begin, struct trace_interval, RISING(begin))

/* Sorts t->setback and merges overlapping intervals. */
static void merge_overlaps(struct trace *t)
{
	size_t n = 0;
	ARRAY_SORT(t->setback, t->setbacks, by_begin);
	for (size_t i = 0; i < t->setbacks; i++) {
		const struct trace_interval s = t->setback[i];
		if (n == 0 || s.begin > t->setback[n - 1].end)
			t->setback[n++] = s;
		else if (s.end > t->setback[n - 1].end)
			t->setback[n - 1].end = s.end;
	}
	t->setbacks = n;
}

static int put_losses(struct trace *t, struct writer *w, const struct cpu_set *cpus, struct error *err)
{
	for (size_t i = 0; i < t->setbacks; i++)
		for (int cpu = cpus->min; cpu <= cpus->max; cpu++)
			if (cpu_set_has(cpus, cpu) &&
			    writer_put(w, &(struct event){ .ts = t->setback[i].begin, .kind = EV_LOST, .cpu = (uint16_t)cpu, .tid = -1,
			               .pid = -1, .lost = { t->setback[i].end, EVENT_ABSENT } }, err))
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
	int status = put_losses(t, &w, &cpus, err);
	status = writer_close(&w, status ? NULL : err) || status ? -1 : 0;
	cpu_set_release(&cpus);
	t->stream = mem_resize(t->stream, t->streams + 1, sizeof *t->stream);
	t->stream[t->streams++] = losses;
	return status;
}

static void note_setback(const struct trace *t, struct notes *notes)
{
	int64_t ns = 0;
	char text[TIME_TEXT];
	for (size_t i = 0; i < t->setbacks; i++)
		ns += t->setback[i].end - t->setback[i].begin + 1;
	note_add(notes, CLOCK_SETBACK, t->machine, time_duration(text, ns));
}

int setbacks_find(struct trace *t, struct notes *notes, struct error *err)
{
	size_t cap = 0;
	for (size_t i = 0; i < t->streams; i++)
		for (size_t k = 0; k < t->stream[i].setbacks; k++)
			*ARRAY_PUSH(t->setback, t->setbacks, cap) = t->stream[i].setback[k];
	merge_overlaps(t);
	if (t->setbacks > SETBACKS_MAX)
		t->setbacks = 0;
	if (t->setbacks == 0)
		return 0;
	note_setback(t, notes);
	t->info.uncounted += t->setbacks;
	t->info.twice = t->setback;
	t->info.twices = t->setbacks;
	return add_losses(t, err);
}

bool setbacks_contain(const struct trace *t, int64_t ts)
{
	for (size_t i = 0; i < t->setbacks; i++)
		if (ts >= t->setback[i].begin && ts <= t->setback[i].end)
			return true;
	return false;
}
