/* The steal matrix: time that each victim lost to each culprit.
 *
 * Cost: one exact sum per row; for rows that lost time, one walk over their status and, inside their gaps only, over the
 * attributes that the resolver needs to name the culprit. By machine no threads are resolved. One sweep serves all victims
 * (steal_sweep.h), unless too many rows lose time. */
#include "query/query_internal.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"
#include "query/stepped_query.h"
#include "query/culprit.h"
#include "query/steal_sweep.h"
#include "query/thread_groups.h"

/* Cells under construction, by victim and culprit. */
struct steal_cells {
	struct actors actors;
	struct map cell_by_pair;    /* (number of victim << 32 | number of culprit) -> index into cell */
	struct steal_cell *cell;
	size_t cells, cap;
	uint32_t victim;            /* number of the victim of the current row */
	struct latest { uint32_t victim, cell; } *latest;  /* by culprit: index + 1 of the latest cell; 0: none */
	size_t latests, latest_cap;
};

struct steal_part {
	const struct thread_groups *groups;
	struct steal_cells m;
	struct resolver r;
	struct sweep sweep;
	bool open;
	size_t row;                 /* current row */
	bool walking;               /* the walk is inside the gaps of the row */
	struct gap_walk walk;
};

struct steal_query {
	struct query q;
	enum steal_by by;
	struct target only;
	bool is_only, sweep;
	size_t most;
	enum thread_grouping grouping;
	struct thread_groups *groups;  /* NULL: none, or an error */
	struct error err;              /* reason for which there are no groups */
	atomic_bool too_many;   /* a part has too many cells: all parts may stop */
	struct gap_rows rows;
	struct steal_part part[PARTS_MAX];
	struct steal answer;
};

static void matrix_add(struct steal_cells *m, const struct actor *culprit, int64_t ns)
{
	bool is_new;
	uint32_t id = actors_put(&m->actors, culprit);
	while (m->latests <= id)
		*ARRAY_PUSH(m->latest, m->latests, m->latest_cap) = (struct latest){ 0 };
	struct latest *latest = &m->latest[id];
	if (!latest->cell || latest->victim != m->victim) {
		uint64_t *at = map_put(&m->cell_by_pair, (uint64_t)m->victim << 32 | id, &is_new);
		if (is_new) {
			*at = m->cells;
			*ARRAY_PUSH(m->cell, m->cells, m->cap) = (struct steal_cell){ .victim = m->actors.actor[m->victim],
				.culprit = *culprit };
		}
		*latest = (struct latest){ m->victim, (uint32_t)*at + 1 };
	}
	m->cell[latest->cell - 1].ns += ns;
}

static void matrix_release(struct steal_cells *m)
{
	actors_release(&m->actors);
	map_release(&m->cell_by_pair);
	free(m->cell);
	free(m->latest);
	*m = (struct steal_cells){ 0 };
}

/* ---- Rows of a part */

static int part_add(void *arg, const struct resolution *p, int64_t start, int64_t end)
{
	struct steal_part *part = arg;
	struct actor culprit = p->actor;
	/* By machine: handlers and VMM time count for the machine like its threads. */
	if (part->r.shallow) {
		culprit.tid = -1;
		culprit.name = 0;
		if (culprit.kind == FLOW_IRQ || culprit.kind == FLOW_HYPERVISOR)
			culprit.kind = FLOW_PREEMPTING;
	}
	actor_set_group(part->groups, &culprit, &part->r.names);
	matrix_add(&part->m, &culprit, end - start + 1);
	return 0;
}

static struct actor row_victim(const struct catalog *catalog, const struct gap_row *row, const struct thread_groups *groups,
                               struct resolver *r)
{
	struct actor victim = { (int32_t)row->victim, -1, 0, FLOW_RUNNING, 0 };
	if (!r->shallow && row->target.kind == TARGET_THREAD) {
		victim.tid = catalog->thread[row->target.index].tid;
		victim.name = strtab_put(&r->names, catalog_longest_name(catalog, row->target.index));
		actor_set_group(groups, &victim, &r->names);
	}
	return victim;
}

