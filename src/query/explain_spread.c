/* The sentence of an explanation on a target that many VMs delayed, none of them most. */
#include <inttypes.h>

#include "query/explain.h"
#include "query/verdict_causes.h"

/* Counts the VMs with the same parent as the target's VM, and their vCPUs. Returns the number of the parent's CPUs. */
static uint32_t count_neighbours(const struct catalog *catalog, uint32_t machine, uint32_t *vms, uint32_t *vcpus)
{
	const int32_t parent = catalog->machine[machine].parent;
	*vms = *vcpus = 0;
	for (uint32_t i = 0; i < catalog->machines && parent >= 0; i++) {
		const struct catalog_machine *m = &catalog->machine[i];
		*vms += m->kind == MACHINE_VM && m->parent == parent;
		*vcpus += m->kind == MACHINE_VM && m->parent == parent ? m->cpus : 0;
	}
	return parent < 0 ? 0 : catalog->machine[parent].cpus;
}

void explain_spread(struct explanation *s)
{
	struct cause_list causes = { 0 };
	char d[64];
	int64_t ns;
	uint32_t vms, vcpus;
	for (size_t i = 0; i < s->culprits; i++) {
		const struct actor *p = &s->culprit[i].actor;
		const char *name = p->name < s->f->names ? s->f->name[p->name] : NULL;
		causes_add(&causes, s->catalog, s->machine, p, name, s->culprit[i].lost);
	}
	causes_sort(&causes);
	const unsigned others = causes_spread(&causes, &ns);
	const uint32_t pcpus = count_neighbours(s->catalog, s->machine, &vms, &vcpus);
	if (others)
		fprintf(s->to, "The delays are spread over %u other VMs, %s in total", others, explanation_amount(s, ns, d));
	if (others && vcpus > pcpus)
		fprintf(s->to, "; overcommitted: %" PRIu32 " vCPUs of %" PRIu32 " VMs on %" PRIu32 " CPUs", vcpus, vms, pcpus);
	if (others)
		fputs(".\n", s->to);
	causes_release(&causes);
}
