#include "query/flow_builder.h"

#include <limits.h>

#include "base/base.h"
#include "base/int128.h"
#include "base/bisect.h"
#include "query/query_internal.h"

void flow_builder_init(struct flow_builder *g, int64_t from, int64_t to, const struct flow_options *options, bool is_part,
                       struct error *err)
{
	*g = (struct flow_builder){ .options = *options, .window_start = from, .window_end = to, .is_part = is_part,
		.column = UINT_MAX, .column_end = INT64_MIN, .err = err };
	g->flow.columns = options->columns;
}

void flow_builder_release(struct flow_builder *g)
{
	flow_release(&g->flow);
	actors_release(&g->actors);
	map_release(&g->cpu_of);
	free(g->latest);
	*g = (struct flow_builder){ 0 };
}

size_t flow_interval_at(const struct flow *f, int64_t t)
{
	size_t at;
	BISECT(at, f->intervals, f->interval[at].start <= t);
	return at > 0 ? at - 1 : 0;
}

int64_t flow_column(int64_t start, int64_t end, unsigned c, unsigned n)
{
	int128 span = (int128)end - start + 1;
	return start + (int64_t)(span * c / n);
}

/* Grows an array. Returns -1 if memory runs out: an error here, because the array grows with the trace. */
static int builder_grow(struct flow_builder *g, void **array, size_t *cap, size_t len, size_t size)
{
	if (len < *cap)
		return 0;
	size_t n = *cap ? 2 * *cap : 64;
	void *p = n < SIZE_MAX / size ? realloc(*array, n * size) : NULL;
	if (!p)
		return error_set(g->err, STATUS_SYSTEM, "ask for a shorter window",
		                 "execution flow: out of memory after %zu intervals", len);
	*array = p;
	*cap = n;
	return 0;
}

static uint32_t builder_entry(struct flow_builder *g, const struct actor *actor)
{
	struct flow *f = &g->flow;
	uint32_t e = actors_put(&g->actors, actor);
	if (e < f->entries)
		return e;
	*ARRAY_PUSH(f->entry, f->entries, g->entry_cap) = (struct flow_entry){ .actor = *actor };
	size_t len = e;
	*ARRAY_PUSH(g->latest, len, g->latest_cap) = 0;
	return e;
}

static int builder_add_cell(struct flow_builder *g, const struct flow_cell *cell)
{
	struct flow *f = &g->flow;
	uint32_t *latest = &g->latest[cell->entry];
	if (*latest && f->cell[*latest - 1].column == cell->column) {
		f->cell[*latest - 1].ns += cell->ns;
		return 0;
	}
	void *array = f->cell;
	int status = builder_grow(g, &array, &g->cell_cap, f->cells, sizeof *f->cell);
	f->cell = array;
	if (status < 0)
		return -1;
	f->cell[f->cells++] = *cell;
	*latest = (uint32_t)f->cells;
	return 0;
}

static int builder_add_cells(struct flow_builder *g, const struct flow_interval *iv)
{
	unsigned n = g->options.columns;
	for (int64_t t = iv->start; n && t <= iv->end; t = g->column_end + 1) {
		while (t > g->column_end) {
			g->column++;
			g->column_end = flow_column(g->window_start, g->window_end, g->column + 1, n) - 1;
		}
		int64_t last = g->column_end < iv->end ? g->column_end : iv->end;
		if (builder_add_cell(g, &(struct flow_cell){ iv->entry, g->column, last - t + 1 }) < 0)
			return -1;
		if (last == iv->end)
			break;
	}
	return 0;
}

static int builder_grow_intervals(struct flow_builder *g)
{
	void *array = g->flow.interval;
	int status = builder_grow(g, &array, &g->interval_cap, g->flow.intervals, sizeof *g->flow.interval);
	g->flow.interval = array;
	return status;
}

