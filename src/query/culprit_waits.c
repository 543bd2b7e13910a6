/* See query.h. Cost: as a steal matrix of the target: linear in its gaps and the culprits in them. */
#include "base/base.h"
#include "query/query.h"

#include "query/top_culprit.h"

#define STOP_INTERVALS 256  /* intervals between two calls of stop() */

struct waits_reader {
	const struct catalog *catalog;
	const struct target *self;
	const struct actor *culprit;
	const char *name;
	bool (*stop)(void *arg);
	void *arg;
	struct gap gap;           /* current gap; state unused if n == 0 */
	struct actor *actor;      /* culprits of the current gap */
	const char **actor_name;  /* their names; NULL: none */
	int64_t *ns;              /* ns that each took */
	size_t n, cap, names_cap, ns_cap;
	unsigned intervals;
	struct culprit_waits *out;
};

static bool same_name(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* Returns true if an actor is the culprit, or one of the actors that the culprit stands for. */
static bool is_culprit(const struct waits_reader *r, const struct actor *a, const char *name)
{
	const struct actor *c = r->culprit;
	const unsigned group = culprit_group(r->catalog, r->self, c);
	if (group == CULPRIT_NOBODY)
		return a->kind == c->kind && a->machine == c->machine && a->tid == c->tid && a->reason == c->reason;
	const bool whole_machine = c->tid < 0 && flow_is_thread(c->kind) && (!r->name || !*r->name);
	if (group == CULPRIT_SERVICE || whole_machine)
		return culprit_group(r->catalog, r->self, a) == group;
	const bool any_thread = c->tid < 0 && c->kind == FLOW_PREEMPTING;  /* a group or a vCPU: any thread of this name */
	return a->machine == c->machine && (a->tid == c->tid || any_thread) && a->kind == c->kind &&
	       (c->tid >= 0 || same_name(name, r->name));
}

/* Compares the gap that has ended with the longest ones. */
static void end_gap(struct waits_reader *r)
{
	struct culprit_waits *out = r->out;
	int64_t taken = 0, length = r->gap.end - r->gap.start + 1;
	for (size_t i = 0; i < r->n; i++)
		taken += is_culprit(r, &r->actor[i], r->actor_name[i]) ? r->ns[i] : 0;
	if (taken > out->taken_ns) {
		out->taken = r->gap;
		out->taken_ns = taken;
	}
	if (r->n && (!out->found || length > out->longest.end - out->longest.start + 1)) {
		struct top_culprit top;
		culprit_find(r->catalog, r->self, r->actor, r->ns, r->n, &top);
		out->longest = r->gap;
		out->longest_by = top.actor;
		out->longest_name[0] = '\0';
		for (size_t i = 0; i < r->n && top.actors == 1; i++)
			if (actor_same(&r->actor[i], &top.actor) && r->actor_name[i])
				snprintf(out->longest_name, sizeof out->longest_name, "%s", r->actor_name[i]);
		out->found = true;
	}
	r->n = 0;
}

static int add_interval(void *arg, const struct gap_interval *p)
{
	struct waits_reader *r = arg;
	size_t i = 0;
	if (r->n && (!p || p->gap->start != r->gap.start || p->gap->target.index != r->gap.target.index))
		end_gap(r);
	if (!p)
		return 0;
	if (++r->intervals % STOP_INTERVALS == 0 && r->stop && r->stop(r->arg))
		return 1;
	r->gap = *p->gap;
	while (i < r->n && !(r->actor[i].machine == p->actor.machine && r->actor[i].tid == p->actor.tid &&
	                     r->actor[i].kind == p->actor.kind && same_name(r->actor_name[i], p->name)))
		i++;
	if (i == r->n) {
		size_t n = i;
		*ARRAY_PUSH(r->actor_name, n, r->names_cap) = p->name;
		n = i;
		*ARRAY_PUSH(r->ns, n, r->ns_cap) = 0;
		*ARRAY_PUSH(r->actor, r->n, r->cap) = (struct actor){ p->actor.machine, p->actor.tid, (uint32_t)i, p->actor.kind,
		                                                            p->actor.reason };
	}
	r->ns[i] += p->end - p->start + 1;
	return 0;
}

int culprit_waits_of(const struct catalog *catalog, const struct target *victim, const struct target *read, int64_t from,
                     int64_t to, const struct actor *culprit, const char *name, bool (*stop)(void *arg), void *arg,
                     struct culprit_waits *out, struct error *err)
{
	struct waits_reader r = { .catalog = catalog, .self = victim, .culprit = culprit, .name = name, .stop = stop,
		.arg = arg, .out = out };
	*out = (struct culprit_waits){ .longest_by = { -1, -1, 0, FLOW_RUNNING, 0 } };
	const int status = gap_each_interval_of(catalog, read, from, to, add_interval, &r, err);
	free(r.actor);
	free(r.actor_name);
	free(r.ns);
	return status;
}
