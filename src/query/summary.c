/* Summary of victims: machines, then threads, by lost time.
 *
 * Cost: two exact sums per row, and no more without gaps. With gaps, one sweep along time finds the culprits of all rows
 * (steal_sweep.h; the window is divided among the processors), and each row's gaps are read once (the rows are divided).
 * With more rows than a sweep supports, the resolver finds the culprits gap by gap. The answer depends on neither division.
 * Memory: 8 bytes per gap of the current row, for exact percentiles. */
#include "query/query_internal.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/rank_select.h"
#include "query/stepped_query.h"
#include "query/culprit.h"
#include "query/steal_sweep.h"
#include "query/thread_groups.h"
#include "query/top_culprit.h"

#define NO_ROW SIZE_MAX

struct summary_part {
	const struct summary_query *query;
	struct resolver r;        /* used without a sweep */
	struct sweep sweep;
	bool open, swept;
	size_t row;               /* index of the current row; NO_ROW: none */
	struct gap_rows rows;     /* rows of which the current summary row is the sum */
	size_t sub;               /* index of the current one of these rows */
	bool walking;
	struct gap_walk walk;
	int64_t *length;          /* lengths of the gaps of the summary row, ns */
	size_t lengths, length_cap;
	struct actors culprits;
	int64_t *taken_ns;           /* by culprit, ns */
	size_t culprits_len, taken_cap;
};

