#include "sync/estimate/pairs.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int by_key(const void *pa, const void *pb)
{
	const struct sync_mark *a = pa, *b = pb;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->ts < b->ts ? -1 : a->ts > b->ts;
}

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

/* The marks of one kind, sorted by key; malloc'ed. */
static struct sync_mark *select_marks(const struct mark_list *l, unsigned sparse, enum sync_end end,
                                      const bool *mine, size_t *n)
{
	struct mark_list same = { .sparse = sparse };
	struct sync_mark *out = mem_new(l->len, sizeof *out);
	*n = 0;
	for (size_t i = 0; i < l->len; i++) {
		const struct sync_mark *m = &l->mark[i];
		if (m->end != end || !mark_list_kept(&same, m->key))
			continue;
		if (mine && m->where >= 0 && !mine[m->where])
			continue;
		out[(*n)++] = *m;
	}
	qsort(out, *n, sizeof *out, by_key);
	return out;
}

static bool same_vm(const struct sync_mark *g, const struct sync_mark *h)
{
	return g->uid == EVENT_ABSENT || h->uid == EVENT_ABSENT || g->uid == h->uid;
}

static size_t run_of(const struct sync_mark *m, size_t n)
{
	size_t k = 1;
	while (k < n && m[k].key == m[0].key)
		k++;
	return k;
}

/* One kind of end of the guest with its counterpart on the host. */
static void match_kind(const struct mark_list *guest, enum sync_end guest_end, const struct mark_list *host,
                       enum sync_end host_end, enum hull_side side, const bool *mine, struct pair_list *out)
{
	bool net = guest_end == SYNC_NET_SEND || guest_end == SYNC_NET_RECEIVE;
	unsigned sparse = guest->sparse > host->sparse ? guest->sparse : host->sparse;
	size_t ng, nh, i = 0, k = 0;
	struct sync_mark *g = select_marks(guest, sparse, guest_end, NULL, &ng);
	struct sync_mark *h = select_marks(host, sparse, host_end, net ? NULL : mine, &nh);
	while (i < ng && k < nh) {
		if (g[i].key != h[k].key) {
			size_t *behind = g[i].key < h[k].key ? &i : &k;
			(*behind)++;
			out->unmatched += !net;
			continue;
		}
		size_t a = run_of(g + i, ng - i), b = run_of(h + k, nh - k);
		for (size_t j = 0; a == b && j < a; j++) {
			if (!same_vm(&g[i + j], &h[k + j])) {
				out->unmatched += 2;
				continue;
			}
			*ARRAY_PUSH(out->pair, out->len, out->cap) = (struct pair){ g[i + j].ts, h[k + j].ts, side,
				net ? -1 : g[i + j].where, net ? -1 : h[k + j].where, PAIR_GOOD };
		}
		if (a != b)
			out->unmatched += a + b;
		i += a;
		k += b;
	}
	out->unmatched += net ? 0 : ng - i + nh - k;
	free(g);
	free(h);
}

void pairs_match(const struct mark_list *guest, const struct mark_list *host, const bool *mine,
                 struct pair_list *out)
{
	memset(out, 0, sizeof *out);
	match_kind(guest, SYNC_A, host, SYNC_B, HULL_UPPER, mine, out);
	match_kind(guest, SYNC_D, host, SYNC_C, HULL_LOWER, mine, out);
	match_kind(guest, SYNC_NET_SEND, host, SYNC_NET_RECEIVE, HULL_UPPER, mine, out);
	match_kind(guest, SYNC_NET_RECEIVE, host, SYNC_NET_SEND, HULL_LOWER, mine, out);
	pairs_sort(out->pair, out->len);
}

void pairs_release(struct pair_list *l)
{
	free(l->pair);
	memset(l, 0, sizeof *l);
}
