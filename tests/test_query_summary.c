/* query/: who suffers, against the other questions of query/: each row's figures are those of its own list of gaps, and its
 * thief is the one that the steal matrix names. */
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

static void check_gaps(const struct topo *topo, const struct summary *s, const struct summary_row *row)
{
	struct error err = ERROR_INIT;
	struct gap_list list;
	int64_t taken;
	assert_int_equal(gap_list_of(topo, &row->who, &(struct gap_options){ .from = s->start, .to = s->end }, &list, &err), 0);
	assert_int_equal(steal_time(topo, &row->who, s->start, s->end, &taken, &err), 0);
	assert_int_equal(row->demand.lost, taken);
	assert_int_equal(row->gaps, list.all.count);
	assert_int_equal(row->p50, list.all.p50);
	assert_int_equal(row->p90, list.all.p90);
	assert_int_equal(row->p99, list.all.p99);
	if (list.all.count) {
		assert_int_equal(row->longest.start, list.item[0].gap.start);
		assert_int_equal(row->longest.end, list.item[0].gap.end);
	}
	gap_list_release(&list);
}

/* Of a thread: what was taken by its machine, but for what the hypervisor took for itself. */
static void check_thief(const struct topo *topo, const struct summary *s, const struct summary_row *row)
{
	struct error err = ERROR_INIT;
	struct steal steal;
	int64_t by[64] = { 0 }, largest = 0, own = 0, most = 0, part = 0;
	assert_int_equal(steal_matrix(topo, STEAL_BY_THREAD, &row->who, s->start, s->end, &steal, &err), 0);
	for (size_t i = 0; i < steal.cells; i++) {
		const struct steal_cell *c = &steal.cell[i];
		const bool is_own = c->thief.kind == FLOW_HYPERVISOR && c->thief.tid == topo->thread[row->who.index].tid &&
		                    c->thief.system == (int32_t)subject_machine(topo, &row->who);
		own += is_own ? c->ns : 0;
		if (!is_own && c->thief.system >= 0 && c->thief.kind != FLOW_WAITING)
			by[c->thief.system] += c->ns;
		else if (!is_own)
			most = c->ns > most ? c->ns : most;
		largest = c->ns > largest ? c->ns : largest;
	}
	most = own > most ? own : most;
	for (uint32_t m = 0; m < topo->machines; m++)
		most = by[m] > most ? by[m] : most;
	if (row->thief.kind == FLOW_PREEMPTING && row->thief.tid < 0 && row->thief.name == 0) {
		assert_int_equal(row->thief_ns, by[row->thief.system]);
		assert_int_equal(row->thief_ns, most);
	} else {
		for (size_t i = 0; i < steal.cells; i++)
			if (party_same(&(struct party){ steal.cell[i].thief.system, steal.cell[i].thief.tid, 0, steal.cell[i].thief.kind },
			               &(struct party){ row->thief.system, row->thief.tid, 0, row->thief.kind }) &&
			    !strcmp(steal.name[steal.cell[i].thief.name], s->name[row->thief.name]))
				part = steal.cell[i].ns;
		assert_int_equal(row->thief_ns, part);
		assert_int_equal(row->thief_ns, largest);
		assert_true(part >= most / 2);
	}
	steal_release(&steal);
}

static size_t served;  /* machines of which the hypervisor had most */

static void check_rows(const struct topo *topo, const struct summary *s)
{
	for (size_t i = 0; i < s->rows; i++) {
		const struct summary_row *row = &s->row[i];
		struct demand d;
		assert_int_equal(row->who.kind, i < s->machines ? SUBJECT_MACHINE : SUBJECT_THREAD);
		assert_int_equal(demand_of(topo, &row->who, s->start, s->end, &d, NULL), 0);
		assert_int_equal(row->demand.ran, d.ran);
		assert_int_equal(row->demand.lost, d.lost);
		assert_true(row->start >= s->start && row->end <= s->end && row->start <= row->end);
		check_gaps(topo, s, row);
		const bool is_machine = row->who.kind == SUBJECT_MACHINE;
		const bool is_served = is_machine && row->thief.kind == FLOW_HYPERVISOR && row->thief.tid < 0;
		assert_int_equal(row->thief.kind == FLOW_RUNNING, row->gaps == 0 && !(is_machine && d.served));
		assert_true(!is_machine || row->thief_ns >= d.served);  /* what it was served is a part of what it lost */
		if (is_served)
			assert_int_equal(row->thief_ns, d.served);
		served += is_served;
		if (row->gaps && row->who.kind == SUBJECT_THREAD)
			check_thief(topo, s, row);
	}
}

