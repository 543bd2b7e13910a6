/* The critical path: what made a thread last, through sleeps, wakers and machines.
 *
 * A subject's own time is what the resolver says of it.  A sleep is handed over to whoever ended it: walked back from its
 * end, that one has the time since it was woken itself, before that whoever woke it, and so on to the beginning of the
 * sleep; so the path tiles the window.  Handing over goes by what the history keeps of each wakeup, its waker and in what
 * that acted:
 *
 *   a thread               that thread; if it is a vCPU, the guest's thread that was current there (it asked for something)
 *   a guest's interrupt    if that CPU was idle, since it was woken from a halt: whoever woke it, then its way back
 *   a host's interrupt     the path ends in it: a timer, a device.  Network packets between VMs pass in softirqs of the
 *                          thread that sends them
 *
 * A guest's idle task does nothing that anybody waits for, nor does whoever a handler interrupts.  While a vCPU is on its
 * way with these, through an interrupt or to another CPU, whoever is being woken there has the time, and the kind of the
 * piece says what the vCPU waits for; if that is no thread of its guest, or the path is the vCPU's own, an idle vCPU has it
 * itself.
 *
 * Anything else is unknown.  Every step moves along the tracks of a resolver: cost is linear in the intervals touched, and
 * each handing over adds a search for a CPU's last halt.  Memory: the pieces. */
#include "query/critical_path.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "query/wakeup.h"

#define DEEPEST 400  /* handings over on the way back from the end of one sleep */

#define EDGE_NAME(code, name) name,
const char *const path_edge_name[PATH_EDGE_COUNT] = { PATH_EDGES(EDGE_NAME) };
#undef EDGE_NAME

/* ---- Wakeups */

static int thread_status(struct walker *w, struct who *th, int64_t t, int *status)
{
	int64_t value;
	if (track_at(&w->r, &resolver_own(&w->r, th)[OWN_STATUS], t, &value) < 0)
		return -1;
	*status = value < 0 || value >= HISTORY_STATES ? THREAD_UNKNOWN : w->topo->thread_state[value];
	return 0;
}

/* The thread that really sleeps where the subject waits at t: itself, or the one that executes its vCPU; NULL: none. */
static int sleeper_of(struct walker *w, const struct subject *s, int64_t t, struct who **out)
{
	int status, vcpu = -1;
	int64_t number;
	struct who *th = NULL;
	*out = NULL;
	if (s->kind == SUBJECT_THREAD) {
		th = resolver_who(&w->r, w->topo->thread[s->index].machine, w->topo->thread[s->index].tid);
	} else if (resolver_host(&w->r, s->index, t, &th) < 0) {
		return -1;
	}
	for (int deep = 0; th && deep < 8; deep++) {
		if (thread_status(w, th, t, &status) < 0)
			return -1;
		if (status == THREAD_BLOCKED) {
			*out = th;
			return 0;
		}
		if (status != THREAD_VIRT_PREEMPTED || w->topo->machine[th->machine].kind != MACHINE_VM)
			return 0;
		if (track_at(&w->r, &resolver_own(&w->r, th)[OWN_CPU], t, &number) < 0)
			return -1;
		vcpu = number < 0 || number > INT16_MAX ? -1 : topo_find_cpu(w->topo, (uint32_t)th->machine, (unsigned)number);
		if (vcpu < 0)
			return 0;
		if (resolver_host(&w->r, (uint32_t)vcpu, t, &th) < 0)
			return -1;
	}
	return 0;
}

/* ---- Handing over */

static int own(struct walker *w, const struct subject *s, int64_t a, int64_t b, struct via via);
static int hand_over(struct walker *w, const struct subject *s, struct who *sleeper, int64_t at, int64_t a, int64_t b,
                     int64_t evidence);

/* The last sleep that had begun at b: 1, 0 = there is none, -1. */
static int last_sleep(struct walker *w, struct who *th, int64_t b, struct interval *iv)
{
	int64_t value;
	struct row_track *status = &resolver_own(&w->r, th)[OWN_STATUS];
	if (track_at(&w->r, status, b, &value) < 0)
		return -1;
	*iv = status->iv;
	return state_in(w->asleep, value) ? 1 : track_prev(&w->r, status, b, w->asleep, iv);
}

/* Tiles [a, b] with what led to what the subject did at its end: from its last sleep on the subject itself, and before
 * that whatever led to the end of that sleep.  What it did before it slept was for others. */
