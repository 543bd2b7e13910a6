/* A request's top culprit: the longest entry of another actor in the flow of its server thread, as for gaps. */
#include "base/base.h"
#include "latency/attribution.h"

int request_container(const struct catalog *catalog, uint32_t machine, int32_t tid)
{
	for (uint32_t m = 0; catalog->machine[machine].kind != MACHINE_VM && m < catalog->machines; m++) {
		if (catalog->machine[m].kind == MACHINE_CONTAINER && catalog_find_thread(catalog, m, tid) >= 0)
			return (int)m;
	}
	return -1;
}

/* Returns true if the entry is an actor outside the server's VM, container or process that kept the CPU from the
 * thread. */
static bool is_other_actor(const struct catalog *catalog, const struct flow_entry *e, uint32_t machine, int container)
{
	if (e->actor.kind == FLOW_IDLE_CPU || e->actor.kind == FLOW_LIMITED)
		return true;
	if (!flow_is_thread(e->actor.kind) && e->actor.kind != FLOW_IRQ)
		return false;
	if (e->actor.machine < 0)
		return false;
	if (catalog->machine[machine].kind == MACHINE_VM)
		return e->actor.machine != (int32_t)machine;
	return container < 0 ||
	       (e->actor.machine != container && catalog_find_thread(catalog, (uint32_t)container, e->actor.tid) < 0);
}

int request_find_culprit(const struct catalog *catalog, struct request *r, struct error *err)
{
	int machine = catalog_find_machine(catalog, r->machine);
	int thread = machine < 0 || r->tid < 0 ? -1 : catalog_find_thread(catalog, (uint32_t)machine, r->tid);
	struct target target = { TARGET_THREAD, (uint32_t)thread };
	if (thread < 0 || r->high == r->unknown)
		return 0;
	int container = request_container(catalog, (uint32_t)machine, r->tid);
	struct flow f;
	if (query_answer(flow_open(catalog, &target, r->start, r->end, &(struct flow_options){ 0 }, err), &f, err))
		return -1;
	size_t n = 0;
	for (size_t i = 0; i < f.entries; i++)
		if (is_other_actor(catalog, &f.entry[i], (uint32_t)machine, container))
			f.entry[n++] = f.entry[i];
	struct top_culprit culprit;
	flow_top_culprit(catalog, &target, f.entry, n, &culprit);
	const struct actor *culprit_actor = &culprit.actor;
	char system[256] = "", name[256] = "";
	if (culprit_actor->machine >= 0)
		text_escape(system, sizeof system, catalog->machine[culprit_actor->machine].name);
	text_escape(name, sizeof name, culprit_actor->name < f.names ? f.name[culprit_actor->name] : "");
	if (culprit_actor->kind == FLOW_IDLE_CPU)
		r->culprit = mem_dup("idle CPU");
	else if (culprit_actor->tid >= 0)
		r->culprit = mem_printf("%s/%d %s", system, (int)culprit_actor->tid, name);
	else if (culprit_actor->kind != FLOW_RUNNING)
		r->culprit = mem_printf("%s%s%s", system, *system && *name ? " " : "", name);
	flow_release(&f);
	return 0;
}
