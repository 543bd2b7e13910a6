/* Tests of ui/: properties of cells, compared with brute force on small random histories; without screens. */
#include "test.h"

#include <unistd.h>

#include "base/states.h"
#include "ui/widgets/cells.h"
#include "ui/widgets/theme.h"

enum { SPAN = 4000, COLS = 50 };

struct world {
	char path[64];
	struct history *h;
	uint32_t attr;
	uint8_t truth[SPAN];               /* state at each ns; THREAD_STATE_COUNT: null value */
	uint8_t code[HISTORY_STATES], severity[HISTORY_STATES];
};

static uint64_t seed = 11;

static int64_t dice(int64_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (int64_t)((seed >> 20) % (uint64_t)n);
}

static const int64_t BEGIN = 1795152647000000000;

/* Writes intervals of random states, most of them up to `usual` ns long. The code of a state is its number. */
static void build(struct world *w, int64_t typical)
{
	struct error err = ERROR_INIT;
	struct history_options options = { .chunk = 3 };
	snprintf(w->path, sizeof w->path, "/tmp/stealscope-cells-XXXXXX");
	close(mkstemp(w->path));
	struct history_builder *b = history_create(w->path, &options, &err);
	if (!b)
		fail_msg("%s", err.text);
	unsigned set = history_state_set(b, "thread", thread_state_name, THREAD_STATE_COUNT);
	w->attr = history_attribute(b, "/Host/Threads/1/Status", HISTORY_STATE, set, &err);
	for (int64_t t = 0; t < SPAN;) {
		int64_t n = dice(4) ? 1 + dice(typical) : 1, state = dice(THREAD_STATE_COUNT + 1);
		assert_int_equal(history_set(b, BEGIN + t, w->attr, state < THREAD_STATE_COUNT ? state : HISTORY_NULL, &err), 0);
		for (; n > 0 && t < SPAN; n--)
			w->truth[t++] = (uint8_t)state;
	}
	if (history_finish(b, BEGIN, BEGIN + SPAN - 1, &err) < 0 || !(w->h = history_open(w->path, &err)))
		fail_msg("%s", err.text);
	w->attr = history_find(w->h, "/Host/Threads/1/Status");
	for (int i = 0; i < HISTORY_STATES; i++)
		w->code[i] = (uint8_t)(i < THREAD_STATE_COUNT ? i : THREAD_STATE_COUNT);
	static const uint8_t severity[] = { [THREAD_UNKNOWN] = 1, [THREAD_RUNNING] = 4, [THREAD_BLOCKED] = 3,
		[THREAD_PREEMPTED] = 11, [THREAD_VIRT_PREEMPTED] = 10, [THREAD_STATE_COUNT] = 0 };
	memcpy(w->severity, severity, sizeof severity);
}

static void drop(struct world *w)
{
	history_close(w->h);
	unlink(w->path);
}

static struct cell_source source(const struct world *w)
{
	return (struct cell_source){ w->h, &w->attr, 1, w->code, w->severity, false };
}

/* Counts changes, and the ns in each code, within [from, to]. Returns false outside the history. */
static bool count_truth(const struct world *w, int64_t from, int64_t to, int64_t sums[HISTORY_STATES], int *changes)
{
	memset(sums, 0, HISTORY_STATES * sizeof *sums);
	*changes = 0;
	from = from < BEGIN ? BEGIN : from;
	to = to > BEGIN + SPAN - 1 ? BEGIN + SPAN - 1 : to;
	for (int64_t t = from - BEGIN; t <= to - BEGIN; t++) {
		sums[w->truth[t]]++;
		*changes += t > from - BEGIN && w->truth[t] != w->truth[t - 1];
	}
	return from <= to;
}

