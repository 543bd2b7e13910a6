/* The steal matrix: what every victim lost to every thief.
 *
 * Cost: one exact sum per row; of rows that lost anything, one walk over their status and, inside their gaps only,
 * over what the resolver needs to name the thief.  By machine it need not know threads, and one sweep serves all
 * victims (steal_sweep.h). */
#include "query/query_internal.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"
#include "query/stepped_query.h"
#include "query/culprit.h"
#include "query/steal_sweep.h"

/* Cells by victim and thief. */
struct matrix {
	struct parties parties;
	struct map cell_by_pair;    /* party << 32 | party -> index into cell */
	struct steal_cell *cell;
	size_t cells, cap;
	uint32_t victim;            /* party of the row at hand */
	struct latest { uint32_t victim, cell; } *latest;  /* by thief; cell: index + 1 */
	size_t latests, latest_cap;
};

struct steal_part {
	struct matrix m;
	struct resolver r;
	struct sweep sweep;
	bool open;
	size_t row;                 /* at hand */
	bool walking;               /* through its gaps */
	struct gap_walk walk;
};

struct steal_inquiry {
	struct inquiry q;
	enum steal_by by;
	struct subject only;
	bool is_only, sweep;
	size_t most;
	atomic_bool too_many;   /* cells, in one of the parts: all may stop */
	struct gap_rows rows;
	struct steal_part part[PARTS_MAX];
	struct steal answer;
};

static void matrix_add(struct matrix *m, const struct party *thief, int64_t ns)
{
	bool is_new;
	uint32_t id = parties_put(&m->parties, thief);
	while (m->latests <= id)
		*ARRAY_PUSH(m->latest, m->latests, m->latest_cap) = (struct latest){ 0 };
	struct latest *latest = &m->latest[id];
	if (!latest->cell || latest->victim != m->victim) {
		uint64_t *at = map_put(&m->cell_by_pair, (uint64_t)m->victim << 32 | id, &is_new);
		if (is_new) {
			*at = m->cells;
			*ARRAY_PUSH(m->cell, m->cells, m->cap) = (struct steal_cell){ .victim = m->parties.party[m->victim],
				.thief = *thief };
		}
		*latest = (struct latest){ m->victim, (uint32_t)*at + 1 };
	}
	m->cell[latest->cell - 1].ns += ns;
}

static void matrix_release(struct matrix *m)
{
	parties_release(&m->parties);
	map_release(&m->cell_by_pair);
	free(m->cell);
	free(m->latest);
	*m = (struct matrix){ 0 };
}

/* ---- The rows of a part, one after the other */

static int add_piece(void *arg, const struct piece *p, int64_t start, int64_t end)
{
	struct steal_part *part = arg;
	struct party thief = p->who;
	/* By machine, its handlers and its hypervisor work are the machine's doing like its threads'. */
	if (part->r.shallow) {
		thief.tid = -1;
		thief.name = 0;
		if (thief.kind == FLOW_IRQ || thief.kind == FLOW_HYPERVISOR)
			thief.kind = FLOW_PREEMPTING;
	}
	matrix_add(&part->m, &thief, end - start + 1);
	return 0;
}

/* 1 = it has gaps, 0 = it has none, -1 = error. */
static int begin_row(struct steal_part *part, const struct topo *topo, const struct gap_row *row,
                     const struct inquiry_part *window, struct error *err)
{
	struct party victim = { (int32_t)row->victim, -1, 0, FLOW_RUNNING };
	int r = gap_walk_start(&part->walk, topo, &row->subject, window->from, window->to, err);
	if (r > 0 && !part->r.shallow && row->subject.kind == SUBJECT_THREAD) {
		victim.tid = topo->thread[row->subject.index].tid;
		victim.name = strtab_put(&part->r.names, topo_longest_name(topo, row->subject.index));
	}
	if (r > 0)
		part->m.victim = parties_put(&part->m.parties, &victim);
	return r;
}

static int walk_rows(struct steal_inquiry *s, struct steal_part *part, const struct inquiry_part *window,
                     struct budget *budget, struct error *err)
{
	while (part->row < s->rows.len && !budget_spent(budget)) {
		struct gap gap;
		const struct gap_row *row = &s->rows.row[part->row];
		int r = part->walking ? gap_walk_next(&part->walk, &gap, err) : begin_row(part, s->q.topo, row, window, err);
		if (r < 0)
			return -1;
		if (r && part->walking && resolve_walk(&part->r, &row->subject, gap.start, gap.end, add_piece, part) < 0)
			return -1;
		part->walking = r > 0;
		part->row += r == 0;
		if (s->most && part->m.cells > s->most)
			atomic_store(&s->too_many, true);
		if (atomic_load(&s->too_many))
			return 1;
	}
	return part->row == s->rows.len;
}

/* ---- Parts */

