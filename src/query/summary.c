/* Summary of victims: machines, then threads, by lost time.
 *
 * Cost: two exact sums per row; with gaps also the sums of all rows (window_gaps.h). */
#include "query/query_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "query/stepped_query.h"
#include "query/culprit.h"
#include "query/thread_groups.h"
#include "query/top_culprit.h"
#include "query/window_gaps.h"

struct summary_query {
	struct query q;
	struct summary_options o;
	struct target only;
	bool is_only, listed;
	struct gap_rows rows;     /* the vCPUs and threads of all rows */
	struct window_gaps sums;
	struct actors culprits;   /* of the current row */
	int64_t *taken_ns;        /* by culprit, ns */
	size_t culprits_len, taken_cap;
	struct summary answer;
	size_t cap;
};

/* ---- Rows and their demands ------------------------------------------------------------------------------------ --- */

static int summary_add_row(struct summary_query *s, const struct target *actor, struct error *err)
{
	const struct catalog *catalog = s->q.catalog;
	struct summary_row row = { .target = *actor, .threads = actor->kind == TARGET_THREAD, .group_tid = -1,
		.culprit = { -1, -1, 0, FLOW_RUNNING, 0 } };
	if (demand_of(catalog, actor, s->q.from, s->q.to, &row.demand, err) < 0)
		return -1;
	if (row.demand.alive == 0)
		return 0;
	if (catalog_lifetime(catalog, actor, &row.start, &row.end, err) < 0)
		return -1;
	row.start = row.start < s->q.from ? s->q.from : row.start;
	row.end = row.end > s->q.to ? s->q.to : row.end;
	*ARRAY_PUSH(s->answer.row, s->answer.rows, s->cap) = row;
	return 0;
}

static bool is_in_target(const struct summary_query *s, const struct target *actor)
{
	return !s->is_only || target_machine(s->q.catalog, actor) == target_machine(s->q.catalog, &s->only);
}

static void demand_add(struct demand *sum, const struct demand *d)
{
	sum->ran += d->ran;
	sum->lost += d->lost;
	sum->vmm_ns += d->vmm_ns;
	sum->slept += d->slept;
	sum->alive += d->alive;
	sum->rows += d->rows;
}

/* Joins a row of a thread to the row of its group. */
static void row_join(struct summary_row *group, const struct summary_row *row)
{
	if (row->demand.lost > group->most)
		group->target = row->target;
	group->most = row->demand.lost > group->most ? row->demand.lost : group->most;
	demand_add(&group->demand, &row->demand);
	group->start = row->start < group->start ? row->start : group->start;
	group->end = row->end > group->end ? row->end : group->end;
	group->threads++;
}

/* Joins the rows of threads to rows of groups. */
static void summary_join_groups(struct summary_query *s)
{
	struct summary *out = &s->answer;
	const struct thread_groups *g = out->groups;
	size_t *row_of = mem_new(g->group.len, sizeof *row_of), rows = out->machines;  /* row_of: index + 1 */
	uint32_t *group = mem_new(out->rows, sizeof *group), *thread = mem_new(out->rows, sizeof *thread);
	for (size_t i = out->machines; i < out->rows; i++) {
		const struct summary_row row = out->row[i];
		thread[i] = row.target.index;
		group[i] = g->of[thread[i]];
		if (row_of[group[i]]) {
			row_join(&out->row[row_of[group[i]] - 1], &row);
			continue;
		}
		const struct actor *p = &g->group.actor[group[i]];
		out->row[rows] = row;
		out->row[rows].most = row.demand.lost;
		out->row[rows].group = strtab_get(&g->names, p->name);
		out->row[rows++].group_tid = p->tid;
		row_of[group[i]] = rows;
	}
	out->member = mem_new(out->rows, sizeof *out->member);
	uint32_t end = 0;
	for (size_t i = out->machines; i < rows; i++) {
		out->row[i].first = end += out->row[i].threads;
		if (out->row[i].threads == 1 && !(s->o.grouping == GROUP_BY_CGROUP && *out->row[i].group))
			out->row[i].group = NULL;
	}
	for (size_t i = out->rows; i-- > out->machines;)  /* moves `first` from the end of the group to its start */
		out->member[--out->row[row_of[group[i]] - 1].first] = thread[i];
	out->rows = rows;
	free(row_of);
	free(group);
	free(thread);
}

