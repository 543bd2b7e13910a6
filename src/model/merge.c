#include "model/merge.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/streaming_store.h"
#include "base/tournament.h"
#include "model/loss/coverage.h"

enum { BATCH = 1024 };  /* steps: 90 KiB, some 30 us of work */

struct merge_batch {
	size_t len;
	struct merge_step step[BATCH];
};

struct merge_stream {
	const struct clock_map *clock;  /* NULL: the host's own clock */
	struct cover cover;
	int64_t end;                    /* host ns of the last event */
	struct merge_moment next;
	const struct event *ev;         /* borrowed from the cover */
};

struct streams {
	struct merge_stream *stream;
	size_t n;
	struct tournament order;        /* of those that are not over */
	bool away;                      /* another thread takes the steps */
};

static int64_t host_time(const struct merge_stream *s, int64_t t)
{
	return s->clock ? clock_map_at(s->clock, t) : t;
}

/* What the model has no use for is not read, unless events were lost: then any event proves who is current. */
static event_kinds kinds_for(const struct trace *trace, const struct clock_map *clock)
{
	event_kinds mute = KIND(EV_OTHER) | KIND(EV_SYNC) | KIND(EV_HYPERCALL);
	return cover_loses(trace, clock) ? ALL_KINDS : ALL_KINDS & ~mute;
}

static int open_stream(struct streams *m, uint32_t machine, const struct trace *trace, const struct clock_map *clock,
                       struct error *err)
{
	const struct trace_info *info = trace_info(trace);
	struct merge_stream *s = &m->stream[m->n];
	if (info->begin > info->end)
		return 0;
	*s = (struct merge_stream){ .clock = clock, .next = { .machine = machine, .what = MERGE_BEGIN } };
	s->next.t = host_time(s, info->begin);
	s->end = host_time(s, info->end);
	if (s->end < s->next.t)
		s->end = s->next.t;
	m->n++;
	return cover_open(&s->cover, trace, clock, kinds_for(trace, clock), err);
}

static int64_t last_moment(const struct streams *m)
{
	int64_t end = INT64_MIN;
	for (size_t i = 0; i < m->n; i++)
		if (m->stream[i].end > end)
			end = m->stream[i].end;
	return end;
}

/* After a step of this stream: its next one.  0 = it is over. */
static int advance(struct merge_stream *s, struct error *err)
{
	if (s->next.what == MERGE_END)
		return 0;
	int got = cover_next(&s->cover, &s->ev, err);
	if (got < 0)
		return -1;
	int64_t t = got ? host_time(s, s->ev->ts) : s->end + 1;
	const enum merge_what what = got ? MERGE_EVENT : MERGE_END;
	if (s->next.what != what)  /* what is read with its neighbour is not to be written for each event */
		s->next.what = (uint16_t)what;
	if (got && t > s->end)
		s->end = t;
	if (t > s->next.t)
		s->next.t = t;
	return 1;
}

static PASS_ON_INLINE int fill_batch(struct streams *m, struct merge_batch *batch, bool away, struct error *err)
{
	struct merge_step *step = batch->step;
	for (; m->order.len && step < batch->step + BATCH; step++) {
		struct merge_stream *s = &m->stream[m->order.first.who];
		if (s->next.what == MERGE_END)
			s->next.others = s->next.t <= last_moment(m);
		pass_on(&step->at, &s->next, sizeof step->at, away);
		if (s->next.what == MERGE_EVENT)
			pass_on(&step->ev, s->ev, sizeof step->ev, away);
		int more = advance(s, err);
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

static int fill(void *arg, void *to, struct error *err)
{
	struct streams *m = arg;
	if (!m->away)
		return fill_batch(m, to, false, err);
	const int more = fill_batch(m, to, true, err);
	pass_on_all();
	return more;
}

static int open_streams(struct streams *m, const struct trace *const *trace, const struct clock_map *const *clock,
                        size_t n, struct error *err)
{
	*m = (struct streams){ .stream = mem_new(n, sizeof *m->stream) };
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
               struct chores *chores, struct error *err)
{
	*m = (struct merge){ .streams = mem_new(1, sizeof *m->streams) };
	if (open_streams(m->streams, trace, clock, n, err) < 0) {
		merge_close(m);
		return -1;
	}
	m->streams->away = chores_have_threads(chores);
	m->ahead = ahead_begin(chores, sizeof(struct merge_batch), fill, m->streams);
	return 0;
}

int merge_more(struct merge *m, struct error *err)
{
	while (m->at == m->end) {
		const void *made;
		const int got = ahead_next(m->ahead, &made, err);
		if (got <= 0)
			return got;
		const struct merge_batch *batch = made;
		m->at = batch->step;
		m->end = batch->step + batch->len;
	}
	return 1;
}

int64_t merge_last(const struct merge *m)
{
	return last_moment(m->streams);
}

void merge_close(struct merge *m)
{
	ahead_end(m->ahead);
	for (size_t i = 0; i < m->streams->n; i++)
		cover_close(&m->streams->stream[i].cover);
	free(m->streams->stream);
	tournament_close(&m->streams->order);
	free(m->streams);
	*m = (struct merge){ .streams = NULL };
}
