/* Initial state of a trace, and how state becomes unknown at a loss of events and known again after it.
 *
 * A loss on one CPU may affect any thread that is not current: a lost event may have woken it, pulled it from the
 * runqueue of another CPU, let it run, and put it back to sleep or into a runqueue. So during a loss on any CPU, only
 * the current threads of the other CPUs and the sleeps proved by the prescan are known. The state of any other thread is
 * unknown from 1 ns after its last event. After all losses have ended, the next event of a thread makes its state known.
 * Cost of a loss: a visit of every live thread of its machine, and of the threads named until the next loss. */
#include "model/state/feed.h"

static void restore_thread(struct machine *mc, const struct prescan_thread *s)
{
	struct thread *th = thread_get(mc, s->tid);
	if (!th)
		return;
	thread_set_pid_ns(mc, th, s->pid_ns);
	thread_set_cgroup_ns(mc, th, s->cgroup_ns);
	thread_learn(mc, th, s->comm, s->pid);
	if (s->cpu < 0)
		thread_clear_cpu(mc, th);  /* the thread may have been moved during the loss */
	thread_set_cpu(mc, th, s->cpu);
	th->sched = prescan_thread_state(mc->prescan, s);
	th->woken = WOKEN_PERHAPS;
	th->wait_since = mc->model->sink.now;
	if (s->is_offline && !th->is_offline) {
		th->is_offline = true;
		th->offline_since = mc->model->sink.now;
	}
}

/* Sets the state of a thread with a proved sleep or wait. */
static void restore_sleep(struct machine *mc, struct thread *th, const struct sleep *s)
{
	thread_learn(mc, th, s->comm, -1);
	thread_set_cpu(mc, th, s->cpu);
	th->sched = s->sched;
}

/* Adds the threads that sleep from the beginning of the trace until after the first loss. */
static void restore_sleepers(struct machine *mc, const struct proved_sleeps *a)
{
	for (size_t i = 0; i < a->sleeps; i++)
		if (a->sleep[i].from == INT64_MIN && !thread_find(mc, a->sleep[i].tid))
			restore_sleep(mc, thread_get(mc, a->sleep[i].tid), &a->sleep[i]);
}

void recovery_begin(struct machine *mc, const struct prescan *prescan)
{
	size_t at, end;
	irq_set_recorded_kinds(mc, prescan);
	for (prescan_epoch(prescan, 0, &at, &end); at < end; at++)
		restore_thread(mc, &prescan->thread[at]);
	restore_sleepers(mc, &prescan->proved_sleeps);
	for (uint32_t i = 0; i < prescan->cpus; i++) {
		const struct prescan_cpu *s = &prescan->cpu[i];
		if (!s->seen)
			continue;
		cpu_get(mc, i);
		if (s->tid < 0)
			continue;
		struct thread *th = thread_get(mc, s->tid);
		cpu_set_current(mc, i, th, s->mode);
		if (th)
			thread_learn(mc, th, s->comm, s->pid);
		recovery_resume_cpu(mc, i);
	}
	uint64_t tid, p;
	for (at = 0; map_each(&mc->thread, &at, &tid, &p); )
		update_thread(mc, (struct thread *)(uintptr_t)p);
}

/* Returns true if a lost event may concern the thread. A hypervisor with run states writes each of them on the CPU of the
 * vCPU, except wakeups: only the vCPUs last seen on a loss's CPU are affected. A lost wakeup on another CPU shows in
 * the vCPU's next record, unless that one is lost, too. */
static bool may_be_lost(const struct machine *mc, const struct thread *th)
{
	if (!mc->lost_pending || !mc->has_run_states)
		return mc->lost_pending;
	return th->cpu < 0 || (uint32_t)th->cpu >= mc->cpus || mc->cpu[th->cpu].resuming;
}

void recovery_check_thread(struct machine *mc, struct thread *th, int64_t t)
{
	const bool is_queued_unrecorded = th->sched == THREAD_PREEMPTED && prescan_is_unrecorded(mc->prescan, th->cpu);
	if (!(mc->lost_pending || is_queued_unrecorded) || th->on_cpu >= 0)
		return;
	const struct sleep *s = mc->prescan ? proved_sleep_at(&mc->prescan->proved_sleeps, th->tid, t) : NULL;
	const bool has_run = s && s->sched == THREAD_UNKNOWN;
	if (!has_run && !may_be_lost(mc, th) && !is_queued_unrecorded)
		return;
	if (s && !has_run) {
		restore_sleep(mc, th, s);
		return;
	}
	vcpu_offline_lost(mc, th);
	th->sched = THREAD_UNKNOWN;
	th->waker = -1;
	th->stale = true;
	if (th->vcpu != NONE)
		guest_clear_mode(mc->model, &mc->model->vcpu[th->vcpu]);
}

void recovery_lose(struct machine *mc, uint32_t number, const struct event *ev)
{
	struct cpu *c = &mc->cpu[number];
	int64_t lost_until = ev->lost.end > ev->ts ? ev->lost.end : ev->ts;
	mc->lost_until = lost_until > mc->lost_until || !mc->epoch ? lost_until : mc->lost_until;
	mc->lost_pending = true;
	mc->epoch++;
	c->losses++;
	c->resuming = true;
	irq_clear(mc, c);
	throttling_clear_cpu(c);
	cpu_set_unknown(mc, number);
	request_set_unknown(mc);
	request_probes_lost(mc);
	uint64_t tid, p;
	for (size_t at = 0; map_each(&mc->thread, &at, &tid, &p); ) {
		struct thread *th = (struct thread *)(uintptr_t)p;
		recovery_check_thread(mc, th, ev->ts);
		lock_wait_clear(mc, th);
		throttled_end(mc, th);
		update_thread(mc, th);
	}
}

void recovery_resume_cpu(struct machine *mc, uint32_t number)
{
	struct event entry[IRQ_NEST_MAX];
	struct cpu *c = &mc->cpu[number];
	c->resuming = false;
	c->last = mc->model->sink.now - 1;
	if (!mc->prescan)
		return;
	size_t n = unseen_handlers_at_gap(&mc->prescan->handlers, number, c->losses, &c->handler, entry);
	for (size_t i = 0; i < n; i++)
		irq_event(mc, c, &entry[i]);
}

void recovery_end_losses(struct machine *mc)
{
	size_t i, end;
	mc->lost_pending = false;
	mc->epoch++;
	if (!mc->prescan)
		return;
	for (prescan_epoch(mc->prescan, mc->epoch, &i, &end); i < end; i++) {
		const struct prescan_thread *s = &mc->prescan->thread[i];
		int8_t sched = prescan_thread_state(mc->prescan, s);
		struct thread *th = thread_find(mc, s->tid);
		const bool open = sched == THREAD_UNKNOWN || (s->pending && cpu_may_run_any(mc, s->cpu));
		if (open || sched == THREAD_RUNNING || (th && (th->on_cpu >= 0 || th->sched == sched)))
			continue;
		if (th && mc->has_run_states && th->sched != THREAD_UNKNOWN)
			thread_unrecorded_change(mc, th);
		restore_thread(mc, s);
		update_thread(mc, thread_find(mc, s->tid));
	}
}