static bool comes_before(const struct topo *topo, const struct summary_row *a, const struct summary_row *b)
{
	bool x = topo->machine[subject_machine(topo, &a->who)].kind == MACHINE_HOST;
	bool y = topo->machine[subject_machine(topo, &b->who)].kind == MACHINE_HOST;
	return x == y ? a->demand.lost >= b->demand.lost : y;
}

static void with_world(void (*fn)(const struct topo *topo))
{
	char path[64] = "/tmp/stealscope-summary-XXXXXX";
	struct topo topo;
	struct error err = ERROR_INIT;
	close(mkstemp(path));
	ui_world_write(path, 30);
	struct history *h = history_open(path, &err);
	assert_non_null(h);
	assert_int_equal(topo_open(&topo, h, &err), 0);
	fn(&topo);
	topo_release(&topo);
	history_close(h);
	unlink(path);
}

static void check_windows(const struct topo *topo)
{
	for (int round = 0; round < 20; round++) {
		struct error err = ERROR_INIT;
		struct summary s;
		int64_t from = round ? UI_WORLD_BEGIN + dice(UI_WORLD_SPAN / 2) : INT64_MIN;
		int64_t to = round ? from + dice(UI_WORLD_SPAN / 2) : INT64_MAX;
		struct summary_options o = { .from = from, .to = to, .gaps = true };
		assert_int_equal(summary_of(topo, &o, &s, &err), 0);
		check_rows(topo, &s);
		for (size_t i = 1; i < s.rows; i++)
			assert_true(i == s.machines || comes_before(topo, &s.row[i - 1], &s.row[i]));
		for (int by = 0; by < SUMMARY_ORDER_COUNT; by++)
			summary_sort(&s, topo, (enum summary_order)by);
		check_rows(topo, &s);
		for (size_t i = 1; i < s.rows; i++)
			assert_true(i == s.machines || s.row[i - 1].who.index < s.row[i].who.index);
		summary_release(&s);
	}
}

static void test_rows(void **state)
{
	(void)state;
	with_world(check_windows);
	assert_true(served > 0);
}

/* In steps as short as can be, without gaps, of one machine, and of nothing. */
static void check_ways(const struct topo *topo)
{
	struct error err = ERROR_INIT;
	struct summary all, some;
	struct summary_options o = { .from = INT64_MIN, .to = INT64_MAX, .gaps = true };
	assert_int_equal(summary_of(topo, &o, &all, &err), 0);
	struct inquiry *q = summary_open(topo, &o);
	int done, steps = 0;
	while ((done = inquiry_step(q, 1, &err)) == 0)
		steps++;
	assert_true(done > 0 && steps > 1);
	summary_take(q, &some);
	inquiry_close(q);
	assert_int_equal(some.rows, all.rows);
	for (size_t i = 0; i < all.rows; i++) {
		assert_int_equal(some.row[i].who.index, all.row[i].who.index);
		assert_int_equal(some.row[i].p99, all.row[i].p99);
		assert_int_equal(some.row[i].thief_ns, all.row[i].thief_ns);
	}
	summary_release(&some);

	struct subject debian = { SUBJECT_MACHINE, (uint32_t)topo_find_machine(topo, "Debian") };
	o.only = &debian;
	o.gaps = false;
	assert_int_equal(summary_of(topo, &o, &some, &err), 0);
	assert_int_equal(some.machines, 1);
	assert_true(some.rows > 1 && some.rows < all.rows && some.row[0].demand.lost > 0 && some.row[0].gaps == 0);
	for (size_t i = 0; i < some.rows; i++)
		assert_int_equal(subject_machine(topo, &some.row[i].who), debian.index);
	summary_release(&some);

	q = summary_open(topo, &o);  /* closed in the middle of its work */
	inquiry_close(q);
	o = (struct summary_options){ .from = 1, .to = 0, .gaps = true };
	assert_int_equal(summary_of(topo, &o, &some, &err), 0);
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
