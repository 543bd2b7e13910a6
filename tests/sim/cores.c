/* Cores, frequencies and NUMA nodes of the simulated host. They change the recording only: siblings do not slow each other
 * down. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "truth.h"

#define BASE_KHZ 2500000
#define CHANGE_CHANCE 150000  /* per million: a tick of a host CPU changes its frequency */

/* Called at each tick of a host CPU: its frequency may change. */
void cores_tick(struct cpu *c)
{
	static const int64_t khz[] = { 1200000, 2249999, 2250000, 2500000, 3100000 };
	struct sim *s = c->m->sim;

	if (!s->opt.siblings || !c->m->is_host || !rng_chance(&s->fault, CHANGE_CHANCE))
		return;
	const int64_t now = khz[rng_range(&s->fault, 0, (int64_t)(sizeof khz / sizeof *khz) - 1)];
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

static void write_host(FILE *f, const struct sim *s)
{
	const struct machine *host = s->machine[0];

	if (!host->traced)
		return;
	fprintf(f, "host:\n  dir: host\n  topology:\n    smt: %s\n    cpus:\n", s->opt.siblings > 1 ? "on" : "notsupported");
	for (unsigned i = 0; i < host->cpus; i++)
		fprintf(f, "      %u: {core: %u, llc: %u, node: %u, base_khz: %d}\n", i, i / (unsigned)s->opt.siblings,
		        node_of(host, i), node_of(host, i), BASE_KHZ);
}

/* Writes the session file. Most of the memory of the VMs is alternately on node 0 and on node 1. */
int cores_write_session(struct sim *s)
{
	char *path = mem_printf("%s/session.yaml", s->opt.out);
	FILE *f = fopen(path, "w");
	int result = f ? 0 : error_system(&s->err, NULL, "%s", path);
	bool guests = false;

	if (f)
		write_host(f, s);
	for (unsigned i = 1; f && i < s->machines; i++) {
		const struct machine *m = s->machine[i];

		if (!m->traced)
			continue;
		fprintf(f, "%s- {name: %s, dir: guest-%s, memory: {%u: 4096, %u: 1024}}\n", guests ? "" : "guests:\n", m->name,
		        m->name, i % 2, 1 - i % 2);
		guests = true;
	}
	if (f && fclose(f) != 0)
		result = error_system(&s->err, NULL, "%s", path);
	free(path);
	return result;
}
