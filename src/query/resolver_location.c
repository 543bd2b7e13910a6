/* Locations at a time: the thread that executes a vCPU, the vCPU that a thread executes, the outer machine's CPU of a
 * vCPU. */
#include "query/resolver.h"

#define MACHINES_NESTED 8  /* limit of nested machines */

int resolver_cpu_index(const struct resolver *r, int32_t machine, int64_t number)
{
	if (machine < 0 || number < 0 || number > INT16_MAX)
		return -1;
	return catalog_find_cpu(r->catalog, (uint32_t)machine, (unsigned)number);
}

/* Finds the thread that executes vCPU v at t: from the vCPU's "Host Thread" attribute if it has a value, otherwise from
 * the catalog. */
int resolver_vcpu_thread(struct resolver *r, uint32_t v, int64_t t, struct thread_ref **out)
{
	const struct catalog_cpu *cpu = &r->catalog->cpu[v];
	int64_t tid = HISTORY_NULL;
	*out = NULL;
	if (cpu->host < 0)
		return 0;
	const struct catalog_thread *th = &r->catalog->thread[cpu->host];
	if (track_at(r, &resolver_cpu(r, v)->host_thread, t, &tid) < 0)
		return -1;
	if (tid <= 0 || tid > INT32_MAX)
		tid = th->tid;
	struct cpu_tracks *c = resolver_cpu(r, v);
	if (c->vcpu_tid != tid) {
		c->vcpu_thread = resolver_thread(r, th->machine, (int32_t)tid);
		c->vcpu_tid = tid;
	}
	*out = c->vcpu_thread;
	return 0;
}

int resolver_find_vcpu(struct resolver *r, const struct thread_ref *w, int64_t t, int *vcpu)
{
	*vcpu = -1;
	for (int32_t i = r->catalog->thread[w->thread].role; i >= 0; i = r->catalog->role[i].next) {
		uint32_t v = r->catalog->role[i].vcpu;
		int64_t tid;
		if (track_at(r, &resolver_cpu(r, v)->host_thread, t, &tid) < 0)
			return -1;
		if (tid == w->tid || r->catalog->cpu[v].host_thread == HISTORY_NONE) {
			*vcpu = (int)v;
			return 0;
		}
	}
	return 0;
}

int resolver_lower_cpu(struct resolver *r, uint32_t v, int64_t t, int *cpu)
{
	const struct catalog_cpu *vcpu = &r->catalog->cpu[v];
	int64_t number = HISTORY_NULL;
	int32_t machine = r->catalog->machine[vcpu->machine].parent;
	if (track_at(r, &resolver_cpu(r, v)->pcpu, t, &number) < 0)
		return -1;
	if (vcpu->pcpu == HISTORY_NONE && vcpu->host >= 0) {
		struct thread_ref *h;
		if (resolver_vcpu_thread(r, v, t, &h) < 0 || track_at(r, &thread_tracks(r, h)[TRACK_CPU], t, &number) < 0)
			return -1;
	}
	struct cpu_tracks *c = resolver_cpu(r, v);
	if (c->lower_number != number) {
		c->lower_cpu = resolver_cpu_index(r, machine, number);
		c->lower_number = number;
	}
	*cpu = c->lower_cpu;
	return 0;
}

/* Finds the pCPU for which the thread of vCPU v waits at t; state: status of the vCPU, PREEMPTED or WAKING. */
static int vcpu_awaited_cpu(struct resolver *r, uint32_t v, int state, int64_t t, int *cpu, int32_t *self)
{
	int64_t value;
	struct thread_ref *h;
	if (state != VCPU_PREEMPTED && state != VCPU_WAKING)
		return 0;
	if (track_at(r, &resolver_cpu(r, v)->out_by, t, &value) < 0)
		return -1;
	if (value != HISTORY_NULL)
		return 0;
	if (resolver_lower_cpu(r, v, t, cpu) < 0 || resolver_vcpu_thread(r, v, t, &h) < 0)
		return -1;
	if (h && r->catalog->folded && track_at(r, &thread_tracks(r, h)[TRACK_STATUS], t, &value) < 0)
		return -1;
	if (h && r->catalog->folded && thread_state(r, value) == THREAD_BLOCKED)
		return 0;
	*self = h ? h->thread : -1;
	return 1;
}