/* Lists the vCPUs and threads of which a row is the sum. */
static void row_list_parts(const struct summary_query *s, const struct summary_row *row, struct gap_rows *out)
{
	const uint32_t machine = target_machine(s->q.catalog, &row->target);
	if (!row->group) {
		gap_rows_list(out, s->q.catalog, &row->target);
		return;
	}
	*out = (struct gap_rows){ 0 };
	for (uint32_t i = row->first; i < row->first + row->threads; i++)
		*ARRAY_PUSH(out->row, out->len, out->cap) = (struct gap_row){ { TARGET_THREAD, s->answer.member[i] }, machine };
}

/* Lists the vCPUs and threads of the rows whose gaps are wanted. */
static void summary_list_parts(struct summary_query *s)
{
	const struct catalog *catalog = s->q.catalog;
	const bool reads_all = s->o.top == 0 || summary_order_reads_gaps(s->o.by);
	struct gap_rows all, parts;
	bool *wanted = mem_new(catalog->cpus + catalog->threads, sizeof *wanted);
	const size_t machines = s->o.machines_only ? 0 : s->answer.machines;
	size_t n = 0;
	for (size_t i = 0; i < s->answer.rows; i++) {
		struct summary_row *row = &s->answer.row[i];
		n += i >= machines && row->demand.lost > 0;
		row->has_gaps = reads_all || i < machines || n <= s->o.top;
		row_list_parts(s, row, &parts);
		for (size_t k = 0; k < parts.len && row->has_gaps; k++)
			wanted[gap_row_number(catalog, &parts.row[k].target)] = true;
		gap_rows_release(&parts);
	}
	sums_rows_list(&all, catalog);
	for (size_t i = 0; i < all.len; i++)
		if (wanted[gap_row_number(catalog, &all.row[i].target)])
			*ARRAY_PUSH(s->rows.row, s->rows.len, s->rows.cap) = all.row[i];
	gap_rows_release(&all);
	free(wanted);
}

static int summary_list_rows(struct summary_query *s, struct error *err)
{
	const struct catalog *catalog = s->q.catalog;
	struct summary *out = &s->answer;
	for (uint32_t i = 0; i < catalog->machines; i++) {
		struct target actor = { TARGET_MACHINE, i };
		if (is_in_target(s, &actor) && summary_add_row(s, &actor, err) < 0)
			return -1;
	}
	out->machines = out->rows;
	for (uint32_t i = 0; i < catalog->threads && !s->o.machines_only; i++) {
		struct target actor = { TARGET_THREAD, i };
		if (catalog->thread[i].tid != 0 && is_in_target(s, &actor) && gap_is_own_thread(catalog, i) &&
		    summary_add_row(s, &actor, err) < 0)
			return -1;
	}
	if (s->o.grouping != GROUP_NONE) {
		out->groups = thread_groups_new(catalog, s->o.grouping, err);
		if (!out->groups)
			return -1;
		summary_join_groups(s);
	}
	summary_sort(out, catalog, s->o.by);
	if (s->o.gaps)
		summary_list_parts(s);
	s->listed = true;
	return 0;
}

/* ---- Gaps of a row --------------------------------------------------------------------------------------------- --- */

static void add_culprit_ns(struct summary_query *s, const struct actor *culprit, int64_t ns)
{
	uint32_t id = actors_put(&s->culprits, culprit);
	while (s->culprits_len <= id)
		*ARRAY_PUSH(s->taken_ns, s->culprits_len, s->taken_cap) = 0;
	s->taken_ns[id] += ns;
}

/* Returns the group of a culprit. VMM time of a thread of the row's group counts as that of the row's thread. */
static struct actor row_culprit(const struct summary_query *s, const struct summary_row *row, const struct actor *culprit,
                                struct strtab *names)
{
	const struct thread_groups *g = s->answer.groups;
	struct actor out = *culprit;
	if (g && out.kind == FLOW_HYPERVISOR && row->threads && out.machine >= 0 && out.tid > 0) {
		const int thread = catalog_find_thread(s->q.catalog, (uint32_t)out.machine, out.tid);
		if (thread >= 0 && g->of[thread] == g->of[row->target.index]) {
			out.tid = s->q.catalog->thread[row->target.index].tid;
			out.name = 0;
			return out;
		}
	}
	actor_set_group(g, &out, names);
	return out;
}

/* Sets the main culprit of a row. culprits, ns: actors that took time from it, and how much. */
static void row_set_culprit(const struct catalog *catalog, const struct actors *culprits, const int64_t *ns,
                            struct summary_row *row)
{
	if (row->gaps) {
		struct top_culprit culprit;
		culprit_find(catalog, &row->target, culprits->actor, ns, culprits->len, &culprit);
		row->culprit = culprit.actor;
		row->culprit_ns = culprit.ns;
	}
	if (row->target.kind == TARGET_MACHINE && row->demand.vmm_ns > row->culprit_ns) {
		row->culprit = (struct actor){ (int32_t)row->target.index, -1, 0, FLOW_HYPERVISOR, 0 };
		row->culprit_ns = row->demand.vmm_ns;
	}
}

