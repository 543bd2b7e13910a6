/* What each event does to the state of its machine (paper, section "Multi-level trace analysis").
 *
 * Every event first proves who is current on its CPU, by its context; then it has its own effect (a table, below).  Facts
 * are set with cpu_*() and thread_*(), consequences follow in update.c.  O(1) per event, except a lost-events record, which
 * looks at every live thread of its machine. */
#include "model/state/feed.h"

#include <stdio.h>

/* Makes `tid` the current thread of the CPU, which an event has just proved. */
static void prove(struct machine *mc, uint32_t number, int64_t tid)
{
	const struct cpu *c = &mc->cpu[number];
	struct thread *old = c->current;
	if (tid < 0 || (c->state == CPU_IDLE && tid == 0) || (old && old->tid == tid))
		return;
	struct thread *th = tid ? thread_get(mc, tid) : NULL;
	if (tid && !th)
		return;
	limits_doubt(&mc->cpu[number]);
	bool known = c->state != CPU_UNKNOWN;
	if (tid == 0 && c->vcpu == NONE && cpu_is_stopped(mc, number)) {  /* its switch to the idle thread is not recorded */
		cpu_was_offline(mc, number);
		known = false;
	}
	cpu_enter(mc, number, th, MODE_UNKNOWN);
	if (old && old->pid == tid)  /* exec by another thread than the leader: it takes the leader's TID, its own is gone */
		thread_die(mc, old);
	else if (known)
		mc->contradictions++;
}

static void on_switch(struct machine *mc, struct cpu *c, const struct event *ev)
{
	const uint32_t number = ev->cpu;
	irq_clear(mc, c);
	prove(mc, number, ev->sw.prev_tid);
	struct thread *next = ev->sw.next_tid > 0 ? thread_get(mc, ev->sw.next_tid) : NULL;
	limits_switch(mc, c, next, ev);
	struct thread *prev = c->current;
	if (prev) {
		thread_learn(mc, prev, ev->sw.prev_comm, -1);
		prev = cpu_leave(mc, number);
		prev->woken = WOKEN_NO;
		prev->since = mc->model->sink.now;
		if (ev->sw.prev_state == RUN_RUNNABLE)
			prev->sched = THREAD_PREEMPTED;
		else if (ev->sw.prev_state != EVENT_ABSENT)
			prev->sched = THREAD_BLOCKED;
		prev->waker_at = mc->model->sink.now;  /* if somebody has */
		if (prev->sched != THREAD_BLOCKED)
			prev->waker = -1;
	}
	if (next) {
		mc->unwoken += !mc->wakes && next->sched == THREAD_BLOCKED;
		/* Nobody was seen to wake it.  A waking alone, as it left its CPU, may have, or not have found it asleep yet. */
		if (next->sched == THREAD_BLOCKED && (next->unborn || !mc->tells_wakes || mc->waking_moves))
			thread_wakes(mc, next, (int32_t)number);
		if (next->sched == THREAD_BLOCKED)
			thread_waker(mc, next);  /* nobody, if nobody was seen to */
		next->unborn = false;
		thread_strays(mc, next, number);
		cpu_enter(mc, number, next, MODE_VMM);  /* Fig. 5, transitions 3 and 6 */
		thread_learn(mc, next, ev->sw.next_comm, -1);
	} else if (ev->sw.next_tid == 0) {
		cpu_enter(mc, number, NULL, MODE_VMM);
	} else {
		cpu_unknown(mc, number);
	}
	if (!prev || prev == next)
		return;
	if (ev->sw.prev_state == RUN_DEAD) {
		thread_die(mc, prev);
		return;
	}
	known_told(mc, prev, ev->ts);
	if (prev->vcpu != NONE)
		limits_sleeps(&mc->model->vcpu[prev->vcpu], ev);
	update_thread(mc, prev);  /* Fig. 5, transitions 4 and 5 */
}

static int64_t current_tid(const struct cpu *c, const struct event *ev)
{
	if (ev->tid >= 0)
		return ev->tid;
	return c->current ? c->current->tid : c->state == CPU_IDLE ? 0 : -1;
}

