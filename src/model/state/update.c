/* Consequences: thread -> the vCPU it emulates -> the thread that is current on that vCPU -> and so on inwards.
 *
 * The depth of the recursion is the depth to which machines are nested; each step costs O(1). */
#include "model/loss/initial_state.h"
#include "model/state/state.h"

static enum vcpu_place place_of(const struct vcpu *v)
{
	static const enum vcpu_place of[] = {
		[WOKEN_NO] = PLACE_RUNNABLE, [WOKEN_YES] = PLACE_WOKEN, [WOKEN_PERHAPS] = PLACE_QUEUED };
	const struct machine *host = v->vm->parent;
	const struct thread *th = v->thread;
	if (host && !v->mapped && host->start && host->start->epochs > 1)
		return PLACE_UNKNOWN;  /* all that was said of its thread is lost: it may have waited */
	if (!host || !v->mapped)
		return PLACE_UNTRACED;
	if (!host->active)
		return v->vm->active ? PLACE_UNKNOWN : PLACE_GONE;
	if (!th)
		return PLACE_GONE;
	if (th->on >= 0) {
		/* The CPU it is on may itself be a vCPU that is not executing. */
		uint32_t outer = host->cpu[th->on].vcpu;
		int status = outer == NONE ? THREAD_RUNNING : vcpu_guest_thread(v->vm->model->vcpu[outer].status);
		return status == THREAD_RUNNING ? PLACE_IN : status == THREAD_UNKNOWN ? PLACE_UNKNOWN : PLACE_RUNNABLE;
	}
	switch (th->sched) {
	case THREAD_BLOCKED:
		return v->unused && !v->vm->active ? PLACE_UNKNOWN : PLACE_BLOCKED;
	case THREAD_PREEMPTED:
		return of[th->woken];
	default:
		return PLACE_UNKNOWN;
	}
}

static enum vcpu_current current_of(const struct vcpu *v)
{
	static const enum vcpu_current of[] = {
		[CPU_UNSEEN] = CURRENT_QUIET,
		[CPU_UNKNOWN] = CURRENT_UNKNOWN,
		[CPU_IDLE] = CURRENT_IDLE,
		[CPU_BUSY] = CURRENT_BUSY,
	};
	enum cpu_state state = v->vm->cpu[v->number].state;
	if (v->quiet.halted && (state == CPU_UNKNOWN || !v->vm->active))
		return CURRENT_IDLE;  /* it said so itself */
	if (guest_is_dark(v))
		return v->quiet.at.quiet ? CURRENT_IDLE : v->quiet.doubt || v->quiet.lost ? CURRENT_UNKNOWN : CURRENT_BUSY;
	if (v->vm->active && state == CPU_UNSEEN && v->plugged)
		return CURRENT_IDLE;
	if (v->vm->active && state == CPU_UNSEEN && v->quiet.known && !v->quiet.halted)
		return CURRENT_UNKNOWN;  /* whoever is out for another reason than a halt may have been busy */
	return v->vm->active ? of[state] : CURRENT_UNTRACED;
}

static inline void take_status(struct machine *mc, struct thread *th, int status)
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
	enum vcpu_place place = place_of(v);
	int32_t pcpu = v->thread ? v->thread->cpu : -1;
	if (place != (enum vcpu_place)v->limits.place || pcpu != v->pcpu)
		limits_place(m, v, place, pcpu != v->pcpu);
	if (place == PLACE_BLOCKED)
		polling_sleeps(&v->polling, m->sink.now);
	if (m->paper_states && place == PLACE_QUEUED)
		place = PLACE_RUNNABLE;  /* the paper makes no difference */
	int status = vcpu_status(place, v->mode, current_of(v));
	if (m->paper_states)
		status = vcpu_fold(status);
	if (status != v->status) {
		const bool inside = status == VCPU_PREEMPTED && place == PLACE_RUNNABLE && v->inside != EVENT_ABSENT;
		if (inside != v->told_inside)
			guest_tell_inside(m, v, inside);
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
		take_status(v->vm, current, vcpu_guest_thread(v->status));
}

void update_thread(struct machine *mc, struct thread *th)
{
	int status = th->sched;
	if (th->on >= 0) {
		uint32_t v = mc->cpu[th->on].vcpu;
		status = v == NONE ? THREAD_RUNNING : vcpu_guest_thread(mc->model->vcpu[v].status);
	}
	take_status(mc, th, status);
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
