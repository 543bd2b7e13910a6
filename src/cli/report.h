/* Tables as text, csv or json: one description of the columns, three forms.
 *
 * csv and json carry the column names as keys and raw numbers (ns, shares 0..1); text carries headings and is meant
 * for people, aligned, in 80 columns: texts that do not fit are cut where a '~' stands; without rows it is "none".
 * Text from traces is escaped here, so callers pass it as it is.
 * Rows stream: only the first REPORT_LOOKAHEAD rows of a text table are held, to learn the widths. */
#ifndef STEALSCOPE_CLI_REPORT_H
#define STEALSCOPE_CLI_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define REPORT_LOOKAHEAD 1000
#define REPORT_WIDTH 80      /* columns of a text table */
#define REPORT_NARROWEST 10  /* columns that a text keeps, whatever the table's width */

enum report_format { FORMAT_TEXT, FORMAT_CSV, FORMAT_JSON };
extern const char *const report_formats[];  /* NULL-terminated, for OPT_CHOICE */
#define FORMAT_OPTION(format) { "format", 0, OPT_CHOICE, "FORMAT", "text, csv or json", (format), report_formats }

enum column_type {
	COL_TEXT,
	COL_INT,
	COL_DURATION,  /* ns; text: "5.21 ms" */
	COL_CLOCK,     /* ns since the epoch; text: "12:03:04.1139" */
	COL_SHARE,     /* 0..1; text: "61.8%" */
	COL_REAL,      /* text: three decimals; csv and json: nine */
};

struct column {
	const char *name;     /* csv and json */
	const char *heading;  /* text; NULL: the column is not shown in text */
	enum column_type type;
};

/* One value; `absent` gives an empty field (null in json). */
struct value {
	const char *text;
	int64_t integer;
	double real;
	int absent;
};
#define VAL_TEXT(s) ((struct value){ .text = (s) })
#define VAL_INT(i) ((struct value){ .integer = (i) })
#define VAL_REAL(r) ((struct value){ .real = (r) })
#define VAL_NONE ((struct value){ .absent = 1 })

struct report;

struct report *report_begin(FILE *out, enum report_format format, const struct column *column, size_t columns);
void report_row(struct report *r, const struct value *value);  /* value[columns] */
void report_end(struct report *r);                             /* frees */

#endif