static int open_part(struct steal_inquiry *s, struct steal_part *part, const struct inquiry_part *window,
                     struct error *err)
{
	if (s->sweep)
		return sweep_open(&part->sweep, s->q.topo, &s->rows, window->from, window->to, err);
	resolver_init(&part->r, s->q.topo, window->from, window->to, err);
	part->r.shallow = s->by == STEAL_BY_MACHINE;
	return 1;
}

static int walk_sweep(struct steal_part *part, const struct inquiry_part *window, struct budget *budget, double *done)
{
	int last = 0;
	do {
		budget->calls = 63;  /* a slice is long enough for a look at the clock */
		last = sweep_step(&part->sweep);
	} while (last == 0 && !budget_spent(budget));
	*done = (double)(part->sweep.at - window->from) / ((double)(window->to - window->from) + 1);
	return last;
}

static int walk(struct inquiry *q, size_t i, struct budget *budget, struct error *err)
{
	struct steal_inquiry *s = (struct steal_inquiry *)q;
	struct steal_part *part = &s->part[i];
	struct inquiry_part *window = &q->part[i];
	if (!part->open) {
		int r = open_part(s, part, window, err);
		if (r <= 0)
			return r < 0 ? -1 : 1;  /* too many rows for a sweep: join() sees that it is not open */
		part->open = true;
	}
	if (s->sweep)
		return walk_sweep(part, window, budget, &window->done);
	window->done = s->rows.len ? (double)part->row / (double)s->rows.len : 1;
	return walk_rows(s, part, window, budget, err);
}

static void release_parts(struct steal_inquiry *s)
{
	for (size_t i = 0; i < s->q.parts; i++) {
		struct steal_part *part = &s->part[i];
		if (part->r.topo)
			resolver_release(&part->r);
		matrix_release(&part->m);
		sweep_release(&part->sweep);
		*part = (struct steal_part){ 0 };
	}
}

/* ---- The answer */

static struct party renamed(const struct party *p, const struct strtab *from, struct strtab *to)
{
	struct party q = *p;
	q.name = strtab_put(to, strtab_get(from, p->name));
	return q;
}

/* Adds the cells of the later parts to those of the first. */
static void join_rows(struct steal_inquiry *s)
{
	struct matrix *all = &s->part[0].m;
	struct strtab *names = &s->part[0].r.names;
	for (size_t i = 1; i < s->q.parts; i++)
		for (size_t k = 0; k < s->part[i].m.cells; k++) {
			const struct steal_cell *c = &s->part[i].m.cell[k];
			struct party thief = renamed(&c->thief, &s->part[i].r.names, names);
			struct party victim = renamed(&c->victim, &s->part[i].r.names, names);
			all->victim = parties_put(&all->parties, &victim);
			matrix_add(all, &thief, c->ns);
		}
}

static void join_sweeps(struct steal_inquiry *s)
{
	struct matrix *all = &s->part[0].m;
	const size_t machines = s->q.topo->machines, thieves = machines + THIEF_OTHERS;
	static const uint8_t kind[THIEF_LIMIT] = { FLOW_IDLE_CPU, FLOW_UNKNOWN, FLOW_WAITING };
	const uint32_t *limit = s->part[0].sweep.r.limit;
	for (size_t v = 0; v < machines; v++)
		for (size_t t = 0; t < thieves; t++) {
			int64_t ns = 0;
			for (size_t i = 0; i < s->q.parts; i++)
				ns += s->part[i].sweep.ns[v * thieves + t];
			if (ns == 0)
				continue;
			struct party victim = { (int32_t)v, -1, 0, FLOW_RUNNING };
			struct party thief = { (int32_t)t, -1, 0, FLOW_PREEMPTING };
			if (t >= machines + THIEF_LIMIT)
				thief = (struct party){ -1, -1, limit[t - machines - THIEF_LIMIT], FLOW_LIMITED };
			else if (t >= machines)
				thief = (struct party){ -1, -1, 0, kind[t - machines] };
			all->victim = parties_put(&all->parties, &victim);
			matrix_add(all, &thief, ns);
		}
}

struct cell_order { struct steal_cell cell; int64_t lost; };

static int by_victim(const void *a, const void *b)
{
	const struct party *v = &((const struct cell_order *)a)->cell.victim;
	const struct party *u = &((const struct cell_order *)b)->cell.victim;
	if (v->system != u->system)
		return v->system < u->system ? -1 : 1;
	if (v->tid != u->tid)
		return v->tid < u->tid ? -1 : 1;
	return (v->name > u->name) - (v->name < u->name);
}

static int by_loss(const void *a, const void *b)
{
	const struct cell_order *x = a, *y = b;
	if (x->lost != y->lost)
		return x->lost < y->lost ? 1 : -1;
	int d = by_victim(a, b);
	if (d)
		return d;
	if (x->cell.ns != y->cell.ns)
		return x->cell.ns < y->cell.ns ? 1 : -1;
	const struct party *v = &x->cell.thief, *u = &y->cell.thief;
	if (v->kind != u->kind)
		return v->kind < u->kind ? -1 : 1;
	if (v->system != u->system)
		return v->system < u->system ? -1 : 1;
	return (v->tid > u->tid) - (v->tid < u->tid);
}

