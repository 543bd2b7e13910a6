#include "compare/whatif/wait_graph.h"

#include "base/base.h"

void wait_graph_add(struct wait_graph *g, uint32_t a, uint32_t b, int64_t ns)
{
	if (a != b && ns > 0)
		*map_put(&g->ns, (uint64_t)(a < b ? a : b) << 32 | (a < b ? b : a), NULL) += (uint64_t)ns;
}

void wait_graph_release(struct wait_graph *g)
{
	map_release(&g->ns);
}

/* Representative of a set of linked names. */
static uint32_t find_root(uint32_t *link, uint32_t name_group)
{
	while (link[name_group] != name_group)
		name_group = link[name_group] = link[link[name_group]];
	return name_group;
}

ORDER_BY(compare_edges, struct wait_edge, FALLING(ns) RISING(a) RISING(b))

size_t wait_graph_untested(const struct wait_graph *recorded, const struct wait_graph *changed, int64_t tested_ns,
                           int64_t relevant_ns, uint32_t name_groups, struct wait_edge **out)
{
	uint32_t *link = mem_new(name_groups, sizeof *link);
	size_t n = 0, cap = 0;
	uint64_t key, ns;
	*out = NULL;
	for (uint32_t i = 0; i < name_groups; i++)
		link[i] = i;
	for (size_t at = 0; map_each(&recorded->ns, &at, &key, &ns);)
		if ((int64_t)ns >= tested_ns)
			link[find_root(link, (uint32_t)(key >> 32))] = find_root(link, (uint32_t)key);
	for (size_t at = 0; map_each(&changed->ns, &at, &key, &ns);) {
		const struct wait_edge c = { (uint32_t)(key >> 32), (uint32_t)key, (int64_t)ns };
		if (c.ns >= relevant_ns && find_root(link, c.a) != find_root(link, c.b))
			*ARRAY_PUSH(*out, n, cap) = c;
	}
	ARRAY_SORT(*out, n, compare_edges);
	free(link);
	return n;
}
