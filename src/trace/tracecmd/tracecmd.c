/* What the program itself does with trace-cmd's files: it reads what stands outside of the ring buffers' data. */
#include "trace/tracecmd/tracecmd.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static int describe(struct place *p, struct error *err)
{
	struct dat *d = p->data = dat_read(p->path, err);
	if (!d)
		return -1;
	p->bytes = d->bytes;
	p->id = d->id;
	p->lost = d->lost;
	p->guest = d->guest;
	p->guests = d->guests;
	p->corrected = d->shifted;
	p->restored = d->shift != NULL;
	snprintf(p->meta.hostname, sizeof p->meta.hostname, "%s", d->hostname);
	snprintf(p->meta.tracer, sizeof p->meta.tracer, "%s", d->tracer);
	if (d->id)
		snprintf(p->meta.uuid, sizeof p->meta.uuid, "%016" PRIx64, d->id);
	return 0;
}

static void forget(struct place *p)
{
	dat_free(p->data);
}

static int open_file(struct source *s, struct error *err)
{
	const struct dat *d = s->place[0]->data;
	double pages = 1;
	(void)err;
	s->folder = "/tmp";  /* where libtracecmd unpacks what is compressed */
	for (size_t i = 0; i < d->cpus; i++)
		pages += (double)d->cpu[i].bytes;
	for (size_t i = 0; i < d->cpus; i++) {
		const struct dat_cpu *c = &d->cpu[i];
		struct source_stream *to = ARRAY_PUSH(s->stream, s->streams, s->streams_cap);
		/* Pages may be compressed in the file. */
		*to = (struct source_stream){ .bytes = (uint64_t)((double)d->bytes * ((double)c->bytes / pages)) };
		to->name = c->buffer ? mem_printf("of CPU %u, buffer %u", c->cpu, c->buffer) : mem_printf("of CPU %u", c->cpu);
	}
	return 0;
}

static void remark(const struct source *s, const char *machine, struct notes *notes)
{
	const struct dat *d = s->place[0]->data;
	if (strcmp(d->clock, "local") == 0)
		notes_add(notes, NOTE_CLOCK, machine, "recorded with the clock 'local', which differs between CPUs: what "
		          "happened first is not sure; record with -C mono");
	if (strcmp(d->clock, "counter") == 0 || (strcmp(d->clock, "x86-tsc") == 0 && !d->scaled))
		notes_add(notes, NOTE_CLOCK, machine, "recorded with the clock '%s': its times are not ns; record with -C mono",
		          d->clock);
	if (d->shifted && (!d->shift || s->options->as_corrected))
		notes_add(notes, NOTE_FACT, machine, "times are corrected to the host's clock as trace-cmd measured it");
}

#define DIED "libtracecmd does not survive reading it"
const struct trace_reader tracecmd_reader = {
	.name = "libtracecmd", .apart = true, .alone = true, .patience = 60, .died = DIED, .silent = DIED,
	.mend = "copy the file again, when trace-cmd has ended", .unit = "page",
	.claims = tracecmd_claims, .describe = describe, .forget = forget, .open = open_file, .enter = tracecmd_enter,
	.decode = tracecmd_decode, .remark = remark,
};
