#include "query/flow_builder.h"

#include <limits.h>
#include <stdlib.h>

#include "base/int128.h"
#include "base/bisect.h"
#include "base/mem.h"
#include "query/query_internal.h"

void gather_init(struct gather *g, int64_t from, int64_t to, const struct flow_options *options, bool of_a_part,
                 struct error *err)
{
	*g = (struct gather){ .options = *options, .window_start = from, .window_end = to, .of_a_part = of_a_part,
		.column = UINT_MAX, .column_end = INT64_MIN, .err = err };
	g->flow.columns = options->columns;
}

void gather_release(struct gather *g)
{
	flow_release(&g->flow);
	parties_release(&g->parties);
	free(g->latest);
	*g = (struct gather){ 0 };
}

size_t flow_piece_at(const struct flow *f, int64_t t)
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

/* Room for one more, where an error is no end of the program. */
static int room(struct gather *g, void **array, size_t *cap, size_t len, size_t size)
{
	if (len < *cap)
		return 0;
	size_t n = *cap ? 2 * *cap : 64;
	void *p = n < SIZE_MAX / size ? realloc(*array, n * size) : NULL;
	if (!p)
		return error_set(g->err, STATUS_SYSTEM, "ask for a shorter window",
		                 "execution flow: out of memory after %zu pieces", len);
	*array = p;
	*cap = n;
	return 0;
}

static uint32_t entry_of(struct gather *g, const struct party *who)
{
	struct flow *f = &g->flow;
	uint32_t e = parties_put(&g->parties, who);
	if (e < f->entries)
		return e;
	*ARRAY_PUSH(f->entry, f->entries, g->entry_cap) = (struct flow_entry){ .who = *who };
	size_t len = e;
	*ARRAY_PUSH(g->latest, len, g->latest_cap) = 0;
	return e;
}

static int add_cell(struct gather *g, const struct flow_cell *cell)
{
	struct flow *f = &g->flow;
	uint32_t *latest = &g->latest[cell->entry];
	if (*latest && f->cell[*latest - 1].column == cell->column) {
		f->cell[*latest - 1].ns += cell->ns;
		return 0;
	}
	void *array = f->cell;
	int status = room(g, &array, &g->cell_cap, f->cells, sizeof *f->cell);
	f->cell = array;
	if (status < 0)
		return -1;
	f->cell[f->cells++] = *cell;
	*latest = (uint32_t)f->cells;
	return 0;
}

static int add_cells(struct gather *g, const struct flow_interval *iv)
{
	unsigned n = g->options.columns;
	for (int64_t t = iv->start; n && t <= iv->end; t = g->column_end + 1) {
		while (t > g->column_end) {
			g->column++;
			g->column_end = flow_column(g->window_start, g->window_end, g->column + 1, n) - 1;
		}
		int64_t last = g->column_end < iv->end ? g->column_end : iv->end;
		if (add_cell(g, &(struct flow_cell){ iv->entry, g->column, last - t + 1 }) < 0)
			return -1;
		if (last == iv->end)
			break;
	}
	return 0;
}

static int more_intervals(struct gather *g)
{
	void *array = g->flow.interval;
	int status = room(g, &array, &g->interval_cap, g->flow.intervals, sizeof *g->flow.interval);
	g->flow.interval = array;
	return status;
}

static int keep(struct gather *g, const struct flow_interval *iv)
{
	struct flow *f = &g->flow;
	if (g->too_many || f->intervals == g->options.intervals) {
		g->too_many = true;
		f->intervals = 0;
		return 0;
	}
	if (f->intervals == g->interval_cap && more_intervals(g) < 0)
		return -1;
	f->interval[f->intervals++] = *iv;
	return 0;
}

static void add_longest(struct flow_entry *e, int64_t start, int64_t ns, int16_t pcpu)
{
	if (ns <= e->longest.ns)
		return;
	e->longest.start = start;
	e->longest.ns = ns;
	e->longest.pcpu = pcpu;
}

/* Counts an interval that nothing will join to any more. */
static int book(struct gather *g, const struct flow_interval *iv)
{
	struct flow_entry *e = &g->flow.entry[iv->entry];
	int64_t ns = iv->end - iv->start + 1;
	e->duration += ns;
	e->pieces++;
	e->idled += ns >= IDLE_LIMITED ? ns : 0;
	add_longest(e, iv->start, ns, iv->pcpu);
	return add_cells(g, iv) < 0 ? -1 : keep(g, iv);
}

static int close_interval(struct gather *g)
{
	bool hold = g->of_a_part && !g->has_first;
	if (!g->has_open)
		return 0;
	g->has_open = false;
	if (hold)
		g->first = g->open;
	g->has_first = true;
	return hold ? 0 : book(g, &g->open);
}

