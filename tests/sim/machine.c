/* Creates and frees machines, their CPUs and threads. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sim.h"

#define REUSED 300  /* smallest id that is reused, as in Linux */

static const struct truth_track untracked = { 0, NOTHING };

struct thread *thread_new(struct machine *m, uint32_t name, const struct step *prog, int32_t pid, int32_t ppid)
{
	struct sim *s = m->sim;
	struct thread *t = s->free;
	int32_t tid = m->next_tid;
	uint32_t gen = t ? t->timer_gen + 1 : 0;  /* invalidates timers of the previous thread in this memory */

	if (m->threads >= m->tids - REUSED)
		return NULL;
	while (m->by_tid[tid])
		tid = tid + 1 < m->tids ? tid + 1 : REUSED;
	m->next_tid = tid + 1 < m->tids ? tid + 1 : REUSED;
	if (t)
		s->free = t->next_free;
	else
		t = mem_new(1, sizeof *t);
	*t = (struct thread){
		.m = m, .tid = tid, .pid = pid ? pid : tid, .ppid = ppid, .name = name, .ns = ROOT_NS,
		.cgroup_ns = ROOT_CGROUP_NS, .affinity = UINT64_MAX,
		.state = TASK_NEW, .prog = prog, .timer_gen = gen,
		.status = untracked, .tname = untracked, .tcpu = untracked, .tpid = untracked,
	};
	m->by_tid[tid] = t;
	m->threads++;
	return t;
}

/* Frees a thread, but keeps the memory for reuse, so that a stale pointer points to some thread. */
void thread_free(struct thread *t)
{
	truth_end_thread(t);
	if (t->vcpu)
		vcpu_detach(t->vcpu);
	t->m->by_tid[t->tid] = NULL;
	t->m->threads--;
	t->next_free = t->m->sim->free;
	t->m->sim->free = t;
}

/* Adds a thread that exists before tracing begins. start: end of its sleep, host ns; NOTHING: sleeps forever. */
struct thread *thread_add(struct machine *m, const char *name, const struct step *prog, int64_t start,
                          uint64_t affinity)
{
	struct thread *t = thread_new(m, strtab_put(&m->sim->names, name), prog, 0, 1);

	t->affinity = affinity;
	while (!(affinity >> t->cpu & 1) && t->cpu + 1 < m->cpus)
		t->cpu++;
	t->state = TASK_BLOCKED;
	t->want = WANT_SLEEP;
	t->period_next = start;
	if (start != NOTHING)
		queue_push(&m->sim->queue, start, DUE_SLEEP, t, t->timer_gen);
	return t;
}

uint32_t vcpu_thread_name(const struct cpu *guest)
{
	struct sim *s = guest->m->sim;
	char name[32];

	snprintf(name, sizeof name, "CPU %u/KVM", guest->number);
	return strtab_put(&s->names, s->opt.plain_names ? "qemu-system-x86" : name);
}

/* Adds the thread that runs a guest's CPU, on the machine below; it exists before tracing begins. */
void vcpu_thread(struct cpu *guest)
{
	struct machine *below = guest->m->below;
	struct thread *t = thread_add(below, "", NULL, NOTHING, guest->m->vcpu_affinity);

	t->name = vcpu_thread_name(guest);
	t->pid = guest->m->qemu_pid;
	t->want = WANT_HALT;
	vcpu_attach(guest, t);
	guest->online = guest->was_online = true;
}

static void cpu_init(struct machine *m, unsigned number)
{
	struct cpu *c = &m->cpu[number];
	char name[24];

	*c = (struct cpu){
		.m = m, .number = number, .live = m->is_host, .online = m->is_host, .host = m->is_host ? NULL : &m->nobody,
		.current = untracked, .owner = untracked, .interrupt = untracked, .vstatus = untracked, .vthread = untracked,
		           .out_by = untracked,
		.pcpu = untracked,
	};
	snprintf(name, sizeof name, "swapper/%u", number);
	c->idle = mem_new(1, sizeof *c->idle);
	*c->idle = (struct thread){
		.m = m, .idle = true, .cpu = number, .name = strtab_put(&m->sim->names, name), .state = TASK_RUNNING,
		.status = untracked, .tname = untracked, .tcpu = untracked, .tpid = untracked,
	};
	c->cur = c->idle;
	c->key = number * UINT64_C(1000000) + 1;
}

/* Adds a machine. below: machine that runs it; NULL: it is the host. */
struct machine *machine_add(struct sim *s, const char *name, unsigned cpus, struct machine *below)
{
	struct machine *m = mem_new(1, sizeof *m);

	snprintf(m->name, sizeof m->name, "%s", name);
	m->sim = s;
	m->below = below;
	m->is_host = !below;
	m->nobody = (struct thread){ .m = below, .idle = true, .state = TASK_DEAD };
	m->dies = INT64_MAX;
	m->traced = true;
	m->cpus = cpus;
	m->cpu = mem_new(cpus, sizeof *m->cpu);
	m->by_tid = mem_new(TIDS, sizeof *m->by_tid);
	m->next_tid = below ? 100 : 120;
	m->trace_from = m->boots = s->begin;
	m->trace_to = INT64_MAX;
	m->exit_mean = 3 * MS;
	m->tick = m->slice = 4 * MS;
	m->next_request = 1;
	m->tids = TIDS;
	m->first = m->last = NOTHING;
	for (unsigned i = 0; i < cpus; i++)
		cpu_init(m, i);
	clock_set(m, 0, 0);
	s->machine[s->machines++] = m;
	return m;
}

void machine_free(struct machine *m)
{
	for (unsigned i = 0; i < m->cpus; i++) {
		struct cpu *c = &m->cpu[i];

		free(c->idle);
		free(c->run);
		free(c->op);
		free(c->irq);
		free(c->virq);
	}
	for (int i = 0; i < TIDS; i++)
		if (m->by_tid[i]) {
			server_free(m->by_tid[i]->server);
			free(m->by_tid[i]->usage);
			free(m->by_tid[i]->carrier);
			free(m->by_tid[i]);
		}
	free(m->by_tid);
	free(m->cpu);
	free(m);
}