static int follow(struct walker *w, const struct subject *s, int64_t a, int64_t b, struct via via)
{
	const struct history *h = w->topo->h;
	struct interval iv;
	struct who *th = NULL;
	if (s->kind == SUBJECT_THREAD)
		th = resolver_who(&w->r, w->topo->thread[s->index].machine, w->topo->thread[s->index].tid);
	else if (resolver_host(&w->r, s->index, b, &th) < 0)
		return -1;
	if (!th || th->thread < 0 || w->topo->thread[th->thread].status == HISTORY_NONE)
		return own(w, s, a, b, via);
	int found = last_sleep(w, th, b, &iv);
	if (found < 0)
		return -1;
	if (!found || iv.end < a)
		return own(w, s, a, b, via);
	int64_t slept = iv.end < b ? iv.end : b;
	if (hand_over(w, s, th, iv.end < history_last(h) ? iv.end + 1 : INT64_MAX, a, slept, PATH_PROVEN) < 0)
		return -1;
	return own(w, s, slept + 1, b, via);
}

static int follow_thread(struct walker *w, struct who *th, int64_t a, int64_t b, struct via via)
{
	if (th->thread >= 0)
		return follow(w, &(struct subject){ SUBJECT_THREAD, (uint32_t)th->thread }, a, b, via);
	struct party who = { th->machine, th->tid, 0, FLOW_UNKNOWN };
	return path_emit_own(w, a, b, &who, via);
}

/* When a vCPU was woken from the halt before t, if its guest has done nothing since but to handle interrupts: 1; 0: it is
 * not so, or nobody knows. */
static int last_halt(struct walker *w, uint32_t v, int64_t t, struct who **host, int64_t *woken)
{
	struct interval iv;
	int64_t tid, status;
	struct cpu_tracks *c = resolver_cpu(&w->r, v);
	if (resolver_host(&w->r, v, t, host) < 0)
		return -1;
	if (!*host || (*host)->thread < 0 || w->topo->thread[(*host)->thread].status == HISTORY_NONE)
		return 0;
	int found = track_prev(&w->r, &resolver_own(&w->r, *host)[OWN_STATUS], t, w->asleep, &iv);
	if (found <= 0)
		return found;
	*woken = iv.end + 1;
	if (track_at(&w->r, &c->status, iv.end, &status) < 0 || track_at(&w->r, &c->running, *woken, &tid) < 0)
		return -1;
	if (status < 0 || status >= HISTORY_STATES || w->topo->vcpu_state[status] != VCPU_IDLE)
		return 0;
	return tid == 0 && c->running.iv.end >= t - 1;
}

/* Since when has vCPU v handled what it does at t?  INT64_MAX: it is not `in` that it handles, or nobody knows. */
static int handling_since(struct walker *w, uint32_t v, int64_t t, const char *in, int64_t *began)
{
	struct row_track *row = &resolver_cpu(&w->r, v)->interrupt;
	int64_t handler;
	if (track_at(&w->r, row, t, &handler) < 0)
		return -1;
	*began = handler != HISTORY_NULL && strcmp(history_string(w->topo->h, handler), in) == 0 ? row->iv.start : INT64_MAX;
	return 0;
}

/* A timer of vCPU v led to what its handler `in` did at t: [a, b] is spent waiting for it, but only until the handler began
 * if the vCPU then was held up before it came to that. */
static int through_timer(struct walker *w, uint32_t v, int64_t t, const char *in, int64_t a, int64_t b)
{
	const struct via via = { EDGE_INJECT, PATH_PROVEN };
	struct cpu_tracks *c = resolver_cpu(&w->r, v);
	int64_t status, began;
	if (track_at(&w->r, &c->status, t, &status) < 0 || handling_since(w, v, t, in, &began) < 0)
		return -1;
	if (c->status.iv.start <= began)
		began = INT64_MAX;
	int64_t until = began - 1 < b ? began - 1 : b;
	if (path_emit_handler(w, w->topo->cpu[v].machine, in, a, until, (struct via){ EDGE_IRQ, PATH_PROVEN }) < 0)
		return -1;
	return began > b ? 0 : own(w, &(struct subject){ SUBJECT_CPU, v }, began > a ? began : a, b, via);
}

/* What vCPU v did at t as it handled an interrupt: [a, b] belongs to whoever raised that, and from there on to the vCPU.
 * in: the handler, or NULL. */
