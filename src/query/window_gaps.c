#include "query/window_gaps.h"

#include <stdlib.h>

#include "base/bisect.h"
#include "base/mem.h"
#include "base/order.h"
#include "query/sums_section.h"

static int compare_numbers(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static bool row_has_sums(const struct catalog *catalog, const struct target *row)
{
	if (row->kind == TARGET_THREAD)
		return gap_is_own_thread(catalog, row->index);
	return row->kind == TARGET_CPU && catalog->machine[catalog->cpu[row->index].machine].kind == MACHINE_VM;
}

void sums_rows_list(struct gap_rows *rows, const struct catalog *catalog)
{
	*rows = (struct gap_rows){ 0 };
	for (uint32_t i = 0; i < catalog->cpus + catalog->threads; i++) {
		const bool is_cpu = i < catalog->cpus;
		const struct target row = { is_cpu ? TARGET_CPU : TARGET_THREAD, is_cpu ? i : i - catalog->cpus };
		if (row_has_sums(catalog, &row))
			*ARRAY_PUSH(rows->row, rows->len, rows->cap) = (struct gap_row){ row, target_machine(catalog, &row) };
	}
}

void window_gaps_init(struct window_gaps *w, const struct gap_rows *rows)
{
	*w = (struct window_gaps){ .rows = rows, .blocks = { .start = 1, .end = 0 } };
	strtab_init(&w->names);
}

/* ---- Plan: the blocks, and the parts around them ------------------------------------------------------------------- */

/* Reads the blocks in the window. Returns false if the history has none. */
static bool read_blocks(struct window_gaps *w, const struct query *q)
{
	struct sums_section s;
	size_t from = 0, to = 0;
	if (q->catalog->set)  /* the history numbers rows without it */
		return false;
	for (size_t i = 0; i < w->rows->len; i++)
		if (!row_has_sums(q->catalog, &w->rows->row[i].target))
			return false;
	if (!sums_open(&s, q->catalog, &w->actors, &w->names))
		return false;
	const size_t blocks = sums_blocks(&s);
	BISECT(from, blocks, sums_block_start(&s, from) < q->from);
	BISECT(to, blocks, sums_block_start(&s, to + 1) <= q->to + 1);
	if (from >= to)
		return false;
	w->number = mem_new(w->rows->len, sizeof *w->number);
	for (size_t i = 0; i < w->rows->len; i++)
		w->number[i] = gap_row_number(q->catalog, &w->rows->row[i].target);
	ARRAY_SORT(w->number, w->rows->len, compare_numbers);
	w->blocks = (struct gap_block){ .start = sums_block_start(&s, from), .end = sums_block_start(&s, from) - 1 };
	return sums_read(&s, from, to, w->number, w->rows->len, &w->blocks);
}

static void add_part(struct window_gaps *w, int64_t from, int64_t to)
{
	if (from <= to) {
		w->part[w->parts].from = from;
		w->part[w->parts++].to = to;
	}
}

static void plan(struct window_gaps *w, const struct query *q)
{
	w->planned = true;
	if (w->rows->len == 0)
		return;
	if (read_blocks(w, q)) {
		add_part(w, q->from, w->blocks.start - 1);
		add_part(w, w->blocks.end + 1, q->to);
		return;
	}
	gap_block_release(&w->blocks);
	w->blocks = (struct gap_block){ .start = 1, .end = 0 };
	const size_t n = query_parts(q);
	for (size_t i = 0; i < n; i++) {
		int64_t from, to;
		part_bounds(q->from, q->to, i, n, &from, &to);
		add_part(w, from, to);
	}
}

/* ---- Sweeps -------------------------------------------------------------------------------------------------------- */

int window_gaps_walk(struct window_gaps *w, struct query *q, size_t i, struct budget *budget, struct error *err)
{
	struct window_part *part = &w->part[i];
	if (!w->planned) {
		plan(w, q);
		return 1;
	}
	if (!part->open) {
		part->open = true;
		if (sweep_open(&part->sweep, q->catalog, w->rows, part->from, part->to, err) < 0)
			return -1;
	}
	int last;
	do {
		budget->calls = 63;  /* a slice takes so long that the clock is read after each */
		last = sweep_step(&part->sweep);
	} while (last == 0 && !budget_spent(budget));
	q->part[i].done = (double)(part->sweep.at - part->from) / ((double)(part->to - part->from) + 1);
	if (last > 0)
		sweep_take_block(&part->sweep, &part->sums);
	return last;
}

void culprits_renumber(const struct sweep *sweep, struct gap_block *block, struct actors *actors, struct strtab *names)
{
	uint32_t *number = mem_new(sweep->culprits.len, sizeof *number);  /* number + 1; 0: not put yet */
	for (size_t i = 0; i < block->rows; i++) {
		struct gap_sum *s = &block->row[i].sum;
		for (uint32_t k = 0; k < s->culprits; k++) {
			uint32_t *to = &number[s->culprit[k].culprit];
			struct actor actor = sweep->culprits.actor[s->culprit[k].culprit];
			if (!*to) {
				actor.name = strtab_put(names, strtab_get(&sweep->r.names, actor.name));
				*to = actors_put(actors, &actor) + 1;
			}
			s->culprit[k].culprit = *to - 1;
		}
		s->first.culprit = s->first.ns ? number[s->first.culprit] - 1 : 0;
		s->last.culprit = s->last.ns ? number[s->last.culprit] - 1 : 0;
	}
	gap_block_sort_culprits(block, actors->len);
	free(number);
}

/* Appends sums that follow those so far. */
static void append(struct window_gaps *w, struct gap_block *block)
{
	if (w->sums.start <= w->sums.end)
		gap_block_append(&w->sums, block);
	else
		w->sums = *block;
	*block = (struct gap_block){ .start = 1, .end = 0 };
}

int window_gaps_join(struct window_gaps *w, struct query *q)
{
	if (q->from > q->to)
		return 1;
	if (!w->swept && w->parts) {
		w->swept = true;
		q->parts = w->parts;
		query_restart(q);
		return 0;
	}
	w->sums = (struct gap_block){ .start = 1, .end = 0 };
	for (size_t i = 0; i < w->parts; i++) {
		if (w->blocks.start <= w->blocks.end && w->part[i].from > w->blocks.start)
			append(w, &w->blocks);
		culprits_renumber(&w->part[i].sweep, &w->part[i].sums, &w->actors, &w->names);
		append(w, &w->part[i].sums);
		sweep_release(&w->part[i].sweep);
	}
	if (w->blocks.start <= w->blocks.end)
		append(w, &w->blocks);
	for (size_t i = 0; i < w->sums.rows; i++)
		gap_sum_finish(&w->sums.row[i].sum, q->from, q->to);
	return 1;
}

const struct gap_sum *window_gaps_of(const struct window_gaps *w, const struct catalog *catalog, const struct target *row)
{
	static const struct gap_sum none;
	const uint32_t number = gap_row_number(catalog, row);
	size_t at = 0;
	BISECT(at, w->sums.rows, w->sums.row[at].row < number);
	return at < w->sums.rows && w->sums.row[at].row == number ? &w->sums.row[at].sum : &none;
}

void window_gaps_release(struct window_gaps *w)
{
	for (size_t i = 0; i < w->parts; i++) {
		gap_block_release(&w->part[i].sums);
		sweep_release(&w->part[i].sweep);
	}
	gap_block_release(&w->blocks);
	gap_block_release(&w->sums);
	actors_release(&w->actors);
	strtab_release(&w->names);
	free(w->number);
	*w = (struct window_gaps){ 0 };
}
