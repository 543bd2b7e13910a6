/* VMs, and CPUs of VMs, come and go.
 *
 * Who does that is the main thread of the VM's QEMU, by steps of its program (workload.c).  A CPU is plugged by starting
 * its thread, and is online in the guest from its first entry on.  To unplug it the guest is asked to take it offline,
 * which moves its threads elsewhere; when it is quiet its thread is told to die.  A VM ends when all its threads have.
 *
 * The thread of a CPU that has none is the `nobody` of its machine: dead for ever, so nothing of the CPU goes on. */
#include "base/mem.h"
#include "sim.h"

bool vcpu_gone(const struct cpu *guest)
{
	return guest->host && guest->host->state == TASK_DEAD;
}

void vcpu_attach(struct cpu *guest, struct thread *t)
{
	struct sim *s = t->m->sim;

	t->vcpu = guest;
	t->affinity = guest->m->vcpu_affinity;
	t->group = guest->m->vcpu_group;
	guest->host = t;
	guest->live = guest->kick = guest->online = guest->was_online = false;
	guest->virqs = guest->irqs = 0;
	*ARRAY_PUSH(s->life, s->lives, s->life_cap) = (struct life){ guest->m, guest->number, t->tid, t->pid };
}

/* Its thread is dead: whatever was to happen on this CPU does not. */
void vcpu_detach(struct cpu *guest)
{
	cpu_pause(guest);
	guest->host = &guest->m->nobody;
	guest->virqs = guest->irqs = 0;
	guest->tick_armed = guest->resched = guest->online = false;
	guest->tick_gen++;
	truth_vcpu(guest);
}

/* QEMU, on CPU c, starts the thread of a CPU. */
static void plug(struct cpu *c, struct cpu *guest)
{
	cpu_push(c, OP_FORK, NULL)->c = guest;
}

void vm_plug_all(struct cpu *c, struct machine *vm)
{
	for (unsigned i = 0; i < vm->boot_cpus; i++)
		plug(c, &vm->cpu[i]);
}

static unsigned count_online(const struct machine *vm)
{
	unsigned n = 0;

	for (unsigned i = 0; i < vm->cpus; i++)
		n += vm->cpu[i].online;
	return n;
}

/* Plugs a CPU, or begins to unplug one, or leaves it at that. */
void vm_change(struct cpu *c, struct machine *vm)
{
	struct irq q = { .kind = IRQ_OFFLINE };
	struct cpu *guest = &vm->cpu[rng_range(&c->m->sim->rng, 0, (int64_t)vm->cpus - 1)];

	if (vcpu_gone(guest))
		plug(c, guest);
	else if (guest->number > 0 && guest->online && count_online(vm) > 1)
		kvm_deliver(guest, &q, c);
}

static void kill_thread(struct cpu *c, struct cpu *guest)
{
	struct thread *t = guest->host;

	if (t->state == TASK_DEAD || t->dying)
		return;
	t->dying = true;
	if (t->state == TASK_BLOCKED && t->want == WANT_HALT && !t->waking)
		cpu_push(c, OP_WAKING, t);
	else if (t->in_guest && guest->live)
		cpu_interrupt(vcpu_pcpu(guest));
}

/* The threads of CPUs that are offline die, once they are quiet; a thread may have come late. */
void vm_reap(struct cpu *c, struct machine *vm)
{
	struct irq q = { .kind = IRQ_OFFLINE };

	for (unsigned i = 1; i < vm->cpus; i++) {
		struct cpu *guest = &vm->cpu[i];

		if (vcpu_gone(guest) || guest->online || !guest->was_online)
			continue;
		if (guest->cur->idle && !guest->runs && !guest->ops && !guest->irqs && !guest->virqs)
			kill_thread(c, guest);
		else
			kvm_deliver(guest, &q, c);
	}
}

void vm_kill(struct cpu *c, struct machine *vm)
{
	for (unsigned i = 0; i < vm->cpus; i++)
		kill_thread(c, &vm->cpu[i]);
}

bool vm_gone(const struct machine *vm)
{
	for (unsigned i = 0; i < vm->cpus; i++)
		if (!vcpu_gone(&vm->cpu[i]))
			return false;
	return true;
}
