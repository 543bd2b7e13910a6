#include "model/loss/initial_state.h"

#include "base/states.h"
#include "model/loss/coverage.h"

#define INDEX_BITS 40
#define HIDDEN_MIN 4  /* switches that were not recorded without a loss, after which the trace is not complete */
#define SILENT_CPUS_MAX 1024  /* most CPUs that are read one by one: a damaged trace may contain CPU 65535 */

void prescan_release(struct prescan *s)
{
	free(s->thread);
	free(s->epoch);
	free(s->cpu);
	proved_sleeps_release(&s->proved_sleeps);
	unseen_handlers_release(&s->handlers);
	idle_stats_release(&s->idle_stats);
	map_release(&s->seen);
	map_release(&s->entered);
	*s = (struct prescan)PRESCAN_INIT;
}

int8_t prescan_thread_state(const struct prescan *s, const struct prescan_thread *th)
{
	/* The dump also lists current threads as runnable; on a CPU without events they cannot be distinguished from queued
	 * threads. */
	const bool open = th->dumped && th->sched == THREAD_PREEMPTED && th->cpu >= 0 &&
	                  ((uint32_t)th->cpu >= s->cpus || !s->cpu[th->cpu].seen);
	const bool has_wakeups = s->wakeups || s->wakings, has_forks = s->forks || (s->asked & ENABLED_FORKS);
	const bool was_queued = has_wakeups && (th->mentioned_before || has_forks) && s->hidden < HIDDEN_MIN;
	return open || (th->switched_in && !was_queued) ? THREAD_UNKNOWN : th->sched;
}

bool prescan_has_entries(const struct prescan *s, int64_t tid)
{
	return s && s->entered.len && map_find(&s->entered, (uint64_t)vcpu_process((tid - VCPU_TID_FIRST) / VCPU_TIDS_PER_VM));
}

bool prescan_is_unrecorded(const struct prescan *s, int64_t cpu)
{
	return s && cpu >= 0 && cpu < s->cpus && s->cpu[cpu].nowhere;
}

int8_t dumped_thread_state(const struct event *ev)
{
	return ev->process.state == RUN_BLOCKED ? THREAD_BLOCKED
	     : ev->process.state == RUN_RUNNABLE ? THREAD_PREEMPTED : THREAD_UNKNOWN;
}

static void begin_epoch(struct prescan *s)
{
	*ARRAY_PUSH(s->epoch, s->epochs, s->epoch_cap) = s->threads;
}

void prescan_epoch(const struct prescan *s, size_t epoch, size_t *from, size_t *to)
{
	*from = epoch < s->epochs ? s->epoch[epoch] : s->threads;
	*to = epoch + 1 < s->epochs ? s->epoch[epoch + 1] : s->threads;
}

/* Records an event that names a TID. Returns true if it is the first in this epoch; *mentioned_before: another epoch had
 * one. *th: the thread's entry; NULL: none. */
static bool record_mention(struct prescan *s, int64_t tid, struct prescan_thread **th, bool *mentioned_before)
{
	*th = NULL;
	if (tid <= 0 || tid > INT32_MAX)
		return false;
	uint64_t *slot = map_put(&s->seen, (uint64_t)tid, NULL);
	*mentioned_before = *slot != 0;
	if (*slot >> INDEX_BITS == s->epochs) {
		uint64_t index = *slot & ((1ULL << INDEX_BITS) - 1);
		*th = index ? &s->thread[index - 1] : NULL;
		return false;
	}
	*slot = (uint64_t)s->epochs << INDEX_BITS;
	return true;
}

static struct prescan_thread *find_mentioned(struct prescan *s, int64_t tid)
{
	uint64_t *slot = tid > 0 ? map_find(&s->seen, (uint64_t)tid) : NULL;
	uint64_t index = slot && *slot >> INDEX_BITS == s->epochs ? *slot & ((1ULL << INDEX_BITS) - 1) : 0;
	return index ? &s->thread[index - 1] : NULL;
}

