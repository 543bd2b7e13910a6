/* Finds the actor that has a CPU at a time: Algorithm 2 of Gebai et al. 2014 ("Execution flow recovery"), made
 * recursive.
 *
 * A thread waits for a CPU of its machine.
 *
 * - A pCPU belongs to its interrupt handler, its current thread, or none of them (idle).
 * - A vCPU that executes belongs to its guest's interrupt handler or current thread.
 * - A vCPU that does not execute is a thread of the outer machine that waits for a CPU there, and so on down to the
 *   host.
 * - If the thread found on a host CPU is a vCPU itself, the result is the current thread of its guest, and so on up
 *   again.
 *
 * Contradictions in the history (a thread that waits for itself) and lost events result in FLOW_UNKNOWN, without a
 * culprit. The recursion is bounded, because a damaged or hostile history may contain a cycle. */
#include "query/resolver.h"

#include <string.h>

#define DEPTH_MAX 8  /* maximum number of nested machines */
#define ALWAYS_INLINE inline __attribute__((always_inline))  /* short steps, which an index takes for most intervals */

static int resolution_set(struct resolution *out, enum flow_kind kind)
{
	*out = (struct resolution){ { -1, -1, 0, (uint16_t)kind, 0 }, .host_thread = -1, .pcpu = -1 };
	return 0;
}

static int64_t ns_after(int64_t end)
{
	return end == INT64_MAX ? end : end + 1;
}

static inline bool same_thread(const struct catalog *t, const struct thread_ref *a, const struct thread_ref *b)
{
	return a && b && a->tid == b->tid && cpu_machine(t, (uint32_t)a->machine) == cpu_machine(t, (uint32_t)b->machine);
}

/* Sets actor->machine and actor->name for thread w at t. */
static inline int actor_set_thread(struct resolver *r, struct thread_ref *w, int64_t t, struct actor *out)
{
	out->machine = w->machine;
	if (w->in_container && cpu_machine(r->catalog, (uint32_t)w->machine) == w->machine &&
	    resolver_machine(r, w, t, &out->machine) < 0)
		return -1;
	return resolver_thread_name(r, w, t, &out->name);
}

/* Returns the current thread of CPU c; tid: its TID, > 0. */
static inline struct thread_ref *current_thread(struct resolver *r, uint32_t c, int64_t tid)
{
	struct thread_ref **cached = &resolver_cpu(r, c)->current[tid % RECENT_THREADS];
	if (!*cached || (*cached)->tid != tid)
		*cached = resolver_thread(r, r->catalog->cpu[c].machine, (int32_t)tid);
	return *cached;
}

static int resolve_handler(struct resolver *r, uint32_t c, int64_t value, struct resolution *out)
{
	const struct catalog_cpu *cpu = &r->catalog->cpu[c];
	resolution_set(out, FLOW_IRQ);
	out->actor.machine = (int32_t)cpu->machine;
	out->actor.name = r->shallow ? 0 : resolver_name_id(r, value);
	if (is_host(r->catalog, cpu->machine))
		out->pcpu = (int16_t)cpu->number;
	return 1;
}

/* Finds the interrupt handler on CPU c at t. Returns 1 and fills *out, 0 = no handler, -1 = error. */
static inline int handler_at(struct resolver *r, uint32_t c, int64_t t, struct resolution *out)
{
	int64_t value;
	if (track_at(r, &resolver_cpu(r, c)->interrupt, t, &value) < 0)
		return -1;
	return value == HISTORY_NULL ? 0 : resolve_handler(r, c, value, out);
}

/* Fills *out with the thread that runs when w has a CPU: w itself, or if w is a vCPU, the current thread of its guest. */
static int running_thread_at(struct resolver *r, struct thread_ref *w, int64_t t, struct resolution *out, int depth)
{
	int v;
	if (resolver_vcpu(r, w, t, &v) < 0)
		return -1;
	if (v < 0 || depth > DEPTH_MAX) {
		out->actor.tid = r->shallow ? -1 : w->tid;
		return actor_set_thread(r, w, t, &out->actor);
	}
	uint32_t guest = r->catalog->cpu[v].machine;
	struct cpu_tracks *c = resolver_cpu(r, (uint32_t)v);
	int64_t tid = HISTORY_NULL;
	if (!r->vcpus_only && (!r->shallow || r->catalog->machine[guest].runs_vms) && track_at(r, &c->running, t, &tid) < 0)
		return -1;
	if (tid >= r->no_idle_task && tid <= INT32_MAX)
		return running_thread_at(r, current_thread(r, (uint32_t)v, tid), t, out, depth + 1);
	out->actor.machine = (int32_t)guest;  /* the guest has no trace, its current thread is unknown, or it is idle */
	out->actor.tid = -1;
	out->actor.name = r->shallow ? 0 : c->name;
	return 0;
}