static void check_cell(const struct world *w, int64_t from, int64_t to, const struct cell *c)
{
	int64_t sums[HISTORY_STATES];
	int changes;
	if (!count_truth(w, from, to, sums, &changes)) {
		assert_int_equal(c->form, CELL_EMPTY);
		return;
	}
	int64_t total = 0, waits = 0, largest[2] = { 0 };
	for (int s = 0; s <= THREAD_STATE_COUNT; s++) {
		bool suffers = w->severity[s] >= WAIT_SEVERITY;
		total += sums[s];
		waits += suffers ? sums[s] : 0;
		largest[suffers] = sums[s] > largest[suffers] ? sums[s] : largest[suffers];
	}
	if (changes == 1 && waits == 0) {
		assert_int_equal(c->form, CELL_SPLIT);
		assert_int_equal(c->main, w->truth[(from < BEGIN ? BEGIN : from) - BEGIN]);
		assert_int_not_equal(c->main, c->other);
		assert_int_equal(c->part, sums[c->main] * CELL_PARTS / total);
		return;
	}
	assert_int_equal(c->form, changes == 0 ? CELL_PURE : CELL_MIXED);
	/* Any wait is visible with its share, even a wait of 1 ns; the rest shows the most frequent other state. */
	assert_int_equal(c->part, waits * CELL_PARTS / total);
	assert_int_equal(w->severity[c->other] >= WAIT_SEVERITY, waits > 0);
	assert_int_equal(w->severity[c->main] >= WAIT_SEVERITY, waits == total);
	assert_int_equal(sums[c->other], largest[waits > 0]);
	assert_int_equal(sums[c->main], largest[waits == total]);
}

static void test_against_brute_force(void **state)
{
	(void)state;
	for (int round = 0; round < 40; round++) {
		struct world w = { 0 };
		struct error err = ERROR_INIT;
		build(&w, 1 + dice(round % 4 ? 400 : 12));
		struct cell_source src = source(&w);
		for (int i = 0; i < 60; i++) {
			struct cell cell[COLS];
			int64_t step = 1 + dice(dice(2) ? 5 : 200), t0 = BEGIN + dice(SPAN + 200) - 100;
			assert_int_equal(cells_row(&src, t0, step, COLS, cell, &err), 0);
			for (int c = 0; c < COLS; c++)
				check_cell(&w, t0 + c * step, t0 + (c + 1) * step - 1, &cell[c]);
		}
		drop(&w);
	}
}

static bool same(const struct cell *a, const struct cell *b)
{
	return a->form == b->form && a->main == b->main && a->other == b->other && a->part == b->part;
}

/* Panning by k columns shifts the picture by k columns. */
static void test_pan_shifts(void **state)
{
	(void)state;
	struct world w = { 0 };
	struct error err = ERROR_INIT;
	build(&w, 60);
	struct cell_source src = source(&w);
	for (int i = 0; i < 300; i++) {
		struct cell a[COLS], b[COLS];
		int64_t step = 1 + dice(80), t0 = BEGIN + dice(SPAN);
		int k = (int)dice(COLS);
		assert_int_equal(cells_row(&src, t0, step, COLS, a, &err), 0);
		assert_int_equal(cells_row(&src, t0 + k * step, step, COLS, b, &err), 0);
		for (int c = k; c < COLS; c++)
			assert_true(same(&a[c], &b[c - k]));
	}
	drop(&w);
}

/* A preemption of 1 ns in a trace that is otherwise running is visible at every zoom. */
static void test_one_ns_is_seen(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++) {
		int64_t sums[HISTORY_STATES] = { 0 };
		uint8_t severity[HISTORY_STATES] = { [1] = 4, [3] = 11 };
		sums[1] = (INT64_C(1) << dice(56)) + 15;
		sums[3] = 1;
		struct cell c = cell_of_sums(sums, severity, false);
		assert_int_equal(c.form, CELL_MIXED);
		assert_int_equal(c.main, 1);
		assert_int_equal(c.other, 3);
		assert_int_equal(c.part, sums[1] == 15 ? 1 : 0);
	}
}

/* Shares are correct even if the total of the sums overflows. */
static void test_shares_of_a_very_long_time(void **state)
{
	(void)state;
	int64_t sums[HISTORY_STATES] = { [1] = INT64_MAX, [3] = INT64_MAX };
	uint8_t severity[HISTORY_STATES] = { [1] = 4, [3] = 11 };
	assert_in_range(cell_of_sums(sums, severity, false).part, 8, 16);
	assert_int_equal(cell_of_split(INT64_MAX - 1, INT64_MAX, 1, 3).part, 15);
}

