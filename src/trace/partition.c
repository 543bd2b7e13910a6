/* Sharing out the streams.
 *
 * All streams, smallest first, are laid end to end and the row is cut into as many equal pieces as there are workers
 * (McNaughton's rule), or several times as many where there is much to do, because bytes tell but roughly how long they
 * take, and who is ready early can take a piece more.  A stream is cut at the nearest place at which its reader allows it,
 * if both parts are worth the work of beginning. */
#include <stdlib.h>

#include "base/mem.h"
#include "trace/load.h"

#define SMALLEST_PART (1U << 20)  /* bytes; what a reader does to begin costs about as much as decoding that */

#define LARGE_PART (16U << 20)   /* bytes: a worker's share is several pieces if it is so many times as large */
#define MOST_PARTS 64

struct planned_row {
	size_t source, stream;
	uint64_t bytes;
};

static int smaller_first(const void *a, const void *b)
{
	const struct planned_row *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return x->stream < y->stream ? -1 : x->stream > y->stream;
}

/* Those of a source together: a child process reads one source. */
static int by_source(const void *a, const void *b)
{
	const struct planned_row *x = a, *y = b;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return smaller_first(a, b);
}

/* Where to cut so that about `bytes` of the stream come before, and not before `from`; NULL: nowhere. */
static const struct stream_cut *cut_at(const struct source_stream *s, uint64_t from, uint64_t bytes)
{
	const struct stream_cut *best = NULL;
	uint64_t best_off = UINT64_MAX;
	for (size_t i = 0; i < s->cuts; i++) {
		const uint64_t at = s->cut[i].bytes, off = at > bytes ? at - bytes : bytes - at;
		if (off < best_off && at >= from + SMALLEST_PART && s->bytes >= at + SMALLEST_PART) {
			best = &s->cut[i];
			best_off = off;
		}
	}
	return best;
}

static void add(struct load *l, size_t *cap, const struct planned_row *r, uint64_t from, uint64_t to, uint64_t bytes)
{
	*ARRAY_PUSH(l->task, l->tasks, *cap) = (struct task){ .source = l->source[r->source],
		.stretch = { r->stream, from, to }, .bytes = bytes };
}

/* What of one stream may tell of the window, as one task. */
static void narrow_stream(struct load *l, size_t *cap, const struct planned_row *r)
{
	const struct source *s = l->source[r->source];
	struct source_stream *stream = &s->stream[r->stream];
	struct stretch p = { r->stream, 0, STRETCH_END };
	if (s->reader->narrow)
		s->reader->narrow(s, s->only, &p);
	stream->first_task = l->tasks;
	stream->tasks = 1;
	add(l, cap, r, p.from, p.to, r->bytes);
}

/* Cuts one stream, which lies at [at, at + r->bytes) of the row, wherever a share ends. */
static void cut_stream(struct load *l, size_t *cap, const struct planned_row *r, uint64_t at, uint64_t share)
{
	struct source_stream *s = &l->source[r->source]->stream[r->stream];
	uint64_t from = 0, before = 0;
	s->first_task = l->tasks;
	for (uint64_t end = share ? (at / share + 1) * share : UINT64_MAX; end < at + r->bytes; end += share) {
		const struct stream_cut *c = cut_at(s, before, end - at);
		if (!c)
			continue;
		add(l, cap, r, from, c->at, c->bytes - before);
		from = c->at;
		before = c->bytes;
	}
	add(l, cap, r, from, STRETCH_END, s->bytes - before);
	s->tasks = l->tasks - s->first_task;
}

/* Children have got their tasks when they begin: for them one each is as good. */
static uint64_t parts_of(uint64_t share)
{
	const uint64_t parts = share / LARGE_PART;
	return parts == 0 ? 1 : parts < MOST_PARTS ? parts : MOST_PARTS;
}

/* The streams of readers that are apart, or of the others. */
static void plan_streams(struct load *l, size_t *cap, bool apart)
{
	struct planned_row *row = NULL;
	size_t n = 0, row_cap = 0;
	uint64_t total = 0, at = 0;
	for (size_t i = 0; i < l->sources; i++) {
		const struct source *s = l->source[i];
		for (size_t k = 0; k < s->streams && s->reader->apart == apart && !s->left_out; k++) {
			*ARRAY_PUSH(row, n, row_cap) = (struct planned_row){ i, k, s->stream[k].bytes };
			total += s->stream[k].bytes;
		}
	}
	if (n)
		qsort(row, n, sizeof *row, apart ? by_source : smaller_first);
	const uint64_t each = l->workers > 1 ? total / l->workers + 1 : 0, share = each / (apart ? 1 : parts_of(each));
	for (size_t i = 0; i < n; at += row[i++].bytes) {
		if (l->options->only)
			narrow_stream(l, cap, &row[i]);
		else
			cut_stream(l, cap, &row[i], at, share);
	}
	free(row);
}

/* Those whose streams turn out when they are read. */
static void plan_whole(struct load *l, size_t *cap)
{
	for (size_t i = 0; i < l->sources; i++)
		if (l->source[i]->reader->endless)
			add(l, cap, &(struct planned_row){ .source = i }, 0, STRETCH_END, l->source[i]->bytes);
}

static int larger_first(const void *a, const void *b)
{
	const struct planned_row *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->stream < y->stream ? -1 : x->stream > y->stream;
}

void plan_tasks(struct load *l)
{
	size_t cap = 0;
	plan_whole(l, &cap);
	plan_streams(l, &cap, true);
	l->apart = l->tasks;
	plan_streams(l, &cap, false);
	struct planned_row *by = mem_new(l->tasks + 1, sizeof *by);
	l->order = mem_new(l->tasks + 1, sizeof *l->order);
	for (size_t i = 0; i < l->tasks; i++)
		by[i] = (struct planned_row){ .stream = i, .bytes = l->task[i].bytes };
	if (l->tasks > l->apart)
		qsort(by + l->apart, l->tasks - l->apart, sizeof *by, larger_first);
	for (size_t i = 0; i < l->tasks; i++)
		l->order[i] = by[i].stream;
	l->ordered = l->tasks;
	free(by);
}

static bool must_begin_anew(const struct load *l, const struct source_stream *s)
{
	bool again = false;
	for (size_t t = s->first_task; t < s->first_task + s->tasks; t++)
		again |= l->task[t].status == DECODE_WHOLE;
	return again;
}

static void plan_source_again(struct load *l, const struct source *s)
{
	for (size_t k = 0; k < s->streams; k++) {
		struct source_stream *stream = &s->stream[k];
		if (!must_begin_anew(l, stream))
			continue;
		for (size_t t = 0; t < stream->tasks; t++)
			task_forget(&l->task[stream->first_task + t], l->store);
		l->task[stream->first_task].stretch.from = 0;
		l->task[stream->first_task].stretch.to = STRETCH_END;
		stream->tasks = 1;
		l->order[l->ordered++] = stream->first_task;
	}
}

void plan_again(struct load *l)
{
	l->ordered = 0;
	for (size_t i = 0; i < l->sources; i++)
		if (l->source[i]->reader->apart)
			plan_source_again(l, l->source[i]);
	l->apart = l->ordered;
	for (size_t i = 0; i < l->sources; i++)
		if (!l->source[i]->reader->apart)
			plan_source_again(l, l->source[i]);
}