/* Finds the actor that has CPU c of the host at t. waiting: thread that waits for the CPU, so it cannot have it. */
static int pcpu_at(struct resolver *r, uint32_t c, int64_t t, const struct thread_ref *waiting, struct resolution *out)
{
	const struct catalog_cpu *cpu = &r->catalog->cpu[c];
	int64_t tid;
	if (r->row_status) {
		const struct thread_ref *w = waiting && waiting->machine != (int32_t)cpu->machine
			? resolver_thread(r, cpu->machine, waiting->tid) : waiting;
		r->awaited_cpu = (int)c;
		r->awaited_by = w ? w->thread : -1;
		return resolution_set(out, FLOW_UNKNOWN);
	}
	int irq = handler_at(r, c, t, out);
	if (irq != 0)
		return irq < 0 ? -1 : 0;
	if (track_at(r, &resolver_cpu(r, c)->running, t, &tid) < 0)
		return -1;
	resolution_set(out, tid == 0 ? FLOW_IDLE_CPU : FLOW_UNKNOWN);
	out->pcpu = (int16_t)cpu->number;
	if (tid <= 0 || tid > INT32_MAX)
		return 0;
	struct thread_ref *w = current_thread(r, c, tid);
	if (same_thread(r->catalog, w, waiting))
		return 0;
	out->actor.kind = FLOW_PREEMPTING;
	out->host_thread = w->thread;
	return running_thread_at(r, w, t, out, 0);
}

/* Fills *out with the waker of the thread with these tracks: the current thread of the waker's CPU, or the handler that
 * had interrupted it. If the history does not distinguish them, the waker is unknown, except for the idle task of an
 * idle CPU: there only interrupts wake threads. */
static int resolve_waker(struct resolver *r, struct row_track *tracks, int32_t machine, int32_t tid, int64_t woken,
                         struct resolution *out)
{
	int64_t in;
	if (track_at(r, &tracks[TRACK_WOKEN_IN], woken, &in) < 0)
		return -1;
	if (in != HISTORY_NULL && strcmp(history_string(r->catalog->h, in), "thread") != 0) {
		out->actor.machine = machine;
		out->actor.name = resolver_name_id(r, in);
		return 0;
	}
	if (in == HISTORY_NULL && tid != 0)
		return 0;
	struct thread_ref *waker = resolver_thread(r, (uint32_t)machine, tid);
	out->actor.tid = tid;
	return actor_set_thread(r, waker, woken, &out->actor);
}

/* The thread sleeps in the current interval of its (or its vCPU's) status; woken: first ns after that interval. */
static int waiting_at(struct resolver *r, struct thread_ref *w, int64_t woken, struct resolution *out)
{
	int64_t until = r->until, value, status;
	int32_t machine, tid;
	resolution_set(out, FLOW_WAITING);
	if (!w || r->shallow || r->no_wakers || woken > history_last(r->catalog->h))
		return 0;
	struct row_track *tracks = thread_tracks(r, w);
	/* A sleep that ends with a wakeup has a waker; a sleep that ends with lost events or with the thread's exit has
	 * none. */
	if (track_at(r, &tracks[TRACK_WAKER], woken, &value) < 0 || track_at(r, &tracks[TRACK_STATUS], woken, &status) < 0)
		return -1;
	if (thread_state(r, status) == THREAD_UNKNOWN || value == HISTORY_NULL) {
		r->until = until;
		return 0;
	}
	int rc = resolver_waker(r, value, &machine, &tid) ? resolve_waker(r, tracks, machine, tid, woken, out) : 0;
	r->until = until;
	return rc;
}

static int cpu_at(struct resolver *r, uint32_t c, int64_t t, const struct thread_ref *waiting, struct resolution *out,
                  int depth);

/* Checks if a limit (quota, pause, ...) keeps vCPU v, which is off the CPU at t, from running. Returns 1 and fills *out,
 * 0 if not, -1 on error. */
