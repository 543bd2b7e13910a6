#include "compare/whatif/wait_graph.h"

#include <stdlib.h>

#include "base/mem.h"

void contests_add(struct contests *c, uint32_t a, uint32_t b, int64_t ns)
{
	if (a != b && ns > 0)
		*map_put(&c->ns, (uint64_t)(a < b ? a : b) << 32 | (a < b ? b : a), NULL) += (uint64_t)ns;
}

void contests_release(struct contests *c)
{
	map_release(&c->ns);
}

/* The one that stands for all that are linked with it. */
static uint32_t root_of(uint32_t *link, uint32_t kin)
{
	while (link[kin] != kin)
		kin = link[kin] = link[link[kin]];
	return kin;
}

static int longer(const void *pa, const void *pb)
{
	const struct contest *x = pa, *y = pb;
	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return x->a != y->a ? (x->a > y->a) - (x->a < y->a) : (x->b > y->b) - (x->b < y->b);
}

size_t contests_untried(const struct contests *was, const struct contests *then, int64_t tried, int64_t matters,
                        uint32_t kins, struct contest **out)
{
	uint32_t *link = mem_new(kins, sizeof *link);
	size_t n = 0, cap = 0;
	uint64_t key, ns;
	*out = NULL;
	for (uint32_t i = 0; i < kins; i++)
		link[i] = i;
	for (size_t at = 0; map_each(&was->ns, &at, &key, &ns);)
		if ((int64_t)ns >= tried)
			link[root_of(link, (uint32_t)(key >> 32))] = root_of(link, (uint32_t)key);
	for (size_t at = 0; map_each(&then->ns, &at, &key, &ns);) {
		const struct contest c = { (uint32_t)(key >> 32), (uint32_t)key, (int64_t)ns };
		if (c.ns >= matters && root_of(link, c.a) != root_of(link, c.b))
			*ARRAY_PUSH(*out, n, cap) = c;
	}
	if (n)
		qsort(*out, n, sizeof **out, longer);
	free(link);
	return n;
}
