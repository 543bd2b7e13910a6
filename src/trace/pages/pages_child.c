/* Reader of raw pages, part in the child process: decodes the pages with libtraceevent and passes the events to the
 * sink. */
#include "base/base.h"
#include "trace/pages/pages.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "trace/pages/namespaces.h"
#include "trace/pages/page_decoder.h"
#include "trace/pages/ring_records.h"

#define HEADER_PAGE_MAGIC "\tfield: u64 tim"
/* Maximum time from the recorder's reading of the clock to the last event, ns. */
#define CLOCK_DELAY_MAX 1000000
#define EVENTS_MAX 65536

struct opened_pages {
	const struct pages *pages;
	struct page_decoder decoder;
	struct ring ring;
};

enum claim pages_claims(const char *name, const unsigned char *head, size_t len)
{
	const size_t n = sizeof HEADER_PAGE_MAGIC - 1;
	return strcmp(name, "header_page") == 0 && len >= n && memcmp(head, HEADER_PAGE_MAGIC, n) == 0 ? CLAIM_DIR : CLAIM_NONE;
}

/* ---- pages of a CPU */

struct page_progress {
	struct opened_pages *opened;
	struct ring_cpu ring;
	uint64_t page;       /* number of the current page */
	bool has_overwritten;      /* events before pages.begin were dropped, so the lost events precede it */
};

static int decode_event(void *arg, struct tep_record *rec)
{
	struct page_progress *p = arg;
	const struct pages *in = p->opened->pages;
	const int64_t now = clock_scale_ns(&in->scale, rec->ts);
	if (now >= 0 && now < in->begin && in->overwrite_ns) {
		p->has_overwritten = true;
		p->ring.records++;
		return 0;
	}
	if (in->overwrite_ns && p->ring.last == INT64_MIN)
		rec->missed_events = 0;  /* the overwritten events precede the guaranteed time */
	return ring_cpu_add_record(&p->opened->ring, &p->ring, p->page, rec, now) ? -1 : p->ring.end_reason != NULL;
}

static ssize_t read_page(int fd, unsigned char *page, size_t size)
{
	size_t at = 0;
	for (ssize_t n; at < size && (n = read(fd, page + at, size - at)) != 0; at += (size_t)n)
		if (n < 0)
			return -1;
	return (ssize_t)at;
}

static int decode_cpu(struct opened_pages *o, struct page_progress *p, int fd, uint64_t to, struct event_sink *out)
{
	const size_t size = o->pages->header.page;
	unsigned char *page = mem_new(size + PAGE_PADDING, 1);
	int status = lseek(fd, (off_t)(p->page * size), SEEK_SET) < 0 ? error_system(out->err, NULL, "%s", o->pages->path) : 0;
	ssize_t got = 0;
	while (!status && !p->ring.end_reason && p->page < to && (got = read_page(fd, page, size)) == (ssize_t)size) {
		status = page_decoder_run(&o->decoder, page, p->ring.cpu, out);
		p->page++;
		if (!status)
			status = event_sink_report_progress(out, p->page * size);
	}
	free(page);
	if (!status && !p->ring.end_reason && got > 0 && (size_t)got < size)
		p->ring.end_reason = "the last page is truncated";
	return !status && got < 0 ? error_system(out->err, NULL, "%s", o->pages->path) : status;
}

