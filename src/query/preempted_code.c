/* Where in the guest's code vCPUs were preempted, by the instruction at which they were left last.
 *
 * Cost: one walk over these.  Memory: a row per instruction. */
#include "query/query_internal.h"

#include <stdlib.h>

#include "base/mem.h"

struct places {
	struct inside_list *out;
	size_t cap;
	struct map row_of;        /* of the vCPU at hand: address -> row */
};

static void add_place(struct places *p, uint32_t vcpu, int64_t address, int64_t start, int64_t end)
{
	bool is_new;
	uint64_t *at = map_put(&p->row_of, (uint64_t)address, &is_new);
	if (is_new) {
		*at = p->out->rows;
		*ARRAY_PUSH(p->out->row, p->out->rows, p->cap) = (struct inside_row){ .vcpu = vcpu, .address = address };
	}
	struct inside_row *row = &p->out->row[*at];
	const int64_t ns = end - start + 1;
	row->total += ns;
	p->out->preempted++;
	p->out->kernel += address != 0;
	if (row->count++ && ns <= row->longest)
		return;
	row->longest = ns;
	row->longest_at = start;
}

static int add_vcpu(struct places *p, const struct topo *topo, uint32_t vcpu, int64_t from, int64_t to, struct error *err)
{
	struct history_cursor c;
	struct interval iv;
	const uint32_t attr = topo->cpu[vcpu].inside;
	int got;
	p->out->vcpus++;
	p->out->silent += attr == HISTORY_NONE;
	if (attr == HISTORY_NONE)
		return 0;
	if (history_range(&c, topo->h, attr, from, to, err) < 0)
		return -1;
	while ((got = history_range_next(&c, &iv, err)) > 0)
		if (iv.value != HISTORY_NULL)
			add_place(p, vcpu, iv.value, iv.start > from ? iv.start : from, iv.end < to ? iv.end : to);
	map_release(&p->row_of);
	p->row_of = (struct map)MAP_INIT;
	return got;
}

static int by_vcpu(const void *a, const void *b)
{
	const struct inside_row *x = a, *y = b;
	if (x->vcpu != y->vcpu)
		return x->vcpu < y->vcpu ? -1 : 1;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return (x->address > y->address) - (x->address < y->address);
}

int insides_of(const struct topo *topo, const struct subject *s, int64_t from, int64_t to, struct inside_list *out,
               struct error *err)
{
	struct places p = { .out = out };
	int rc = 0;
	*out = (struct inside_list){ 0 };
	from = from > history_begin(topo->h) ? from : history_begin(topo->h);
	to = to < history_end(topo->h) ? to : history_end(topo->h);
	for (uint32_t i = 0; i < topo->cpus && rc == 0; i++)
		if (vcpu_is_asked(topo, s, i))
			rc = add_vcpu(&p, topo, i, from, to, err);
	map_release(&p.row_of);
	if (out->rows)
		qsort(out->row, out->rows, sizeof *out->row, by_vcpu);
	if (rc < 0)
		insides_release(out);
	return rc;
}

void insides_release(struct inside_list *l)
{
	free(l->row);
	*l = (struct inside_list){ 0 };
}