/* The thread that is a vCPU is woken: what that says of its guest. */
static void on_wake_vcpu(const struct machine *mc, const struct cpu *c, struct vcpu *v, int64_t waker)
{
	const struct thread *by = thread_find(mc, waker);
	const struct quiet *sibling = by && by->vcpu != NONE ? &mc->model->vcpu[by->vcpu].quiet : NULL;
	quiet_woken(&v->quiet, c->nest.depth > 0 || waker <= 0, sibling);
}

static void note_waker(struct machine *mc, const struct cpu *c, struct thread *th, int64_t waker, int64_t at)
{
	if (waker > INT32_MAX)
		return;
	th->waker = (int32_t)waker;
	th->waker_in = irq_context(mc, c, waker);
	th->waker_at = at;
	th->woken_early = th->on >= 0;
}

/* It has its CPU.  Told to wake it, another CPU leaves that to this one if the thread is about to leave it; where it has
 * not begun to the wakeup follows at once, and it does not sleep. */
static void wake_early(struct machine *mc, const struct cpu *c, struct thread *th, const struct event *ev)
{
	th->waker = -1;
	if (ev->kind == EV_WAKING && !mc->waking_moves)
		note_waker(mc, c, th, current_tid(c, ev), mc->model->sink.now);
}

/* Is it the waker that is current where this is told?  sched_waking says so.  sched_wakeup comes where the thread is
 * queued: its own CPU does that for another one in an interrupt, in the midst of whatever it does; not in a handler of
 * timers. */
static bool tells_waker(const struct machine *mc, const struct cpu *c, const struct thread *th, const struct event *ev)
{
	const struct nest_frame *top = nest_top(&c->nest);
	return ev->kind == EV_WAKING || mc->one_cpu || th->unborn || (top && top->entry == EV_TIMER_ENTRY) ||
	       (ev->wake.target_cpu >= 0 && ev->wake.target_cpu != ev->cpu);
}

/* sched_waking says who wakes, in the waker's context; sched_wakeup follows, often in an interrupt of the CPU where
 * the thread is queued, and moves it.  Who is woken once cannot be again before that. */
static void on_wake(struct machine *mc, struct cpu *c, const struct event *ev)
{
	struct thread *th = thread_get(mc, ev->wake.tid);
	mc->wakes = true;
	mc->wakings |= ev->kind == EV_WAKING;
	if (!th)
		return;
	thread_learn(mc, th, ev->wake.comm, -1);
	if (th->vcpu != NONE && ev->kind == EV_WAKING)
		on_wake_vcpu(mc, c, &mc->model->vcpu[th->vcpu], current_tid(c, ev));
	if (th->on >= 0) {
		wake_early(mc, c, th, ev);
		return;
	}
	if (th->sched != THREAD_PREEMPTED && (th->waker < 0 || (th->woken_early && ev->kind == EV_WAKING))) {
		if (tells_waker(mc, c, th, ev))
			note_waker(mc, c, th, current_tid(c, ev), mc->model->sink.now);
		else
			mc->wakerless++;
	}
	if (ev->kind == EV_WAKING && !mc->waking_moves) {
		if (th->sched == THREAD_UNKNOWN) {  /* only what sleeps is woken, and it slept there */
			th->sched = THREAD_BLOCKED;
			thread_place(mc, th, ev->wake.target_cpu);
		}
		known_told(mc, th, ev->ts);
		update_thread(mc, th);
		return;
	}
	thread_place(mc, th, ev->wake.target_cpu);
	th->since = mc->model->sink.now;
	th->unborn = false;
	if (th->sched != THREAD_PREEMPTED) {
		thread_waker(mc, th);
		th->sched = THREAD_PREEMPTED;
		th->woken = WOKEN_YES;
	}
	known_told(mc, th, ev->ts);
	update_thread(mc, th);
}