static int limit_at(struct resolver *r, uint32_t v, int64_t t, struct resolution *out)
{
	int64_t reason;
	int below;
	if (track_at(r, &resolver_cpu(r, v)->out_by, t, &reason) < 0)
		return -1;
	if (reason < 0 || reason >= HISTORY_STATES)
		return 0;
	if (resolver_lower_cpu(r, v, t, &below) < 0)
		return -1;
	resolution_set(out, FLOW_LIMITED);
	out->actor.reason = r->catalog->out_reason[reason];
	out->actor.name = r->limit[out->actor.reason];
	if (below >= 0 && is_host(r->catalog, r->catalog->cpu[below].machine))
		out->pcpu = (int16_t)r->catalog->cpu[below].number;
	return 1;
}

/* The same for the limit of a thread's control group. */
static int thread_limit_at(struct resolver *r, struct thread_ref *w, int64_t t, struct resolution *out)
{
	int64_t reason, cpu;
	struct row_track *tracks = thread_tracks(r, w);
	if (track_at(r, &tracks[TRACK_OUT_BY], t, &reason) < 0)
		return -1;
	if (reason < 0 || reason >= HISTORY_STATES)
		return 0;
	if (track_at(r, &tracks[TRACK_CPU], t, &cpu) < 0)
		return -1;
	resolution_set(out, FLOW_LIMITED);
	out->actor.reason = r->catalog->out_reason[reason];
	out->actor.name = r->limit[out->actor.reason];
	if (is_host(r->catalog, (uint32_t)w->machine) && cpu >= 0 && cpu <= INT16_MAX)
		out->pcpu = (int16_t)cpu;
	return 1;
}

/* Finds the reason for which vCPU v, which has work, is off the CPU at t. */
static int off_cpu_at(struct resolver *r, uint32_t v, int state, int64_t t, struct resolution *out, int depth)
{
	struct thread_ref *h;
	int64_t woken = ns_after(resolver_cpu(r, v)->status.iv.end);
	int limited = limit_at(r, v, t, out);
	if (limited != 0)
		return limited < 0 ? -1 : 0;
	if (resolver_vcpu_thread(r, v, t, &h) < 0)
		return -1;
	if (h && r->catalog->folded) {
		int64_t status;
		struct row_track *tracks = thread_tracks(r, h);
		if (track_at(r, &tracks[TRACK_STATUS], t, &status) < 0)
			return -1;
		/* HOST_BLOCKED was folded into PREEMPTED when the history was built, as in the paper. */
		if (thread_state(r, status) == THREAD_BLOCKED)
			return waiting_at(r, h, ns_after(tracks[TRACK_STATUS].iv.end), out);
	}
	if (state == VCPU_HOST_BLOCKED)
		return waiting_at(r, h, woken, out);
	int below;
	if (resolver_lower_cpu(r, v, t, &below) < 0)
		return -1;
	if (below < 0)
		return resolution_set(out, FLOW_UNKNOWN);
	return cpu_at(r, (uint32_t)below, t, h, out, depth + 1);
}

static int thread_at(struct resolver *r, struct thread_ref *w, int64_t t, struct resolution *out, int depth);

/* The same as lower_level_at() for a vCPU of a machine on CPU `below` of a VM. */
static int lower_guest_at(struct resolver *r, uint32_t v, int64_t t, struct resolution *out, int16_t *pcpu, int depth)
{
	struct thread_ref *h;
	if (resolver_vcpu_thread(r, v, t, &h) < 0)
		return -1;
	if (!h || depth > DEPTH_MAX)
		return 0;
	if (thread_at(r, h, t, out, depth + 1) < 0)
		return -1;
	*pcpu = out->pcpu;
	return out->actor.kind != FLOW_RUNNING;
}

/* Checks vCPU v, which executes guest code according to its own status. Returns 1 and fills *out if it does not execute:
 * a handler has the CPU of the outer machine, or the outer machine is itself off the CPU. Otherwise returns 0 and sets
 * *pcpu. */
static ALWAYS_INLINE int lower_level_at(struct resolver *r, uint32_t v, int64_t t, struct resolution *out, int16_t *pcpu,
                                        int depth)
{
	int below;
	*pcpu = -1;
	if (resolver_lower_cpu(r, v, t, &below) < 0)
		return -1;
	if (below < 0)
		return 0;
	const struct catalog_cpu *cpu = &r->catalog->cpu[below];
	if (!is_host(r->catalog, cpu->machine))
		return lower_guest_at(r, v, t, out, pcpu, depth);
	*pcpu = (int16_t)cpu->number;
	return handler_at(r, (uint32_t)below, t, out);
}

