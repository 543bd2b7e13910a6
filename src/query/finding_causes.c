/* Lost time by cause: culprits summed by name or by machine, and the culprits that delayed helpers on a critical path. */
#include "query/finding_causes.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"

#define SAME_NAME_SHARE 0.1  /* minimum time, relative to another thread's, for a thread that is named together with it */
#define SPREAD_SHARE 0.5      /* minimum share in the lost time that other VMs or groups took together */
#define SPREAD_MACHINES 3     /* their minimum number */
#define EVENT_SHARE 0.02      /* a pause or migration with at least this share in the time wanted comes first ... */
#define EVENT_NS 100000000    /* ... or from this time on, ns */
#define ONE_NAME_SHARE 0.5  /* minimum share in the time that the host's threads took, for a name to stand for them */

static const char *name_of_thread(const struct catalog *catalog, int32_t machine, int32_t tid, const char *name)
{
	const int thread = machine >= 0 && tid > 0 ? catalog_find_thread(catalog, (uint32_t)machine, tid) : -1;
	return thread >= 0 ? catalog_longest_name(catalog, (uint32_t)thread) : name ? name : "";
}

int64_t process_at(const struct catalog *catalog, uint32_t thread, int64_t t)
{
	struct interval iv;
	const uint32_t attr = catalog->thread[thread].pid;
	if (attr == HISTORY_NONE || history_stab(catalog->h, attr, t, &iv, NULL) < 0 ||
	    (iv.value == HISTORY_NULL && attribute_last_value(catalog, attr, &iv.value, NULL) < 0) || iv.value == HISTORY_NULL)
		return -1;
	return iv.value;
}

/* Returns true if an actor on the victim's machine counts as the victim itself: a thread in its process, or any thread
 * if the victim is a machine, or belongs to a group, or to a VM whose host is known. */
static bool is_own_loss(const struct cause_list *l, const struct cause_interval *i)
{
	const struct catalog *catalog = l->catalog;
	const struct catalog_machine *m = &catalog->machine[i->actor.machine];
	if (l->victim.kind != TARGET_THREAD || m->kind == MACHINE_CONTAINER ||
	    (m->kind == MACHINE_VM && !m->hides_stolen_time))
		return true;
	const int other = i->actor.tid > 0 ? catalog_find_thread(catalog, (uint32_t)i->actor.machine, i->actor.tid) : -1;
	const int64_t process = process_at(catalog, l->victim.index, i->start);
	return other >= 0 && process >= 0 && process_at(catalog, (uint32_t)other, i->start) == process;
}

static enum loss_rank rank_of(const struct cause_list *l, enum cause_kind kind, const struct cause_interval *i)
{
	const uint32_t victim = target_machine(l->catalog, &l->victim);
	if (kind == CAUSE_UNKNOWN)
		return LOSS_UNKNOWN;
	if (kind == CAUSE_VMM || kind == CAUSE_SLEEP)  /* the VMM blocks a vCPU on the host's behalf */
		return LOSS_SERVICE;
	if (kind == CAUSE_IDLE_CPU || kind == CAUSE_OWN)
		return LOSS_OWN;
	if ((kind == CAUSE_THREAD || kind == CAUSE_IRQ) && i->actor.machine == (int32_t)victim)
		return is_own_loss(l, i) ? LOSS_OWN : LOSS_OTHERS;
	return LOSS_OTHERS;
}

/* Returns true if a machine's threads are one culprit: another VM's; a group's if the victim is a machine. */
static bool is_one_culprit(const struct cause_list *l, int32_t machine)
{
	const enum machine_kind kind = l->catalog->machine[machine].kind;
	return (kind == MACHINE_VM && !catalog_is_alone(l->catalog)) ||
	       (kind == MACHINE_CONTAINER && l->victim.kind == TARGET_MACHINE);
}

static struct cause cause_of(const struct cause_list *l, const struct cause_interval *i)
{
	const struct catalog *catalog = l->catalog;
	const struct actor *actor = &i->actor;
	const enum flow_kind kind = (enum flow_kind)actor->kind;
	const bool is_own = actor->machine == (int32_t)target_machine(catalog, &l->victim);
	struct cause c = { .kind = CAUSE_UNKNOWN, .machine = -1, .tid = -1, .threads = 1, .name = "" };
	if (kind == FLOW_LIMITED) {
		c.kind = CAUSE_LIMIT;
		c.reason = actor->reason;
	} else if (kind == FLOW_WAITING) {
		c.kind = CAUSE_SLEEP;
	} else if (kind == FLOW_IDLE_CPU || (kind == FLOW_CURRENT && actor->tid == 0) ||
	           (actor->machine >= 0 && actor->tid == 0 && is_host(catalog, (uint32_t)actor->machine))) {
		c.kind = CAUSE_IDLE_CPU;
	} else if (actor->machine >= 0 && kind != FLOW_UNKNOWN) {
		c.machine = actor->machine;
		if (kind == FLOW_HYPERVISOR && is_own) {
			c.kind = CAUSE_VMM;
		} else if (is_own && l->victim.kind != TARGET_THREAD) {
			c.kind = CAUSE_OWN;
		} else if (kind == FLOW_IRQ) {
			c.kind = CAUSE_IRQ;
			c.name = i->name;
		} else if (!is_own && is_one_culprit(l, actor->machine)) {
			c.kind = CAUSE_MACHINE;
			c.tid = actor->tid > 0 ? actor->tid : -1;
		} else {
			c.kind = CAUSE_THREAD;
			c.tid = actor->tid;
			c.name = name_of_thread(catalog, actor->machine, actor->tid, i->name);
		}
	}
	c.rank = rank_of(l, c.kind, i);
	return c;
}

