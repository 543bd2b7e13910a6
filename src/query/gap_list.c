/* Lists of gaps with their culprits.
 *
 * Cost: one walk over the status of each row with gaps, then one flow per listed gap. Memory: 8 bytes per gap, for exact
 * percentiles, and the candidates for the list: at most 2 * top + 1024 at a time. */
#include "base/base.h"
#include "query/query_internal.h"

#include "base/rank_select.h"
#include "query/stepped_query.h"

#define SLACK 1024

struct gap_lister {
	struct query q;
	struct gap_options o;
	struct gap_rows rows;
	struct gap_list list;
	int64_t *length;         /* lengths of all gaps, ns */
	size_t lengths, length_cap, item_cap, culprit_cap, sums_cap;
	int64_t min_top_ns;           /* gaps shorter than this are not among the longest `top`, ns */
	size_t row_lengths;      /* index into `length` of the first gap of the current row */
	size_t row, item;        /* index of the current row, and of the current item: first all gaps are listed, then their
	                          * culprits are found */
	bool walking, listed;
	struct gap_walk walk;
	struct resolver r;
};

static int compare_by_length(const void *a, const void *b)
{
	const struct gap_item *x = a, *y = b;
	int64_t p = x->gap.end - x->gap.start, q = y->gap.end - y->gap.start;
	if (p != q)
		return p < q ? 1 : -1;
	if (x->gap.start != y->gap.start)
		return x->gap.start < y->gap.start ? -1 : 1;
	return (x->gap.target.index > y->gap.target.index) - (x->gap.target.index < y->gap.target.index);
}

ORDER_BY(compare_by_target, struct gap_item, RISING(gap.target.index) RISING(gap.start))

static void lister_cut_to_top(struct gap_lister *l, size_t slack)
{
	struct gap_list *out = &l->list;
	if (!l->o.top || out->items <= l->o.top + slack)
		return;
	qsort(out->item, out->items, sizeof *out->item, compare_by_length);
	out->items = l->o.top;
	const struct gap *last = &out->item[out->items - 1].gap;
	l->min_top_ns = last->end - last->start + 1;
}

/* Grows an array. Returns -1 if memory runs out: an error here, because the array grows with the trace. */
static int lister_grow(void **array, size_t *cap, size_t len, size_t size, struct error *err)
{
	if (len < *cap)
		return 0;
	size_t n = *cap ? 2 * *cap : 256;
	void *p = n < SIZE_MAX / size ? realloc(*array, n * size) : NULL;
	if (!p)
		return error_set(err, STATUS_SYSTEM, "ask for a shorter window or for longer gaps",
		                 "list of gaps: out of memory after %zu gaps", len);
	*array = p;
	*cap = n;
	return 0;
}

static int lister_add_gap(struct gap_lister *l, const struct gap *gap, struct error *err)
{
	struct gap_list *out = &l->list;
	int64_t ns = gap->end - gap->start + 1;
	void *length = l->length, *item = out->item;
	int r = lister_grow(&length, &l->length_cap, l->lengths, sizeof *l->length, err);
	l->length = length;
	if (r == 0)
		r = lister_grow(&item, &l->item_cap, out->items, sizeof *out->item, err);
	out->item = item;
	if (r < 0)
		return -1;
	l->length[l->lengths++] = ns;
	if (ns < l->min_top_ns)
		return 0;
	out->item[out->items++] = (struct gap_item){ .gap = *gap };
	lister_cut_to_top(l, l->o.top + SLACK);
	return 0;
}

unsigned length_bin(int64_t ns)
{
	return ns > 1 ? 63u - (unsigned)__builtin_clzll((uint64_t)ns) : 0;
}

/* Computes the lengths' distribution. Reorders them. */
static void lengths_measure(int64_t *length, size_t n, struct gap_lengths *out)
{
	out->count = n;
	if (!n)
		return;
	const size_t p50 = percentile_index(n, 50), p90 = percentile_index(n, 90), p99 = percentile_index(n, 99);
	out->longest = rank_select(length, n, n - 1);
	out->p99 = rank_select(length, n, p99);
	out->p90 = rank_select(length, p99 + 1, p90);
	out->p50 = rank_select(length, p90 + 1, p50);
	for (size_t i = 0; i < n; i++) {
		out->total += length[i];
		out->bin[length_bin(length[i])]++;
	}
}

static void lister_end_row(struct gap_lister *l)
{
	struct gap_list *out = &l->list;
	size_t n = l->lengths - l->row_lengths;
	if (n) {
		struct gap_lengths *row = ARRAY_PUSH(out->row, out->rows, l->sums_cap);
		*row = (struct gap_lengths){ .target = l->rows.row[l->row].target };
		lengths_measure(l->length + l->row_lengths, n, row);
	}
	l->row_lengths = l->lengths;
	l->row++;
}

ORDER_BY(compare_by_total, struct gap_lengths, FALLING(total) RISING(target.index))

