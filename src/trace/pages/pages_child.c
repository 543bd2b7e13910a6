/* In the child: pages -> libtraceevent -> the outlet. */
#include "trace/pages/pages.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kbuffer.h>

#include "base/mem.h"
#include "trace/pages/ring_records.h"
#include "trace/isolation/decoder_process.h"

#define HEADER "\tfield: u64 tim"
#define LENGTH_BITS 0x7ffffff  /* of the word that has a page's length: the others are flags */
#define SLACK 64               /* bytes behind a page: an event's head is read before its length is known */
#define LATE 1000000           /* ns: what the clock may have gone on between its last event and our reading it */
#define MOST_EVENTS 65536

struct opened_pages {
	const struct pages *pages;
	struct kbuffer *buffer;
	struct ring ring;
};

enum claim pages_claims(const char *name, const unsigned char *head, size_t len)
{
	const size_t n = sizeof HEADER - 1;
	return strcmp(name, "header_page") == 0 && len >= n && memcmp(head, HEADER, n) == 0 ? CLAIM_FOLDER : CLAIM_NONE;
}

/* ---- a page */

struct page_passage {
	struct ring_cpu ring;
	uint64_t page;       /* number of the one that is read */
	bool skipped;        /* the page before this one */
	bool spoiled;        /* some page */
	bool older;          /* there were events before the begin: of all behind it, none is missing */
};

/* What is said of its length must not lead out of it. */
static bool is_sound(const struct pages *p, const unsigned char *page)
{
	uint32_t low;
	memcpy(&low, page + p->length_at, sizeof low);
	return (low & LENGTH_BITS) <= p->page - p->data_at;
}

static int take_event(struct opened_pages *o, struct page_passage *p, void *data, const unsigned char *page,
                      uint64_t ts, int missed)
{
	const struct pages *in = o->pages;
	const int size = kbuffer_event_size(o->buffer);
	const unsigned char *at = data;
	struct tep_record rec = { .ts = ts, .size = size, .data = data, .cpu = (int)p->ring.cpu, .missed_events = missed };
	if (size < 0 || at < page || (size_t)size > in->page || (size_t)(at - page) > in->page - (size_t)size) {
		p->skipped = true;
		return 0;
	}
	const int64_t now = trace_scale_ns(&in->scale, ts);
	if (now >= 0 && now < in->begin && in->kept) {
		p->older = true;
		p->ring.records++;
		return 0;
	}
	if (in->kept && p->ring.last == INT64_MIN)
		rec.missed_events = 0;  /* what was overwritten is of the time that is not kept */
	return ring_cpu_take(&o->ring, &p->ring, p->page, &rec, now);
}

static int decode_page(struct opened_pages *o, struct page_passage *p, unsigned char *page)
{
	unsigned long long ts;
	int status = 0, before = -1, missed = p->skipped ? -1 : 0;
	p->skipped = !is_sound(o->pages, page) || kbuffer_load_subbuffer(o->buffer, page) != 0;
	if (!p->skipped && kbuffer_missed_events(o->buffer))
		missed = missed ? missed : kbuffer_missed_events(o->buffer);
	for (void *data; !status && !p->skipped && !p->ring.why && (data = kbuffer_read_event(o->buffer, &ts));) {
		p->skipped = kbuffer_curr_index(o->buffer) <= before;
		before = kbuffer_curr_index(o->buffer);
		if (!p->skipped)
			status = take_event(o, p, data, page, ts, missed);
		missed = 0;
		kbuffer_next_event(o->buffer, NULL);
	}
	p->spoiled |= p->skipped;
	if (!status && p->skipped)
		status = outlet_damaged(p->ring.guard.out, "a page that cannot be", true);
	return status;
}

static ssize_t read_page(int fd, unsigned char *page, size_t size)
{
	size_t at = 0;
	for (ssize_t n; at < size && (n = read(fd, page + at, size - at)) != 0; at += (size_t)n)
		if (n < 0)
			return -1;
	return (ssize_t)at;
}

static int decode_cpu(struct opened_pages *o, struct page_passage *p, int fd, uint64_t to, struct outlet *out)
{
	const size_t size = o->pages->page;
	unsigned char *page = mem_new(size + SLACK, 1);
	int status = lseek(fd, (off_t)(p->page * size), SEEK_SET) < 0 ? error_system(out->err, NULL, "%s", o->pages->path) : 0;
	ssize_t got = 0;
	while (!status && !p->ring.why && p->page < to && (got = read_page(fd, page, size)) == (ssize_t)size) {
		status = decode_page(o, p, page);
		p->page++;
		if (!status)
			status = outlet_at(out, p->page * size);
	}
	free(page);
	if (!status && !p->ring.why && got > 0 && (size_t)got < size)
		p->ring.why = "its last page is cut short";
	return !status && got < 0 ? error_system(out->err, NULL, "%s", o->pages->path) : status;
}

