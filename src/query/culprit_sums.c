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

static void row_of_sum(const struct gap_row *row, const struct gap_sum *sum, struct culprit_sums_row *out)
{
	*out = (struct culprit_sums_row){ .target = row->target, .machine = row->victim, .gaps = sum->gaps,
		.longest = sum->longest, .longest_start = sum->longest_start, .culprits = sum->culprits };
	out->culprit = mem_new(sum->culprits, sizeof *out->culprit);
	for (uint32_t i = 0; i < sum->culprits; i++) {
		out->culprit[i] = sum->culprit[i];
		out->lost += sum->culprit[i].ns;
	}
}

static int culprit_sums_join(struct query *q, struct error *err)
{
	struct culprit_sums_query *s = (struct culprit_sums_query *)q;
	struct culprit_sums *out = &s->answer;
	(void)err;
	if (window_gaps_join(&s->sums, q) == 0)
		return 0;
	out->precision = s->sums.store->sums.precision;
	out->row = mem_new(s->rows.len, sizeof *out->row);
	for (size_t i = 0; i < s->rows.len; i++) {
		const struct gap_sum *sum = window_gaps_of(&s->sums, q->catalog, &s->rows.row[i].target);
		if (sum->gaps)
			row_of_sum(&s->rows.row[i], sum, &out->row[out->rows++]);
	}
	out->actors = s->sums.store->actors.len;
	out->actor = mem_new(out->actors, sizeof *out->actor);
	if (out->actors)
		memcpy(out->actor, s->sums.store->actors.actor, out->actors * sizeof *out->actor);
	names_copy(&s->sums.store->names, &out->name, &out->names);
	window_gaps_release(&s->sums, q->catalog);
	return 1;
}

static void culprit_sums_close(struct query *q)
{
	struct culprit_sums_query *s = (struct culprit_sums_query *)q;
	window_gaps_release(&s->sums, q->catalog);
	gap_rows_release(&s->rows);
	culprit_sums_release(&s->answer);
}

static const struct query_kind culprit_sums_query = {
	culprit_sums_walk, culprit_sums_join, culprit_sums_close, ANSWER(struct culprit_sums_query, answer)
};

struct query *culprit_sums_open(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to)
{
	struct gap_rows rows;
	if (target)
		gap_rows_list(&rows, catalog, target);
	else
		sums_rows_list(&rows, catalog);
	return culprit_sums_open_rows(catalog, &rows, from, to);
}

struct query *culprit_sums_open_rows(const struct catalog *catalog, const struct gap_rows *rows, int64_t from, int64_t to)
{
	struct culprit_sums_query *c = mem_new(1, sizeof *c);
	query_init(&c->q, &culprit_sums_query, catalog, from, to, 1);
	c->rows = *rows;
	window_gaps_init(&c->sums, &c->rows);
	c->answer = (struct culprit_sums){ .start = c->q.from, .end = c->q.to };
	return &c->q;
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
	names_free(s->name, s->names);
	free(s->row);
	free(s->actor);
	*s = (struct culprit_sums){ 0 };
}