/* Fills *out: the hypervisor works on vCPU v (VMM state) on behalf of thread `tid` of the guest. */
static ALWAYS_INLINE int vmm_at(struct resolver *r, uint32_t v, int64_t tid, int64_t t, struct resolution *out, int depth)
{
	int16_t pcpu;
	int is_off_cpu = lower_level_at(r, v, t, out, &pcpu, depth);
	if (is_off_cpu != 0)
		return is_off_cpu < 0 ? -1 : 0;
	resolution_set(out, FLOW_HYPERVISOR);
	out->actor.machine = (int32_t)r->catalog->cpu[v].machine;
	out->pcpu = pcpu;
	if (r->shallow)
		return 0;
	if (tid < 0 || tid > INT32_MAX) {
		out->actor.name = resolver_cpu(r, v)->name;
		return 0;
	}
	out->actor.tid = (int32_t)tid;
	return resolver_thread_name(r, resolver_thread(r, r->catalog->cpu[v].machine, (int32_t)tid), t, &out->actor.name);
}

/* Finds the actor that has vCPU v, which executes guest code, at t: a handler or the current thread of the guest. */
static ALWAYS_INLINE int guest_at(struct resolver *r, uint32_t v, int64_t t, const struct thread_ref *waiting,
                                  struct resolution *out, int depth)
{
	int16_t pcpu;
	int64_t tid;
	int is_off_cpu = lower_level_at(r, v, t, out, &pcpu, depth);
	if (is_off_cpu != 0)
		return is_off_cpu < 0 ? -1 : 0;
	int irq = handler_at(r, v, t, out);
	if (irq < 0)
		return -1;
	if (!irq) {
		if (track_at(r, &resolver_cpu(r, v)->running, t, &tid) < 0)
			return -1;
		resolution_set(out, tid == 0 ? FLOW_IDLE_CPU : FLOW_UNKNOWN);
		struct thread_ref *w = tid <= 0 || tid > INT32_MAX ? NULL : current_thread(r, v, tid);
		if (w && !same_thread(r->catalog, w, waiting)) {
			out->actor.kind = FLOW_PREEMPTING;
			if (running_thread_at(r, w, t, out, 0) < 0)
				return -1;
		} else if (tid == HISTORY_NULL && !waiting) {
			out->actor.kind = FLOW_PREEMPTING;  /* the target is the vCPU itself, and its guest has no trace */
			out->actor.machine = (int32_t)r->catalog->cpu[v].machine;
			out->actor.name = r->shallow ? 0 : resolver_cpu(r, v)->name;
		}
	}
	out->pcpu = pcpu;
	return 0;
}

/* Finds the cause for which vCPU v is idle although a thread is runnable on it: before the guest left its idle state,
 * the VM may have been paused, or the vCPU's thread preempted. */
static int wanted_idle_vcpu_at(struct resolver *r, uint32_t v, int64_t t, struct resolution *out, int depth)
{
	struct thread_ref *h;
	int64_t status;
	int limited = limit_at(r, v, t, out);
	if (limited != 0)
		return limited < 0 ? -1 : 0;
	if (resolver_vcpu_thread(r, v, t, &h) < 0)
		return -1;
	if (!h)
		return resolution_set(out, FLOW_IDLE_CPU);
	if (track_at(r, &thread_tracks(r, h)[TRACK_STATUS], t, &status) < 0)
		return -1;
	int state = thread_state(r, status);
	if (state != THREAD_PREEMPTED && state != THREAD_VIRT_PREEMPTED)
		return resolution_set(out, FLOW_IDLE_CPU);
	return off_cpu_at(r, v, VCPU_PREEMPTED, t, out, depth);
}

