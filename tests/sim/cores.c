/* Cores, frequencies, NUMA nodes and hardware counters of the simulated host.
 *
 * With --slowdown, a computation progresses more slowly beside a busy CPU of its core, and at a rate in proportion to the
 * frequency; without, both change the recording only. Each thread of the host has its own instructions per cycle (IPC),
 * which the slowdown reduces as well. The truth (progress.csv) is a list of intervals with one thread, frequency and use of
 * the core; instructions and cycles follow from it. */
#include <inttypes.h>
#include "base/int128.h"
#include "truth.h"

#define BASE_KHZ 2500000
#define CHANGE_CHANCE 150000  /* per million: a tick of a host CPU changes its frequency */

static bool has_busy_sibling(const struct cpu *c)
{
	const struct machine *m = c->m;
	const unsigned siblings = (unsigned)m->sim->opt.siblings, first = siblings ? c->number / siblings * siblings : 0;

	for (unsigned i = first; i < first + siblings && i < m->cpus; i++)
		if (i != c->number && !m->cpu[i].cur->idle)
			return true;
	return false;
}

/* Returns the IPC of a thread on a free core, thousandths: 0.6 to 2.4. */
static int64_t thread_ipc(const struct thread *t)
{
	return 600 + t->tid * INT64_C(7919) % 1800;
}

/* Counts the instructions and cycles of a host CPU since the last call. An idle CPU is halted. */
static void count(struct cpu *c)
{
	struct sim *s = c->m->sim;
	struct core_counters *n = &c->counters;
	const int64_t ns = s->now - n->since;

	if (!c->m->is_host || !s->opt.counters || ns <= 0)
		return;
	if (!c->cur->idle) {
		const bool shared = has_busy_sibling(c);
		const int64_t percent = shared && s->opt.slowdown ? s->opt.slowdown : 100;

		n->cycles += (uint128)((uint64_t)ns * (uint64_t)n->khz);
		n->instructions += (uint128)((uint64_t)ns * (uint64_t)n->khz) * (uint64_t)(thread_ipc(c->cur) * percent / 100);
		if (s->truth)
			fprintf(s->truth->progress, "%u,%" PRId64 ",%" PRId64 ",%d,%" PRId64 ",%" PRId64 ",%d\n", c->number, n->since,
			        s->now - 1, c->cur->tid, n->khz, thread_ipc(c->cur) * percent / 100, shared);
	}
	n->since = s->now;
}

/* Counts for all CPUs of the core; called before a change that may affect their counts. */
static void count_core(struct cpu *c)
{
	const unsigned siblings = (unsigned)c->m->sim->opt.siblings, first = siblings ? c->number / siblings * siblings : 0;

	count(c);
	for (unsigned i = first; i < first + siblings && i < c->m->cpus; i++)
		count(&c->m->cpu[i]);
}

void cores_init(struct sim *s)
{
	struct machine *host = s->machine[0];

	for (unsigned i = 0; i < host->cpus; i++) {
		host->cpu[i].counters.khz = BASE_KHZ;
		host->cpu[i].counters.since = s->now;
		/* as after a long uptime */
		host->cpu[i].counters.cycles = (uint128)1000000 * (UINT64_C(1) << 45) * (i + 1);
		host->cpu[i].counters.instructions = (uint128)1000000000 * (UINT64_C(1) << 45) * (i + 1);
	}
}

int64_t cores_rate(struct cpu *c)
{
	const struct sim *s = c->m->sim;
	struct cpu *host = s->opt.slowdown ? pcpu_of(c) : NULL;

	if (!host)
		return 1000;
	const int64_t rate = host->counters.khz * 1000 / BASE_KHZ;
	return has_busy_sibling(host) ? rate * s->opt.slowdown / 100 : rate;
}

void cores_before_switch(struct cpu *c)
{
	if (c->m->is_host && c->m->sim->opt.counters)
		count_core(c);
}

