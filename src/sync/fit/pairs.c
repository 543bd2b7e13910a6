#include "sync/fit/pairs.h"

#include "base/base.h"
#include "base/bisect.h"

/* Returns the start indices of the runs that are in order already, followed by n; the caller frees the array. */
static size_t *find_runs(const struct pair *pair, size_t n, size_t *runs)
{
	size_t *from = NULL, cap = 0, len = 0;
	for (size_t i = 0; i < n; i++)
		if (i == 0 || pair[i].x < pair[i - 1].x)
			*ARRAY_PUSH(from, len, cap) = i;
	*runs = len;
	*ARRAY_PUSH(from, len, cap) = n;
	return from;
}

/* Merges two adjacent sorted runs; the shorter run is copied to the buffer `other` first. */
static void merge_sorted(struct pair *a, struct pair *b, struct pair *end, struct pair *other)
{
	const size_t na = (size_t)(b - a), nb = (size_t)(end - b), n = na <= nb ? na : nb;
	memcpy(other, na <= nb ? a : b, n * sizeof *other);
	if (na <= nb)
		for (const struct pair *p = other; p < other + n;)
			*a++ = b < end && b->x < p->x ? *b++ : *p++;
	else
		for (const struct pair *p = other + n; p > other;)
			*--end = b > a && b[-1].x > p[-1].x ? *--b : *--p;
}

void pairs_sort(struct pair *pair, size_t n)
{
	size_t runs, *run = find_runs(pair, n, &runs);
	struct pair *other = runs > 1 ? mem_resize(NULL, n / 2, sizeof *other) : NULL;
	for (; runs > 1; runs = (runs + 1) / 2) {
		for (size_t i = 0; i < runs; i += 2) {
			if (i + 1 < runs)
				merge_sorted(pair + run[i], pair + run[i + 1], pair + run[i + 2], other);
			run[i / 2] = run[i];
		}
		run[(runs + 1) / 2] = n;
	}
	free(other);
	free(run);
}

/* Cursor over the events of one kind and owner in a sorted set, in order of keys. */
struct key_cursor {
	const struct sync_event *at, *end;
	const struct sync_event_set *list;
	unsigned key_bits;  /* the greater key_bits of both sets: other keys are skipped */
};

#define OWNERS 3  /* owner 0, and up to two owners of a VM */

/* Events of one key, in order of time. */
struct event_run { const struct sync_event *event; size_t len; };

struct event_buffer { struct sync_event *event; size_t cap; };

static struct key_cursor key_cursor_open(const struct sync_event_set *l, unsigned key_bits, enum sync_end end,
                                         uint16_t owner)
{
	const struct sync_event *m = l->event;
	size_t from, to;
	if (l->len == 0)
		return (struct key_cursor){ NULL, NULL, l, key_bits };
	BISECT(from, l->len, m[from].end < end || (m[from].end == end && m[from].owner < owner));
	BISECT(to, l->len, m[to].end < end || (m[to].end == end && m[to].owner <= owner));
	return (struct key_cursor){ m + from, m + to, l, key_bits };
}

static bool is_key_sampled(const struct key_cursor *v, uint64_t key)
{
	return v->key_bits == v->list->key_bits ||
		sync_event_set_keeps(&(struct sync_event_set){ .key_bits = v->key_bits }, key);
}

/* Returns the first event with this key or a greater one, by exponential search. event[0] must have a smaller key. */
static __attribute__((noinline)) const struct sync_event *find_key(const struct sync_event *event, size_t n, uint64_t key)
{
	size_t step = 1, at;
	while (step < n && event[step].key < key)
		step *= 2;
	BISECT(at, step < n ? step : n, event[at].key < key);
	return event + at;
}

/* Returns the events of the key and moves the cursor after them. They are usually next, or close. */
static inline struct event_run next_run(struct key_cursor *v, uint64_t key)
{
	const struct sync_event *from = v->at;
	if (from < v->end && from->key < key)
		from = find_key(from, (size_t)(v->end - from), key);
	for (v->at = from; v->at < v->end && v->at->key == key; v->at++)
		;
	return (struct event_run){ from, (size_t)(v->at - from) };
}

/* Merges two runs sorted by time into the buffer; run `a` may be in the buffer already. */
static struct event_run merge_event_runs(struct event_run a, struct event_run b, struct event_buffer *buffer)
{
	const bool is_there = a.event == buffer->event;
	while (buffer->cap < a.len + b.len)
		buffer->event = array_grow(buffer->event, &buffer->cap, buffer->cap, sizeof *buffer->event);
	const struct sync_event *first = is_there ? buffer->event : a.event;
	const struct event_run both = { buffer->event, a.len + b.len };
	for (size_t at = both.len; at-- > 0;)
		buffer->event[at] = b.len == 0 || (a.len > 0 && first[a.len - 1].ts > b.event[b.len - 1].ts)
			? first[--a.len] : b.event[--b.len];
	return both;
}

