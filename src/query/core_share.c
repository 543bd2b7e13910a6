/* Shared cores, frequency, and moves of a list of targets.
 *
 * Cost: one sweep along time (steal_sweep.h), which resolves each pCPU once, and one walk over the running intervals of
 * each row. The window is divided among the processors; the sums of the parts are exact, so the answer does not
 * depend on their number. */
#include "base/base.h"
#include "query/core_sweep.h"
#include "query/counter_walk.h"

#include "query/stepped_query.h"

struct core_query {
	struct query q;
	struct target *target;
	size_t targets;
	struct gap_rows rows;      /* rows of all targets, each once */
	size_t *row_of;            /* rows of target i: row_of[first[i] .. first[i + 1] - 1], indexes into rows.row */
	size_t *first, row_ofs, row_of_cap;
	int64_t *memory_node;      /* by machine; -1: unknown */
	struct core_sweep part[PARTS_MAX];
	bool open[PARTS_MAX];
	struct core_share answer;
	size_t sharer_cap;
};

/* ---- Rows */

size_t core_share_targets(const struct catalog *catalog, const struct target *only, struct target **out)
{
	struct gap_rows rows;
	gap_rows_list(&rows, catalog, only);
	*out = mem_new(rows.len, sizeof **out);
	for (size_t i = 0; i < rows.len; i++)
		(*out)[i] = rows.row[i].target;
	const size_t n = rows.len;
	gap_rows_release(&rows);
	return n;
}

ORDER_BY(compare_shared, struct core_row, FALLING(time.shared) RISING(target.kind) RISING(target.index))

void core_share_sort(struct core_share *s)
{
	ARRAY_SORT(s->row, s->rows, compare_shared);
}

struct core_lister { struct core_query *c; struct map known; };

static int list_row(void *arg, const struct target *row)
{
	struct core_lister *l = arg;
	struct core_query *c = l->c;
	bool is_new;
	uint64_t *index = map_put(&l->known, (uint64_t)row->kind << 32 | row->index, &is_new);
	if (is_new) {
		*index = c->rows.len;
		*ARRAY_PUSH(c->rows.row, c->rows.len, c->rows.cap) = (struct gap_row){ *row, target_machine(c->q.catalog, row) };
	}
	*ARRAY_PUSH(c->row_of, c->row_ofs, c->row_of_cap) = (size_t)*index;
	return 0;
}

static void list_rows(struct core_query *c)
{
	struct core_lister l = { .c = c };
	c->first = mem_new(c->targets + 1, sizeof *c->first);
	for (size_t i = 0; i < c->targets; i++) {
		gap_each_row(c->q.catalog, &c->target[i], list_row, &l);
		c->first[i + 1] = c->row_ofs;
	}
	map_release(&l.known);
}

static int64_t machine_attribute(const struct catalog *catalog, uint32_t machine, enum machine_attr attr)
{
	char path[1000];
	struct interval iv = { 0, 0, HISTORY_NULL };
	history_path(path, sizeof path, SCHEMA_VMS, catalog->machine[machine].name, machine_schema[attr].name, (char *)NULL);
	const uint32_t id = history_find(catalog->h, path);
	if (id != HISTORY_NONE && history_type(catalog->h, id) == HISTORY_INT)
		(void)history_stab(catalog->h, id, history_last(catalog->h), &iv, NULL);
	return iv.value;
}