int pages_decode(void *state, const struct stream_part *s, struct event_sink *out)
{
	struct opened_pages *o = state;
	const struct pages_cpu *cpu = &o->pages->cpu[s->stream];
	struct page_progress p = { .opened = o, .page = s->from };
	char *path = pages_cpu_path(o->pages, cpu->cpu);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const int failed = fd < 0 ? error_system(out->err, NULL, "%s", path) : 0;
	free(path);
	if (failed)
		return -1;
	ring_cpu_open(&p.ring, cpu->cpu, out,
	              o->pages->end > INT64_MAX - CLOCK_DELAY_MAX ? INT64_MAX : o->pages->end + CLOCK_DELAY_MAX);
	o->decoder.skipped = o->decoder.has_damage = false;
	o->decoder.arg = &p;
	const bool is_first = s->stream == 0 && s->from == 0 && !out->window;
	int status = is_first ? pages_put_namespaces(o->pages, &o->ring, out) : 0;
	if (status == 0)
		status = decode_cpu(o, &p, fd, s->to, out);
	close(fd);
	if (timestamp_check_close(&p.ring.timestamp_check) || status)
		return -1;
	if (p.ring.end_reason)
		return event_sink_report_damage(out, p.ring.end_reason, false);
	if (out->window)
		return 0;  /* A window was requested: the kernel's counters cover the whole trace and cannot be checked. */
	struct cpu_stat stat = cpu->stat;
	if (o->decoder.has_damage)
		stat.events = 0;  /* missing events were reported already */
	if (p.has_overwritten)
		stat.lost = 0;
	return ring_cpu_add_coverage(&p.ring, cpu->has_stat ? &stat : NULL, o->pages->begin, o->pages->end, out);
}

/* ---- descriptions */

static int add_format(struct opened_pages *o, const char *system, const char *event, struct error *err)
{
	char *name = mem_printf("%s/%s/%s/format", o->pages->formats, system, event), *text;
	size_t len;
	const int rc = pages_text(o->pages, name, &text, &len, err);
	if (text)
		tep_parse_event(o->ring.tep, text, len, system);
	free(text);
	free(name);
	return rc;
}

static int read_formats(struct opened_pages *o, const char *name, const char *system, size_t *remaining, struct error *err)
{
	char *path = mem_printf("%s/%s", o->pages->path, name);
	DIR *dir = opendir(path);
	int rc = dir || errno == ENOENT || errno == ENOTDIR ? 0 : error_read(err, pages_reader.remedy, "%s", path);
	for (struct dirent *e; dir && rc == 0 && *remaining && (e = readdir(dir));) {
		if (e->d_name[0] == '.')
			continue;
		--*remaining;
		if (system) {
			rc = add_format(o, system, e->d_name, err);
		} else {
			char *below = mem_printf("%s/%s", name, e->d_name);
			rc = read_formats(o, below, e->d_name, remaining, err);
			free(below);
		}
	}
	if (dir)
		closedir(dir);
	free(path);
	return rc;
}

static int read_lines(struct opened_pages *o, const char *name, bool names, struct error *err)
{
	char *text;
	size_t len;
	const int rc = pages_text(o->pages, name, &text, &len, err);
	ring_read_lines(&o->ring, names, text);
	free(text);
	return rc;
}

static int read_header(struct opened_pages *o, struct error *err)
{
	char *page;
	size_t len;
	if (pages_text(o->pages, "header_page", &page, &len, err))
		return -1;
	const bool read = page && !tep_parse_header_page(o->ring.tep, page, len, (int)o->pages->header.length_size);
	free(page);
	return read ? 0 :
	              error_set(err, STATUS_INPUT, pages_reader.remedy, "%s: libtraceevent cannot read the file header_page",
	                        o->pages->path);
}

void *pages_enter(struct source *s, struct error *err)
{
	struct opened_pages *o = mem_new(1, sizeof *o);
	size_t remaining = EVENTS_MAX;
	o->pages = s->location[0]->data;
	o->ring.tep = tep_alloc();
	o->decoder = (struct page_decoder){ .header = o->pages->header, .big_endian = BYTE_ORDER == BIG_ENDIAN,
		.put = decode_event };
	errno = ENOMEM;
	if (!o->ring.tep || page_decoder_open(&o->decoder)) {
		error_system(err, NULL, "%s", o->pages->path);
		return NULL;
	}
	tep_set_loglevel(TEP_LOG_NONE);
	if (read_header(o, err) || read_formats(o, o->pages->formats, NULL, &remaining, err) ||
	    read_lines(o, "saved_cmdlines", true, err) || read_lines(o, "saved_tgids", false, err))
		return NULL;
	ring_init(&o->ring, o->ring.tep, &s->mapping);
	return o;
}