static void on_migrate(struct machine *mc, struct cpu *c, const struct event *ev)
{
	(void)c;
	struct thread *th = thread_get(mc, ev->migrate.tid);
	if (!th || th->on >= 0)
		return;
	if (th->sched == THREAD_BLOCKED && !mc->tells_wakes) {  /* who sleeps stays where it is */
		thread_wakes(mc, th, th->cpu);
		th->sched = THREAD_PREEMPTED;
		th->woken = WOKEN_YES;
	}
	thread_place(mc, th, ev->migrate.dest_cpu);
	th->since = mc->model->sink.now;
	known_told(mc, th, ev->ts);
	update_thread(mc, th);
}

static void on_fork(struct machine *mc, struct cpu *c, const struct event *ev)
{
	(void)c;
	struct thread *old = thread_find(mc, ev->fork.child_tid);
	if (old)
		thread_die(mc, old);  /* its end was not seen */
	struct thread *th = thread_get(mc, ev->fork.child_tid);
	if (!th)
		return;
	const struct thread *parent = thread_find(mc, ev->fork.parent_tid);
	thread_pid_ns(mc, th, ev->fork.child_ns);
	if (parent)
		thread_cgroup_ns(mc, th, parent->cgroup_ns);
	thread_learn(mc, th, ev->fork.child_comm, ev->fork.child_pid);
	thread_place(mc, th, ev->cpu);
	th->sched = THREAD_BLOCKED;  /* it waits to be woken for the first time */
	th->unborn = true;
	if (th->vcpu != NONE) {
		mc->model->vcpu[th->vcpu].plugged = mc->model->vcpu[th->vcpu].vm->active;
		mc->model->vcpu[th->vcpu].unused = mc->has_kvm;
	}
	known_told(mc, th, ev->ts);
	update_thread(mc, th);
}

/* The name an exec gives: the last part of the file's name, cut as the kernel cuts it. */
static void on_exec(struct machine *mc, struct cpu *c, const struct event *ev)
{
	int64_t tid = tid_valid(ev->exec.tid) ? ev->exec.tid : current_tid(c, ev);
	struct thread *th = thread_find(mc, tid);
	if (!th || ev->exec.filename <= 0)
		return;
	const char *base = mc->names.get(mc->names.of, ev->exec.filename);
	for (const char *p = base; *p; p++)
		if (*p == '/' && p[1])
			base = p + 1;
	char name[NAME_LONGEST + 1];
	snprintf(name, sizeof name, "%s", base);
	th->comm = 0;  /* whatever the next event calls it is right */
	thread_rename(mc, th, name);
}

static void on_rename(struct machine *mc, struct cpu *c, const struct event *ev)
{
	struct thread *th = thread_find(mc, tid_valid(ev->rename.tid) ? ev->rename.tid : current_tid(c, ev));
	if (th)
		thread_learn(mc, th, ev->rename.comm, -1);
}

static void on_process(struct machine *mc, struct cpu *c, const struct event *ev)
{
	(void)c;
	struct thread *th = thread_find(mc, ev->process.tid);
	if (!th && ev->process.state == RUN_DEAD)
		return;
	if (!th)
		th = thread_get(mc, ev->process.tid);
	if (!th)
		return;
	thread_learn(mc, th, ev->process.comm, ev->process.pid);
	th->in_kernel = ev->process.type == PROCESS_KERNEL;
	if (th->on < 0 && th->sched == THREAD_UNKNOWN) {
		const bool open = ev->process.state == RUN_RUNNABLE && cpu_is_open(mc, ev->process.cpu);
		th->sched = open ? THREAD_UNKNOWN : start_dumped(ev);
		th->woken = WOKEN_PERHAPS;
		known_told(mc, th, ev->ts);
		thread_place(mc, th, ev->process.cpu);
	}
	update_thread(mc, th);
}

static void on_namespace(struct machine *mc, struct cpu *c, const struct event *ev)
{
	(void)c;
	struct thread *th = thread_find(mc, ev->process_ns.tid);
	if (th && ev->kind == EV_PROCESS_NS)
		thread_pid_ns(mc, th, ev->process_ns.ns);
	else if (th)
		thread_cgroup_ns(mc, th, ev->process_ns.ns);
}

