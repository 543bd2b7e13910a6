/* Native reader of CTF: reads undamaged traces that use the common features. Passes all other traces to libbabeltrace2
 * before it decodes anything. */
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

#define PARALLEL_BYTES (16U << 20)  /* minimum size of a trace for which several threads scan the files, bytes */

struct native_trace {
	struct ctf_trace_set set;  /* directories and their files */
	struct notes notes;        /* notes for the source; discarded if libbabeltrace2 reads the trace */
	bool is_json;              /* the metadata is CTF 2 */
	struct ctf_classes classes;
	struct ctf_streams streams;
};

static enum claim native_claims(const char *name, const unsigned char *head, size_t len)
{
	return babeltrace_reader.claims(name, head, len);
}

static int native_describe(struct trace_location *p, struct error *err)
{
	return babeltrace_reader.describe(p, err);
}

/* ---- opening */

/* Returns true for tracers with bugs that only libbabeltrace2 works around: packets that begin after their first event. */
static bool is_repaired_by_babeltrace(const char *tracer)
{
	int major = 0, minor = 0;
	return strncmp(tracer, "barectf", 7) == 0 &&
	       (sscanf(tracer, "barectf %d.%d", &major, &minor) != 2 || major < 2 || (major == 2 && minor <= 3));
}

/* Returns the longest metadata of the directories: later ones may describe more events. Returns NULL with *reason set if
 * two directories contradict each other; NULL without a reason: *err is set. */