/* Returns the thread to fill in at the first event that names the TID in this epoch, or that resolves its placement;
 * NULL: not needed. */
static struct prescan_thread *first_mention(struct prescan *s, int64_t tid, int8_t sched)
{
	struct prescan_thread *th;
	bool mentioned_before;
	if (record_mention(s, tid, &th, &mentioned_before)) {
		th = ARRAY_PUSH(s->thread, s->threads, s->thread_cap);
		*th = (struct prescan_thread){ .tid = (int32_t)tid, .pid = -1, .cpu = -1, .mentioned_before = mentioned_before };
		*map_find(&s->seen, (uint64_t)tid) |= s->threads;
	} else if (!th || !th->pending) {
		return NULL;
	}
	th->pending = false;
	th->sched = sched;
	th->switched_in = false;
	return th;
}

/* Sets the first known CPU of a thread, once: a migration contains the CPU before it, later events the CPU after it. */
static void set_first_cpu(struct prescan_thread *th, int64_t cpu)
{
	if (th->cpu < 0 && cpu >= 0 && cpu <= UINT16_MAX)
		th->cpu = (int32_t)cpu;
}

static uint32_t name_id(int64_t comm)
{
	return comm > 0 && comm <= UINT32_MAX ? (uint32_t)comm : 0;
}

static void add_cpus(struct prescan *s, uint32_t number)
{
	s->cpu = mem_resize(s->cpu, number + 1, sizeof *s->cpu);
	for (uint32_t i = s->cpus; i <= number; i++)
		s->cpu[i] = (struct prescan_cpu){ .tid = -1, .pid = -1, .mode = MODE_UNKNOWN, .pid_tid = -1, .next = -1 };
	s->cpus = number + 1;
}

static inline struct prescan_cpu *get_cpu(struct prescan *s, uint32_t number)
{
	if (number >= s->cpus)
		add_cpus(s, number);
	return &s->cpu[number];
}

/* Returns true for events recorded after the thread got its new name. */
static bool is_rename(const struct event *ev)
{
	return ev->kind == EV_EXEC || ev->kind == EV_RENAME;
}

/* Sets the current thread of a CPU from its first event: that thread has been current since the beginning. */
static void set_current(struct prescan *s, struct prescan_cpu *c, uint32_t number, const struct event *ev)
{
	bool is_switch = ev->kind == EV_SWITCH && ev->sw.prev_tid >= 0 && ev->sw.prev_tid <= INT32_MAX;
	int64_t tid = is_switch ? ev->sw.prev_tid : ev->tid;
	if (tid < 0)
		return;
	c->tid = (int32_t)tid;
	c->comm = is_switch ? name_id(ev->sw.prev_comm) : is_rename(ev) ? 0 : ev->comm;
	c->pid = tid == ev->tid ? ev->pid : -1;
	struct prescan_thread *th = first_mention(s, tid, THREAD_RUNNING);
	if (th)
		set_first_cpu(th, number);
}

/* Sets the initial mode of a CPU's first current thread, in case it is a vCPU: if its first event is a VM entry or a
 * switch, it was in the hypervisor before. A run state does not decide alone: finish_modes(). */
static void set_mode(struct prescan_cpu *c, const struct event *ev)
{
	c->mode_known = ev->kind == EV_VCPU_EXIT || ev->kind == EV_VCPU_ENTRY || ev->kind == EV_SWITCH ||
	                ev->kind == EV_VCPU_STATE;
	if (c->mode_known && ev->kind != EV_VCPU_STATE)
		c->mode = ev->kind == EV_VCPU_EXIT ? MODE_GUEST : MODE_VMM;
}

/* Sets the initial mode of CPUs with a run state as their first event. A hypervisor writes records only outside guest
 * mode, and a vCPU with VM entries leaves guest mode with a record. Other vCPUs have no mode: running counts as guest
 * mode. */
