#include "model/merge.h"

#include <stdlib.h>

#include "base/mem.h"

static int64_t host_time(const struct merge_stream *s, int64_t t)
{
	return s->clock && s->clock->pieces ? clock_map_at(s->clock, t) : t;
}

static bool before(const struct merge *m, uint32_t a, uint32_t b)
{
	const struct merge_stream *x = &m->stream[a], *y = &m->stream[b];
	return x->t != y->t ? x->t < y->t : a < b;
}

static void sift_down(struct merge *m, size_t at)
{
	uint32_t moved = m->heap[at];
	for (size_t child; (child = 2 * at + 1) < m->len; at = child) {
		if (child + 1 < m->len && before(m, m->heap[child + 1], m->heap[child]))
			child++;
		if (!before(m, m->heap[child], moved))
			break;
		m->heap[at] = m->heap[child];
	}
	m->heap[at] = moved;
}

/* What the model has no use for is not read, unless events were lost: then any event proves who is current. */
static uint64_t kinds_for(const struct trace *trace)
{
	uint64_t mute = 1ULL << EV_OTHER | 1ULL << EV_SYNC | 1ULL << EV_HYPERCALL;
	return trace_info(trace)->lost || trace_info(trace)->uncounted ? ALL_KINDS : ALL_KINDS & ~mute;
}

static int open_stream(struct merge *m, uint32_t machine, const struct trace *trace, const struct clock_map *clock,
                       struct error *err)
{
	const struct trace_info *info = trace_info(trace);
	struct merge_stream *s = &m->stream[m->streams];
	if (info->begin > info->end)
		return 0;
	*s = (struct merge_stream){ .machine = machine, .trace = trace, .clock = clock };
	s->begin = s->t = host_time(s, info->begin);
	s->end = host_time(s, info->end);
	if (s->end < s->begin)
		s->end = s->begin;
	s->cursor = trace_cursor_open(trace, kinds_for(trace), -1, err);
	if (!s->cursor)
		return -1;
	m->heap[m->len++] = (uint32_t)m->streams++;
	return 0;
}

int merge_open(struct merge *m, const struct trace *const *trace, const struct clock_map *const *clock, size_t n,
               struct error *err)
{
	*m = (struct merge){ .stream = mem_new(n, sizeof *m->stream), .heap = mem_new(n, sizeof *m->heap) };
	for (size_t i = 0; i < n; i++)
		if (trace[i] && open_stream(m, (uint32_t)i, trace[i], clock[i], err) < 0) {
			merge_close(m);
			return -1;
		}
	for (size_t i = m->len / 2; i-- > 0; )
		sift_down(m, i);
	/* merge_next() first advances the stream it gave last; there is none yet. */
	return 0;
}

static int advance(struct merge *m, struct merge_stream *s, struct error *err)
{
	if (s->what == MERGE_END) {
		m->heap[0] = m->heap[--m->len];
		return 0;
	}
	int got = trace_cursor_next(s->cursor, &s->ev, err);
	if (got < 0)
		return -1;
	int64_t t = got ? host_time(s, s->ev.ts) : s->end + 1;
	s->what = got ? MERGE_EVENT : MERGE_END;
	if (got && t > s->end)
		s->end = t;
	if (t > s->t)
		s->t = t;
	return 0;
}

int merge_next(struct merge *m, const struct merge_stream **out, struct error *err)
{
	if (*out) {
		if (advance(m, &m->stream[m->heap[0]], err) < 0)
			return -1;
		if (m->len)
			sift_down(m, 0);
	}
	if (!m->len)
		return 0;
	*out = &m->stream[m->heap[0]];
	return 1;
}

void merge_close(struct merge *m)
{
	for (size_t i = 0; i < m->streams; i++)
		trace_cursor_close(m->stream[i].cursor);
	free(m->stream);
	free(m->heap);
	*m = (struct merge){ NULL, NULL, 0, 0 };
}
