/* Effect of each event on the state of its machine (paper, section "Multi-level trace analysis").
 *
 * The context of each event first shows its CPU's current thread; then the event has an effect of its own (table
 * `effect`). Facts are set with cpu_*() and thread_*(); update.c propagates them. O(1) per event, except a lost-events
 * record, which visits every live thread of its machine. */
#include "model/state/feed.h"

#include <stdio.h>

#include "model/state/exit_reasons.h"

void count_contradiction(struct machine *mc)
{
	if (mc->contradicting == mc->model->events + 1)
		return;
	mc->contradicting = mc->model->events + 1;
	mc->contradictions[mc->model->event_kind]++;
}

/* Makes `tid` the CPU's current thread, because an event shows it. */
static void prove_current(struct machine *mc, uint32_t number, int64_t tid)
{
	const struct cpu *c = &mc->cpu[number];
	struct thread *old = c->current;
	if (tid < 0 || (c->state == CPU_IDLE && tid == 0) || (old && old->tid == tid))
		return;
	struct thread *th = tid ? thread_get(mc, tid) : NULL;
	if (tid && !th)
		return;
	throttling_clear_cpu(&mc->cpu[number]);
	bool known = c->state != CPU_UNKNOWN;
	if (tid == 0 && c->vcpu == NONE && cpu_is_stopped(mc, number)) {  /* its switch to the idle thread is not recorded */
		cpu_was_offline(mc, number);
		known = false;
	}
	cpu_set_current(mc, number, th, MODE_UNKNOWN);
	if (old && old->pid == tid) {  /* exec by a thread other than the leader: the thread gets the leader's TID, and its own
	                                * TID ends */
		thread_end(mc, old);
	} else if (known) {
		count_contradiction(mc);
		if (old && !old->has_left) {
			hidden_threads_add(&mc->hidden, old->tid, old->comm);
			old->is_hidden = true;
		}
	}
}

static void on_switch(struct machine *mc, struct cpu *c, const struct event *ev)
{
	const uint32_t number = ev->cpu;
	mc->has_seen_sched = true;
	if (mc->counters)
		counters_switch(mc, number);
	irq_clear(mc, c);
	prove_current(mc, number, ev->sw.prev_tid);
	struct thread *next = ev->sw.next_tid > 0 ? thread_get(mc, ev->sw.next_tid) : NULL;
	throttling_switch(mc, c, next, ev);
	struct thread *prev = c->current;
	if (prev) {
		thread_learn(mc, prev, ev->sw.prev_comm, -1);
		prev = cpu_clear_current(mc, number);
		prev->has_left = true;
		if (prev->is_hidden)
			hidden_threads_remove(&mc->hidden, prev->tid);
		prev->is_hidden = false;
		prev->woken = WOKEN_NO;
		prev->since = mc->model->sink.now;
		if (ev->sw.prev_state == RUN_RUNNABLE)
			prev->sched = THREAD_PREEMPTED;
		else if (ev->sw.prev_state != EVENT_ABSENT)
			prev->sched = THREAD_BLOCKED;
		throttled_switch_out(mc, prev, prev->sched == THREAD_PREEMPTED);
		prev->waker_at = mc->model->sink.now;  /* in case a waker was recorded before it blocked */
		if (prev->sched != THREAD_BLOCKED)
			prev->waker = -1;
	}
	if (next) {
		mc->unseen_wakeups += !mc->has_seen_wakeup && next->sched == THREAD_BLOCKED;
		/* No wakeup was recorded; or a sched_waking alone, while the thread left its CPU, which may have woken the
		 * thread or may have preceded its sleep. */
		if (next->sched == THREAD_BLOCKED && (next->never_woken || !mc->has_wakeups || mc->waking_is_wakeup))
			thread_unrecorded_wakeup(mc, next, (int32_t)number);
		if (next->sched == THREAD_BLOCKED)
			thread_write_waker(mc, next);  /* writes null if no waker was recorded */
		next->never_woken = false;
		throttled_end(mc, next);
		if (next->in_quota)
			group_quota_waited(mc, next, false);
		thread_check_move(mc, next, number);
		cpu_set_current(mc, number, next, MODE_VMM);  /* transitions 3 and 6 of Fig. 5 */
		thread_learn(mc, next, ev->sw.next_comm, -1);
	} else if (ev->sw.next_tid == 0) {
		cpu_set_current(mc, number, NULL, MODE_VMM);
	} else {
		cpu_set_unknown(mc, number);
	}
	if (!prev || prev == next)
		return;
	if (ev->sw.prev_state == RUN_DEAD) {
		thread_end(mc, prev);
		return;
	}
	recovery_check_thread(mc, prev, ev->ts);
	if (prev->vcpu != NONE)
		throttling_block(&mc->model->vcpu[prev->vcpu], ev);
	update_thread(mc, prev);  /* transitions 4 and 5 of Fig. 5 */
}

