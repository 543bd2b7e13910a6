/* vCPUs of a hypervisor that schedules them itself, without host threads (Xen).
 *
 * Such a hypervisor reports each vCPU's run state. The model represents a vCPU in the hypervisor's scheduler as a
 * thread of the host with the TID vcpu_thread_id(), so that all rules for the threads of vCPUs hold. Differences:
 *   - Between the end of one vCPU's time and the start of the next, the hypervisor itself has the pCPU: one thread per
 *     pCPU stands for it.
 *   - A vCPU waits for the pCPU on which it runs next, so that pCPU is written when the wait ends, for the whole wait.
 *   - A vCPU that is OFFLINE must not run. The reason is written when that ends:
 *       stopped by a vCPU of the privileged VM            pause
 *       stopped otherwise (timer of Xen's scheduler "credit")  quota
 *       stopped while it is unknown what runs there             unknown: pause or quota
 *       not stopped, and continues directly on a pCPU     quota ("credit2" parks a vCPU without budget)
 *       not stopped, waits for a pCPU soon after          move to another runqueue, if stops are recorded
 *       never ran, or its VM was just created             pause
 *       else                                              unknown: pause or quota
 * A vCPU's waker is known only if hypercalls are recorded. The wakeup is recorded on the pCPU of its cause. If the
 * vCPU that is current there has just made the hypercall event_channel_op, it is the waker. Otherwise the cause is unknown:
 * an interrupt of a device, or a timer of the hypervisor.
 *
 * Cost: O(1) per event; a VM that begins or ends costs O(the host's vCPUs). */
#include "model/state/feed.h"

#define SEND_MAX 100000    /* longest time from the start of the hypercall that sends an event to the wakeup, ns; measured:
                            * 4 to 60 us on an emulated machine. The return from the hypercall is not recorded. */
#define MOVE_MAX 20000000  /* longest move to another runqueue, ns; only an emulated machine needs more than some us */

enum { STOP_NONE, STOP_PAUSE, STOP_QUOTA, STOP_UNKNOWN };

/* Returns the thread that stands for the hypervisor on a pCPU. */
static struct thread *hypervisor_thread(struct machine *mc, uint32_t cpu)
{
	struct thread *th = thread_find(mc, (int64_t)cpu + 1);
	if (th)
		return th;
	th = thread_get(mc, (int64_t)cpu + 1);
	thread_rename(mc, th, "hypervisor");
	return th;
}

static bool is_of_vm(const struct thread *th, int64_t vm)
{
	return th->tid >= vcpu_thread_id(vm, 0) && th->tid < vcpu_thread_id(vm, 0) + VCPU_TIDS_PER_VM;
}

/* Writes the reason of the time since th->offline_since. next: enum vcpu_run_state after it; VCPU_RUN_STATES: the trace or
 * the VM ends. */
static void end_offline(struct machine *mc, struct thread *th, int64_t next)
{
	struct model *m = mc->model;
	const int64_t ns = m->sink.now - th->offline_since;
	if (!th->is_offline)
		return;
	th->is_offline = false;
	enum out_reason why = OUT_HELD;
	if (th->stop == STOP_QUOTA || (th->stop == STOP_NONE && next == VCPU_STATE_RUNNING))
		why = OUT_QUOTA;
	else if (th->stop == STOP_PAUSE || !th->has_run)
		why = OUT_PAUSE;
	else if (th->stop == STOP_NONE && next != VCPU_RUN_STATES && ns <= MOVE_MAX && mc->has_stops)
		why = OUT_MOVE;
	th->stop = STOP_NONE;
	if (th->vcpu == NONE)
		return;
	struct vcpu *v = &m->vcpu[th->vcpu];
	const int64_t from = v->throttling.written_until;
	throttling_write(m, v, th->offline_since > from ? th->offline_since : from, m->sink.now, why);
}

void vcpu_offline_lost(struct machine *mc, struct thread *th)
{
	end_offline(mc, th, VCPU_RUN_STATES);
}

