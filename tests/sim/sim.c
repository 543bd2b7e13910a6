/* Main loop: processes due events in order of time, until the end time or the number of records is reached. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "groups.h"
#include "sim.h"
#include "simulate.h"

/* Returns true if the vCPU, or an outer vCPU that runs it, has no thread. */
static bool has_no_thread(const struct cpu *c)
{
	while (c->host && !vcpu_gone(c))
		c = vcpu_pcpu(c);
	return c->host;
}

/* Raises an interrupt on CPU c; for a vCPU, on the host's CPU that runs it. */
static void raise_irq(struct cpu *c, enum irq_kind kind, struct thread *t, void *who)
{
	struct irq q = { .kind = (uint8_t)kind, .t = t, .owner = who };

	if (has_no_thread(c))
		return;
	if (c->host)
		q = (struct irq)IRQ_FOR(c, kind, t, who);
	cpu_irq(pcpu_of(c), &q);
}

static void tick_due(struct cpu *c, uint32_t gen)
{
	if (gen == c->tick_gen)
		raise_irq(c, IRQ_TICK, NULL, NULL);
}

/* Returns the CPU for a thread's timers and devices: its own, or one that is online. */
static struct cpu *irq_cpu(const struct thread *t)
{
	struct cpu *c = &t->m->cpu[t->cpu];

	for (unsigned i = 0; i < t->m->cpus && !c->online; i++)
		c = &t->m->cpu[i];
	return c;
}

/* Ends a quota period; the timer of the period is on pCPU 0. */
static void period_due(struct sim *s, struct quota_group *g)
{
	queue_push(&s->queue, s->now + g->period, DUE_PERIOD, g, 0);
	raise_irq(&s->machine[0]->cpu[0], IRQ_PERIOD, NULL, g);
}

/* Raises the interrupt of a device that answers, on a random CPU of the machine. */
static void hostio_due(struct thread *t)
{
	raise_irq(&t->m->cpu[rng_range(&t->m->sim->rng, 0, (int64_t)t->m->cpus - 1)], IRQ_DEV, t, NULL);
}

static void dispatch(struct sim *s, const struct due *d)
{
	struct thread *t = d->owner;
	struct bare *b = d->owner;

	switch ((enum due_kind)d->kind) {
	case DUE_CPU:
		cpu_due(d->owner, d->gen);
		break;
	case DUE_SLEEP:
		if (t->timer_gen != d->gen || t->state == TASK_DEAD)
			break;
		if (has_no_thread(irq_cpu(t)))  /* perhaps not yet online */
			queue_push(&s->queue, s->now + MS, DUE_SLEEP, t, d->gen);
		else
			raise_irq(irq_cpu(t), IRQ_WAKE, t, NULL);
		break;
	case DUE_TICK:
		tick_due(d->owner, d->gen);
		break;
	case DUE_BARE:
		raise_irq(b->c, IRQ_BARE, NULL, b);
		break;
	case DUE_DISK:
		raise_irq(irq_cpu(t), IRQ_DEV, t, NULL);
		break;
	case DUE_HOSTIO:
		hostio_due(t);
		break;
	case DUE_PERIOD:
		period_due(s, d->owner);
		break;
	case DUE_SAMPLE:
		groups_sample(s);
		break;
	case DUE_REGROUP:
		groups_move_thread(s);
		break;
	case DUE_STOP:
		vm_stop(s, d->owner);
		break;
	case DUE_CONTINUE:
		vm_continue(s, d->owner);
		break;
	}
}

static bool stale(const struct due *d)
{
	return d->kind == DUE_CPU && ((const struct cpu *)d->owner)->gen != d->gen;
}

static void run(struct sim *s)
{
	struct due d;

	while (!s->failed && queue_pop(&s->queue, &d)) {
		if (stale(&d))
			continue;
		if (d.at > s->end || (s->opt.events && s->records >= s->opt.events))
			break;
		s->now = d.at > s->now ? d.at : s->now + 1;
		dispatch(s, &d);
	}
}

static void begin_truth(struct sim *s)
{
	for (unsigned i = 0; i < s->machines; i++) {
		struct machine *m = s->machine[i];

		for (int32_t tid = 1; tid < TIDS; tid++)
			if (m->by_tid[tid])
				truth_thread(m->by_tid[tid]);
		for (unsigned k = 0; k < m->cpus; k++)
			truth_pcpu(&m->cpu[k]);
	}
}

static int make_dir(const char *path, struct error *err)
{
	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		return error_system(err, NULL, "%s", path);
	return 0;
}

static int open_machine(struct sim *s, struct machine *m)
{
	char *dir = m->is_host ? mem_printf("%s/host", s->opt.out) : mem_printf("%s/guest-%s", s->opt.out, m->name);
	char *kernel = mem_printf("%s/kernel", dir);
	int64_t begin = clock_guest(m, m->trace_from > s->begin ? m->trace_from : s->begin) - m->boot_guest;
	int result = 0;

	if (make_dir(dir, &s->err) < 0 || make_dir(kernel, &s->err) < 0)
		result = -1;
	else if (!(m->ctf = ctf_open(kernel, m, begin, &s->err)))
		result = -1;
	free(kernel);
	free(dir);
	return result;
}

static int open_all(struct sim *s)
{
	char *truth = mem_printf("%s/truth", s->opt.out);
	int result = make_dir(s->opt.out, &s->err);

	for (unsigned i = 0; i < s->machines && result == 0; i++)
		if (s->machine[i]->traced)
			result = open_machine(s, s->machine[i]);
	if (result == 0 && !s->opt.no_truth) {
		result = make_dir(truth, &s->err);
		if (result == 0)
			result = truth_open(s, truth);
	}
	free(truth);
	return result;
}

static int close_all(struct sim *s)
{
	int result = s->failed ? -1 : 0;

	cores_end(s);
	if (s->groups_recorded)
		groups_end(s);
	if ((s->opt.siblings || groups_in_session(s)) && session_write(s) < 0)
		result = -1;
	if (s->truth && truth_close(s) < 0)
		result = -1;
	for (unsigned i = 0; i < s->machines; i++) {
		struct machine *m = s->machine[i];

		if (m->ctf && ctf_close(m->ctf, clock_guest(m, s->last_record) - m->boot_guest, &s->err) < 0)
			result = -1;
	}
	return result;
}

static void release(struct sim *s)
{
	struct thread *next;

	for (unsigned i = 0; i < s->machines; i++)
		machine_free(s->machine[i]);
	for (; s->free; s->free = next) {
		next = s->free->next_free;
		free(s->free);
	}
	free(s->life);
	queue_release(&s->queue);
	strtab_release(&s->names);
}

int simulate(const struct options *options, struct sim_result *result, struct error *err)
{
	struct sim *s = mem_new(1, sizeof *s);
	int status = -1;

	s->opt = *options;
	s->rng.s = options->seed;
	s->fault.s = ~options->seed;
	s->begin = s->now = INT64_C(1795152652000000000);  /* 2026-11-20 05:30:52 UTC */
	s->first_record = NOTHING;
	strtab_init(&s->names);
	if (scenario_build(s) == 0 && open_all(s) == 0) {
		begin_truth(s);
		cores_init(s);
		run(s);
		if (s->first_record == NOTHING)
			s->first_record = s->last_record = s->begin;
		status = close_all(s);
	}
	result->records = s->records;
	result->begin = s->first_record;
	result->end = s->last_record;
	*err = s->err;
	release(s);
	free(s);
	return status;
}
