#include "model/merge.h"

#include "base/base.h"
#include "base/streaming_store.h"
#include "base/tournament.h"
#include "model/loss/coverage.h"

enum { BATCH = 1024 };  /* steps in a batch of 90 KiB; producing it takes about 30 us */

struct merge_batch {
	size_t len;
	struct merge_step step[BATCH];
};

struct merge_stream {
	const struct clock_map *clock; /* the machine's clock; NULL: the host's own clock */
	struct coverage cover;
	int64_t end;                   /* host time of the last event, ns */
	struct merge_point next;
	const struct event *ev;        /* borrowed from `cover` */
};

struct merge_streams {
	struct merge_stream *stream;
	size_t n;
	struct tournament order; /* streams with steps left */
	bool threaded;           /* the steps are consumed by another thread */
};

static int64_t host_time(const struct merge_stream *s, int64_t t)
{
	return s->clock ? clock_map_at(s->clock, t) : t;
}

/* Returns the kinds of events to read: all if events were lost, because any event then shows the current thread;
 * otherwise only those that the model uses. */
static event_kinds needed_kinds(const struct trace *trace, const struct clock_map *clock)
{
	event_kinds mute = KIND(EV_OTHER) | KIND(EV_SYNC) | KIND(EV_HYPERCALL);
	return coverage_has_losses(trace, clock) ? ALL_KINDS : ALL_KINDS & ~mute;
}

static int open_stream(struct merge_streams *m, uint32_t machine, const struct trace *trace, const struct clock_map *clock,
                       struct error *err)
{
	const struct trace_info *info = trace_info(trace);
	struct merge_stream *s = &m->stream[m->n];
	if (info->begin > info->end)
		return 0;
	*s = (struct merge_stream){ .clock = clock, .next = { .machine = machine, .kind = MERGE_BEGIN } };
	s->next.t = host_time(s, info->begin);
	s->end = host_time(s, info->end);
	if (s->end < s->next.t)
		s->end = s->next.t;
	m->n++;
	return coverage_open(&s->cover, trace, clock, needed_kinds(trace, clock), err);
}

static int64_t last_time(const struct merge_streams *m)
{
	int64_t end = INT64_MIN;
	for (size_t i = 0; i < m->n; i++)
		if (m->stream[i].end > end)
			end = m->stream[i].end;
	return end;
}

/* Advances the stream to its next step. Returns 1, 0 if the stream has ended, or -1 with *err set. */
static int advance_stream(struct merge_stream *s, struct error *err)
{
	if (s->next.kind == MERGE_END)
		return 0;
	int got = coverage_next(&s->cover, &s->ev, err);
	if (got < 0)
		return -1;
	int64_t t = got ? host_time(s, s->ev->ts) : s->end + 1;
	const enum merge_kind kind = got ? MERGE_EVENT : MERGE_END;
	if (s->next.kind != kind)  /* written only when it changes: consumers read the same cache line */
		s->next.kind = (uint16_t)kind;
	if (got && t > s->end)
		s->end = t;
	if (t > s->next.t)
		s->next.t = t;
	return 1;
}

static STREAMING_INLINE int fill_batch(struct merge_streams *m, struct merge_batch *batch, bool threaded, struct error *err)
{
	struct merge_step *step = batch->step;
	for (; m->order.len && step < batch->step + BATCH; step++) {
		struct merge_stream *s = &m->stream[m->order.first.stream];
		if (s->next.kind == MERGE_END)
			s->next.others_remain = s->next.t <= last_time(m);
		store_streaming(&step->at, &s->next, sizeof step->at, threaded);
		if (s->next.kind == MERGE_EVENT)
			store_streaming(&step->ev, s->ev, sizeof step->ev, threaded);
		int more = advance_stream(s, err);
		if (more < 0)
			return -1;
		if (more)
			tournament_next(&m->order, s->next.t);
		else
			tournament_leave(&m->order);
	}
	batch->len = (size_t)(step - batch->step);
	return m->order.len > 0;
}

static int produce_batch(void *arg, void *to, struct error *err)
{
	struct merge_streams *m = arg;
	if (!m->threaded)
		return fill_batch(m, to, false, err);
	const int more = fill_batch(m, to, true, err);
	streaming_fence();
	return more;
}

static int open_streams(struct merge_streams *m, const struct trace *const *trace, const struct clock_map *const *clock,
                        size_t n, struct error *err)
{
	*m = (struct merge_streams){ .stream = mem_new(n, sizeof *m->stream) };
	for (size_t i = 0; i < n; i++)
		if (trace[i] && open_stream(m, (uint32_t)i, trace[i], clock[i], err) < 0)
			return -1;
	struct contender *next = mem_new(n, sizeof *next);
	for (size_t i = 0; i < m->n; i++)
		next[i] = (struct contender){ m->stream[i].next.t, i };
	tournament_open(&m->order, next, m->n);
	free(next);
	return 0;
}

int merge_open(struct merge *m, const struct trace *const *trace, const struct clock_map *const *clock, size_t n,
               struct ordered_jobs *ordered_jobs, struct error *err)
{
	*m = (struct merge){ .streams = mem_new(1, sizeof *m->streams) };
	if (open_streams(m->streams, trace, clock, n, err) < 0) {
		merge_close(m);
		return -1;
	}
	m->streams->threaded = ordered_jobs_have_threads(ordered_jobs);
	m->ahead = prefetch_begin(ordered_jobs, sizeof(struct merge_batch), produce_batch, m->streams);
	return 0;
}

int merge_more(struct merge *m, struct error *err)
{
	while (m->at == m->end) {
		const void *batch_made;
		const int got = prefetch_next(m->ahead, &batch_made, err);
		if (got <= 0)
			return got;
		const struct merge_batch *batch = batch_made;
		m->at = batch->step;
		m->end = batch->step + batch->len;
	}
	return 1;
}

int64_t merge_last(const struct merge *m)
{
	return last_time(m->streams);
}

void merge_close(struct merge *m)
{
	prefetch_end(m->ahead);
	for (size_t i = 0; i < m->streams->n; i++)
		coverage_close(&m->streams->stream[i].cover);
	free(m->streams->stream);
	tournament_close(&m->streams->order);
	free(m->streams);
	*m = (struct merge){ .streams = NULL };
}
