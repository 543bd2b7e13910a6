/* The steal matrix: what every victim lost to every thief.
 *
 * Cost: one exact sum per row; of rows that lost anything, one walk over their status and, inside their gaps only,
 * over what the resolver needs to name the thief.  By machine it need not know threads, and one sweep serves all
 * victims (sweep.h).  Long windows are cut in parts, one per processor. */
#include "flow/flow_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "flow/parts.h"
#include "flow/sweep.h"

struct matrix {
	const struct topo *topo;
	enum steal_by by;
	struct steal *out;
	size_t cell_cap;
	struct map cell_by_key;     /* hash of victim and thief, probed upwards -> index into cell */
	struct steal_party victim;
	uint32_t recent[64];        /* cells added to of late, by hash: index + 1 */
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
	uint64_t hash = party_hash(party_hash(0, &m->victim), thief);
	uint32_t *recent = &m->recent[hash % (sizeof m->recent / sizeof *m->recent)];
	if (*recent && cell_is(m, *recent - 1, thief))
		return &out->cell[*recent - 1];
	for (;; hash++) {
		bool is_new;
		uint64_t *at = map_put(&m->cell_by_key, hash, &is_new);
		if (is_new) {
			*at = out->cells;
			*ARRAY_PUSH(out->cell, out->cells, m->cell_cap) = (struct steal_cell){ .victim = m->victim,
				.thief = *thief };
		}
		if (cell_is(m, (size_t)*at, thief)) {
			*recent = (uint32_t)*at + 1;
			return &out->cell[*at];
		}
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

static int by_victim(const void *a, const void *b)
{
	const struct steal_party *v = &((const struct steal_cell *)a)->victim, *u = &((const struct steal_cell *)b)->victim;
	if (v->system != u->system)
		return v->system < u->system ? -1 : 1;
	if (v->tid != u->tid)
		return v->tid < u->tid ? -1 : 1;
	return (v->name > u->name) - (v->name < u->name);
}

static void put_in_order(struct steal *out)
{
	if (out->cells)
		qsort(out->cell, out->cells, sizeof *out->cell, by_victim);
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

struct parts {
	const struct topo *topo;
	enum steal_by by;
	const struct subject *only;
	int64_t from, to;
	size_t n;
	bool sweep;
	struct matrix m[PARTS_MAX];
	struct steal out[PARTS_MAX];
	struct sweep s[PARTS_MAX];
	struct error err[PARTS_MAX];
};

/* One part of the window.  By machine, 1 = too much for a sweep. */
static int do_part(void *arg, size_t i)
{
	struct parts *p = arg;
	struct matrix *m = &p->m[i];
	int64_t start, end;
	parts_cut(p->from, p->to, i, p->n, &start, &end);
	if (p->sweep) {
		sweep_init(&p->s[i], p->topo);
		int done = sweep_run(&p->s[i], p->only, start, end, &p->err[i]);
		return done < 0 ? -1 : !done;
	}
	p->out[i] = (struct steal){ .start = start, .end = end };
	*m = (struct matrix){ .topo = p->topo, .by = p->by, .out = &p->out[i], .err = &p->err[i] };
	resolver_init(&m->r, p->topo, start, end, &p->err[i]);
	m->r.shallow = p->by == STEAL_BY_MACHINE;
	int status = p->only ? add_only(m, p->only) : 0;
	for (uint32_t k = 0; !p->only && k < p->topo->machines && status == 0; k++)
		status = add_machine(m, k);
	return status;
}

static struct steal_party party_renamed(const struct steal_party *p, const struct strtab *from, struct strtab *to)
{
	struct steal_party q = *p;
	q.name = strtab_put(to, strtab_get(from, p->name));
	return q;
}

/* Adds the cells of the later parts to those of the first. */
static void join_cells(struct parts *p)
{
	struct matrix *all = &p->m[0];
	for (size_t i = 1; i < p->n; i++)
		for (size_t k = 0; k < p->out[i].cells; k++) {
			const struct steal_cell *c = &p->out[i].cell[k];
			struct steal_party thief = party_renamed(&c->thief, &p->m[i].r.names, &all->r.names);
			all->victim = party_renamed(&c->victim, &p->m[i].r.names, &all->r.names);
			cell_of(all, &thief)->ns += c->ns;
		}
}

static void cells_of_sweeps(struct parts *p)
{
	struct matrix *all = &p->m[0];
	uint32_t machines = p->topo->machines;
	static const uint8_t kind[THIEF_OTHERS] = { FLOW_IDLE_CPU, FLOW_UNKNOWN, FLOW_WAITING };
	for (uint32_t victim = 0; victim < machines; victim++)
		for (uint32_t thief = 0; thief < p->s[0].thieves; thief++) {
			int64_t ns = 0;
			for (size_t i = 0; i < p->n; i++)
				ns += p->s[i].ns[victim * p->s[i].thieves + thief];
			struct steal_party party = { thief < machines ? (int32_t)thief : -1, -1, 0,
				thief < machines ? FLOW_PREEMPTING : kind[thief - machines] };
			all->victim = (struct steal_party){ (int32_t)victim, -1, 0, FLOW_RUNNING };
			if (ns)
				cell_of(all, &party)->ns = ns;
		}
}

static void release_parts(struct parts *p)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->m[i].topo)
			resolver_release(&p->m[i].r);
		map_release(&p->m[i].cell_by_key);
		steal_release(&p->out[i]);
		sweep_release(&p->s[i]);
		p->m[i] = (struct matrix){ 0 };
	}
}

static int run_parts(struct parts *p)
{
	int status = parts_walk(p->n, do_part, p);
	if (status <= 0)
		return status;
	release_parts(p);
	p->sweep = false;
	return parts_walk(p->n, do_part, p);
}

int steal_matrix(const struct topo *topo, enum steal_by by, const struct subject *only, int64_t from, int64_t to,
                 struct steal *out, struct error *err)
{
	struct parts *p = mem_new(1, sizeof *p);
	*p = (struct parts){ .topo = topo, .by = by, .only = only };
	p->from = from > history_begin(topo->h) ? from : history_begin(topo->h);
	p->to = to < history_end(topo->h) ? to : history_end(topo->h);
	p->sweep = by == STEAL_BY_MACHINE && topo->machines <= SWEEP_MACHINES;
	p->n = p->from <= p->to ? parts_of(topo->h, p->from, p->to) : 0;
	*out = (struct steal){ .start = p->from, .end = p->to };
	int status = p->n ? run_parts(p) : 0;
	if (status == 0 && p->n) {
		struct matrix *all = &p->m[0];
		if (p->sweep) {
			*all = (struct matrix){ .topo = topo, .by = by, .out = &p->out[0], .err = err };
			resolver_init(&all->r, topo, p->from, p->to, err);
			cells_of_sweeps(p);
		} else {
			join_cells(p);
		}
		out->cell = p->out[0].cell;
		out->cells = p->out[0].cells;
		p->out[0].cell = NULL;
		put_in_order(out);
		resolver_give_names(&all->r, &out->name, &out->names);
	}
	for (size_t i = 0; status < 0 && i < p->n && err; i++)
		if (p->err[i].text[0])
			*err = p->err[i];
	release_parts(p);
	free(p);
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