static int64_t current_tid(const struct cpu *c, const struct event *ev)
{
	if (ev->tid >= 0)
		return ev->tid;
	return c->current ? c->current->tid : c->state == CPU_IDLE ? 0 : -1;
}

/* Passes the kind of waker to the idle tracker when a vCPU's thread is woken. */
static void on_wake_vcpu(const struct machine *mc, const struct cpu *c, struct vcpu *v, int64_t waker)
{
	const struct thread *by = thread_find(mc, waker);
	const struct idle_tracker *sibling = by && by->vcpu != NONE ? &mc->model->vcpu[by->vcpu].tracker : NULL;
	idle_tracker_woken(&v->tracker, c->nest.depth > 0 || waker <= 0, sibling);
}

static void record_waker(struct machine *mc, const struct cpu *c, struct thread *th, int64_t waker, int64_t at)
{
	if (waker > INT32_MAX)
		return;
	th->waker = (int32_t)waker;
	th->waker_in = irq_context(mc, c, waker);
	th->waker_at = at;
	th->woken_early = th->on_cpu >= 0;
}

/* Handles a waking of a thread that is current. A remote CPU leaves the wakeup to the thread's CPU if the thread is
 * about to block; if it is not, sched_wakeup follows immediately, and the thread does not sleep. */
static void wake_early(struct machine *mc, const struct cpu *c, struct thread *th, const struct event *ev)
{
	th->waker = -1;
	if (ev->kind == EV_WAKING && !mc->waking_is_wakeup)
		record_waker(mc, c, th, current_tid(c, ev), mc->model->sink.now);
}

/* Returns true if the current thread of the event's CPU is the waker. For sched_waking it is. sched_wakeup is recorded
 * where the thread is queued, often in an interrupt on behalf of another CPU while an unrelated thread is current; but
 * not in a timer handler. */
static bool identifies_waker(const struct machine *mc, const struct cpu *c, const struct thread *th, const struct event *ev)
{
	const struct irq_frame *top = irq_nest_top(&c->nest);
	return ev->kind == EV_WAKING || mc->one_cpu || th->never_woken || (top && top->entry == EV_TIMER_ENTRY) ||
	       (ev->wake.target_cpu >= 0 && ev->wake.target_cpu != ev->cpu);
}

/* Processes sched_waking and sched_wakeup. sched_waking is recorded in the waker's context; sched_wakeup follows,
 * often in an interrupt of the CPU where the thread is queued, and may move the thread. A thread cannot be woken again
 * between the two. */
static void on_wake(struct machine *mc, struct cpu *c, const struct event *ev)
{
	struct thread *th = thread_get(mc, ev->wake.tid);
	mc->has_seen_wakeup = true;
	mc->has_seen_waking |= ev->kind == EV_WAKING;
	if (!th)
		return;
	thread_learn(mc, th, ev->wake.comm, -1);
	if (th->vcpu != NONE && ev->kind == EV_WAKING)
		on_wake_vcpu(mc, c, &mc->model->vcpu[th->vcpu], current_tid(c, ev));
	if (th->on_cpu >= 0) {
		wake_early(mc, c, th, ev);
		return;
	}
	if (th->sched != THREAD_PREEMPTED && (th->waker < 0 || (th->woken_early && ev->kind == EV_WAKING))) {
		if (identifies_waker(mc, c, th, ev))
			record_waker(mc, c, th, current_tid(c, ev), mc->model->sink.now);
		else
			mc->unknown_wakers++;
	}
	if (ev->kind == EV_WAKING && !mc->waking_is_wakeup) {
		if (th->sched == THREAD_UNKNOWN) {  /* only a sleeping thread is woken, and it slept on that CPU */
			th->sched = THREAD_BLOCKED;
			thread_set_cpu(mc, th, ev->wake.target_cpu);
		}
		recovery_check_thread(mc, th, ev->ts);
		update_thread(mc, th);
		return;
	}
	thread_set_cpu(mc, th, ev->wake.target_cpu);
	th->since = mc->model->sink.now;
	th->never_woken = false;
	if (th->sched != THREAD_PREEMPTED) {
		thread_write_waker(mc, th);
		th->sched = THREAD_PREEMPTED;
		th->woken = WOKEN_YES;
		th->arrived_at = th->waker >= 0 ? th->waker_at : mc->model->sink.now;
	}
	if (th->in_quota)
		throttled_arrive(mc, th);
	recovery_check_thread(mc, th, ev->ts);
	update_thread(mc, th);
}

