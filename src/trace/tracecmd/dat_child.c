/* Reader of trace-cmd files, part in the child process: decodes the pages with libtraceevent and
 * passes the events to the event sink. */
#include <errno.h>

#include "base/base.h"
#include "base/int128.h"
#include "trace/pages/page_decoder.h"
#include "trace/pages/ring_records.h"
#include "trace/tracecmd/dat_contents.h"
#include "trace/tracecmd/tracecmd.h"

#define WINDOW_SLACK 1000000  /* time to read beyond a window's end, ns */

struct dat_state {
	const struct tracecmd_file *file;
	const struct clock_scale *scale;  /* conversion of recorded cycles; rate 0: the times are ns */
	struct dat_contents contents;
	struct page_decoder decoder;
	struct ring ring;
	bool has_header, as_corrected;
	double ratio;  /* size of the file / size of its uncompressed pages */
};

enum claim tracecmd_claims(const char *name, const unsigned char *head, size_t len)
{
	static const char magic[] = "\x17\x08\x44tracing";
	(void)name;
	return len >= sizeof magic - 1 && memcmp(head, magic, sizeof magic - 1) == 0 ? CLAIM_FILE : CLAIM_NONE;
}

/* ---- descriptions */

static void on_header_page(void *arg, const char *text, size_t n)
{
	struct dat_state *o = arg;
	o->has_header = page_header_parse(text, &o->decoder.header) &&
	                !tep_parse_header_page(o->ring.tep, (char *)(uintptr_t)text, n, (int)o->decoder.header.length_size);
}

static void on_format(void *arg, const char *system, const char *text, size_t n)
{
	struct dat_state *o = arg;
	tep_parse_event(o->ring.tep, text, n, system);
}

static void on_names(void *arg, char *text)
{
	ring_read_lines(&((struct dat_state *)arg)->ring, true, text);
}

/* ---- decoding */

/* Returns the recorded time, ns; < 0: impossible time. */
static int64_t recorded_time(const struct dat_state *o, uint64_t ts, unsigned cpu)
{
	const struct tracecmd_file *d = o->file;
	if (ts > INT64_MAX)
		return -1;
	if (o->scale->millihertz)
		return clock_scale_ns(o->scale, ts);
	if (o->as_corrected && cpu < d->shifts && ts < INT64_MAX / 4)
		ts = (uint64_t)time_shift_apply(&d->time_shift[cpu], (int64_t)ts);
	if (d->scaled) {
		const uint128 ns = (uint128)ts * d->multiplier >> d->shift;
		ts = ns > INT64_MAX ? UINT64_MAX : (uint64_t)ns;
	}
	return ts > INT64_MAX || __builtin_add_overflow((int64_t)ts, d->offset, (int64_t *)&ts) ? -1 : (int64_t)ts;
}

/* Progress in the data of one CPU. */
struct dat_progress {
	struct dat_state *opened;
	struct ring_cpu ring;
	uint64_t page;  /* number of the current page */
};

static int decode_record(void *arg, struct tep_record *rec)
{
	struct dat_progress *p = arg;
	struct dat_state *o = p->opened;
	if (ring_cpu_add_record(&o->ring, &p->ring, p->page, rec, recorded_time(o, rec->ts, p->ring.cpu)))
		return -1;
	return p->ring.end_reason != NULL;
}

/* Returns true if the last event is later than the window. */
static bool is_past_window(const struct ring_cpu *p, const struct event_sink *out)
{
	return out->window && p->last > out->window->to + WINDOW_SLACK;
}

static int decode_cpu(struct dat_progress *p, const struct tracecmd_file_cpu *cpu, struct event_sink *out)
{
	struct dat_state *o = p->opened;
	struct dat_pages pages = { .contents = &o->contents, .cpu = cpu, .at = cpu->at, .left = cpu->bytes };
	const size_t size = o->decoder.header.page;
	unsigned char *page = mem_new(size + PAGE_PADDING, 1);
	const char *why = NULL;
	int status = 0, got = 0;
	o->decoder.skipped = o->decoder.has_damage = false;
	o->decoder.arg = p;
	while (!status && !p->ring.end_reason && !is_past_window(&p->ring, out) &&
	       (got = dat_pages_read(&pages, page, size, &why)) > 0) {
		status = page_decoder_run(&o->decoder, page, cpu->cpu, out);
		p->page++;
		if (!status)
			status = event_sink_report_progress(out, (uint64_t)((double)(p->page * size) * o->ratio));
	}
	if (!status && got < 0 && !why)
		status = error_system(out->err, NULL, "%s", o->file->path);
	if (!status && got < 0 && !p->ring.end_reason)
		p->ring.end_reason = why;
	free(page);
	dat_pages_close(&pages);
	return status;
}

int tracecmd_decode(void *state, const struct stream_part *s, struct event_sink *out)
{
	struct dat_state *o = state;
	struct dat_progress p = { .opened = o };
	const struct tracecmd_file *d = o->file;
	const struct tracecmd_file_cpu *cpu = &d->cpu[s->stream];
	struct cpu_stat stat = { 0 };
	bool has_stat = false;
	for (size_t i = 0; i < d->stats && !cpu->buffer; i++) {
		if (d->stat[i].cpu == cpu->cpu) {
			stat = d->stat[i];
			has_stat = true;
		}
	}
	/* The kernel's `now` cannot be compared to corrected times. */
	ring_cpu_open(&p.ring, cpu->cpu, out, o->as_corrected ? INT64_MAX : d->now);
	const int status = decode_cpu(&p, cpu, out);
	if (timestamp_check_close(&p.ring.timestamp_check) || status)
		return -1;
	if (p.ring.end_reason)
		return event_sink_report_damage(out, p.ring.end_reason, false);
	if (out->window)
		return 0;  /* A window was requested: the kernel's counters cover the whole trace and cannot be checked. */
	if (o->decoder.has_damage)
		stat.events = 0;  /* missing events were reported already */
	const int64_t end = has_stat && !o->as_corrected ? stat.now : INT64_MAX;
	return ring_cpu_add_coverage(&p.ring, has_stat ? &stat : NULL, 0, end, out);
}

void *tracecmd_enter(struct source *s, struct error *err)
{
	struct dat_state *o = mem_new(1, sizeof *o);
	o->file = s->location[0]->data;
	o->scale = &s->location[0]->scale;
	o->as_corrected = s->options->as_corrected && o->file->time_shift;
	double pages = 1;
	for (size_t i = 0; i < o->file->cpus; i++)
		pages += (double)o->file->cpu[i].bytes;
	o->ratio = (double)o->file->bytes / pages;
	tep_set_loglevel(TEP_LOG_NONE);
	o->ring.tep = tep_alloc();
	o->contents = (struct dat_contents){ .descriptions = { on_header_page, on_format, on_names, o } };
	if (!o->ring.tep) {
		errno = ENOMEM;
		error_system(err, NULL, "%s", o->file->path);
		return NULL;
	}
	if (dat_contents_open(&o->contents, o->file->path, err))
		return NULL;
	tep_set_file_bigendian(o->ring.tep, o->contents.big_endian ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
	o->decoder.big_endian = o->contents.big_endian;
	o->decoder.put = decode_record;
	if (!o->has_header || page_decoder_open(&o->decoder)) {
		error_set(err, STATUS_INPUT, tracecmd_reader.remedy, "%s: no header of pages", o->file->path);
		return NULL;
	}
	if (o->file->page >= o->decoder.header.page)
		o->decoder.header.page = o->file->page;
	ring_init(&o->ring, o->ring.tep, &s->mapping);
	return o;
}
