/* The reader of CTF that knows what it reads: traces of usual shape, whole, whose packets are where they should be.
 * Whatever is else is left to libbabeltrace2, before anything is decoded. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "trace/babeltrace/babeltrace.h"
#include "trace/ctf/ctf.h"
#include "trace/ctf/decode.h"
#include "trace/ctf/fragments.h"
#include "trace/ctf/ctf_trace_set.h"
#include "trace/internal.h"

#define SIDE_BY_SIDE (16U << 20)  /* bytes of a trace, from which on its files' packets are found by several threads */

struct native {
	struct group group;        /* the folders and their files */
	struct notes notes;        /* said when it is read by us */
	bool is_json;              /* CTF 2 */
	struct ctf_classes classes;
	struct ctf_streams streams;
};

static enum claim claims(const char *name, const unsigned char *head, size_t len)
{
	return babeltrace_reader.claims(name, head, len);
}

static int describe(struct place *p, struct error *err)
{
	return babeltrace_reader.describe(p, err);
}

/* ---- opening */

/* What old tracers wrote wrong, libbabeltrace2 puts right: ends of packets before their last event, and the like. */
static bool has_quirks(const char *tracer)
{
	int major = 0, minor = 0;
	if (strncmp(tracer, "barectf", 7) == 0)
		return sscanf(tracer, "barectf %d.%d", &major, &minor) != 2 || major < 2 || (major == 2 && minor <= 3);
	if (sscanf(tracer, "lttng-modules %d.%d", &major, &minor) == 2 ||
	    sscanf(tracer, "lttng-ust %d.%d", &major, &minor) == 2)
		return major < 2 || (major == 2 && minor < 11);
	return false;
}

/* Of folders into which a tracer split a trace, the later ones may know of more events.  NULL and *why: of different
 * ones; NULL and NULL: *err. */
static char *read_metadata(const struct group *g, size_t *len, const char **why, struct error *err)
{
	char *longest = metadata_text(g->dir[0], len, err);
	*why = NULL;
	for (size_t i = 1; longest && i < g->dirs; i++) {
		size_t n;
		char *text = metadata_text(g->dir[i], &n, err);
		if (text && memcmp(text, longest, n < *len ? n : *len) != 0)
			*why = "folders whose metadata differs";
		const bool is_better = text && !*why && n > *len;
		char *worse = is_better ? longest : text;
		if (!text || *why) {
			free(longest);
			longest = NULL;
		} else if (is_better) {
			longest = text;
			*len = n;
		}
		free(worse);
	}
	return longest;
}

/* The packets of one file. */
struct scan {
	struct stream_file *file;
	struct ctf_streams streams;
	const char *why;
	int status, error;          /* error: errno */
};

struct scans {
	const struct ctf_classes *classes;
	struct scan *scan;
	size_t len, cap;
};

static int scan_file(void *arg, size_t i)
{
	const struct scans *all = arg;
	struct scan *s = &all->scan[i];
	s->status = ctf_streams_add(&s->streams, all->classes, s->file, &s->why);
	s->error = errno;
	return s->status;
}

/* Up to the first that is not whole. */
static int join_scans(struct native *n, struct scans *all, const char **why, struct error *err)
{
	int status = 0;
	for (size_t i = 0; i < all->len; i++) {
		struct scan *s = &all->scan[i];
		if (!status && !s->status) {
			ctf_streams_join(&n->streams, &s->streams);
			continue;
		}
		ctf_streams_release(&s->streams);
		if (!status && s->status < 0) {
			errno = s->error;
			error_read(err, "make it readable for you", "%s/%s", s->file->dir, s->file->name);
		}
		*why = status ? *why : s->why;
		status = status ? status : s->status;
	}
	return status;
}

static int read_files(const struct source *s, struct native *n, const char **why, struct error *err)
{
	const struct group *g = &n->group;
	struct scans all = { .classes = &n->classes };
	for (size_t i = 0; i < g->dirs; i++)
		for (size_t k = 0; k < g->files[i]; k++)
			*ARRAY_PUSH(all.scan, all.len, all.cap) = (struct scan){ .file = &g->file[i][k] };
	parallel_run(&(struct parallel){ .workers = s->bytes < SIDE_BY_SIDE ? 1 : s->workers, .task = scan_file, .arg = &all },
	             all.len);
	const int status = join_scans(n, &all, why, err);
	free(all.scan);
	if (!status)
		*why = ctf_streams_sort(&n->streams);
	return status < 0 ? -1 : 0;
}