static void finish_modes(struct prescan *s)
{
	for (uint32_t i = 0; i < s->cpus; i++)
		if (s->cpu[i].has_run_state && s->cpu[i].mode_known && s->cpu[i].mode == MODE_UNKNOWN)
			s->cpu[i].mode = prescan_has_entries(s, s->cpu[i].tid) ? MODE_VMM : MODE_GUEST;
}

/* Returns true if a thread that the dump lists as runnable may be current: its CPU has had no event since the last loss. */
static bool may_be_current(const struct prescan *s, const struct event *ev)
{
	const int64_t cpu = ev->process.cpu;
	return ev->process.state == RUN_RUNNABLE && cpu >= 0 && (cpu >= s->cpus || s->cpu[cpu].epoch != s->epochs);
}

static void on_process(struct prescan *s, const struct event *ev)
{
	if (ev->process.state == RUN_DEAD)
		return;
	struct prescan_thread *th = first_mention(s, ev->process.tid, dumped_thread_state(ev));
	if (th) {
		const bool has_state = ev->process.state != EVENT_ABSENT;
		th->dumped = has_state && th->cpu < 0;
		th->pending = !has_state || (s->epochs > 1 && may_be_current(s, ev));
		set_first_cpu(th, ev->process.cpu);
	}
	if (!th)
		th = find_mentioned(s, ev->process.tid);
	if (!th)
		return;
	if (!th->comm && !th->renamed)
		th->comm = name_id(ev->process.comm);
	if (ev->process.pid > 0 && ev->process.pid <= INT32_MAX)
		th->pid = (int32_t)ev->process.pid;
}

/* Sets a namespace once: a dump lists the innermost namespace first. */
static void set_namespace(uint32_t *to, int64_t ns)
{
	if (!*to && ns > 0 && ns <= UINT32_MAX)
		*to = (uint32_t)ns;
}

static void on_switch(struct prescan *s, struct prescan_cpu *c, const struct event *ev)
{
	s->switches++;
	s->hidden += c->next >= 0 && ev->sw.prev_tid >= 0 && c->next != ev->sw.prev_tid;
	c->next = ev->sw.next_tid;
	bool moved = find_mentioned(s, ev->sw.next_tid);
	struct prescan_thread *th = first_mention(s, ev->sw.next_tid, THREAD_PREEMPTED);
	if (!th)
		return;
	if (!moved)
		th->cpu = ev->cpu;
	th->switched_in = true;
	th->comm = th->renamed ? 0 : name_id(ev->sw.next_comm);
}

static void on_wake(struct prescan *s, const struct event *ev)
{
	struct prescan_thread *th = first_mention(s, ev->wake.tid, THREAD_BLOCKED);
	s->wakeups += ev->kind == EV_WAKEUP;
	s->wakings += ev->kind == EV_WAKING;
	if (!th)
		return;
	th->comm = name_id(ev->wake.comm);
	/* sched_waking contains the CPU on which the thread ran last, sched_wakeup the CPU on which it is queued */
	if (ev->kind == EV_WAKING)
		set_first_cpu(th, ev->wake.target_cpu);
}

static void on_migrate(struct prescan *s, const struct event *ev)
{
	struct prescan_thread *th = first_mention(s, ev->migrate.tid, THREAD_UNKNOWN);
	s->migrations++;
	if (!th)
		return;
	th->pending = true;
	set_first_cpu(th, ev->migrate.orig_cpu);
}

/* The end of a throttled interval may be a thread's first event: it began before. */
static void on_throttled(struct prescan *s, const struct event *ev)
{
	struct prescan_thread *th = ev->throttled.on ? NULL : first_mention(s, ev->throttled.tid, THREAD_PREEMPTED);
	if (th)
		set_first_cpu(th, ev->cpu);
}

