/* Attributes of the host's CPUs that do not depend on the scheduler: topology (from a session file) and frequency. */
#include <string.h>

#include "model/state/state.h"

static void write_cpu(struct model *m, const struct topology_cpu *cpu)
{
	const struct { enum cpu_attr attr; int64_t value; } values[] = {
		{ CPU_CORE, cpu->core }, { CPU_LLC, cpu->llc }, { CPU_NODE, cpu->node }, { CPU_BASE_KHZ, cpu->base_khz },
		{ CPU_MAX_KHZ, cpu->max_khz },
	};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		if (values[i].value >= 0)
			sink_set(&m->sink, cpu_attribute(m->machine[0], (uint32_t)cpu->number, values[i].attr), values[i].value);
}

/* Writes the NUMA node with most of the VM's memory; none if two nodes hold equally much. */
static void write_memory_node(struct model *m, const struct machine *vm)
{
	int64_t node = -1, most = 0;
	for (size_t i = 0; i < m->topology->memories; i++) {
		const struct topology_memory *memory = &m->topology->memory[i];
		if (strcmp(memory->vm, vm->name) != 0 || memory->kib < most)
			continue;
		node = memory->kib == most ? -1 : memory->node;
		most = memory->kib;
	}
	if (node >= 0)
		sink_set(&m->sink, sink_attribute(&m->sink, vm->root, &machine_schema[MACHINE_MEMORY], 0), node);
}

void topology_write_attributes(struct model *m)
{
	const char *smt = smt_control_name[m->topology->smt];
	if (smt)
		sink_set(&m->sink, sink_attribute(&m->sink, m->machine[0]->root, &machine_schema[MACHINE_SMT], 0),
		         sink_id(&m->sink, smt));
	if (m->topology->core_scheduling)
		sink_set(&m->sink, sink_attribute(&m->sink, m->machine[0]->root, &machine_schema[MACHINE_CORE_SCHEDULING], 0), 1);
	for (size_t i = 0; i < m->topology->cpus; i++)
		write_cpu(m, &m->topology->cpu[i]);
	for (uint32_t i = 1; i < m->machines && m->topology->memories; i++)
		write_memory_node(m, m->machine[i]);
}

/* Processes a change of frequency. Frequencies of a guest's CPUs are those of an emulated device, and are ignored. */
void frequency_event(struct machine *mc, struct cpu *c, const struct event *ev)
{
	const int64_t cpu = ev->frequency.cpu == EVENT_ABSENT ? ev->cpu : ev->frequency.cpu, khz = ev->frequency.khz;
	(void)c;
	if (mc->index == 0 && cpu >= 0 && cpu <= TOPOLOGY_NUMBER && khz > 0 && khz <= TOPOLOGY_KHZ)
		sink_set(&mc->model->sink, cpu_attribute(mc, (uint32_t)cpu, CPU_KHZ), khz);
}
