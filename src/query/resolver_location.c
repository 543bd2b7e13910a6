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

int resolver_machine(struct resolver *r, const struct thread_ref *w, int64_t t, int32_t *machine)
{
	int64_t status = HISTORY_NULL;
	for (struct thread_ref *c = w->in_container; c && status == HISTORY_NULL; c = c->in_container) {
		if (track_at(r, &thread_tracks(r, c)[TRACK_STATUS], t, &status) < 0)
			return -1;
		*machine = status == HISTORY_NULL ? w->machine : c->machine;
	}
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

/* number: the CPU's, as recorded. */
int resolver_find_lower_cpu(struct resolver *r, uint32_t v, int64_t t, int64_t number, int *cpu)
{
	const struct catalog_cpu *vcpu = &r->catalog->cpu[v];
	const int32_t machine = r->catalog->machine[vcpu->machine].parent;
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

int resolve_gap(struct resolver *r, const struct target *target, const struct interval *status, int64_t t,
                struct resolution *out, int *cpu, int32_t *waiting)
{
	r->row_status = status;
	r->awaited_cpu = -1;
	const int rc = resolve_target(r, target, t, out);
	r->row_status = NULL;
	*cpu = r->awaited_cpu;
	*waiting = r->awaited_by;
	return rc < 0 ? -1 : *cpu >= 0;
}

int resolve_occupied_cpu(struct resolver *r, const struct target *target, int64_t t, int *cpu)
{
	*cpu = target->kind == TARGET_CPU ? (int)target->index : -1;
	if (target->kind == TARGET_THREAD) {
		const struct catalog_thread *th = &r->catalog->thread[target->index];
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
