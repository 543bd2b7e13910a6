/* Critical path: why a thread took its time, through sleeps, wakers and machines.
 *
 * The resolver attributes the time in which the target does not sleep. A sleep is attributed backwards from its end: the
 * time since the waker's own last wakeup to the waker, the time before that to the waker's waker, and so on to the start
 * of the sleep. So the path tiles the window. The history contains the waker of each sleep and the context in which it
 * acted:
 *
 * - Thread: the waker is that thread. If it is a vCPU, the waker is the current thread of the guest (which made a
 *   request).
 * - Guest interrupt: if the CPU was idle since it was woken from a halt, the vCPU's waker, then the vCPU's
 *   wakeup latency.
 * - Host interrupt: the path ends there (a timer, a device). Packets between VMs pass in softirqs of the sending
 *   thread.
 *
 * Special cases:
 *
 * - No thread waits for a guest's idle task, or for a thread that a handler interrupts.
 * - A vCPU's wakeup latency (through an interrupt, or to another CPU) is attributed to the thread that is being
 *   woken; the interval's kind shows why the vCPU waits. If the wakeup is for no guest thread, or the path
 *   is the vCPU's own, the time is attributed to the idle vCPU.
 * - Everything else is unknown.
 *
 * Cost: all steps move along a resolver's tracks, so linear in the intervals read, plus a search for the last halt
 * of a CPU for each waker. Memory: the path's intervals. */
#include "query/critical_path.h"

#include "base/base.h"
#include "query/wakeup.h"

#define DEPTH_MAX 400  /* maximum number of wakers in a chain */

#define EDGE_NAME(code, name) name,
const char *const path_edge_name[PATH_EDGE_COUNT] = { PATH_EDGES(EDGE_NAME) };
#undef EDGE_NAME

/* ---- Wakeups */

static int thread_status(struct path_walker *w, struct thread_ref *th, int64_t t, int *status)
{
	int64_t value;
	if (track_at(&w->r, &thread_tracks(&w->r, th)[TRACK_STATUS], t, &value) < 0)
		return -1;
	*status = value < 0 || value >= HISTORY_STATES ? THREAD_UNKNOWN : w->catalog->thread_state[value];
	return 0;
}

/* Finds the thread that actually sleeps while the target waits at t: the target, or the thread that executes its vCPU;
 * NULL: none. */
static int find_sleeper(struct path_walker *w, const struct target *target, int64_t t, struct thread_ref **out)
{
	int status, vcpu = -1;
	int64_t number;
	struct thread_ref *th = NULL;
	*out = NULL;
	if (target->kind == TARGET_THREAD) {
		th = resolver_thread(&w->r, w->catalog->thread[target->index].machine, w->catalog->thread[target->index].tid);
	} else if (resolver_vcpu_thread(&w->r, target->index, t, &th) < 0) {
		return -1;
	}
	for (int depth = 0; th && depth < 8; depth++) {
		if (thread_status(w, th, t, &status) < 0)
			return -1;
		if (status == THREAD_BLOCKED) {
			*out = th;
			return 0;
		}
		if (status != THREAD_VIRT_PREEMPTED || w->catalog->machine[th->machine].kind != MACHINE_VM)
			return 0;
		if (track_at(&w->r, &thread_tracks(&w->r, th)[TRACK_CPU], t, &number) < 0)
			return -1;
		vcpu = number < 0 || number > INT16_MAX ? -1
		     : catalog_find_cpu(w->catalog, (uint32_t)th->machine, (unsigned)number);
		if (vcpu < 0)
			return 0;
		if (resolver_vcpu_thread(&w->r, (uint32_t)vcpu, t, &th) < 0)
			return -1;
	}
	return 0;
}

/* ---- Attribution: sleeps */

static int tile_target(struct path_walker *w, const struct target *target, int64_t a, int64_t b, struct path_link via);
static int attribute_sleep(struct path_walker *w, const struct target *target, struct thread_ref *sleeper, int64_t at,
                           int64_t a, int64_t b, int64_t evidence);

