/* In the child: libtracecmd -> the outlet. */
#include "trace/tracecmd/tracecmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <trace-cmd.h>

#include "base/mem.h"
#include "trace/pages/ring_records.h"
#include "trace/isolation/decoder_process.h"

#define PAST 1000000  /* ns behind a window up to which is read on: corrected times may go back a little */

struct opened_dat {
	const struct dat *dat;
	struct tracecmd_input *input;
	struct tracecmd_input **instance;  /* of each buffer, once it was used; NULL for buffer 0 */
	int instances;
	struct ring ring;
	bool as_corrected;
	double ratio;  /* of the file's bytes to those of pages, which may be compressed in it */
};

enum claim tracecmd_claims(const char *name, const unsigned char *head, size_t len)
{
	static const char magic[] = "\x17\x08\x44tracing";
	(void)name;
	return len >= sizeof magic - 1 && memcmp(head, magic, sizeof magic - 1) == 0 ? CLAIM_FILE : CLAIM_NONE;
}

/* ---- decoding */

/* The time that was recorded; < 0: none that is possible. */
static int64_t time_of(const struct opened_dat *o, const struct tep_record *rec)
{
	const int64_t ts = rec->ts > INT64_MAX ? -1 : (int64_t)rec->ts;
	const bool shifted = !o->as_corrected && rec->cpu >= 0 && (size_t)rec->cpu < o->dat->shifts;
	return ts >= 0 && shifted ? shift_undo(&o->dat->shift[rec->cpu], ts) : ts;
}

/* A CPU's data in the file, as far as they were decoded. */
struct passage_of_cpu {
	struct ring_cpu ring;
	const struct dat_cpu *cpu;
	uint64_t page;       /* bytes */
	uint64_t at;         /* bytes of pages before the last record */
	uint64_t offset;     /* of that in the file, 0: none yet */
};

static int take(struct opened_dat *o, struct passage_of_cpu *p, struct tep_record *rec)
{
	if (rec->offset <= p->offset || p->at > p->cpu->bytes)
		p->ring.why = "an event lies where none should be";
	p->offset = rec->offset;
	return ring_cpu_take(&o->ring, &p->ring, p->at / p->page, rec, time_of(o, rec));
}

/* Has all been read that is asked for? */
static bool is_past(const struct ring_cpu *p, const struct outlet *out)
{
	return out->only && p->last > out->only->to + PAST;
}

static int decode_cpu(struct opened_dat *o, struct tracecmd_input *in, struct passage_of_cpu *p, struct outlet *out)
{
	struct tep_record *rec;
	uint64_t base = 0, told = 0;
	int status = 0;
	while (!status && !p->ring.why && !is_past(&p->ring, out) && (rec = tracecmd_read_data(in, (int)p->cpu->cpu))) {
		base = p->offset ? base : rec->offset - rec->offset % p->page;
		p->at = rec->offset - base;
		status = take(o, p, rec);
		tracecmd_free_record(rec);
		if (!status && p->at - told >= p->page)
			status = outlet_at(out, (uint64_t)((double)(told = p->at) * o->ratio));
	}
	/* libtracecmd does not tell the end from a page that it cannot read. */
	if (!p->ring.why && !is_past(&p->ring, out) && p->cpu->bytes >= p->page &&
	    (!p->offset || p->at / p->page + 1 < p->cpu->bytes / p->page))
		p->ring.why = "a page cannot be read";
	return status;
}

static struct tracecmd_input *input_of(struct opened_dat *o, unsigned buffer)
{
	if (!buffer)
		return o->input;
	if (buffer > (unsigned)o->instances)
		return NULL;
	struct tracecmd_input **in = &o->instance[buffer - 1];
	if (!*in)
		*in = tracecmd_buffer_instance_handle(o->input, (int)buffer - 1);
	return *in;
}

/* trace-cmd asks the kernel for its counters when it has stopped it, and writes all that is still there. */
static const struct cpu_stat *stat_of(const struct dat *d, const struct dat_cpu *cpu)
{
	const struct cpu_stat *s = NULL;
	for (size_t i = 0; i < d->stats && !cpu->buffer; i++)
		s = d->stat[i].cpu == cpu->cpu ? &d->stat[i] : s;
	return s;
}

int tracecmd_decode(void *entered, const struct stretch *s, struct outlet *out)
{
	struct opened_dat *o = entered;
	struct passage_of_cpu p = { .cpu = &o->dat->cpu[s->stream], .page = o->dat->page ? o->dat->page : 4096 };
	const struct cpu_stat *stat = stat_of(o->dat, p.cpu);
	struct tracecmd_input *in = input_of(o, p.cpu->buffer);
	/* What the kernel said of its clock is not said of another. */
	const bool other_clock = o->as_corrected && o->dat->shifted;
	ring_cpu_open(&p.ring, p.cpu->cpu, out, other_clock ? INT64_MAX : o->dat->now);
	errno = 0;
	int status = in ? decode_cpu(o, in, &p, out) : 0;
	if (!status && tell_is_io(errno))
		status = error_system(out->err, NULL, "%s", o->dat->path);
	if (guard_close(&p.ring.guard) || status)
		return -1;
	if (!in || p.ring.why)
		return outlet_damaged(out, in ? p.ring.why : "libtracecmd does not find it", false);
	if (out->only)
		return 0;  /* what a part has cannot be held against the kernel's counts */
	return ring_cpu_cover(&p.ring, stat, 0, stat && !other_clock ? stat->now : INT64_MAX, out);
}

void *tracecmd_enter(struct source *s, struct error *err)
{
	struct opened_dat *o = mem_new(1, sizeof *o);
	o->dat = s->place[0]->data;
	o->as_corrected = s->options->as_corrected;
	double pages = 1;
	for (size_t i = 0; i < o->dat->cpus; i++)
		pages += (double)o->dat->cpu[i].bytes;
	o->ratio = (double)o->dat->bytes / pages;
	tracecmd_set_loglevel(TEP_LOG_NONE);
	errno = 0;
	o->input = tracecmd_open(o->dat->path, TRACECMD_FL_LOAD_NO_PLUGINS);
	struct tep_handle *tep = o->input ? tracecmd_get_tep(o->input) : NULL;
	if (tell_is_io(errno)) {
		error_system(err, NULL, "%s", o->dat->path);
		return NULL;
	}
	if (!tep) {
		error_set(err, STATUS_INPUT, tracecmd_reader.mend, "%s: libtracecmd cannot read it", o->dat->path);
		return NULL;
	}
	o->instances = tracecmd_buffer_instances(o->input);
	o->instance = mem_new((size_t)o->instances + 1, sizeof(struct tracecmd_input *));
	ring_init(&o->ring, tep, &s->meaning);
	return o;
}