static int through_interrupt(struct walker *w, const struct subject *s, uint32_t v, int64_t t, const char *in, int64_t a,
                             int64_t b)
{
	const struct subject cpu = { SUBJECT_CPU, v };
	struct who *host = NULL, *server = NULL;
	struct wakeup by = { .in = NULL };
	int64_t raised = a, began;
	bool timer = in && wakeup_is_timer(in), device = in && wakeup_is_device(in);
	int rc = 0, halted = last_halt(w, v, t, &host, &raised);
	if (halted < 0 || (halted && wakeup_of(&w->r, host, raised, &by) < 0))
		return -1;
	int fits = by.in && (!in || (wakeup_is_timer(by.in) ? timer : device));
	if (fits && device && strcmp(by.in, "thread") == 0 && (fits = raiser_woke(&w->raisers, v, &by, raised, t)) < 0)
		return -1;
	if (!fits && timer)
		return through_timer(w, v, t, in, a, b);
	bool near = !fits && device && host;
	if (near && raiser_of(&w->raisers, v, host, halted ? raised : INT64_MIN, t, &server, &raised) < 0)
		return -1;
	if (!fits && (!near || raised > t))
		return path_emit_unknown(w, s, a, b);
	if (near && in && strncmp(in, "irq/", 4) == 0) {  /* a softirq takes what has come since, too */
		if (handling_since(w, v, t, in, &began) < 0)
			return -1;
		raised = began < raised ? began : raised;
	}
	const struct via via = { EDGE_INJECT, t - raised };
	int64_t before = raised - 1 < b ? raised - 1 : b;
	if (a <= before && server)
		rc = follow_thread(w, server, a, before, via);
	else if (a <= before)
		rc = fits ? hand_over(w, s, host, raised, a, before, via.evidence) : path_emit_unknown(w, s, a, before);
	int64_t from = raised = raised > a ? raised : a;
	if (rc == 0 && near && (rc = raiser_outslept(&w->raisers, host, server, &from)) == 0)
		rc = path_emit_unknown(w, &cpu, raised, from - 1 < b ? from - 1 : b);
	return rc < 0 || from > b ? rc : own(w, &cpu, from, b, via);
}

/* vCPU v, as a thread of its host, did something at t. */
static int through_guest(struct walker *w, const struct subject *s, uint32_t v, int64_t t, enum path_edge edge, int64_t a,
                         int64_t b, int64_t evidence)
{
	struct cpu_tracks *c = resolver_cpu(&w->r, v);
	int64_t tid, in;
	if (track_at(&w->r, &c->running, t, &tid) < 0 || track_at(&w->r, &c->interrupt, t, &in) < 0)
		return -1;
	struct via via = { edge, evidence };
	if (tid == HISTORY_NULL) {  /* only the host knows of it: the path ends inside */
		const struct subject cpu = { SUBJECT_CPU, v };
		/* whom the guest told of before need not be who asked; where it never told, that is all of it */
		const int64_t since = c->running.iv.start > a ? c->running.iv.start : a;
		if (path_emit_unknown(w, &cpu, a, since <= b ? since - 1 : b) < 0)
			return -1;
		return since > b ? 0 : follow(w, &cpu, since, b, via);
	}
	if (in == HISTORY_NULL && tid > 0 && tid <= INT32_MAX)
		return follow_thread(w, resolver_who(&w->r, w->topo->cpu[v].machine, (int32_t)tid), a, b, via);
	const char *handler = in == HISTORY_NULL ? NULL : history_string(w->topo->h, in);
	return through_interrupt(w, s, v, t, handler, a, b);
}

/* A handler of a guest woke somebody at t: on which of its CPUs?  -1 = error, -2 = nobody knows. */
static int handled_on(struct walker *w, uint32_t machine, const char *in, int64_t t)
{
	const struct topo_machine *m = &w->topo->machine[machine];
	int found = -2;
	if (m->cpus == 1)
		return (int)m->cpu;
	for (uint32_t c = m->cpu; c < m->cpu + m->cpus; c++) {
		int64_t value;
		if (track_at(&w->r, &resolver_cpu(&w->r, c)->interrupt, t, &value) < 0)
			return -1;
		if (value == HISTORY_NULL || strcmp(history_string(w->topo->h, value), in) != 0)
			continue;
		if (found >= 0)
			return -2;
		found = (int)c;
	}
	return found;
}

/* Who is being woken: a thread, or the vCPU that it executes. */
static int who_is_woken(struct walker *w, const struct subject *s, const struct who *sleeper, int64_t t, struct party *who)
{
	int vcpu;
	if (resolver_vcpu(&w->r, sleeper, t, &vcpu) < 0)
		return -1;
	if (vcpu >= 0)
		return path_identity(w, &(struct subject){ SUBJECT_CPU, (uint32_t)vcpu }, t, who);
	const struct subject thread = { SUBJECT_THREAD, (uint32_t)sleeper->thread };
	return path_identity(w, sleeper->thread < 0 ? s : &thread, t, who);
}

