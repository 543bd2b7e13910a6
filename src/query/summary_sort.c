/* Sort orders of a summary. */
#include "base/base.h"
#include "query/query_internal.h"

#define ORDER_NAME(code, name, first) [code] = name,
const char *const summary_order_name[SUMMARY_ORDER_COUNT + 1] = { SUMMARY_ORDERS(ORDER_NAME) };
#undef ORDER_NAME

struct row_order {
	bool last;           /* the host and its threads, in orders that list guests first */
	double key;          /* greatest first */
	int64_t lost;
	struct summary_row row;
};

static double sort_key(const struct summary_row *r, enum summary_order by)
{
	const struct demand *d = &r->demand;
	switch (by) {
	case SUMMARY_BY_LOST: return (double)d->lost;
	case SUMMARY_BY_SHARE: return d->ran + d->lost > 0 ? (double)d->lost / (double)(d->ran + d->lost) : 0;
	case SUMMARY_BY_LONGEST: return r->gaps ? (double)(r->longest.end - r->longest.start) + 1 : 0;
	case SUMMARY_BY_P99: return (double)r->p99;
	case SUMMARY_BY_GAPS: return (double)r->gaps;
	case SUMMARY_BY_RAN: return (double)d->ran;
	case SUMMARY_BY_LIFE: return (double)(r->end - r->start) + 1;
	case SUMMARY_BY_ID: case SUMMARY_ORDER_COUNT: break;
	}
	return 0;
}

ORDER_BY(compare_rows, struct row_order, RISING(last) FALLING(key) FALLING(lost) RISING(row.target.index))

static void sort_rows(const struct catalog *catalog, struct summary_row *row, size_t n, enum summary_order by)
{
	struct row_order *order = mem_new(n, sizeof *order);
	for (size_t i = 0; i < n; i++) {
		bool host = catalog->machine[target_machine(catalog, &row[i].target)].kind == MACHINE_HOST;
		order[i] = (struct row_order){ host && by == SUMMARY_BY_LOST, sort_key(&row[i], by),
			by == SUMMARY_BY_ID ? 0 : row[i].demand.lost, row[i] };
	}
	ARRAY_SORT(order, n, compare_rows);
	for (size_t i = 0; i < n; i++)
		row[i] = order[i].row;
	free(order);
}

void summary_sort(struct summary *s, const struct catalog *catalog, enum summary_order by)
{
	sort_rows(catalog, s->row, s->machines, by);
	sort_rows(catalog, s->row + s->machines, s->rows - s->machines, by);
	s->by = by;
}
