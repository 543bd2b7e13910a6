#include "base/topology.h"

#include "base/base.h"
#include "base/hash.h"

#define SMT_NAME(code, name) name,
const char *const smt_control_name[SMT_CONTROL_COUNT] = { NULL, SMT_CONTROLS(SMT_NAME) };

/* A CPU's members, in the order of struct topology_cpu from `core` on. */
static const struct { const char *name; size_t offset; int64_t low, high; } members[] = {
	{ "core", offsetof(struct topology_cpu, core), 0, TOPOLOGY_NUMBER },
	{ "llc", offsetof(struct topology_cpu, llc), 0, TOPOLOGY_NUMBER },
	{ "node", offsetof(struct topology_cpu, node), 0, TOPOLOGY_NUMBER },
	{ "base_khz", offsetof(struct topology_cpu, base_khz), 1, TOPOLOGY_KHZ },
	{ "max_khz", offsetof(struct topology_cpu, max_khz), 1, TOPOLOGY_KHZ },
};
#define MEMBERS (sizeof members / sizeof *members)

static int64_t *cpu_member(struct topology_cpu *cpu, size_t i)
{
	return (int64_t *)(void *)((char *)cpu + members[i].offset);
}

enum smt_control smt_control_find(const char *name)
{
	for (int i = 1; name && i < SMT_CONTROL_COUNT; i++)
		if (strcmp(smt_control_name[i], name) == 0)
			return (enum smt_control)i;
	return SMT_UNKNOWN;
}

void topology_release(struct topology *t)
{
	for (size_t i = 0; i < t->memories; i++)
		free(t->memory[i].vm);
	free(t->memory);
	free(t->cpu);
	*t = (struct topology){ 0 };
}

static int read_cpu(struct topology_cpu *cpu, struct yaml_file *f, const yaml_node_t *node, struct error *err)
{
	yaml_node_t *key, *value;
	if (node->type != YAML_MAPPING_NODE)
		return yaml_refuse(f, node, err, "topology: expected {core: NUMBER, ...}");
	for (size_t k = 0; yaml_pair(f, node, k, &key, &value); k++) {
		const char *name = yaml_scalar(key);
		struct suggestion near = SUGGESTION(name ? name : "");
		size_t i = 0;
		while (i < MEMBERS && strcmp(members[i].name, near.typed) != 0)
			suggest(&near, members[i++].name);
		if (i == MEMBERS)
			return yaml_refuse_word(f, key, "unknown key", &near, err);
		if (yaml_integer(f, value, members[i].low, members[i].high, cpu_member(cpu, i), err))
			return -1;
	}
	return 0;
}

ORDER_BY(compare_cpus, struct topology_cpu, RISING(number))

/* Checks the CPU list, which is sorted. */
static int check_cpus(const struct topology *t, const struct yaml_file *f, const yaml_node_t *node, struct error *err)
{
	unsigned char *siblings = mem_new(TOPOLOGY_NUMBER + 1, 1);
	int64_t twice = -1, full = -1;
	for (size_t i = 0; i < t->cpus; i++) {
		if (i && t->cpu[i].number == t->cpu[i - 1].number)
			twice = t->cpu[i].number;
		if (t->cpu[i].core >= 0 && full < 0 && ++siblings[t->cpu[i].core] > TOPOLOGY_SIBLINGS)
			full = t->cpu[i].core;
	}
	free(siblings);
	if (twice >= 0)
		return yaml_refuse(f, node, err, "topology: CPU %lld is listed twice", (long long)twice);
	return full < 0 ? 0 : yaml_refuse(f, node, err, "topology: core %lld has more than %d CPUs", (long long)full,
	                                  TOPOLOGY_SIBLINGS);
}

static int read_cpus(struct topology *t, struct yaml_file *f, const yaml_node_t *node, struct error *err)
{
	yaml_node_t *key, *value;
	if (node->type != YAML_MAPPING_NODE)
		return yaml_refuse(f, node, err, "cpus: expected {CPU: {core: NUMBER, ...}}");
	for (size_t i = 0; yaml_pair(f, node, i, &key, &value); i++) {
		struct topology_cpu cpu = { -1, -1, -1, -1, -1, -1 };
		if (i == TOPOLOGY_CPUS)
			return yaml_refuse(f, key, err, "cpus: more than %d CPUs", TOPOLOGY_CPUS);
		if (yaml_integer(f, key, 0, TOPOLOGY_NUMBER, &cpu.number, err) || read_cpu(&cpu, f, value, err))
			return -1;
		*ARRAY_PUSH(t->cpu, t->cpus, t->cpu_cap) = cpu;
	}
	ARRAY_SORT(t->cpu, t->cpus, compare_cpus);
	return check_cpus(t, f, node, err);
}