/* Finds the last sleep that started at or before b. Returns 1, 0 = none, -1 = error. */
static int find_last_sleep(struct path_walker *w, struct thread_ref *th, int64_t b, struct interval *iv)
{
	int64_t value;
	struct row_track *status = &thread_tracks(&w->r, th)[TRACK_STATUS];
	if (track_at(&w->r, status, b, &value) < 0)
		return -1;
	*iv = status->iv;
	return state_is_in(w->asleep, value) ? 1 : track_prev(&w->r, status, b, w->asleep, iv);
}

/* Tiles [a, b] with the reasons for the target's activity at b: the target itself since its last sleep, before that the
 * reasons for its wakeup. Its activity before that sleep had other purposes. */
static int attribute_target(struct path_walker *w, const struct target *target, int64_t a, int64_t b, struct path_link via)
{
	const struct history *h = w->catalog->h;
	struct interval iv;
	struct thread_ref *th = NULL;
	if (target->kind == TARGET_THREAD)
		th = resolver_thread(&w->r, w->catalog->thread[target->index].machine, w->catalog->thread[target->index].tid);
	else if (resolver_vcpu_thread(&w->r, target->index, b, &th) < 0)
		return -1;
	if (!th || th->thread < 0 || w->catalog->thread[th->thread].status == HISTORY_NONE)
		return tile_target(w, target, a, b, via);
	int found = find_last_sleep(w, th, b, &iv);
	if (found < 0)
		return -1;
	if (!found || iv.end < a)
		return tile_target(w, target, a, b, via);
	int64_t slept = iv.end < b ? iv.end : b;
	if (attribute_sleep(w, target, th, iv.end < history_last(h) ? iv.end + 1 : INT64_MAX, a, slept, PATH_PROVEN) < 0)
		return -1;
	return tile_target(w, target, slept + 1, b, via);
}

static int attribute_thread(struct path_walker *w, struct thread_ref *th, int64_t a, int64_t b, struct path_link via)
{
	if (th->thread >= 0)
		return attribute_target(w, &(struct target){ TARGET_THREAD, (uint32_t)th->thread }, a, b, via);
	struct actor actor = { th->machine, th->tid, 0, FLOW_UNKNOWN, 0 };
	return path_emit_own(w, a, b, &actor, via);
}

/* Finds the time at which the vCPU was woken from its last halt before t. Returns 1 if its guest only handled interrupts
 * since then, 0 if not or unknown, -1 on error. */
static int find_last_halt(struct path_walker *w, uint32_t v, int64_t t, struct thread_ref **host, int64_t *woken)
{
	struct interval iv;
	int64_t tid, status;
	struct cpu_tracks *c = resolver_cpu(&w->r, v);
	if (resolver_vcpu_thread(&w->r, v, t, host) < 0)
		return -1;
	if (!*host || (*host)->thread < 0 || w->catalog->thread[(*host)->thread].status == HISTORY_NONE)
		return 0;
	int found = track_prev(&w->r, &thread_tracks(&w->r, *host)[TRACK_STATUS], t, w->asleep, &iv);
	if (found <= 0)
		return found;
	*woken = iv.end + 1;
	if (track_at(&w->r, &c->status, iv.end, &status) < 0 || track_at(&w->r, &c->running, *woken, &tid) < 0)
		return -1;
	if (status < 0 || status >= HISTORY_STATES || w->catalog->vcpu_state[status] != VCPU_IDLE)
		return 0;
	return tid == 0 && c->running.iv.end >= t - 1;
}

/* Finds when vCPU v began the handler that it runs at t. *began: INT64_MAX if that is not `in`, or the time is unknown. */
static int handler_start(struct path_walker *w, uint32_t v, int64_t t, const char *in, int64_t *began)
{
	struct row_track *row = &resolver_cpu(&w->r, v)->interrupt;
	int64_t handler;
	if (track_at(&w->r, row, t, &handler) < 0)
		return -1;
	*began = handler != HISTORY_NULL && strcmp(history_string(w->catalog->h, handler), in) == 0 ? row->iv.start : INT64_MAX;
	return 0;
}

