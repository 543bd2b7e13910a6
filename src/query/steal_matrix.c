/* The steal matrix: time that each victim lost to each culprit.
 *
 * Cost: that of the sums (window_gaps.h), and one step per row and culprit. */
#include "query/query_internal.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/order.h"
#include "query/stepped_query.h"
#include "query/culprit.h"
#include "query/thread_groups.h"
#include "query/window_gaps.h"

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

struct steal_query {
	struct query q;
	enum steal_by by;
	struct target only;
	bool is_only;
	size_t most;
	enum thread_grouping grouping;
	struct thread_groups *groups;  /* NULL: none, or an error */
	struct error err;              /* reason for which there are no groups */
	struct gap_rows rows;          /* rows of the answer, and of the answer by machine if that may replace it */
	struct window_gaps sums;
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

static int steal_walk(struct query *q, size_t i, struct budget *budget, struct error *err)
{
	struct steal_query *s = (struct steal_query *)q;
	if (s->grouping != GROUP_NONE && !s->groups) {
		*err = s->err;
		return -1;
	}
	return window_gaps_walk(&s->sums, q, i, budget, err);
}

/* ---- Answer */

static struct actor row_victim(const struct steal_query *s, const struct gap_row *row, struct strtab *names)
{
	const struct catalog *catalog = s->q.catalog;
	struct actor victim = { (int32_t)row->victim, -1, 0, FLOW_RUNNING, 0 };
	if (s->by == STEAL_BY_THREAD && row->target.kind == TARGET_THREAD) {
		victim.tid = catalog->thread[row->target.index].tid;
		victim.name = strtab_put(names, catalog_longest_name(catalog, row->target.index));
		actor_set_group(s->groups, &victim, names);
	}
	return victim;
}

/* Returns a culprit's machine: handlers and VMM time count for it like its threads. */
static struct actor culprit_machine(const struct actor *culprit)
{
	struct actor out = *culprit;
	out.tid = -1;
	if (out.kind == FLOW_IRQ || out.kind == FLOW_HYPERVISOR)
		out.kind = FLOW_PREEMPTING;
	if (out.kind == FLOW_WAITING)
		out.machine = -1;
	out.name = out.kind == FLOW_LIMITED ? out.name : 0;
	return out;
}

/* Returns true if a row counts for the answer by machine, or by thread: see steal_open(). */
static bool row_counts(const struct steal_query *s, const struct gap_row *row)
{
	const bool is_one = s->is_only && s->only.kind != TARGET_MACHINE;
	const bool is_vm = s->q.catalog->machine[row->victim].kind == MACHINE_VM;
	return is_one || (s->by == STEAL_BY_THREAD ? row->target.kind == TARGET_THREAD
	                                           : (row->target.kind == TARGET_CPU) == is_vm);
}

static void steal_add_rows(struct steal_query *s, struct steal_cells *cells)
{
	struct strtab *names = &s->sums.store->names;
	for (size_t row = 0; row < s->rows.len; row++) {
		const struct gap_sum *sum = window_gaps_of(&s->sums, s->q.catalog, &s->rows.row[row].target);
		if (sum->culprits == 0 || !row_counts(s, &s->rows.row[row]))
			continue;
		const struct actor victim = row_victim(s, &s->rows.row[row], names);
		cells->victim = actors_put(&cells->actors, &victim);
		for (uint32_t k = 0; k < sum->culprits; k++) {
			struct actor culprit = s->sums.store->actors.actor[sum->culprit[k].culprit];
			if (s->by == STEAL_BY_MACHINE)
				culprit = culprit_machine(&culprit);
			actor_set_group(s->groups, &culprit, names);
			matrix_add(cells, &culprit, sum->culprit[k].ns);
		}
	}
}

/* Names are compared as texts: their numbers depend on whether the history has sums. */
struct cell_order { struct steal_cell cell; int64_t lost; const char *victim, *culprit; };

#define VICTIM_KEYS RISING(cell.victim.machine) RISING(cell.victim.tid) RISING_TEXT(victim)
ORDER_BY(compare_victims, struct cell_order, VICTIM_KEYS)

ORDER_BY(compare_cells, struct cell_order, FALLING(lost) VICTIM_KEYS FALLING(cell.ns) RISING(cell.culprit.kind)
         RISING(cell.culprit.machine) RISING(cell.culprit.tid) RISING_TEXT(culprit))

static void cells_sort(struct steal_cell *cell, size_t n, const struct strtab *names)
{
	struct cell_order *order = mem_new(n, sizeof *order);
	for (size_t i = 0; i < n; i++)
		order[i] = (struct cell_order){ .cell = cell[i], .victim = strtab_get(names, cell[i].victim.name),
			.culprit = strtab_get(names, cell[i].culprit.name) };
	ARRAY_SORT(order, n, compare_victims);
	for (size_t i = 0, k; i < n; i = k) {
		int64_t lost = 0;
		for (k = i; k < n && actor_same(&order[k].cell.victim, &order[i].cell.victim); k++)
			lost += order[k].cell.ns;
		for (size_t c = i; c < k; c++) {
			order[c].lost = lost;
			order[c].cell.share = (double)order[c].cell.ns / (double)lost;
		}
	}
	ARRAY_SORT(order, n, compare_cells);
	for (size_t i = 0; i < n; i++)
		cell[i] = order[i].cell;
	free(order);
}

/* Lists the rows. By machine: the rows whose lost time is summed for a machine. By thread: threads that execute no
 * vCPU. */
static void steal_list_rows(struct steal_query *s)
{
	const struct catalog *catalog = s->q.catalog;
	struct gap_rows all;
	if (s->is_only && s->only.kind != TARGET_MACHINE) {
		gap_rows_list(&s->rows, catalog, &s->only);
		return;
	}
	sums_rows_list(&all, catalog);
	for (size_t i = 0; i < all.len; i++) {
		const struct gap_row *row = &all.row[i];
		const enum steal_by by = s->by;
		bool counts = row_counts(s, row);
		s->by = STEAL_BY_MACHINE;
		counts = counts || (s->most && row_counts(s, row));
		s->by = by;
		if (counts && (!s->is_only || row->victim == s->only.index))
			*ARRAY_PUSH(s->rows.row, s->rows.len, s->rows.cap) = *row;
	}
	gap_rows_release(&all);
}

static int steal_join(struct query *q, struct error *err)
{
	struct steal_query *s = (struct steal_query *)q;
	struct steal_cells cells = { 0 };
	(void)err;
	if (window_gaps_join(&s->sums, q) == 0)
		return 0;
	steal_add_rows(s, &cells);
	if (s->most && cells.cells > s->most) {
		matrix_release(&cells);
		s->by = STEAL_BY_MACHINE;
		steal_add_rows(s, &cells);
	}
	cells_sort(cells.cell, cells.cells, &s->sums.store->names);
	s->answer = (struct steal){ .start = q->from, .end = q->to, .by = s->by, .victim = s->only,
		.is_one = s->is_only && s->only.kind != TARGET_MACHINE, .cell = cells.cell, .cells = cells.cells };
	cells.cell = NULL;
	matrix_release(&cells);
	names_copy(&s->sums.store->names, &s->answer.name, &s->answer.names);
	window_gaps_release(&s->sums, q->catalog);
	return 1;
}

static void steal_close(struct query *q)
{
	struct steal_query *s = (struct steal_query *)q;
	window_gaps_release(&s->sums, q->catalog);
	gap_rows_release(&s->rows);
	thread_groups_free(s->groups);
	steal_release(&s->answer);
}

static const struct query_kind steal_query = { steal_walk, steal_join, steal_close, ANSWER(struct steal_query, answer) };

struct query *steal_open(const struct catalog *catalog, const struct steal_options *o)
{
	struct steal_query *s = mem_new(1, sizeof *s);
	query_init(&s->q, &steal_query, catalog, o->from, o->to, 1);
	s->by = o->by;
	s->most = o->by == STEAL_BY_THREAD ? o->most : 0;
	s->err = (struct error)ERROR_INIT;
	s->grouping = o->by == STEAL_BY_THREAD ? o->grouping : GROUP_NONE;
	if (s->grouping != GROUP_NONE)
		s->groups = thread_groups_new(catalog, s->grouping, &s->err);
	s->is_only = o->only != NULL;
	if (o->only)
		s->only = *o->only;
	steal_list_rows(s);
	window_gaps_init(&s->sums, &s->rows);
	return &s->q;
}

void steal_release(struct steal *s)
{
	names_free(s->name, s->names);
	free(s->cell);
	*s = (struct steal){ 0 };
}
