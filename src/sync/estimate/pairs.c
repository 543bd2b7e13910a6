#include "sync/estimate/pairs.h"

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

static void merge(const struct pair *a, size_t na, const struct pair *b, size_t nb, struct pair *out)
{
	while (na > 0 && nb > 0)
		*out++ = b->x < a->x ? (nb--, *b++) : (na--, *a++);
	memcpy(out, na > 0 ? a : b, (na + nb) * sizeof *out);
}

void pairs_sort(struct pair *pair, size_t n)
{
	size_t runs, *run = find_runs(pair, n, &runs);
	struct pair *other = runs > 1 ? mem_new(n, sizeof *other) : NULL, *from = pair, *to = other;
	for (; runs > 1; runs = (runs + 1) / 2) {
		for (size_t i = 0; i < runs; i += 2) {
			const size_t end = run[i + 2 < runs ? i + 2 : runs];
			merge(from + run[i], run[i + 1] - run[i], from + run[i + 1], end - run[i + 1], to + run[i]);
			run[i / 2] = run[i];
		}
		run[(runs + 1) / 2] = n;
		struct pair *swap = from;
		from = to;
		to = swap;
	}
	if (from != pair)
		memcpy(pair, from, n * sizeof *pair);
	free(other);
	free(run);
}

/* Some of a list's marks, all of one kind and owner, by key. */
struct mark_view {
	const struct mark_list *list;  /* of its marks [from, to), those that are kept */
	size_t from, to;
	struct mark_list kept;
};

#define OWNERS 3  /* nobody, and those of a VM */

struct mark_run {
	const struct sync_mark **mark;
	size_t len, cap;
};

static struct mark_view view_of(const struct mark_list *l, unsigned sparse, enum sync_end end, uint16_t owner)
{
	struct mark_view v = { l, 0, 0, { .sparse = sparse } };
	const struct sync_mark *m = l->mark;
	BISECT(v.from, l->len, m[v.from].end < end || (m[v.from].end == end && m[v.from].owner < owner));
	BISECT(v.to, l->len, m[v.to].end < end || (m[v.to].end == end && m[v.to].owner <= owner));
	return v;
}

static bool is_seen(const struct mark_view *v, const struct sync_mark *m)
{
	return v->kept.sparse == v->list->sparse || mark_list_kept(&v->kept, m->key);
}

static size_t count(const struct mark_view *v)
{
	size_t n = 0;
	if (v->kept.sparse == v->list->sparse)
		return v->to - v->from;
	for (size_t i = v->from; i < v->to; i++)
		n += is_seen(v, &v->list->mark[i]);
	return n;
}

/* In order of time; what comes from one owner is. */
static void put_mark(struct mark_run *run, const struct sync_mark *m)
{
	size_t at = run->len;
	(void)ARRAY_PUSH(run->mark, run->len, run->cap);
	for (; at > 0 && run->mark[at - 1]->ts > m->ts; at--)
		run->mark[at] = run->mark[at - 1];
	run->mark[at] = m;
}

/* The marks of that key: from v->from on they go into run[], what lies before is passed over.  Mostly the next one is not
 * far: the way to it is felt for in ever longer steps. */
static void take_run(struct mark_view *v, uint64_t key, struct mark_run *run)
{
	const struct sync_mark *mark = v->list->mark;
	size_t step = 1, at;
	while (step < v->to - v->from && mark[v->from + step].key < key)
		step *= 2;
	BISECT(at, step < v->to - v->from ? step : v->to - v->from, mark[v->from + at].key < key);
	v->from += at;
	for (; v->from < v->to && mark[v->from].key == key; v->from++)
		if (is_seen(v, &mark[v->from]))
			put_mark(run, &mark[v->from]);
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
		const struct sync_mark *a = g->mark[j], *b = h->mark[j];
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
	struct mark_view g = view_of(guest, sparse, guest_end, 0), h[OWNERS] = { view_of(host, sparse, host_end, 0) };
	struct mark_run gs = { 0 }, hs = { 0 };
	size_t owners = 1, ends = count(&g) + count(&h[0]);
	const size_t before = out->len;
	for (int i = 0; vm && !net && i < 2; i++)
		if (vm->of[i] > 0) {
			h[owners] = view_of(host, sparse, host_end, vm->of[i]);
			ends += count(&h[owners++]);
		}
	while (g.from < g.to) {
		const uint64_t key = guest->mark[g.from].key;
		gs.len = hs.len = 0;
		take_run(&g, key, &gs);
		for (size_t i = 0; i < owners; i++)
			take_run(&h[i], key, &hs);
		const size_t left = put_pairs(&gs, &hs, side, net, out);
		out->unmatched += net && gs.len > 0 && hs.len > 0 ? left : 0;  /* a segment may be anybody's */
	}
	out->unmatched += net ? 0 : ends - 2 * (out->len - before);
	free(gs.mark);
	free(hs.mark);
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

void pairs_release(struct pair_list *l)
{
	free(l->pair);
	memset(l, 0, sizeof *l);
}