/* Finds the actor that has CPU c, for which a thread waits, at t. */
static int cpu_at(struct resolver *r, uint32_t c, int64_t t, const struct thread_ref *waiting, struct resolution *out,
                  int depth)
{
	const struct catalog_cpu *cpu = &r->catalog->cpu[c];
	struct cpu_tracks *k = resolver_cpu(r, c);
	int64_t status, tid;
	if (is_host(r->catalog, cpu->machine))
		return pcpu_at(r, c, t, waiting, out);
	if (depth > DEPTH_MAX)
		return resolution_set(out, FLOW_UNKNOWN);
	if (track_at(r, &k->status, t, &status) < 0)
		return -1;
	if (status == HISTORY_NULL)  /* without a host trace only the guest's events are used; where they are missing, the
	                              * actor is unknown */
		return cpu->status == HISTORY_NONE ? guest_at(r, c, t, waiting, out, depth) : resolution_set(out, FLOW_UNKNOWN);
	int state = vcpu_state(r, status);
	switch (state) {
	case VCPU_RUNNING:
		return guest_at(r, c, t, waiting, out, depth);
	case VCPU_VMM:
		if (track_at(r, &k->running, t, &tid) < 0)
			return -1;
		return vmm_at(r, c, tid, t, out, depth);
	case VCPU_PREEMPTED:
	case VCPU_HOST_BLOCKED:
	case VCPU_WAKING:
		return off_cpu_at(r, c, state, t, out, depth);
	case VCPU_IDLE:
		return wanted_idle_vcpu_at(r, c, t, out, depth);
	default:
		return resolution_set(out, FLOW_UNKNOWN);
	}
}

/* Resolves a thread that is current on vCPU v, which does not execute. */
static ALWAYS_INLINE int virt_preempted_at(struct resolver *r, const struct thread_ref *w, uint32_t v, int64_t t,
                                           struct resolution *out, int depth)
{
	int64_t status;
	if (track_at(r, &resolver_cpu(r, v)->status, t, &status) < 0)
		return -1;
	int state = vcpu_state(r, status);
	if (state == VCPU_VMM)
		return vmm_at(r, v, w->tid, t, out, depth);
	if (state == VCPU_PREEMPTED || state == VCPU_HOST_BLOCKED || state == VCPU_WAKING)
		return off_cpu_at(r, v, state, t, out, depth);
	return resolution_set(out, FLOW_UNKNOWN);
}

static int running_at(struct resolver *r, struct thread_ref *w, int c, int64_t t, struct resolution *out, int depth)
{
	int16_t pcpu = -1;
	int is_off_cpu = 0;
	if (c >= 0 && is_host(r->catalog, r->catalog->cpu[c].machine)) {
		pcpu = (int16_t)r->catalog->cpu[c].number;
		is_off_cpu = handler_at(r, (uint32_t)c, t, out);
	} else if (c >= 0) {
		is_off_cpu = lower_level_at(r, (uint32_t)c, t, out, &pcpu, depth);
		if (is_off_cpu == 0) {
			is_off_cpu = handler_at(r, (uint32_t)c, t, out);
			out->pcpu = is_off_cpu ? pcpu : -1;
		}
	}
	if (is_off_cpu != 0)
		return is_off_cpu < 0 ? -1 : 0;
	resolution_set(out, FLOW_RUNNING);
	out->actor.tid = w->tid;
	out->pcpu = pcpu;
	return actor_set_thread(r, w, t, &out->actor);
}

/* Finds the activity of thread w at t, or the actor that keeps it from running: the paper's Algorithm 1 at one time. */
static int thread_at(struct resolver *r, struct thread_ref *w, int64_t t, struct resolution *out, int depth)
{
	struct row_track *tracks = thread_tracks(r, w);
	int64_t status, number = HISTORY_NULL;
	if (r->row_status && depth == 0) {  /* w is the row */
		status = r->row_status->value;
		r->until = r->row_status->end < r->until ? r->row_status->end : r->until;
	} else if (track_at(r, &tracks[TRACK_STATUS], t, &status) < 0) {
		return -1;
	}
	if (status == HISTORY_NULL) {
		resolution_set(out, FLOW_UNKNOWN);
		out->actor.name = r->not_alive;
		return 0;
	}
	int state = thread_state(r, status);
	if (state == THREAD_BLOCKED)
		return waiting_at(r, w, ns_after(tracks[TRACK_STATUS].iv.end), out);
	if (state == THREAD_UNKNOWN)
		return resolution_set(out, FLOW_UNKNOWN);
	if (track_at(r, &tracks[TRACK_CPU], t, &number) < 0)
		return -1;
	if (w->cpu_number != number) {
		w->cpu = resolver_cpu_index(r, cpu_machine(r->catalog, (uint32_t)w->machine), number);
		w->cpu_number = number;
	}
	const int c = w->cpu;
	if (state == THREAD_RUNNING)
		return running_at(r, w, c, t, out, depth);
	int v, limited = 0;
	if (resolver_vcpu(r, w, t, &v) < 0 || (v >= 0 && (limited = limit_at(r, (uint32_t)v, t, out)) < 0))
		return -1;
	if (!limited && v < 0 && (limited = thread_limit_at(r, w, t, out)) < 0)
		return -1;
	if (limited)
		return 0;
	if (c < 0)
		return resolution_set(out, FLOW_UNKNOWN);
	if (state == THREAD_VIRT_PREEMPTED)
		return virt_preempted_at(r, w, (uint32_t)c, t, out, depth);
	if (cpu_at(r, (uint32_t)c, t, w, out, depth) < 0)
		return -1;
	/* The provider takes the time from the current thread, so that the times of the threads add up to the steal clock. */
	if (out->actor.kind == FLOW_LIMITED && out->actor.reason >= OUT_PROVIDER && out->actor.reason < OUT_VCPU_TAKEN) {
		out->actor.reason = OUT_VCPU_TAKEN;
		out->actor.name = r->limit[OUT_VCPU_TAKEN];
	}
	return 0;
}