/* Reads the nodes of the VMs' memory, and the facts that decide on an answer's columns. */
static void read_facts(struct core_query *c)
{
	const struct catalog *catalog = c->q.catalog;
	int32_t first = -1;
	bool nodes = false, memory = false;
	c->memory_node = mem_new(catalog->machines, sizeof *c->memory_node);
	for (uint32_t m = 0; m < catalog->machines; m++) {
		c->memory_node[m] = catalog->machine[m].kind == MACHINE_VM ? machine_attribute(catalog, m, MACHINE_MEMORY) : -1;
		c->memory_node[m] = c->memory_node[m] < 0 ? -1 : c->memory_node[m];
		memory = memory || c->memory_node[m] >= 0;
	}
	for (uint32_t i = 0; i < catalog->cpus; i++) {
		const struct catalog_cpu *cpu = &catalog->cpu[i];
		nodes = nodes || (first >= 0 && cpu->node_number >= 0 && cpu->node_number != first);
		first = first < 0 ? cpu->node_number : first;
		c->answer.frequencies = c->answer.frequencies || (cpu->khz != HISTORY_NONE && cpu->base_frequency);
	}
	c->answer.nodes = nodes && memory;
	c->answer.siblings = catalog->has_siblings;
	c->answer.cores = catalog->has_cores;
	c->answer.counters = catalog->has_counters;
}

/* ---- Parts */

static int core_walk(struct query *q, size_t i, struct budget *budget, struct error *err)
{
	struct core_query *c = (struct core_query *)q;
	struct core_sweep *part = &c->part[i];
	struct query_part *window = &q->part[i];
	int last = 0;
	if (!c->open[i]) {
		c->open[i] = true;
		last = core_sweep_open(part, q->catalog, &c->rows, c->memory_node, window->from, window->to, err);
	}
	while (last == 0) {
		budget->calls = 63;  /* a slice takes so long that the clock is read after each */
		last = core_sweep_step(part);
		if (last == 0 && budget_spent(budget))
			break;
	}
	window->done = (double)(part->sweep.at - window->from) / ((double)(window->to - window->from) + 1);
	return last;
}

/* ---- Answer */

struct sharer_sums {
	struct actors sharers;
	int64_t *ns;
	size_t len, cap;
};

static void add_time(struct core_time *to, const struct core_time *from)
{
	int64_t *a = &to->ran;
	const int64_t *b = &from->ran;
	for (size_t i = 0; i < sizeof *to / sizeof *a; i++)
		a[i] += b[i];
}

/* Adds the sums of one row over all parts. */
static void add_row(struct core_query *c, size_t row, struct core_time *time, struct sharer_sums *sums)
{
	struct strtab *names = &c->part[0].sweep.r.names;
	int last = -1;
	for (size_t p = 0; p < c->q.parts; p++) {
		const struct core_sweep_row *part = &c->part[p].row[row];
		const struct sweep *sweep = &c->part[p].sweep;
		add_time(time, &part->time);
		core_time_count_move(c->q.catalog, time, last, part->first_cpu);
		last = part->last_cpu < 0 ? last : part->last_cpu;
		for (size_t i = 0; i < sweep->sums_of[row].len; i++) {
			const struct culprit_ns *sum = &sweep->sums_of[row].sum[i];
			struct actor sharer = sweep->culprits.actor[sum->culprit];
			sharer.name = p ? strtab_put(names, strtab_get(&sweep->r.names, sharer.name)) : sharer.name;
			const uint32_t id = actors_put(&sums->sharers, &sharer);
			while (sums->len <= id)
				*ARRAY_PUSH(sums->ns, sums->len, sums->cap) = 0;
			sums->ns[id] += sum->ns;
		}
	}
}

ORDER_BY(compare_sharers, struct core_sharer, FALLING(ns) RISING(actor.machine) RISING(actor.tid) RISING(actor.name))

static void join_target(struct core_query *c, size_t i)
{
	struct core_share *out = &c->answer;
	struct sharer_sums sums = { 0 };
	struct core_row *row = &out->row[i];
	*row = (struct core_row){ .target = c->target[i], .sharer = out->sharers };
	for (size_t k = c->first[i]; k < c->first[i + 1]; k++)
		add_row(c, c->row_of[k], &row->time, &sums);
	for (size_t k = 0; k < sums.len; k++)
		*ARRAY_PUSH(out->sharer, out->sharers, c->sharer_cap) =
			(struct core_sharer){ sums.sharers.actor[k], sums.ns[k], { 0 } };
	row->sharers = sums.len;
	ARRAY_SORT(out->sharer + row->sharer, sums.len, compare_sharers);
	actors_release(&sums.sharers);
	free(sums.ns);
}