/* Sets the longest gap of a row, and its state. */
static int row_set_longest(const struct summary_query *s, struct summary_row *row, const struct target *target,
                           const struct gap_sum *sum, struct error *err)
{
	struct gap_walk walk;
	row->longest = (struct gap){ .target = *target };
	const int64_t start = sum->longest_start, end = start + sum->longest - 1;
	const int found = gap_walk_start(&walk, s->q.catalog, target, start, end, err);
	if (found > 0 && gap_walk_next(&walk, &row->longest, err) < 0)
		return -1;
	row->longest.start = start;
	row->longest.end = end;
	return found < 0 ? -1 : 0;
}

/* Sets what the sums show about a row. */
static int row_set_sums(struct summary_query *s, struct summary_row *row, struct error *err)
{
	struct gap_rows parts;
	struct gap_sum all = { 0 };
	struct target longest = row->target;
	row_list_parts(s, row, &parts);
	for (size_t i = 0; i < parts.len; i++) {
		const struct gap_sum *sum = window_gaps_of(&s->sums, s->q.catalog, &parts.row[i].target);
		const int64_t before = all.longest, start = all.longest_start;
		gap_sum_add(&all, sum);
		if (all.longest != before || all.longest_start != start)
			longest = parts.row[i].target;
	}
	gap_rows_release(&parts);
	for (uint32_t k = 0; k < all.culprits; k++) {
		const struct actor *found = &s->sums.store->actors.actor[all.culprit[k].culprit];
		const struct actor culprit = row_culprit(s, row, found, &s->sums.store->names);
		add_culprit_ns(s, &culprit, all.culprit[k].ns);
	}
	row->gaps = all.gaps;
	row->p50 = gap_sum_percentile(&all, 50);
	row->p90 = gap_sum_percentile(&all, 90);
	row->p99 = gap_sum_percentile(&all, 99);
	row_set_culprit(s->q.catalog, &s->culprits, s->taken_ns, row);
	actors_release(&s->culprits);
	s->culprits_len = 0;
	const int status = all.gaps ? row_set_longest(s, row, &longest, &all, err) : 0;
	gap_sum_release(&all);
	return status;
}

static int summary_walk(struct query *q, size_t i, struct budget *budget, struct error *err)
{
	struct summary_query *s = (struct summary_query *)q;
	if (!s->listed && summary_list_rows(s, err) < 0)
		return -1;
	return s->o.gaps ? window_gaps_walk(&s->sums, q, i, budget, err) : 1;
}

static int summary_join(struct query *q, struct error *err)
{
	struct summary_query *s = (struct summary_query *)q;
	if (q->from > q->to || !s->o.gaps)
		return 1;
	if (window_gaps_join(&s->sums, q) == 0)
		return 0;
	for (size_t i = 0; i < s->answer.rows; i++)
		if (s->answer.row[i].has_gaps && row_set_sums(s, &s->answer.row[i], err) < 0)
			return -1;
	names_copy(&s->sums.store->names, &s->answer.name, &s->answer.names);
	window_gaps_release(&s->sums, q->catalog);
	return 1;
}

static void summary_close(struct query *q)
{
	struct summary_query *s = (struct summary_query *)q;
	window_gaps_release(&s->sums, q->catalog);
	gap_rows_release(&s->rows);
	actors_release(&s->culprits);
	free(s->taken_ns);
	summary_release(&s->answer);
}

static const struct query_kind summary_query = {
	summary_walk, summary_join, summary_close, ANSWER(struct summary_query, answer)
};

struct query *summary_open(const struct catalog *catalog, const struct summary_options *o)
{
	struct summary_query *s = mem_new(1, sizeof *s);
	query_init(&s->q, &summary_query, catalog, o->from, o->to, 1);
	s->o = *o;
	s->is_only = o->only != NULL;
	if (o->only)
		s->only = *o->only;
	s->answer = (struct summary){ .start = s->q.from, .end = s->q.to, .gaps = o->gaps };
	window_gaps_init(&s->sums, &s->rows);
	return &s->q;
}

void summary_release(struct summary *s)
{
	names_free(s->name, s->names);
	free(s->row);
	free(s->member);
	thread_groups_free(s->groups);
	*s = (struct summary){ 0 };
}
