#include "sync/fit/stream_matching.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sync/fit/piecewise_fit.h"

void pairing_init(struct pairing *s)
{
	memset(s, 0, sizeof *s);
	s->guest.ring = mem_new(PAIRING_WAITING, sizeof *s->guest.ring);
	s->host.ring = mem_new(PAIRING_WAITING, sizeof *s->host.ring);
}

void pairing_release(struct pairing *s)
{
	struct pairing_side *side[2] = { &s->guest, &s->host };
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < PAIRING_KINDS; k++)
			map_release(&side[i]->waiting[k]);
		free(side[i]->ring);
	}
	pairs_release(&s->pairs);
	memset(s, 0, sizeof *s);
}

/* What a guest's or the host's end is half of; false for an end that belongs to the other machine. */
static bool kind_of(bool host, unsigned end, enum pairing_kind *kind, enum hull_side *side)
{
	switch (end) {
	case SYNC_A:
	case SYNC_B:
		*kind = PAIRING_AB;
		*side = HULL_UPPER;
		return host == (end == SYNC_B);
	case SYNC_C:
	case SYNC_D:
		*kind = PAIRING_CD;
		*side = HULL_LOWER;
		return host == (end == SYNC_C);
	default:
		/* A segment that the guest sends is received by the host. */
		*kind = host == (end == SYNC_NET_RECEIVE) ? PAIRING_SEND : PAIRING_RECEIVE;
		*side = *kind == PAIRING_SEND ? HULL_UPPER : HULL_LOWER;
		return end == SYNC_NET_SEND || end == SYNC_NET_RECEIVE;
	}
}

static void thin_tail(struct pairing *s)
{
	if (s->pairs.len == s->thinned)
		return;
	pairs_sort(s->pairs.pair + s->thinned, s->pairs.len - s->thinned);
	pairs_thin(&s->pairs, s->thinned, THIN_PAIRS);
	s->thinned = s->pairs.len;
}

/* Lets the end wait; the one that waited in its place before it has waited too long. */
static void wait_for_partner(struct pairing *s, struct pairing_side *own, bool host, enum pairing_kind kind,
                             const struct sync_mark *m)
{
	struct sync_mark *place = &own->ring[own->count % PAIRING_WAITING];
	enum pairing_kind old_kind;
	enum hull_side side;
	if (own->count >= PAIRING_WAITING && kind_of(host, place->end, &old_kind, &side)) {
		uint64_t *at = map_find(&own->waiting[old_kind], place->key);
		if (at && *at == own->count - PAIRING_WAITING) {
			map_remove(&own->waiting[old_kind], place->key);
			s->unmatched++;
		}
	}
	bool is_new;
	uint64_t *at = map_put(&own->waiting[kind], m->key, &is_new);
	s->unmatched += !is_new;  /* the same key again: the older one is forgotten */
	*at = own->count++;
	*place = *m;
}

void pairing_offer(struct pairing *s, bool from_host, const struct sync_mark *m)
{
	struct pairing_side *own = from_host ? &s->host : &s->guest, *other = from_host ? &s->guest : &s->host;
	enum pairing_kind kind;
	enum hull_side side;
	if (!kind_of(from_host, m->end, &kind, &side))
		return;
	uint64_t *at = map_find(&other->waiting[kind], m->key);
	const struct sync_mark *partner = at ? &other->ring[*at % PAIRING_WAITING] : NULL;
	if (!partner || (partner->uid != m->uid && partner->uid != EVENT_ABSENT && m->uid != EVENT_ABSENT)) {
		wait_for_partner(s, own, from_host, kind, m);
		return;
	}
	const struct sync_mark *g = from_host ? partner : m, *h = from_host ? m : partner;
	*ARRAY_PUSH(s->pairs.pair, s->pairs.len, s->pairs.cap) = (struct pair){ g->ts, h->ts, side, g->where, h->where, 0 };
	map_remove(&other->waiting[kind], m->key);
	s->matched++;
	if (s->pairs.len - s->thinned >= THIN_PAIRS)
		thin_tail(s);
}

void pairing_finish(struct pairing *s)
{
	for (int k = 0; k < PAIRING_KINDS; k++)
		s->unmatched += s->guest.waiting[k].len + s->host.waiting[k].len;
	thin_tail(s);
	pairs_sort(s->pairs.pair, s->pairs.len);
	s->pairs.pair = mem_resize(s->pairs.pair, s->pairs.len, sizeof *s->pairs.pair);
	s->pairs.cap = s->pairs.len;
	s->pairs.unmatched = s->unmatched;
}

/* ---- two traces side by side: the host's log leads, the guest's cursor follows */

struct pair_follow {
	struct pairing *pairing;
	const struct clock_map *clock;
	struct trace_cursor *cursor;
	struct sync_mark next;  /* of the guest */
	bool has_next;
	struct error *err;
	int status;
};

static void read_next(struct pair_follow *f)
{
	struct event ev;
	f->status = !f->cursor || f->status < 0 ? -1 : trace_cursor_next(f->cursor, &ev, f->err);
	f->has_next = f->status == 1;
	if (f->has_next)
		f->next = (struct sync_mark){ (uint64_t)ev.sync.key, ev.ts, ev.sync.uid, ev.cpu, (uint16_t)ev.sync.end, 0 };
}

static void follow_until(struct pair_follow *f, int64_t host_ns)
{
	for (; f->has_next && clock_map_at(f->clock, f->next.ts) <= host_ns; read_next(f))
		pairing_offer(f->pairing, false, &f->next);
}

static int follow_host(struct pair_follow *f, const struct host_view *host, const bool *mine)
{
	struct mark_walk *w = mark_walk_open(&host->log, mine);
	struct sync_mark m;
	int more;
	uint64_t seen = 0;
	while ((more = mark_walk_next(w, &m, f->err)) > 0) {
		follow_until(f, m.ts);
		pairing_offer(f->pairing, true, &m);
		if ((more = walk_stopped(host->stop, ++seen, f->err)) != 0)
			break;
	}
	mark_walk_close(w);
	return more;
}

int pairing_traces(const struct host_view *host, const struct trace *guest, const bool *mine,
                  const struct clock_map *clock, struct pairing *out, struct error *err)
{
	pairing_init(out);
	struct pair_follow f = { .pairing = out, .clock = clock, .err = err };
	f.cursor = trace_cursor_open(guest, KIND(EV_SYNC), -1, err);
	read_next(&f);
	int status = f.status < 0 ? -1 : follow_host(&f, host, mine);
	if (status == 0)
		follow_until(&f, INT64_MAX);
	if (f.status < 0)
		status = -1;
	trace_cursor_close(f.cursor);
	pairing_finish(out);
	return status;
}
