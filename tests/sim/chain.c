/* Threads that wait for each other: locks of a machine, and messages that a host thread carries into a guest (packets of
 * another VM, answers of a disk). Writes causes.csv with the true cause of each wakeup. */
#include <stdlib.h>

#include "base/mem.h"
#include "truth.h"

/* ---- Locks: handed over to the longest waiter. */

void lock_take(struct cpu *c, struct thread *t, struct lock *l)
{
	if (!l->owner)
		l->owner = t;
	else if (l->waiters < sizeof l->waiter / sizeof *l->waiter)
		l->waiter[l->waiters++] = t;
	else
		return;
	if (l->owner == t)
		return;
	t->want = WANT_SLEEP;
	cpu_push(c, OP_SWITCH, NULL);
}

/* Tries to get a spinlock: the first thread that tries while the lock is free gets it. Returns false if it is not free. */
bool lock_spin(struct cpu *c, struct thread *t, struct lock *l)
{
	if (l->owner && !t->spins_since) {
		t->spins_since = c->m->sim->now;
		t->spins_for = l->owner;
	}
	if (l->owner)
		return false;
	l->owner = t;
	if (t->spins_since)
		truth_spin(t, true);
	t->spins_since = 0;
	return true;
}

void lock_give(struct cpu *c, struct thread *t, struct lock *l)
{
	if (l->owner != t)
		return;
	l->owner = l->waiters ? l->waiter[0] : NULL;
	for (unsigned i = 1; i < l->waiters; i++)
		l->waiter[i - 1] = l->waiter[i];
	l->waiters -= l->waiters > 0;
	if (l->owner)
		cpu_push(c, OP_WAKING, l->owner);
}

/* ---- Messages */

struct thread *carrier_add(struct machine *vm, const char *name, bool of_qemu, uint64_t affinity)
{
	struct thread *t = thread_add(vm->sim->machine[0], name, workload[WL_CARRIER], NOTHING, affinity);

	if (of_qemu)
		t->pid = vm->qemu_pid;
	else
		vm->net = t;
	t->carrier = mem_new(1, sizeof *t->carrier);
	t->carrier->vm = vm;
	t->carrier->is_net = !of_qemu;
	return t;
}

static void queue_message(struct cpu *c, struct thread *carrier, struct thread *to)
{
	struct carrier *k = carrier->carrier;

	if (k->n < sizeof k->to / sizeof *k->to)
		k->to[k->n++] = to;
	cpu_push(c, OP_WAKING, carrier);
}

/* Called when the guest's thread t exited to send a message: hands the message to the host thread that carries it. */
void carrier_kick(struct cpu *c, struct thread *t)
{
	queue_message(c, t->sends_by, t->sends_to);
}

/* Returns the receiver of the next message; NULL: none. */
struct thread *carrier_next(struct thread *t)
{
	struct carrier *k = t->carrier;

	k->now = k->n ? k->to[0] : NULL;
	for (unsigned i = 1; i < k->n; i++)
		k->to[i - 1] = k->to[i];
	k->n -= k->n > 0;
	return k->now;
}

/* Delivers a message: thread t of the host, on CPU c, raises the interrupt, or hands it to the carrier of the other VM. */
void carrier_deliver(struct cpu *c, struct thread *t)
{
	struct thread *to = t->carrier->now;
	struct cpu *guest = &to->m->cpu[to->cpu];
	struct irq q = { .kind = IRQ_DEV, .inner = t->carrier->is_net, .t = to };

	if (to->m != t->carrier->vm) {
		queue_message(c, to->m->net, to);
		return;
	}
	truth_raise(c, guest, to);
	kvm_deliver(guest, &q, c);
}

/* ---- Truth */

static FILE *cause_file(struct sim *s)
{
	return s->truth ? s->truth->cause : NULL;
}

static void write_cause(struct cpu *c, const char *kind, const struct thread *t, const struct cpu *guest)
{
	const char *in = c->handlers ? strtab_get(&c->m->sim->names, (uint32_t)c->handler[c->handlers - 1]) : "thread";

	if (cause_file(c->m->sim))
		fprintf(cause_file(c->m->sim), "%lld,%s,%s,%d,%s,%d,%s,%d\n", (long long)c->m->sim->now, kind,
		        t->m->is_host ? "host" : t->m->name, t->tid, c->m->is_host ? "host" : c->m->name, c->cur->tid, in,
		        guest ? (int)guest->number : -1);
}

void truth_wake(struct cpu *c, const struct thread *t)
{
	write_cause(c, "wake", t, c->host ? c : NULL);
}

void truth_spin(const struct thread *t, bool got)
{
	struct sim *s = t->m->sim;

	if (cause_file(s))
		fprintf(cause_file(s), "%lld,%s,%s,%d,%s,%d,%lld,-1\n", (long long)s->now, got ? "spin" : "spins", t->m->name,
		        t->tid, t->m->name, t->spins_for->tid, (long long)t->spins_since);
}

void truth_raise(struct cpu *c, const struct cpu *guest, const struct thread *t)
{
	write_cause(c, "raise", t, guest);
}