/* Attributes [a, b] to vCPU v's timer, which caused the action of its handler `in` at t. If the vCPU was interrupted in
 * the handler, the wait for the timer ends at the handler's start. */
static int attribute_timer(struct path_walker *w, uint32_t v, int64_t t, const char *in, int64_t a, int64_t b)
{
	const struct path_link via = { EDGE_INJECT, PATH_PROVEN };
	struct cpu_tracks *c = resolver_cpu(&w->r, v);
	int64_t status, began;
	if (track_at(&w->r, &c->status, t, &status) < 0 || handler_start(w, v, t, in, &began) < 0)
		return -1;
	if (c->status.iv.start <= began)
		began = INT64_MAX;
	int64_t until = began - 1 < b ? began - 1 : b;
	if (path_emit_handler(w, w->catalog->cpu[v].machine, in, a, until, (struct path_link){ EDGE_IRQ, PATH_PROVEN }) < 0)
		return -1;
	return began > b ? 0 : tile_target(w, &(struct target){ TARGET_CPU, v }, began > a ? began : a, b, via);
}

/* Attributes [a, b] to the source whose interrupt vCPU v handled at t, and the time since the interrupt was raised
 * to the vCPU. in: the handler; NULL: unknown. */
static int attribute_interrupt(struct path_walker *w, const struct target *target, uint32_t v, int64_t t, const char *in,
                               int64_t a, int64_t b)
{
	const struct target cpu = { TARGET_CPU, v };
	struct thread_ref *host = NULL, *server = NULL;
	struct wakeup by = { .in = NULL };
	int64_t raised = a, began;
	bool timer = in && wakeup_is_timer(in), device = in && wakeup_is_device(in);
	int rc = 0, halted = find_last_halt(w, v, t, &host, &raised);
	if (halted < 0 || (halted && wakeup_of(&w->r, host, raised, &by) < 0))
		return -1;
	int waker_fits = by.in && (!in || (wakeup_is_timer(by.in) ? timer : device));
	if (waker_fits && device && strcmp(by.in, "thread") == 0 &&
	    (waker_fits = irq_source_woke_vcpu(&w->irq_sources, v, &by, raised, t)) < 0)
		return -1;
	if (!waker_fits && timer)
		return attribute_timer(w, v, t, in, a, b);
	bool search_source = !waker_fits && device && host;
	if (search_source && irq_source_find(&w->irq_sources, v, host, halted ? raised : INT64_MIN, t, &server, &raised) < 0)
		return -1;
	if (!waker_fits && (!search_source || raised > t))
		return path_emit_unknown(w, target, a, b);
	/* a softirq also handles events that arrived after it started */
	if (search_source && in && strncmp(in, "irq/", 4) == 0) {
		if (handler_start(w, v, t, in, &began) < 0)
			return -1;
		raised = began < raised ? began : raised;
	}
	const struct path_link via = { EDGE_INJECT, t - raised };
	int64_t before = raised - 1 < b ? raised - 1 : b;
	if (a <= before && server)
		rc = attribute_thread(w, server, a, before, via);
	else if (a <= before)
		rc = waker_fits ? attribute_sleep(w, target, host, raised, a, before, via.evidence)
		                : path_emit_unknown(w, target, a, before);
	int64_t from = raised = raised > a ? raised : a;
	if (rc == 0 && search_source && (rc = irq_source_skip_sleep(&w->irq_sources, host, server, &from)) == 0)
		rc = path_emit_unknown(w, &cpu, raised, from - 1 < b ? from - 1 : b);
	return rc < 0 || from > b ? rc : tile_target(w, &cpu, from, b, via);
}