static int64_t length_of(const struct cause *c)
{
	return c->longest.end - c->longest.start + 1;
}

/* Adds one cause's time to another one. */
static void cause_join(struct cause *to, const struct cause *c)
{
	to->ns += c->ns;
	to->intervals += c->intervals;
	if (length_of(c) > length_of(to))
		to->longest = c->longest;
}

void causes_add(struct cause_list *l, const struct cause_interval *longest, int64_t ns, uint64_t intervals)
{
	struct cause_interval named = *longest;
	named.name = longest->name ? longest->name : "";
	struct cause c = cause_of(l, &named);
	c.ns = c.most = ns;
	c.intervals = intervals;
	c.longest = named;
	l->ns += ns;
	l->rank_ns[c.rank] += ns;
	for (size_t i = 0; i < l->len; i++) {
		struct cause *old = &l->cause[i];
		if (old->kind == c.kind && old->rank == c.rank && old->machine == c.machine && old->tid == c.tid &&
		    old->reason == c.reason && !strcmp(old->name, c.name)) {
			cause_join(old, &c);
			old->most = old->ns;
			return;
		}
	}
	*ARRAY_PUSH(l->cause, l->len, l->cap) = c;
}

ORDER_BY(compare_causes, struct cause, FALLING(ns) RISING(kind) RISING(tid))

/* Returns true if b belongs to the culprit a: the same VM or group, equal names (except of a thread that took little
 * compared with a), or threads without names. */
static bool is_same_culprit(const struct cause *a, const struct cause *b)
{
	if (a->kind != b->kind || a->machine != b->machine || a->rank != b->rank || a->kind > CAUSE_MACHINE)
		return false;
	if (a->kind == CAUSE_THREAD && a->name && b->name)
		return !strcmp(a->name, b->name) && (double)b->ns >= SAME_NAME_SHARE * (double)a->ns;
	return a->kind == CAUSE_MACHINE || (!a->name && !b->name);
}

/* Joins each culprit's causes. They are sorted, largest first. */
static void merge_culprits(struct cause_list *l)
{
	size_t n = 0;
	for (size_t i = 0; i < l->len; i++) {
		const struct cause c = l->cause[i];
		size_t k = 0;
		while (k < n && !is_same_culprit(&l->cause[k], &c))
			k++;
		if (k == n) {
			l->cause[n++] = c;
			continue;
		}
		cause_join(&l->cause[k], &c);
		l->cause[k].threads += c.threads;
	}
	l->len = n;
}

/* Drops the names of a machine's threads of a rank if none of them stands for most of their time; and the thread of a VM
 * or group, if it took less than that. */
static void drop_small_names(struct cause_list *l)
{
	for (size_t i = 0; i < l->len; i++) {
		struct cause *c = &l->cause[i];
		int64_t all = 0, most = 0;
		if (c->kind == CAUSE_MACHINE && (double)c->most < ONE_NAME_SHARE * (double)c->ns)
			c->tid = -1;
		for (size_t k = 0; k < l->len && c->kind == CAUSE_THREAD && c->name; k++) {
			const struct cause *o = &l->cause[k];
			const bool beside = o->kind == CAUSE_THREAD && o->machine == c->machine && o->rank == c->rank;
			all += beside ? o->ns : 0;
			most = beside && o->ns > most ? o->ns : most;
		}
		for (size_t k = 0; k < l->len && (double)most < ONE_NAME_SHARE * (double)all; k++) {
			struct cause *o = &l->cause[k];
			if (o->kind == CAUSE_THREAD && o->machine == c->machine && o->rank == c->rank)
				o->name = NULL;
		}
	}
}

void causes_sort(struct cause_list *l)
{
	if (l->len == 0)
		return;
	qsort(l->cause, l->len, sizeof *l->cause, compare_causes);
	merge_culprits(l);
	drop_small_names(l);
	merge_culprits(l);
	qsort(l->cause, l->len, sizeof *l->cause, compare_causes);
}

unsigned causes_spread(const struct cause_list *l, int64_t *ns)
{
	int64_t most = 0;
	unsigned machines = 0;
	*ns = 0;
	for (size_t i = 0; i < l->len; i++) {
		const struct cause *c = &l->cause[i];
		if (c->kind != CAUSE_MACHINE)
			continue;
		machines++;
		*ns += c->ns;
		most = c->ns > most ? c->ns : most;
	}
	const bool is_spread = machines >= SPREAD_MACHINES && most <= *ns / 2 &&
	                       (double)*ns >= SPREAD_SHARE * (double)l->rank_ns[LOSS_OTHERS];
	return is_spread ? machines : 0;
}

