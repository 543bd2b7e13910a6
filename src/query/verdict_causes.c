/* Causes of a verdict: culprits summed by name or by machine, and culprits of the helpers on a critical path. */
#include "query/verdict_causes.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SAME_NAME_SHARE 0.1  /* minimum time of a thread that is named together with another one, as a share of that */
#define SPREAD_SHARE 0.5      /* minimum share of the lost time that other VMs took together */
#define SPREAD_VMS 3          /* minimum number of these VMs */
#define ONE_NAME_SHARE 0.5  /* minimum share of the time of the host's threads, for a name to stand for them */

static const char *name_of_thread(const struct catalog *catalog, int32_t machine, int32_t tid, const char *name)
{
	const int thread = machine >= 0 && tid > 0 ? catalog_find_thread(catalog, (uint32_t)machine, tid) : -1;
	return thread >= 0 ? catalog_longest_name(catalog, (uint32_t)thread) : name ? name : "";
}

static struct cause cause_of(const struct catalog *catalog, uint32_t victim, const struct actor *actor, const char *name)
{
	const enum flow_kind kind = (enum flow_kind)actor->kind;
	struct cause c = { .kind = CAUSE_UNKNOWN, .machine = actor->machine, .tid = -1, .threads = 1, .name = name };
	if (kind == FLOW_LIMITED)
		c.kind = CAUSE_LIMIT;
	else if (kind == FLOW_WAITING)
		c = (struct cause){ CAUSE_SLEEP, -1, -1, 1, "", 0 };
	else if (kind == FLOW_IDLE_CPU || (kind == FLOW_CURRENT && actor->tid == 0) ||
	         (actor->machine >= 0 && actor->tid == 0 && is_host(catalog, (uint32_t)actor->machine)))
		c = (struct cause){ CAUSE_IDLE_CPU, -1, -1, 1, "", 0 };
	else if (actor->machine < 0 || kind == FLOW_UNKNOWN)
		c = (struct cause){ CAUSE_UNKNOWN, -1, -1, 1, "", 0 };
	else if (actor->machine == (int32_t)victim)
		c = (struct cause){ CAUSE_OWN, actor->machine, -1, 1, "", 0 };
	else if (catalog->machine[actor->machine].kind == MACHINE_VM)
		c = (struct cause){ CAUSE_VM, actor->machine, -1, 1, "", 0 };
	else if (kind == FLOW_IRQ)
		c.kind = CAUSE_IRQ;
	else
		c = (struct cause){ CAUSE_THREAD, actor->machine, actor->tid, 1,
			name_of_thread(catalog, actor->machine, actor->tid, name), 0 };
	return c;
}

void causes_add(struct cause_list *l, const struct catalog *catalog, uint32_t victim, const struct actor *actor,
                const char *name, int64_t ns)
{
	struct cause c = cause_of(catalog, victim, actor, name ? name : "");
	l->ns += ns;
	for (size_t i = 0; i < l->len; i++) {
		struct cause *old = &l->cause[i];
		if (old->kind == c.kind && old->machine == c.machine && old->tid == c.tid && !strcmp(old->name, c.name)) {
			old->ns += ns;
			return;
		}
	}
	c.ns = ns;
	*ARRAY_PUSH(l->cause, l->len, l->cap) = c;
}