/* Attributes [a, b] to the guest thread or interrupt that ran on vCPU v, when v, as a thread on its host, acted at t. */
static int attribute_guest(struct path_walker *w, const struct target *target, uint32_t v, int64_t t, enum path_edge edge,
                           int64_t a, int64_t b, int64_t evidence)
{
	struct cpu_tracks *c = resolver_cpu(&w->r, v);
	int64_t tid, in;
	if (track_at(&w->r, &c->running, t, &tid) < 0 || track_at(&w->r, &c->interrupt, t, &in) < 0)
		return -1;
	struct path_link via = { edge, evidence };
	if (tid == HISTORY_NULL) {  /* the guest has no events at that time: the path ends with its vCPU */
		const struct target cpu = { TARGET_CPU, v };
		/* the last current thread need not have made the request; if none was ever recorded, the time is unknown */
		const int64_t since = c->running.iv.start > a ? c->running.iv.start : a;
		if (path_emit_unknown(w, &cpu, a, since <= b ? since - 1 : b) < 0)
			return -1;
		return since > b ? 0 : attribute_target(w, &cpu, since, b, via);
	}
	if (in == HISTORY_NULL && tid > 0 && tid <= INT32_MAX)
		return attribute_thread(w, resolver_thread(&w->r, w->catalog->cpu[v].machine, (int32_t)tid), a, b, via);
	const char *handler = in == HISTORY_NULL ? NULL : history_string(w->catalog->h, in);
	return attribute_interrupt(w, target, v, t, handler, a, b);
}

/* Finds the guest CPU on which handler `in` ran at t and woke a thread. Returns -1 on error, -2 if unknown. */
static int handler_cpu(struct path_walker *w, uint32_t machine, const char *in, int64_t t)
{
	const struct catalog_machine *m = &w->catalog->machine[machine];
	int found = -2;
	if (m->cpus == 1)
		return (int)m->cpu;
	for (uint32_t c = m->cpu; c < m->cpu + m->cpus; c++) {
		int64_t value;
		if (track_at(&w->r, &resolver_cpu(&w->r, c)->interrupt, t, &value) < 0)
			return -1;
		if (value == HISTORY_NULL || strcmp(history_string(w->catalog->h, value), in) != 0)
			continue;
		if (found >= 0)
			return -2;
		found = (int)c;
	}
	return found;
}

/* Finds the actor that is being woken: the sleeping thread, or the vCPU that it executes. */
static int woken_actor(struct path_walker *w, const struct target *target, const struct thread_ref *sleeper, int64_t t,
                       struct actor *actor)
{
	int vcpu;
	if (resolver_vcpu(&w->r, sleeper, t, &vcpu) < 0)
		return -1;
	if (vcpu >= 0)
		return path_identity(w, &(struct target){ TARGET_CPU, (uint32_t)vcpu }, t, actor);
	const struct target thread = { TARGET_THREAD, (uint32_t)sleeper->thread };
	return path_identity(w, sleeper->thread < 0 ? target : &thread, t, actor);
}

/* Attributes [a, b] to a wakeup that waits for the host's CPU `cpu`: the culprit is the actor that has this CPU. */
static int attribute_wakeup_delay_on(struct path_walker *w, const struct target *target, struct thread_ref *sleeper,
                                     int cpu, int64_t a, int64_t b)
{
	for (int64_t end; a <= b; a = end + 1) {
		struct resolution p = { .actor = { .kind = FLOW_UNKNOWN }, .host_thread = -1 };
		struct path_interval interval = { .start = a, .culprit = path_no_actor, .edge = EDGE_IPI, .evidence = PATH_PROVEN };
		if (woken_actor(w, target, sleeper, a, &interval.actor) < 0)
			return -1;
		w->r.until = b;
		if (cpu >= 0 && resolve_target(&w->r, &(struct target){ TARGET_CPU, (uint32_t)cpu }, a, &p) < 0)
			return -1;
		end = interval.end = w->r.until;
		interval.actor.kind = p.actor.kind;
		if (p.actor.kind == FLOW_PREEMPTING && p.host_thread >= 0 && p.host_thread == sleeper->thread)
			interval.actor.kind = FLOW_RUNNING;  /* the sleeper is still running there */
		else if (p.actor.kind == FLOW_PREEMPTING || p.actor.kind == FLOW_IRQ)
			interval.culprit = p.actor;
		else if (p.actor.kind == FLOW_UNKNOWN)
			interval.evidence = PATH_NO_EVIDENCE;
		if (path_emit(w, &interval) < 0)
			return -1;
	}
	return 0;
}

