/* A steal matrix put together from slices of its window.  See ask.h. */
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "ui/ask.h"

static int64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void steal_slices_begin(struct steal_slices *m, const struct topo *topo, int64_t from, int64_t to)
{
	*m = (struct steal_slices){ 0 };
	from = from > history_begin(topo->h) ? from : history_begin(topo->h);
	to = to < history_end(topo->h) ? to : history_end(topo->h);
	strtab_init(&m->names);
	slices_begin(&m->s, from, to);
	m->steal.start = from;
	m->steal.end = to;
}

static bool party_same(const struct steal_party *a, const struct steal_party *b)
{
	return a->system == b->system && a->tid == b->tid && a->name == b->name && a->kind == b->kind;
}

static uint64_t party_hash(uint64_t h, const struct steal_party *p)
{
	h = (h ^ (uint64_t)(uint32_t)p->tid << 32 ^ p->name) * UINT64_C(0x9E3779B97F4A7C15);
	h = (h ^ h >> 29 ^ (uint64_t)(uint32_t)p->system << 8 ^ p->kind) * UINT64_C(0x9E3779B97F4A7C15);
	return h ^ h >> 32;
}

static void add(struct steal_slices *m, const struct steal_cell *c)
{
	struct steal *all = &m->steal;
	for (uint64_t hash = party_hash(party_hash(0, &c->victim), &c->thief);; hash++) {
		bool is_new;
		uint64_t *at = map_put(&m->by_key, hash, &is_new);
		if (is_new) {
			*at = all->cells;
			*ARRAY_PUSH(all->cell, all->cells, m->cell_cap) = (struct steal_cell){ .victim = c->victim,
				.thief = c->thief };
		}
		struct steal_cell *mine = &all->cell[*at];
		if (party_same(&mine->victim, &c->victim) && party_same(&mine->thief, &c->thief)) {
			mine->ns += c->ns;
			return;
		}
	}
}

static void append(struct steal_slices *m, const struct steal *part)
{
	uint32_t *id = mem_new(part->names, sizeof *id);
	for (size_t i = 0; i < part->names; i++)
		id[i] = strtab_put(&m->names, part->name[i]);
	for (size_t i = 0; i < part->cells; i++) {
		struct steal_cell c = part->cell[i];
		c.victim.name = c.victim.name < part->names ? id[c.victim.name] : 0;
		c.thief.name = c.thief.name < part->names ? id[c.thief.name] : 0;
		add(m, &c);
	}
	free(id);
}

/* Too many pairs of threads for anybody to read: from the beginning again, by machine. */
static void start_again_by_machine(struct steal_slices *m, const struct topo *topo)
{
	int64_t from = m->s.from, to = m->s.to;
	steal_slices_release(m);
	steal_slices_begin(m, topo, from, to);
	m->by_machine = true;
}

int steal_slices_step(struct steal_slices *m, const struct topo *topo, struct error *err)
{
	struct steal part;
	int64_t began = now_ns();
	if (m->s.at > m->s.to)
		return 1;
	if (steal_matrix(topo, m->by_machine ? STEAL_BY_MACHINE : STEAL_BY_THREAD, NULL, m->s.at, slices_end(&m->s), &part,
	                 err) < 0)
		return -1;
	append(m, &part);
	steal_release(&part);
	slices_next(&m->s, now_ns() - began);
	if (!m->by_machine && m->steal.cells > ASK_CELLS) {
		start_again_by_machine(m, topo);
		return 0;
	}
	return m->s.at > m->s.to;
}

struct order { struct steal_cell cell; int64_t lost; };

static int by_victim(const void *a, const void *b)
{
	const struct steal_party *v = &((const struct order *)a)->cell.victim, *u = &((const struct order *)b)->cell.victim;
	if (v->system != u->system)
		return v->system < u->system ? -1 : 1;
	if (v->tid != u->tid)
		return v->tid < u->tid ? -1 : 1;
	return (v->name > u->name) - (v->name < u->name);
}

static int by_loss(const void *a, const void *b)
{
	const struct order *x = a, *y = b;
	if (x->lost != y->lost)
		return x->lost < y->lost ? 1 : -1;
	int d = by_victim(a, b);
	if (d)
		return d;
	if (x->cell.ns != y->cell.ns)
		return x->cell.ns < y->cell.ns ? 1 : -1;
	const struct steal_party *v = &x->cell.thief, *u = &y->cell.thief;
	if (v->kind != u->kind)
		return v->kind < u->kind ? -1 : 1;
	if (v->system != u->system)
		return v->system < u->system ? -1 : 1;
	return (v->tid > u->tid) - (v->tid < u->tid);
}

void steal_slices_finish(struct steal_slices *m, struct steal *out)
{
	size_t n = m->steal.cells;
	struct order *order = mem_new(n, sizeof *order);
	for (size_t i = 0; i < n; i++)
		order[i].cell = m->steal.cell[i];
	if (n)
		qsort(order, n, sizeof *order, by_victim);
	for (size_t i = 0, k; i < n; i = k) {
		int64_t lost = 0;
		for (k = i; k < n && party_same(&order[k].cell.victim, &order[i].cell.victim); k++)
			lost += order[k].cell.ns;
		for (size_t c = i; c < k; c++) {
			order[c].lost = lost;
			order[c].cell.share = (double)order[c].cell.ns / (double)(lost ? lost : 1);
		}
	}
	if (n)
		qsort(order, n, sizeof *order, by_loss);
	for (size_t i = 0; i < n; i++)
		m->steal.cell[i] = order[i].cell;
	free(order);
	*out = m->steal;
	out->name = m->names.str;
	out->names = m->names.len;
	m->names.str = NULL;
	m->names.len = m->names.cap = 0;
	m->steal = (struct steal){ 0 };
}

void steal_slices_release(struct steal_slices *m)
{
	steal_release(&m->steal);
	map_release(&m->by_key);
	strtab_release(&m->names);
	*m = (struct steal_slices){ 0 };
}
