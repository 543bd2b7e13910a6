/* Fills the tables core_time and core_sharer; they have no rows if the host's topology is unknown. */
#include "base/base.h"
#include "export/fill.h"

/* A target's cells: CPU number, TID, name. */
struct target_cells { struct table_cell machine, cpu, tid, name; };

static struct target_cells cells_of(const struct filler *f, const struct target *target, char name[FILL_TEXT])
{
	const struct catalog *catalog = f->catalog;
	if (target->kind == TARGET_CPU)
		return (struct target_cells){ CELL_TEXT(f->machine[catalog->cpu[target->index].machine]),
			CELL_INT(catalog->cpu[target->index].number), CELL_NONE, CELL_NONE };
	const struct catalog_thread *th = &catalog->thread[target->index];
	text_escape(name, FILL_TEXT, catalog_longest_name(catalog, target->index));
	return (struct target_cells){ CELL_TEXT(f->machine[th->machine]), CELL_NONE, CELL_INT(th->tid), CELL_TEXT(name) };
}

/* Computes the rows of all vCPUs and of all threads that are no vCPUs. Returns 1, 0 if the topology is unknown, -1 on
 * error. */
static int compute(struct filler *f, struct core_share *out)
{
	struct target *target;
	if (!f->catalog->has_cores)
		return 0;
	const size_t n = core_share_targets(f->catalog, NULL, &target);
	struct query *q = core_share_open(f->catalog, target, n, history_begin(f->h), history_end(f->h));
	const int rc = query_answer(q, out, f->err);
	free(target);
	return rc < 0 ? -1 : 1;
}

static struct table_cell cell_of_count(const struct core_share *s, int64_t count)
{
	return s->counters ? CELL_INT(count) : CELL_NONE;
}

int fill_core_time(struct filler *f)
{
	struct core_share s;
	char name[FILL_TEXT];
	int rc = compute(f, &s);
	if (rc <= 0)
		return rc;
	rc = 0;
	for (size_t i = 0; i < s.rows && rc == 0; i++) {
		const struct core_time *t = &s.row[i].time;
		const struct target_cells of = cells_of(f, &s.row[i].target, name);
		if (t->ran == 0)
			continue;
		rc = fill_row(f, (struct table_cell[CORE_TIME_FIELD_COUNT]){
			[COL_CORE_TIME_MACHINE] = of.machine, [COL_CORE_TIME_CPU] = of.cpu, [COL_CORE_TIME_TID] = of.tid,
			[COL_CORE_TIME_NAME] = of.name, [COL_CORE_TIME_RAN] = CELL_INT(t->ran),
			[COL_CORE_TIME_ALONE] = CELL_INT(t->alone), [COL_CORE_TIME_SHARED] = CELL_INT(t->shared),
			[COL_CORE_TIME_UNKNOWN] = CELL_INT(t->unknown), [COL_CORE_TIME_SLOW] = CELL_INT(t->slow),
			[COL_CORE_TIME_CLOCKED] = CELL_INT(t->clocked), [COL_CORE_TIME_REMOTE] = CELL_INT(t->remote),
			[COL_CORE_TIME_PLACED] = CELL_INT(t->placed), [COL_CORE_TIME_MOVES] = CELL_INT(t->moves),
			[COL_CORE_TIME_LLC_MOVES] = CELL_INT(t->llc_moves), [COL_CORE_TIME_NODE_MOVES] = CELL_INT(t->node_moves),
			[COL_CORE_TIME_COUNTED] = cell_of_count(&s, s.row[i].counts.ns),
			[COL_CORE_TIME_INSTRUCTIONS] = cell_of_count(&s, s.row[i].counts.instructions),
			[COL_CORE_TIME_CYCLES] = cell_of_count(&s, s.row[i].counts.cycles) });
	}
	core_share_release(&s);
	return rc;
}

int fill_core_sharers(struct filler *f)
{
	struct core_share s;
	char name[FILL_TEXT], sharer_name[FILL_TEXT];
	int rc = compute(f, &s);
	if (rc <= 0)
		return rc;
	rc = 0;
	for (size_t i = 0; i < s.rows && rc == 0; i++) {
		const struct target_cells of = cells_of(f, &s.row[i].target, name);
		for (size_t k = s.row[i].sharer; k < s.row[i].sharer + s.row[i].sharers && rc == 0; k++) {
			const struct actor *sharer = &s.sharer[k].actor;
			text_escape(sharer_name, sizeof sharer_name, s.name[sharer->name]);
			rc = fill_row(f, (struct table_cell[CORE_SHARER_FIELD_COUNT]){
				[COL_CORE_SHARER_MACHINE] = of.machine, [COL_CORE_SHARER_CPU] = of.cpu, [COL_CORE_SHARER_TID] = of.tid,
				[COL_CORE_SHARER_NAME] = of.name, [COL_CORE_SHARER_KIND] = CELL_TEXT(flow_kind_name[sharer->kind]),
				[COL_CORE_SHARER_WITH_MACHINE] = fill_machine(f, sharer->machine),
				[COL_CORE_SHARER_WITH_TID] = fill_number(sharer->tid),
				[COL_CORE_SHARER_WITH_NAME] = CELL_TEXT(sharer_name), [COL_CORE_SHARER_NS] = CELL_INT(s.sharer[k].ns),
				[COL_CORE_SHARER_COUNTED] = cell_of_count(&s, s.sharer[k].counts.ns),
				[COL_CORE_SHARER_INSTRUCTIONS] = cell_of_count(&s, s.sharer[k].counts.instructions),
				[COL_CORE_SHARER_CYCLES] = cell_of_count(&s, s.sharer[k].counts.cycles) });
		}
	}
	core_share_release(&s);
	return rc;
}