static int builder_keep_interval(struct flow_builder *g, const struct flow_interval *iv)
{
	struct flow *f = &g->flow;
	if (g->too_many || f->intervals == g->options.intervals) {
		g->too_many = true;
		f->intervals = 0;
		return 0;
	}
	if (f->intervals == g->interval_cap && builder_grow_intervals(g) < 0)
		return -1;
	f->interval[f->intervals++] = *iv;
	return 0;
}

static void entry_add_longest(struct flow_entry *e, int64_t start, int64_t ns, int16_t pcpu)
{
	if (ns <= e->longest.ns)
		return;
	e->longest.start = start;
	e->longest.ns = ns;
	e->longest.pcpu = pcpu;
}

/* Counts an interval that is complete: no later interval extends it. */
static int builder_count_interval(struct flow_builder *g, const struct flow_interval *iv)
{
	struct flow_entry *e = &g->flow.entry[iv->entry];
	int64_t ns = iv->end - iv->start + 1;
	e->duration += ns;
	e->intervals++;
	e->idle_ns += ns >= IDLE_LIMIT_NS ? ns : 0;
	entry_add_longest(e, iv->start, ns, iv->pcpu);
	return builder_add_cells(g, iv) < 0 ? -1 : builder_keep_interval(g, iv);
}

static int builder_close_interval(struct flow_builder *g)
{
	bool hold = g->is_part && !g->has_first;
	if (!g->has_open)
		return 0;
	g->has_open = false;
	if (hold)
		g->first = g->open;
	g->has_first = true;
	return hold ? 0 : builder_count_interval(g, &g->open);
}

static int builder_add_interval(struct flow_builder *g, int64_t start, int64_t end, uint32_t entry, int16_t pcpu)
{
	if (g->has_open && g->open.entry == entry && g->open.pcpu == pcpu) {
		g->open.end = end;
		return 0;
	}
	if (builder_close_interval(g) < 0)
		return -1;
	g->open = (struct flow_interval){ start, end, entry, pcpu };
	g->has_open = true;
	return 0;
}

static void builder_add_lost(struct flow_builder *g, uint32_t entry, int16_t pcpu, int64_t ns)
{
	struct flow *f = &g->flow;
	bool is_new;
	if (!g->options.cpus)
		return;
	uint64_t *at = map_put(&g->cpu_of, (uint64_t)entry << 16 | (uint16_t)pcpu, &is_new);
	if (is_new) {
		*at = f->cpus;
		*ARRAY_PUSH(f->cpu, f->cpus, g->cpu_cap) = (struct flow_cpu){ entry, pcpu, 0 };
	}
	f->cpu[*at].ns += ns;
}

int flow_builder_add(struct flow_builder *g, const struct resolution *p, bool lost, int64_t start, int64_t end)
{
	const bool same = g->has_open && resolution_same(&g->last, p);
	uint32_t entry = same ? g->open.entry : builder_entry(g, &p->actor);
	if (lost) {
		g->flow.entry[entry].lost += end - start + 1;
		builder_add_lost(g, entry, p->pcpu, end - start + 1);
	}
	g->last = *p;
	return builder_add_interval(g, start, end, entry, p->pcpu);
}

/* Appends the intervals of a part, except its first and its last interval. */
static int builder_append_middle(struct flow_builder *g, const struct flow_builder *part, const uint32_t *entry)
{
	const struct flow *f = &part->flow;
	if (builder_close_interval(g) < 0)
		return -1;
	for (size_t i = 0; i < f->entries; i++) {
		const struct flow_entry *from = &f->entry[i];
		struct flow_entry *to = &g->flow.entry[entry[i]];
		to->duration += from->duration;
		to->intervals += from->intervals;
		to->idle_ns += from->idle_ns;
		entry_add_longest(to, from->longest.start, from->longest.ns, from->longest.pcpu);
	}
	for (size_t i = 0; i < f->cells; i++)
		if (builder_add_cell(g, &(struct flow_cell){ entry[f->cell[i].entry], f->cell[i].column, f->cell[i].ns }) < 0)
			return -1;
	g->too_many = g->too_many || part->too_many;
	for (size_t i = 0; i < f->intervals; i++) {
		struct flow_interval iv = f->interval[i];
		iv.entry = entry[iv.entry];
		if (builder_keep_interval(g, &iv) < 0)
			return -1;
	}
	return 0;
}