/* Adds the counts of a row to those of the target, and to its sharers. */
static void add_counts(struct core_query *c, const struct counter_walk *w, size_t row, struct core_row *to)
{
	const struct strtab *names = &c->part[0].sweep.r.names;
	core_counts_add(&to->counts, &w->row[row].all);
	core_counts_add(&to->alone, &w->row[row].alone);
	core_counts_add(&to->shared, &w->row[row].shared);
	for (size_t i = 0; i < w->sharer_len; i++) {
		const struct actor *actor = &w->sharer[i].actor;
		for (size_t k = to->sharer; w->sharer[i].row == row && k < to->sharer + to->sharers; k++) {
			struct core_sharer *sharer = &c->answer.sharer[k];
			struct actor same = *actor;
			same.name = sharer->actor.name;
			if (actor_same(&same, &sharer->actor) &&
			    strcmp(strtab_get(&w->r.names, actor->name), strtab_get(names, sharer->actor.name)) == 0)
				core_counts_add(&sharer->counts, &w->sharer[i].counts);
		}
	}
}

static int join_counters(struct core_query *c, struct error *err)
{
	struct counter_walk w;
	const int rc = counter_walk_run(&w, c->q.catalog, &c->rows, c->q.from, c->q.to, err);
	for (size_t i = 0; rc == 0 && i < c->targets; i++)
		for (size_t k = c->first[i]; k < c->first[i + 1]; k++)
			add_counts(c, &w, c->row_of[k], &c->answer.row[i]);
	counter_walk_release(&w);
	return rc;
}

static int core_join(struct query *q, struct error *err)
{
	struct core_query *c = (struct core_query *)q;
	c->answer.start = q->from;
	c->answer.end = q->to;
	c->answer.row = mem_new(c->targets, sizeof *c->answer.row);
	c->answer.rows = c->targets;
	for (size_t i = 0; i < c->targets; i++)
		join_target(c, i);
	if (q->parts && c->answer.counters && join_counters(c, err) < 0)
		return -1;
	if (q->parts)
		names_move(&c->part[0].sweep.r.names, &c->answer.name, &c->answer.names);
	return 1;
}

static void core_close(struct query *q)
{
	struct core_query *c = (struct core_query *)q;
	for (size_t i = 0; i < PARTS_MAX; i++)
		if (c->open[i])
			core_sweep_release(&c->part[i]);
	gap_rows_release(&c->rows);
	free(c->target);
	free(c->row_of);
	free(c->first);
	free(c->memory_node);
	core_share_release(&c->answer);
}

static const struct query_kind core_query = { core_walk, core_join, core_close, ANSWER(struct core_query, answer) };

struct query *core_share_open(const struct catalog *catalog, const struct target *target, size_t n, int64_t from,
                              int64_t to)
{
	struct core_query *c = mem_new(1, sizeof *c);
	query_init(&c->q, &core_query, catalog, from, to, 0);
	c->target = mem_new(n, sizeof *c->target);
	c->targets = n;
	for (size_t i = 0; i < n; i++)
		c->target[i] = target[i];
	list_rows(c);
	read_facts(c);
	return &c->q;
}

struct query *core_share_open_summary(const struct catalog *catalog, const struct summary *s)
{
	if ((!catalog->has_cores && !catalog->has_counters) || s->groups)
		return NULL;
	struct target *target = mem_new(s->rows, sizeof *target);
	for (size_t i = 0; i < s->rows; i++)
		target[i] = s->row[i].target;
	struct query *q = core_share_open(catalog, target, s->rows, s->start, s->end);
	free(target);
	return q;
}

void core_share_release(struct core_share *s)
{
	names_free(s->name, s->names);
	free(s->row);
	free(s->sharer);
	*s = (struct core_share){ 0 };
}