/* Attributes [a, b], a sleep's end, to the wakeup's delivery to another CPU, after the waker acted. */
static int attribute_wakeup_delay(struct path_walker *w, const struct target *target, struct thread_ref *sleeper,
                                  int64_t at, int64_t a, int64_t b)
{
	int64_t number;
	if (a > b)
		return 0;
	if (track_at(&w->r, &thread_tracks(&w->r, sleeper)[TRACK_CPU], at, &number) < 0)
		return -1;
	int32_t machine = cpu_machine(w->catalog, (uint32_t)sleeper->machine);
	int cpu = number < 0 || number > INT16_MAX || machine < 0 ? -1
	        : catalog_find_cpu(w->catalog, (uint32_t)machine, (unsigned)number);
	if (cpu >= 0 && w->catalog->machine[machine].kind == MACHINE_VM)
		return tile_target(w, &(struct target){ TARGET_CPU, (uint32_t)cpu }, a, b,
		                   (struct path_link){ EDGE_IPI, PATH_PROVEN });
	return attribute_wakeup_delay_on(w, target, sleeper, cpu, a, b);
}

/* Attributes [a, b] to the actor that acted at by->at, for which the target waits. evidence: this wait's. */
static int attribute_to_waker(struct path_walker *w, const struct target *target, struct thread_ref *sleeper,
                              const struct wakeup *by, int64_t a, int64_t b, int64_t evidence)
{
	int is_vcpu, vcpu;
	uint32_t machine = (uint32_t)by->machine;
	bool thread = strcmp(by->in, "thread") == 0, guest = w->catalog->machine[machine].kind == MACHINE_VM;
	bool packet = !thread && !guest && by->tid > 0 && wakeup_is_network(by->in);
	if (!thread && guest) {
		int v = handler_cpu(w, machine, by->in, by->at);
		return v == -1 ? -1 : v < 0 ? path_emit_unknown(w, target, a, b)
		                            : attribute_interrupt(w, target, (uint32_t)v, by->at, by->in, a, b);
	}
	if (thread && by->tid <= 0)  /* the idle task acted on behalf of a thread that no event shows */
		return path_emit_unknown(w, target, a, b);
	if (!thread && !packet)
		return path_emit_handler(w, machine, by->in, a, b, (struct path_link){ EDGE_IRQ, evidence });
	if (packet && evidence == PATH_PROVEN)
		evidence = 0;
	struct thread_ref *waker = resolver_thread(&w->r, machine, by->tid);
	if (resolver_vcpu(&w->r, sleeper, by->at, &is_vcpu) < 0 || resolver_vcpu(&w->r, waker, by->at, &vcpu) < 0)
		return -1;
	if (vcpu >= 0)
		return attribute_guest(w, target, (uint32_t)vcpu, by->at, is_vcpu >= 0 ? EDGE_IPI : EDGE_REQUEST, a, b, evidence);
	return attribute_thread(w, waker, a, b, (struct path_link){ is_vcpu >= 0 ? EDGE_INJECT : EDGE_WAKE, evidence });
}

/* Attributes [a, b], a part of a sleep that ended before `at`, to that sleep's waker. */
static int attribute_sleep(struct path_walker *w, const struct target *target, struct thread_ref *sleeper, int64_t at,
                           int64_t a, int64_t b, int64_t evidence)
{
	struct wakeup by;
	struct thread_ref *const outer = w->waiter;
	if (a > b)
		return 0;
	if (w->depth >= DEPTH_MAX)
		return path_emit_unknown(w, target, a, b);
	if (wakeup_of(&w->r, sleeper, at, &by) < 0)
		return -1;
	if (!by.in)
		return path_emit_unknown(w, target, a, b);
	int64_t before = by.at - 1 < b ? by.at - 1 : b;
	w->depth++;
	if (target->kind == TARGET_THREAD)
		w->waiter = resolver_thread(&w->r, w->catalog->thread[target->index].machine,
		                            w->catalog->thread[target->index].tid);
	int rc = a <= before ? attribute_to_waker(w, target, sleeper, &by, a, before, evidence) : 0;
	if (rc == 0)
		rc = attribute_wakeup_delay(w, target, sleeper, at, by.at > a ? by.at : a, b);
	w->waiter = outer;
	w->depth--;
	return rc;
}

