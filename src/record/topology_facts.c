#include "record/topology_facts.h"

#include <sys/prctl.h>

#include "base/base.h"
#include "record/proc.h"

#define CPU_DIR "/sys/devices/system/cpu/cpu%lld"
#define CACHES 16           /* limit of a CPU's cache indexes */
/* PR_SCHED_CORE, PR_SCHED_CORE_GET and PIDTYPE_PID of Linux 5.14: older headers lack them */
#define CORE_SCHEDULING 62
#define CORE_SCHEDULING_GET 0
#define SCOPE_THREAD 0
#define PAGE_KIB 4          /* size of a page if numa_maps does not contain it */

/* Returns the first number of a list such as "2-3,6"; -1: none. */
static int64_t first_number(const char *list)
{
	char *rest;
	const long long n = list ? strtoll(list, &rest, 10) : -1;
	return list && rest != list && n >= 0 && n <= TOPOLOGY_NUMBER ? n : -1;
}

static int64_t first_of_file(char *line)
{
	const int64_t n = first_number(line);
	free(line);
	return n;
}

/* Returns the lowest CPU that shares the last-level cache; -1: unknown. */
static int64_t read_llc(const char *root, long long cpu)
{
	int64_t llc = -1, highest = 0;
	for (int i = 0; i < CACHES; i++) {
		int64_t level = 0;
		if (!proc_number(root, &level, CPU_DIR "/cache/index%d/level", cpu, i))
			break;
		if (level < highest)
			continue;
		highest = level;
		llc = first_of_file(proc_line(root, CPU_DIR "/cache/index%d/shared_cpu_list", cpu, i));
	}
	return llc;
}

static int64_t read_node(const char *root, long long cpu)
{
	size_t n;
	char **name = proc_names(root, "node", &n, CPU_DIR, cpu);
	const int64_t node = n ? first_number(name[0] + strlen("node")) : -1;
	proc_names_free(name, n);
	return node;
}

static int64_t valid_khz(int64_t khz)
{
	return khz > 0 && khz <= TOPOLOGY_KHZ ? khz : -1;
}

/* Reads the base frequency: from intel_pstate, or from ACPI CPPC (MHz). */
static int64_t read_base_khz(const char *root, long long cpu)
{
	int64_t khz = -1;
	if (!proc_number(root, &khz, CPU_DIR "/cpufreq/base_frequency", cpu) &&
	    proc_number(root, &khz, CPU_DIR "/acpi_cppc/nominal_freq", cpu))
		khz = khz > 0 && khz <= TOPOLOGY_KHZ / 1000 ? khz * 1000 : -1;
	return valid_khz(khz);
}

static void add_cpu(struct topology *t, const char *root, long long number)
{
	int64_t max_khz = -1;
	(void)proc_number(root, &max_khz, CPU_DIR "/cpufreq/cpuinfo_max_freq", number);
	*ARRAY_PUSH(t->cpu, t->cpus, t->cpu_cap) = (struct topology_cpu){
		.number = number, .core = first_of_file(proc_line(root, CPU_DIR "/topology/thread_siblings_list", number)),
		.llc = read_llc(root, number), .node = read_node(root, number), .base_khz = read_base_khz(root, number),
		.max_khz = valid_khz(max_khz) };
}

/* Adds the CPUs of a list such as "0-3,8". */
static void add_cpus(struct topology *t, const char *root, const char *list)
{
	while (list && *list) {
		char *rest;
		const long long first = strtoll(list, &rest, 10);
		if (rest == list)
			return;
		long long last = first;
		if (*rest == '-')
			last = strtoll(rest + 1, &rest, 10);
		for (long long i = first; i >= 0 && i <= last && i <= TOPOLOGY_NUMBER && t->cpus < TOPOLOGY_CPUS; i++)
			add_cpu(t, root, i);
		list = *rest == ',' ? rest + 1 : NULL;
	}
}

bool topology_facts_has_cookie(int32_t tid)
{
	unsigned long long cookie = 0;
	return prctl(CORE_SCHEDULING, CORE_SCHEDULING_GET, tid, SCOPE_THREAD, &cookie) == 0 && cookie != 0;
}

void topology_facts_read(struct topology *t, const char *root)
{
	char *smt = proc_line(root, "/sys/devices/system/cpu/smt/control");
	char *online = proc_line(root, "/sys/devices/system/cpu/online");
	*t = (struct topology){ .smt = smt_control_find(smt) };
	add_cpus(t, root, online);
	free(smt);
	free(online);
}

/* Returns the number after the key ("N0=") in a line of numa_maps; -1: none. */
static int64_t line_number(const char *line, const char *end, const char *key)
{
	const size_t n = strlen(key);
	for (const char *at = line; at && at < end; at = memchr(at + 1, ' ', (size_t)(end - at) - 1))
		if (strncmp(at + (*at == ' '), key, n) == 0)
			return strtoll(at + (*at == ' ') + n, NULL, 10);
	return -1;
}

void topology_facts_read_memory(struct topology *t, const char *root, int32_t pid, const char *vm)
{
	size_t nodes;
	char **node = proc_names(root, "node", &nodes, "/sys/devices/system/node");
	char *maps = nodes > 1 ? proc_text(root, NULL, "/proc/%d/numa_maps", pid) : NULL;
	for (size_t i = 0; maps && i < nodes; i++) {
		const int64_t number = first_number(node[i] + strlen("node"));
		char *key = mem_printf("N%lld=", (long long)number);
		int64_t kib = 0;
		for (const char *line = maps; number >= 0 && *line; line += *line == '\n') {
			const char *end = line + strcspn(line, "\n");
			const int64_t pages = line_number(line, end, key), page = line_number(line, end, "kernelpagesize_kB=");
			if (pages > 0 && page <= INT32_MAX && pages <= INT32_MAX)
				kib += pages * (page > 0 ? page : PAGE_KIB);
			line = end;
		}
		if (kib > 0)
			*ARRAY_PUSH(t->memory, t->memories, t->memory_cap) = (struct topology_memory){ mem_dup(vm), number, kib };
		free(key);
	}
	free(maps);
	proc_names_free(node, nodes);
}
