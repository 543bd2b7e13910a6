/* Who has the CPU: the paper's Algorithm 2, made recursive (Gebai et al. 2014, "Execution flow recovery").
 *
 * A thread waits for a CPU of its machine.  A pCPU is had by its interrupt handler, its current thread, or nobody.
 * A vCPU that executes is had by its guest's interrupt handler or current thread; one that does not is a thread of
 * the machine below that waits for a CPU there, and so on down to the host.  A thread found at the bottom that is a
 * vCPU itself stands for the current thread of its guest, and so on up again.
 *
 * What the history contradicts (a thread that waits for itself) or does not tell (lost events) is FLOW_UNKNOWN:
 * nobody is blamed for it.  The recursion is bounded, since a damaged or hostile history may contain a circle. */
#include "query/resolver.h"

#include <string.h>

#define DEEPEST 8  /* machines within machines */

static int set(struct piece *out, enum flow_kind kind)
{
	*out = (struct piece){ { -1, -1, 0, (uint8_t)kind }, .host_thread = -1, .pcpu = -1 };
	return 0;
}

static int64_t after(int64_t end)
{
	return end == INT64_MAX ? end : end + 1;
}

static inline bool same_thread(const struct topo *t, const struct who *a, const struct who *b)
{
	return a && b && a->tid == b->tid && cpus_of(t, (uint32_t)a->machine) == cpus_of(t, (uint32_t)b->machine);
}

/* The container in which the life of w at t is spent, else its machine. */
static int box_of(struct resolver *r, const struct who *w, int64_t t, int32_t *system)
{
	int64_t status = HISTORY_NULL;
	for (struct who *box = w->boxed; box && status == HISTORY_NULL; box = box->boxed) {
		if (track_at(r, &resolver_own(r, box)[OWN_STATUS], t, &status) < 0)
			return -1;
		*system = status == HISTORY_NULL ? w->machine : box->machine;
	}
	return 0;
}

/* Whose thread w is at t, and its name. */
static inline int name_thread(struct resolver *r, struct who *w, int64_t t, struct party *out)
{
	out->system = w->machine;
	if (w->boxed && r->topo->machine[w->machine].kind == MACHINE_HOST && box_of(r, w, t, &out->system) < 0)
		return -1;
	return resolver_name(r, w, t, &out->name);
}

/* The thread with TID `tid` > 0 that CPU c has as its current one. */
static inline struct who *current_of(struct resolver *r, uint32_t c, int64_t tid)
{
	struct who **kept = &resolver_cpu(r, c)->current[tid % CURRENT_KEPT];
	if (!*kept || (*kept)->tid != tid)
		*kept = resolver_who(r, r->topo->cpu[c].machine, (int32_t)tid);
	return *kept;
}

static int is_handler(struct resolver *r, uint32_t c, int64_t value, struct piece *out)
{
	const struct topo_cpu *cpu = &r->topo->cpu[c];
	set(out, FLOW_IRQ);
	out->who.system = (int32_t)cpu->machine;
	out->who.name = r->shallow ? 0 : resolver_string(r, value);
	if (is_host(r->topo, cpu->machine))
		out->pcpu = (int16_t)cpu->number;
	return 1;
}

/* An interrupt handler on CPU c at t: 1 and *out, or 0. */
static inline int handler(struct resolver *r, uint32_t c, int64_t t, struct piece *out)
{
	int64_t value;
	if (track_at(r, &resolver_cpu(r, c)->interrupt, t, &value) < 0)
		return -1;
	return value == HISTORY_NULL ? 0 : is_handler(r, c, value, out);
}

/* The thread that stands for w: itself, or the current thread of the guest whose vCPU it is. */
static int stand_in(struct resolver *r, struct who *w, int64_t t, struct piece *out, int depth)
{
	int v;
	if (resolver_vcpu(r, w, t, &v) < 0)
		return -1;
	if (v < 0 || depth > DEEPEST) {
		out->who.tid = r->shallow ? -1 : w->tid;
		return name_thread(r, w, t, &out->who);
	}
	uint32_t guest = r->topo->cpu[v].machine;
	struct cpu_tracks *c = resolver_cpu(r, (uint32_t)v);
	int64_t tid = HISTORY_NULL;
	if ((!r->shallow || r->topo->machine[guest].runs_vms) && track_at(r, &c->running, t, &tid) < 0)
		return -1;
	if (tid >= r->no_idlers && tid <= INT32_MAX)
		return stand_in(r, current_of(r, (uint32_t)v, tid), t, out, depth + 1);
	out->who.system = (int32_t)guest;  /* a guest without a trace, or not traced at that moment, or idle */
	out->who.tid = -1;
	out->who.name = r->shallow ? 0 : c->name;
	return 0;
}