static int add_interval(struct gather *g, int64_t start, int64_t end, uint32_t entry, int16_t pcpu)
{
	if (g->has_open && g->open.entry == entry && g->open.pcpu == pcpu) {
		g->open.end = end;
		return 0;
	}
	if (close_interval(g) < 0)
		return -1;
	g->open = (struct flow_interval){ start, end, entry, pcpu };
	g->has_open = true;
	return 0;
}

int gather_piece(struct gather *g, const struct piece *p, bool lost, int64_t start, int64_t end)
{
	const bool same = g->has_open && piece_same(&g->last, p);
	uint32_t entry = same ? g->open.entry : entry_of(g, &p->who);
	if (lost)
		g->flow.entry[entry].lost += end - start + 1;
	g->last = *p;
	return add_interval(g, start, end, entry, p->pcpu);
}

/* What lies between the first and the last interval of a part. */
static int add_middle(struct gather *g, const struct gather *part, const uint32_t *entry)
{
	const struct flow *f = &part->flow;
	if (close_interval(g) < 0)
		return -1;
	for (size_t i = 0; i < f->entries; i++) {
		const struct flow_entry *from = &f->entry[i];
		struct flow_entry *to = &g->flow.entry[entry[i]];
		to->duration += from->duration;
		to->pieces += from->pieces;
		to->idled += from->idled;
		add_longest(to, from->longest.start, from->longest.ns, from->longest.pcpu);
	}
	for (size_t i = 0; i < f->cells; i++)
		if (add_cell(g, &(struct flow_cell){ entry[f->cell[i].entry], f->cell[i].column, f->cell[i].ns }) < 0)
			return -1;
	g->too_many = g->too_many || part->too_many;
	for (size_t i = 0; i < f->intervals; i++) {
		struct flow_interval iv = f->interval[i];
		iv.entry = entry[iv.entry];
		if (keep(g, &iv) < 0)
			return -1;
	}
	return 0;
}

int gather_part(struct gather *g, const struct gather *part, const uint32_t *id)
{
	uint32_t *entry = mem_new(part->flow.entries, sizeof *entry);
	for (size_t i = 0; i < part->flow.entries; i++) {
		struct party who = part->flow.entry[i].who;
		who.name = id[who.name];
		entry[i] = entry_of(g, &who);
		g->flow.entry[entry[i]].lost += part->flow.entry[i].lost;
	}
	const struct flow_interval *edge[] = { part->has_first ? &part->first : NULL, part->has_open ? &part->open : NULL };
	int status = 0;
	for (int i = 0; i < 2 && status == 0; i++) {
		if (!edge[i])
			continue;
		status = add_interval(g, edge[i]->start, edge[i]->end, entry[edge[i]->entry], edge[i]->pcpu);
		if (i == 0 && status == 0 && part->flow.entries)
			status = add_middle(g, part, entry);
	}
	free(entry);
	return status;
}

static int by_order(const void *a, const void *b)
{
	const struct flow_entry *x = a, *y = b;
	if (x->duration != y->duration)
		return x->duration < y->duration ? 1 : -1;
	if (x->who.kind != y->who.kind)
		return x->who.kind < y->who.kind ? -1 : 1;
	if (x->who.system != y->who.system)
		return x->who.system < y->who.system ? -1 : 1;
	if (x->who.tid != y->who.tid)
		return x->who.tid < y->who.tid ? -1 : 1;
	return (x->who.name > y->who.name) - (x->who.name < y->who.name);
}

int gather_finish(struct gather *g)
{
	struct flow *f = &g->flow;
	if (close_interval(g) < 0)
		return -1;
	for (size_t i = 0; i < f->entries; i++)
		f->entry[i].share = (double)f->entry[i].duration / ((double)(g->window_end - g->window_start) + 1);
	if (f->entries)
		qsort(f->entry, f->entries, sizeof *f->entry, by_order);
	uint32_t *place = mem_new(f->entries, sizeof *place);
	for (size_t i = 0; i < f->entries; i++)
		place[parties_put(&g->parties, &f->entry[i].who)] = (uint32_t)i;
	for (size_t i = 0; i < f->intervals; i++)
		f->interval[i].entry = place[f->interval[i].entry];
	for (size_t i = 0; i < f->cells; i++)
		f->cell[i].entry = place[f->cell[i].entry];
	free(place);
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
		/* In units of which a column has `cells` and a cell has f->columns. */
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
	for (size_t i = 0; i < f->names; i++)
		free(f->name[i]);
	free(f->name);
	free(f->interval);
	free(f->entry);
	free(f->cell);
	*f = (struct flow){ 0 };
}