struct summary_query {
	struct query q;
	struct target only;
	enum thread_grouping grouping;
	bool is_only, listed, gaps, sweep;
	struct gap_rows rows;     /* with a sweep: rows of all summary rows */
	size_t *first;            /* by summary row: index of its first row in `rows`; one more entry for the end */
	atomic_size_t next;       /* index of the next summary row to work on */
	atomic_size_t done;
	uint8_t *by;              /* by row: part that worked on it; the names of the row are names of that part */
	struct summary_part part[PARTS_MAX];
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
	for (size_t i = out->machines; i < rows; i++)
		out->row[i].first = end += out->row[i].threads;
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

/* Lists the rows of the sweep. */
static void summary_list_sweep(struct summary_query *s)
{
	size_t cap = 0;
	s->first = mem_new(s->answer.rows + 1, sizeof *s->first);
	for (size_t i = 0; i < s->answer.rows && s->rows.len <= SWEEP_ROWS; i++) {
		struct gap_rows of_row;
		row_list_parts(s, &s->answer.row[i], &of_row);
		for (size_t k = 0; k < of_row.len; k++)
			*ARRAY_PUSH(s->rows.row, s->rows.len, cap) = of_row.row[k];
		gap_rows_release(&of_row);
		s->first[i + 1] = s->rows.len;
	}
	s->sweep = s->rows.len <= SWEEP_ROWS;
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
	for (uint32_t i = 0; i < catalog->threads; i++) {
		struct target actor = { TARGET_THREAD, i };
		if (catalog->thread[i].tid != 0 && is_in_target(s, &actor) && gap_is_own_thread(catalog, i) &&
		    summary_add_row(s, &actor, err) < 0)
			return -1;
	}
	if (s->grouping != GROUP_NONE) {
		out->groups = thread_groups_new(catalog, s->grouping, err);
		if (!out->groups)
			return -1;
		summary_join_groups(s);
	}
	summary_sort(out, catalog, SUMMARY_BY_LOST);
	s->by = mem_new(out->rows, sizeof *s->by);
	if (s->gaps)
		summary_list_sweep(s);
	s->listed = true;
	return 0;
}

/* ---- Gaps of a row --------------------------------------------------------------------------------------------- --- */

static void part_add_culprit_ns(struct summary_part *part, const struct actor *culprit, int64_t ns)
{
	uint32_t id = actors_put(&part->culprits, culprit);
	while (part->culprits_len <= id)
		*ARRAY_PUSH(part->taken_ns, part->culprits_len, part->taken_cap) = 0;
	part->taken_ns[id] += ns;
}

/* Returns the group of a culprit. VMM time of a thread of the row's group counts as that of the row's thread. */
static struct actor row_culprit(const struct summary_query *s, const struct summary_row *row, const struct actor *culprit,
                                struct strtab *names)
{
	const struct thread_groups *g = s->answer.groups;
	struct actor out = *culprit;
	if (g && out.kind == FLOW_HYPERVISOR && row->group && out.machine >= 0 && out.tid > 0) {
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

static int part_add_culprit(void *arg, const struct resolution *p, int64_t start, int64_t end)
{
	struct summary_part *part = arg;
	const struct summary_query *s = part->query;
	const struct actor culprit = row_culprit(s, &s->answer.row[part->row], &p->actor, &part->r.names);
	part_add_culprit_ns(part, &culprit, end - start + 1);
	return 0;
}

/* Grows an array. Returns -1 if memory runs out: an error here, because the array grows with the trace. */
static int part_add_length(struct summary_part *part, int64_t ns, struct error *err)
{
	if (part->lengths == part->length_cap) {
		size_t n = part->length_cap ? 2 * part->length_cap : 256;
		int64_t *length = realloc(part->length, n * sizeof *length);
		if (!length)
			return error_set(err, STATUS_SYSTEM, "ask for a shorter window", "out of memory after %zu gaps", part->lengths);
		part->length = length;
		part->length_cap = n;
	}
	part->length[part->lengths++] = ns;
	return 0;
}

static int part_add_gap(bool is_swept, struct summary_part *part, struct summary_row *row, const struct gap *gap,
                        struct error *err)
{
	int64_t ns = gap->end - gap->start + 1;
	int64_t longest = row->gaps ? row->longest.end - row->longest.start + 1 : 0;
	if (ns > longest || (ns == longest && gap->start < row->longest.start))
		row->longest = *gap;
	row->gaps++;
	if (part_add_length(part, ns, err) < 0)
		return -1;
	return is_swept ? 0 : resolve_walk(&part->r, &gap->target, gap->start, gap->end, part_add_culprit, part);
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

static void part_end_row(const struct summary_query *s, struct summary_part *part, struct summary_row *row)
{
	size_t n = part->lengths;
	if (n) {
		const size_t p50 = percentile_index(n, 50), p90 = percentile_index(n, 90), p99 = percentile_index(n, 99);
		row->p99 = rank_select(part->length, n, p99);
		row->p90 = rank_select(part->length, p99 + 1, p90);
		row->p50 = rank_select(part->length, p90 + 1, p50);
	}
	if (!s->sweep)
		row_set_culprit(s->q.catalog, &part->culprits, part->taken_ns, row);
	gap_rows_release(&part->rows);
	actors_release(&part->culprits);
	part->culprits_len = part->lengths = part->sub = 0;
	part->row = NO_ROW;
}

/* Adds one gap, or starts or ends a row. */
static int part_step(struct summary_query *s, struct summary_part *part, struct error *err)
{
	struct summary_row *row = &s->answer.row[part->row];
	if (part->sub == part->rows.len) {
		part_end_row(s, part, row);
		atomic_fetch_add(&s->done, 1);
		return 0;
	}
	const struct target *sub = &part->rows.row[part->sub].target;
	struct gap gap = { .target = *sub };
	int r = part->walking ? gap_walk_next(&part->walk, &gap, err)
	                      : gap_walk_start(&part->walk, s->q.catalog, sub, s->q.from, s->q.to, err);
	if (r < 0 || (r && part->walking && part_add_gap(s->sweep, part, row, &gap, err) < 0))
		return -1;
	part->walking = r > 0;
	part->sub += r == 0;
	return 0;
}

static bool part_next_row(struct summary_query *s, size_t i)
{
	struct summary_part *part = &s->part[i];
	size_t row = atomic_fetch_add(&s->next, 1);
	if (row >= s->answer.rows)
		return false;
	part->row = row;
	s->by[row] = (uint8_t)i;
	row_list_parts(s, &s->answer.row[row], &part->rows);
	return true;
}

/* Finds the culprits of all rows in the part's window. Returns 1 at the end, 0 if the budget is spent, -1 on error. */
static int part_sweep(struct summary_query *s, struct summary_part *part, struct query_part *window, struct budget *budget,
                      struct error *err)
{
	int last;
	if (!part->open) {
		last = sweep_open(&part->sweep, s->q.catalog, &s->rows, false, window->from, window->to, err);
		part->open = true;
		if (last < 0)
			return -1;
	}
	do {
		budget->calls = 63;  /* a slice takes so long that the clock is read after each */
		last = sweep_step(&part->sweep);
	} while (last == 0 && !budget_spent(budget));
	window->done = (double)(part->sweep.at - window->from) / ((double)(window->to - window->from) + 1) / 2;
	part->swept = last > 0;
	return last;
}

static int summary_walk(struct query *q, size_t i, struct budget *budget, struct error *err)
{
	struct summary_query *s = (struct summary_query *)q;
	struct summary_part *part = &s->part[i];
	if (!s->listed)  /* called first with one part, to list the rows */
		return summary_list_rows(s, err) < 0 ? -1 : 1;
	if (s->sweep && !part->swept) {
		const int swept = part_sweep(s, part, &q->part[i], budget, err);
		if (swept <= 0)
			return swept;
	} else if (!part->open) {
		resolver_init(&part->r, q->catalog, q->from, q->to, err);
		part->query = s;
		part->open = true;
	}
	while (!budget_spent(budget)) {
		if (part->row == NO_ROW && !part_next_row(s, i))
			return 1;
		if (part_step(s, part, err) < 0)
			return -1;
	}
	const double done = (double)atomic_load(&s->done) / (double)(s->answer.rows + 1);
	q->part[i].done = s->sweep ? 0.5 + done / 2 : done;
	return 0;
}

/* ---- Answer ---------------------------------------------------------------------------------------------------- --- */

/* Copies the culprits of a part's sweep, with names of the first part. */
static struct actor *part_culprits(const struct summary_query *s, size_t i, struct strtab *names)
{
	const struct sweep *sweep = &s->part[i].sweep;
	struct actor *actor = mem_new(sweep->culprits.len, sizeof *actor);
	for (size_t k = 0; k < sweep->culprits.len; k++) {
		actor[k] = sweep->culprits.actor[k];
		if (i)
			actor[k].name = strtab_put(names, strtab_get(&sweep->r.names, actor[k].name));
	}
	return actor;
}

/* Sets the main culprits of all rows from the sums of the parts. */
static void summary_join_sweeps(struct summary_query *s)
{
	struct resolver *first = &s->part[0].sweep.r;
	struct actor *actor[PARTS_MAX] = { NULL };
	struct summary_part *sum_of = &s->part[0];
	for (size_t p = 0; p < s->q.parts; p++)
		actor[p] = part_culprits(s, p, &first->names);
	for (size_t i = 0; i < s->answer.rows; i++) {
		for (size_t row = s->first[i]; row < s->first[i + 1]; row++)
			for (size_t p = 0; p < s->q.parts; p++) {
				const struct row_sums *of = &s->part[p].sweep.sums_of[row];
				for (size_t k = 0; k < of->len; k++) {
					const struct actor *found = &actor[p][of->sum[k].culprit];
					const struct actor culprit = row_culprit(s, &s->answer.row[i], found, &first->names);
					part_add_culprit_ns(sum_of, &culprit, of->sum[k].ns);
				}
			}
		row_set_culprit(s->q.catalog, &sum_of->culprits, sum_of->taken_ns, &s->answer.row[i]);
		actors_release(&sum_of->culprits);
		sum_of->culprits_len = 0;
	}
	for (size_t p = 0; p < s->q.parts; p++)
		free(actor[p]);
	names_move(&first->names, &s->answer.name, &s->answer.names);
}

/* Moves the names of all parts to the names of the first part. */
static void summary_join_names(struct summary_query *s)
{
	struct resolver *first = &s->part[0].r;
	for (size_t i = 0; i < s->answer.rows; i++) {
		struct actor *culprit = &s->answer.row[i].culprit;
		if (s->by[i] != 0)
			culprit->name = strtab_put(&first->names, strtab_get(&s->part[s->by[i]].r.names, culprit->name));
	}
	names_move(&first->names, &s->answer.name, &s->answer.names);
}

static int summary_join(struct query *q, struct error *err)
{
	struct summary_query *s = (struct summary_query *)q;
	(void)err;
	if (q->from > q->to || !s->gaps)
		return 1;
	if (s->part[0].open) {
		if (s->sweep)
			summary_join_sweeps(s);
		else
			summary_join_names(s);
		return 1;
	}
	/* Called when all rows are listed: starts the search for their gaps, in parallel. */
	size_t workers = query_parts(q);
	q->parts = workers < s->answer.rows ? workers : 1;
	for (size_t i = 0; i < q->parts; i++)
		s->part[i].row = NO_ROW;
	query_restart(q);
	return 0;
}

static void summary_close(struct query *q)
{
	struct summary_query *s = (struct summary_query *)q;
	for (size_t i = 0; i < PARTS_MAX; i++) {
		struct summary_part *part = &s->part[i];
		if (part->r.catalog)
			resolver_release(&part->r);
		sweep_release(&part->sweep);
		gap_rows_release(&part->rows);
		actors_release(&part->culprits);
		free(part->length);
		free(part->taken_ns);
	}
	gap_rows_release(&s->rows);
	free(s->first);
	free(s->by);
	summary_release(&s->answer);
}

static const struct query_kind summary_query = { summary_walk, summary_join, summary_close };

struct query *summary_open(const struct catalog *catalog, const struct summary_options *o)
{
	struct summary_query *s = mem_new(1, sizeof *s);
	int64_t from = o->from > history_begin(catalog->h) ? o->from : history_begin(catalog->h);
	int64_t to = o->to < history_end(catalog->h) ? o->to : history_end(catalog->h);
	query_init(&s->q, &summary_query, catalog, from, to, 1);
	s->gaps = o->gaps;
	s->is_only = o->only != NULL;
	if (o->only)
		s->only = *o->only;
	s->answer = (struct summary){ .start = from, .end = to };
	s->grouping = o->grouping;
	return &s->q;
}

void summary_take(struct query *q, struct summary *out)
{
	struct summary_query *s = (struct summary_query *)q;
	*out = s->answer;
	out->gaps = s->gaps;
	s->answer = (struct summary){ 0 };
}

int summary_of(const struct catalog *catalog, const struct summary_options *options, struct summary *out, struct error *err)
{
	struct query *q = summary_open(catalog, options);
	int status = query_run(q, NULL, err);
	*out = (struct summary){ 0 };
	if (status == 0)
		summary_take(q, out);
	query_close(q);
	return status;
}

void summary_release(struct summary *s)
{
	for (size_t i = 0; i < s->names; i++)
		free(s->name[i]);
	free(s->name);
	free(s->row);
	free(s->member);
	thread_groups_free(s->groups);
	*s = (struct summary){ 0 };
}
