/* Lists of gaps with their culprits.
 *
 * Cost: one walk over the status of each row that has a gap at all, then one flow per gap that is kept.  Memory:
 * 8 bytes per gap for the exact percentiles, and the kept gaps: at most 2 * top + 1024 at any moment. */
#include "query/query_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "query/stepped_query.h"

#define SLACK 1024

struct lister {
	struct inquiry q;
	struct gap_options o;
	struct gap_rows rows;
	struct gap_list list;
	int64_t *length;         /* of all gaps */
	size_t lengths, length_cap, item_cap, culprit_cap, sums_cap;
	int64_t least;           /* ns: shorter ones are not among the longest */
	size_t row_lengths;      /* where those of the row at hand begin */
	size_t row, item;        /* at hand: gaps are read, then their culprits */
	bool walking, listed;
	struct gap_walk walk;
	struct resolver r;
};

static int longest_first(const void *a, const void *b)
{
	const struct gap_item *x = a, *y = b;
	int64_t p = x->gap.end - x->gap.start, q = y->gap.end - y->gap.start;
	if (p != q)
		return p < q ? 1 : -1;
	if (x->gap.start != y->gap.start)
		return x->gap.start < y->gap.start ? -1 : 1;
	return (x->gap.subject.index > y->gap.subject.index) - (x->gap.subject.index < y->gap.subject.index);
}

static int by_subject(const void *a, const void *b)
{
	const struct gap_item *x = a, *y = b;
	if (x->gap.subject.index != y->gap.subject.index)
		return x->gap.subject.index < y->gap.subject.index ? -1 : 1;
	return (x->gap.start > y->gap.start) - (x->gap.start < y->gap.start);
}

static void cut_to_top(struct lister *l, size_t slack)
{
	struct gap_list *out = &l->list;
	if (!l->o.top || out->items <= l->o.top + slack)
		return;
	qsort(out->item, out->items, sizeof *out->item, longest_first);
	out->items = l->o.top;
	const struct gap *last = &out->item[out->items - 1].gap;
	l->least = last->end - last->start + 1;
}

/* Memory that grows with the trace: an error, not the end of the program. */
static int big_room(void **array, size_t *cap, size_t len, size_t size, struct error *err)
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

static int add_gap(struct lister *l, const struct gap *gap, struct error *err)
{
	struct gap_list *out = &l->list;
	int64_t ns = gap->end - gap->start + 1;
	void *length = l->length, *item = out->item;
	int r = big_room(&length, &l->length_cap, l->lengths, sizeof *l->length, err);
	l->length = length;
	if (r == 0)
		r = big_room(&item, &l->item_cap, out->items, sizeof *out->item, err);
	out->item = item;
	if (r < 0)
		return -1;
	l->length[l->lengths++] = ns;
	if (ns < l->least)
		return 0;
	out->item[out->items++] = (struct gap_item){ .gap = *gap };
	cut_to_top(l, l->o.top + SLACK);
	return 0;
}