int flow_builder_append(struct flow_builder *g, const struct flow_builder *part, const uint32_t *id)
{
	uint32_t *entry = mem_new(part->flow.entries, sizeof *entry);
	for (size_t i = 0; i < part->flow.entries; i++) {
		struct actor actor = part->flow.entry[i].actor;
		actor.name = id[actor.name];
		entry[i] = builder_entry(g, &actor);
		g->flow.entry[entry[i]].lost += part->flow.entry[i].lost;
	}
	for (size_t i = 0; i < part->flow.cpus; i++)
		builder_add_lost(g, entry[part->flow.cpu[i].entry], part->flow.cpu[i].pcpu, part->flow.cpu[i].ns);
	const struct flow_interval *edge[] = { part->has_first ? &part->first : NULL, part->has_open ? &part->open : NULL };
	int status = 0;
	for (int i = 0; i < 2 && status == 0; i++) {
		if (!edge[i])
			continue;
		status = builder_add_interval(g, edge[i]->start, edge[i]->end, entry[edge[i]->entry], edge[i]->pcpu);
		if (i == 0 && status == 0 && part->flow.entries)
			status = builder_append_middle(g, part, entry);
	}
	free(entry);
	return status;
}

ORDER_BY(compare_entries, struct flow_entry,
         FALLING(duration) RISING(actor.kind) RISING(actor.machine) RISING(actor.tid) RISING(actor.name))

int flow_builder_finish(struct flow_builder *g)
{
	struct flow *f = &g->flow;
	if (builder_close_interval(g) < 0)
		return -1;
	for (size_t i = 0; i < f->entries; i++)
		f->entry[i].share = (double)f->entry[i].duration / ((double)(g->window_end - g->window_start) + 1);
	ARRAY_SORT(f->entry, f->entries, compare_entries);
	uint32_t *rank = mem_new(f->entries, sizeof *rank);
	for (size_t i = 0; i < f->entries; i++)
		rank[actors_put(&g->actors, &f->entry[i].actor)] = (uint32_t)i;
	for (size_t i = 0; i < f->intervals; i++)
		f->interval[i].entry = rank[f->interval[i].entry];
	for (size_t i = 0; i < f->cells; i++)
		f->cell[i].entry = rank[f->cell[i].entry];
	for (size_t i = 0; i < f->cpus; i++)
		f->cpu[i].entry = rank[f->cpu[i].entry];
	free(rank);
	f->start = g->window_start;
	f->end = g->window_end;
	return 0;
}

void flow_paint(const struct flow *f, const uint32_t *lane_of, unsigned cells, int64_t *lane)
{
	for (size_t i = 0; i < f->cells; i++) {
		const struct flow_cell *c = &f->cell[i];
		if (lane_of[c->entry] == UINT32_MAX)
			continue;
		int64_t *to = lane + (size_t)lane_of[c->entry] * cells;
		/* Adds the cells to lanes. Units per column: `cells`; per cell: f->columns. */
		int64_t at = (int64_t)c->column * cells, end = at + cells, spread = 0, used = 0;
		while (at < end) {
			int64_t cell = at / f->columns, next = (cell + 1) * f->columns;
			next = next < end ? next : end;
			spread += next - at;
			int64_t ns = (int64_t)((int128)c->ns * spread / cells);
			to[cell] += ns - used;
			used = ns;
			at = next;
		}
	}
}

void flow_release(struct flow *f)
{
	names_free(f->name, f->names);
	free(f->interval);
	free(f->entry);
	free(f->cell);
	free(f->cpu);
	*f = (struct flow){ 0 };
}