static void put_in_order(struct steal_cell *cell, size_t n)
{
	struct cell_order *order = mem_new(n, sizeof *order);
	for (size_t i = 0; i < n; i++)
		order[i].cell = cell[i];
	if (n)
		qsort(order, n, sizeof *order, by_victim);
	for (size_t i = 0, k; i < n; i = k) {
		int64_t lost = 0;
		for (k = i; k < n && party_same(&order[k].cell.victim, &order[i].cell.victim); k++)
			lost += order[k].cell.ns;
		for (size_t c = i; c < k; c++) {
			order[c].lost = lost;
			order[c].cell.share = (double)order[c].cell.ns / (double)lost;
		}
	}
	if (n)
		qsort(order, n, sizeof *order, by_loss);
	for (size_t i = 0; i < n; i++)
		cell[i] = order[i].cell;
	free(order);
}

/* By machine: the rows that make up what machines lose.  By thread: every thread that is not a vCPU. */
static void list_rows(struct steal_inquiry *s)
{
	const struct topo *topo = s->q.topo;
	const struct subject *only = s->is_only ? &s->only : NULL;
	gap_rows_release(&s->rows);
	if (s->by == STEAL_BY_MACHINE || (only && only->kind != SUBJECT_MACHINE)) {
		gap_rows_list(&s->rows, topo, only);
		return;
	}
	for (uint32_t i = 0; i < topo->threads; i++)
		if ((!only || topo->thread[i].machine == subject_machine(topo, only)) && gap_is_own_thread(topo, i))
			*ARRAY_PUSH(s->rows.row, s->rows.len, s->rows.cap) =
				(struct gap_row){ { SUBJECT_THREAD, i }, topo->thread[i].machine };
}

/* In a way that can answer: without a sweep, or by machine.  False if there is no need to. */
static bool begin_again(struct steal_inquiry *s)
{
	const bool too_many = atomic_exchange(&s->too_many, false);
	bool unswept = false;
	for (size_t i = 0; i < s->q.parts; i++)
		unswept = unswept || (s->sweep && !s->part[i].open);
	if (!unswept && !too_many)
		return false;
	release_parts(s);
	if (too_many) {
		s->by = STEAL_BY_MACHINE;
		s->most = 0;
		list_rows(s);
	}
	s->sweep = too_many && s->q.topo->machines <= SWEEP_MACHINES;
	inquiry_restart(&s->q);
	return true;
}

static int join(struct inquiry *q, struct error *err)
{
	struct steal_inquiry *s = (struct steal_inquiry *)q;
	struct steal_part *first = &s->part[0];
	s->answer = (struct steal){ .start = q->from, .end = q->to, .by = s->by, .victim = s->only,
		.is_one = s->is_only && s->only.kind != SUBJECT_MACHINE };
	if (q->parts == 0)
		return 1;
	if (begin_again(s))
		return 0;
	if (s->sweep)
		join_sweeps(s);
	else
		join_rows(s);
	put_in_order(first->m.cell, first->m.cells);
	s->answer.cell = first->m.cell;
	s->answer.cells = first->m.cells;
	first->m.cell = NULL;
	resolver_give_names(s->sweep ? &first->sweep.r : &first->r, &s->answer.name, &s->answer.names);
	(void)err;
	return 1;
}

static void close_steal(struct inquiry *q)
{
	struct steal_inquiry *s = (struct steal_inquiry *)q;
	release_parts(s);
	gap_rows_release(&s->rows);
	steal_release(&s->answer);
}

static const struct inquiry_kind steal_inquiry = { walk, join, close_steal };

struct inquiry *steal_open(const struct topo *topo, const struct steal_options *o)
{
	struct steal_inquiry *s = mem_new(1, sizeof *s);
	int64_t from = o->from > history_begin(topo->h) ? o->from : history_begin(topo->h);
	int64_t to = o->to < history_end(topo->h) ? o->to : history_end(topo->h);
	inquiry_init(&s->q, &steal_inquiry, topo, from, to, 0);
	s->by = o->by;
	s->most = o->by == STEAL_BY_THREAD ? o->most : 0;
	s->is_only = o->only != NULL;
	if (o->only)
		s->only = *o->only;
	s->sweep = o->by == STEAL_BY_MACHINE && topo->machines <= SWEEP_MACHINES;
	list_rows(s);
	return &s->q;
}

void steal_take(struct inquiry *q, struct steal *out)
{
	struct steal_inquiry *s = (struct steal_inquiry *)q;
	*out = s->answer;
	s->answer = (struct steal){ 0 };
}

int steal_matrix(const struct topo *topo, enum steal_by by, const struct subject *only, int64_t from, int64_t to,
                 struct steal *out, struct error *err)
{
	struct inquiry *q = steal_open(topo, &(struct steal_options){ by, only, from, to, 0 });
	int status = inquiry_run(q, NULL, err);
	*out = (struct steal){ 0 };
	if (status == 0)
		steal_take(q, out);
	inquiry_close(q);
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
