/* Who took most while a request's server wanted a CPU: of the foreign entries of that thread's flow, as gaps tell it. */
#include "base/mem.h"
#include "base/text.h"
#include "latency/attribution.h"

int request_container(const struct topo *topo, uint32_t machine, int32_t tid)
{
	for (uint32_t m = 0; topo->machine[machine].kind != MACHINE_VM && m < topo->machines; m++) {
		if (topo->machine[m].kind == MACHINE_CONTAINER && topo_find_thread(topo, m, tid) >= 0)
			return (int)m;
	}
	return -1;
}

/* Is this entry somebody else who held the CPU that the request's thread waited for? */
static bool is_foreign(const struct topo *topo, const struct flow_entry *e, uint32_t machine, int container)
{
	if (e->who.kind == FLOW_IDLE_CPU || e->who.kind == FLOW_LIMITED)
		return true;
	if (e->who.kind != FLOW_PREEMPTING && e->who.kind != FLOW_IRQ)
		return false;
	if (e->who.system < 0)
		return false;
	if (topo->machine[machine].kind == MACHINE_VM)
		return e->who.system != (int32_t)machine;
	return container < 0 || (e->who.system != container && topo_find_thread(topo, (uint32_t)container, e->who.tid) < 0);
}

int request_find_culprit(const struct topo *topo, struct request *r, struct error *err)
{
	int machine = topo_find_machine(topo, r->machine);
	int thread = machine < 0 || r->tid < 0 ? -1 : topo_find_thread(topo, (uint32_t)machine, r->tid);
	if (thread < 0 || r->high == r->unknown)
		return 0;
	int container = request_container(topo, (uint32_t)machine, r->tid);
	struct flow f;
	struct subject subject = { SUBJECT_THREAD, (uint32_t)thread };
	if (flow_of(topo, &subject, r->start, r->end, &(struct flow_options){ 0 }, &f, err))
		return -1;
	size_t n = 0;
	for (size_t i = 0; i < f.entries; i++)
		if (is_foreign(topo, &f.entry[i], (uint32_t)machine, container))
			f.entry[n++] = f.entry[i];
	struct thief thief;
	flow_thief(topo, &subject, f.entry, n, &thief);
	const struct party *who = &thief.who;
	char system[256] = "", name[256] = "";
	if (who->system >= 0)
		text_escape(system, sizeof system, topo->machine[who->system].name);
	text_escape(name, sizeof name, who->name < f.names ? f.name[who->name] : "");
	if (who->kind == FLOW_IDLE_CPU)
		r->culprit = mem_dup("idle CPU");
	else if (who->tid >= 0)
		r->culprit = mem_printf("%s/%d %s", system, (int)who->tid, name);
	else if (who->kind != FLOW_RUNNING)
		r->culprit = mem_printf("%s%s%s", system, *system && *name ? " " : "", name);
	flow_release(&f);
	return 0;
}