/* Starts a row. Returns 1 = it has gaps, 0 = none, -1 = error. */
static int part_start_row(struct steal_part *part, const struct catalog *catalog, const struct gap_row *row,
                          const struct query_part *window, struct error *err)
{
	int r = gap_walk_start(&part->walk, catalog, &row->target, window->from, window->to, err);
	if (r > 0) {
		const struct actor victim = row_victim(catalog, row, part->groups, &part->r);
		part->m.victim = actors_put(&part->m.actors, &victim);
	}
	return r;
}

static int part_walk_rows(struct steal_query *s, struct steal_part *part, const struct query_part *window,
                          struct budget *budget, struct error *err)
{
	while (part->row < s->rows.len && !budget_spent(budget)) {
		struct gap gap;
		const struct gap_row *row = &s->rows.row[part->row];
		int r = part->walking ? gap_walk_next(&part->walk, &gap, err)
		                      : part_start_row(part, s->q.catalog, row, window, err);
		if (r < 0)
			return -1;
		if (r && part->walking && resolve_walk(&part->r, &row->target, gap.start, gap.end, part_add, part) < 0)
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

static int part_open(struct steal_query *s, struct steal_part *part, const struct query_part *window,
                     struct error *err)
{
	if (s->sweep)
		return sweep_open(&part->sweep, s->q.catalog, &s->rows, s->by == STEAL_BY_MACHINE, window->from, window->to, err);
	part->groups = s->groups;
	resolver_init(&part->r, s->q.catalog, window->from, window->to, err);
	part->r.shallow = s->by == STEAL_BY_MACHINE;
	return 1;
}

static int part_walk_sweep(struct steal_query *s, struct steal_part *part, const struct query_part *window,
                           struct budget *budget, double *done)
{
	int last = 0;
	do {
		budget->calls = 63;  /* a slice takes so long that the clock is read after each */
		last = sweep_step(&part->sweep);
		if (s->most && part->sweep.sums > s->most)
			atomic_store(&s->too_many, true);
		if (atomic_load(&s->too_many))
			return 1;
	} while (last == 0 && !budget_spent(budget));
	*done = (double)(part->sweep.at - window->from) / ((double)(window->to - window->from) + 1);
	return last;
}

static int steal_walk(struct query *q, size_t i, struct budget *budget, struct error *err)
{
	struct steal_query *s = (struct steal_query *)q;
	struct steal_part *part = &s->part[i];
	struct query_part *window = &q->part[i];
	if (s->grouping != GROUP_NONE && !s->groups) {
		*err = s->err;
		return -1;
	}
	if (!part->open) {
		int r = part_open(s, part, window, err);
		if (r <= 0)
			return r < 0 ? -1 : 1;  /* too many rows for a sweep; join() detects that no sweep is open */
		part->open = true;
	}
	if (s->sweep)
		return part_walk_sweep(s, part, window, budget, &window->done);
	window->done = s->rows.len ? (double)part->row / (double)s->rows.len : 1;
	return part_walk_rows(s, part, window, budget, err);
}

static void steal_release_parts(struct steal_query *s)
{
	for (size_t i = 0; i < s->q.parts; i++) {
		struct steal_part *part = &s->part[i];
		if (part->r.catalog)
			resolver_release(&part->r);
		matrix_release(&part->m);
		sweep_release(&part->sweep);
		*part = (struct steal_part){ 0 };
	}
}

/* ---- Answer */

static struct actor actor_renamed(const struct actor *p, const struct strtab *from, struct strtab *to)
{
	struct actor q = *p;
	q.name = strtab_put(to, strtab_get(from, p->name));
	return q;
}

/* Adds the cells of the other parts to the cells of the first part. */
static void steal_join_rows(struct steal_query *s)
{
	struct steal_cells *all = &s->part[0].m;
	struct strtab *names = &s->part[0].r.names;
	for (size_t i = 1; i < s->q.parts; i++)
		for (size_t k = 0; k < s->part[i].m.cells; k++) {
			const struct steal_cell *c = &s->part[i].m.cell[k];
			struct actor culprit = actor_renamed(&c->culprit, &s->part[i].r.names, names);
			struct actor victim = actor_renamed(&c->victim, &s->part[i].r.names, names);
			all->victim = actors_put(&all->actors, &victim);
			matrix_add(all, &culprit, c->ns);
		}
}

/* Adds the sums of all parts to the cells of the first part. */
static void steal_join_sweeps(struct steal_query *s)
{
	struct steal_cells *all = &s->part[0].m;
	struct strtab *names = &s->part[0].sweep.r.names;
	for (size_t i = 0; i < s->q.parts; i++) {
		struct sweep *sweep = &s->part[i].sweep;
		for (size_t row = 0; row < s->rows.len; row++) {
			const struct row_sums *of = &sweep->sums_of[row];
			if (of->len == 0)
				continue;
			struct actor victim = row_victim(s->q.catalog, &s->rows.row[row], s->groups, &sweep->r);
			victim = actor_renamed(&victim, &sweep->r.names, names);
			all->victim = actors_put(&all->actors, &victim);
			for (size_t k = 0; k < of->len; k++) {
				const struct actor *found = &sweep->culprits.actor[of->sum[k].culprit];
				struct actor culprit = actor_renamed(found, &sweep->r.names, names);
				actor_set_group(s->groups, &culprit, names);
				matrix_add(all, &culprit, of->sum[k].ns);
			}
		}
	}
}

struct cell_order { struct steal_cell cell; int64_t lost; };

static int compare_victims(const void *a, const void *b)
{
	const struct actor *v = &((const struct cell_order *)a)->cell.victim;
	const struct actor *u = &((const struct cell_order *)b)->cell.victim;
	if (v->machine != u->machine)
		return v->machine < u->machine ? -1 : 1;
	if (v->tid != u->tid)
		return v->tid < u->tid ? -1 : 1;
	return (v->name > u->name) - (v->name < u->name);
}

static int compare_cells(const void *a, const void *b)
{
	const struct cell_order *x = a, *y = b;
	if (x->lost != y->lost)
		return x->lost < y->lost ? 1 : -1;
	int d = compare_victims(a, b);
	if (d)
		return d;
	if (x->cell.ns != y->cell.ns)
		return x->cell.ns < y->cell.ns ? 1 : -1;
	const struct actor *v = &x->cell.culprit, *u = &y->cell.culprit;
	if (v->kind != u->kind)
		return v->kind < u->kind ? -1 : 1;
	if (v->machine != u->machine)
		return v->machine < u->machine ? -1 : 1;
	return (v->tid > u->tid) - (v->tid < u->tid);
}

static void cells_sort(struct steal_cell *cell, size_t n)
{
	struct cell_order *order = mem_new(n, sizeof *order);
	for (size_t i = 0; i < n; i++)
		order[i].cell = cell[i];
	if (n)
		qsort(order, n, sizeof *order, compare_victims);
	for (size_t i = 0, k; i < n; i = k) {
		int64_t lost = 0;
		for (k = i; k < n && actor_same(&order[k].cell.victim, &order[i].cell.victim); k++)
			lost += order[k].cell.ns;
		for (size_t c = i; c < k; c++) {
			order[c].lost = lost;
			order[c].cell.share = (double)order[c].cell.ns / (double)lost;
		}
	}
	if (n)
		qsort(order, n, sizeof *order, compare_cells);
	for (size_t i = 0; i < n; i++)
		cell[i] = order[i].cell;
	free(order);
}

/* Lists the rows. By machine: the rows whose lost time is summed for a machine. By thread: threads that execute no vCPU. */
static void steal_list_rows(struct steal_query *s)
{
	const struct catalog *catalog = s->q.catalog;
	const struct target *only = s->is_only ? &s->only : NULL;
	gap_rows_release(&s->rows);
	if (s->by == STEAL_BY_MACHINE || (only && only->kind != TARGET_MACHINE)) {
		gap_rows_list(&s->rows, catalog, only);
		return;
	}
	for (uint32_t i = 0; i < catalog->threads; i++)
		if ((!only || catalog->thread[i].machine == target_machine(catalog, only)) && gap_is_own_thread(catalog, i))
			*ARRAY_PUSH(s->rows.row, s->rows.len, s->rows.cap) =
				(struct gap_row){ { TARGET_THREAD, i }, catalog->thread[i].machine };
}

/* Restarts the query if the first attempt failed: without a sweep, or by machine. Returns false if no restart is needed. */
static bool steal_restart(struct steal_query *s)
{
	const bool too_many = atomic_exchange(&s->too_many, false);
	bool no_sweep = false;
	for (size_t i = 0; i < s->q.parts; i++)
		no_sweep = no_sweep || (s->sweep && !s->part[i].open);
	if (!no_sweep && !too_many)
		return false;
	steal_release_parts(s);
	if (too_many) {
		s->by = STEAL_BY_MACHINE;
		s->most = 0;
		steal_list_rows(s);
	}
	s->sweep = too_many;
	query_restart(&s->q);
	return true;
}

static int steal_join(struct query *q, struct error *err)
{
	struct steal_query *s = (struct steal_query *)q;
	struct steal_part *first = &s->part[0];
	s->answer = (struct steal){ .start = q->from, .end = q->to, .by = s->by, .victim = s->only,
		.is_one = s->is_only && s->only.kind != TARGET_MACHINE };
	if (q->parts == 0)
		return 1;
	if (steal_restart(s))
		return 0;
	if (s->sweep)
		steal_join_sweeps(s);
	else
		steal_join_rows(s);
	cells_sort(first->m.cell, first->m.cells);
	s->answer.cell = first->m.cell;
	s->answer.cells = first->m.cells;
	first->m.cell = NULL;
	names_move(s->sweep ? &first->sweep.r.names : &first->r.names, &s->answer.name, &s->answer.names);
	(void)err;
	return 1;
}

static void steal_close(struct query *q)
{
	struct steal_query *s = (struct steal_query *)q;
	steal_release_parts(s);
	gap_rows_release(&s->rows);
	thread_groups_free(s->groups);
	steal_release(&s->answer);
}

static const struct query_kind steal_query = { steal_walk, steal_join, steal_close };

struct query *steal_open(const struct catalog *catalog, const struct steal_options *o)
{
	struct steal_query *s = mem_new(1, sizeof *s);
	int64_t from = o->from > history_begin(catalog->h) ? o->from : history_begin(catalog->h);
	int64_t to = o->to < history_end(catalog->h) ? o->to : history_end(catalog->h);
	query_init(&s->q, &steal_query, catalog, from, to, 0);
	s->by = o->by;
	s->most = o->by == STEAL_BY_THREAD ? o->most : 0;
	s->err = (struct error)ERROR_INIT;
	s->grouping = o->by == STEAL_BY_THREAD ? o->grouping : GROUP_NONE;
	if (s->grouping != GROUP_NONE)
		s->groups = thread_groups_new(catalog, s->grouping, &s->err);
	s->is_only = o->only != NULL;
	if (o->only)
		s->only = *o->only;
	s->sweep = true;
	steal_list_rows(s);
	return &s->q;
}

void steal_take(struct query *q, struct steal *out)
{
	struct steal_query *s = (struct steal_query *)q;
	*out = s->answer;
	s->answer = (struct steal){ 0 };
}

int steal_matrix(const struct catalog *catalog, enum steal_by by, const struct target *only, int64_t from, int64_t to,
                 struct steal *out, struct error *err)
{
	struct query *q = steal_open(catalog, &(struct steal_options){ .by = by, .only = only, .from = from, .to = to });
	int status = query_run(q, NULL, err);
	*out = (struct steal){ 0 };
	if (status == 0)
		steal_take(q, out);
	query_close(q);
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