/* Sets a thread's PID, which may occur later than the first event that names the thread. */
static void on_context(struct prescan *s, struct prescan_cpu *c, const struct event *ev)
{
	if ((c->pid_tid == ev->tid && c->pid_epoch == s->epochs) || ev->pid <= 0 || ev->tid <= 0)
		return;
	c->pid_tid = ev->tid;
	c->pid_epoch = s->epochs;
	struct prescan_thread *th = find_mentioned(s, ev->tid);
	if (th && th->pid < 0)
		th->pid = ev->pid;
}

/* Ends a thread's life: later events with this TID name another thread. */
static void end_life(struct prescan *s, int64_t tid)
{
	uint64_t *slot = tid > 0 && tid <= INT32_MAX ? map_put(&s->seen, (uint64_t)tid, NULL) : NULL;
	if (slot)
		*slot = (uint64_t)s->epochs << INDEX_BITS;
}

/* By event kind: the modules that process it. */
enum { FEED_SLEEPS = 1, FEED_HANDLERS = 2, FEED_IDLE = 4 };
static const uint8_t consumers[EVENT_KIND_COUNT] = {
	[EV_LOST] = FEED_SLEEPS | FEED_HANDLERS | FEED_IDLE, [EV_SWITCH] = FEED_SLEEPS | FEED_HANDLERS | FEED_IDLE,
	[EV_WAKING] = FEED_SLEEPS | FEED_IDLE, [EV_FORK] = FEED_SLEEPS, [EV_VCPU_STATE] = FEED_SLEEPS,
	[EV_IRQ_ENTRY] = FEED_HANDLERS, [EV_SOFTIRQ_ENTRY] = FEED_HANDLERS, [EV_TIMER_ENTRY] = FEED_HANDLERS,
	[EV_IRQ_EXIT] = FEED_HANDLERS, [EV_SOFTIRQ_EXIT] = FEED_HANDLERS, [EV_TIMER_EXIT] = FEED_HANDLERS,
	[EV_VCPU_ENTRY] = FEED_IDLE, [EV_VCPU_EXIT] = FEED_IDLE, [EV_INJECT] = FEED_IDLE, [EV_IPI] = FEED_IDLE,
};

static void feed_modules(struct prescan *s, const struct event *ev, unsigned consumer)
{
	if (consumer & FEED_SLEEPS)
		proved_sleeps_feed(&s->proved_sleeps, ev);
	if (consumer & FEED_HANDLERS)
		unseen_handlers_feed(&s->handlers, ev);
	if (consumer & FEED_IDLE)
		idle_stats_feed(&s->idle_stats, ev, ev->kind == EV_WAKING && unseen_handlers_inside(&s->handlers, ev->cpu));
}

#define VM_KEY (UINT64_C(1) << 32)  /* keys of VMs in prescan.seen: above all TIDs */

/* Stores the state before the first run state of a vCPU: the event contains it. The vCPUs of a VM that was created in
 * this epoch did not exist before. */
static void on_vcpu_state(struct prescan *s, struct prescan_cpu *c, const struct event *ev)
{
	const int64_t old = ev->vcpu_state.old, vm = ev->vcpu_state.vm;
	const bool is_first = !c->has_run_state && (old == VCPU_STATE_RUNNING || ev->vcpu_state.state == VCPU_STATE_RUNNING);
	const int32_t tid = vm == EVENT_ABSENT ? 0 : vcpu_thread_id(vm, ev->vcpu_state.vcpu);
	if (is_first && old == VCPU_STATE_RUNNING && !c->lost)
		c->tid = tid;
	c->has_run_state |= is_first;
	if (ev->vcpu_state.state == VCPU_STATE_RUNNING)
		c->vm = vm == EVENT_ABSENT ? 0 : vcpu_process(vm);
	else if (old == VCPU_STATE_RUNNING)
		c->vm = 0;
	const uint64_t *created = vm == EVENT_ABSENT ? NULL : map_find(&s->seen, VM_KEY | (uint64_t)vm);
	if (tid <= 0 || (created && *created == s->epochs))
		return;
	struct prescan_thread *th = first_mention(s, tid, old == VCPU_STATE_RUNNING ? THREAD_RUNNING
	                                          : old == VCPU_STATE_RUNNABLE ? THREAD_PREEMPTED : THREAD_BLOCKED);
	if (!th)
		return;
	th->pid = vcpu_process(vm);
	th->comm = name_id(ev->vcpu_state.name);
	th->is_offline = old == VCPU_STATE_OFFLINE;
	if (c->tid == tid && s->epochs == 1) {
		c->comm = th->comm;
		c->pid = th->pid;
	}
}

