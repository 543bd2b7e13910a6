/* query/: the summary, compared with other queries: the values of each row with its list of gaps, and the culprit with
 * the steal matrix. */
#include "query_answers.h"
#include "test.h"

#include <unistd.h>

#include "query/query.h"
#include "ui_world.h"

static uint64_t seed = 7;

static int64_t dice(int64_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (int64_t)((seed >> 20) % (uint64_t)n);
}

static void check_gaps(const struct catalog *catalog, const struct summary *s, const struct summary_row *row)
{
	struct error err = ERROR_INIT;
	struct gap_list list;
	int64_t taken;
	assert_int_equal(query_answer(gap_list_open(catalog, &row->target, &(struct gap_options){ .from = s->start, .to = s->end }), &list,
	                             &err),
	                 0);
	assert_int_equal(steal_time(catalog, &row->target, s->start, s->end, &taken, &err), 0);
	assert_int_equal(row->demand.lost, taken);
	assert_int_equal(row->gaps, list.all.count);
	assert_true(llabs(row->p50 - list.all.p50) <= list.all.p50 / PERCENTILE_BOUND);
	assert_true(llabs(row->p90 - list.all.p90) <= list.all.p90 / PERCENTILE_BOUND);
	assert_true(llabs(row->p99 - list.all.p99) <= list.all.p99 / PERCENTILE_BOUND);
	if (list.all.count) {
		assert_int_equal(row->longest.start, list.item[0].gap.start);
		assert_int_equal(row->longest.end, list.item[0].gap.end);
	}
	gap_list_release(&list);
}

/* of a thread: time taken by its machine, less the VMM time for the thread itself */
static void check_culprit(const struct catalog *catalog, const struct summary *s, const struct summary_row *row)
{
	struct error err = ERROR_INIT;
	struct steal steal;
	int64_t by[64] = { 0 }, largest = 0, own = 0, most = 0, part = 0;
	assert_int_equal(steal_matrix(catalog, STEAL_BY_THREAD, &row->target, s->start, s->end, &steal, &err), 0);
	for (size_t i = 0; i < steal.cells; i++) {
		const struct steal_cell *c = &steal.cell[i];
		const bool is_own = c->culprit.kind == FLOW_HYPERVISOR &&
		    c->culprit.tid == catalog->thread[row->target.index].tid &&
		                    c->culprit.machine == (int32_t)target_machine(catalog, &row->target);
		own += is_own ? c->ns : 0;
		if (!is_own && c->culprit.machine >= 0 && c->culprit.kind != FLOW_WAITING)
			by[c->culprit.machine] += c->ns;
		else if (!is_own)
			most = c->ns > most ? c->ns : most;
		largest = c->ns > largest ? c->ns : largest;
	}
	most = own > most ? own : most;
	for (uint32_t m = 0; m < catalog->machines; m++)
		most = by[m] > most ? by[m] : most;
	if (row->culprit.kind == FLOW_PREEMPTING && row->culprit.tid < 0 && row->culprit.name == 0) {
		assert_int_equal(row->culprit_ns, by[row->culprit.machine]);
		assert_int_equal(row->culprit_ns, most);
	} else {
		for (size_t i = 0; i < steal.cells; i++)
			if (actor_same(&(struct actor){ steal.cell[i].culprit.machine, steal.cell[i].culprit.tid, 0,
			                               steal.cell[i].culprit.kind, steal.cell[i].culprit.reason },
			               &(struct actor){ row->culprit.machine, row->culprit.tid, 0, row->culprit.kind,
			                               row->culprit.reason }) &&
			    !strcmp(steal.name[steal.cell[i].culprit.name], s->name[row->culprit.name]))
				part = steal.cell[i].ns;
		assert_int_equal(row->culprit_ns, part);
		assert_int_equal(row->culprit_ns, largest);
		assert_true(part >= most / 2);
	}
	steal_release(&steal);
}

static size_t served;  /* number of machines with VMM time as the main culprit */

static void check_rows(const struct catalog *catalog, const struct summary *s)
{
	for (size_t i = 0; i < s->rows; i++) {
		const struct summary_row *row = &s->row[i];
		struct demand d;
		assert_int_equal(row->target.kind, i < s->machines ? TARGET_MACHINE : TARGET_THREAD);
		assert_int_equal(demand_of(catalog, &row->target, s->start, s->end, &d, NULL), 0);
		assert_int_equal(row->demand.ran, d.ran);
		assert_int_equal(row->demand.lost, d.lost);
		assert_true(row->start >= s->start && row->end <= s->end && row->start <= row->end);
		check_gaps(catalog, s, row);
		const bool is_machine = row->target.kind == TARGET_MACHINE;
		const bool is_served = is_machine && row->culprit.kind == FLOW_HYPERVISOR && row->culprit.tid < 0;
		assert_int_equal(row->culprit.kind == FLOW_RUNNING, row->gaps == 0 && !(is_machine && d.vmm_ns));
		assert_true(!is_machine || row->culprit_ns >= d.vmm_ns);  /* VMM time is a part of the lost time */
		if (is_served)
			assert_int_equal(row->culprit_ns, d.vmm_ns);
		served += is_served;
		if (row->gaps && row->target.kind == TARGET_THREAD)
			check_culprit(catalog, s, row);
	}
}

static bool comes_before(const struct catalog *catalog, const struct summary_row *a, const struct summary_row *b)
{
	bool x = catalog->machine[target_machine(catalog, &a->target)].kind == MACHINE_HOST;
	bool y = catalog->machine[target_machine(catalog, &b->target)].kind == MACHINE_HOST;
	return x == y ? a->demand.lost >= b->demand.lost : y;
}

