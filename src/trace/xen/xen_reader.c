/* Reader of xentrace files: operations of struct trace_reader. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "trace/string_table.h"
#include "trace/xen/xen.h"

#define REMEDY "copy the file again after xentrace has finished"

static enum claim claim_file(const char *name, const unsigned char *head, size_t len)
{
	static const unsigned char cpu_change[] = { 0x03, 0xf0, 0x01, 0x20 };
	(void)name;
	if (len < 12 || memcmp(head, cpu_change, sizeof cpu_change) != 0)
		return CLAIM_NONE;
	const unsigned pcpu = head[4] | (unsigned)head[5] << 8 | (unsigned)head[6] << 16 | (unsigned)head[7] << 24;
	return pcpu < XEN_PCPUS_MAX && head[8] % 4 == 0 ? CLAIM_FILE : CLAIM_NONE;
}

static void forget_file(struct trace_location *p)
{
	struct xen_file *f = p->data;
	if (f)
		xen_file_release(f);
	free(f);
	p->data = NULL;
}

static int fail_describe(struct trace_location *p, int status)
{
	forget_file(p);
	return status;
}

static int describe_file(struct trace_location *p, struct error *err)
{
	struct xen_file *f = p->data = mem_new(1, sizeof *f);
	const int fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const int status = fd < 0 ? -1 : xen_file_scan(f, fd);
	const int why = errno;
	if (fd >= 0)
		close(fd);
	errno = why;
	if (status)
		return fail_describe(p, error_read(err, "make it readable for you", "%s", p->path));
	if (!xen_file_is_plausible(f))
		return fail_describe(p, error_set(err, STATUS_INPUT, REMEDY, "%s: no xentrace file: %s at byte %llu", p->path,
		                                  f->damage, (unsigned long long)f->damaged_at));
	xen_texts_read(p->path, &f->texts);
	p->bytes = f->bytes;
	p->scale = (struct clock_scale){ .millihertz = f->texts.millihertz, .is_tsc = true };
	snprintf(p->meta.tracer, sizeof p->meta.tracer, "xentrace, %s", f->texts.version);
	return 0;
}

static void set_tsc_rate(struct trace_location *p, uint64_t millihertz)
{
	if (!p->scale.millihertz)
		p->scale.millihertz = millihertz;
}

static int open_file(struct source *s, struct error *err)
{
	struct xen_file *f = s->location[0]->data;
	if (!s->location[0]->scale.millihertz)
		return error_set(err, STATUS_INPUT,
		                 "index it with --tsc-hz N, or put the output of `xl info` into a file beside it",
		                 "%s: the frequency of the TSC is unknown: xentrace does not record it", s->location[0]->path);
	for (size_t i = 0; i < s->options->domains; i++)
		xen_texts_name_domain(&f->texts, s->options->domain[i].id, s->options->domain[i].name);
	for (size_t i = 0; i < f->pcpus; i++)
		*ARRAY_PUSH(s->stream, s->streams, s->streams_cap) =
			(struct source_stream){ .name = mem_printf("of pCPU %u", f->pcpu[i].number), .bytes = f->pcpu[i].bytes };
	return 0;
}

struct xen_worker {
	const struct trace_location *location;
	int fd;
	struct string_cache names;
};

static void *enter_file(struct source *s, struct error *err)
{
	const struct trace_location *p = s->location[0];
	const int fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		error_read(err, "make it readable for you", "%s", p->path);
		return NULL;
	}
	struct xen_worker *w = mem_new(1, sizeof *w);
	w->location = p;
	w->fd = fd;
	string_cache_init(&w->names, s->mapping.names);
	struct xen_file *f = p->data;
	if (!f->texts.exit_isa)
		f->texts.exit_isa = xen_find_exit_isa(f, fd, p->path, &p->scale, &w->names);
	return w;
}

static int decode_part(void *state, const struct stream_part *part, struct event_sink *out)
{
	struct xen_worker *w = state;
	const struct xen_file *f = w->location->data;
	return xen_pcpu_decode(f, &f->pcpu[part->stream], w->fd, w->location->path, &w->location->scale, &w->names, out);
}

static void leave_file(void *state)
{
	struct xen_worker *w = state;
	close(w->fd);
	string_cache_release(&w->names);
	free(w);
}

static void add_notes(const struct source *s, const char *machine, struct notes *notes)
{
	const struct xen_file *f = s->location[0]->data;
	if (f->damage)
		note_add(notes, XENTRACE_CUT, machine, f->damage, (unsigned long long)f->damaged_at, (unsigned long long)f->bytes);
	if (!f->texts.domains)
		note_add(notes, XEN_NAMES_UNKNOWN, machine);
}

const struct trace_reader xen_reader = {
	.name = "xentrace",
	IN_CHILD("the reader of xentrace files crashed or hung"),
	.is_whole_machine = true,
	.has_own_events = true,
	.remedy = REMEDY,
	.unit = "window",
	.claims = claim_file,
	.describe = describe_file,
	.forget = forget_file,
	.set_tsc_rate = set_tsc_rate,
	.open = open_file,
	.enter = enter_file,
	.decode = decode_part,
	.leave = leave_file,
	.add_notes = add_notes,
};
