/* What the host alone tells of a vCPU: entries and exits with their reasons, and whether its guest has something to do.
 *
 * Where the guest's own trace says who is current, that holds.  Where it does not, the guest is idle from a halt on until
 * idle_inference.h says that a thread runs.  When that was is known only at the next exit, so it is told late. */
#include "model/state/exit_reasons.h"
#include "model/state/state.h"

static __attribute__((noinline)) int64_t make_name(struct machine *host, const struct event *ev)
{
	char buf[EXIT_NAME];
	return sink_id(&host->model->sink, exit_name(ev, buf));
}

/* The reason's name, made once for each. */
static __attribute__((noinline)) int64_t find_name(struct machine *host, const struct event *ev, uint64_t code)
{
	bool is_new;
	uint64_t *known = map_put(&host->exit_name, code, &is_new);
	if (is_new)
		*known = (uint64_t)make_name(host, ev);
	return (int64_t)*known;
}

/* Mostly it is found at once. */
static int64_t name_exit(struct machine *host, const struct event *ev, enum isa isa)
{
	const uint64_t code = (uint64_t)(ev->kvm.reason & UINT32_MAX) | (uint64_t)(ev->kvm.ret & 0xff) << 32 |
	                      (uint64_t)isa << 40 | UINT64_C(1) << 48;  /* never 0 */
	struct told_exit *told = &host->told_exit[code % EXITS_TOLD];
	if (told->code != code)
		*told = (struct told_exit){ code, find_name(host, ev, code) };
	return told->name;
}

/* Which processor's names these are, once for each machine. */
static __attribute__((noinline)) void tell_isa(struct machine *vm, enum isa isa)
{
	struct model_sink *s = &vm->model->sink;
	vm->isa = (uint8_t)isa;
	int64_t name = sink_id(s, isa_name(isa));  /* first: each of the two may put a string into the file */
	sink_set(s, sink_attribute(s, vm->root, &machine_schema[MACHINE_ISA], 0), name);
}

/* Kept until the next exit has another one: when it was entered again, the status tells, and most intervals are saved. */
static void set_exit(struct model *m, struct vcpu *v, int64_t name)
{
	if (v->attr_exit == HISTORY_NONE)
		v->attr_exit = cpu_attribute(v->vm, v->number, CPU_EXIT);
	if (v->mode != MODE_GUEST && name == v->exit && m->sink.now - 1 > v->exit_at)  /* entered without a word */
		sink_set_at(&m->sink, m->sink.now - 1, v->attr_exit, HISTORY_NULL);
	sink_set(&m->sink, v->attr_exit, name);
	v->exit = name;
	v->exit_at = m->sink.now;
}

void guest_forget_exit(struct model *m, struct vcpu *v)
{
	if (v->exit != HISTORY_NULL)
		sink_set(&m->sink, v->attr_exit, HISTORY_NULL);
	v->exit = HISTORY_NULL;
	v->inside = EVENT_ABSENT;
}

void guest_tell_inside(struct model *m, struct vcpu *v, bool told)
{
	v->told_inside = told;
	if (v->attr_inside == HISTORY_NONE)
		v->attr_inside = cpu_attribute(v->vm, v->number, CPU_INSIDE);
	sink_set(&m->sink, v->attr_inside, told ? v->inside : HISTORY_NULL);
}

void guest_entry(struct model *m, struct vcpu *v)
{
	v->unused = false;
	if (!v->vm->parent->has_kvm)
		return;
	v->mode = MODE_GUEST;
	v->inside = EVENT_ABSENT;
	quiet_enter(&v->quiet, m->sink.now);
	limits_enter(m, v);
	update_vcpu(m, v);
}

/* Tells the part of the time in guest mode that now ends as it was, unless something else was told of it since. */
static void tell_split(struct model *m, struct vcpu *v, int64_t since, const struct quiet_split *split)
{
	int64_t now = m->sink.now, busy = since + split->head, idle = now - split->tail;
	if (since == INT64_MIN || v->status_since > since)
		return;
	const int at_work = split->doubt ? VCPU_UNKNOWN : VCPU_RUNNING;
	if (busy < idle)
		sink_set_at(&m->sink, busy, v->attr_status, at_work);
	if (idle < now)
		sink_set_at(&m->sink, idle, v->attr_status, VCPU_IDLE);
	v->status = idle < now || busy >= idle ? VCPU_IDLE : at_work;
}

/* A CPU that its guest takes offline records nothing from the moment on at which its stopper has done that, not even the
 * switch to its idle thread, which halts. */
static void tell_offline(struct vcpu *v)
{
	struct machine *vm = v->vm;
	if (!v->quiet.halted || !vm->active || !cpu_is_stopped(vm, v->number))
		return;
	struct thread *th = cpu_leave(vm, v->number);
	th->sched = THREAD_BLOCKED;
	th->woken = WOKEN_NO;
	th->waker = -1;
	th->waker_at = vm->model->sink.now;
	cpu_enter(vm, v->number, NULL, MODE_VMM);
	update_thread(vm, th);
}

void guest_exit(struct model *m, struct vcpu *v, const struct event *ev)
{
	const enum isa isa = exit_isa(ev);
	if (v->vm->isa != isa)
		tell_isa(v->vm, isa);
	const int64_t name = name_exit(v->vm->parent, ev, isa);
	if (!v->vm->parent->has_kvm) {
		set_exit(m, v, name);
		return;
	}
	int64_t since = v->quiet.at.since;
	bool was_dark = guest_is_dark(v);
	const unsigned is = exit_is(ev);
	struct quiet_split split = quiet_exit(&v->quiet, m->sink.now, ev, is);
	v->doubted |= was_dark && split.doubt;
	if (was_dark && v->mode == MODE_GUEST && (v->status == VCPU_RUNNING || v->status == VCPU_IDLE))
		tell_split(m, v, since, &split);
	limits_exit(v, is);
	polling_exit(&v->polling, m->sink.now);
	set_exit(m, v, name);
	v->mode = MODE_VMM;
	v->inside = exit_kernel_address(ev);
	tell_offline(v);
	update_vcpu(m, v);
}

void guest_lose(struct model *m, struct vcpu *v)
{
	quiet_lose(&v->quiet);
	v->unused = false;
	guest_forget_exit(m, v);
	limits_forget(v);
	polling_forget(&v->polling);
}