/* kvm entry (Fig. 5, transition 1), exit (transition 2), and what belongs to them: of the thread that is current, if
 * that is a vCPU. */
static void on_kvm(struct machine *mc, struct cpu *c, const struct event *ev)
{
	struct model *m = mc->model;
	if (c->current && c->current->vcpu == NONE && ev->kind == EV_KVM_ENTRY)
		thread_enters(mc, c->current);
	if (!c->current || c->current->vcpu == NONE)
		return;
	struct vcpu *v = &m->vcpu[c->current->vcpu];
	if (ev->kind == EV_KVM_ENTRY)
		guest_entry(m, v);
	else if (ev->kind == EV_KVM_EXIT)
		guest_exit(m, v, ev);
	else if (ev->kind == EV_USERSPACE_EXIT)
		limits_called(m, v, ev);
	else if (ev->kind == EV_HALT_POLL)
		polling_window(v, ev);
	else if (ev->kind == EV_VCPU_WAKEUP)
		polling_over(m, v, ev);
	else if (ev->kind == EV_INJECT)
		quiet_inject(&v->quiet, ev->inject.vector);
}

static void on_mark(struct machine *mc, struct cpu *c, const struct event *ev)
{
	request_event(mc, ev, current_tid(c, ev));
}

/* What the event says of the thread in which it happened. */
static __attribute__((noinline)) void take_context(struct machine *mc, const struct cpu *c, const struct event *ev)
{
	if (ev->tid >= 0 && ev->kind != EV_SWITCH && !(c->current && c->current->tid == ev->tid))
		prove(mc, ev->cpu, ev->tid);
	struct thread *current = c->current;
	if (current && current->tid == ev->tid)
		thread_learn(mc, current, ev->comm, ev->pid);
}

/* Is it what is known already?  Nearly always it is. */
static bool is_known(const struct thread *current, const struct event *ev)
{
	return current && current->tid == ev->tid && (current->comm == ev->comm || !ev->comm) &&
	       (current->pid == ev->pid || ev->pid < 0) && !current->doubted;
}

static void (*const effect[EVENT_KIND_COUNT])(struct machine *mc, struct cpu *c, const struct event *ev) = {
	[EV_SWITCH] = on_switch, [EV_WAKING] = on_wake, [EV_WAKEUP] = on_wake, [EV_MIGRATE] = on_migrate,
	[EV_FORK] = on_fork, [EV_EXEC] = on_exec, [EV_RENAME] = on_rename,
	[EV_PROCESS] = on_process, [EV_PROCESS_NS] = on_namespace, [EV_PROCESS_CGROUP] = on_namespace,
	[EV_KVM_ENTRY] = on_kvm, [EV_KVM_EXIT] = on_kvm, [EV_USERSPACE_EXIT] = on_kvm,
	[EV_INJECT] = on_kvm, [EV_IPI] = on_kvm, [EV_HALT_POLL] = on_kvm, [EV_VCPU_WAKEUP] = on_kvm,
	[EV_IRQ_ENTRY] = irq_event, [EV_SOFTIRQ_ENTRY] = irq_event, [EV_TIMER_ENTRY] = irq_event,
	[EV_IRQ_EXIT] = irq_event, [EV_SOFTIRQ_EXIT] = irq_event, [EV_TIMER_EXIT] = irq_event,
	[EV_CONTENTION_BEGIN] = lock_event, [EV_CONTENTION_END] = lock_event,
	[EV_FUTEX_BEGIN] = lock_event, [EV_FUTEX_END] = lock_event,
	[EV_MARK] = on_mark,
};

static void dispatch(struct machine *mc, const struct event *ev)
{
	uint32_t number = ev->cpu;
	struct cpu *c = cpu_get(mc, number);
	if (mc->lost_pending && ev->ts > mc->lost_until)
		known_regain(mc);
	if (ev->kind == EV_LOST) {
		known_lose(mc, number, ev);
		return;
	}
	if (c->resumes)
		known_resume(mc, number);
	mc->tells_pids |= ev->pid > 0;
	if (!is_known(c->current, ev))
		take_context(mc, c, ev);
	limits_stir(c, mc->model->sink.now);
	if (ev->kind < EVENT_KIND_COUNT && effect[ev->kind])
		effect[ev->kind](mc, c, ev);
	mc->cpu[number].last = mc->model->sink.now;
}

