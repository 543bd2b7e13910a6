/* Tests of report/: the layout of a table at all widths. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "report/report.h"

static const struct column columns[] = {
	{ "start", "at", COL_CLOCK }, { "target", "target", COL_TEXT }, { "ns", "length", COL_DURATION },
	{ "state", "state", COL_UNCUT }, { "culprit", "culprit", COL_TEXT }, { "tid", NULL, COL_INT },
	{ "count", "count", COL_INT }, { "share", "share", COL_SHARE },
};
enum { TARGET = 1, CULPRIT = 4, TID = 5 };
static const char droppable[] = "count share state start ns";

static void fill(struct report_table *t, const char *target, const char *culprit)
{
	static const struct report_shape shape = REPORT_SHAPE_DROPPING("test", columns, droppable);
	report_table_begin(t, &shape);
	for (int64_t i = 0; i < 20; i++)
		report_table_add(t, (struct value[]){ VAL_INT(1000000000 * i), VAL_TEXT(i == 7 ? target : "vm/1 sh"),
			VAL_INT(i * 1234567), VAL_TEXT("PREEMPTED"), i == 3 ? VAL_TEXT(culprit) : VAL_NONE, VAL_INT(i), VAL_INT(i * 100),
			VAL_REAL((double)i / 20) });
}

static int width_of(const struct report_table *t)
{
	int w = -t->gap;
	for (size_t c = 0; c < t->shape.columns; c++)
		w += report_table_shows(t, c) ? t->width[c] + t->gap : 0;
	return w;
}

/* The table fits; no name is cut while a column is shown that could be dropped; columns are dropped in their order. */
static void test_names_before_columns(void **state)
{
	(void)state;
	static const char *const names[][2] = { { "vm/1 sh", "host/2 burnP6" }, { "Debian/151 fibonacci", "(idle CPU)" },
		{ "Debian/12345 kworker/u16:3-e", "hypervisor for Debian/151 fibonacci" } };
	for (size_t i = 0; i < COUNT(names); i++) {
		struct report_table t = { 0 };
		fill(&t, names[i][0], names[i][1]);
		for (int w = 24; w < 200; w++) {
			report_table_fit(&t, w);
			assert_true(width_of(&t) <= w && !report_table_shows(&t, TID));
			const bool cut = t.width[TARGET] < t.widest[TARGET] || t.width[CULPRIT] < t.widest[CULPRIT];
			bool shown = false;
			char list[sizeof droppable];
			snprintf(list, sizeof list, "%s", droppable);
			for (char *rest = list, *name; (name = strtok_r(rest, " ", &rest));) {
				const bool is_shown = report_table_shows(&t, report_table_column(&t, name));
				if (cut && is_shown)
					fail_msg("%d columns: %s is shown, a name is cut", w, name);
				if (shown && !is_shown)
					fail_msg("%d columns: %s is dropped before an earlier one", w, name);
				shown |= is_shown;
			}
		}
		report_table_fit(&t, 0);
		for (size_t c = 0; c < t.shape.columns; c++)
			assert_int_equal(report_table_shows(&t, c), c != TID);
		report_table_release(&t);
	}
}

/* The column by which the rows are sorted stays; long names of machines are shortened before columns are dropped for all
 * names to fit. */
static void test_sorted_and_long(void **state)
{
	(void)state;
	struct report_table t = { 0 };
	fill(&t, "instance-0000002f-of-a-cloud-with-long-names-0001/151 nginx", "host/2 burnP6");
	t.shape.sort_column = "count";
	report_table_fit(&t, 80);
	assert_true(report_table_shows(&t, report_table_column(&t, "count")));
	char *cell = report_table_cell(&t, 7, TARGET);
	assert_non_null(strstr(cell, "/151 nginx"));
	free(cell);
	report_table_fit(&t, 0);
	cell = report_table_cell(&t, TABLE_HEADING, 2);
	assert_int_equal(text_width(cell), t.width[2]);  /* numbers and their headings end at the same column */
	free(cell);
	report_table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_before_columns),
		cmocka_unit_test(test_sorted_and_long),
	};
	return cmocka_run_group_tests_name("report table", tests, NULL, NULL);
}