/* Owners are of equal rank: the most frequent owner fills the cell, the next one that is not idle is drawn in it. */
static void test_owners(void **state)
{
	(void)state;
	static const uint8_t severity[HISTORY_STATES] = { [1] = 1, [2] = 1, [3] = 1 };
	static const struct { int64_t sums[4]; struct cell cell; } cases[] = {
		{ { 80, 0, 20, 0 }, { CELL_MIXED, 0, 2, 3 } }, { { 20, 80, 0, 0 }, { CELL_MIXED, 1, 1, 0 } },
		{ { 0, 50, 30, 20 }, { CELL_MIXED, 1, 2, 4 } }, { { 0, 0, 9, 0 }, { CELL_PURE, 2, 2, 0 } },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		int64_t sums[HISTORY_STATES] = { 0 };
		memcpy(sums, cases[i].sums, sizeof cases[i].sums);
		struct cell c = cell_of_sums(sums, severity, true);
		assert_int_equal(c.form, cases[i].cell.form);
		assert_int_equal(c.main, cases[i].cell.main);
		assert_int_equal(c.other, cases[i].cell.other);
		assert_int_equal(c.part, cases[i].cell.part);
	}
}

/* The sums of the columns of a row add up to the sums of the window. */
static void test_sums_add_up(void **state)
{
	(void)state;
	struct world w = { 0 };
	struct error err = ERROR_INIT;
	build(&w, 100);
	struct cell_source src = source(&w);
	for (int i = 0; i < 100; i++) {
		int64_t step = 1 + dice(70), t0 = BEGIN + dice(SPAN), whole[HISTORY_STATES], added[HISTORY_STATES] = { 0 };
		int64_t total = 0;
		for (int c = 0; c < COLS; c++) {
			int64_t sums[HISTORY_STATES];
			if (t0 + c * step > BEGIN + SPAN - 1)
				break;
			assert_int_equal(cells_sums(&src, t0 + c * step, t0 + (c + 1) * step - 1, sums, &err), 0);
			for (int s = 0; s < HISTORY_STATES; s++)
				added[s] += sums[s];
		}
		int64_t last = t0 + COLS * step - 1 < BEGIN + SPAN - 1 ? t0 + COLS * step - 1 : BEGIN + SPAN - 1;
		assert_int_equal(cells_sums(&src, t0, last, whole, &err), 0);
		for (int s = 0; s < HISTORY_STATES; s++) {
			assert_int_equal(added[s], whole[s]);
			total += whole[s];
		}
		assert_int_equal(total, last - t0 + 1);
	}
	drop(&w);
}

/* A row with several attributes adds their sums: the same attribute twice shows the same shares. */
static void test_folded_machine_adds_up(void **state)
{
	(void)state;
	struct world w = { 0 };
	struct error err = ERROR_INIT;
	build(&w, 40);
	uint32_t twice[2] = { w.attr, w.attr };
	struct cell_source one = source(&w), two = { w.h, twice, 2, w.code, w.severity, false };
	for (int i = 0; i < 100; i++) {
		struct cell a[COLS], b[COLS];
		int64_t step = 1 + dice(80), t0 = BEGIN + dice(SPAN);
		assert_int_equal(cells_row(&one, t0, step, COLS, a, &err), 0);
		assert_int_equal(cells_row(&two, t0, step, COLS, b, &err), 0);
		for (int c = 0; c < COLS; c++)
			assert_true(a[c].form == CELL_SPLIT ? b[c].form == CELL_MIXED && b[c].part == 0 : same(&a[c], &b[c]));
	}
	drop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_brute_force),
		cmocka_unit_test(test_pan_shifts),
		cmocka_unit_test(test_one_ns_is_seen),
		cmocka_unit_test(test_sums_add_up),
		cmocka_unit_test(test_shares_of_a_very_long_time),
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_folded_machine_adds_up),
	};
	return cmocka_run_group_tests_name("ui cells", tests, NULL, NULL);
}
