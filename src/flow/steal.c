/* The steal matrix: what every victim lost to every thief.
 *
 * Cost: one exact sum per row; of rows that lost anything, one walk over their status and, inside their gaps only,
 * over what the resolver needs to name the thief.  By machine it need not know threads. */
#include "flow/flow_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct matrix {
	const struct topo *topo;
	enum steal_by by;
	struct steal *out;
	size_t cell_cap;
	struct map cell_by_key;     /* hash of victim and thief, probed upwards -> index into cell */
	struct steal_party victim;
	size_t last;                /* the cell added to last */
	struct resolver r;
	struct error *err;
};

static bool party_same(const struct steal_party *a, const struct steal_party *b)
{
	return a->system == b->system && a->tid == b->tid && a->name == b->name && a->kind == b->kind;
}

static uint64_t party_hash(uint64_t h, const struct steal_party *p)
{
	h = (h ^ (uint64_t)(uint32_t)p->tid << 32 ^ p->name) * 0x9E3779B97F4A7C15ULL;
	h = (h ^ h >> 29 ^ (uint64_t)(uint32_t)p->system << 8 ^ p->kind) * 0x9E3779B97F4A7C15ULL;
	return h ^ h >> 32;
}

static bool cell_is(const struct matrix *m, size_t i, const struct steal_party *thief)
{
	const struct steal_cell *c = &m->out->cell[i];
	return party_same(&c->thief, thief) && party_same(&c->victim, &m->victim);
}

static struct steal_cell *cell_of(struct matrix *m, const struct steal_party *thief)
{
	struct steal *out = m->out;
	if (m->last < out->cells && cell_is(m, m->last, thief))
		return &out->cell[m->last];
	for (uint64_t hash = party_hash(party_hash(0, &m->victim), thief);; hash++) {
		bool is_new;
		uint64_t *at = map_put(&m->cell_by_key, hash, &is_new);
		if (is_new) {
			*at = out->cells;
			*ARRAY_PUSH(out->cell, out->cells, m->cell_cap) = (struct steal_cell){ .victim = m->victim,
				.thief = *thief };
		}
		m->last = (size_t)*at;
		if (cell_is(m, m->last, thief))
			return &out->cell[m->last];
	}
}

static int add_piece(void *arg, const struct piece *p, int64_t start, int64_t end)
{
	struct matrix *m = arg;
	struct steal_party thief = { p->system, p->tid, p->name, p->kind };
	/* By machine, its handlers and its hypervisor work are the machine's doing like its threads'. */
	if (m->by == STEAL_BY_MACHINE) {
		thief.tid = -1;
		thief.name = 0;
		if (p->kind == FLOW_IRQ || p->kind == FLOW_HYPERVISOR)
			thief.kind = FLOW_PREEMPTING;
	}
	cell_of(m, &thief)->ns += end - start + 1;
	return 0;
}

static int add_row(void *arg, const struct subject *row)
{
	struct matrix *m = arg;
	struct gap_walk w;
	struct gap gap = { .subject = *row };
	if (m->by == STEAL_BY_THREAD) {
		const struct topo_thread *th = &m->topo->thread[row->index];
		m->victim = (struct steal_party){ (int32_t)th->machine, th->tid, 0, FLOW_RUNNING };
	}
	int r = gap_walk_start(&w, m->topo, row, m->out->start, m->out->end, m->err);
	if (r <= 0)
		return r;
	if (m->by == STEAL_BY_THREAD)
		m->victim.name = strtab_put(&m->r.names, topo_longest_name(m->topo, row->index));
	while ((r = gap_walk_next(&w, &gap, m->err)) > 0)
		if (resolve_walk(&m->r, row, gap.start, gap.end, add_piece, m) < 0)
			return -1;
	return r;
}