static int path_emit_idle(struct path_walker *w, const struct target *target, int64_t a, int64_t b, enum flow_kind kind,
                          struct path_link via)
{
	struct actor actor;
	if (path_identity(w, target, a, &actor) < 0)
		return -1;
	actor.kind = (uint8_t)kind;
	return path_emit_own(w, a, b, &actor, via);
}

/* Returns 1 if another vCPU on the machine ended this vCPU's halt at `until`, 0 if not, -1 on error. */
static int is_ended_by_sibling(struct path_walker *w, uint32_t machine, struct thread_ref *sleeper, int64_t until)
{
	struct wakeup by;
	int vcpu;
	if (wakeup_of(&w->r, sleeper, until < history_last(w->catalog->h) ? until + 1 : INT64_MAX, &by) < 0)
		return -1;
	if (!by.in || strcmp(by.in, "thread") != 0)
		return 0;
	if (resolver_vcpu(&w->r, resolver_thread(&w->r, (uint32_t)by.machine, by.tid), by.at, &vcpu) < 0)
		return -1;
	return vcpu >= 0 && w->catalog->cpu[vcpu].machine == machine;
}

/* Appends the reasons for the target's sleep: it waits at t, but not for a CPU. Covers the time up to *end, which it
 * sets. */
static int append_wait(struct path_walker *w, const struct target *target, int64_t t, int64_t *end, struct path_link via)
{
	struct thread_ref *sleeper;
	if (find_sleeper(w, target, t, &sleeper) < 0)
		return -1;
	if (sleeper) {
		int64_t until = thread_tracks(&w->r, sleeper)[TRACK_STATUS].iv.end;
		*end = until < *end ? until : *end;
		int led = via.edge != EDGE_IPI || target->kind != TARGET_CPU ? 1
		        : is_ended_by_sibling(w, w->catalog->cpu[target->index].machine, sleeper, until);
		if (led < 0)
			return -1;
		if (!led)
			return path_emit_idle(w, target, t, *end, FLOW_IDLE_CPU, via);
		return attribute_sleep(w, target, sleeper, until < history_last(w->catalog->h) ? until + 1 : INT64_MAX, t, *end,
		                       PATH_PROVEN);
	}
	if (target->kind != TARGET_CPU)
		return path_emit_unknown(w, target, t, *end);
	struct resolution p;
	if (resolve_idle(&w->r, target->index, t, &p) < 0)
		return -1;
	*end = w->r.until < *end ? w->r.until : *end;
	if (p.actor.kind != FLOW_IDLE_CPU)
		return path_emit_resolution(w, target, &p, t, *end, via);
	/* Appends an executing guest's idle task: the thread that is being woken waits for an idle CPU. */
	return path_emit_idle(w, target, t, *end, via.edge == EDGE_START ? FLOW_RUNNING : FLOW_IDLE_CPU, via);
}

int path_append(struct path_walker *w, const struct target *target, int64_t t, int64_t b, struct path_link via,
                int64_t *end)
{
	struct resolution p;
	w->r.until = b;
	int rc = resolve_target(&w->r, target, t, &p);
	*end = w->r.until;
	if (rc == 0)
		rc = p.actor.kind == FLOW_WAITING ? append_wait(w, target, t, end, via)
		                                  : path_emit_resolution(w, target, &p, t, *end, via);
	return rc;
}

/* Tiles [a, b] with path_append(). */
static int tile_target(struct path_walker *w, const struct target *target, int64_t a, int64_t b, struct path_link via)
{
	int64_t end = a - 1;
	int rc = 0;
	while (rc == 0 && end < b)
		rc = path_append(w, target, end + 1, b, via, &end);
	return rc;
}
