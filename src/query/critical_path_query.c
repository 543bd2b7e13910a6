/* A critical path as an answer: asked in steps, added up by whose time it was and who took it. */
#include "query/critical_path.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"

static int longest_first(const void *a, const void *b)
{
	const struct path_sum *x = a, *y = b;
	if (x->duration != y->duration)
		return x->duration < y->duration ? 1 : -1;
	return (x->who.tid > y->who.tid) - (x->who.tid < y->who.tid);
}

/* The sum that a piece belongs to, among all of them. */
static __attribute__((noinline)) size_t find_sum(struct path_ledger *l, struct path *p, const struct path_piece *piece)
{
	bool is_new;
	uint64_t key = (uint64_t)parties_put(&l->parties, &piece->who) << 32;
	uint64_t *at = map_put(&l->row, key | parties_put(&l->parties, &piece->thief), &is_new);
	if (is_new) {
		*at = p->sums;
		*ARRAY_PUSH(p->sum, p->sums, l->cap) = (struct path_sum){ .who = piece->who, .thief = piece->thief };
	}
	return *at;
}

size_t path_sum_of(struct path_ledger *l, struct path *p, const struct path_piece *piece)
{
	const uint32_t hash = (uint32_t)piece->who.tid + 5U * (uint32_t)piece->thief.tid + 3U * piece->who.kind;
	size_t *recent = &l->recent[hash % SUMS_RECENT];
	const struct path_sum *sum = *recent ? &p->sum[*recent - 1] : NULL;
	if (!sum || !party_same(&sum->who, &piece->who) || !party_same(&sum->thief, &piece->thief))
		*recent = find_sum(l, p, piece) + 1;
	return *recent - 1;
}

void path_release(struct path *p)
{
	for (size_t i = 0; i < p->names; i++)
		free(p->name[i]);
	free(p->name);
	free(p->piece);
	free(p->sum);
	*p = (struct path){ 0 };
}

/* ---- In steps */

static int walk(struct inquiry *q, size_t i, struct budget *budget, struct error *err)
{
	struct walker *w = (struct walker *)q;
	int64_t end;
	w->err = w->r.err = err;
	for (; w->t <= q->to; w->t = end + 1) {
		if (path_piece(w, &w->whose, w->t, q->to, (struct via){ EDGE_START, PATH_PROVEN }, &end) < 0)
			return -1;
		if (end == q->to)
			return 1;
		if (budget_spent(budget)) {
			w->t = end + 1;
			q->part[i].done = (double)(end - q->from) / (double)(q->to - q->from + 1);
			return 0;
		}
	}
	return 1;
}

static int join(struct inquiry *q, struct error *err)
{
	struct walker *w = (struct walker *)q;
	(void)err;
	struct path *p = &w->out;
	for (size_t i = 0; i < p->sums; i++)
		p->sum[i].share = (double)p->sum[i].duration / ((double)(p->end - p->start) + 1);
	if (p->sums)
		qsort(p->sum, p->sums, sizeof *p->sum, longest_first);
	resolver_give_names(&w->r, &w->out.name, &w->out.names);
	return 1;
}

static void close_walker(struct inquiry *q)
{
	struct walker *w = (struct walker *)q;
	path_release(&w->out);
	resolver_release(&w->r);
	map_release(&w->raisers.known);
	map_release(&w->ledger.row);
	parties_release(&w->ledger.parties);
}

static const struct inquiry_kind path_inquiry = { walk, join, close_walker };

struct inquiry *path_open(const struct topo *topo, const struct subject *s, int64_t from, int64_t to, struct error *err)
{
	if (flow_cut(topo, s, &from, &to, err) < 0)
		return NULL;
	struct walker *w = mem_new(1, sizeof *w);
	inquiry_init(&w->q, &path_inquiry, topo, from, to, 1);
	w->topo = topo;
	w->whose = *s;
	w->t = w->out.start = from;
	w->out.end = to;
	for (unsigned i = 0; i < HISTORY_STATES; i++) {
		w->asleep |= (uint64_t)(topo->thread_state[i] == THREAD_BLOCKED) << i;
		w->raisers.running |= (uint64_t)(topo->thread_state[i] == THREAD_RUNNING) << i;
		w->raisers.executing |= (uint64_t)(topo->vcpu_state[i] == VCPU_RUNNING) << i;
	}
	w->raisers.asleep = w->asleep;
	w->raisers.r = &w->r;
	resolver_init(&w->r, topo, from, to, err);
	w->r.no_wakers = w->r.no_idlers = true;
	return &w->q;
}

void path_take(struct inquiry *q, struct path *out)
{
	struct walker *w = (struct walker *)q;
	*out = w->out;
	w->out = (struct path){ 0 };
}

int path_of(const struct topo *topo, const struct subject *s, int64_t from, int64_t to, struct path *out,
            struct error *err)
{
	struct inquiry *q = path_open(topo, s, from, to, err);
	int status = q ? inquiry_run(q, NULL, err) : -1;
	*out = (struct path){ 0 };
	if (status == 0)
		path_take(q, out);
	inquiry_close(q);
	return status;
}