int pages_decode(void *entered, const struct stretch *s, struct outlet *out)
{
	struct opened_pages *o = entered;
	const struct pages_cpu *cpu = &o->pages->cpu[s->stream];
	struct page_passage p = { .page = s->from };
	char *path = mem_printf("%s/pages/cpu%u", o->pages->path, cpu->cpu);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	free(path);
	if (fd < 0)
		return error_system(out->err, NULL, "%s/pages/cpu%u", o->pages->path, cpu->cpu);
	ring_cpu_open(&p.ring, cpu->cpu, out, o->pages->end > INT64_MAX - LATE ? INT64_MAX : o->pages->end + LATE);
	const int status = decode_cpu(o, &p, fd, s->to, out);
	close(fd);
	if (guard_close(&p.ring.guard) || status)
		return -1;
	if (p.ring.why)
		return outlet_damaged(out, p.ring.why, false);
	if (out->only)
		return 0;  /* what a part has cannot be held against the kernel's counts */
	struct cpu_stat stat = cpu->stat;
	if (p.spoiled)
		stat.events = 0;  /* that some are missing has been said */
	if (p.older)
		stat.lost = 0;
	return ring_cpu_cover(&p.ring, cpu->has_stat ? &stat : NULL, o->pages->begin, o->pages->end, out);
}

/* ---- what explains them */

static int add_format(struct opened_pages *o, const char *system, const char *event, struct error *err)
{
	char *name = mem_printf("events/%s/%s/format", system, event), *text;
	size_t len;
	const int rc = pages_text(o->pages, name, &text, &len, err);
	if (text)
		tep_parse_event(o->ring.tep, text, len, system);
	free(text);
	free(name);
	return rc;
}

static int each_below(struct opened_pages *o, const char *folder, const char *system, size_t *left, struct error *err)
{
	char *path = mem_printf("%s/%s", o->pages->path, folder);
	DIR *dir = opendir(path);
	int rc = dir || errno == ENOENT || errno == ENOTDIR ? 0 : error_read(err, pages_reader.mend, "%s", path);
	for (struct dirent *e; dir && rc == 0 && *left && (e = readdir(dir));) {
		if (e->d_name[0] == '.')
			continue;
		--*left;
		if (system) {
			rc = add_format(o, system, e->d_name, err);
		} else {
			char *below = mem_printf("events/%s", e->d_name);
			rc = each_below(o, below, e->d_name, left, err);
			free(below);
		}
	}
	if (dir)
		closedir(dir);
	free(path);
	return rc;
}

/* "TID NAME" in each line, or "TID PROCESS". */
static void take_line(struct opened_pages *o, bool names, long tid, char *rest)
{
	if (names)
		tep_register_comm(o->ring.tep, rest, (int)tid);
	else
		*map_put(&o->ring.process, (uint64_t)tid, NULL) = (uint64_t)strtol(rest, NULL, 10) & INT32_MAX;
}

static int read_lines(struct opened_pages *o, const char *name, bool names, struct error *err)
{
	char *text;
	size_t len;
	const int rc = pages_text(o->pages, name, &text, &len, err);
	char *rest = text;
	for (char *line; rest && (line = strsep(&rest, "\n"));) {
		char *value;
		const long tid = strtol(line, &value, 10);
		if (value > line && *value == ' ' && tid > 0 && tid <= INT32_MAX)
			take_line(o, names, tid, value + 1);
	}
	free(text);
	return rc;
}

static int read_header(struct opened_pages *o, struct error *err)
{
	char *page;
	size_t len;
	if (pages_text(o->pages, "header_page", &page, &len, err))
		return -1;
	const bool read = page && !tep_parse_header_page(o->ring.tep, page, len, (int)o->pages->length_size);
	free(page);
	return read ? 0 : error_set(err, STATUS_INPUT, pages_reader.mend, "%s: libtraceevent cannot read it", o->pages->path);
}

void *pages_enter(struct source *s, struct error *err)
{
	struct opened_pages *o = mem_new(1, sizeof *o);
	size_t left = MOST_EVENTS;
	o->pages = s->place[0]->data;
	o->ring.tep = tep_alloc();
	o->buffer = kbuffer_alloc(o->pages->length_size == 8 ? KBUFFER_LSIZE_8 : KBUFFER_LSIZE_4, KBUFFER_ENDIAN_SAME_AS_HOST);
	if (!o->ring.tep || !o->buffer) {
		errno = ENOMEM;
		error_system(err, NULL, "%s", o->pages->path);
		return NULL;
	}
	tep_set_loglevel(TEP_LOG_NONE);
	if (read_header(o, err) || each_below(o, "events", NULL, &left, err) ||
	    read_lines(o, "saved_cmdlines", true, err) || read_lines(o, "saved_tgids", false, err))
		return NULL;
	ring_init(&o->ring, o->ring.tep, &s->meaning);
	return o;
}