static void with_world(void (*fn)(const struct catalog *catalog))
{
	char path[64] = "/tmp/stealscope-summary-XXXXXX";
	struct catalog catalog;
	struct error err = ERROR_INIT;
	close(mkstemp(path));
	ui_world_write(path, 30);
	struct history *h = history_open(path, &err);
	assert_non_null(h);
	assert_int_equal(catalog_open(&catalog, h, &err), 0);
	fn(&catalog);
	catalog_release(&catalog);
	history_close(h);
	unlink(path);
}

static void check_windows(const struct catalog *catalog)
{
	for (int round = 0; round < 20; round++) {
		struct error err = ERROR_INIT;
		struct summary s;
		int64_t from = round ? UI_WORLD_BEGIN + dice(UI_WORLD_SPAN / 2) : INT64_MIN;
		int64_t to = round ? from + dice(UI_WORLD_SPAN / 2) : INT64_MAX;
		struct summary_options o = { .from = from, .to = to, .gaps = true };
		assert_int_equal(query_answer(summary_open(catalog, &o), &s, &err), 0);
		check_rows(catalog, &s);
		for (size_t i = 1; i < s.rows; i++)
			assert_true(i == s.machines || comes_before(catalog, &s.row[i - 1], &s.row[i]));
		for (int by = 0; by < SUMMARY_ORDER_COUNT; by++)
			summary_sort(&s, catalog, (enum summary_order)by);
		check_rows(catalog, &s);
		for (size_t i = 1; i < s.rows; i++)
			assert_true(i == s.machines || s.row[i - 1].target.index < s.row[i].target.index);
		summary_release(&s);
	}
}

static void test_rows(void **state)
{
	(void)state;
	with_world(check_windows);
	assert_true(served > 0);
}

/* Of the first threads only, then of more: the second query adds to the sums of the first one. */
static void check_top(const struct catalog *catalog, const struct summary *all)
{
	struct error err = ERROR_INIT;
	for (size_t top = 1; top < 4; top++) {
		struct summary some;
		struct summary_options o = { .from = INT64_MIN, .to = INT64_MAX, .gaps = true, .top = top };
		assert_int_equal(query_answer(summary_open(catalog, &o), &some, &err), 0);
		assert_int_equal(some.rows, all->rows);
		for (size_t i = 0; i < some.rows; i++) {
			assert_int_equal(some.row[i].target.index, all->row[i].target.index);
			assert_int_equal(some.row[i].has_gaps, i < some.machines + top);
			assert_int_equal(some.row[i].gaps, some.row[i].has_gaps ? all->row[i].gaps : 0);
			assert_int_equal(some.row[i].culprit_ns, some.row[i].has_gaps ? all->row[i].culprit_ns : 0);
		}
		summary_release(&some);
	}
	struct summary some;
	struct summary_options o = { .from = INT64_MIN, .to = INT64_MAX, .gaps = true, .top = 1, .by = SUMMARY_BY_P99 };
	assert_int_equal(query_answer(summary_open(catalog, &o), &some, &err), 0);
	for (size_t i = 0; i < some.rows; i++)
		assert_true(some.row[i].has_gaps);  /* the order depends on all */
	summary_release(&some);
}

/* In steps as short as possible: without gaps, of one machine, and of none. */
static void check_ways(const struct catalog *catalog)
{
	struct error err = ERROR_INIT;
	struct summary all, some;
	struct summary_options o = { .from = INT64_MIN, .to = INT64_MAX, .gaps = true };
	struct catalog other;  /* keeps no sums of another query */
	assert_int_equal(catalog_open(&other, catalog->h, &err), 0);
	assert_int_equal(query_answer(summary_open(&other, &o), &all, &err), 0);
	catalog_release(&other);
	struct query *q = summary_open(catalog, &o);
	int done, steps = 0;
	while ((done = query_step(q, 1, &err)) == 0)
		steps++;
	assert_true(done > 0 && steps > 1);
	query_take(q, &some);
	query_close(q);
	assert_int_equal(some.rows, all.rows);
	for (size_t i = 0; i < all.rows; i++) {
		assert_int_equal(some.row[i].target.index, all.row[i].target.index);
		assert_int_equal(some.row[i].p99, all.row[i].p99);
		assert_int_equal(some.row[i].culprit_ns, all.row[i].culprit_ns);
	}
	summary_release(&some);
	assert_int_equal(catalog_open(&other, catalog->h, &err), 0);
	check_top(&other, &all);
	catalog_release(&other);

	struct target debian = { TARGET_MACHINE, (uint32_t)catalog_find_machine(catalog, "Debian") };
	o.only = &debian;
	o.gaps = false;
	assert_int_equal(query_answer(summary_open(catalog, &o), &some, &err), 0);
	assert_int_equal(some.machines, 1);
	assert_true(some.rows > 1 && some.rows < all.rows && some.row[0].demand.lost > 0 && some.row[0].gaps == 0);
	for (size_t i = 0; i < some.rows; i++)
		assert_int_equal(target_machine(catalog, &some.row[i].target), debian.index);
	summary_release(&some);

	q = summary_open(catalog, &o);  /* closed before its end */
	query_close(q);
	o = (struct summary_options){ .from = 1, .to = 0, .gaps = true };
	assert_int_equal(query_answer(summary_open(catalog, &o), &some, &err), 0);
	assert_int_equal(some.rows, 0);
	summary_release(&some);
	summary_release(&all);
}

static void test_ways(void **state)
{
	(void)state;
	with_world(check_ways);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows), cmocka_unit_test(test_ways) };
	return cmocka_run_group_tests_name("flow summary", tests, NULL, NULL);
}