/* 0; *why: what it has that we do not read. */
static int read_trace(struct source *s, struct native *n, const char **why, struct error *err)
{
	size_t len;
	*why = has_quirks(s->place[0]->meta.tracer) ? "a tracer whose packets must be mended" : NULL;
	if (*why)
		return 0;
	n->group = (struct group){ .notes = &n->notes };
	n->group.dir = mem_new(s->places, sizeof *n->group.dir);
	for (; n->group.dirs < s->places; n->group.dirs++)
		n->group.dir[n->group.dirs] = mem_dup(s->place[n->group.dirs]->path);
	for (size_t i = 0; i < n->group.dirs; i++)
		if (missing_streams(n->group.dir[i], &n->notes, err))
			return -1;
	if (group_list(&n->group, err))
		return -1;
	char *text = read_metadata(&n->group, &len, why, err);
	if (!text)
		return *why ? 0 : -1;
	n->is_json = ctf_is_fragments(text, len);
	*why = ctf_classes_make(&n->classes, text, len, &s->meaning);
	free(text);
	return *why ? 0 : read_files(s, n, why, err);
}

static void add_stream(struct source *s, const struct ctf_flow *f)
{
	struct source_stream *to = ARRAY_PUSH(s->stream, s->streams, s->streams_cap);
	*to = (struct source_stream){ .name = mem_dup(f->first->name), .bytes = f->bytes };
	uint64_t bytes = 0;
	for (size_t i = 1; i < f->packets; i++) {
		bytes += f->packet[i - 1].size / 8;
		if (ctf_may_cut(f, i))
			*ARRAY_PUSH(to->cut, to->cuts, to->cuts_cap) = (struct stream_cut){ i, bytes };
	}
}

static int open_native(struct source *s, struct error *err)
{
	if (s->options->reader == READER_BABELTRACE)
		return OPEN_OTHER;
	struct native *n = s->data = mem_new(1, sizeof *n);
	const char *why;
	if (read_trace(s, n, &why, err))
		return -1;
	if (why && s->options->reader == READER_NATIVE)
		return error_set(err, STATUS_INPUT, "read it with --reader=babeltrace", "%s: %s: not read natively",
		                 s->place[0]->path, why);
	if (why && n->is_json)  /* which not every libbabeltrace2 can read */
		return error_set(err, STATUS_INPUT, "record CTF 1.8, or convert it with babeltrace2 2.1 or later",
		                 "%s: CTF 2 that is not understood: %s", s->place[0]->path, why);
	if (why)
		return OPEN_OTHER;
	for (size_t i = 0; i < n->notes.len; i++)
		notes_copy(&s->notes, &n->notes.item[i], NULL);
	for (size_t i = 0; i < n->streams.len; i++)
		add_stream(s, &n->streams.stream[i]);
	return 0;
}

static void close_native(struct source *s)
{
	struct native *n = s->data;
	if (!n)
		return;
	ctf_streams_release(&n->streams);
	ctf_classes_release(&n->classes);
	group_release(&n->group);
	notes_release(&n->notes);
	free(n);
	s->data = NULL;
}

/* Packets are in the order of time; one goes on until the next one begins, whatever it says of its end. */
static void narrow(const struct source *s, const struct trace_window *only, struct stretch *p)
{
	const struct native *n = s->data;
	const struct ctf_flow *f = &n->streams.stream[p->stream];
	size_t first, end;
	if (f->class->told[CTF_BEGIN] == CTF_NO_SLOT)
		return;
	BISECT(first, f->packets, first + 1 < f->packets && ctf_time(f->class, f->packet[first + 1].begin) < only->from);
	BISECT(end, f->packets, ctf_time(f->class, f->packet[end].begin) <= only->to);
	p->from = first;
	p->to = end > first ? end : first;
}

/* ---- decoding */

struct native_worker {
	struct ctf_worker *worker;
	const struct source *source;
};

static void *enter(struct source *s, struct error *err)
{
	(void)err;
	const struct native *n = s->data;
	struct native_worker *w = mem_new(1, sizeof *w);
	*w = (struct native_worker){ ctf_worker_new(&n->classes, &s->meaning), s };
	return w;
}

static void leave(void *entered)
{
	struct native_worker *w = entered;
	ctf_worker_free(w->worker);
	free(w);
}

static int decode(void *entered, const struct stretch *s, struct outlet *out)
{
	struct native_worker *w = entered;
	const struct native *n = w->source->data;
	const struct meaning *m = &w->source->meaning;
	const struct ctf_flow *f = &n->streams.stream[s->stream];
	const size_t chosen = atomic_load(&m->chosen);
	const struct layout *l = m->layout[chosen ? chosen - 1 : 0];
	return ctf_decode(w->worker, f, s->from, s->to < f->packets ? s->to : f->packets, l->lost_tail, out);
}

const struct trace_reader ctf_reader = {
	.name = "native", .mend = "copy the trace again", .unit = "packet", .fallback = &babeltrace_reader,
	.opens_beside = true, .claims = claims, .describe = describe, .open = open_native, .narrow = narrow, .enter = enter,
	.decode = decode, .leave = leave, .close = close_native,
};
