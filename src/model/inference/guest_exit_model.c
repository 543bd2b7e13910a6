/* State of a vCPU from the host's events alone: VM entries, exits with their reasons, and whether the guest is idle.
 *
 * The guest's own trace takes precedence. Without it the guest is idle from a halt until idle_inference.h finds that a
 * thread ran. That is known only at the next exit, so the change is written afterwards, at its earlier time. On a
 * hypervisor with run states (Xen), an untraced guest is idle while its vCPU is blocked. */
#include "model/state/exit_reasons.h"
#include "model/state/state.h"

static __attribute__((noinline)) int64_t create_exit_name(struct machine *host, const struct event *ev)
{
	char buf[EXIT_NAME];
	return sink_id(&host->model->sink, exit_name(ev, buf));
}

/* Returns the string id of the reason's name; creates the string at its first use. */
static __attribute__((noinline)) int64_t find_exit_name(struct machine *host, const struct event *ev, uint64_t code)
{
	bool is_new;
	uint64_t *name_id = map_put(&host->exit_name, code, &is_new);
	if (is_new)
		*name_id = (uint64_t)create_exit_name(host, ev);
	return (int64_t)*name_id;
}

/* Returns the same from a small cache (fast path). */
static int64_t exit_name_id(struct machine *host, const struct event *ev, enum isa isa)
{
	const uint64_t code = (uint64_t)(ev->vcpu_exit.reason & UINT32_MAX) | (uint64_t)(ev->vcpu_exit.ret & 0xff) << 32 |
	                      (uint64_t)isa << 40 | UINT64_C(1) << 48;  /* the highest bit makes codes differ from 0, which
	                                                                 * marks unused cache entries */
	struct exit_cache *cached = &host->exit_cache[code % EXIT_CACHE_SIZE];
	if (cached->code != code)
		*cached = (struct exit_cache){ code, find_exit_name(host, ev, code) };
	return cached->name;
}

/* Writes the instruction set extension of the machine's exits. */
static __attribute__((noinline)) void write_isa(struct machine *vm, enum isa isa)
{
	struct model_sink *s = &vm->model->sink;
	vm->isa = (uint8_t)isa;
	int64_t name = sink_id(s, isa_name(isa));  /* created first, because both calls may add a string to the file */
	sink_set(s, sink_attribute(s, vm->root, &machine_schema[MACHINE_ISA], 0), name);
}

/* Writes the exit, which stays valid until an exit with another reason: this saves most intervals, and the status shows
 * the entries. */
static void write_exit(struct model *m, struct vcpu *v, int64_t name)
{
	if (v->attr_exit == HISTORY_NONE)
		v->attr_exit = cpu_attribute(v->vm, v->number, CPU_EXIT);
	if (v->mode != MODE_GUEST && name == v->exit && m->sink.now - 1 > v->exit_at)  /* the entry between two exits was not
	                                                                                * recorded */
		sink_set_at(&m->sink, m->sink.now - 1, v->attr_exit, HISTORY_NULL);
	sink_set(&m->sink, v->attr_exit, name);
	v->exit = name;
	v->exit_at = m->sink.now;
}

void guest_clear_exit(struct model *m, struct vcpu *v)
{
	if (v->exit != HISTORY_NULL)
		sink_set(&m->sink, v->attr_exit, HISTORY_NULL);
	v->exit = HISTORY_NULL;
	v->kernel_ip = EVENT_ABSENT;
}

void guest_write_kernel_ip(struct model *m, struct vcpu *v, bool preempted)
{
	v->kernel_ip_written = preempted;
	if (v->attr_inside == HISTORY_NONE)
		v->attr_inside = cpu_attribute(v->vm, v->number, CPU_PREEMPTED_AT);
	sink_set(&m->sink, v->attr_inside, preempted ? v->kernel_ip : HISTORY_NULL);
}

void guest_entry(struct model *m, struct vcpu *v)
{
	v->unused = false;
	if (!v->vm->parent->has_entries)
		return;
	v->mode = MODE_GUEST;
	v->kernel_ip = EVENT_ABSENT;
	if (!v->vm->parent->has_run_states) {
		idle_tracker_entry(&v->tracker, m->sink.now);
		throttling_entry(m, v);
	}
	update_vcpu(m, v);
}

/* Writes the parts of the guest-mode interval that ends now, unless the status changed during the interval. */
static void write_split(struct model *m, struct vcpu *v, int64_t since, const struct idle_split *split)
{
	int64_t now = m->sink.now, busy = since + split->head, idle = now - split->tail;
	if (since == INT64_MIN || v->status_since > since)
		return;
	const int busy_status = split->unsure ? VCPU_UNKNOWN : VCPU_RUNNING;
	if (busy < idle)
		sink_set_at(&m->sink, busy, v->attr_status, busy_status);
	if (idle < now)
		sink_set_at(&m->sink, idle, v->attr_status, VCPU_IDLE);
	v->status = idle < now || busy >= idle ? VCPU_IDLE : busy_status;
}

/* Detects that the guest takes a CPU offline: after its stopper thread the CPU records nothing, not even the switch to
 * the idle thread, which halts. */
static void detect_offline(struct vcpu *v)
{
	struct machine *vm = v->vm;
	if (!v->tracker.halted || !vm->active || !cpu_is_stopped(vm, v->number))
		return;
	struct thread *th = cpu_clear_current(vm, v->number);
	th->sched = THREAD_BLOCKED;
	th->woken = WOKEN_NO;
	th->waker = -1;
	th->waker_at = vm->model->sink.now;
	cpu_set_current(vm, v->number, NULL, MODE_VMM);
	update_thread(vm, th);
}

static void leave_guest_mode(struct model *m, struct vcpu *v, const struct event *ev, int64_t name)
{
	write_exit(m, v, name);
	v->mode = MODE_VMM;
	v->kernel_ip = exit_kernel_address(ev);
}

void guest_exit(struct model *m, struct vcpu *v, const struct event *ev)
{
	const enum isa isa = exit_isa(ev);
	if (v->vm->isa != isa)
		write_isa(v->vm, isa);
	const int64_t name = exit_name_id(v->vm->parent, ev, isa);
	if (!v->vm->parent->has_entries || isa == ISA_XEN_PV) {
		write_exit(m, v, name);
		return;
	}
	if (v->vm->parent->has_run_states) {
		leave_guest_mode(m, v, ev, name);
		update_vcpu(m, v);
		return;
	}
	int64_t since = v->tracker.at.since;
	bool was_inferred = guest_is_inferred(v);
	const unsigned flags = exit_flags(ev);
	struct idle_split split = idle_tracker_exit(&v->tracker, m->sink.now, ev, flags);
	v->idle_unknown |= was_inferred && split.unsure;
	if (was_inferred && v->mode == MODE_GUEST && (v->status == VCPU_RUNNING || v->status == VCPU_IDLE))
		write_split(m, v, since, &split);
	throttling_exit(v, flags);
	halt_polling_exit(&v->polling, m->sink.now);
	leave_guest_mode(m, v, ev, name);
	detect_offline(v);
	update_vcpu(m, v);
}

void guest_clear_mode(struct model *m, struct vcpu *v)
{
	idle_tracker_clear(&v->tracker);
	v->unused = false;
	guest_clear_exit(m, v);
	throttling_clear(v);
	halt_polling_clear(&v->polling);
}
