/* Propagates a change: thread -> vCPU that it runs -> current thread of that vCPU -> and so on to nested guests.
 *
 * The recursion is as deep as machines are nested; each step costs O(1). */
#include "model/loss/initial_state.h"
#include "model/state/state.h"

static enum vcpu_host_state host_state_of(const struct vcpu *v)
{
	static const enum vcpu_host_state of[] = {
		[WOKEN_NO] = HOST_RUNNABLE, [WOKEN_YES] = HOST_WOKEN, [WOKEN_PERHAPS] = HOST_QUEUED };
	const struct machine *host = v->vm->parent;
	const struct thread *th = v->thread;
	if (host && !v->mapped && host->prescan && host->prescan->epochs > 1)
		return HOST_UNKNOWN;  /* all events of the vCPU's thread were lost: it may have waited */
	if (!host || !v->mapped)
		return (enum vcpu_host_state)v->steal_state;
	if (!host->active)
		return v->vm->active ? HOST_UNKNOWN : HOST_ABSENT;
	if (!th)
		return HOST_ABSENT;
	if (th->on_cpu >= 0) {
		/* The CPU on which it is current may be a vCPU that does not execute. */
		uint32_t outer = host->cpu[th->on_cpu].vcpu;
		int status = outer == NONE ? THREAD_RUNNING : vcpu_guest_thread(v->vm->model->vcpu[outer].status);
		return status == THREAD_RUNNING ? HOST_IN : status == THREAD_UNKNOWN ? HOST_UNKNOWN : HOST_RUNNABLE;
	}
	if (th->is_offline)
		return HOST_HELD;
	if (host->has_run_states && th->sched == THREAD_PREEMPTED)
		return HOST_CLAIMS;
	switch (th->sched) {
	case THREAD_BLOCKED:
		return v->unused && !v->vm->active ? HOST_UNKNOWN : HOST_BLOCKED;
	case THREAD_PREEMPTED:
		return of[th->woken];
	default:
		return HOST_UNKNOWN;
	}
}

static enum vcpu_current guest_current_of(const struct vcpu *v)
{
	static const enum vcpu_current of[] = {
		[CPU_UNSEEN] = CURRENT_NO_EVENTS,
		[CPU_UNKNOWN] = CURRENT_UNKNOWN,
		[CPU_IDLE] = CURRENT_IDLE,
		[CPU_BUSY] = CURRENT_BUSY,
	};
	enum cpu_state state = v->vm->cpu[v->number].state;
	if (v->tracker.halted && (state == CPU_UNKNOWN || !v->vm->active))
		return CURRENT_IDLE;  /* the halt shows that the idle thread is current */
	if (guest_is_inferred(v))
		return v->tracker.at.idle ? CURRENT_IDLE : v->tracker.may_poll || v->tracker.lost ? CURRENT_UNKNOWN : CURRENT_BUSY;
	if (v->vm->active && state == CPU_UNSEEN && v->plugged)
		return CURRENT_IDLE;
	if (v->vm->active && state == CPU_UNSEEN && v->tracker.exits_known && !v->tracker.halted)
		return CURRENT_UNKNOWN;  /* after an exit without a halt: the guest may be busy */
	return v->vm->active ? of[state] : CURRENT_UNTRACED;
}

static inline void set_thread_status(struct machine *mc, struct thread *th, int status)
{
	if (status != th->status) {
		th->status = (int8_t)status;
		th->status_since = mc->model->sink.now;
		thread_set(mc, th, THREAD_STATUS, status);
	}
	if (th->vcpu != NONE)
		update_vcpu(mc->model, &mc->model->vcpu[th->vcpu]);
}

void update_vcpu(struct model *m, struct vcpu *v)
{
	enum vcpu_host_state host_state = host_state_of(v);
	int32_t pcpu = v->thread ? v->thread->cpu : -1;
	if ((v->vm->parent && host_state != (enum vcpu_host_state)v->throttling.host_state) || pcpu != v->pcpu)
		throttling_set_host_state(m, v, host_state, pcpu != v->pcpu);
	if (host_state != v->steal_check.host_state)
		steal_check_set_host_state(&v->steal_check, (uint8_t)host_state, m->sink.now);
	if (host_state == HOST_BLOCKED)
		halt_polling_block(&v->polling, m->sink.now);
	if (m->paper_states && host_state == HOST_QUEUED)
		host_state = HOST_RUNNABLE;  /* the paper does not distinguish these states */
	int status = vcpu_status(host_state, v->mode, guest_current_of(v));
	if (m->paper_states)
		status = vcpu_fold(status);
	if (status != v->status) {
		const bool inside = status == VCPU_PREEMPTED && host_state == HOST_RUNNABLE && v->kernel_ip != EVENT_ABSENT;
		if (inside != v->kernel_ip_written)
			guest_write_kernel_ip(m, v, inside);
		v->status = status;
		v->status_since = m->sink.now;
		sink_set(&m->sink, v->attr_status, status == STATUS_NULL ? HISTORY_NULL : status);
	}
	if (pcpu != v->pcpu) {
		v->pcpu = pcpu;
		sink_set(&m->sink, v->attr_pcpu, pcpu < 0 ? HISTORY_NULL : pcpu);
	}
	struct thread *current = v->vm->cpu[v->number].current;
	if (current)
		set_thread_status(v->vm, current, vcpu_guest_thread(v->status));
}

void update_thread(struct machine *mc, struct thread *th)
{
	int status = th->sched;
	if (th->on_cpu >= 0) {
		uint32_t v = mc->cpu[th->on_cpu].vcpu;
		status = v == NONE ? THREAD_RUNNING : vcpu_guest_thread(mc->model->vcpu[v].status);
	}
	set_thread_status(mc, th, status);
}

static int64_t owner_of(const struct machine *mc, const struct cpu *c)
{
	if (c->state == CPU_IDLE)
		return PCPU_IDLE;
	if (c->state != CPU_BUSY)
		return PCPU_UNKNOWN;
	if (c->current->vcpu == NONE)
		return PCPU_HOST;
	uint32_t vm = mc->model->vcpu[c->current->vcpu].vm->index - 1;  /* machine 0 is the host */
	return vm < mc->model->owners ? PCPU_VM + (int64_t)vm : PCPU_OTHER_VM;
}

void update_cpu(struct machine *mc, uint32_t number)
{
	struct cpu *c = &mc->cpu[number];
	sink_set(&mc->model->sink, c->attr_current,
	         c->state == CPU_BUSY ? c->current->tid : c->state == CPU_IDLE ? 0 : HISTORY_NULL);
	if (c->attr_owner != HISTORY_NONE)
		sink_set(&mc->model->sink, c->attr_owner, owner_of(mc, c));
	if (c->vcpu != NONE)
		update_vcpu(mc->model, &mc->model->vcpu[c->vcpu]);
	if (c->current)
		update_thread(mc, c->current);
}
