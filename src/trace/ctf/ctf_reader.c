/* Reader of CTF directories. */
#include <errno.h>
#include <fts.h>
#include <sys/stat.h>

#include "base/base.h"
#include "base/bisect.h"
#include "base/parallel.h"
#include "trace/ctf/ctf.h"
#include "trace/ctf/decode.h"
#include "trace/internal.h"

#define PARALLEL_BYTES (16U << 20)  /* minimum size of a trace for which several threads scan the files, bytes */

struct native_trace {
	char **dir;                 /* the trace's directories: one, or those that a rotating tracer wrote */
	struct stream_file **file;  /* each directory's files */
	size_t *files, dirs;
	struct ctf_classes classes;
	struct ctf_streams streams;
};

static enum claim native_claims(const char *name, const unsigned char *head, size_t len)
{
	static const unsigned char packetized_le[] = { 0x57, 0x1d, 0xd1, 0x75 };
	static const unsigned char packetized_be[] = { 0x75, 0xd1, 0x1d, 0x57 };
	if (strcmp(name, "metadata") != 0 || len < 6)
		return CLAIM_NONE;
	if (!memcmp(head, packetized_le, 4) || !memcmp(head, packetized_be, 4) || !memcmp(head, "/* CTF", 6) || *head == 0x1e)
		return CLAIM_DIR;
	return CLAIM_NONE;
}

static uint64_t dir_bytes(const char *path)
{
	char *const paths[] = { (char *)path, NULL };
	uint64_t bytes = 0;
	FTS *fts = fts_open(paths, FTS_LOGICAL | FTS_NOCHDIR, NULL);
	for (FTSENT *e; fts && (e = fts_read(fts));)
		if (e->fts_info == FTS_F)
			bytes += (uint64_t)e->fts_statp->st_size;
	if (fts)
		fts_close(fts);
	return bytes;
}

static int native_describe(struct trace_location *p, struct error *err)
{
	p->bytes = dir_bytes(p->path);
	return metadata_read(p->path, &p->meta, err);
}

/* ---- opening */

/* Removes directories that are copies of another one, with a note: otherwise every event would occur twice. */
static void drop_duplicate_dirs(struct native_trace *n, struct notes *notes)
{
	for (size_t i = 1; i < n->dirs; i++) {
		size_t k = 0;
		while (k < i && !stream_files_same(n->file[k], n->files[k], n->file[i], n->files[i]))
			k++;
		if (k == i)
			continue;
		note_add(notes, DUPLICATE_TRACE, NULL, n->dir[i], n->dir[k]);
		stream_files_free(n->file[i], n->files[i]);
		free(n->dir[i]);
		n->dirs--;
		for (size_t j = i; j < n->dirs; j++) {
			n->file[j] = n->file[j + 1];
			n->files[j] = n->files[j + 1];
			n->dir[j] = n->dir[j + 1];
		}
		i--;
	}
}

static int list_files(struct source *s, struct native_trace *n, struct error *err)
{
	n->dir = mem_new(s->locations, sizeof *n->dir);
	n->file = mem_new(s->locations, sizeof *n->file);
	n->files = mem_new(s->locations, sizeof *n->files);
	for (; n->dirs < s->locations; n->dirs++)
		n->dir[n->dirs] = mem_dup(s->location[n->dirs]->path);
	for (size_t i = 0; i < n->dirs; i++) {
		if (missing_streams(n->dir[i], &s->notes, err))
			return -1;
		if (stream_files_list(n->dir[i], &n->file[i], &n->files[i]))
			return error_read(err, "make it readable for you", "%s", n->dir[i]);
	}
	drop_duplicate_dirs(n, &s->notes);
	return 0;
}

/* Returns the directories' longest metadata: later ones may describe more events. Returns NULL with *reason set if
 * two directories contradict each other; NULL without a reason: *err is set. */
static char *read_longest_metadata(const struct native_trace *g, size_t *len, const char **reason, struct error *err)
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

/* Adds notes about a file's damage. A file with another name is unrelated to the trace. */
static void note_file(struct notes *notes, const struct file_scan *s)
{
	const struct stream_file *f = s->file;
	if (f->index_damaged)
		note_add(notes, INDEX_DAMAGED, NULL, f->dir, f->name);
	if (s->reason && stream_file_has_stream_name(f->name))
		note_add(notes, STREAM_UNREADABLE, NULL, f->dir, f->name, s->reason);
	if (!s->reason && f->missing_bytes)
		note_add(notes, STREAM_TRUNCATED, NULL, f->dir, f->name, (unsigned long long)f->missing_bytes);
}

/* Joins the files' streams until one cannot be read. Returns 0 or -1. */
static int join_file_scans(struct native_trace *n, struct file_scans *all, struct notes *notes, struct error *err)
{
	int status = 0;
	for (size_t i = 0; i < all->len; i++) {
		struct file_scan *s = &all->scan[i];
		if (!status && !s->status) {
			note_file(notes, s);
			ctf_streams_join(&n->streams, &s->streams);
			continue;
		}
		ctf_streams_release(&s->streams);
		if (!status) {
			errno = s->read_errno;
			status = error_read(err, "make it readable for you", "%s/%s", s->file->dir, s->file->name);
		}
	}
	return status;
}

static int scan_files(struct source *s, struct native_trace *n, struct error *err)
{
	struct file_scans all = { .classes = &n->classes };
	for (size_t i = 0; i < n->dirs; i++)
		for (size_t k = 0; k < n->files[i]; k++)
			*ARRAY_PUSH(all.scan, all.len, all.cap) = (struct file_scan){ .file = &n->file[i][k] };
	const unsigned workers = s->bytes < PARALLEL_BYTES ? 1 : s->workers;
	parallel_run(&(struct parallel){ .workers = workers, .task = run_file_scan, .arg = &all }, all.len);
	int status = join_file_scans(n, &all, &s->notes, err);
	if (!status && all.len && !n->streams.len)
		status = error_set(err, STATUS_INPUT, "copy the trace again", "%s: no stream can be read: %s", n->dir[0],
		                   all.scan[0].reason);
	free(all.scan);
	ctf_streams_sort(&n->streams);
	return status;
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
	struct native_trace *n = s->data = mem_new(1, sizeof *n);
	const char *reason;
	size_t len;
	if (list_files(s, n, err))
		return -1;
	char *text = read_longest_metadata(n, &len, &reason, err);
	if (!text && !reason)
		return -1;
	if (text)
		reason = ctf_classes_make(&n->classes, text, len, &s->mapping);
	free(text);
	if (reason)
		return error_set(err, STATUS_INPUT, "copy the trace again, or convert it with `babeltrace2 TRACE -o ctf -w DIR`",
		                 "%s: the metadata cannot be read: %s", n->dir[0], reason);
	if (scan_files(s, n, err))
		return -1;
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
	for (size_t i = 0; i < n->dirs; i++) {
		if (n->file)
			stream_files_free(n->file[i], n->files[i]);
		free(n->dir[i]);
	}
	free(n->dir);
	free(n->file);
	free(n->files);
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
	if (f->class->field_slot[CTF_BEGIN_TIME] == CTF_NO_SLOT || !f->in_order)
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
	.name = "native", .remedy = "copy the trace again", .unit = "packet",
	.opens_in_parallel = true, .claims = native_claims, .describe = native_describe, .open = native_open,
	.narrow = native_narrow, .enter = native_enter, .decode = native_decode, .leave = native_leave, .close = native_close,
};
