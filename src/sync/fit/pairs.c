#include "sync/fit/pairs.h"

#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/mem.h"

/* The stretches that are in order already: where each begins, and the end of the last one; malloc'ed. */
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

/* Two stretches that follow each other; the shorter one goes through `other`. */
static void merge(struct pair *a, struct pair *b, struct pair *end, struct pair *other)
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
				merge(pair + run[i], pair + run[i + 1], pair + run[i + 2], other);
			run[i / 2] = run[i];
		}
		run[(runs + 1) / 2] = n;
	}
	free(other);
	free(run);
}

/* A list's marks of one kind and owner, by key: those that are seen, from *at on. */
struct mark_view {
	const struct sync_mark *at, *end;
	const struct mark_list *list;
	unsigned sparse;  /* of the list whose marks are sparser: of both lists only keys are seen that this one has kept */
};

#define OWNERS 3  /* nobody, and those of a VM */

/* Marks of one key, in order of time. */
struct mark_run { const struct sync_mark *mark; size_t len; };

struct mark_room { struct sync_mark *mark; size_t cap; };

static struct mark_view view_of(const struct mark_list *l, unsigned sparse, enum sync_end end, uint16_t owner)
{
	const struct sync_mark *m = l->mark;
	size_t from, to;
	if (l->len == 0)
		return (struct mark_view){ NULL, NULL, l, sparse };
	BISECT(from, l->len, m[from].end < end || (m[from].end == end && m[from].owner < owner));
	BISECT(to, l->len, m[to].end < end || (m[to].end == end && m[to].owner <= owner));
	return (struct mark_view){ m + from, m + to, l, sparse };
}

static bool is_seen(const struct mark_view *v, uint64_t key)
{
	return v->sparse == v->list->sparse || mark_list_kept(&(struct mark_list){ .sparse = v->sparse }, key);
}

/* The first mark of that key or a later one, which is not the first one: the way to it is felt for in ever longer steps. */
static __attribute__((noinline)) const struct sync_mark *seek(const struct sync_mark *mark, size_t n, uint64_t key)
{
	size_t step = 1, at;
	while (step < n && mark[step].key < key)
		step *= 2;
	BISECT(at, step < n ? step : n, mark[at].key < key);
	return mark + at;
}

/* The marks of that key; the view goes on behind them.  Mostly they are the next ones, or not far. */
static inline struct mark_run take_run(struct mark_view *v, uint64_t key)
{
	const struct sync_mark *from = v->at;
	if (from < v->end && from->key < key)
		from = seek(from, (size_t)(v->end - from), key);
	for (v->at = from; v->at < v->end && v->at->key == key; v->at++)
		;
	return (struct mark_run){ from, (size_t)(v->at - from) };
}

/* Both, of which each is in order of time: a, which may be in the room, and b. */
static struct mark_run join_runs(struct mark_run a, struct mark_run b, struct mark_room *room)
{
	const bool is_there = a.mark == room->mark;
	while (room->cap < a.len + b.len)
		room->mark = mem_room(room->mark, &room->cap, room->cap, sizeof *room->mark);
	const struct sync_mark *first = is_there ? room->mark : a.mark;
	const struct mark_run both = { room->mark, a.len + b.len };
	for (size_t at = both.len; at-- > 0;)
		room->mark[at] = b.len == 0 || (a.len > 0 && first[a.len - 1].ts > b.mark[b.len - 1].ts)
			? first[--a.len] : b.mark[--b.len];
	return both;
}

static bool same_vm(const struct sync_mark *g, const struct sync_mark *h)
{
	return g->uid == EVENT_ABSENT || h->uid == EVENT_ABSENT || g->uid == h->uid;
}

/* Returns how many of the ends are left. */
static size_t put_pairs(const struct mark_run *g, const struct mark_run *h, enum hull_side side, bool net,
                        struct pair_list *out)
{
	const size_t before = out->len;
	for (size_t j = 0; g->len == h->len && j < g->len; j++) {
		const struct sync_mark *a = &g->mark[j], *b = &h->mark[j];
		if (same_vm(a, b))
			*ARRAY_PUSH(out->pair, out->len, out->cap) =
				(struct pair){ a->ts, b->ts, side, net ? -1 : a->where, net ? -1 : b->where, PAIR_GOOD };
	}
	return g->len + h->len - 2 * (out->len - before);
}