/* Who has a CPU of the host at t.  `waiting` wants it, and cannot be the answer. */
static int pcpu_at(struct resolver *r, uint32_t c, int64_t t, const struct who *waiting, struct piece *out)
{
	const struct topo_cpu *cpu = &r->topo->cpu[c];
	int64_t tid;
	int irq = handler(r, c, t, out);
	if (irq != 0)
		return irq < 0 ? -1 : 0;
	if (track_at(r, &resolver_cpu(r, c)->running, t, &tid) < 0)
		return -1;
	set(out, tid == 0 ? FLOW_IDLE_CPU : FLOW_UNKNOWN);
	out->pcpu = (int16_t)cpu->number;
	if (tid <= 0 || tid > INT32_MAX)
		return 0;
	struct who *w = current_of(r, c, tid);
	if (same_thread(r->topo, w, waiting))
		return 0;
	out->who.kind = FLOW_PREEMPTING;
	out->host_thread = w->thread;
	return stand_in(r, w, t, out, 0);
}

/* Who woke the thread of the tracks `own`: the thread that was current, or the handler that interrupted that.  Where
 * nothing tells which of them, nobody; but an idle CPU's idle thread is named: that wakes by an interrupt alone. */
static int woken_by(struct resolver *r, struct row_track *own, int32_t machine, int32_t tid, int64_t woken,
                    struct piece *out)
{
	int64_t in;
	if (track_at(r, &own[OWN_WOKEN_IN], woken, &in) < 0)
		return -1;
	if (in != HISTORY_NULL && strcmp(history_string(r->topo->h, in), "thread") != 0) {
		out->who.system = machine;
		out->who.name = resolver_string(r, in);
		return 0;
	}
	if (in == HISTORY_NULL && tid != 0)
		return 0;
	struct who *waker = resolver_who(r, (uint32_t)machine, tid);
	out->who.tid = tid;
	return name_thread(r, waker, woken, &out->who);
}

/* The thread sleeps in the interval that its status (or its vCPU's) holds: `woken` is when it ends. */
static int waiting_at(struct resolver *r, struct who *w, int64_t woken, struct piece *out)
{
	int64_t until = r->until, value, status;
	int32_t machine, tid;
	set(out, FLOW_WAITING);
	if (!w || r->shallow || r->no_wakers || woken > history_last(r->topo->h))
		return 0;
	struct row_track *own = resolver_own(r, w);
	/* A wake tells its waker; a sleep that ends with lost events or with the thread's life has none. */
	if (track_at(r, &own[OWN_WAKER], woken, &value) < 0 || track_at(r, &own[OWN_STATUS], woken, &status) < 0)
		return -1;
	if (thread_state(r, status) == THREAD_UNKNOWN || value == HISTORY_NULL) {
		r->until = until;
		return 0;
	}
	int rc = resolver_waker(r, value, &machine, &tid) ? woken_by(r, own, machine, tid, woken, out) : 0;
	r->until = until;
	return rc;
}

static int cpu_at(struct resolver *r, uint32_t c, int64_t t, const struct who *waiting, struct piece *out, int depth);

/* Is vCPU v, which is not on a CPU at t, held back by a limit?  1 and *out, or 0. */
static int limit_at(struct resolver *r, uint32_t v, int64_t t, struct piece *out)
{
	int64_t reason;
	int below;
	if (track_at(r, &resolver_cpu(r, v)->out_by, t, &reason) < 0)
		return -1;
	if (reason < 0 || reason >= HISTORY_STATES)
		return 0;
	if (resolver_below(r, v, t, &below) < 0)
		return -1;
	set(out, FLOW_LIMITED);
	out->who.name = r->limit[r->topo->out_reason[reason]];
	if (below >= 0 && is_host(r->topo, r->topo->cpu[below].machine))
		out->pcpu = (int16_t)r->topo->cpu[below].number;
	return 1;
}

