/* a machine's CPUs: the current thread of each, and the vCPUs. */
#include "base/base.h"
#include "model/state/state.h"

/* Limits the memory for a damaged packet, which may contain any CPU number. */
_Static_assert((UINT16_MAX + 1) * sizeof(struct cpu) <= (6u << 20), "a CPU that was never seen must cost little");

static void reserve_cpus(struct machine *mc, uint32_t number)
{
	if (number < mc->cpus)
		return;
	uint32_t n = mc->cpus ? mc->cpus : 4;
	while (n <= number)
		n *= 2;
	mc->cpu = mem_resize(mc->cpu, n, sizeof *mc->cpu);
	for (uint32_t i = mc->cpus; i < n; i++)
		mc->cpu[i] = (struct cpu){
			.vcpu = NONE, .attr_current = HISTORY_NONE, .attr_owner = HISTORY_NONE,
			.attr_interrupt = HISTORY_NONE, .handler = NONE, .resuming = true,
		};
	mc->cpus = n;
}

uint32_t cpu_attribute(struct machine *mc, uint32_t number, enum cpu_attr attr)
{
	const struct model *m = mc->model;
	unsigned set = attr == CPU_STATUS ? m->set_vcpu : attr == CPU_OWNER ? m->set_owner :
	               attr == CPU_OUT_BY ? m->set_out_by : attr == CPU_POLLING ? m->set_polling : 0;
	char path[NODE_MAX];
	snprintf(path, sizeof path, "%s/" SCHEMA_CPUS "/" SCHEMA_CPU "%" PRIu32, mc->root, number);
	return sink_attribute(&mc->model->sink, path, &cpu_schema[attr], set);
}

uint32_t vcpu_get(struct machine *vm, uint32_t number)
{
	struct model *m = vm->model;
	size_t len = m->vcpus;
	reserve_cpus(vm, number);
	if (vm->cpu[number].vcpu != NONE)
		return vm->cpu[number].vcpu;
	struct vcpu *v = ARRAY_PUSH(m->vcpu, len, m->vcpu_cap);
	*v = (struct vcpu){
		.vm = vm, .number = number, .status = STATUS_NULL, .pcpu = -1, .attr_exit = HISTORY_NONE,
		.attr_inside = HISTORY_NONE, .kernel_ip = EVENT_ABSENT,
		.exit = HISTORY_NULL, .throttling = THROTTLING_INIT, .polling = HALT_POLLING_INIT,
		.attr_status = cpu_attribute(vm, number, CPU_STATUS),
		.attr_host_thread = cpu_attribute(vm, number, CPU_HOST_THREAD),
		.attr_pcpu = cpu_attribute(vm, number, CPU_PCPU),
	};
	vm->cpu[number].vcpu = m->vcpus;
	return m->vcpus++;
}

void vcpu_map(struct machine *vm, uint32_t number, int64_t tid, const struct sync_vcpu_lifetime *life)
{
	struct model *m = vm->model;
	uint32_t vcpu = vcpu_get(vm, number);
	if (!vm->parent || !tid_valid(tid))
		return;
	uint64_t *first = map_put(&vm->parent->candidate, (uint64_t)tid, NULL);
	*ARRAY_PUSH(m->candidate, m->candidates, m->candidate_cap) =
		(struct candidate){ .vcpu = vcpu, .life = *life, .next = (uint32_t)*first - 1 };  /* first candidate: NONE */
	*first = m->candidates;
	m->vcpu[vcpu].mapped = true;
}

struct cpu *cpu_first_event(struct machine *mc, uint32_t number)
{
	reserve_cpus(mc, number);
	struct cpu *c = &mc->cpu[number];
	c->state = CPU_UNKNOWN;
	c->unknown_since = mc->begin;
	if (c->attr_current == HISTORY_NONE) {
		c->attr_current = cpu_attribute(mc, number, CPU_CURRENT);
		c->attr_interrupt = cpu_attribute(mc, number, CPU_INTERRUPT);
		if (mc->index)
			vcpu_get(mc, number);
		else
			c->attr_owner = cpu_attribute(mc, number, CPU_OWNER);
	}
	update_cpu(mc, number);
	return c;
}

