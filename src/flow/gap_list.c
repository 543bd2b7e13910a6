/* Lists of gaps with their culprits.
 *
 * Cost: one walk over the status of each row that has a gap at all, then one flow per gap that is kept.  Memory:
 * 8 bytes per gap for the exact percentiles, and the kept gaps: at most 2 * top + 1024 at any moment. */
#include "flow/flow_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SLACK 1024

struct lister {
	const struct topo *topo;
	const struct gap_options *o;
	struct gap_list *out;
	int64_t *length;
	size_t lengths, length_cap, item_cap, culprit_cap;
	struct error *err;
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
	struct gap_list *out = l->out;
	if (!l->o->top || out->items <= l->o->top + slack)
		return;
	qsort(out->item, out->items, sizeof *out->item, longest_first);
	out->items = l->o->top;
}

/* Memory that grows with the trace: an error, not the end of the program. */
static int big_room(struct lister *l, void **array, size_t *cap, size_t len, size_t size)
{
	if (len < *cap)
		return 0;
	size_t n = *cap ? 2 * *cap : 256;
	void *p = n < SIZE_MAX / size ? realloc(*array, n * size) : NULL;
	if (!p)
		return error_set(l->err, STATUS_SYSTEM, "ask for a shorter window or for longer gaps",
		                 "list of gaps: out of memory after %zu gaps", len);
	*array = p;
	*cap = n;
	return 0;
}

static int add_gap(struct lister *l, const struct gap *gap)
{
	struct gap_list *out = l->out;
	int64_t ns = gap->end - gap->start + 1;
	void *length = l->length, *item = out->item;
	int r = big_room(l, &length, &l->length_cap, l->lengths, sizeof *l->length);
	l->length = length;
	if (r == 0)
		r = big_room(l, &item, &l->item_cap, out->items, sizeof *out->item);
	out->item = item;
	if (r < 0)
		return -1;
	l->length[l->lengths++] = ns;
	out->item[out->items++] = (struct gap_item){ .gap = *gap };
	out->count++;
	out->total += ns;
	cut_to_top(l, l->o->top + SLACK);
	return 0;
}

static int list_row(void *arg, const struct subject *row)
{
	struct lister *l = arg;
	struct gap_walk w;
	struct gap gap = { .subject = *row };
	int r = gap_walk_start(&w, l->topo, row, l->o->from, l->o->to, l->err);
	if (r <= 0)
		return r;
	while ((r = gap_walk_next(&w, &gap, l->err)) > 0)
		if (gap.end - gap.start >= l->o->min - 1 && add_gap(l, &gap) < 0)
			return -1;
	return r;
}

static int by_length(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static void rank(struct lister *l)
{
	struct gap_list *out = l->out;
	size_t n = l->lengths;
	if (!n)
		return;
	qsort(l->length, n, sizeof *l->length, by_length);
	/* Nearest rank: the smallest value that at least p percent do not exceed. */
	out->p50 = l->length[(n * 50 + 99) / 100 - 1];
	out->p90 = l->length[(n * 90 + 99) / 100 - 1];
	out->p99 = l->length[(n * 99 + 99) / 100 - 1];
	out->longest = l->length[n - 1];
}

static int find_culprits(struct lister *l)
{
	struct gap_list *out = l->out;
	struct resolver r;
	resolver_init(&r, l->topo, l->o->from, l->o->to, l->err);
	int status = 0;
	for (size_t i = 0; i < out->items && status == 0; i++) {
		struct gap_item *item = &out->item[i];
		struct flow f;
		status = flow_collect(&r, &item->gap.subject, item->gap.start, item->gap.end, &f);
		if (status < 0)
			break;
		item->culprit = out->culprits;
		item->culprits = f.entries;
		for (size_t k = 0; k < f.entries; k++)
			*ARRAY_PUSH(out->culprit, out->culprits, l->culprit_cap) = f.entry[k];
		flow_release(&f);
	}
	if (status == 0)
		resolver_give_names(&r, &out->name, &out->names);
	resolver_release(&r);
	return status;
}

int gap_list_of(const struct topo *topo, const struct subject *s, const struct gap_options *options,
                struct gap_list *out, struct error *err)
{
	struct lister l = { .topo = topo, .o = options, .out = out, .err = err };
	*out = (struct gap_list){ 0 };
	int r = s ? gap_each_row(topo, s, list_row, &l) : 0;
	for (uint32_t i = 0; !s && i < topo->machines && r == 0; i++) {
		struct subject vm = { SUBJECT_MACHINE, i };
		if (topo->machine[i].kind == MACHINE_VM)
			r = gap_each_row(topo, &vm, list_row, &l);
	}
	if (r == 0) {
		rank(&l);
		cut_to_top(&l, 0);
		if (out->items)
			qsort(out->item, out->items, sizeof *out->item, by_subject);
		r = find_culprits(&l);
		if (out->items)
			qsort(out->item, out->items, sizeof *out->item, longest_first);
	}
	free(l.length);
	if (r < 0)
		gap_list_release(out);
	return r;
}

void gap_list_release(struct gap_list *l)
{
	for (size_t i = 0; i < l->names; i++)
		free(l->name[i]);
	free(l->name);
	free(l->item);
	free(l->culprit);
	*l = (struct gap_list){ 0 };
}
