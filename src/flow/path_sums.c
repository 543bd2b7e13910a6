/* A critical path, added up: whose time it was, and who took it. */
#include "flow/flow_private.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "flow/party.h"

static int longest_first(const void *a, const void *b)
{
	const struct path_sum *x = a, *y = b;
	if (x->duration != y->duration)
		return x->duration < y->duration ? 1 : -1;
	return (x->who.tid > y->who.tid) - (x->who.tid < y->who.tid);
}

void path_add_up(struct path *p)
{
	struct parties parties = { 0 };
	struct map row = MAP_INIT;
	size_t cap = 0;
	double all = (double)(p->end - p->start) + 1;
	for (size_t i = 0; i < p->pieces; i++) {
		const struct path_piece *piece = &p->piece[i];
		bool is_new;
		uint64_t key = (uint64_t)parties_put(&parties, &piece->who) << 32;
		uint64_t *at = map_put(&row, key | parties_put(&parties, &piece->thief), &is_new);
		if (is_new) {
			*at = p->sums;
			*ARRAY_PUSH(p->sum, p->sums, cap) = (struct path_sum){ .who = piece->who, .thief = piece->thief };
		}
		struct path_sum *sum = &p->sum[*at];
		sum->duration += piece->end - piece->start + 1;
		sum->pieces++;
		if (piece->who.kind == FLOW_UNKNOWN)
			p->unknown += piece->end - piece->start + 1;
	}
	for (size_t i = 0; i < p->sums; i++)
		p->sum[i].share = (double)p->sum[i].duration / all;
	if (p->sums)
		qsort(p->sum, p->sums, sizeof *p->sum, longest_first);
	map_release(&row);
	parties_release(&parties);
}

void path_release(struct path *p)
{
	for (size_t i = 0; i < p->names; i++)
		free(p->name[i]);
	free(p->name);
	free(p->piece);
	free(p->sum);
	*p = (struct path){ 0 };
}