/* Sets the pCPU for which the thread has waited since th->wait_since. */
static void set_waited_cpu(struct machine *mc, struct thread *th, uint32_t cpu)
{
	struct model *m = mc->model;
	if (th->sched != THREAD_PREEMPTED || th->cpu == (int32_t)cpu || th->on_cpu >= 0)
		return;
	const int64_t since = th->wait_since > th->since ? th->wait_since : th->since;
	thread_set_at(mc, th, since, THREAD_CPU, cpu);
	th->cpu = (int32_t)cpu;
	th->since = since;
	if (th->vcpu == NONE)
		return;
	struct vcpu *v = &m->vcpu[th->vcpu];
	sink_set_at(&m->sink, since, v->attr_pcpu, cpu);
	v->pcpu = (int32_t)cpu;
}

/* Returns the mode of a vCPU that starts to run, or that runs at a loss's end. Paravirtualized ones have no VM
 * entries. */
static enum vcpu_mode mode_of(const struct machine *mc, const struct thread *th, bool was_running)
{
	const bool has_entries = th->has_entries || prescan_has_entries(mc->prescan, th->tid);
	return !has_entries ? MODE_GUEST : was_running ? MODE_UNKNOWN : MODE_VMM;
}

static void start_running(struct machine *mc, struct thread *th, uint32_t cpu, bool was_running)
{
	set_waited_cpu(mc, th, cpu);
	th->has_run = true;
	mc->cpu[cpu].may_send = false;
	cpu_set_current(mc, cpu, th, mode_of(mc, th, was_running));
}

/* Sets the waker of a vCPU that is woken on this CPU. */
static void set_waker(struct machine *mc, struct cpu *c, struct thread *th)
{
	const int64_t now = mc->model->sink.now;
	const bool is_known = c->may_send && c->current && c->current != th && now - c->last <= SEND_MAX;
	th->waker = is_known ? c->current->tid : -1;
	th->waker_in = is_known ? irq_context(mc, c, th->waker) : HISTORY_NULL;
	th->waker_at = now;
	if (is_known || th->woken_by != HISTORY_NULL)
		thread_write_waker(mc, th);
}

static void stop_running(struct machine *mc, struct thread *th, const struct event *ev)
{
	const int32_t cpu = th->on_cpu;
	const int64_t state = ev->vcpu_state.state, now = mc->model->sink.now;
	if (cpu >= 0)
		cpu_clear_current(mc, (uint32_t)cpu);
	th->sched = state == VCPU_STATE_RUNNABLE ? THREAD_PREEMPTED : THREAD_BLOCKED;
	th->woken = ev->vcpu_state.old == VCPU_STATE_RUNNING ? WOKEN_NO : WOKEN_YES;
	th->wait_since = now;
	if (state == VCPU_STATE_RUNNABLE && ev->vcpu_state.old == VCPU_STATE_BLOCKED)
		set_waker(mc, &mc->cpu[ev->cpu], th);
	mc->cpu[ev->cpu].may_send = false;
	if (state == VCPU_STATE_OFFLINE && !th->is_offline) {
		th->is_offline = true;
		th->offline_since = now;
	}
	if (cpu >= 0)
		cpu_set_current(mc, (uint32_t)cpu, hypervisor_thread(mc, (uint32_t)cpu), MODE_UNTRACED);
	recovery_check_thread(mc, th, ev->ts);
	update_thread(mc, th);
}

static void set_idle(struct machine *mc, uint32_t cpu, bool idle)
{
	cpu_set_current(mc, cpu, idle ? NULL : hypervisor_thread(mc, cpu), MODE_UNTRACED);
}

/* Checks the recorded old state. A change on a CPU with a loss is missing if it differs: the state is unknown since it was
 * recorded last, because the time of the change is unknown. */
