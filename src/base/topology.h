/* Topology of a host: cores, caches and NUMA nodes of its CPUs, and the nodes that hold its VMs' memory. `record`
 * reads it from /sys and /proc; session files contain it as YAML (stealscope-session(5)); the model writes it as attributes
 * of the history. */
#pragma once

#include "base/yaml_file.h"
#include "base/yaml_out.h"

#define TOPOLOGY_CPUS 8192           /* limit of the CPU count */
#define TOPOLOGY_NUMBER 32767        /* largest number of a CPU, core, cache or node */
#define TOPOLOGY_SIBLINGS 8          /* limit of the CPUs of one core */
#define TOPOLOGY_KHZ 100000000       /* largest frequency, kHz */

/* X(code, name in /sys/devices/system/cpu/smt/control) */
#define SMT_CONTROLS(X) \
	X(SMT_ON, "on") X(SMT_OFF, "off") X(SMT_FORCE_OFF, "forceoff") X(SMT_NOT_SUPPORTED, "notsupported") \
	X(SMT_NOT_IMPLEMENTED, "notimplemented")
#define SMT_CODE(code, name) code,
enum smt_control { SMT_UNKNOWN, SMT_CONTROLS(SMT_CODE) SMT_CONTROL_COUNT };
#undef SMT_CODE
extern const char *const smt_control_name[SMT_CONTROL_COUNT];  /* SMT_UNKNOWN: NULL */
enum smt_control smt_control_find(const char *name);  /* SMT_UNKNOWN: no such name */

struct topology {
	enum smt_control smt;
	bool core_scheduling;                 /* vCPU threads have cookies: only threads with equal cookies share a core */
	struct topology_cpu {
		int64_t number, core, llc, node;  /* core, llc, node: any number that its CPUs share; -1: unknown */
		int64_t base_khz, max_khz;        /* frequencies, kHz; -1: unknown */
	} *cpu;                               /* sorted by number */
	size_t cpus, cpu_cap;
	struct topology_memory { char *vm; int64_t node, kib; } *memory;  /* memory of VMs by node */
	size_t memories, memory_cap;
};

void topology_release(struct topology *t);

/* Reads the mapping "topology" of a session file. Returns 0, or -1 with *err set. */
int topology_read(struct topology *t, struct yaml_file *f, const yaml_node_t *node, struct error *err);
/* Reads the mapping "memory" of the VM: {NODE: KIB}. */
int topology_read_memory(struct topology *t, struct yaml_file *f, const yaml_node_t *node, const char *vm,
                         struct error *err);

/* Write these mappings as members of `map`; nothing if they are empty. */
void topology_put(struct yaml_out *o, int map, const struct topology *t);
void topology_put_memory(struct yaml_out *o, int map, const struct topology *t, const char *vm);

/* Returns a number that differs between different topologies, with high probability; 0: empty. */
uint64_t topology_hash(const struct topology *t);
