#include "query/window_gaps.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/bisect.h"
#include "base/mem.h"
#include "base/order.h"
#include "query/sums_section.h"

#define STORES 4   /* windows whose sums are kept */

/* Latest sums first. A query takes those of its window out while it works on them. */
struct window_stores {
	pthread_mutex_t lock;
	struct window_store *first;
};

struct window_stores *window_stores_new(void)
{
	struct window_stores *s = mem_new(1, sizeof *s);
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

static void store_free(struct window_store *s)
{
	gap_block_release(&s->sums);
	actors_release(&s->actors);
	strtab_release(&s->names);
	free(s->has);
	free(s);
}

/* Frees the stores from *at on. */
static void stores_cut(struct window_store **at)
{
	while (*at) {
		struct window_store *next = (*at)->next;
		store_free(*at);
		*at = next;
	}
}

void window_stores_free(struct window_stores *s)
{
	if (!s)
		return;
	stores_cut(&s->first);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static struct window_store *store_take(const struct catalog *catalog, int64_t from, int64_t to)
{
	struct window_stores *all = catalog->windows;
	pthread_mutex_lock(&all->lock);
	struct window_store **at = &all->first;
	while (*at && ((*at)->from != from || (*at)->to != to))
		at = &(*at)->next;
	struct window_store *found = *at;
	if (found)
		*at = found->next;
	pthread_mutex_unlock(&all->lock);
	if (!found) {
		found = mem_new(1, sizeof *found);
		*found = (struct window_store){ .from = from, .to = to, .sums = { .start = from, .end = to } };
		found->has = mem_new(catalog->cpus + catalog->threads, sizeof *found->has);
		strtab_init(&found->names);
	}
	return found;
}

static void store_give_back(const struct catalog *catalog, struct window_store *s)
{
	struct window_stores *all = catalog->windows;
	pthread_mutex_lock(&all->lock);
	s->next = all->first;
	all->first = s;
	struct window_store **at = &all->first;
	for (int i = 0; *at && i < STORES; i++)
		at = &(*at)->next;
	stores_cut(at);
	pthread_mutex_unlock(&all->lock);
}

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
}

/* ---- Plan: the blocks, and the parts around them ------------------------------------------------------------------- */

/* Reads the blocks in the window. Returns false if the history has none. */
static bool read_blocks(struct window_gaps *w, const struct query *q)
{
	struct sums_section s;
	size_t from = 0, to = 0;
	if (q->catalog->set)  /* the history numbers rows without it */
		return false;
	for (size_t i = 0; i < w->missing.len; i++)
		if (!row_has_sums(q->catalog, &w->missing.row[i].target))
			return false;
	if (!sums_open(&s, q->catalog, &w->store->actors, &w->store->names))
		return false;
	const size_t blocks = sums_blocks(&s);
	BISECT(from, blocks, sums_block_start(&s, from) < q->from);
	BISECT(to, blocks, sums_block_start(&s, to + 1) <= q->to + 1);
	if (from >= to)
		return false;
	w->number = mem_new(w->missing.len, sizeof *w->number);
	for (size_t i = 0; i < w->missing.len; i++)
		w->number[i] = gap_row_number(q->catalog, &w->missing.row[i].target);
	ARRAY_SORT(w->number, w->missing.len, compare_numbers);
	w->blocks = (struct gap_block){ .start = sums_block_start(&s, from), .end = sums_block_start(&s, from) - 1 };
	return sums_read(&s, from, to, w->number, w->missing.len, &w->blocks);
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
	w->store = store_take(q->catalog, q->from, q->to);
	for (size_t i = 0; i < w->rows->len; i++)
		if (!w->store->has[gap_row_number(q->catalog, &w->rows->row[i].target)])
			*ARRAY_PUSH(w->missing.row, w->missing.len, w->missing.cap) = w->rows->row[i];
	if (w->missing.len == 0)
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
		if (sweep_open(&part->sweep, q->catalog, &w->missing, part->from, part->to, err) < 0)
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

ORDER_BY(compare_rows, struct gap_block_row, RISING(row))

/* Moves the sums of the missing rows into the store. */
static void store_sums(struct window_gaps *w, const struct query *q)
{
	struct gap_block *to = &w->store->sums;
	for (size_t i = 0; i < w->missing.len; i++)
		w->store->has[gap_row_number(q->catalog, &w->missing.row[i].target)] = true;
	for (size_t i = 0; i < w->sums.rows; i++) {
		gap_sum_finish(&w->sums.row[i].sum, q->from, q->to);
		*ARRAY_PUSH(to->row, to->rows, to->cap) = w->sums.row[i];
	}
	w->sums.rows = 0;
	ARRAY_SORT(to->row, to->rows, compare_rows);
	to->precision = w->sums.precision > to->precision ? w->sums.precision : to->precision;
}

int window_gaps_join(struct window_gaps *w, struct query *q)
{
	if (q->from > q->to) {
		w->store = store_take(q->catalog, q->from, q->to);
		return 1;
	}
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
		culprits_renumber(&w->part[i].sweep, &w->part[i].sums, &w->store->actors, &w->store->names);
		append(w, &w->part[i].sums);
		sweep_release(&w->part[i].sweep);
	}
	if (w->blocks.start <= w->blocks.end)
		append(w, &w->blocks);
	store_sums(w, q);
	return 1;
}

const struct gap_sum *window_gaps_of(const struct window_gaps *w, const struct catalog *catalog, const struct target *row)
{
	static const struct gap_sum none;
	const struct gap_block *sums = &w->store->sums;
	const uint32_t number = gap_row_number(catalog, row);
	size_t at = 0;
	BISECT(at, sums->rows, sums->row[at].row < number);
	return at < sums->rows && sums->row[at].row == number ? &sums->row[at].sum : &none;
}

void window_gaps_release(struct window_gaps *w, const struct catalog *catalog)
{
	for (size_t i = 0; i < w->parts; i++) {
		gap_block_release(&w->part[i].sums);
		sweep_release(&w->part[i].sweep);
	}
	gap_block_release(&w->blocks);
	gap_block_release(&w->sums);
	gap_rows_release(&w->missing);
	free(w->number);
	if (w->store)
		store_give_back(catalog, w->store);
	*w = (struct window_gaps){ 0 };
}
