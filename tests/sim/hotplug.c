/* Hotplug of VMs and of CPUs of VMs.
 *
 * The main thread of the VM's QEMU executes hotplug by steps of its program (workload.c). It plugs a CPU by starting the
 * CPU's thread; the CPU is online in the guest after its first VM entry. To unplug a CPU it requests the guest to take
 * the CPU offline, which moves its threads elsewhere; when the CPU is idle, its thread is made to exit. A VM ends when
 * all its threads have exited.
 *
 * A CPU without a thread has its machine's `nobody` as thread, which is dead forever, so no activity of the CPU
 * continues. */
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

/* Detaches the dead thread from its CPU; everything planned on this CPU is dropped. */
void vcpu_detach(struct cpu *guest)
{
	cpu_pause(guest);
	guest->host = &guest->m->nobody;
	guest->virqs = guest->irqs = 0;
	guest->tick_armed = guest->resched = guest->online = false;
	guest->tick_gen++;
	truth_vcpu(guest);
}

/* Starts the thread of a CPU, in QEMU on CPU c. */
static void plug_cpu(struct cpu *c, struct cpu *guest)
{
	cpu_push(c, OP_FORK, NULL)->c = guest;
}

void vm_plug_all(struct cpu *c, struct machine *vm)
{
	for (unsigned i = 0; i < vm->boot_cpus; i++)
		plug_cpu(c, &vm->cpu[i]);
}

static unsigned count_online(const struct machine *vm)
{
	unsigned n = 0;

	for (unsigned i = 0; i < vm->cpus; i++)
		n += vm->cpu[i].online;
	return n;
}

/* Plugs a random CPU, begins to unplug it, or does nothing. */
void vm_change(struct cpu *c, struct machine *vm)
{
	struct irq q = { .kind = IRQ_OFFLINE };
	struct cpu *guest = &vm->cpu[rng_range(&c->m->sim->rng, 0, (int64_t)vm->cpus - 1)];

	if (vcpu_gone(guest))
		plug_cpu(c, guest);
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

/* Ends the threads of offline CPUs that are idle; repeats the offline request if a thread arrived late. */
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