/* The same for a thread of a guest that waits for vCPU v, or that is current on v, while v is off its CPU. */
static int guest_thread_awaited_cpu(struct resolver *r, int state, uint32_t v, int64_t t, int *cpu, int32_t *self)
{
	int64_t status;
	struct thread_ref *h;
	if (r->catalog->cpu[v].status == HISTORY_NONE)
		return 0;
	if (track_at(r, &resolver_cpu(r, v)->status, t, &status) < 0)
		return -1;
	if (status == HISTORY_NULL)
		return 0;
	int vstate = vcpu_state(r, status);
	if (vstate == VCPU_IDLE && state == THREAD_PREEMPTED) {
		/* The vCPU has left its sleep for this thread, and its own thread waits for a pCPU. */
		if (resolver_vcpu_thread(r, v, t, &h) < 0)
			return -1;
		if (!h)
			return 0;
		if (track_at(r, &thread_tracks(r, h)[TRACK_STATUS], t, &status) < 0)
			return -1;
		const int host = thread_state(r, status);
		vstate = host == THREAD_PREEMPTED || host == THREAD_VIRT_PREEMPTED ? VCPU_PREEMPTED : VCPU_IDLE;
	}
	return vcpu_awaited_cpu(r, v, vstate, t, cpu, self);
}

/* The same for a thread. */
static int thread_awaited_cpu(struct resolver *r, uint32_t thread, int state, int64_t t, int *cpu, int32_t *self)
{
	const struct catalog_thread *th = &r->catalog->thread[thread];
	struct thread_ref *w = resolver_thread(r, th->machine, th->tid);
	const int32_t machine = cpu_machine(r->catalog, th->machine);
	int64_t number, limit;
	if ((state != THREAD_PREEMPTED && state != THREAD_VIRT_PREEMPTED) || th->role >= 0)
		return 0;
	if (track_at(r, &thread_tracks(r, w)[TRACK_OUT_BY], t, &limit) < 0)
		return -1;
	if (limit != HISTORY_NULL)
		return 0;
	if (track_at(r, &thread_tracks(r, w)[TRACK_CPU], t, &number) < 0)
		return -1;
	if (w->cpu_number != number) {
		w->cpu = resolver_cpu_index(r, machine, number);
		w->cpu_number = number;
	}
	*cpu = w->cpu;
	if (!is_host(r->catalog, th->machine))
		return w->cpu < 0 ? 0 : guest_thread_awaited_cpu(r, state, (uint32_t)w->cpu, t, cpu, self);
	*self = machine < 0 ? w->thread : resolver_thread(r, (uint32_t)machine, th->tid)->thread;
	return state == THREAD_PREEMPTED;
}

int resolve_awaited_cpu(struct resolver *r, const struct target *s, int64_t state, int64_t t, int *cpu, int32_t *self)
{
	const int found = s->kind == TARGET_CPU
		? vcpu_awaited_cpu(r, s->index, vcpu_state(r, state), t, cpu, self)
		: thread_awaited_cpu(r, s->index, thread_state(r, state), t, cpu, self);
	if (found <= 0)
		return found;
	return *cpu >= 0 && r->catalog->machine[r->catalog->cpu[*cpu].machine].kind == MACHINE_HOST;
}

int resolve_occupied_cpu(struct resolver *r, const struct target *s, int64_t t, int *cpu)
{
	*cpu = s->kind == TARGET_CPU ? (int)s->index : -1;
	if (s->kind == TARGET_THREAD) {
		const struct catalog_thread *th = &r->catalog->thread[s->index];
		struct thread_ref *w = resolver_thread(r, th->machine, th->tid);
		int64_t number;
		if (track_at(r, &thread_tracks(r, w)[TRACK_CPU], t, &number) < 0)
			return -1;
		*cpu = resolver_cpu_index(r, cpu_machine(r->catalog, th->machine), number);
	}
	/* A hostile history may contain a cycle of machines: the number of steps is limited. */
	for (int depth = 0; *cpu >= 0 && r->catalog->machine[r->catalog->cpu[*cpu].machine].kind == MACHINE_VM; depth++) {
		if (depth > MACHINES_NESTED)
			*cpu = -1;
		else if (resolver_lower_cpu(r, (uint32_t)*cpu, t, cpu) < 0)
			return -1;
	}
	return 0;
}