/* Why vCPU v, which has something to do, is not on a CPU at t. */
static int out_at(struct resolver *r, uint32_t v, int state, int64_t t, struct piece *out, int depth)
{
	struct who *h;
	int64_t woken = after(resolver_cpu(r, v)->status.iv.end);
	int limited = limit_at(r, v, t, out);
	if (limited != 0)
		return limited < 0 ? -1 : 0;
	if (resolver_host(r, v, t, &h) < 0)
		return -1;
	if (h && r->topo->folded) {
		int64_t status;
		struct row_track *own = resolver_own(r, h);
		if (track_at(r, &own[OWN_STATUS], t, &status) < 0)
			return -1;
		/* Also where the two kinds were folded into PREEMPTED as in the paper. */
		if (thread_state(r, status) == THREAD_BLOCKED)
			return waiting_at(r, h, after(own[OWN_STATUS].iv.end), out);
	}
	if (state == VCPU_HOST_BLOCKED)
		return waiting_at(r, h, woken, out);
	int below;
	if (resolver_below(r, v, t, &below) < 0)
		return -1;
	if (below < 0)
		return set(out, FLOW_UNKNOWN);
	return cpu_at(r, (uint32_t)below, t, h, out, depth + 1);
}

static int thread_at(struct resolver *r, struct who *w, int64_t t, struct piece *out, int depth);

/* vCPU v executes guest code as far as its own status tells.  1 and *out when it does not really: a handler has
 * the CPU below, or the machine below is itself not executing.  Else 0, and *pcpu. */
static int taken_below(struct resolver *r, uint32_t v, int64_t t, struct piece *out, int16_t *pcpu, int depth)
{
	int below;
	*pcpu = -1;
	if (resolver_below(r, v, t, &below) < 0)
		return -1;
	if (below < 0)
		return 0;
	const struct topo_cpu *cpu = &r->topo->cpu[below];
	if (is_host(r->topo, cpu->machine)) {
		*pcpu = (int16_t)cpu->number;
		return handler(r, (uint32_t)below, t, out);
	}
	struct who *h;
	if (resolver_host(r, v, t, &h) < 0)
		return -1;
	if (!h || depth > DEEPEST)
		return 0;
	if (thread_at(r, h, t, out, depth + 1) < 0)
		return -1;
	*pcpu = out->pcpu;
	return out->who.kind != FLOW_RUNNING;
}

/* The hypervisor works on vCPU v, for thread `tid` of the guest. */
static int hypervisor(struct resolver *r, uint32_t v, int64_t tid, int64_t t, struct piece *out, int depth)
{
	int16_t pcpu;
	int taken = taken_below(r, v, t, out, &pcpu, depth);
	if (taken != 0)
		return taken < 0 ? -1 : 0;
	set(out, FLOW_HYPERVISOR);
	out->who.system = (int32_t)r->topo->cpu[v].machine;
	out->pcpu = pcpu;
	if (r->shallow)
		return 0;
	if (tid < 0 || tid > INT32_MAX) {
		out->who.name = resolver_cpu(r, v)->name;
		return 0;
	}
	out->who.tid = (int32_t)tid;
	return resolver_name(r, resolver_who(r, r->topo->cpu[v].machine, (int32_t)tid), t, &out->who.name);
}

/* Who has vCPU v, which executes guest code, at t: a handler or the current thread of the guest. */
static int guest_at(struct resolver *r, uint32_t v, int64_t t, const struct who *waiting, struct piece *out, int depth)
{
	int16_t pcpu;
	int64_t tid;
	int taken = taken_below(r, v, t, out, &pcpu, depth);
	if (taken != 0)
		return taken < 0 ? -1 : 0;
	int irq = handler(r, v, t, out);
	if (irq < 0)
		return -1;
	if (!irq) {
		if (track_at(r, &resolver_cpu(r, v)->running, t, &tid) < 0)
			return -1;
		set(out, tid == 0 ? FLOW_IDLE_CPU : FLOW_UNKNOWN);
		struct who *w = tid <= 0 || tid > INT32_MAX ? NULL : current_of(r, v, tid);
		if (w && !same_thread(r->topo, w, waiting)) {
			out->who.kind = FLOW_PREEMPTING;
			if (stand_in(r, w, t, out, 0) < 0)
				return -1;
		} else if (tid == HISTORY_NULL && !waiting) {
			out->who.kind = FLOW_PREEMPTING;  /* the vCPU itself is asked for, and its guest has no trace */
			out->who.system = (int32_t)r->topo->cpu[v].machine;
			out->who.name = r->shallow ? 0 : resolver_cpu(r, v)->name;
		}
	}
	out->pcpu = pcpu;
	return 0;
}