static int compare_causes(const void *a, const void *b)
{
	const struct cause *x = a, *y = b;
	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

static bool same_name(const struct cause *a, const struct cause *b)
{
	return a->kind == CAUSE_THREAD && b->kind == CAUSE_THREAD && a->machine == b->machine && !strcmp(a->name, b->name);
}

/* Joins threads of one machine with equal names, except threads that took little compared with the first of them. */
static void merge_names(struct cause_list *l)
{
	size_t n = 0;
	for (size_t i = 0; i < l->len; i++) {
		const struct cause *c = &l->cause[i];
		size_t k = 0;
		while (k < n && !(same_name(c, &l->cause[k]) && (double)c->ns >= SAME_NAME_SHARE * (double)l->cause[k].ns))
			k++;
		if (k == n) {
			l->cause[n++] = *c;
			continue;
		}
		l->cause[k].ns += c->ns;
		l->cause[k].threads++;
	}
	l->len = n;
}

/* Joins all threads of the host if none of their names stands for most of their time. */
static void merge_threads(struct cause_list *l)
{
	struct cause all = { CAUSE_THREAD, 0, -1, 0, NULL, 0 };
	int64_t most = 0;
	size_t n = 0;
	for (size_t i = 0; i < l->len; i++) {
		const struct cause *c = &l->cause[i];
		if (c->kind != CAUSE_THREAD)
			continue;
		all.machine = c->machine;
		all.ns += c->ns;
		all.threads += c->threads;
		most = c->ns > most ? c->ns : most;
	}
	if (all.threads == 0 || (double)most >= ONE_NAME_SHARE * (double)all.ns)
		return;
	for (size_t i = 0; i < l->len; i++)
		if (l->cause[i].kind != CAUSE_THREAD)
			l->cause[n++] = l->cause[i];
	l->cause[n++] = all;
	l->len = n;
}

void causes_sort(struct cause_list *l)
{
	if (l->len == 0)
		return;
	qsort(l->cause, l->len, sizeof *l->cause, compare_causes);
	merge_names(l);
	merge_threads(l);
	qsort(l->cause, l->len, sizeof *l->cause, compare_causes);
}

unsigned causes_spread(const struct cause_list *l, int64_t *ns)
{
	int64_t most = 0;
	unsigned vms = 0;
	*ns = 0;
	for (size_t i = 0; i < l->len; i++) {
		const struct cause *c = &l->cause[i];
		if (c->kind != CAUSE_VM)
			continue;
		vms++;
		*ns += c->ns;
		most = c->ns > most ? c->ns : most;
	}
	return vms >= SPREAD_VMS && (double)*ns >= SPREAD_SHARE * (double)l->ns && most <= *ns / 2 ? vms : 0;
}

void causes_release(struct cause_list *l)
{
	free(l->cause);
	*l = (struct cause_list){ 0 };
}

/* ---- Chains -------------------------------------------------------------------------------------------------------- */

static bool same_thread(const struct actor *a, const struct actor *b)
{
	return a->machine == b->machine && a->tid == b->tid;
}

static bool is_helper(const struct actor *self, const struct actor *actor)
{
	return actor->machine >= 0 && actor->kind != FLOW_UNKNOWN && actor->kind != FLOW_WAITING && actor->tid > 0 &&
	    !same_thread(self, actor);
}

/* A culprit is a thread of another machine than the target's that is not itself on the path. */
static bool is_culprit(const struct actor *self, const struct path *p, const struct actor *culprit)
{
	if (culprit->machine < 0 || culprit->machine == self->machine || culprit->tid <= 0 || culprit->kind != FLOW_PREEMPTING)
		return false;
	for (size_t i = 0; i < p->sums; i++)
		if (is_helper(self, &p->sum[i].actor) && same_thread(&p->sum[i].actor, culprit))
			return false;
	return true;
}

/* Sums the delays by one culprit, from sum `first` on, and finds the helper that it delayed most. */
static void chain_sum(const struct actor *self, const struct path *p, size_t first, struct delay_chain *chain)
{
	int64_t most = 0;
	for (size_t i = first; i < p->sums; i++) {
		const struct path_sum *sum = &p->sum[i];
		if (!is_helper(self, &sum->actor) || !same_thread(&sum->culprit, &chain->culprit))
			continue;
		chain->ns += sum->duration;
		if (sum->duration > most) {
			most = sum->duration;
			chain->helper = sum->actor;
		}
	}
}

static bool is_mostly_inferred(const struct path *p, const struct delay_chain *chain)
{
	int64_t ns = 0;
	for (size_t i = 0; i < p->intervals; i++)
		if (p->interval[i].evidence >= 0 && same_thread(&p->interval[i].culprit, &chain->culprit))
			ns += p->interval[i].end - p->interval[i].start + 1;
	return ns > chain->ns / 2;
}

void chain_find(const struct catalog *catalog, const struct target *target, const struct path *p, struct delay_chain *out)
{
	const struct catalog_thread *thread = &catalog->thread[target->index];
	const struct actor self = { (int32_t)thread->machine, thread->tid, 0, FLOW_RUNNING, 0 };
	*out = (struct delay_chain){ .target = *target };
	for (size_t i = 0; i < p->sums; i++) {
		struct delay_chain chain = { .target = *target, .culprit = p->sum[i].culprit };
		if (!is_helper(&self, &p->sum[i].actor) || same_thread(&chain.culprit, &out->culprit) ||
		    !is_culprit(&self, p, &chain.culprit))
			continue;
		chain_sum(&self, p, i, &chain);
		if (chain.ns > out->ns)
			*out = chain;
	}
	if (out->ns)
		out->inferred = is_mostly_inferred(p, out);
}
