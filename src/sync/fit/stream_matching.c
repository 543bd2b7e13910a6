#include "sync/fit/stream_matching.h"

#include "base/base.h"
#include "sync/fit/piecewise_fit.h"

void stream_matcher_init(struct stream_matcher *s)
{
	memset(s, 0, sizeof *s);
	s->guest.ring = mem_new(MATCHER_WAITING_MAX, sizeof *s->guest.ring);
	s->host.ring = mem_new(MATCHER_WAITING_MAX, sizeof *s->host.ring);
}

void stream_matcher_release(struct stream_matcher *s)
{
	struct matcher_side *side[2] = { &s->guest, &s->host };
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < PAIR_KINDS; k++)
			map_release(&side[i]->waiting[k]);
		free(side[i]->ring);
	}
	pairs_release(&s->pairs);
	memset(s, 0, sizeof *s);
}

/* Gets the kind and side of the pair that an event belongs to. Returns false if such an event belongs to the other
 * machine. */
static bool classify_end(bool host, unsigned end, enum pair_kind *kind, enum hull_side *side)
{
	switch (end) {
	case SYNC_A:
	case SYNC_B:
		*kind = PAIR_KIND_AB;
		*side = HULL_UPPER;
		return host == (end == SYNC_B);
	case SYNC_C:
	case SYNC_D:
		*kind = PAIR_KIND_CD;
		*side = HULL_LOWER;
		return host == (end == SYNC_C);
	default:
		/* a network segment sent by the guest is received by the host */
		*kind = host == (end == SYNC_NET_RECEIVE) ? PAIR_KIND_SEND : PAIR_KIND_RECEIVE;
		*side = *kind == PAIR_KIND_SEND ? HULL_UPPER : HULL_LOWER;
		return end == SYNC_NET_SEND || end == SYNC_NET_RECEIVE;
	}
}

static void thin_tail(struct stream_matcher *s)
{
	if (s->pairs.len == s->thinned)
		return;
	pairs_sort(s->pairs.pair + s->thinned, s->pairs.len - s->thinned);
	pairs_thin(&s->pairs, s->thinned, THIN_PAIRS);
	s->thinned = s->pairs.len;
}

/* Stores an event until its partner arrives. The event that was in its slot before is dropped. */
static void wait_for_partner(struct stream_matcher *s, struct matcher_side *own, bool host, enum pair_kind kind,
                             const struct sync_event *m)
{
	struct sync_event *slot = &own->ring[own->count % MATCHER_WAITING_MAX];
	enum pair_kind slot_kind;
	enum hull_side side;
	if (own->count >= MATCHER_WAITING_MAX && classify_end(host, slot->end, &slot_kind, &side)) {
		uint64_t *at = map_find(&own->waiting[slot_kind], slot->key);
		if (at && *at == own->count - MATCHER_WAITING_MAX) {
			map_remove(&own->waiting[slot_kind], slot->key);
			s->unmatched++;
		}
	}
	bool is_new;
	uint64_t *at = map_put(&own->waiting[kind], m->key, &is_new);
	s->unmatched += !is_new;  /* the older event of the same key is dropped */
	*at = own->count++;
	*slot = *m;
}

void stream_matcher_add(struct stream_matcher *s, bool from_host, const struct sync_event *m)
{
	struct matcher_side *own = from_host ? &s->host : &s->guest, *other = from_host ? &s->guest : &s->host;
	enum pair_kind kind;
	enum hull_side side;
	if (!classify_end(from_host, m->end, &kind, &side))
		return;
	uint64_t *at = map_find(&other->waiting[kind], m->key);
	const struct sync_event *partner = at ? &other->ring[*at % MATCHER_WAITING_MAX] : NULL;
	if (!partner || (partner->uid != m->uid && partner->uid != EVENT_ABSENT && m->uid != EVENT_ABSENT)) {
		wait_for_partner(s, own, from_host, kind, m);
		return;
	}
	const struct sync_event *g = from_host ? partner : m, *h = from_host ? m : partner;
	*ARRAY_PUSH(s->pairs.pair, s->pairs.len, s->pairs.cap) = (struct pair){ g->ts, h->ts, side, g->origin, h->origin, 0 };
	map_remove(&other->waiting[kind], m->key);
	s->matched++;
	if (s->pairs.len - s->thinned >= THIN_PAIRS)
		thin_tail(s);
}

void stream_matcher_finish(struct stream_matcher *s)
{
	for (int k = 0; k < PAIR_KINDS; k++)
		s->unmatched += s->guest.waiting[k].len + s->host.waiting[k].len;
	thin_tail(s);
	pairs_sort(s->pairs.pair, s->pairs.len);
	s->pairs.pair = mem_resize(s->pairs.pair, s->pairs.len, sizeof *s->pairs.pair);
	s->pairs.cap = s->pairs.len;
	s->pairs.unmatched = s->unmatched;
}

/* ---- two traces in parallel: the guest's cursor follows the host's events */

struct guest_follower {
	struct stream_matcher *stream_matcher;
	const struct clock_map *clock;
	struct trace_cursor *cursor;
	struct sync_event next;  /* the guest's next event */
	bool has_next;
	struct error *err;
	int status;
};

static void read_guest_event(struct guest_follower *f)
{
	struct event ev;
	f->status = !f->cursor || f->status < 0 ? -1 : trace_cursor_next(f->cursor, &ev, f->err);
	f->has_next = f->status == 1;
	if (f->has_next)
		f->next = (struct sync_event){ (uint64_t)ev.sync.key, ev.ts, ev.sync.uid, ev.cpu, (uint16_t)ev.sync.end, 0 };
}

static void add_guest_until(struct guest_follower *f, int64_t host_ns)
{
	for (; f->has_next && clock_map_at(f->clock, f->next.ts) <= host_ns; read_guest_event(f))
		stream_matcher_add(f->stream_matcher, false, &f->next);
}

static int add_host_events(struct guest_follower *f, const struct host_timeline *host, const bool *selected)
{
	struct event_reader *w = event_reader_open(&host->event_file, selected);
	struct sync_event m;
	int more;
	uint64_t n_events = 0;
	while ((more = event_reader_next(w, &m, f->err)) > 0) {
		add_guest_until(f, m.ts);
		stream_matcher_add(f->stream_matcher, true, &m);
		if ((more = check_cancelled(host->stop, ++n_events, f->err)) != 0)
			break;
	}
	event_reader_close(w);
	return more;
}

int stream_match_traces(const struct host_timeline *host, const struct trace *guest, const bool *selected,
                        const struct clock_map *clock, struct stream_matcher *out, struct error *err)
{
	stream_matcher_init(out);
	struct guest_follower f = { .stream_matcher = out, .clock = clock, .err = err };
	f.cursor = trace_cursor_open(guest, KIND(EV_SYNC), -1, err);
	read_guest_event(&f);
	int status = f.status < 0 ? -1 : add_host_events(&f, host, selected);
	if (status == 0)
		add_guest_until(&f, INT64_MAX);
	if (f.status < 0)
		status = -1;
	trace_cursor_close(f.cursor);
	stream_matcher_finish(out);
	return status;
}
