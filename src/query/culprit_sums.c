/* Sums of gaps by culprit, as a query. */
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/mem.h"
#include "query/window_gaps.h"

struct culprit_sums_query {
	struct query q;
	struct gap_rows rows;
	struct window_gaps sums;
	struct culprit_sums answer;
};

static int culprit_sums_walk(struct query *q, size_t i, struct budget *budget, struct error *err)
{
	struct culprit_sums_query *s = (struct culprit_sums_query *)q;
	return window_gaps_walk(&s->sums, q, i, budget, err);
}

static int compare_by_ns(const void *a, const void *b)
{
	const struct culprit_ns *x = a, *y = b;
	return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : (x->culprit > y->culprit) - (x->culprit < y->culprit);
}

static void row_of_sum(const struct gap_row *row, const struct gap_sum *sum, struct culprit_sums_row *out)
{
	*out = (struct culprit_sums_row){ .target = row->target, .machine = row->victim, .gaps = sum->gaps,
		.longest = sum->longest, .longest_start = sum->longest_start, .p50 = gap_sum_percentile(sum, 50),
		.p90 = gap_sum_percentile(sum, 90), .p99 = gap_sum_percentile(sum, 99), .culprits = sum->culprits };
	out->culprit = mem_new(sum->culprits, sizeof *out->culprit);
	for (uint32_t i = 0; i < sum->culprits; i++) {
		out->culprit[i] = sum->culprit[i];
		out->lost += sum->culprit[i].ns;
	}
	if (sum->culprits)
		qsort(out->culprit, out->culprits, sizeof *out->culprit, compare_by_ns);
	for (uint32_t i = 0; i < sum->lengths; i++)
		out->bin[length_bin(bucket_length(sum->length[i].bucket))] += sum->length[i].count;
}

static int culprit_sums_join(struct query *q, struct error *err)
{
	struct culprit_sums_query *s = (struct culprit_sums_query *)q;
	struct culprit_sums *out = &s->answer;
	(void)err;
	if (window_gaps_join(&s->sums, q) == 0)
		return 0;
	out->precision = s->sums.sums.precision;
	out->row = mem_new(s->rows.len, sizeof *out->row);
	for (size_t i = 0; i < s->rows.len; i++) {
		const struct gap_sum *sum = window_gaps_of(&s->sums, q->catalog, &s->rows.row[i].target);
		if (sum->gaps)
			row_of_sum(&s->rows.row[i], sum, &out->row[out->rows++]);
	}
	out->actor = s->sums.actors.actor;
	out->actors = s->sums.actors.len;
	s->sums.actors.actor = NULL;
	names_move(&s->sums.names, &out->name, &out->names);
	return 1;
}

static void culprit_sums_close(struct query *q)
{
	struct culprit_sums_query *s = (struct culprit_sums_query *)q;
	window_gaps_release(&s->sums);
	gap_rows_release(&s->rows);
	culprit_sums_release(&s->answer);
}

static const struct query_kind culprit_sums_query = { culprit_sums_walk, culprit_sums_join, culprit_sums_close };

struct query *culprit_sums_open(const struct catalog *catalog, const struct target *s, int64_t from, int64_t to)
{
	struct culprit_sums_query *c = mem_new(1, sizeof *c);
	from = from > history_begin(catalog->h) ? from : history_begin(catalog->h);
	to = to < history_end(catalog->h) ? to : history_end(catalog->h);
	query_init(&c->q, &culprit_sums_query, catalog, from, to, 1);
	if (s)
		gap_rows_list(&c->rows, catalog, s);
	else
		sums_rows_list(&c->rows, catalog);
	window_gaps_init(&c->sums, &c->rows);
	c->answer = (struct culprit_sums){ .start = from, .end = to };
	return &c->q;
}

void culprit_sums_take(struct query *q, struct culprit_sums *out)
{
	struct culprit_sums_query *c = (struct culprit_sums_query *)q;
	*out = c->answer;
	c->answer = (struct culprit_sums){ 0 };
}

int culprit_sums_of(const struct catalog *catalog, const struct target *s, int64_t from, int64_t to,
                    struct culprit_sums *out, struct error *err)
{
	struct query *q = culprit_sums_open(catalog, s, from, to);
	const int status = query_run(q, NULL, err);
	*out = (struct culprit_sums){ 0 };
	if (status == 0)
		culprit_sums_take(q, out);
	query_close(q);
	return status;
}

const struct culprit_sums_row *culprit_sums_row_of(const struct culprit_sums *s, const struct catalog *catalog,
                                                   const struct target *target)
{
	size_t at = 0;
	const uint32_t number = gap_row_number(catalog, target);
	BISECT(at, s->rows, gap_row_number(catalog, &s->row[at].target) < number);
	return at < s->rows && gap_row_number(catalog, &s->row[at].target) == number ? &s->row[at] : NULL;
}

void culprit_sums_release(struct culprit_sums *s)
{
	for (size_t i = 0; i < s->rows; i++)
		free(s->row[i].culprit);
	for (size_t i = 0; i < s->names; i++)
		free(s->name[i]);
	free(s->name);
	free(s->row);
	free(s->actor);
	*s = (struct culprit_sums){ 0 };
}
