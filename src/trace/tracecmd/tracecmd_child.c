/* Reader of trace-cmd files, part in the child process: passes the events of libtracecmd to the event sink. */
#include "trace/tracecmd/tracecmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <trace-cmd.h>

#include "base/mem.h"
#include "trace/pages/ring_records.h"
#include "trace/isolation/decoder_process.h"

#define WINDOW_SLACK 1000000  /* time to read beyond the end of a window, ns: corrected times may decrease a little */

struct opened_dat {
	const struct tracecmd_file *tracecmd_file;
	const struct clock_scale *scale;   /* conversion of recorded cycles; rate 0: the times are ns */
	struct tracecmd_input *input;
	struct tracecmd_input **instance;  /* by buffer number - 1, opened at the first use; NULL: not open */
	int instances;
	struct ring ring;
	bool as_corrected;
	double ratio;  /* size of the file / size of its uncompressed pages */
};

const bool tracecmd_reads_raw_times = false;

enum claim tracecmd_claims(const char *name, const unsigned char *head, size_t len)
{
	static const char magic[] = "\x17\x08\x44tracing";
	(void)name;
	return len >= sizeof magic - 1 && memcmp(head, magic, sizeof magic - 1) == 0 ? CLAIM_FILE : CLAIM_NONE;
}

/* ---- decoding */

/* Returns the recorded time, ns; < 0: impossible time. */
static int64_t recorded_time(const struct opened_dat *o, const struct tep_record *rec)
{
	const int64_t ts = rec->ts > INT64_MAX ? -1 : (int64_t)rec->ts;
	const bool shifted = !o->as_corrected && rec->cpu >= 0 && (size_t)rec->cpu < o->tracecmd_file->shifts;
	if (ts >= 0 && o->scale->millihertz)
		return clock_scale_ns(o->scale, (uint64_t)ts);
	return ts >= 0 && shifted ? time_shift_undo(&o->tracecmd_file->time_shift[rec->cpu], ts) : ts;
}

/* Progress in the data of one CPU. */
struct cpu_progress {
	struct ring_cpu ring;
	const struct tracecmd_file_cpu *cpu;
	uint64_t page;       /* page size, bytes */
	uint64_t at;         /* offset of the last record in the CPU's pages, bytes */
	uint64_t offset;     /* offset of the last record in the file; 0: none yet */
};

static int decode_record(struct opened_dat *o, struct cpu_progress *p, struct tep_record *rec)
{
	if (rec->offset <= p->offset || p->at > p->cpu->bytes)
		p->ring.end_reason = "event at an impossible offset";
	p->offset = rec->offset;
	return ring_cpu_add_record(&o->ring, &p->ring, p->at / p->page, rec, recorded_time(o, rec));
}

/* Returns true if the last event is later than the window. */
static bool is_past_window(const struct ring_cpu *p, const struct event_sink *out)
{
	return out->window && p->last > out->window->to + WINDOW_SLACK;
}

static int decode_cpu(struct opened_dat *o, struct tracecmd_input *in, struct cpu_progress *p, struct event_sink *out)
{
	struct tep_record *rec;
	uint64_t base = 0, reported = 0;
	int status = 0;
	while (!status && !p->ring.end_reason && !is_past_window(&p->ring, out) &&
	       (rec = tracecmd_read_data(in, (int)p->cpu->cpu))) {
		base = p->offset ? base : rec->offset - rec->offset % p->page;
		p->at = rec->offset - base;
		status = decode_record(o, p, rec);
		tracecmd_free_record(rec);
		if (!status && p->at - reported >= p->page)
			status = event_sink_report_progress(out, (uint64_t)((double)(reported = p->at) * o->ratio));
	}
	/* libtracecmd reports an unreadable page like the end of the data, so the number of pages is compared. */
	if (!p->ring.end_reason && !is_past_window(&p->ring, out) && p->cpu->bytes >= p->page &&
	    (!p->offset || p->at / p->page + 1 < p->cpu->bytes / p->page))
		p->ring.end_reason = "a page cannot be read";
	return status;
}

static struct tracecmd_input *open_buffer(struct opened_dat *o, unsigned buffer)
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

/* Returns the kernel's counters of a CPU; NULL: none. trace-cmd reads the counters after it stopped the tracer, and then
 * writes the remaining data. */
static const struct cpu_stat *find_stat(const struct tracecmd_file *d, const struct tracecmd_file_cpu *cpu)
{
	const struct cpu_stat *s = NULL;
	for (size_t i = 0; i < d->stats && !cpu->buffer; i++)
		s = d->stat[i].cpu == cpu->cpu ? &d->stat[i] : s;
	return s;
}

int tracecmd_decode(void *state, const struct stream_part *s, struct event_sink *out)
{
	struct opened_dat *o = state;
	struct cpu_progress p = { .cpu = &o->tracecmd_file->cpu[s->stream],
		                      .page = o->tracecmd_file->page ? o->tracecmd_file->page : 4096 };
	const struct cpu_stat *stat = find_stat(o->tracecmd_file, p.cpu);
	struct tracecmd_input *in = open_buffer(o, p.cpu->buffer);
	/* The kernel's `now` cannot be compared to corrected times. */
	const bool other_clock = o->as_corrected && o->tracecmd_file->shifted;
	ring_cpu_open(&p.ring, p.cpu->cpu, out, other_clock ? INT64_MAX : o->tracecmd_file->now);
	errno = 0;
	int status = in ? decode_cpu(o, in, &p, out) : 0;
	if (!status && errno_is_read_failure(errno))
		status = error_system(out->err, NULL, "%s", o->tracecmd_file->path);
	if (timestamp_check_close(&p.ring.timestamp_check) || status)
		return -1;
	if (!in || p.ring.end_reason)
		return event_sink_report_damage(out, in ? p.ring.end_reason : "libtracecmd cannot find this buffer", false);
	if (out->window)
		return 0;  /* A window was requested: the kernel's counters cover the whole trace and cannot be checked. */
	return ring_cpu_add_coverage(&p.ring, stat, 0, stat && !other_clock ? stat->now : INT64_MAX, out);
}

void *tracecmd_enter(struct source *s, struct error *err)
{
	struct opened_dat *o = mem_new(1, sizeof *o);
	o->tracecmd_file = s->location[0]->data;
	o->scale = &s->location[0]->scale;
	o->as_corrected = s->options->as_corrected;
	double pages = 1;
	for (size_t i = 0; i < o->tracecmd_file->cpus; i++)
		pages += (double)o->tracecmd_file->cpu[i].bytes;
	o->ratio = (double)o->tracecmd_file->bytes / pages;
	tracecmd_set_loglevel(TEP_LOG_NONE);
	errno = 0;
	o->input = tracecmd_open(o->tracecmd_file->path, TRACECMD_FL_LOAD_NO_PLUGINS);
	struct tep_handle *tep = o->input ? tracecmd_get_tep(o->input) : NULL;
	if (errno_is_read_failure(errno)) {
		error_system(err, NULL, "%s", o->tracecmd_file->path);
		return NULL;
	}
	if (!tep) {
		error_set(err, STATUS_INPUT, tracecmd_reader.remedy, "%s: libtracecmd cannot read the file",
		          o->tracecmd_file->path);
		return NULL;
	}
	o->instances = tracecmd_buffer_instances(o->input);
	o->instance = mem_new((size_t)o->instances + 1, sizeof(struct tracecmd_input *));
	ring_init(&o->ring, tep, &s->mapping);
	return o;
}