bool cause_is_event(const struct cause *c, int64_t wanted)
{
	const bool stops = c->kind == CAUSE_LIMIT && (c->reason == OUT_PAUSE || c->reason == OUT_MIGRATION ||
	                                              c->reason == OUT_PAUSE_OR_MIGRATION);
	return stops && (c->ns >= EVENT_NS || (double)c->ns >= EVENT_SHARE * (double)wanted);
}

const struct cause *causes_first(const struct cause_list *l, unsigned rank, int64_t wanted)
{
	const struct cause *first = NULL;
	for (size_t i = 0; i < l->len; i++) {
		const struct cause *c = &l->cause[i];
		if (c->rank != rank)
			continue;
		if (cause_is_event(c, wanted))
			return c;
		first = first ? first : c;
	}
	return first;
}

const struct cause *causes_main(const struct cause_list *l, int64_t wanted)
{
	unsigned largest = 0;
	for (unsigned rank = 0; rank < LOSS_RANKS; rank++) {
		if (share_of(l->rank_ns[rank], wanted) > FINDING_LIMIT)
			return causes_first(l, rank, wanted);
		largest = l->rank_ns[rank] > l->rank_ns[largest] ? rank : largest;
	}
	return causes_first(l, largest, wanted);
}

void causes_release(struct cause_list *l)
{
	free(l->cause);
	*l = (struct cause_list){ .catalog = l->catalog, .victim = l->victim };
}

/* ---- Chains -------------------------------------------------------------------------------------------------------- */

bool path_is_helper(const struct actor *self, const struct actor *actor)
{
	return actor->machine >= 0 && actor->kind != FLOW_UNKNOWN && actor->kind != FLOW_WAITING && actor->tid > 0 &&
	    !same_thread(self, actor);
}

/* A culprit is a thread on another machine than the target's that is not itself on the path. */
static bool is_culprit(const struct actor *self, const struct path *p, const struct actor *culprit)
{
	if (culprit->machine < 0 || culprit->machine == self->machine || culprit->tid <= 0 || culprit->kind != FLOW_PREEMPTING)
		return false;
	for (size_t i = 0; i < p->sums; i++)
		if (path_is_helper(self, &p->sum[i].actor) && same_thread(&p->sum[i].actor, culprit))
			return false;
	return true;
}

/* Sums the delays by one culprit, from sum `first` on, and finds the helper that it delayed most. */
static void chain_sum(const struct actor *self, const struct path *p, size_t first, struct delay_chain *chain)
{
	int64_t most = 0;
	for (size_t i = first; i < p->sums; i++) {
		const struct path_sum *sum = &p->sum[i];
		if (!path_is_helper(self, &sum->actor) || !same_thread(&sum->culprit, &chain->culprit))
			continue;
		chain->ns += sum->duration;
		chain->intervals += sum->intervals;
		if (sum->duration > most) {
			most = sum->duration;
			chain->helper = sum->actor;
		}
	}
}

/* Finds the delays' longest interval, and whether most delays are inferred. */
static void chain_scan(const struct actor *self, const struct path *p, struct delay_chain *chain)
{
	int64_t inferred = 0;
	for (size_t i = 0; i < p->intervals; i++) {
		const struct path_interval *iv = &p->interval[i];
		if (!same_thread(&iv->culprit, &chain->culprit) || !path_is_helper(self, &iv->actor))
			continue;
		inferred += iv->evidence >= 0 ? iv->end - iv->start + 1 : 0;
		if (iv->end - iv->start > chain->end - chain->start || chain->at.machine < 0) {
			chain->start = iv->start;
			chain->end = iv->end;
			chain->at = iv->actor;
		}
	}
	chain->inferred = inferred > chain->ns / 2;
}

void chain_find(const struct catalog *catalog, const struct target *target, const struct path *p, struct delay_chain *out)
{
	const struct catalog_thread *thread = &catalog->thread[target->index];
	const struct actor self = { (int32_t)thread->machine, thread->tid, 0, FLOW_RUNNING, 0 };
	*out = (struct delay_chain){ .target = *target, .self = self, .at = { -1, -1, 0, FLOW_UNKNOWN, 0 } };
	for (size_t i = 0; i < p->sums; i++) {
		struct delay_chain chain = { .target = *target, .self = self, .culprit = p->sum[i].culprit,
			.at = { -1, -1, 0, FLOW_UNKNOWN, 0 } };
		if (!path_is_helper(&self, &p->sum[i].actor) || same_thread(&chain.culprit, &out->culprit) ||
		    !is_culprit(&self, p, &chain.culprit))
			continue;
		chain_sum(&self, p, i, &chain);
		if (chain.ns > out->ns)
			*out = chain;
	}
	if (out->ns)
		chain_scan(&self, p, out);
}