/* Returns 1 if the target slept until the gap, 0: not, -1: error. */
static int slept_before(const struct catalog *catalog, const struct gap *gap, struct error *err)
{
	uint64_t mask;
	struct interval iv;
	const bool is_cpu = gap->target.kind == TARGET_CPU;
	if (gap->start <= history_begin(catalog->h))
		return 0;
	if (history_stab(catalog->h, gap_attribute(catalog, &gap->target, &mask), gap->start - 1, &iv, err) < 0)
		return -1;
	if (iv.value < 0 || iv.value >= HISTORY_STATES)
		return 0;
	return (is_cpu ? vcpu_use[catalog->vcpu_state[iv.value]] : thread_use[catalog->thread_state[iv.value]]) == USE_SLEPT;
}

/* Adds a gap if it is wanted. */
static int lister_consider(struct gap_lister *l, const struct gap *gap, struct error *err)
{
	int wanted = gap->end - gap->start >= l->o.min - 1;
	if (wanted && l->o.after_sleep)
		wanted = slept_before(l->q.catalog, gap, err);
	return wanted > 0 ? lister_add_gap(l, gap, err) : wanted;
}

static int lister_list_gaps(struct gap_lister *l, struct budget *budget, struct error *err)
{
	while (l->row < l->rows.len && !budget_spent(budget)) {
		const struct gap_row *row = &l->rows.row[l->row];
		struct gap gap = { .target = row->target };
		int r = l->walking ? gap_walk_next(&l->walk, &gap, err)
		                   : gap_walk_start(&l->walk, l->q.catalog, &row->target, l->q.from, l->q.to, err);
		if (r < 0 || (r && l->walking && lister_consider(l, &gap, err) < 0))
			return -1;
		l->walking = r > 0;
		if (r == 0)
			lister_end_row(l);
	}
	return l->row == l->rows.len;
}

/* Called when all gaps are listed: drops the gaps beyond `top`, and sorts the others by row and time, so that finding
 * their culprits is cheap. */
static void lister_end_list(struct gap_lister *l, struct error *err)
{
	lengths_measure(l->length, l->lengths, &l->list.all);
	ARRAY_SORT(l->list.row, l->list.rows, compare_by_total);
	lister_cut_to_top(l, 0);
	ARRAY_SORT(l->list.item, l->list.items, compare_by_target);
	resolver_init(&l->r, l->q.catalog, l->q.from, l->q.to, err);
	l->listed = true;
}

static int lister_find_culprits(struct gap_lister *l, struct budget *budget)
{
	struct gap_list *out = &l->list;
	for (; l->item < out->items && !budget_spent(budget); l->item++) {
		struct gap_item *item = &out->item[l->item];
		struct flow f;
		if (flow_collect(&l->r, &item->gap.target, item->gap.start, item->gap.end, &f) < 0)
			return -1;
		item->culprit = out->culprits;
		item->culprits = f.entries;
		for (size_t k = 0; k < f.entries; k++)
			*ARRAY_PUSH(out->culprit, out->culprits, l->culprit_cap) = f.entry[k];
		flow_top_culprit(l->q.catalog, &item->gap.target, f.entry, f.entries, &item->top);
		flow_release(&f);
	}
	return l->item == out->items;
}

static int gap_list_walk(struct query *q, size_t i, struct budget *budget, struct error *err)
{
	struct gap_lister *l = (struct gap_lister *)q;
	if (!l->listed) {
		int r = lister_list_gaps(l, budget, err);
		q->part[i].done = l->rows.len ? (double)l->row / (double)l->rows.len / 2 : 0;
		if (r <= 0)
			return r;
		lister_end_list(l, err);
	}
	int r = lister_find_culprits(l, budget);
	q->part[i].done = l->list.items ? 0.5 + (double)l->item / (double)l->list.items / 2 : 1;
	return r;
}

static int gap_list_join(struct query *q, struct error *err)
{
	struct gap_lister *l = (struct gap_lister *)q;
	(void)err;
	if (!l->listed)
		return 1;
	ARRAY_SORT(l->list.item, l->list.items, compare_by_length);
	names_move(&l->r.names, &l->list.name, &l->list.names);
	return 1;
}

static void gap_list_close(struct query *q)
{
	struct gap_lister *l = (struct gap_lister *)q;
	if (l->listed)
		resolver_release(&l->r);
	gap_rows_release(&l->rows);
	gap_list_release(&l->list);
	free(l->length);
}

static const struct query_kind gap_list = { gap_list_walk, gap_list_join, gap_list_close, ANSWER(struct gap_lister, list) };

struct query *gap_list_open(const struct catalog *catalog, const struct target *target, const struct gap_options *options)
{
	struct gap_lister *l = mem_new(1, sizeof *l);
	query_init(&l->q, &gap_list, catalog, options->from, options->to, 1);
	l->o = *options;
	gap_rows_list(&l->rows, catalog, target);
	size_t n = 0;
	for (size_t i = 0; i < l->rows.len; i++)
		if (target || catalog->machine[l->rows.row[i].victim].kind == MACHINE_VM)
			l->rows.row[n++] = l->rows.row[i];
	l->rows.len = n;
	return &l->q;
}

void gap_list_release(struct gap_list *l)
{
	names_free(l->name, l->names);
	free(l->item);
	free(l->culprit);
	free(l->row);
	*l = (struct gap_list){ 0 };
}