/* vCPU v is idle, and somebody wants it: before the guest could tell, it may have been paused, or its thread lost its
 * CPU. */
static int idle_at(struct resolver *r, uint32_t v, int64_t t, struct piece *out, int depth)
{
	struct who *h;
	int64_t status;
	int limited = limit_at(r, v, t, out);
	if (limited != 0)
		return limited < 0 ? -1 : 0;
	if (resolver_host(r, v, t, &h) < 0)
		return -1;
	if (!h)
		return set(out, FLOW_IDLE_CPU);
	if (track_at(r, &resolver_own(r, h)[OWN_STATUS], t, &status) < 0)
		return -1;
	int state = thread_state(r, status);
	if (state != THREAD_PREEMPTED && state != THREAD_VIRT_PREEMPTED)
		return set(out, FLOW_IDLE_CPU);
	return out_at(r, v, VCPU_PREEMPTED, t, out, depth);
}

/* Who has CPU c, which somebody wants, at t. */
static int cpu_at(struct resolver *r, uint32_t c, int64_t t, const struct who *waiting, struct piece *out, int depth)
{
	const struct topo_cpu *cpu = &r->topo->cpu[c];
	struct cpu_tracks *k = resolver_cpu(r, c);
	int64_t status, tid;
	if (is_host(r->topo, cpu->machine))
		return pcpu_at(r, c, t, waiting, out);
	if (depth > DEEPEST)
		return set(out, FLOW_UNKNOWN);
	if (track_at(r, &k->status, t, &status) < 0)
		return -1;
	if (status == HISTORY_NULL)  /* without a host's trace it is what the guest tells; while that is silent, nobody knows */
		return cpu->status == HISTORY_NONE ? guest_at(r, c, t, waiting, out, depth) : set(out, FLOW_UNKNOWN);
	int state = vcpu_state(r, status);
	switch (state) {
	case VCPU_RUNNING:
		return guest_at(r, c, t, waiting, out, depth);
	case VCPU_VMM:
		if (track_at(r, &k->running, t, &tid) < 0)
			return -1;
		return hypervisor(r, c, tid, t, out, depth);
	case VCPU_PREEMPTED:
	case VCPU_HOST_BLOCKED:
	case VCPU_WAKING:
		return out_at(r, c, state, t, out, depth);
	case VCPU_IDLE:
		return idle_at(r, c, t, out, depth);
	default:
		return set(out, FLOW_UNKNOWN);
	}
}

/* The thread has its vCPU, and that does not execute. */
static int virt_preempted_at(struct resolver *r, const struct who *w, uint32_t v, int64_t t, struct piece *out,
                             int depth)
{
	int64_t status;
	if (track_at(r, &resolver_cpu(r, v)->status, t, &status) < 0)
		return -1;
	int state = vcpu_state(r, status);
	if (state == VCPU_VMM)
		return hypervisor(r, v, w->tid, t, out, depth);
	if (state == VCPU_PREEMPTED || state == VCPU_HOST_BLOCKED || state == VCPU_WAKING)
		return out_at(r, v, state, t, out, depth);
	return set(out, FLOW_UNKNOWN);
}

static int running_at(struct resolver *r, struct who *w, int c, int64_t t, struct piece *out, int depth)
{
	int16_t pcpu = -1;
	int taken = 0;
	if (c >= 0 && is_host(r->topo, r->topo->cpu[c].machine)) {
		pcpu = (int16_t)r->topo->cpu[c].number;
		taken = handler(r, (uint32_t)c, t, out);
	} else if (c >= 0) {
		taken = taken_below(r, (uint32_t)c, t, out, &pcpu, depth);
		if (taken == 0) {
			taken = handler(r, (uint32_t)c, t, out);
			out->pcpu = taken ? pcpu : -1;
		}
	}
	if (taken != 0)
		return taken < 0 ? -1 : 0;
	set(out, FLOW_RUNNING);
	out->who.tid = w->tid;
	out->pcpu = pcpu;
	return name_thread(r, w, t, &out->who);
}