static bool same_vm(const struct sync_event *g, const struct sync_event *h)
{
	return g->uid == EVENT_ABSENT || h->uid == EVENT_ABSENT || g->uid == h->uid;
}

/* Appends the pairs of one key if it occurs equally often on both sides. Returns the number of events without a partner. */
static size_t append_pairs(const struct event_run *g, const struct event_run *h, enum hull_side side, bool net,
                           struct pair_list *out)
{
	const size_t before = out->len;
	for (size_t j = 0; g->len == h->len && j < g->len; j++) {
		const struct sync_event *a = &g->event[j], *b = &h->event[j];
		if (same_vm(a, b))
			*ARRAY_PUSH(out->pair, out->len, out->cap) =
				(struct pair){ a->ts, b->ts, side, net ? -1 : a->origin, net ? -1 : b->origin, PAIR_GOOD };
	}
	return g->len + h->len - 2 * (out->len - before);
}

/* Matches one kind of guest event with its counterpart on the host. */
static void match_kind(const struct sync_event_set *guest, enum sync_end guest_end, const struct sync_event_set *host,
                       enum sync_end host_end, enum hull_side side, const struct sync_event_owners *vm,
                       struct pair_list *out)
{
	const bool net = guest_end == SYNC_NET_SEND || guest_end == SYNC_NET_RECEIVE;
	const unsigned key_bits = guest->key_bits > host->key_bits ? guest->key_bits : host->key_bits;
	const uint16_t owner[OWNERS] = { 0, vm && !net ? vm->owner[0] : 0, vm && !net ? vm->owner[1] : 0 };
	struct key_cursor g = key_cursor_open(guest, key_bits, guest_end, 0), h[OWNERS];
	struct event_buffer buffer = { NULL, 0 };
	size_t owners = 0;
	for (size_t i = 0; i < OWNERS && g.at < g.end; i++) {
		if (i > 0 && owner[i] == 0)
			continue;
		h[owners] = key_cursor_open(host, key_bits, host_end, owner[i]);
		owners += h[owners].at < h[owners].end;
	}
	while (owners > 0 && g.at < g.end) {
		const uint64_t key = g.at->key;
		const struct event_run gs = next_run(&g, key);
		struct event_run hs = { NULL, 0 };
		if (!is_key_sampled(&g, key))
			continue;
		for (size_t i = 0; i < owners; i++) {
			const struct event_run more = next_run(&h[i], key);
			hs = more.len == 0 ? hs : hs.len == 0 ? more : merge_event_runs(hs, more, &buffer);
		}
		const size_t left = append_pairs(&gs, &hs, side, net, out);
		out->unmatched += net && gs.len > 0 && hs.len > 0 ? left : 0;  /* a network segment without a counterpart may
		                                                                * belong to any machine */
	}
	free(buffer.event);
}

void pairs_match(const struct sync_event_set *guest, const struct sync_event_set *host, const struct sync_event_owners *vm,
                 struct pair_list *out)
{
	*out = (struct pair_list){ .pair = out->pair, .cap = out->cap };
	match_kind(guest, SYNC_A, host, SYNC_B, HULL_UPPER, vm, out);
	match_kind(guest, SYNC_D, host, SYNC_C, HULL_LOWER, vm, out);
	match_kind(guest, SYNC_NET_SEND, host, SYNC_NET_RECEIVE, HULL_UPPER, vm, out);
	match_kind(guest, SYNC_NET_RECEIVE, host, SYNC_NET_SEND, HULL_LOWER, vm, out);
	pairs_sort(out->pair, out->len);
}

static size_t count_events(const struct sync_event_set *l, unsigned key_bits, enum sync_end end, uint16_t owner)
{
	const struct key_cursor v = key_cursor_open(l, key_bits, end, owner);
	size_t n = 0;
	if (key_bits == l->key_bits)
		return (size_t)(v.end - v.at);
	for (const struct sync_event *m = v.at; m < v.end; m++)
		n += is_key_sampled(&v, m->key);
	return n;
}

void pairs_count_unmatched(const struct sync_event_set *guest, const struct sync_event_set *host,
                           const struct sync_event_owners *vm, struct pair_list *out)
{
	const unsigned key_bits = guest->key_bits > host->key_bits ? guest->key_bits : host->key_bits;
	const uint16_t owner[OWNERS] = { 0, vm ? vm->owner[0] : 0, vm ? vm->owner[1] : 0 };
	out->unmatched += count_events(guest, key_bits, SYNC_A, 0) + count_events(guest, key_bits, SYNC_D, 0);
	for (size_t i = 0; i < OWNERS; i++)
		if (i == 0 || owner[i] != 0)
			out->unmatched += count_events(host, key_bits, SYNC_B, owner[i]) +
				count_events(host, key_bits, SYNC_C, owner[i]);
	for (size_t i = 0; i < out->len; i++)
		out->unmatched -= out->pair[i].cpu >= 0 ? 2 : 0;
}

void pairs_release(struct pair_list *l)
{
	free(l->pair);
	memset(l, 0, sizeof *l);
}