/* Resolves an idle vCPU v: its thread sleeps until it is woken, or polls (it has a CPU and needs none). */
static int idle_vcpu_at(struct resolver *r, uint32_t v, int64_t t, struct resolution *out)
{
	struct thread_ref *h;
	int64_t status;
	resolution_set(out, FLOW_WAITING);
	if (r->shallow)
		return 0;
	if (resolver_vcpu_thread(r, v, t, &h) < 0)
		return -1;
	if (!h)
		return 0;
	struct row_track *tracks = thread_tracks(r, h);
	if (track_at(r, &tracks[TRACK_STATUS], t, &status) < 0)
		return -1;
	return thread_state(r, status) == THREAD_BLOCKED ? waiting_at(r, h, ns_after(tracks[TRACK_STATUS].iv.end), out) : 0;
}

/* Resolves a vCPU: its guest's current thread runs on it; if the guest is idle, the vCPU waits for its next waker. */
static ALWAYS_INLINE int vcpu_at(struct resolver *r, uint32_t v, int64_t t, struct resolution *out)
{
	int64_t status;
	if (track_at(r, &resolver_cpu(r, v)->status, t, &status) < 0)
		return -1;
	int state = vcpu_state(r, status);
	if (state == VCPU_UNKNOWN)
		return resolution_set(out, FLOW_UNKNOWN);
	if (state == VCPU_IDLE)
		return idle_vcpu_at(r, v, t, out);
	if (cpu_at(r, v, t, NULL, out, 0) < 0)
		return -1;
	if (state == VCPU_RUNNING && out->actor.kind == FLOW_PREEMPTING && out->host_thread < 0)
		out->actor.kind = FLOW_RUNNING;
	return 0;
}

/* A thread that is current on a second vCPU at the same time is a contradiction: unknown. */
static ALWAYS_INLINE int thread_target_at(struct resolver *r, uint32_t thread, int64_t t, struct resolution *out)
{
	const struct catalog_thread *th = &r->catalog->thread[thread];
	if (thread_at(r, resolver_thread(r, th->machine, th->tid), t, out, 0) < 0)
		return -1;
	if (out->actor.kind == FLOW_PREEMPTING && out->actor.machine == (int32_t)th->machine && out->actor.tid == th->tid) {
		int16_t pcpu = out->pcpu;
		resolution_set(out, FLOW_UNKNOWN);
		out->pcpu = pcpu;
	}
	const enum flow_kind kind = (enum flow_kind)out->actor.kind;
	const struct catalog_machine *m = &r->catalog->machine[th->machine];
	if (m->hides_stolen_time && m->is_virtual &&
	    (kind == FLOW_PREEMPTING || kind == FLOW_IRQ || kind == FLOW_IDLE_CPU)) {
		out->actor.kind = FLOW_CURRENT;
		if (kind == FLOW_IDLE_CPU)
			out->actor = (struct actor){ (int32_t)th->machine, 0, r->swapper, FLOW_CURRENT, 0 };
	}
	return 0;
}

int resolve_target(struct resolver *r, const struct target *target, int64_t t, struct resolution *out)
{
	if (target->kind == TARGET_THREAD)
		return thread_target_at(r, target->index, t, out);
	if (target->kind != TARGET_CPU)
		return resolution_set(out, FLOW_UNKNOWN);
	return is_host(r->catalog, r->catalog->cpu[target->index].machine) ? pcpu_at(r, target->index, t, NULL, out)
	                                                        : vcpu_at(r, target->index, t, out);
}

int resolve_idle(struct resolver *r, uint32_t v, int64_t t, struct resolution *out)
{
	return wanted_idle_vcpu_at(r, v, t, out, 0);
}
