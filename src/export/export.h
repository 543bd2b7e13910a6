/* A history as tables for other programs: databases, viewers, monitoring.
 *
 * What there is to tell is described once (tables.h), read from the history once per table and streamed, row by row, into a
 * sink: a row of a table of targets (sinks.c).  Memory does not grow with the history.  A run has a number that is the
 * same for the same traces and options, and every sink replaces what it holds of that run: exporting again changes
 * nothing. */
#ifndef STEALSCOPE_EXPORT_EXPORT_H
#define STEALSCOPE_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/progress.h"
#include "query/query.h"

struct export_options {
	const char *target;        /* "csv:DIR", "sqlite:FILE", ... */
	const char *only;          /* names of tables, separated by commas; NULL: all that the target takes */
	struct progress progress;  /* tick may be NULL */
};

/* What was written. */
struct export_table {
	const char *name, *what;   /* of the table, and of one row */
	uint64_t rows;
};
struct export_result {
	int64_t run;               /* > 0 */
	struct export_table *table;
	size_t tables;
};

/* Writes all or nothing where the target can do that (files appear whole, databases see one transaction); csv: the file of
 * the run, which comes last, says that the others are whole.  An error names no password of the target. */
int export_history(const struct topo *topo, const struct export_options *options, struct export_result *out,
                   struct error *err);
void export_result_release(struct export_result *r);

#define EXPORT_TARGETS 16  /* at most */
/* The targets there are, in order; scheme NULL behind the last.  built: this program has it. */
struct export_target {
	const char *scheme, *operand, *what;  /* "csv:", "DIR", and what it is */
	bool built;
};
struct export_target export_target(size_t i);

/* ---- Questions about all runs in a database ------------------------------------------------------------------- */

#define FLEET_COLUMNS 16  /* at most */
struct fleet_column { char *name, *type; };  /* type: text, int, duration (ns), date (ns since the epoch), share */
struct fleet_question {
	const char *name;     /* "victims" */
	char *about;          /* a line */
	struct fleet_column *column;
	size_t columns;
};
/* Question i of those that ship; false behind the last.  Call fleet_question_release(). */
bool fleet_question(size_t i, struct fleet_question *out);
void fleet_question_release(struct fleet_question *q);

/* url: "sqlite:FILE", "postgresql://..." or "clickhouse://...".  Calls begin once, and row for every row: values are
 * texts, NULL where there is none.  Nothing is written; an error names no password. */
int fleet_ask(const char *url, const char *question, void (*begin)(void *arg, const struct fleet_question *q),
              void (*row)(void *arg, const char *const *value), void *arg, struct error *err);

#endif