/* The same on CPU `cpu` of the host: whoever that has meanwhile keeps the one that is woken from it. */
static int on_its_way_to(struct walker *w, const struct subject *s, struct who *sleeper, int cpu, int64_t a, int64_t b)
{
	for (int64_t end; a <= b; a = end + 1) {
		struct piece p = { .who = { .kind = FLOW_UNKNOWN }, .host_thread = -1 };
		struct path_piece is = { .start = a, .thief = path_nobody, .edge = EDGE_IPI, .evidence = PATH_PROVEN };
		if (who_is_woken(w, s, sleeper, a, &is.who) < 0)
			return -1;
		w->r.until = b;
		if (cpu >= 0 && resolve_subject(&w->r, &(struct subject){ SUBJECT_CPU, (uint32_t)cpu }, a, &p) < 0)
			return -1;
		end = is.end = w->r.until;
		is.who.kind = p.who.kind;
		if (p.who.kind == FLOW_PREEMPTING && p.host_thread >= 0 && p.host_thread == sleeper->thread)
			is.who.kind = FLOW_RUNNING;  /* it has yet to fall asleep */
		else if (p.who.kind == FLOW_PREEMPTING || p.who.kind == FLOW_IRQ)
			is.thief = p.who;
		else if (p.who.kind == FLOW_UNKNOWN)
			is.evidence = PATH_NO_EVIDENCE;
		if (path_emit(w, &is) < 0)
			return -1;
	}
	return 0;
}

/* [a, b] of a sleep, from when its waker had acted on: the wakeup is on its way to another CPU. */
static int on_its_way(struct walker *w, const struct subject *s, struct who *sleeper, int64_t at, int64_t a, int64_t b)
{
	int64_t number;
	if (a > b)
		return 0;
	if (track_at(&w->r, &resolver_own(&w->r, sleeper)[OWN_CPU], at, &number) < 0)
		return -1;
	int32_t machine = cpus_of(w->topo, (uint32_t)sleeper->machine);
	int cpu = number < 0 || number > INT16_MAX || machine < 0 ? -1
	        : topo_find_cpu(w->topo, (uint32_t)machine, (unsigned)number);
	if (cpu >= 0 && w->topo->machine[machine].kind == MACHINE_VM)
		return own(w, &(struct subject){ SUBJECT_CPU, (uint32_t)cpu }, a, b, (struct via){ EDGE_IPI, PATH_PROVEN });
	return on_its_way_to(w, s, sleeper, cpu, a, b);
}

/* Whoever acted at by->at has [a, b].  s: who waits for it.  evidence: that it waits for this. */
static int hand_to(struct walker *w, const struct subject *s, struct who *sleeper, const struct wakeup *by, int64_t a,
                   int64_t b, int64_t evidence)
{
	int is_vcpu, vcpu;
	uint32_t machine = (uint32_t)by->machine;
	bool thread = strcmp(by->in, "thread") == 0, guest = w->topo->machine[machine].kind == MACHINE_VM;
	bool packet = !thread && !guest && by->tid > 0 && wakeup_is_network(by->in);
	if (!thread && guest) {
		int v = handled_on(w, machine, by->in, by->at);
		return v == -1 ? -1 : v < 0 ? path_emit_unknown(w, s, a, b)
		                            : through_interrupt(w, s, (uint32_t)v, by->at, by->in, a, b);
	}
	if (thread && by->tid <= 0)  /* the idle task: it acted for somebody whom no event tells */
		return path_emit_unknown(w, s, a, b);
	if (!thread && !packet)
		return path_emit_handler(w, machine, by->in, a, b, (struct via){ EDGE_IRQ, evidence });
	if (packet && evidence == PATH_PROVEN)
		evidence = 0;
	struct who *waker = resolver_who(&w->r, machine, by->tid);
	if (resolver_vcpu(&w->r, sleeper, by->at, &is_vcpu) < 0 || resolver_vcpu(&w->r, waker, by->at, &vcpu) < 0)
		return -1;
	if (vcpu >= 0)
		return through_guest(w, s, (uint32_t)vcpu, by->at, is_vcpu >= 0 ? EDGE_IPI : EDGE_REQUEST, a, b, evidence);
	return follow_thread(w, waker, a, b, (struct via){ is_vcpu >= 0 ? EDGE_INJECT : EDGE_WAKE, evidence });
}