void cores_after_switch(struct cpu *c)
{
	const struct sim *s = c->m->sim;
	const unsigned siblings = (unsigned)s->opt.siblings, first = siblings ? c->number / siblings * siblings : 0;

	if (!c->m->is_host || !s->opt.slowdown)
		return;
	for (unsigned i = first; i < first + siblings && i < c->m->cpus; i++)
		if (i != c->number)
			cpu_change_rate(&c->m->cpu[i]);
}

enum { FAULT_NONE, FAULT_ZERO, FAULT_FROZEN, FAULT_RESET, FAULT_KINDS };

static void begin_fault(struct sim *s, struct core_counters *n)
{
	n->fault = (uint8_t)rng_range(&s->fault, FAULT_ZERO, FAULT_KINDS - 1);
	n->left = rng_range(&s->fault, 1, 200);
	n->frozen[0] = (uint64_t)(n->instructions / 1000000000);
	n->frozen[1] = (uint64_t)(n->cycles / 1000000);
	for (int i = 0; i < 2 && n->fault == FAULT_RESET; i++)
		n->offset[i] = n->frozen[i];
}

/* Faults: a counter is not scheduled (0), it stands still, or it was set to 0. */
void cores_read(struct cpu *c, uint64_t value[2])
{
	struct sim *s = c->m->sim;
	struct core_counters *n = &c->counters;

	if (n->left == 0 && rng_chance(&s->fault, s->opt.counter_faults))
		begin_fault(s, n);
	count(c);
	const uint64_t now[2] = { (uint64_t)(n->instructions / 1000000000), (uint64_t)(n->cycles / 1000000) };
	const bool failed = n->left > 0;

	n->left -= failed;
	for (int i = 0; i < 2; i++) {
		if (failed && n->fault == FAULT_FROZEN) {
			n->offset[i] += now[i] - n->frozen[i];
			n->frozen[i] = now[i];
		}
		value[i] = failed && n->fault == FAULT_ZERO ? 0 : now[i] - n->offset[i];
	}
}

void cores_end(struct sim *s)
{
	for (unsigned i = 0; i < s->machine[0]->cpus; i++)
		count(&s->machine[0]->cpu[i]);
}

/* Called at each tick of a host CPU: its frequency may change. */
void cores_tick(struct cpu *c)
{
	static const int64_t khz[] = { 1200000, 2249999, 2250000, 2500000, 3100000 };
	struct sim *s = c->m->sim;

	if (!s->opt.siblings || !c->m->is_host || !rng_chance(&s->fault, CHANGE_CHANCE))
		return;
	const int64_t now = khz[rng_range(&s->fault, 0, (int64_t)(sizeof khz / sizeof *khz) - 1)];
	count(c);
	c->counters.khz = now;
	cpu_change_rate(c);
	if (s->truth)
		fprintf(s->truth->frequency, "%u,%" PRId64 ",%" PRId64 "\n", c->number, s->now, now);
	RECORD(c, REC_FREQUENCY, N(now), N(c->number));
}

/* The first half of the cores is on node 0, the other half on node 1. */
static unsigned node_of(const struct machine *host, unsigned cpu)
{
	const unsigned siblings = (unsigned)host->sim->opt.siblings, cores = (host->cpus + siblings - 1) / siblings;

	return cores > 1 && cpu / siblings >= cores / 2;
}

void cores_write(FILE *f, const struct sim *s)
{
	const struct machine *host = s->machine[0];

	fprintf(f, "  topology:\n    smt: %s\n    cpus:\n", s->opt.siblings > 1 ? "on" : "notsupported");
	for (unsigned i = 0; i < host->cpus; i++)
		fprintf(f, "      %u: {core: %u, llc: %u, node: %u, base_khz: %d}\n", i, i / (unsigned)s->opt.siblings,
		        node_of(host, i), node_of(host, i), BASE_KHZ);
}
