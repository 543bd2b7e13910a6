/* Reader of trace-cmd files, part in the main process: reads the file except the ring buffers. */
#include "trace/tracecmd/tracecmd.h"

#include "base/base.h"

/* Returns true if the times are TSC cycles of an unknown rate. */
static bool records_tsc(const struct tracecmd_file *d)
{
	return strcmp(d->clock, "x86-tsc") == 0 && !d->scaled;
}

static int describe_file(struct trace_location *p, struct error *err)
{
	struct tracecmd_file *d = p->data = tracecmd_file_read(p->path, err);
	if (!d)
		return -1;
	p->bytes = d->bytes;
	p->id = d->id;
	p->lost = d->lost;
	p->guest = d->guest;
	p->guests = d->guests;
	p->in_cycles = records_tsc(d);
	p->has_correction = d->time_shift != NULL;
	snprintf(p->meta.hostname, sizeof p->meta.hostname, "%s", d->hostname);
	snprintf(p->meta.tracer, sizeof p->meta.tracer, "%s", d->tracer);
	if (d->id)
		snprintf(p->meta.uuid, sizeof p->meta.uuid, "%016" PRIx64, d->id);
	return 0;
}

static void forget_file(struct trace_location *p)
{
	tracecmd_file_free(p->data);
}

static int64_t scaled_now(const struct clock_scale *scale, int64_t now)
{
	return now == INT64_MAX || now < 0 ? now : clock_scale_ns(scale, (uint64_t)now);
}

static void set_tsc_rate(struct trace_location *p, uint64_t millihertz)
{
	struct tracecmd_file *d = p->data;
	if (!records_tsc(d) || p->scale.millihertz)
		return;
	p->scale = (struct clock_scale){ .millihertz = millihertz, .is_tsc = true };
	d->now = scaled_now(&p->scale, d->now);
	for (size_t i = 0; i < d->stats; i++)
		d->stat[i].now = scaled_now(&p->scale, d->stat[i].now);
}

static int open_file(struct source *s, struct error *err)
{
	const struct tracecmd_file *d = s->location[0]->data;
	double pages = 1;
	(void)err;
	for (size_t i = 0; i < d->cpus; i++)
		pages += (double)d->cpu[i].bytes;
	for (size_t i = 0; i < d->cpus; i++) {
		const struct tracecmd_file_cpu *c = &d->cpu[i];
		struct source_stream *to = ARRAY_PUSH(s->stream, s->streams, s->streams_cap);
		/* Pages may be compressed: the file's size is distributed in proportion to the uncompressed sizes. */
		*to = (struct source_stream){ .bytes = (uint64_t)((double)d->bytes * ((double)c->bytes / pages)) };
		to->name = c->buffer ? mem_printf("of CPU %u, buffer %u", c->cpu, c->buffer) : mem_printf("of CPU %u", c->cpu);
	}
	return 0;
}

static void add_notes(const struct source *s, const char *machine, struct notes *notes)
{
	const struct tracecmd_file *d = s->location[0]->data;
	if (strcmp(d->clock, "local") == 0)
		note_add(notes, CLOCK_LOCAL, machine);
	if (strcmp(d->clock, "counter") == 0 || (records_tsc(d) && !s->location[0]->scale.millihertz))
		note_add(notes, CLOCK_NOT_NS, machine, d->clock);
	if (s->location[0]->has_correction && s->options->as_corrected)
		note_add(notes, CLOCK_CORRECTED, machine);
}

const struct trace_reader tracecmd_reader = {
	.name = "trace-cmd",
	IN_CHILD("libtraceevent crashed or hung while reading it"),
	.is_whole_machine = true,
	.remedy = "copy the file again after trace-cmd has finished",
	.unit = "page",
	.claims = tracecmd_claims,
	.describe = describe_file,
	.forget = forget_file,
	.set_tsc_rate = set_tsc_rate,
	.open = open_file,
	.enter = tracecmd_enter,
	.decode = tracecmd_decode,
	.add_notes = add_notes,
};
