/* KVM: VM entries, exits, and interrupts for the guest.
 *
 * While the vCPU's thread is in guest mode, the CPU that runs it has no activity. An interruption freezes the guest
 * immediately; the exit is recorded a little later, and guest mode (also in the truth) lasts until that record.
 *
 * A guest that is a hypervisor cannot enter its own guest alone (SVM intercepts VMRUN): each entry and each exit there
 * is also an exit of its vCPU to the machine below. */
#include "base/mem.h"
#include "sim.h"

static const int32_t exit_reason[EXIT_KINDS] = {
	[EXIT_INTR] = 96, [EXIT_VINTR] = 100, [EXIT_CPUID] = 114, [EXIT_HLT] = 120, [EXIT_IO] = 123, [EXIT_DISK] = 123,
	              [EXIT_KICK] = 1024,
	[EXIT_MSR] = 124, [EXIT_IPI] = 124, [EXIT_NESTED] = 128, [EXIT_VMMCALL] = 129, [EXIT_NPF] = 1024, [EXIT_PAUSE] = 119,
	[EXIT_FETCH] = 1024, [EXIT_MMIO] = 1024,
};

struct cpu *vcpu_pcpu(const struct cpu *guest)
{
	return &guest->host->m->cpu[guest->host->cpu];
}

struct cpu *pcpu_of(struct cpu *c)
{
	while (c->host)
		c = vcpu_pcpu(c);
	return c;
}

void kvm_leave(struct cpu *guest, const struct op *op)
{
	struct cpu *c = vcpu_pcpu(guest);
	struct op *exit_op;

	cpu_pause(guest);
	exit_op = cpu_push(c, OP_EXIT, op->t);
	exit_op->arg = op->arg;
	exit_op->c = op->c;
	exit_op->a = op->a;
	exit_op->b = op->b;
	if (c->host)
		cpu_push_front(c, OP_LEAVE, NULL)->arg = EXIT_NESTED;
	cpu_next(c);
}

void kvm_interrupt(struct cpu *c)
{
	cpu_pause(c->cur->vcpu);
	cpu_push(c, OP_EXIT, NULL)->arg = EXIT_INTR;
}

/* Blocks the vCPU's thread on its machine until a device answers. */
static void block_for_io(struct cpu *c, struct thread *t, int64_t ns)
{
	t->want = WANT_DISK;
	queue_push(&c->m->sim->queue, c->m->sim->now + ns, DUE_HOSTIO, t, 0);
	cpu_push(c, OP_SWITCH, NULL);
}

/* Begins a halt; with --poll, KVM checks repeatedly whether the halt has ended, while no other thread wants the CPU. */
static void begin_halt(struct cpu *c, struct thread *t)
{
	if (!c->m->sim->opt.poll || !c->m->is_host) {
		t->want = WANT_HALT;
		cpu_push(c, OP_SWITCH, NULL);
		return;
	}
	t->polls = true;
	t->slept = t->halts = false;
	t->halt_since = c->m->sim->now;
	t->poll = t->poll_next;
}

static bool halt_is_over(const struct thread *t)
{
	return t->vcpu->virqs || t->vcpu->irqs;
}

void kvm_poll(struct cpu *c)
{
	struct thread *t = c->cur;
	int64_t ns = c->m->sim->now - t->halt_since;

	if (t->dying || halt_is_over(t)) {
		t->polls = false;
		t->halts = !t->dying;
	} else if (ns >= t->poll || c->runs || c->resched) {
		t->polls = false;
		t->halts = true;
		t->want = WANT_HALT;
		cpu_push(c, OP_SWITCH, NULL);
	}
}

/* Adapts the polling limit: longer if this halt was a little too long, zero if it was far too long. */
void kvm_adapt(struct cpu *c)
{
	struct thread *t = c->cur;
	int64_t most = c->m->sim->opt.poll, ns = c->m->sim->now - t->halt_since, grown = t->poll ? 2 * t->poll : 10 * US;

	t->halts = false;
	if (!t->dying)
		cpu_push(c, OP_GO_ON, t);
	if (ns <= t->poll || (ns > most && !t->poll) || (ns < most && t->poll >= most))
		return;
	t->poll_next = ns > most ? 0 : grown < most ? grown : most;
	RECORD(c, REC_HALT_POLL, N(t->poll_next != 0), N(t->vcpu->number), N(t->poll_next), N(t->poll));
}

void kvm_go_on(struct cpu *c)
{
	struct thread *t = c->cur;
	int64_t now = c->m->sim->now, out = t->halt_out - t->halt_since;

	if (t->poll)
		truth_poll(t, !t->slept ? now : t->halt_since + (out < t->poll ? out : t->poll), !t->slept);
	RECORD(c, REC_VCPU_WAKEUP, N(now - t->halt_since), N(t->slept), N(1));
}