/* A part [a, b] of a sleep that was over at `at`. */
static int hand_over(struct walker *w, const struct subject *s, struct who *sleeper, int64_t at, int64_t a, int64_t b,
                     int64_t evidence)
{
	struct wakeup by;
	struct who *const outer = w->waiter;
	if (a > b)
		return 0;
	if (w->depth >= DEEPEST)
		return path_emit_unknown(w, s, a, b);
	if (wakeup_of(&w->r, sleeper, at, &by) < 0)
		return -1;
	if (!by.in)
		return path_emit_unknown(w, s, a, b);
	int64_t before = by.at - 1 < b ? by.at - 1 : b;
	w->depth++;
	if (s->kind == SUBJECT_THREAD)
		w->waiter = resolver_who(&w->r, w->topo->thread[s->index].machine, w->topo->thread[s->index].tid);
	int rc = a <= before ? hand_to(w, s, sleeper, &by, a, before, evidence) : 0;
	if (rc == 0)
		rc = on_its_way(w, s, sleeper, at, by.at > a ? by.at : a, b);
	w->waiter = outer;
	w->depth--;
	return rc;
}

static int emit_idle(struct walker *w, const struct subject *s, int64_t a, int64_t b, enum flow_kind kind, struct via via)
{
	struct party who;
	if (path_identity(w, s, a, &who) < 0)
		return -1;
	who.kind = (uint8_t)kind;
	return path_emit_own(w, a, b, &who, via);
}

/* A wakeup is on its way to a vCPU of that machine, which was halted until `until`: did another of its vCPUs end that? */
static int ended_by_sibling(struct walker *w, uint32_t machine, struct who *sleeper, int64_t until)
{
	struct wakeup by;
	int vcpu;
	if (wakeup_of(&w->r, sleeper, until < history_last(w->topo->h) ? until + 1 : INT64_MAX, &by) < 0)
		return -1;
	if (!by.in || strcmp(by.in, "thread") != 0)
		return 0;
	if (resolver_vcpu(&w->r, resolver_who(&w->r, (uint32_t)by.machine, by.tid), by.at, &vcpu) < 0)
		return -1;
	return vcpu >= 0 && w->topo->cpu[vcpu].machine == machine;
}

/* The subject waits at t, for no CPU: until *end at most. */
static int wait_piece(struct walker *w, const struct subject *s, int64_t t, int64_t *end, struct via via)
{
	struct who *sleeper;
	if (sleeper_of(w, s, t, &sleeper) < 0)
		return -1;
	if (sleeper) {
		int64_t until = resolver_own(&w->r, sleeper)[OWN_STATUS].iv.end;
		*end = until < *end ? until : *end;
		int led = via.edge != EDGE_IPI || s->kind != SUBJECT_CPU ? 1
		        : ended_by_sibling(w, w->topo->cpu[s->index].machine, sleeper, until);
		if (led < 0)
			return -1;
		if (!led)
			return emit_idle(w, s, t, *end, FLOW_IDLE_CPU, via);
		return hand_over(w, s, sleeper, until < history_last(w->topo->h) ? until + 1 : INT64_MAX, t, *end,
		                 PATH_PROVEN);
	}
	if (s->kind != SUBJECT_CPU)
		return path_emit_unknown(w, s, t, *end);
	struct piece p;
	if (resolve_idle(&w->r, s->index, t, &p) < 0)
		return -1;
	*end = w->r.until < *end ? w->r.until : *end;
	if (p.who.kind != FLOW_IDLE_CPU)
		return path_emit_piece(w, s, &p, t, *end, via);
	/* The guest's idle task executes: to whoever is being woken that is as if nobody did. */
	return emit_idle(w, s, t, *end, via.edge == EDGE_START ? FLOW_RUNNING : FLOW_IDLE_CPU, via);
}

int path_piece(struct walker *w, const struct subject *s, int64_t t, int64_t b, struct via via,
               int64_t *end)
{
	struct piece p;
	w->r.until = b;
	int rc = resolve_subject(&w->r, s, t, &p);
	*end = w->r.until;
	if (rc == 0)
		rc = p.who.kind == FLOW_WAITING ? wait_piece(w, s, t, end, via) : path_emit_piece(w, s, &p, t, *end, via);
	return rc;
}

/* Tiles [a, b] with that. */
static int own(struct walker *w, const struct subject *s, int64_t a, int64_t b, struct via via)
{
	int64_t end = a - 1;
	int rc = 0;
	while (rc == 0 && end < b)
		rc = path_piece(w, s, end + 1, b, via, &end);
	return rc;
}