static char *read_longest_metadata(const struct ctf_trace_set *g, size_t *len, const char **reason, struct error *err)
{
	char *longest = metadata_text(g->dir[0], len, err);
	*reason = NULL;
	for (size_t i = 1; longest && i < g->dirs; i++) {
		size_t n;
		char *text = metadata_text(g->dir[i], &n, err);
		if (text && memcmp(text, longest, n < *len ? n : *len) != 0)
			*reason = "directories with different metadata";
		const bool is_better = text && !*reason && n > *len;
		char *worse = is_better ? longest : text;
		if (!text || *reason) {
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

/* Result of scanning one file. */
struct file_scan {
	struct stream_file *file;
	struct ctf_streams streams;
	const char *reason;
	int status, read_errno;
};

struct file_scans {
	const struct ctf_classes *classes;
	struct file_scan *scan;
	size_t len, cap;
};

static int run_file_scan(void *arg, size_t i)
{
	const struct file_scans *all = arg;
	struct file_scan *s = &all->scan[i];
	s->status = ctf_streams_add(&s->streams, all->classes, s->file, &s->reason);
	s->read_errno = errno;
	return s->status;
}

/* Joins the streams of the files until a file failed. Returns the status of that file; 0: none failed. */
static int join_file_scans(struct native_trace *n, struct file_scans *all, const char **reason, struct error *err)
{
	int status = 0;
	for (size_t i = 0; i < all->len; i++) {
		struct file_scan *s = &all->scan[i];
		if (!status && !s->status) {
			ctf_streams_join(&n->streams, &s->streams);
			continue;
		}
		ctf_streams_release(&s->streams);
		if (!status && s->status < 0) {
			errno = s->read_errno;
			error_read(err, "make it readable for you", "%s/%s", s->file->dir, s->file->name);
		}
		*reason = status ? *reason : s->reason;
		status = status ? status : s->status;
	}
	return status;
}

static int scan_files(const struct source *s, struct native_trace *n, const char **reason, struct error *err)
{
	const struct ctf_trace_set *g = &n->set;
	struct file_scans all = { .classes = &n->classes };
	for (size_t i = 0; i < g->dirs; i++)
		for (size_t k = 0; k < g->files[i]; k++)
			*ARRAY_PUSH(all.scan, all.len, all.cap) = (struct file_scan){ .file = &g->file[i][k] };
	const unsigned workers = s->bytes < PARALLEL_BYTES ? 1 : s->workers;
	parallel_run(&(struct parallel){ .workers = workers, .task = run_file_scan, .arg = &all }, all.len);
	const int status = join_file_scans(n, &all, reason, err);
	free(all.scan);
	if (!status)
		*reason = ctf_streams_sort(&n->streams);
	return status < 0 ? -1 : 0;
}

/* Returns 0, with *reason set if the trace has an unsupported feature; or -1. */
static int read_native(struct source *s, struct native_trace *n, const char **reason, struct error *err)
{
	size_t len;
	*reason = is_repaired_by_babeltrace(s->location[0]->meta.tracer) ? "packets of this tracer version need repair" : NULL;
	if (*reason)
		return 0;
	n->set = (struct ctf_trace_set){ .notes = &n->notes };
	n->set.dir = mem_new(s->locations, sizeof *n->set.dir);
	for (; n->set.dirs < s->locations; n->set.dirs++)
		n->set.dir[n->set.dirs] = mem_dup(s->location[n->set.dirs]->path);
	for (size_t i = 0; i < n->set.dirs; i++)
		if (missing_streams(n->set.dir[i], &n->notes, err))
			return -1;
	if (ctf_trace_set_list(&n->set, err))
		return -1;
	char *text = read_longest_metadata(&n->set, &len, reason, err);
	if (!text)
		return *reason ? 0 : -1;
	n->is_json = ctf_is_json_metadata(text, len);
	*reason = ctf_classes_make(&n->classes, text, len, &s->mapping);
	free(text);
	return *reason ? 0 : scan_files(s, n, reason, err);
}

static void add_source_stream(struct source *s, const struct ctf_data_stream *f)
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

static int native_open(struct source *s, struct error *err)
{
	if (s->options->reader == READER_BABELTRACE)
		return OPEN_OTHER;
	struct native_trace *n = s->data = mem_new(1, sizeof *n);
	const char *reason;
	if (read_native(s, n, &reason, err))
		return -1;
	if (reason && s->options->reader == READER_NATIVE)
		return error_set(err, STATUS_INPUT, "read it with --reader=babeltrace", "%s: not readable by the native reader: %s",
		                 s->location[0]->path, reason);
	if (reason && n->is_json)  /* older versions of libbabeltrace2 cannot read CTF 2 */
		return error_set(err, STATUS_INPUT, "record CTF 1.8, or convert it with babeltrace2 2.1 or later",
		                 "%s: unsupported CTF 2: %s", s->location[0]->path, reason);
	if (reason)
		return OPEN_OTHER;
	for (size_t i = 0; i < n->notes.len; i++)
		notes_copy(&s->notes, &n->notes.item[i], NULL);
	for (size_t i = 0; i < n->streams.len; i++)
		add_source_stream(s, &n->streams.stream[i]);
	return 0;
}

static void native_close(struct source *s)
{
	struct native_trace *n = s->data;
	if (!n)
		return;
	ctf_streams_release(&n->streams);
	ctf_classes_release(&n->classes);
	ctf_trace_set_release(&n->set);
	notes_release(&n->notes);
	free(n);
	s->data = NULL;
}

/* Reduces *p to the packets that may contain events of the window. Packets are in time order; each counts until the next
 * one begins, because the end time in its header may be wrong. */
static void native_narrow(const struct source *s, const struct trace_window *window, struct stream_part *p)
{
	const struct native_trace *n = s->data;
	const struct ctf_data_stream *f = &n->streams.stream[p->stream];
	size_t first, end;
	if (f->class->field_slot[CTF_BEGIN_TIME] == CTF_NO_SLOT)
		return;
	BISECT(first, f->packets, first + 1 < f->packets && ctf_time(f->class, f->packet[first + 1].begin) < window->from);
	BISECT(end, f->packets, ctf_time(f->class, f->packet[end].begin) <= window->to);
	p->from = first;
	p->to = end > first ? end : first;
}

/* ---- decoding */

struct native_worker {
	struct ctf_worker *worker;
	const struct source *source;
};

static void *native_enter(struct source *s, struct error *err)
{
	(void)err;
	const struct native_trace *n = s->data;
	struct native_worker *w = mem_new(1, sizeof *w);
	*w = (struct native_worker){ ctf_worker_new(&n->classes, &s->mapping), s };
	return w;
}

static void native_leave(void *state)
{
	struct native_worker *w = state;
	ctf_worker_free(w->worker);
	free(w);
}

static int native_decode(void *state, const struct stream_part *s, struct event_sink *out)
{
	struct native_worker *w = state;
	const struct native_trace *n = w->source->data;
	const struct event_mapping *m = &w->source->mapping;
	const struct ctf_data_stream *f = &n->streams.stream[s->stream];
	const size_t chosen = atomic_load(&m->chosen);
	const struct layout *l = m->layout[chosen ? chosen - 1 : 0];
	return ctf_decode(w->worker, f, s->from, s->to < f->packets ? s->to : f->packets, l->lost_tail, out);
}

const struct trace_reader ctf_reader = {
	.name = "native", .remedy = "copy the trace again", .unit = "packet", .fallback = &babeltrace_reader,
	.opens_in_parallel = true, .claims = native_claims, .describe = native_describe, .open = native_open,
	.narrow = native_narrow, .enter = native_enter, .decode = native_decode, .leave = native_leave, .close = native_close,
};