static int by_length(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

unsigned length_bin(int64_t ns)
{
	return ns > 1 ? 63u - (unsigned)__builtin_clzll((uint64_t)ns) : 0;
}

/* Sorts the lengths. */
static void measure(int64_t *length, size_t n, struct gap_lengths *out)
{
	out->count = n;
	if (!n)
		return;
	qsort(length, n, sizeof *length, by_length);
	/* Nearest rank: the smallest value that at least p percent do not exceed. */
	out->p50 = length[(n * 50 + 99) / 100 - 1];
	out->p90 = length[(n * 90 + 99) / 100 - 1];
	out->p99 = length[(n * 99 + 99) / 100 - 1];
	out->longest = length[n - 1];
	for (size_t i = 0; i < n; i++) {
		out->total += length[i];
		out->bin[length_bin(length[i])]++;
	}
}

static void end_row(struct lister *l)
{
	struct gap_list *out = &l->list;
	size_t n = l->lengths - l->row_lengths;
	if (n) {
		struct gap_lengths *row = ARRAY_PUSH(out->row, out->rows, l->sums_cap);
		*row = (struct gap_lengths){ .who = l->rows.row[l->row].subject };
		measure(l->length + l->row_lengths, n, row);
	}
	l->row_lengths = l->lengths;
	l->row++;
}

static int most_first(const void *a, const void *b)
{
	const struct gap_lengths *x = a, *y = b;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return (x->who.index > y->who.index) - (x->who.index < y->who.index);
}

static int list_gaps(struct lister *l, struct budget *budget, struct error *err)
{
	while (l->row < l->rows.len && !budget_spent(budget)) {
		const struct gap_row *row = &l->rows.row[l->row];
		struct gap gap = { .subject = row->subject };
		int r = l->walking ? gap_walk_next(&l->walk, &gap, err)
		                   : gap_walk_start(&l->walk, l->q.topo, &row->subject, l->q.from, l->q.to, err);
		if (r < 0 || (r && l->walking && gap.end - gap.start >= l->o.min - 1 && add_gap(l, &gap, err) < 0))
			return -1;
		l->walking = r > 0;
		if (r == 0)
			end_row(l);
	}
	return l->row == l->rows.len;
}

/* The gaps are all there: only those to show stay, in an order in which their culprits are cheap to find. */
static void end_list(struct lister *l, struct error *err)
{
	measure(l->length, l->lengths, &l->list.all);
	if (l->list.rows)
		qsort(l->list.row, l->list.rows, sizeof *l->list.row, most_first);
	cut_to_top(l, 0);
	if (l->list.items)
		qsort(l->list.item, l->list.items, sizeof *l->list.item, by_subject);
	resolver_init(&l->r, l->q.topo, l->q.from, l->q.to, err);
	l->listed = true;
}

static int find_culprits(struct lister *l, struct budget *budget)
{
	struct gap_list *out = &l->list;
	for (; l->item < out->items && !budget_spent(budget); l->item++) {
		struct gap_item *item = &out->item[l->item];
		struct flow f;
		if (flow_collect(&l->r, &item->gap.subject, item->gap.start, item->gap.end, &f) < 0)
			return -1;
		item->culprit = out->culprits;
		item->culprits = f.entries;
		for (size_t k = 0; k < f.entries; k++)
			*ARRAY_PUSH(out->culprit, out->culprits, l->culprit_cap) = f.entry[k];
		flow_thief(l->q.topo, &item->gap.subject, f.entry, f.entries, &item->thief);
		flow_release(&f);
	}
	return l->item == out->items;
}

static int walk(struct inquiry *q, size_t i, struct budget *budget, struct error *err)
{
	struct lister *l = (struct lister *)q;
	if (!l->listed) {
		int r = list_gaps(l, budget, err);
		q->part[i].done = l->rows.len ? (double)l->row / (double)l->rows.len / 2 : 0;
		if (r <= 0)
			return r;
		end_list(l, err);
	}
	int r = find_culprits(l, budget);
	q->part[i].done = l->list.items ? 0.5 + (double)l->item / (double)l->list.items / 2 : 1;
	return r;
}

static int join(struct inquiry *q, struct error *err)
{
	struct lister *l = (struct lister *)q;
	(void)err;
	if (!l->listed)
		return 1;
	if (l->list.items)
		qsort(l->list.item, l->list.items, sizeof *l->list.item, longest_first);
	resolver_give_names(&l->r, &l->list.name, &l->list.names);
	return 1;
}

static void close_list(struct inquiry *q)
{
	struct lister *l = (struct lister *)q;
	if (l->listed)
		resolver_release(&l->r);
	gap_rows_release(&l->rows);
	gap_list_release(&l->list);
	free(l->length);
}

static const struct inquiry_kind gap_list = { walk, join, close_list };

struct inquiry *gap_list_open(const struct topo *topo, const struct subject *s, const struct gap_options *options)
{
	struct lister *l = mem_new(1, sizeof *l);
	int64_t from = options->from > history_begin(topo->h) ? options->from : history_begin(topo->h);
	int64_t to = options->to < history_end(topo->h) ? options->to : history_end(topo->h);
	inquiry_init(&l->q, &gap_list, topo, from, to, 1);
	l->o = *options;
	gap_rows_list(&l->rows, topo, s);
	size_t kept = 0;
	for (size_t i = 0; i < l->rows.len; i++)
		if (s || topo->machine[l->rows.row[i].victim].kind == MACHINE_VM)
			l->rows.row[kept++] = l->rows.row[i];
	l->rows.len = kept;
	return &l->q;
}

void gap_list_take(struct inquiry *q, struct gap_list *out)
{
	struct lister *l = (struct lister *)q;
	*out = l->list;
	l->list = (struct gap_list){ 0 };
}

int gap_list_of(const struct topo *topo, const struct subject *s, const struct gap_options *options,
                struct gap_list *out, struct error *err)
{
	struct inquiry *q = gap_list_open(topo, s, options);
	int status = inquiry_run(q, NULL, err);
	*out = (struct gap_list){ 0 };
	if (status == 0)
		gap_list_take(q, out);
	inquiry_close(q);
	return status;
}

void gap_list_release(struct gap_list *l)
{
	for (size_t i = 0; i < l->names; i++)
		free(l->name[i]);
	free(l->name);
	free(l->item);
	free(l->culprit);
	free(l->row);
	*l = (struct gap_list){ 0 };
}
