/* Where things are at a moment: the thread that executes a vCPU, the vCPU that a thread executes, the CPU below. */
#include "query/resolver.h"

int resolver_cpu_index(const struct resolver *r, int32_t machine, int64_t number)
{
	if (machine < 0 || number < 0 || number > INT16_MAX)
		return -1;
	return topo_find_cpu(r->topo, (uint32_t)machine, (unsigned)number);
}

/* The thread that executes vCPU v at t, by the vCPU's own "Host Thread" when it is told, else as topo knows it. */
int resolver_host(struct resolver *r, uint32_t v, int64_t t, struct who **out)
{
	const struct topo_cpu *cpu = &r->topo->cpu[v];
	int64_t tid = HISTORY_NULL;
	*out = NULL;
	if (cpu->host < 0)
		return 0;
	const struct topo_thread *th = &r->topo->thread[cpu->host];
	if (track_at(r, &resolver_cpu(r, v)->host_thread, t, &tid) < 0)
		return -1;
	if (tid <= 0 || tid > INT32_MAX)
		tid = th->tid;
	struct cpu_tracks *c = resolver_cpu(r, v);
	if (c->host_tid != tid) {
		c->host_who = resolver_who(r, th->machine, (int32_t)tid);
		c->host_tid = tid;
	}
	*out = c->host_who;
	return 0;
}

int resolver_vcpu_of(struct resolver *r, const struct who *w, int64_t t, int *vcpu)
{
	*vcpu = -1;
	for (int32_t i = r->topo->thread[w->thread].role; i >= 0; i = r->topo->role[i].next) {
		uint32_t v = r->topo->role[i].vcpu;
		int64_t tid;
		if (track_at(r, &resolver_cpu(r, v)->host_thread, t, &tid) < 0)
			return -1;
		if (tid == w->tid || r->topo->cpu[v].host_thread == HISTORY_NONE) {
			*vcpu = (int)v;
			return 0;
		}
	}
	return 0;
}

int resolver_below(struct resolver *r, uint32_t v, int64_t t, int *cpu)
{
	const struct topo_cpu *is = &r->topo->cpu[v];
	int64_t number = HISTORY_NULL;
	int32_t machine = r->topo->machine[is->machine].parent;
	if (track_at(r, &resolver_cpu(r, v)->pcpu, t, &number) < 0)
		return -1;
	if (is->pcpu == HISTORY_NONE && is->host >= 0) {
		struct who *h;
		if (resolver_host(r, v, t, &h) < 0 || track_at(r, &resolver_own(r, h)[OWN_CPU], t, &number) < 0)
			return -1;
	}
	struct cpu_tracks *c = resolver_cpu(r, v);
	if (c->below_number != number) {
		c->below = resolver_cpu_index(r, machine, number);
		c->below_number = number;
	}
	*cpu = c->below;
	return 0;
}

int resolve_waits_for(struct resolver *r, const struct subject *s, int64_t state, int64_t t, int *cpu, int32_t *self)
{
	int64_t number;
	if (s->kind == SUBJECT_CPU) {
		struct who *h;
		const int is = vcpu_state(r, state);
		if (is != VCPU_PREEMPTED && is != VCPU_WAKING)
			return 0;
		if (track_at(r, &resolver_cpu(r, s->index)->out_by, t, &number) < 0)
			return -1;
		if (number != HISTORY_NULL)
			return 0;
		if (resolver_below(r, s->index, t, cpu) < 0 || resolver_host(r, s->index, t, &h) < 0)
			return -1;
		if (h && r->topo->folded && track_at(r, &resolver_own(r, h)[OWN_STATUS], t, &number) < 0)
			return -1;
		if (h && r->topo->folded && thread_state(r, number) == THREAD_BLOCKED)
			return 0;
		*self = h ? h->thread : -1;
	} else {
		const struct topo_thread *th = &r->topo->thread[s->index];
		struct who *w = resolver_who(r, th->machine, th->tid);
		if (thread_state(r, state) != THREAD_PREEMPTED || !is_host(r->topo, th->machine))
			return 0;
		if (track_at(r, &resolver_own(r, w)[OWN_CPU], t, &number) < 0)
			return -1;
		int32_t host = cpus_of(r->topo, th->machine);
		*cpu = resolver_cpu_index(r, host, number);
		*self = host < 0 ? w->thread : resolver_who(r, (uint32_t)host, th->tid)->thread;
	}
	return *cpu >= 0 && r->topo->machine[r->topo->cpu[*cpu].machine].kind == MACHINE_HOST;
}
