/* A guest alone: the steal clocks of vCPUs as KVM and the probes of `record --guest-only` show them, stops of a VM (pause,
 * migration), and the scenario that combines the reasons why a vCPU waits.
 *
 * KVM adds the run delay of the vCPU's thread to the clock before a VM entry: the delay is complete then, and the clock of
 * a vCPU without a CPU is old. A vCPU gets a new thread when it is plugged in again; the run delay of that thread begins
 * at 0, so the clock is set back. The clock shows no pause.
 *
 * The trace clock is the TSC, which runs on while the VM is paused and CLOCK_MONOTONIC stands still. A migration saves and
 * restores the TSC: it stands still, and CLOCK_MONOTONIC runs on. A hidden stop is one for which both stand still. */
#include <string.h>

#include "scenario.h"

unsigned steal_cpus(const struct machine *m)
{
	return m->cpus < STEAL_CPUS ? m->cpus : STEAL_CPUS;
}

void steal_enter(struct cpu *guest)
{
	guest->steal += guest->host->run_delay - guest->steal_seen;
	guest->steal_seen = guest->host->run_delay;
}

void steal_probe(struct cpu *c, enum record_kind kind)
{
	if (c->host && c->m->sim->opt.steal_reads == (kind == REC_STEAL_TICK ? STEAL_TICK : STEAL_SWITCH))
		cpu_push_front(c, OP_STEAL, NULL)->arg = (uint8_t)kind;
}

void steal_read(struct cpu *c, enum record_kind kind)
{
	if (kind == REC_STEAL_TICK)
		RECORD(c, kind, N(c->steal));
	else
		RECORD(c, kind, { .m = c->m });
}

void vm_stop(struct sim *s, const struct outage *o)
{
	(void)s;
	o->vm->outage = o;
	for (unsigned i = 0; i < o->vm->cpus; i++) {
		struct cpu *guest = &o->vm->cpu[i];

		guest->kick = true;
		if (!vcpu_gone(guest) && guest->host->in_guest && guest->live)
			cpu_interrupt(vcpu_pcpu(guest));
	}
}

/* Lets the VM continue: its clocks are set, and the threads of its vCPUs are woken. */
void vm_continue(struct sim *s, const struct outage *o)
{
	static const char *const name[] = { "pause", "migration", "hidden" };
	struct machine *m = o->vm;
	const int64_t stopped = clock_guest(m, s->now) - clock_guest(m, o->from);

	for (unsigned i = 0; i < m->cpus; i++)
		if (!vcpu_gone(&m->cpu[i]))
			truth_steal(&m->cpu[i], o->from, s->now, name[o->kind]);
	if (o->kind == OUTAGE_PAUSE)
		m->mono_behind += stopped;
	else
		clock_step(m, s->now, -stopped);
	if (o->kind == OUTAGE_MIGRATION)
		m->mono_behind -= stopped;
	m->outage = NULL;
	for (unsigned i = 0; i < m->cpus; i++)
		if (!vcpu_gone(&m->cpu[i]) && m->cpu[i].host->want == WANT_PAUSE)
			queue_push(&s->queue, s->now, DUE_HOSTIO, m->cpu[i].host, 0);
}

/* ---- the scenario */

enum plant { HOG, PEER, QUOTA, PAUSE, MIGRATION, HOTPLUG, QUIET, MIX, PLANTS };

static bool has(enum plant plant, enum plant reason, struct sim *s)
{
	return plant == reason || (plant == MIX && rng_chance(&s->rng, 600000));
}

/* Stops the VM one to three times, for 20 to 300 ms. */
static void add_outages(struct sim *s, struct machine *vm, enum outage_kind kind)
{
	const int64_t span = s->end == INT64_MAX ? SEC : s->end - s->begin;
	const int64_t n = rng_range(&s->rng, 1, 3);

	for (int64_t i = 0; i < n; i++) {
		struct outage *o = &s->outage[s->outages++];

		o->vm = vm;
		o->kind = (uint8_t)kind;
		o->from = s->begin + span * (2 * i + 1) / (2 * n + 1) + rng_range(&s->rng, 0, span / 20);
		o->to = o->from + rng_range(&s->rng, 20 * MS, span / 7);
		queue_push(&s->queue, o->from, DUE_STOP, o, 0);
		queue_push(&s->queue, o->to, DUE_CONTINUE, o, 0);
	}
}

/* Pins all threads of the host but those of vCPUs. */
static void pin_host(struct machine *h, uint64_t affinity)
{
	for (int32_t tid = 1; tid < TIDS; tid++)
		if (h->by_tid[tid] && !h->by_tid[tid]->vcpu)
			h->by_tid[tid]->affinity = affinity;
}