bool cpu_may_run_any(const struct machine *mc, int64_t number)
{
	const enum cpu_state state = number >= 0 && number < mc->cpus ? mc->cpu[number].state : CPU_UNSEEN;
	return number >= 0 && (state == CPU_UNSEEN || state == CPU_UNKNOWN);
}

struct thread *cpu_clear_current(struct machine *mc, uint32_t number)
{
	struct cpu *c = &mc->cpu[number];
	struct thread *th = c->current;
	if (th) {
		th->on_cpu = -1;
		th->sched = THREAD_UNKNOWN;
	}
	if (c->state != CPU_UNKNOWN)
		c->unknown_since = mc->model->sink.now;
	if (c->state == CPU_IDLE)
		c->busy_since = mc->model->sink.now;
	c->current = NULL;
	c->state = CPU_UNKNOWN;
	return th;
}

bool cpu_is_stopped(const struct machine *mc, uint32_t number)
{
	const struct thread *th = mc->cpu[number].current;
	char stopper[24];
	if (!th || th->vcpu != NONE || th->container_attr)  /* fast path: called at each halt, nearly always with an idle CPU */
		return false;
	snprintf(stopper, sizeof stopper, "migration/%" PRIu32, number);
	return strcmp(mc->names.get(mc->names.of, th->comm), stopper) == 0;
}

void cpu_was_offline(struct machine *mc, uint32_t number)
{
	const struct cpu *c = &mc->cpu[number];
	struct thread *stopper = cpu_clear_current(mc, number);
	const int64_t since = c->last + 1 > stopper->status_since ? c->last + 1 : stopper->status_since;
	sink_set_at(&mc->model->sink, since, c->attr_current, 0);
	sink_set_at(&mc->model->sink, since, c->attr_owner, PCPU_IDLE);
	stopper->sched = THREAD_BLOCKED;
	stopper->status = THREAD_BLOCKED;
	stopper->status_since = since;
	thread_set_at(mc, stopper, since, THREAD_STATUS, THREAD_BLOCKED);
}

void cpu_set_unknown(struct machine *mc, uint32_t number)
{
	struct thread *old = cpu_clear_current(mc, number);
	update_cpu(mc, number);
	if (old)
		update_thread(mc, old);
}

void cpu_set_current(struct machine *mc, uint32_t number, struct thread *th, enum vcpu_mode mode)
{
	struct thread *old = cpu_clear_current(mc, number);
	struct cpu *c = &mc->cpu[number];
	if (th) {
		int32_t other = th->on_cpu;
		if (other >= 0) {  /* the switch on the other CPU was not recorded: events are missing */
			count_contradiction(mc);
			cpu_clear_current(mc, (uint32_t)other);
			update_cpu(mc, (uint32_t)other);
		}
		th->on_cpu = (int32_t)number;
		th->sched = THREAD_RUNNING;
		th->woken = WOKEN_NO;
		th->waker = -1;
		if (th->vcpu != NONE) {
			struct vcpu *v = &mc->model->vcpu[th->vcpu];
			if (mode == MODE_UNKNOWN || v->mode == MODE_GUEST)  /* the exit was not recorded */
				guest_clear_exit(mc->model, v);
			v->mode = mc->has_entries ? mode : MODE_UNTRACED;
		}
		thread_set_cpu(mc, th, number);
	}
	mc->unknown += mc->model->sink.now - c->unknown_since;
	c->current = th;
	c->state = th ? CPU_BUSY : CPU_IDLE;
	update_cpu(mc, number);
	if (old && old != th)
		update_thread(mc, old);
}
