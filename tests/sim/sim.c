/* The main loop: takes what is due, in order of time, until the time or the number of records is reached. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "sim.h"
#include "simulate.h"

/* A vCPU, or one that runs it, has no thread. */
static bool is_off(const struct cpu *c)
{
	while (c->host && !vcpu_gone(c))
		c = vcpu_pcpu(c);
	return c->host;
}

/* An interrupt for CPU c; a vCPU gets it from the machines below. */
static void interrupt(struct cpu *c, enum irq_kind kind, struct thread *t, void *who)
{
	struct irq q = { .kind = (uint8_t)kind, .t = t, .who = who };

	if (is_off(c))
		return;
	if (c->host)
		q = (struct irq)IRQ_FOR(c, kind, t, who);
	cpu_irq(pcpu_of(c), &q);
}

static void tick_due(struct cpu *c, uint32_t gen)
{
	if (gen == c->tick_gen)
		interrupt(c, IRQ_TICK, NULL, NULL);
}

/* Where a thread's timers and devices interrupt: its CPU, or one that is online. */
static struct cpu *cpu_of(const struct thread *t)
{
	struct cpu *c = &t->m->cpu[t->cpu];

	for (unsigned i = 0; i < t->m->cpus && !c->online; i++)
		c = &t->m->cpu[i];
	return c;
}

/* A bandwidth period ends; its timer sits on pCPU 0. */
static void period_due(struct sim *s, struct quota_group *g)
{
	queue_push(&s->queue, s->now + g->period, DUE_PERIOD, g, 0);
	interrupt(&s->machine[0]->cpu[0], IRQ_PERIOD, NULL, g);
}

/* A device answers: any CPU of the machine may get the interrupt. */
static void hostio_due(struct thread *t)
{
	interrupt(&t->m->cpu[rng_range(&t->m->sim->rng, 0, (int64_t)t->m->cpus - 1)], IRQ_DEV, t, NULL);
}

static void dispatch(struct sim *s, const struct due *d)
{
	struct thread *t = d->who;
	struct bare *b = d->who;

	switch ((enum due_kind)d->kind) {
	case DUE_CPU:
		cpu_due(d->who, d->gen);
		break;
	case DUE_SLEEP:
		if (t->timer_gen != d->gen || t->state == TASK_DEAD)
			break;
		if (is_off(cpu_of(t)))  /* perhaps not yet on */
			queue_push(&s->queue, s->now + MS, DUE_SLEEP, t, d->gen);
		else
			interrupt(cpu_of(t), IRQ_WAKE, t, NULL);
		break;
	case DUE_TICK:
		tick_due(d->who, d->gen);
		break;
	case DUE_BARE:
		interrupt(b->c, IRQ_BARE, NULL, b);
		break;
	case DUE_DISK:
		interrupt(cpu_of(t), IRQ_DEV, t, NULL);
		break;
	case DUE_HOSTIO:
		hostio_due(t);
		break;
	case DUE_PERIOD:
		period_due(s, d->who);
		break;
	}
}

static bool stale(const struct due *d)
{
	return d->kind == DUE_CPU && ((const struct cpu *)d->who)->gen != d->gen;
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