/* Adds other work on the pCPUs of the guest. Only two tasks of equal weight get slices longer than a tick. */
static void add_rivals(struct sim *s, struct machine *h, const struct machine *guest, enum plant plant)
{
	static const int8_t nice[] = { 0, 5, 10, -5 };
	const bool is_equal = (plant == HOG || plant == PEER) && rng_chance(&s->rng, 500000);
	static const uint8_t work[] = { WL_HOG, WL_BURST_HOG, WL_PERIODIC, WL_SLEEPER };
	struct plan peer = { .name = "Ubuntu", .vcpus = 1, .affinity = 2, .offset = 77 * SEC, .ppb = -30000 };
	const int64_t at = s->begin + rng_range(&s->rng, 5 * MS, 90 * MS);

	for (unsigned i = 0; i < guest->boot_cpus && has(plant, HOG, s); i++) {
		const int8_t niceness = is_equal ? 0 : nice[rng_range(&s->rng, 0, 3)];
		const int64_t start = at + rng_range(&s->rng, 0, 400 * MS);
		const int kind = rng_chance(&s->rng, 700000) ? WL_HOG : WL_BURST_HOG;

		thread_add(h, "burnP6", workload[kind], start, UINT64_C(2) << i)->nice = niceness;
	}
	h->slice = is_equal ? h->tick * rng_range(&s->rng, 1, h->tick < 10 * MS ? 3 : 2) : h->tick;
	if (has(plant, PEER, s)) {
		const uint8_t kind = work[rng_range(&s->rng, 0, 3)];

		thread_add(guest_add(s, &peer), "cc", workload[kind], at, UINT64_MAX);
	}
	if (plant == HOTPLUG)
		thread_add(h, "burnP6", workload[WL_BURST_HOG], at, 2)->nice = 5;
}

static void add_program(struct sim *s, struct machine *g)
{
	static const struct { const char *name; uint8_t wl; } program[] = {
		{ "worker", WL_HOG }, { "worker", WL_HOG }, { "spinner", WL_BURST_HOG }, { "ticker", WL_PERIODIC },
	};

	for (unsigned i = 0; i < 1 + g->cpus; i++) {
		const int64_t k = rng_range(&s->rng, 0, sizeof program / sizeof *program - 1);

		thread_add(g, program[k].name, workload[program[k].wl], s->begin + rng_range(&s->rng, 1 * MS, 40 * MS), UINT64_MAX);
	}
	if (rng_chance(&s->rng, 500000))
		random_threads(s, g);
}

/* The vCPUs run on pCPUs of their own, from 1 on, but for the threads that are planted; pCPU 0 is the host's. */
int scenario_tenant(struct sim *s)
{
	static const char *const name[] = { "hog", "peer", "quota", "pause", "migration", "hotplug", "quiet", "mix" };
	static const int64_t tick[] = { 1 * MS, 4 * MS, 4 * MS, 4 * MS, 10 * MS }, period[] = { 20, 40, 50, 100, 100 };
	struct plan p = { .name = "Debian", .vcpus = (unsigned)rng_range(&s->rng, 1, 3), .offset = -5357583 * US, .ppb = 40000 };
	int64_t plant = rng_range(&s->rng, 0, PLANTS - 1);
	struct machine *h, *g;

	for (plant = s->opt.plant ? 0 : plant; s->opt.plant && plant < PLANTS && strcmp(name[plant], s->opt.plant);)
		plant++;
	if (plant == PLANTS)
		return error_set(&s->err, STATUS_USAGE, "hog, peer, quota, pause, migration, hotplug, quiet or mix",
		                 "%s: no such reason", s->opt.plant);
	if (!s->opt.steal_reads)
		s->opt.steal_reads = rng_chance(&s->rng, 800000) ? STEAL_SWITCH : STEAL_TICK;
	h = host_add(s, p.vcpus + 1);
	h->tick = tick[rng_range(&s->rng, 0, 4)];
	p.affinity = ((UINT64_C(1) << p.vcpus) - 1) << 1;
	p.changes = plant == HOTPLUG;
	p.spare = p.changes;
	if (has((enum plant)plant, QUOTA, s)) {
		const int64_t ns = period[rng_range(&s->rng, 0, 4)] * MS;
		const int64_t phase = rng_range(&s->rng, ns / 2, ns);

		p.group = quota_add(s, ns * p.vcpus * rng_range(&s->rng, 20, 80) / 100, ns, phase);
	}
	g = guest_add(s, &p);
	g->tick = g->slice = tick[rng_range(&s->rng, 0, 4)];
	for (unsigned i = 0; i < p.vcpus; i++)
		g->cpu[i].host->affinity = UINT64_C(2) << i;
	add_program(s, g);
	pin_host(h, 1);
	add_rivals(s, h, g, (enum plant)plant);
	if (has((enum plant)plant, PAUSE, s))  /* hidden: as with the trace clock mono */
		add_outages(s, g, rng_chance(&s->rng, 750000) ? OUTAGE_PAUSE : OUTAGE_HIDDEN);
	else if (plant == MIGRATION)
		add_outages(s, g, rng_chance(&s->rng, 700000) ? OUTAGE_MIGRATION : OUTAGE_HIDDEN);
	return 0;
}