static void check_old_state(struct machine *mc, struct thread *th, int64_t old)
{
	const bool was_blocked = th->sched == THREAD_BLOCKED && !th->is_offline, was_queued = th->sched == THREAD_PREEMPTED;
	if (mc->epoch && ((was_blocked && old != VCPU_STATE_BLOCKED) || (was_queued && old != VCPU_STATE_RUNNABLE)))
		thread_unrecorded_change(mc, th);
}

void vcpu_state_event(struct machine *mc, struct cpu *c, const struct event *ev)
{
	(void)c;
	const uint32_t cpu = ev->cpu;
	const int64_t state = ev->vcpu_state.state;
	mc->has_seen_sched = true;
	if (ev->vcpu_state.vm == EVENT_ABSENT) {
		set_idle(mc, cpu, state == VCPU_STATE_RUNNING);
		return;
	}
	if (state < 0 || state >= VCPU_RUN_STATES)
		return;
	struct thread *th = thread_get(mc, vcpu_thread_id(ev->vcpu_state.vm, ev->vcpu_state.vcpu));
	if (!th)
		return;
	thread_learn(mc, th, ev->vcpu_state.name, vcpu_process(ev->vcpu_state.vm));
	check_old_state(mc, th, ev->vcpu_state.old);
	if (state != VCPU_STATE_OFFLINE)
		end_offline(mc, th, state);
	if (state == VCPU_STATE_RUNNING && th->on_cpu != (int32_t)cpu)
		start_running(mc, th, cpu, ev->vcpu_state.old == VCPU_STATE_RUNNING);
	else if (state != VCPU_STATE_RUNNING)
		stop_running(mc, th, ev);
}

/* Processes EV_VCPU_STOP. A stop in the privileged VM's context is a pause. A quota stops the vCPU from a timer,
 * whatever runs there; a vCPU that once was stopped in this way has a quota. If it is unknown what runs there, it may be
 * either. */
void vcpu_stop_event(struct machine *mc, struct cpu *c, const struct event *ev)
{
	struct thread *th = thread_find(mc, vcpu_thread_id(ev->vcpu_stop.vm, ev->vcpu_stop.vcpu));
	mc->has_stops = true;
	if (!th)
		return;
	const bool is_known = c->state == CPU_IDLE || c->current;
	const bool by_privileged = c->current && is_of_vm(c->current, 0), by_itself = c->current == th;
	const bool by_hypervisor = c->current && c->current->tid < VCPU_TID_FIRST;
	th->has_quota |= ev->vcpu_stop.cap == 1 || (is_known && !by_privileged && !by_itself && !by_hypervisor);
	th->stop = th->has_quota ? STOP_QUOTA : is_known && !by_hypervisor ? STOP_PAUSE : STOP_UNKNOWN;
}

/* Processes EV_VM: the vCPUs of a new VM are offline, those of a VM that ends do not exist any more. */
void vm_event(struct machine *mc, struct cpu *c, const struct event *ev)
{
	const int64_t from = vcpu_thread_id(ev->vm.vm, 0);
	uint64_t tid, first;
	(void)c;
	if (from < 0)
		return;
	for (size_t at = 0; map_each(&mc->candidate, &at, &tid, &first);) {
		struct thread *th = thread_find(mc, (int64_t)tid);
		if ((int64_t)tid < from || (int64_t)tid >= from + VCPU_TIDS_PER_VM)
			continue;
		if (!ev->vm.exists && th) {
			end_offline(mc, th, VCPU_RUN_STATES);
			thread_end(mc, th);
		} else if (ev->vm.exists && !th) {
			th = thread_get(mc, (int64_t)tid);
			th->sched = THREAD_BLOCKED;
			th->is_offline = true;
			th->offline_since = mc->model->sink.now;
			update_thread(mc, th);
		}
	}
}

void vcpu_states_end(struct machine *mc)
{
	uint64_t tid, p;
	for (size_t at = 0; map_each(&mc->thread, &at, &tid, &p);)
		end_offline(mc, (struct thread *)(uintptr_t)p, VCPU_RUN_STATES);
}
