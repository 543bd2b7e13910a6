/* Cores, caches and NUMA nodes of the host's CPUs, from attributes that never change. */
#include "base/base.h"
#include "query/query_internal.h"

#define SIBLINGS_MAX 8  /* limit of the CPUs of one core: larger cores are damage and count as unknown */

/* Reads the value that an attribute has at the history's end; HISTORY_NULL: none, or no such attribute. */
static int read_last(const struct catalog *catalog, uint32_t attr, int64_t *value, struct error *err)
{
	struct interval iv = { 0, 0, HISTORY_NULL };
	if (attr != HISTORY_NONE && history_stab(catalog->h, attr, history_last(catalog->h), &iv, err) < 0)
		return -1;
	*value = iv.value;
	return 0;
}

struct core_member { int64_t core; uint32_t cpu; };

ORDER_BY(compare_members, struct core_member, RISING(core) RISING(cpu))

/* Links the CPUs of each core in a circle. */
static void link_siblings(struct catalog *catalog, struct core_member *member, size_t n)
{
	ARRAY_SORT(member, n, compare_members);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && member[end].core == member[i].core; )
			end++;
		if (end - i > SIBLINGS_MAX)
			continue;
		for (size_t k = i; k < end; k++)
			catalog->cpu[member[k].cpu].sibling = (int32_t)member[k + 1 < end ? k + 1 : i].cpu;
		catalog->has_cores = true;
		catalog->has_siblings = catalog->has_siblings || end - i > 1;
	}
}

static int32_t small_number(int64_t value)
{
	return value >= 0 && value <= INT32_MAX ? (int32_t)value : -1;
}

int catalog_read_topology(struct catalog *catalog, struct error *err)
{
	for (uint32_t i = 0; i < catalog->cpus; i++)
		catalog->has_counters |= catalog->cpu[i].instructions != HISTORY_NONE && catalog->cpu[i].cycles != HISTORY_NONE;
	if (!catalog->machines || catalog->machine[0].kind != MACHINE_HOST)
		return 0;
	const struct catalog_machine *host = &catalog->machine[0];
	struct core_member *member = mem_new(host->cpus, sizeof *member);
	size_t n = 0;
	int rc = 0;
	for (uint32_t i = host->cpu; i < host->cpu + host->cpus && rc == 0; i++) {
		struct catalog_cpu *cpu = &catalog->cpu[i];
		int64_t core, llc, node, khz;
		rc = read_last(catalog, cpu->core, &core, err) || read_last(catalog, cpu->llc, &llc, err) ||
		     read_last(catalog, cpu->node, &node, err) || read_last(catalog, cpu->base_khz, &khz, err) ? -1 : 0;
		if (rc)
			break;
		cpu->llc_number = small_number(llc);
		cpu->node_number = small_number(node);
		cpu->base_frequency = khz > 0 ? khz : 0;
		if (core != HISTORY_NULL)
			member[n++] = (struct core_member){ core, i };
	}
	if (rc == 0)
		link_siblings(catalog, member, n);
	free(member);
	return rc;
}
