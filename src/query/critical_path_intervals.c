/* The pieces of a critical path: whose each is, and how one joins the last.
 *
 * While a vCPU is on its way to wake somebody, its time is that one's, unless its guest has something else to do. */
#include "query/critical_path.h"

#include <stdlib.h>

const struct party path_nobody = { -1, -1, 0, FLOW_UNKNOWN };

static int more_room(struct walker *w)
{
	struct path *out = &w->out;
	size_t n = w->cap ? 2 * w->cap : 256;
	struct path_piece *p = n < SIZE_MAX / sizeof *p ? realloc(out->piece, n * sizeof *p) : NULL;
	if (!p)
		return error_set(w->err, STATUS_SYSTEM, "ask for a shorter window", "path: out of memory after %zu pieces",
		                 out->pieces);
	out->piece = p;
	w->cap = n;
	return 0;
}

int path_emit(struct walker *w, const struct path_piece *p)
{
	struct path *out = &w->out;
	struct path_ledger *l = &w->ledger;
	if (p->start > p->end)
		return 0;
	struct path_piece *last = out->pieces ? &out->piece[out->pieces - 1] : NULL;
	if (last && party_same(&last->who, &p->who) && party_same(&last->thief, &p->thief) && last->edge == p->edge &&
	    last->evidence == p->evidence) {
		last->end = p->end;
	} else {
		if (out->pieces == w->cap && more_room(w) < 0)
			return -1;
		out->piece[out->pieces++] = *p;
		l->last = path_sum_of(l, out, p);
		out->sum[l->last].pieces++;
	}
	out->sum[l->last].duration += p->end - p->start + 1;
	if (p->who.kind == FLOW_UNKNOWN)
		out->unknown += p->end - p->start + 1;
	return 0;
}

int path_emit_own(struct walker *w, int64_t a, int64_t b, const struct party *who, struct via via)
{
	return path_emit(w, &(struct path_piece){ a, b, *who, path_nobody, (uint8_t)via.edge, via.evidence });
}

/* Does vCPU v of that machine, on its way, work for the thread whose sleep is being handed over, and not for its guest's
 * current `tid`, which is idle or was interrupted by a handler? */
static int works_for_waiter(struct walker *w, uint32_t v, int32_t machine, int64_t tid, int64_t t)
{
	int64_t in = HISTORY_NULL;
	if (!w->waiter || cpus_of(w->topo, (uint32_t)w->waiter->machine) != machine)
		return 0;
	if (tid != 0 && track_at(&w->r, &resolver_cpu(&w->r, v)->interrupt, t, &in) < 0)
		return -1;
	return tid == 0 || in != HISTORY_NULL;
}

/* Who has vCPU v of who->system at t. */
static int identity_of_vcpu(struct walker *w, uint32_t v, int64_t t, struct party *who)
{
	int64_t tid;
	if (track_at(&w->r, &resolver_cpu(&w->r, v)->running, t, &tid) < 0)
		return -1;
	who->name = resolver_cpu(&w->r, v)->name;
	if (tid < 0 || tid > INT32_MAX)
		return 0;
	int waits = works_for_waiter(w, v, who->system, tid, t);
	if (waits < 0 || (!waits && tid == 0))
		return waits;
	who->tid = waits ? w->waiter->tid : (int32_t)tid;
	return resolver_name(&w->r, waits ? w->waiter : resolver_who(&w->r, (uint32_t)who->system, who->tid), t, &who->name);
}

int path_identity(struct walker *w, const struct subject *s, int64_t t, struct party *who)
{
	*who = path_nobody;
	if (s->kind == SUBJECT_THREAD) {
		const struct topo_thread *th = &w->topo->thread[s->index];
		who->system = (int32_t)th->machine;
		who->tid = th->tid;
		return resolver_name(&w->r, resolver_who(&w->r, th->machine, th->tid), t, &who->name);
	}
	who->system = (int32_t)w->topo->cpu[s->index].machine;
	return identity_of_vcpu(w, s->index, t, who);
}

int path_emit_piece(struct walker *w, const struct subject *s, const struct piece *p, int64_t a, int64_t b,
                    struct via via)
{
	struct path_piece is = { a, b, p->who, path_nobody, (uint8_t)via.edge, via.evidence };
	if (s->kind == SUBJECT_THREAD && p->who.kind == FLOW_RUNNING)
		is.who.system = (int32_t)w->topo->thread[s->index].machine;
	else if (path_identity(w, s, a, &is.who) < 0)
		return -1;
	is.who.kind = p->who.kind;
	bool own = s->kind == SUBJECT_CPU && p->who.system == is.who.system;  /* it is the guest itself that has it */
	if (own && p->who.kind == FLOW_IRQ)
		is.who = p->who;
	else if (p->who.kind == FLOW_PREEMPTING || p->who.kind == FLOW_IRQ)
		is.thief = p->who;
	return path_emit(w, &is);
}

int path_emit_unknown(struct walker *w, const struct subject *s, int64_t a, int64_t b)
{
	struct party who;
	if (a > b)
		return 0;
	if (path_identity(w, s, a, &who) < 0)
		return -1;
	if (s->kind == SUBJECT_CPU)  /* whatever its guest ran as it fell asleep is not what was waited for */
		who = (struct party){ who.system, -1, resolver_cpu(&w->r, s->index)->name, FLOW_UNKNOWN };
	return path_emit_own(w, a, b, &who, (struct via){ EDGE_START, PATH_NO_EVIDENCE });
}

int path_emit_handler(struct walker *w, uint32_t machine, const char *name, int64_t a, int64_t b, struct via via)
{
	struct party who = { (int32_t)machine, -1, strtab_put(&w->r.names, name), FLOW_WAITING };
	return path_emit_own(w, a, b, &who, via);
}
