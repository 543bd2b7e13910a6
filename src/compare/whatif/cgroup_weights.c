#include "compare/whatif/cgroup_weights.h"

#include "compare/whatif/scheduler_replay.h"

#define DEFAULT_SHARES 1024
#define SHARES_MAX 262144
#define DEEPEST 32

static int32_t group_add(struct host_demand *d, int64_t id, int32_t parent, double weight)
{
	for (size_t i = 0; i < d->groups; i++)
		if (d->group[i].id == id && d->group[i].parent == parent)
			return (int32_t)i;
	if (d->groups >= GROUPS_MAX)
		return -1;
	*ARRAY_PUSH(d->group, d->groups, d->group_cap) = (struct replay_group){ id, parent, weight, 0 };
	return (int32_t)d->groups - 1;
}

int32_t parse_groups(struct host_demand *d, const char *text)
{
	int32_t group = -1;
	for (int depth = 0; depth < DEEPEST; depth++) {
		int64_t id;
		unsigned shares;
		int length = 0;
		if (sscanf(text, "%9" SCNd64 ":%9u%n", &id, &shares, &length) != 2 || id < 0 || shares == 0 || shares > SHARES_MAX)
			return -1;
		group = group_add(d, id, group, (double)shares / DEFAULT_SHARES);
		text += length;
		if (group < 0 || *text != '/')
			return *text ? -1 : group;
		text++;
	}
	return -1;
}

/* Ancestor of the task that is a direct child of `group`; -1: the task itself is directly in `group`; -2: the task is
 * not below `group`. */
static int32_t group_below(const struct host_demand *d, const struct replay_task *t, int32_t group)
{
	int32_t below = -1;
	for (int32_t g = t->group; g >= 0; g = d->group[g].parent) {
		if (g == group)
			return below;
		below = g;
	}
	return -2;
}

double groups_weight(const struct host_demand *d, const struct replay_task *t, const struct replay_task *const *task,
                     size_t n)
{
	double part = 1, weight = t->weight;
	for (int32_t g = t->group; g >= 0; g = d->group[g].parent) {
		double all = 0, load = 0;
		for (size_t i = 0; i < n; i++) {
			const int32_t below = group_below(d, task[i], g);
			if (below == -2)
				continue;
			load += task[i]->weight;
			all += below == -1 ? task[i]->weight
			     : d->group[below].weight * task[i]->weight / d->group[below].runnable_weight;
		}
		part *= weight / all;
		weight = d->group[g].weight * load / d->group[g].runnable_weight;
	}
	return part * weight;
}

void groups_update_load(struct host_demand *d, const struct replay_task *t, int sign)
{
	for (int32_t g = t->group; g >= 0; g = d->group[g].parent)
		d->group[g].runnable_weight += sign * t->weight;
}

/* Returns true if all replayed tasks below the group belong to the listed threads. */
static bool contains_only(const struct host_demand *d, int32_t group, const uint32_t *thread, size_t threads)
{
	for (size_t i = 0; i < d->tasks; i++) {
		bool among = group_below(d, &d->task[i], group) == -2;
		for (size_t k = 0; k < threads && !among; k++)
			among = d->task[i].thread == thread[k];
		if (!among)
			return false;
	}
	return true;
}

void groups_set_weight(struct host_demand *d, const uint32_t *thread, size_t threads, double weight)
{
	for (size_t i = 0; i < threads; i++) {
		struct replay_task *t = demand_task(d, thread[i]);
		int32_t outermost = -1;
		for (int32_t g = t ? t->group : -1; g >= 0 && contains_only(d, g, thread, threads); g = d->group[g].parent)
			outermost = g;
		if (outermost >= 0)
			d->group[outermost].weight = weight;
		else if (t)
			t->weight = weight;
	}
}
