#include "query/thread_groups.h"

#include "base/base.h"
#include "query/query_internal.h"

#define GROUPING_NAME(code, name) [code] = name,
const char *const thread_grouping_name[THREAD_GROUPINGS + 1] = { THREAD_GROUPING_LIST(GROUPING_NAME) };
#undef GROUPING_NAME

static int set_process(struct thread_groups *g, uint32_t thread, struct actor *group, struct error *err)
{
	const struct catalog_thread *th = &g->catalog->thread[thread];
	int64_t pid;
	if (attribute_last_value(g->catalog, th->pid, &pid, err) < 0)
		return -1;
	if (pid < 0 || pid > INT32_MAX) {
		group->name = strtab_put(&g->names, "unknown process");
		return 0;
	}
	const int leader = catalog_find_thread(g->catalog, th->machine, (int32_t)pid);
	group->tid = (int32_t)pid;
	group->name = leader < 0 ? 0 : strtab_put(&g->names, catalog_longest_name(g->catalog, (uint32_t)leader));
	return 0;
}

/* The group counts for its machine: a container of that group is left out, because its name is the group's. */
static int set_cgroup(struct thread_groups *g, uint32_t thread, struct actor *group, struct error *err)
{
	const struct catalog_thread *th = &g->catalog->thread[thread];
	const bool is_contained = g->catalog->machine[th->machine].kind == MACHINE_CONTAINER;
	int64_t number;
	if (attribute_last_value(g->catalog, th->group, &number, err) < 0)
		return -1;
	const bool has_group = number >= 0 && number < g->catalog->groups;
	const struct catalog_group *found = has_group ? &g->catalog->group[number] : NULL;
	if (is_contained && g->catalog->machine[th->machine].group >= 0)
		group->name = 0;
	else
		group->name = strtab_put(&g->names, !found ? "unknown cgroup" : *found->name ? found->name : found->path);
	return 0;
}

struct thread_groups *thread_groups_new(const struct catalog *catalog, enum thread_grouping by, struct error *err)
{
	struct thread_groups *g = mem_new(1, sizeof *g);
	int rc = 0;
	g->catalog = catalog;
	g->of = mem_new(catalog->threads, sizeof *g->of);
	strtab_init(&g->names);
	for (uint32_t i = 0; i < catalog->threads && rc == 0; i++) {
		struct actor group = { (int32_t)catalog->thread[i].machine, -1, 0, FLOW_PREEMPTING, 0 };
		if (by == GROUP_BY_PROCESS)
			rc = set_process(g, i, &group, err);
		else if (by == GROUP_BY_CGROUP)
			rc = set_cgroup(g, i, &group, err);
		else
			group.name = strtab_put(&g->names, catalog_longest_name(catalog, i));
		g->of[i] = actors_put(&g->group, &group);
	}
	if (rc == 0)
		return g;
	thread_groups_free(g);
	return NULL;
}

void thread_groups_free(struct thread_groups *g)
{
	if (!g)
		return;
	actors_release(&g->group);
	strtab_release(&g->names);
	free(g->of);
	free(g);
}

void actor_set_group(const struct thread_groups *g, struct actor *actor, struct strtab *names)
{
	const bool is_thread = actor->kind == FLOW_PREEMPTING || actor->kind == FLOW_RUNNING || actor->kind == FLOW_HYPERVISOR;
	if (!g || actor->tid <= 0 || actor->machine < 0 || !is_thread)
		return;
	const int thread = catalog_find_thread(g->catalog, (uint32_t)actor->machine, actor->tid);
	if (thread < 0)
		return;
	const struct actor *group = &g->group.actor[g->of[thread]];
	actor->tid = group->tid;
	actor->name = strtab_put(names, strtab_get(&g->names, group->name));
}