int topology_read(struct topology *t, struct yaml_file *f, const yaml_node_t *node, struct error *err)
{
	yaml_node_t *key, *value;
	if (!node)
		return 0;
	if (node->type != YAML_MAPPING_NODE)
		return yaml_refuse(f, node, err, "topology: expected {smt: STATE, cpus: {CPU: ...}}");
	for (size_t i = 0; yaml_pair(f, node, i, &key, &value); i++) {
		const char *name = yaml_scalar(key), *text = yaml_scalar(value);
		if (name && strcmp(name, "cpus") == 0) {
			if (t->cpus)
				return yaml_refuse(f, key, err, "topology: cpus is listed twice");
			if (read_cpus(t, f, value, err))
				return -1;
		} else if (name && strcmp(name, "smt") == 0) {
			t->smt = smt_control_find(text);
			if (t->smt == SMT_UNKNOWN)
				return yaml_refuse(f, value, err, "smt: expected on, off, forceoff, notsupported or notimplemented");
		} else if (name && strcmp(name, "core_scheduling") == 0) {
			t->core_scheduling = text && strcmp(text, "on") == 0;
			if (!text || (!t->core_scheduling && strcmp(text, "off") != 0))
				return yaml_refuse(f, value, err, "core_scheduling: expected on or off");
		} else {
			return yaml_refuse(f, key, err, "topology: expected smt, core_scheduling or cpus");
		}
	}
	return 0;
}

int topology_read_memory(struct topology *t, struct yaml_file *f, const yaml_node_t *node, const char *vm,
                         struct error *err)
{
	yaml_node_t *key, *value;
	if (node && node->type != YAML_MAPPING_NODE)
		return yaml_refuse(f, node, err, "memory: expected {NODE: KIB}");
	for (size_t i = 0; yaml_pair(f, node, i, &key, &value); i++) {
		int64_t number, kib;
		if (yaml_integer(f, key, 0, TOPOLOGY_NUMBER, &number, err) ||
		    yaml_integer(f, value, 0, INT64_MAX / 1024, &kib, err))
			return -1;
		*ARRAY_PUSH(t->memory, t->memories, t->memory_cap) = (struct topology_memory){ mem_dup(vm), number, kib };
	}
	return 0;
}

void topology_put(struct yaml_out *o, int map, const struct topology *t)
{
	if (!t->cpus && t->smt == SMT_UNKNOWN && !t->core_scheduling)
		return;
	const int topology = yaml_out_map(o, map, "topology");
	yaml_out_text(o, topology, "smt", smt_control_name[t->smt]);
	yaml_out_text(o, topology, "core_scheduling", t->core_scheduling ? "on" : NULL);
	const int cpus = t->cpus ? yaml_out_map(o, topology, "cpus") : 0;
	for (size_t i = 0; i < t->cpus; i++) {
		char number[24];
		snprintf(number, sizeof number, "%lld", (long long)t->cpu[i].number);
		const int cpu = yaml_out_braces(o, cpus, number);
		for (size_t k = 0; k < MEMBERS; k++)
			if (*cpu_member(&t->cpu[i], k) >= 0)
				yaml_out_number(o, cpu, members[k].name, *cpu_member(&t->cpu[i], k));
	}
}

void topology_put_memory(struct yaml_out *o, int map, const struct topology *t, const char *vm)
{
	int memory = 0;
	for (size_t i = 0; i < t->memories; i++) {
		char number[24];
		if (strcmp(t->memory[i].vm, vm) != 0)
			continue;
		memory = memory ? memory : yaml_out_braces(o, map, "memory");
		snprintf(number, sizeof number, "%lld", (long long)t->memory[i].node);
		yaml_out_number(o, memory, number, t->memory[i].kib);
	}
}

uint64_t topology_hash(const struct topology *t)
{
	uint64_t hash = HASH_BEGIN;
	if (!t->cpus && t->smt == SMT_UNKNOWN && !t->core_scheduling && !t->memories)
		return 0;
	hash = hash_bytes(hash, &t->smt, sizeof t->smt);
	hash = hash_bytes(hash, &t->core_scheduling, sizeof t->core_scheduling);
	hash = t->cpus ? hash_bytes(hash, t->cpu, t->cpus * sizeof *t->cpu) : hash;
	for (size_t i = 0; i < t->memories; i++) {
		hash = hash_text(hash_text(hash, t->memory[i].vm), "\n");
		hash = hash_bytes(hash, &t->memory[i].node, sizeof t->memory[i].node);
		hash = hash_bytes(hash, &t->memory[i].kib, sizeof t->memory[i].kib);
	}
	return hash;
}