/* The rows of one machine, by machine or by thread. */
static int add_machine(struct matrix *m, uint32_t machine)
{
	struct subject s = { SUBJECT_MACHINE, machine };
	const struct topo_machine *is = &m->topo->machine[machine];
	m->victim = (struct steal_party){ (int32_t)machine, -1, 0, FLOW_RUNNING };
	if (m->by == STEAL_BY_MACHINE)
		return gap_each_row(m->topo, &s, add_row, m);
	for (uint32_t i = is->thread; i < is->thread + is->threads; i++) {
		struct subject row = { SUBJECT_THREAD, i };
		int r = gap_is_own_thread(m->topo, i) ? add_row(m, &row) : 0;
		if (r)
			return r;
	}
	return 0;
}

static int add_only(struct matrix *m, const struct subject *s)
{
	if (s->kind == SUBJECT_MACHINE)
		return add_machine(m, s->index);
	uint32_t machine = s->kind == SUBJECT_CPU ? m->topo->cpu[s->index].machine : m->topo->thread[s->index].machine;
	m->victim = (struct steal_party){ (int32_t)machine, -1, 0, FLOW_RUNNING };
	if (s->kind == SUBJECT_CPU && m->by == STEAL_BY_THREAD)
		return add_machine(m, machine);
	return add_row(m, s);
}

struct order { const struct steal_cell *cell; int64_t lost; };

static int by_loss(const void *a, const void *b)
{
	const struct order *x = a, *y = b;
	const struct steal_party *v = &x->cell->victim, *u = &y->cell->victim;
	if (x->lost != y->lost)
		return x->lost < y->lost ? 1 : -1;
	if (v->system != u->system)
		return v->system < u->system ? -1 : 1;
	if (v->tid != u->tid)
		return v->tid < u->tid ? -1 : 1;
	if (x->cell->ns != y->cell->ns)
		return x->cell->ns < y->cell->ns ? 1 : -1;
	v = &x->cell->thief;
	u = &y->cell->thief;
	if (v->kind != u->kind)
		return v->kind < u->kind ? -1 : 1;
	if (v->system != u->system)
		return v->system < u->system ? -1 : 1;
	return (v->tid > u->tid) - (v->tid < u->tid);
}

/* Cells of a victim stand together, since rows were added victim by victim. */
static void put_in_order(struct steal *out)
{
	struct order *order = mem_new(out->cells, sizeof *order);
	struct steal_cell *sorted = mem_new(out->cells, sizeof *sorted);
	for (size_t i = 0, k; i < out->cells; i = k) {
		int64_t lost = 0;
		for (k = i; k < out->cells && party_same(&out->cell[k].victim, &out->cell[i].victim); k++)
			lost += out->cell[k].ns;
		for (size_t n = i; n < k; n++) {
			out->cell[n].share = (double)out->cell[n].ns / (double)lost;
			order[n] = (struct order){ &out->cell[n], lost };
		}
	}
	if (out->cells)
		qsort(order, out->cells, sizeof *order, by_loss);
	for (size_t i = 0; i < out->cells; i++)
		sorted[i] = *order[i].cell;
	free(order);
	free(out->cell);
	out->cell = sorted;
}

int steal_matrix(const struct topo *topo, enum steal_by by, const struct subject *only, int64_t from, int64_t to,
                 struct steal *out, struct error *err)
{
	struct matrix m = { .topo = topo, .by = by, .out = out, .last = SIZE_MAX, .err = err };
	*out = (struct steal){ .start = from > history_begin(topo->h) ? from : history_begin(topo->h),
		.end = to < history_end(topo->h) ? to : history_end(topo->h) };
	resolver_init(&m.r, topo, out->start, out->end, err);
	m.r.shallow = by == STEAL_BY_MACHINE;
	int status = only ? add_only(&m, only) : 0;
	for (uint32_t i = 0; !only && i < topo->machines && status == 0; i++)
		status = add_machine(&m, i);
	if (status == 0) {
		put_in_order(out);
		resolver_give_names(&m.r, &out->name, &out->names);
	}
	resolver_release(&m.r);
	map_release(&m.cell_by_key);
	if (status < 0)
		steal_release(out);
	return status;
}

void steal_release(struct steal *s)
{
	for (size_t i = 0; i < s->names; i++)
		free(s->name[i]);
	free(s->name);
	free(s->cell);
	*s = (struct steal){ 0 };
}