void kvm_exit(struct cpu *c, const struct op *op)
{
	struct thread *t = c->cur;
	struct cpu *guest = t->vcpu;
	struct sim *s = c->m->sim;
	uint64_t rip = op->arg == EXIT_HLT ? UINT64_C(0xffffffff91606ada) : op->arg == EXIT_INTR ? 0x4016cc : 0x402533;
	int64_t vcpu_id = s->opt.bad_vcpu_id ? (int64_t)(0x40ce8000u + (unsigned)t->tid * 64u) : (int64_t)guest->number;

	t->in_guest = false;
	t->fetches = op->arg == EXIT_FETCH;
	RECORD(c, REC_KVM_EXIT, N(exit_reason[op->arg]), N(rip), N(2), N(0), N(0), N(0), N(0), N(vcpu_id));
	truth_vcpu(guest);
	truth_pcpu(c);
	switch ((enum exit_kind)op->arg) {
	case EXIT_HLT:
		if (!guest->virqs && !guest->irqs) {
			begin_halt(c, t);
		}
		break;
	case EXIT_VMMCALL: {
		struct op *call = cpu_push(c, OP_HYPERCALL, t);

		call->a = op->a;
		call->b = op->b;
		break;
	}
	case EXIT_IPI: {
		struct irq q = { .kind = IRQ_RESCHED, .t = op->t };

		kvm_deliver(op->c, &q, c);
		break;
	}
	case EXIT_DISK:
		cpu_push(c, OP_NOP, NULL);
		queue_push(&s->queue, s->now + op->a, DUE_DISK, op->t, 0);
		break;
	case EXIT_KICK:
		carrier_kick(c, op->t);
		break;
	case EXIT_IO: case EXIT_MMIO:
		cpu_push(c, OP_USEREXIT, t)->a = op->arg == EXIT_IO ? 2 : 6;
		block_for_io(c, t, op->a);
		break;
	case EXIT_FETCH:
		block_for_io(c, t, op->a);
		break;
	default:
		cpu_push(c, OP_NOP, NULL);
		break;
	}
}

void kvm_inject(struct cpu *c)
{
	static const uint8_t vector[] = { [IRQ_TICK] = 236, [IRQ_WAKE] = 236, [IRQ_BARE] = 236, [IRQ_DEV] = 0x41,
	                                  [IRQ_RESCHED] = 253, [IRQ_OFFLINE] = 251, [IRQ_GUEST] = 236, [IRQ_GUEST_DEV] = 0x41 };
	struct cpu *guest = c->cur->vcpu;
	struct irq q = guest->virq[0];

	guest->virqs--;
	for (size_t i = 0; i < guest->virqs; i++)
		guest->virq[i] = guest->virq[i + 1];
	*ARRAY_PUSH(guest->irq, guest->irqs, guest->irq_cap) = q;
	RECORD(c, REC_INJECT, N(vector[q.kind]));
}

void kvm_entry(struct cpu *c)
{
	struct thread *t = c->cur;
	int64_t vcpu_id = c->m->sim->opt.bad_vcpu_id ? 0x40ce8000 : (int64_t)t->vcpu->number;

	if (c->irqs || c->resched || t->vcpu->kick || t->dying || t->vcpu->m->outage)
		return;  /* last check before the entry */
	RECORD(c, REC_KVM_ENTRY, N(vcpu_id));
	steal_enter(t->vcpu);
	t->in_guest = true;
	t->vcpu->online = t->vcpu->online || !t->vcpu->was_online;
	t->vcpu->was_online = true;
	truth_vcpu(t->vcpu);
	truth_pcpu(c);
	if (c->host)
		cpu_push(c, OP_LEAVE, NULL)->arg = EXIT_NESTED;
	else
		cpu_resume(t->vcpu);
}

/* Forwards an interrupt, noticed on CPU `from`, to a guest of that machine or a guest nested in it: to the next vCPU on
 * the way. */
void kvm_forward(const struct op *op, struct cpu *from)
{
	struct irq q = { .kind = op->arg, .t = op->t, .owner = (void *)(intptr_t)op->a };
	struct cpu *next = op->c;

	while (vcpu_pcpu(next)->m != from->m)
		next = vcpu_pcpu(next);
	kvm_deliver(next, next == op->c ? &q : &(struct irq)IRQ_FOR(op->c, q.kind, q.t, q.owner), from);
}

/* Delivers an interrupt to the guest. from: CPU of the machine below that notices the interrupt. */
void kvm_deliver(struct cpu *guest, const struct irq *q, struct cpu *from)
{
	struct thread *t = guest->host;

	*ARRAY_PUSH(guest->virq, guest->virqs, guest->virq_cap) = *q;
	guest->kick = true;
	if (t->state == TASK_BLOCKED && t->want == WANT_HALT && !t->waking)
		cpu_push_front(from, OP_WAKING, t);
	else if (t->in_guest && guest->live)
		cpu_interrupt(vcpu_pcpu(guest));
}