/* One kind of end of the guest with its counterpart on the host. */
static void match_kind(const struct mark_list *guest, enum sync_end guest_end, const struct mark_list *host,
                       enum sync_end host_end, enum hull_side side, const struct mark_owners *vm, struct pair_list *out)
{
	const bool net = guest_end == SYNC_NET_SEND || guest_end == SYNC_NET_RECEIVE;
	const unsigned sparse = guest->sparse > host->sparse ? guest->sparse : host->sparse;
	const uint16_t owner[OWNERS] = { 0, vm && !net ? vm->of[0] : 0, vm && !net ? vm->of[1] : 0 };
	struct mark_view g = view_of(guest, sparse, guest_end, 0), h[OWNERS];
	struct mark_room room = { NULL, 0 };
	size_t owners = 0;
	for (size_t i = 0; i < OWNERS && g.at < g.end; i++) {
		if (i > 0 && owner[i] == 0)
			continue;
		h[owners] = view_of(host, sparse, host_end, owner[i]);
		owners += h[owners].at < h[owners].end;
	}
	while (owners > 0 && g.at < g.end) {
		const uint64_t key = g.at->key;
		const struct mark_run gs = take_run(&g, key);
		struct mark_run hs = { NULL, 0 };
		if (!is_seen(&g, key))
			continue;
		for (size_t i = 0; i < owners; i++) {
			const struct mark_run more = take_run(&h[i], key);
			hs = more.len == 0 ? hs : hs.len == 0 ? more : join_runs(hs, more, &room);
		}
		const size_t left = put_pairs(&gs, &hs, side, net, out);
		out->unmatched += net && gs.len > 0 && hs.len > 0 ? left : 0;  /* a segment may be anybody's */
	}
	free(room.mark);
}

void pairs_match(const struct mark_list *guest, const struct mark_list *host, const struct mark_owners *vm,
                 struct pair_list *out)
{
	*out = (struct pair_list){ .pair = out->pair, .cap = out->cap };
	match_kind(guest, SYNC_A, host, SYNC_B, HULL_UPPER, vm, out);
	match_kind(guest, SYNC_D, host, SYNC_C, HULL_LOWER, vm, out);
	match_kind(guest, SYNC_NET_SEND, host, SYNC_NET_RECEIVE, HULL_UPPER, vm, out);
	match_kind(guest, SYNC_NET_RECEIVE, host, SYNC_NET_SEND, HULL_LOWER, vm, out);
	pairs_sort(out->pair, out->len);
}

static size_t count(const struct mark_list *l, unsigned sparse, enum sync_end end, uint16_t owner)
{
	const struct mark_view v = view_of(l, sparse, end, owner);
	size_t n = 0;
	if (sparse == l->sparse)
		return (size_t)(v.end - v.at);
	for (const struct sync_mark *m = v.at; m < v.end; m++)
		n += is_seen(&v, m->key);
	return n;
}

void pairs_count_left(const struct mark_list *guest, const struct mark_list *host, const struct mark_owners *vm,
                      struct pair_list *out)
{
	const unsigned sparse = guest->sparse > host->sparse ? guest->sparse : host->sparse;
	const uint16_t owner[OWNERS] = { 0, vm ? vm->of[0] : 0, vm ? vm->of[1] : 0 };
	out->unmatched += count(guest, sparse, SYNC_A, 0) + count(guest, sparse, SYNC_D, 0);
	for (size_t i = 0; i < OWNERS; i++)
		if (i == 0 || owner[i] != 0)
			out->unmatched += count(host, sparse, SYNC_B, owner[i]) + count(host, sparse, SYNC_C, owner[i]);
	for (size_t i = 0; i < out->len; i++)
		out->unmatched -= out->pair[i].cpu >= 0 ? 2 : 0;
}

void pairs_release(struct pair_list *l)
{
	free(l->pair);
	memset(l, 0, sizeof *l);
}