static int status(struct model *m, struct error *err)
{
	if (!m->sink.failed)
		return 0;
	if (err)
		*err = m->sink.err;
	return -1;
}

int model_feed(struct model *m, uint32_t machine, int64_t t, const struct event *ev, struct error *err)
{
	if (t > m->sink.now)
		m->sink.now = t;
	m->events++;
	dispatch(m->machine[machine], ev);
	return status(m, err);
}

/* Who runs whom, once and for all. */
static void tell_parents(struct model *m)
{
	for (uint32_t i = 1; i < m->machines && !m->told_parents; i++) {
		const struct machine *mc = m->machine[i];
		uint32_t attr = sink_attribute(&m->sink, mc->root, &machine_schema[MACHINE_PARENT], 0);
		if (mc->parent)
			sink_set(&m->sink, attr, mc->parent->text_name);
	}
	m->told_parents = true;
}

/* Whatever depended on whether this machine is known. */
static void update_links(struct machine *mc)
{
	struct model *m = mc->model;
	for (uint32_t i = 0; i < m->vcpus; i++)
		if (m->vcpu[i].vm == mc || m->vcpu[i].vm->parent == mc)
			update_vcpu(m, &m->vcpu[i]);
}

int model_begin(struct model *m, uint32_t machine, int64_t t, const struct start *start, struct error *err)
{
	struct machine *mc = m->machine[machine];
	if (t > m->sink.now)
		m->sink.now = t;
	tell_parents(m);
	mc->active = mc->tells_wakes = true;
	mc->begin = m->sink.now;
	mc->start = start;
	if (start) {
		mc->waking_moves = start->wakings && !start->wakeups;
		mc->tells_wakes = start->wakings || start->wakeups;
		mc->tells_moves = start->moves;
		known_begin(mc, start);
	}
	update_links(mc);
	return status(m, err);
}

int64_t model_unknown(const struct model *m, uint32_t machine, int64_t end)
{
	const struct machine *mc = m->machine[machine];
	int64_t ns = mc->unknown;
	for (uint32_t i = 0; i < mc->cpus && mc->active; i++)
		if (mc->cpu[i].state == CPU_UNKNOWN && mc->cpu[i].unknown_since <= end)
			ns += end + 1 - mc->cpu[i].unknown_since;
	return ns;
}

int model_end(struct model *m, uint32_t machine, int64_t t, struct error *err)
{
	struct machine *mc = m->machine[machine];
	uint64_t tid, p;
	if (t > m->sink.now)
		m->sink.now = t;
	mc->unknown = model_unknown(m, machine, t - 1);
	for (size_t at = 0; !mc->tells_wakes && map_each(&mc->thread, &at, &tid, &p); ) {
		struct thread *th = (struct thread *)(uintptr_t)p;
		if (th->sched == THREAD_BLOCKED)
			thread_wakes(mc, th, th->cpu);
	}
	limits_end(mc, true);
	for (uint32_t i = 0; i < mc->cpus; i++) {
		if (mc->cpu[i].state == CPU_UNSEEN)
			continue;
		irq_clear(mc, &mc->cpu[i]);
		cpu_unknown(mc, i);
	}
	request_close(mc);
	for (size_t at = 0; map_each(&mc->thread, &at, &tid, &p); )
		thread_set(mc, (struct thread *)(uintptr_t)p, THREAD_STATUS, HISTORY_NULL);
	for (uint32_t i = 0; i < m->vcpus; i++) {
		struct vcpu *v = &m->vcpu[i];
		if (v->vm->parent != mc || !v->thread)
			continue;
		v->thread = NULL;
		guest_lose(m, v);
		sink_set(&m->sink, v->attr_host_thread, HISTORY_NULL);
	}
	thread_forget(mc);
	mc->active = false;
	mc->start = NULL;
	update_links(mc);
	return status(m, err);
}
