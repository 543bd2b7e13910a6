/* Cuts the streams into tasks, and distributes them to workers.
 *
 * McNaughton's wrap-around rule (Management Science 6(1), 1959): all streams, smallest first, form one row, which is cut
 * into as many equal shares as there are workers. Large loads get several shares per worker: the number of bytes
 * predicts the decoding time only roughly, so an idle worker can take another share. A stream is cut at the nearest
 * position that its reader allows, if both parts are large compared to the cost of starting a reader. */
#include "base/base.h"
#include "trace/load.h"

#define PART_MIN (1U << 20)  /* minimum size of a part, bytes; starting a reader costs about as much as decoding
                                   * this many bytes */

#define PART_TARGET (16U << 20)   /* size of a part if a worker's share is larger, bytes */
#define PARTS_MAX 64

struct planned_stream {
	size_t source, stream;
	uint64_t bytes;
};

ORDER_BY(smaller_first, struct planned_stream, RISING(bytes) RISING(source) RISING(stream))

/* Sorts by source, because a child process reads one source; within a source, smaller streams first. */
static int by_source(const void *a, const void *b)
{
	const struct planned_stream *x = a, *y = b;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return smaller_first(a, b);
}

/* Returns the cut nearest to byte `bytes` of the stream, at least PART_MIN after `from` and before the end; NULL: none. */
static const struct stream_cut *find_nearest_cut(const struct source_stream *s, uint64_t from, uint64_t bytes)
{
	const struct stream_cut *best = NULL;
	uint64_t best_off = UINT64_MAX;
	for (size_t i = 0; i < s->cuts; i++) {
		const uint64_t at = s->cut[i].bytes, off = at > bytes ? at - bytes : bytes - at;
		if (off < best_off && at >= from + PART_MIN && s->bytes >= at + PART_MIN) {
			best = &s->cut[i];
			best_off = off;
		}
	}
	return best;
}

static void add_task(struct load *l, size_t *cap, const struct planned_stream *r, uint64_t from, uint64_t to,
                     uint64_t bytes)
{
	*ARRAY_PUSH(l->task, l->tasks, *cap) = (struct task){ .source = l->source[r->source],
		.stream_part = { r->stream, from, to }, .bytes = bytes };
}

/* Makes one task of the part of a stream that may contain events of the window. */
static void narrow_stream(struct load *l, size_t *cap, const struct planned_stream *r)
{
	const struct source *s = l->source[r->source];
	struct source_stream *stream = &s->stream[r->stream];
	struct stream_part p = { r->stream, 0, STREAM_PART_END };
	if (s->reader->narrow)
		s->reader->narrow(s, s->window, &p);
	stream->first_task = l->tasks;
	stream->tasks = 1;
	add_task(l, cap, r, p.from, p.to, r->bytes);
}

/* Cuts one stream, which covers [at, at + r->bytes) of the row, at each share's end. */
static void cut_stream(struct load *l, size_t *cap, const struct planned_stream *r, uint64_t at, uint64_t share)
{
	struct source_stream *s = &l->source[r->source]->stream[r->stream];
	uint64_t from = 0, before = 0;
	s->first_task = l->tasks;
	for (uint64_t end = share ? (at / share + 1) * share : UINT64_MAX; end < at + r->bytes; end += share) {
		const struct stream_cut *c = find_nearest_cut(s, before, end - at);
		if (!c)
			continue;
		add_task(l, cap, r, from, c->at, c->bytes - before);
		from = c->at;
		before = c->bytes;
	}
	add_task(l, cap, r, from, STREAM_PART_END, s->bytes - before);
	s->tasks = l->tasks - s->first_task;
}

/* Returns the number of parts into which the share of a thread is split. Child processes get all their tasks at the
 * start, so they gain nothing from more than one part. */
static uint64_t parts_per_worker(uint64_t share)
{
	const uint64_t parts = share / PART_TARGET;
	return parts == 0 ? 1 : parts < PARTS_MAX ? parts : PARTS_MAX;
}

/* Adds the tasks of all streams that isolated readers decode, or of all others. */
static void plan_streams(struct load *l, size_t *cap, bool isolated)
{
	struct planned_stream *row = NULL;
	size_t n = 0, row_cap = 0;
	uint64_t total = 0, at = 0;
	for (size_t i = 0; i < l->sources; i++) {
		const struct source *s = l->source[i];
		for (size_t k = 0; k < s->streams && s->reader->isolated == isolated && !s->is_skipped; k++) {
			*ARRAY_PUSH(row, n, row_cap) = (struct planned_stream){ i, k, s->stream[k].bytes };
			total += s->stream[k].bytes;
		}
	}
	if (n)
		qsort(row, n, sizeof *row, isolated ? by_source : smaller_first);
	const uint64_t each = l->workers > 1 ? total / l->workers + 1 : 0,
				   share = each / (isolated ? 1 : parts_per_worker(each));
	for (size_t i = 0; i < n; at += row[i++].bytes) {
		if (l->options->window)
			narrow_stream(l, cap, &row[i]);
		else
			cut_stream(l, cap, &row[i], at, share);
	}
	free(row);
}

/* Adds one task for each source that finds its streams while decoding. */
static void plan_unknown_streams(struct load *l, size_t *cap)
{
	for (size_t i = 0; i < l->sources; i++)
		if (l->source[i]->reader->endless || l->source[i]->reader->finds_streams)
			add_task(l, cap, &(struct planned_stream){ .source = i }, 0, STREAM_PART_END, l->source[i]->bytes);
}

ORDER_BY(larger_first, struct planned_stream, FALLING(bytes) RISING(stream))

void partition_streams(struct load *l)
{
	size_t cap = 0;
	plan_unknown_streams(l, &cap);
	plan_streams(l, &cap, true);
	l->isolated = l->tasks;
	plan_streams(l, &cap, false);
	struct planned_stream *sorted = mem_new(l->tasks + 1, sizeof *sorted);
	l->order = mem_new(l->tasks + 1, sizeof *l->order);
	for (size_t i = 0; i < l->tasks; i++)
		sorted[i] = (struct planned_stream){ .stream = i, .bytes = l->task[i].bytes };
	if (l->tasks > l->isolated)
		qsort(sorted + l->isolated, l->tasks - l->isolated, sizeof *sorted, larger_first);
	for (size_t i = 0; i < l->tasks; i++)
		l->order[i] = sorted[i].stream;
	l->ordered = l->tasks;
	free(sorted);
}