static void on_migrate(struct machine *mc, struct cpu *c, const struct event *ev)
{
	(void)c;
	struct thread *th = thread_get(mc, ev->migrate.tid);
	if (!th || th->on_cpu >= 0)
		return;
	if (th->sched == THREAD_BLOCKED && !mc->has_wakeups) {  /* a sleeping thread does not migrate: it was woken
	                                                         * unrecorded */
		thread_unrecorded_wakeup(mc, th, th->cpu);
		th->sched = THREAD_PREEMPTED;
		th->woken = WOKEN_YES;
	}
	thread_set_cpu(mc, th, ev->migrate.dest_cpu);
	th->since = mc->model->sink.now;
	if (th->in_quota)
		throttled_arrive(mc, th);
	recovery_check_thread(mc, th, ev->ts);
	update_thread(mc, th);
}

static void on_fork(struct machine *mc, struct cpu *c, const struct event *ev)
{
	(void)c;
	struct thread *old = thread_find(mc, ev->fork.child_tid);
	if (old)
		thread_end(mc, old);  /* the old thread's exit was not recorded */
	struct thread *th = thread_get(mc, ev->fork.child_tid);
	if (!th)
		return;
	const struct thread *parent = thread_find(mc, ev->fork.parent_tid);
	/* An event without the namespace: a new pid namespace of the child stays unknown. */
	thread_set_pid_ns(mc, th, ev->fork.child_ns == EVENT_ABSENT && parent ? parent->pid_ns : ev->fork.child_ns);
	if (parent) {
		thread_set_cgroup_ns(mc, th, parent->cgroup_ns);
		group_inherit(mc, th, parent);
	}
	thread_learn(mc, th, ev->fork.child_comm, ev->fork.child_pid);
	thread_set_cpu(mc, th, ev->cpu);
	th->sched = THREAD_BLOCKED;  /* a new thread does not run before its first wakeup */
	th->never_woken = true;
	if (th->vcpu != NONE) {
		mc->model->vcpu[th->vcpu].plugged = mc->model->vcpu[th->vcpu].vm->active;
		mc->model->vcpu[th->vcpu].unused = mc->has_entries;
	}
	recovery_check_thread(mc, th, ev->ts);
	update_thread(mc, th);
}

/* Sets the new name after an exec: the last component of the file name, truncated as in the kernel. */
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
	char name[THREAD_NAME_MAX + 1];
	snprintf(name, sizeof name, "%s", base);
	th->comm = 0;  /* so that any name in the next event is accepted */
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
	if (th->on_cpu < 0 && th->sched == THREAD_UNKNOWN) {
		const bool open = ev->process.state == RUN_RUNNABLE && cpu_may_run_any(mc, ev->process.cpu);
		th->sched = open ? THREAD_UNKNOWN : dumped_thread_state(ev);
		th->woken = WOKEN_PERHAPS;
		recovery_check_thread(mc, th, ev->ts);
		thread_set_cpu(mc, th, ev->process.cpu);
	}
	update_thread(mc, th);
}

static void on_namespace(struct machine *mc, struct cpu *c, const struct event *ev)
{
	(void)c;
	struct thread *th = thread_find(mc, ev->process_ns.tid);
	if (th && ev->kind == EV_PROCESS_NS)
		thread_set_pid_ns(mc, th, ev->process_ns.ns);
	else if (th)
		thread_set_cgroup_ns(mc, th, ev->process_ns.ns);
}

/* Processes VM entries (Fig. 5, transition 1), exits (transition 2) and other events of the hypervisor about the vCPU that
 * the current thread runs. */