static void on_hypervisor(struct prescan *s, struct prescan_cpu *c, const struct event *ev)
{
	if (ev->kind == EV_VCPU_STATE)
		on_vcpu_state(s, c, ev);
	else if (ev->kind == EV_VCPU_ENTRY && c->vm > 0)
		*map_put(&s->entered, (uint64_t)c->vm, NULL) = 1;
	else if (ev->kind == EV_VM && ev->vm.exists && ev->vm.vm >= 0)
		*map_put(&s->seen, VM_KEY | (uint64_t)ev->vm.vm, NULL) = s->epochs;
}

static void on_lost(struct prescan *s, const struct event *ev)
{
	const int64_t end = ev->lost.end > ev->ts ? ev->lost.end : ev->ts;
	s->lost_until = end > s->lost_until || s->epochs == 1 ? end : s->lost_until;
	s->lost_pending = true;
	get_cpu(s, ev->cpu)->lost = true;
	get_cpu(s, ev->cpu)->vm = 0;
	begin_epoch(s);
}

void prescan_feed(struct prescan *s, const struct event *ev)
{
	struct prescan_thread *th;
	feed_modules(s, ev, consumers[ev->kind]);
	if (!s->epochs)
		begin_epoch(s);
	if (s->lost_pending && ev->ts > s->lost_until) {
		begin_epoch(s);
		s->lost_pending = false;
	}
	if (ev->kind == EV_LOST) {
		on_lost(s, ev);
		get_cpu(s, ev->cpu)->next = -1;
		return;
	}
	struct prescan_cpu *c = get_cpu(s, ev->cpu);
	c->epoch = s->epochs;
	if (!c->lost) {
		c->seen = true;
		if (c->tid < 0)
			set_current(s, c, ev->cpu, ev);
		if (!c->mode_known)
			set_mode(c, ev);
	}
	if (s->epochs > 1) {  /* Events of the current thread also count as first events. */
		first_mention(s, ev->tid, THREAD_RUNNING);
		if (ev->kind == EV_SWITCH)
			first_mention(s, ev->sw.prev_tid, THREAD_RUNNING);
	}
	on_context(s, c, ev);
	switch (ev->kind) {
	case EV_SWITCH:
		on_switch(s, c, ev);
		break;
	case EV_WAKING:
	case EV_WAKEUP:
		on_wake(s, ev);
		break;
	case EV_MIGRATE:
		on_migrate(s, ev);
		break;
	case EV_THROTTLED:
		on_throttled(s, ev);
		break;
	case EV_FORK:
		s->forks++;
		end_life(s, ev->fork.child_tid);
		break;
	case EV_EXIT:
		end_life(s, ev->exit.tid == EVENT_ABSENT ? ev->tid : ev->exit.tid);
		break;
	case EV_EXEC:
	case EV_RENAME:
		th = find_mentioned(s, ev->kind == EV_EXEC ? ev->exec.tid > 0 ? ev->exec.tid : ev->tid : ev->rename.tid);
		if (th)
			th->renamed = true;
		break;
	case EV_PROCESS:
		on_process(s, ev);
		break;
	case EV_PROCESS_NS:
	case EV_PROCESS_CGROUP:
		th = find_mentioned(s, ev->process_ns.tid);
		if (th)
			set_namespace(ev->kind == EV_PROCESS_NS ? &th->pid_ns : &th->cgroup_ns, ev->process_ns.ns);
		break;
	default:
		on_hypervisor(s, c, ev);
		break;
	}
}

