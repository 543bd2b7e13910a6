/* The critical path as a query in steps, and its sums by actor and culprit. */
#include "base/base.h"
#include "query/critical_path.h"

ORDER_BY(compare_sums, struct path_sum, FALLING(duration) RISING(actor.tid))

/* Finds the sum that the interval belongs to, among all sums; adds a new one. */
static __attribute__((noinline)) size_t sum_find(struct path_ledger *l, struct path *p,
                                                 const struct path_interval *interval)
{
	bool is_new;
	uint64_t key = (uint64_t)actors_put(&l->actors, &interval->actor) << 32;
	uint64_t *at = map_put(&l->row, key | actors_put(&l->actors, &interval->culprit), &is_new);
	if (is_new) {
		*at = p->sums;
		*ARRAY_PUSH(p->sum, p->sums, l->cap) = (struct path_sum){ .actor = interval->actor, .culprit = interval->culprit };
	}
	return *at;
}

size_t path_sum_of(struct path_ledger *l, struct path *p, const struct path_interval *interval)
{
	const uint32_t hash = (uint32_t)interval->actor.tid + 5U * (uint32_t)interval->culprit.tid + 3U * interval->actor.kind;
	size_t *recent = &l->recent[hash % SUMS_RECENT];
	const struct path_sum *sum = *recent ? &p->sum[*recent - 1] : NULL;
	if (!sum || !actor_same(&sum->actor, &interval->actor) || !actor_same(&sum->culprit, &interval->culprit))
		*recent = sum_find(l, p, interval) + 1;
	return *recent - 1;
}

void path_release(struct path *p)
{
	names_free(p->name, p->names);
	free(p->interval);
	free(p->sum);
	*p = (struct path){ 0 };
}

/* ---- Query */

static int path_walk(struct query *q, size_t i, struct budget *budget, struct error *err)
{
	struct path_walker *w = (struct path_walker *)q;
	int64_t end;
	w->err = w->r.err = err;
	for (; w->t <= q->to; w->t = end + 1) {
		if (path_append(w, &w->target, w->t, q->to, (struct path_link){ EDGE_START, PATH_PROVEN }, &end) < 0)
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

static int path_join(struct query *q, struct error *err)
{
	struct path_walker *w = (struct path_walker *)q;
	(void)err;
	struct path *p = &w->out;
	for (size_t i = 0; i < p->sums; i++)
		p->sum[i].share = (double)p->sum[i].duration / ((double)(p->end - p->start) + 1);
	ARRAY_SORT(p->sum, p->sums, compare_sums);
	names_move(&w->r.names, &w->out.name, &w->out.names);
	return 1;
}

static void path_close(struct query *q)
{
	struct path_walker *w = (struct path_walker *)q;
	path_release(&w->out);
	resolver_release(&w->r);
	map_release(&w->irq_sources.known);
	map_release(&w->ledger.row);
	actors_release(&w->ledger.actors);
}

static const struct query_kind path_query = { path_walk, path_join, path_close, ANSWER(struct path_walker, out) };

struct query *path_open(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to,
                        struct error *err)
{
	if (window_cut_to_target(catalog, target, &from, &to, err) < 0)
		return NULL;
	struct path_walker *w = mem_new(1, sizeof *w);
	query_init(&w->q, &path_query, catalog, from, to, 1);
	w->catalog = catalog;
	w->target = *target;
	w->t = w->out.start = from;
	w->out.end = to;
	for (unsigned i = 0; i < HISTORY_STATES; i++) {
		w->asleep |= (uint64_t)(catalog->thread_state[i] == THREAD_BLOCKED) << i;
		w->irq_sources.running |= (uint64_t)(catalog->thread_state[i] == THREAD_RUNNING) << i;
		w->irq_sources.executing |= (uint64_t)(catalog->vcpu_state[i] == VCPU_RUNNING) << i;
	}
	w->irq_sources.asleep = w->asleep;
	w->irq_sources.r = &w->r;
	resolver_init(&w->r, catalog, from, to, err);
	w->r.no_wakers = w->r.no_idle_task = true;
	return &w->q;
}