static void on_vcpu_event(struct machine *mc, struct cpu *c, const struct event *ev)
{
	struct model *m = mc->model;
	if (c->current && c->current->vcpu == NONE && ev->kind == EV_VCPU_ENTRY)
		thread_enter_guest(mc, c->current);
	if (!c->current || c->current->vcpu == NONE)
		return;
	struct vcpu *v = &m->vcpu[c->current->vcpu];
	c->may_send = ev->kind == EV_VCPU_EXIT && exit_may_send_event(ev);
	c->current->has_entries |= ev->kind == EV_VCPU_ENTRY;
	if (ev->kind == EV_VCPU_ENTRY)
		guest_entry(m, v);
	else if (ev->kind == EV_VCPU_EXIT)
		guest_exit(m, v, ev);
	else if (ev->kind == EV_USERSPACE_EXIT)
		throttling_userspace_exit(m, v, ev);
	else if (ev->kind == EV_HALT_POLL)
		halt_polling_limit(v, ev);
	else if (ev->kind == EV_VCPU_WAKEUP)
		halt_polling_wakeup(m, v, ev);
	else if (ev->kind == EV_INJECT)
		idle_tracker_inject(&v->tracker, ev->inject.vector);
}

static void on_mark(struct machine *mc, struct cpu *c, const struct event *ev)
{
	request_event(mc, ev, current_tid(c, ev));
}

static void on_probe(struct machine *mc, struct cpu *c, const struct event *ev)
{
	request_probe_event(mc, ev, current_tid(c, ev));
}

static void on_steal(struct machine *mc, struct cpu *c, const struct event *ev)
{
	if (c->vcpu != NONE && mc->parent)
		steal_check_read(&mc->model->vcpu[c->vcpu].steal_check, ev->steal.ns, mc->model->sink.now);
}

/* Updates the current thread from the event's context. */
static __attribute__((noinline)) void update_context(struct machine *mc, const struct cpu *c, const struct event *ev)
{
	if (ev->tid >= 0 && ev->kind != EV_SWITCH && !(c->current && c->current->tid == ev->tid))
		prove_current(mc, ev->cpu, ev->tid);
	struct thread *current = c->current;
	if (current && current->tid == ev->tid)
		thread_learn(mc, current, ev->comm, ev->pid);
}

/* Returns true if the event's context contains nothing new, which is the usual case. */
static bool is_context_known(const struct thread *current, const struct event *ev)
{
	return current && current->tid == ev->tid && (current->comm == ev->comm || !ev->comm) &&
	       (current->pid == ev->pid || ev->pid < 0) && !current->stale;
}

static void (*const effect[EVENT_KIND_COUNT])(struct machine *mc, struct cpu *c, const struct event *ev) = {
	[EV_SWITCH] = on_switch, [EV_WAKING] = on_wake, [EV_WAKEUP] = on_wake, [EV_MIGRATE] = on_migrate,
	[EV_FORK] = on_fork, [EV_EXEC] = on_exec, [EV_RENAME] = on_rename,
	[EV_PROCESS] = on_process, [EV_PROCESS_NS] = on_namespace, [EV_PROCESS_CGROUP] = on_namespace,
	[EV_VCPU_ENTRY] = on_vcpu_event, [EV_VCPU_EXIT] = on_vcpu_event, [EV_USERSPACE_EXIT] = on_vcpu_event,
	[EV_INJECT] = on_vcpu_event, [EV_IPI] = on_vcpu_event,
	[EV_HALT_POLL] = on_vcpu_event, [EV_VCPU_WAKEUP] = on_vcpu_event,
	[EV_IRQ_ENTRY] = irq_event, [EV_SOFTIRQ_ENTRY] = irq_event, [EV_TIMER_ENTRY] = irq_event,
	[EV_IRQ_EXIT] = irq_event, [EV_SOFTIRQ_EXIT] = irq_event, [EV_TIMER_EXIT] = irq_event,
	[EV_CONTENTION_BEGIN] = lock_event, [EV_CONTENTION_END] = lock_event,
	[EV_FUTEX_BEGIN] = lock_event, [EV_FUTEX_END] = lock_event,
	[EV_VCPU_STATE] = vcpu_state_event, [EV_VCPU_STOP] = vcpu_stop_event, [EV_VM] = vm_event,
	[EV_MARK] = on_mark, [EV_PROBE] = on_probe, [EV_FREQUENCY] = frequency_event, [EV_STEAL] = on_steal,
};

