/* Rows of a report in memory, and their layout in columns. A part of report/report.h, which includes it.
 *
 * Text and panes have the same layout. Names come before numbers: while the table is wider than the screen,
 * report_table_fit() drops the columns of shape.droppable, then machine names longer than MACHINE_CELLS are shortened, and
 * only if no column is left to drop the widest names are cut. */
#pragma once

#include "report/report.h"

#define TABLE_HEADING SIZE_MAX  /* number of the row of headings */

struct report_table {
	struct report_shape shape;   /* the columns are a copy, owned */
	struct report_field {
		char *text;              /* for people, escaped, owned; NULL: not in text, or no value */
		int64_t key;             /* its number, to sort by; 0: text */
		char *link;              /* value.link, owned */
	} *field;                    /* row by row */
	size_t rows, fields, fields_cap;
	size_t most;                 /* rows that are wanted: see report_is_full(); 0: all */
	bool has_more;               /* there are more rows than `most` */
	int *widest;                 /* cells of the widest text of each column, and of its heading */
	int *width;                  /* report_table_fit(): each column's cells; TABLE_DROPPED: not shown */
	int gap;                     /* report_table_fit(): cells between columns */
	bool fields_cut;             /* report_table_cell(): a COL_FIELDS column was cut */
	/* formats a time with the precision of step, ns; NULL: time_clock() */
	char *(*clock)(const void *arg, char buf[TIME_TEXT], int64_t t, int64_t step);
	const void *clock_arg;
};

/* Starts a table without rows; keeps clock and most. Call report_table_release() first if there was one. */
void report_table_begin(struct report_table *t, const struct report_shape *shape);
void report_table_add(struct report_table *t, const struct value *value);  /* value[columns] */
void report_table_clear(struct report_table *t);  /* frees the rows; keeps the widths */
void report_table_release(struct report_table *t);  /* frees all; keeps clock */
/* Computes the layout for a screen of w columns; 0: no limit. */
void report_table_fit(struct report_table *t, int w);
bool report_table_shows(const struct report_table *t, size_t column);
/* Returns a field's text, or a heading; "" if it has none. */
const char *report_table_text(const struct report_table *t, size_t row, size_t column);
/* Returns a field, cut to its column and padded if it is a number; the caller frees it. */
char *report_table_cell(struct report_table *t, size_t row, size_t column);
/* Returns the column with this name, or without a name, heading. Returns shape.columns if there is none. */
size_t report_table_column(const struct report_table *t, const char *name);