/* What thread w does at t, or who keeps it from it: the paper's Algorithm 1 at one moment. */
static int thread_at(struct resolver *r, struct who *w, int64_t t, struct piece *out, int depth)
{
	struct row_track *own = resolver_own(r, w);
	int64_t status, number = HISTORY_NULL;
	if (track_at(r, &own[OWN_STATUS], t, &status) < 0)
		return -1;
	if (status == HISTORY_NULL) {
		set(out, FLOW_UNKNOWN);
		out->who.name = r->not_alive;
		return 0;
	}
	int state = thread_state(r, status);
	if (state == THREAD_BLOCKED)
		return waiting_at(r, w, after(own[OWN_STATUS].iv.end), out);
	if (state == THREAD_UNKNOWN)
		return set(out, FLOW_UNKNOWN);
	if (track_at(r, &own[OWN_CPU], t, &number) < 0)
		return -1;
	if (w->cpu_number != number) {
		w->cpu = resolver_cpu_index(r, cpus_of(r->topo, (uint32_t)w->machine), number);
		w->cpu_number = number;
	}
	const int c = w->cpu;
	if (state == THREAD_RUNNING)
		return running_at(r, w, c, t, out, depth);
	int v, limited = 0;
	if (resolver_vcpu(r, w, t, &v) < 0 || (v >= 0 && (limited = limit_at(r, (uint32_t)v, t, out)) < 0))
		return -1;
	if (limited)
		return 0;
	if (c < 0)
		return set(out, FLOW_UNKNOWN);
	if (state == THREAD_VIRT_PREEMPTED)
		return virt_preempted_at(r, w, (uint32_t)c, t, out, depth);
	return cpu_at(r, (uint32_t)c, t, w, out, depth);
}

/* vCPU v is idle: its thread sleeps until somebody wakes it, or it has a CPU and wants none. */
static int sleep_at(struct resolver *r, uint32_t v, int64_t t, struct piece *out)
{
	struct who *h;
	int64_t status;
	set(out, FLOW_WAITING);
	if (r->shallow)
		return 0;
	if (resolver_host(r, v, t, &h) < 0)
		return -1;
	if (!h)
		return 0;
	struct row_track *own = resolver_own(r, h);
	if (track_at(r, &own[OWN_STATUS], t, &status) < 0)
		return -1;
	return thread_state(r, status) == THREAD_BLOCKED ? waiting_at(r, h, after(own[OWN_STATUS].iv.end), out) : 0;
}

/* The same for a vCPU: its guest's current thread runs on it; idle, it waits for whoever will wake it. */
static int vcpu_at(struct resolver *r, uint32_t v, int64_t t, struct piece *out)
{
	int64_t status;
	if (track_at(r, &resolver_cpu(r, v)->status, t, &status) < 0)
		return -1;
	int state = vcpu_state(r, status);
	if (state == VCPU_UNKNOWN)
		return set(out, FLOW_UNKNOWN);
	if (state == VCPU_IDLE)
		return sleep_at(r, v, t, out);
	if (cpu_at(r, v, t, NULL, out, 0) < 0)
		return -1;
	if (state == VCPU_RUNNING && out->who.kind == FLOW_PREEMPTING && out->host_thread < 0)
		out->who.kind = FLOW_RUNNING;
	return 0;
}

/* A thread that is found again on another vCPU contradicts itself. */
static int thread_subject_at(struct resolver *r, uint32_t thread, int64_t t, struct piece *out)
{
	const struct topo_thread *th = &r->topo->thread[thread];
	if (thread_at(r, resolver_who(r, th->machine, th->tid), t, out, 0) < 0)
		return -1;
	if (out->who.kind == FLOW_PREEMPTING && out->who.system == (int32_t)th->machine && out->who.tid == th->tid) {
		int16_t pcpu = out->pcpu;
		set(out, FLOW_UNKNOWN);
		out->pcpu = pcpu;
	}
	return 0;
}

int resolve_subject(struct resolver *r, const struct subject *s, int64_t t, struct piece *out)
{
	if (s->kind == SUBJECT_THREAD)
		return thread_subject_at(r, s->index, t, out);
	if (s->kind != SUBJECT_CPU)
		return set(out, FLOW_UNKNOWN);
	return is_host(r->topo, r->topo->cpu[s->index].machine) ? pcpu_at(r, s->index, t, NULL, out)
	                                                        : vcpu_at(r, s->index, t, out);
}

int resolve_idle(struct resolver *r, uint32_t v, int64_t t, struct piece *out)
{
	return idle_at(r, v, t, out, 0);
}
