/* Intervals of a critical path: finds an interval's actor, and decides if an interval extends the previous one.
 *
 * The wakeup latency of a vCPU is attributed to the thread that it wakes, unless the guest has other work. */
#include "query/critical_path.h"

#include <stdlib.h>

const struct actor path_no_actor = { -1, -1, 0, FLOW_UNKNOWN, 0 };

static int path_grow(struct path_walker *w)
{
	struct path *out = &w->out;
	size_t n = w->cap ? 2 * w->cap : 256;
	struct path_interval *p = n < SIZE_MAX / sizeof *p ? realloc(out->interval, n * sizeof *p) : NULL;
	if (!p)
		return error_set(w->err, STATUS_SYSTEM, "ask for a shorter window", "path: out of memory after %zu intervals",
		                 out->intervals);
	out->interval = p;
	w->cap = n;
	return 0;
}

/* Replaces the reason of a delay inside a guest without a source of stolen time: the provider may have had the vCPU. */
static void mark_uncertain(const struct catalog *catalog, struct path_interval *p)
{
	const struct catalog_machine *m = p->actor.machine >= 0 ? &catalog->machine[p->actor.machine] : NULL;
	const bool is_uncertain = m && m->hides_stolen_time && m->is_virtual;
	if (is_uncertain && (p->actor.kind == FLOW_IDLE_CPU || p->actor.kind == FLOW_PREEMPTING))
		p->actor.kind = FLOW_CURRENT;
	if (is_uncertain && p->culprit.machine == p->actor.machine)
		p->culprit.kind = FLOW_CURRENT;
}

int path_emit(struct path_walker *w, const struct path_interval *interval)
{
	struct path *out = &w->out;
	struct path_ledger *l = &w->ledger;
	struct path_interval copy = *interval, *p = &copy;
	if (p->start > p->end)
		return 0;
	mark_uncertain(w->catalog, p);
	struct path_interval *last = out->intervals ? &out->interval[out->intervals - 1] : NULL;
	if (last && actor_same(&last->actor, &p->actor) && actor_same(&last->culprit, &p->culprit) && last->edge == p->edge &&
	    last->evidence == p->evidence) {
		last->end = p->end;
	} else {
		if (out->intervals == w->cap && path_grow(w) < 0)
			return -1;
		out->interval[out->intervals++] = *p;
		l->last = path_sum_of(l, out, p);
		out->sum[l->last].intervals++;
	}
	out->sum[l->last].duration += p->end - p->start + 1;
	if (p->actor.kind == FLOW_UNKNOWN)
		out->unknown += p->end - p->start + 1;
	return 0;
}

int path_emit_own(struct path_walker *w, int64_t a, int64_t b, const struct actor *actor, struct path_link via)
{
	return path_emit(w, &(struct path_interval){ a, b, *actor, path_no_actor, (uint8_t)via.edge, via.evidence });
}

/* Returns 1 if vCPU v, while it wakes up, works for the thread whose sleep is being attributed, and not for its guest's
 * current thread `tid`, which is idle or was interrupted by a handler. */
static int vcpu_works_for_waiter(struct path_walker *w, uint32_t v, int32_t machine, int64_t tid, int64_t t)
{
	int64_t in = HISTORY_NULL;
	if (!w->waiter || cpu_machine(w->catalog, (uint32_t)w->waiter->machine) != machine)
		return 0;
	if (tid != 0 && track_at(&w->r, &resolver_cpu(&w->r, v)->interrupt, t, &in) < 0)
		return -1;
	return tid == 0 || in != HISTORY_NULL;
}

/* Finds the actor that keeps vCPU v of the actor's machine off its CPU at t. */
static int vcpu_identity(struct path_walker *w, uint32_t v, int64_t t, struct actor *actor)
{
	int64_t tid;
	if (track_at(&w->r, &resolver_cpu(&w->r, v)->running, t, &tid) < 0)
		return -1;
	actor->name = resolver_cpu(&w->r, v)->name;
	if (tid < 0 || tid > INT32_MAX)
		return 0;
	int waits = vcpu_works_for_waiter(w, v, actor->machine, tid, t);
	if (waits < 0 || (!waits && tid == 0))
		return waits;
	actor->tid = waits ? w->waiter->tid : (int32_t)tid;
	return resolver_thread_name(&w->r, waits ? w->waiter : resolver_thread(&w->r, (uint32_t)actor->machine, actor->tid), t,
	                            &actor->name);
}

int path_identity(struct path_walker *w, const struct target *target, int64_t t, struct actor *actor)
{
	*actor = path_no_actor;
	if (target->kind == TARGET_THREAD) {
		const struct catalog_thread *th = &w->catalog->thread[target->index];
		actor->machine = (int32_t)th->machine;
		actor->tid = th->tid;
		return resolver_thread_name(&w->r, resolver_thread(&w->r, th->machine, th->tid), t, &actor->name);
	}
	actor->machine = (int32_t)w->catalog->cpu[target->index].machine;
	return vcpu_identity(w, target->index, t, actor);
}

int path_emit_resolution(struct path_walker *w, const struct target *target, const struct resolution *p, int64_t a,
                         int64_t b, struct path_link via)
{
	struct path_interval interval = { a, b, p->actor, path_no_actor, (uint8_t)via.edge, via.evidence };
	if (target->kind == TARGET_THREAD && p->actor.kind == FLOW_RUNNING)
		interval.actor.machine = (int32_t)w->catalog->thread[target->index].machine;
	else if (path_identity(w, target, a, &interval.actor) < 0)
		return -1;
	interval.actor.kind = p->actor.kind;
	bool own = target->kind == TARGET_CPU && p->actor.machine == interval.actor.machine;  /* the guest itself has the CPU */
	if (own && p->actor.kind == FLOW_IRQ)
		interval.actor = p->actor;
	else if (p->actor.kind == FLOW_PREEMPTING || p->actor.kind == FLOW_IRQ || p->actor.kind == FLOW_LIMITED ||
	         (p->actor.kind == FLOW_CURRENT && p->actor.tid != 0))
		interval.culprit = p->actor;
	return path_emit(w, &interval);
}

int path_emit_unknown(struct path_walker *w, const struct target *target, int64_t a, int64_t b)
{
	struct actor actor;
	if (a > b)
		return 0;
	if (path_identity(w, target, a, &actor) < 0)
		return -1;
	if (target->kind == TARGET_CPU)  /* the thread that was current when the guest fell asleep is not the thread that was
	                             * waited for */
		actor = (struct actor){ actor.machine, -1, resolver_cpu(&w->r, target->index)->name, FLOW_UNKNOWN, 0 };
	return path_emit_own(w, a, b, &actor, (struct path_link){ EDGE_START, PATH_NO_EVIDENCE });
}

int path_emit_handler(struct path_walker *w, uint32_t machine, const char *name, int64_t a, int64_t b, struct path_link via)
{
	struct actor actor = { (int32_t)machine, -1, strtab_put(&w->r.names, name), FLOW_WAITING, 0 };
	return path_emit_own(w, a, b, &actor, via);
}