static void dispatch_event(struct machine *mc, const struct event *ev)
{
	uint32_t number = ev->cpu;
	if (ev->kind == EV_COUNTERS) {  /* shows nothing about threads */
		counters_event(mc, ev);
		return;
	}
	if (ev->kind == EV_GROUP) {  /* shows nothing about the recorder's thread that the model needs */
		group_quota_sample(mc, ev);
		return;
	}
	if (ev->kind == EV_GROUP_MOVE) {
		group_move(mc, ev);
		return;
	}
	if (ev->kind == EV_THROTTLED) {  /* may concern another thread than the current one */
		throttled_event(mc, ev);
		return;
	}
	struct cpu *c = cpu_get(mc, number);
	if (mc->lost_pending && ev->ts > mc->lost_until)
		recovery_end_losses(mc);
	if (ev->kind == EV_LOST) {
		recovery_lose(mc, number, ev);
		return;
	}
	if (c->resuming)
		recovery_resume_cpu(mc, number);
	mc->has_pids |= ev->pid > 0;
	if (!is_context_known(c->current, ev))
		update_context(mc, c, ev);
	throttling_event(c, mc->model->sink.now);
	if (ev->kind < EVENT_KIND_COUNT && effect[ev->kind])
		effect[ev->kind](mc, c, ev);
	mc->cpu[number].last = mc->model->sink.now;
}

static int sink_status(struct model *m, struct error *err)
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
	m->event_kind = ev->kind < EVENT_KIND_COUNT ? ev->kind : EV_OTHER;
	dispatch_event(m->machine[machine], ev);
	return sink_status(m, err);
}

/* Writes attribute "Parent" of each machine, once. */
static void write_parents(struct model *m)
{
	for (uint32_t i = 1; i < m->machines && !m->parents_written; i++) {
		const struct machine *mc = m->machine[i];
		uint32_t attr = sink_attribute(&m->sink, mc->root, &machine_schema[MACHINE_PARENT], 0);
		if (mc->parent)
			sink_set(&m->sink, attr, mc->parent->text_name);
		if (mc->is_virtual)
			sink_set(&m->sink, sink_attribute(&m->sink, mc->root, &machine_schema[MACHINE_VIRTUAL], 0), 1);
		if (mc->text_vm_id >= 0)
			sink_set(&m->sink, sink_attribute(&m->sink, mc->root, &machine_schema[MACHINE_VM_ID], 0), mc->text_vm_id);
	}
	m->parents_written = true;
}

/* Updates all vCPUs that depend on this machine. */
static void update_links(struct machine *mc)
{
	struct model *m = mc->model;
	for (uint32_t i = 0; i < m->vcpus; i++)
		if (m->vcpu[i].vm == mc || m->vcpu[i].vm->parent == mc)
			update_vcpu(m, &m->vcpu[i]);
}

int model_begin(struct model *m, uint32_t machine, int64_t t, const struct prescan *prescan, struct error *err)
{
	struct machine *mc = m->machine[machine];
	if (t > m->sink.now)
		m->sink.now = t;
	write_parents(m);
	if (machine == 0 && m->topology)
		topology_write_attributes(m);
	if (mc == m->grouped)
		groups_write_attributes(m);
	mc->active = mc->has_wakeups = true;
	mc->begin = m->sink.now;
	mc->prescan = prescan;
	if (prescan) {
		mc->waking_is_wakeup = prescan->wakings && !prescan->wakeups;
		mc->has_wakeups = prescan->wakings || prescan->wakeups;
		mc->has_migrations = prescan->migrations;
		recovery_begin(mc, prescan);
	}
	update_links(mc);
	return sink_status(m, err);
}

int64_t model_unknown_cpu_time(const struct model *m, uint32_t machine, int64_t end)
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
	mc->unknown = model_unknown_cpu_time(m, machine, t - 1);
	for (size_t at = 0; !mc->has_wakeups && map_each(&mc->thread, &at, &tid, &p); ) {
		struct thread *th = (struct thread *)(uintptr_t)p;
		if (th->sched == THREAD_BLOCKED)
			thread_unrecorded_wakeup(mc, th, th->cpu);
	}
	throttling_end(mc, true);
	for (uint32_t i = 0; i < mc->cpus; i++) {
		if (mc->cpu[i].state == CPU_UNSEEN)
			continue;
		irq_clear(mc, &mc->cpu[i]);
		cpu_set_unknown(mc, i);
	}
	request_close(mc);
	request_probes_close(mc);
	for (size_t at = 0; map_each(&mc->thread, &at, &tid, &p); )
		thread_set(mc, (struct thread *)(uintptr_t)p, THREAD_STATUS, HISTORY_NULL);
	for (uint32_t i = 0; i < m->vcpus; i++) {
		struct vcpu *v = &m->vcpu[i];
		if (v->vm->parent != mc || !v->thread)
			continue;
		v->thread = NULL;
		guest_clear_mode(m, v);
		sink_set(&m->sink, v->attr_host_thread, HISTORY_NULL);
	}
	thread_free_all(mc);
	mc->active = false;
	mc->prescan = NULL;
	update_links(mc);
	return sink_status(m, err);
}