void prescan_add_silent(struct prescan *s, uint32_t cpu)
{
	get_cpu(s, cpu)->silent = true;
}

/* Sets the current thread of CPUs without events to the only runnable thread that the dump lists there: a CPU without
 * events runs one thread all the time. */
static void set_silent_currents(struct prescan *s)
{
	size_t at, end;
	for (prescan_epoch(s, 0, &at, &end); at < end; at++) {
		struct prescan_thread *th = &s->thread[at];
		if (!th->dumped || th->sched != THREAD_PREEMPTED || th->cpu < 0 || (uint32_t)th->cpu >= s->cpus)
			continue;
		struct prescan_cpu *c = &s->cpu[th->cpu];
		if (!c->silent)
			continue;
		c->runnable_threads++;
		c->tid = c->runnable_threads > 1 ? -1 : th->tid;
		c->comm = th->comm;
		c->pid = th->pid;
		th->sched = THREAD_UNKNOWN;
	}
	for (uint32_t i = 0; i < s->cpus; i++)
		s->cpu[i].seen |= s->cpu[i].runnable_threads > 0;
}

void prescan_finish(struct prescan *s)
{
	if (s->switches)
		set_silent_currents(s);
	finish_modes(s);
	proved_sleeps_finish(&s->proved_sleeps);
	idle_stats_finish(&s->idle_stats);
	map_release(&s->seen);
}

/* Reads CPUs without events of the kinds that the model uses: any other event also shows the current thread. */
static int read_silent_cpus(struct prescan *s, const struct trace *trace, struct error *err)
{
	uint32_t n_read = 0;
	for (uint32_t i = 0; i < trace_info(trace)->cpus && n_read < SILENT_CPUS_MAX; i++) {
		struct event ev;
		int got = 0;
		if (i < s->cpus && (s->cpu[i].tid >= 0 || s->cpu[i].lost))
			continue;
		struct trace_cursor *c = trace_cursor_open(trace, ALL_KINDS, (int)i, err);
		if (!c)
			return -1;
		for (int n = 0; n < 1000 && (got = trace_cursor_next(c, &ev, err)) > 0 && ev.kind != EV_LOST; n++) {
			struct prescan_cpu *cpu = get_cpu(s, i);
			cpu->seen = true;
			set_current(s, cpu, i, &ev);
			if (cpu->tid >= 0)
				break;
		}
		trace_cursor_close(c);
		if (got < 0)
			return -1;
		n_read += got > 0;
		if (got == 0)
			prescan_add_silent(s, i);
	}
	const struct trace_info *info = trace_info(trace);
	for (uint32_t i = 0; i < info->cpus_listed; i++)
		if (info->cpu[i].nowhere)
			get_cpu(s, i)->nowhere = true;
	for (uint32_t i = info->cpus; i < info->cpus_listed; i++)
		if (info->cpu[i].is_recorded && info->cpu[i].begin <= info->cpu[i].end)
			prescan_add_silent(s, i);
	return 0;
}

int prescan_read(struct prescan *s, const struct trace *trace, const struct clock_map *clock, struct error *err)
{
	const event_kinds kinds = ALL_KINDS & ~(KIND(EV_OTHER) | KIND(EV_SYNC) | KIND(EV_HYPERCALL));
	const struct event *ev;
	struct coverage c;
	s->asked = trace_info(trace)->asked;
	int got = coverage_open(&c, trace, clock, kinds, err);
	for (long n = 0; n < PRESCAN_EVENTS && got >= 0 && (got = coverage_next(&c, &ev, err)) > 0; n++)
		prescan_feed(s, ev);
	coverage_close(&c);
	if (got >= 0)
		got = read_silent_cpus(s, trace, err);
	prescan_finish(s);
	return got;
}
