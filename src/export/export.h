/* Exports a history as tables for other programs: databases, viewers, monitoring.
 *
 * tables.h describes the tables; fill_*.c read the history and produce the rows, which are passed one by one to a sink
 * (sinks.c lists the sinks). Memory use does not grow with the history. A run has an id that is equal for equal traces
 * and options, and every sink replaces older data of the same run: exporting a run again changes nothing. */
#pragma once

#include "base/base.h"
#include "base/progress.h"
#include "latency/latency.h"
#include "query/query.h"

/* Requests for a target of spans, with their culprits. */
struct export_spans {
	const struct requests *requests;
	const struct spans *spans;          /* read whole; NULL: the recording's requests */
	const struct span_clocks *clocks;
};

struct export_options {
	const char *target;        /* "csv:DIR", "sqlite:FILE", ... */
	const char *only;          /* table names, separated by commas; NULL: all tables that the target accepts */
	const struct export_spans *spans;  /* required by span targets, ignored by others */
	struct progress progress;  /* tick may be NULL */
};

/* A table that was written. */
struct export_table {
	const char *name, *description;  /* the table's name, and what a row means */
	uint64_t rows;
};
struct export_result {
	int64_t run;               /* the run's id, > 0 */
	struct export_table *table;
	size_t tables;
};

/* Exports a history. If the target allows it, all data appears at once (a single file, a transaction); otherwise the
 * file of the table `run` is written last and shows that the files of other tables are complete. Errors do not contain
 * the target's password. */
int export_history(const struct catalog *catalog, const struct export_options *options, struct export_result *out,
                   struct error *err);
void export_result_release(struct export_result *r);

/* ---- Rows of the monitor --------------------------------------------------------------------------------------- */

/* A vCPU in one period: a row of the table live_state. cpu: -1: a thread that is no vCPU. */
struct export_live_state {
	int64_t ts, period;        /* begin, ns since the epoch; length, ns */
	int64_t taken;             /* CLOCK_MONOTONIC, ns; not written */
	char *machine;
	int32_t cpu, tid;
	int64_t ran, stolen, throttled, blocked, longest;  /* ns */
};

/* Time that a vCPU lost to a culprit in one period: a row of the table live_steal. */
struct export_live_steal {
	int64_t ts, period, taken;
	char *machine;
	int32_t cpu;
	const char *kind;
	char *culprit;
	int64_t ns;
};

struct export_live {
	const char *host;
	struct export_live_state *state;
	size_t states;
	struct export_live_steal *steal;
	size_t steals;
};

/* Checks that a target exists in this build and accepts the monitor's rows. */
int export_live_check(const char *target, struct error *err);
/* Writes the rows as one run: in one transaction, or as one file for each table. The run's id is a hash of host and
 * times, so that writing the same rows again changes nothing. */
int export_live(const struct export_live *rows, const char *target, struct error *err);

#define EXPORT_TARGETS 16  /* maximum target count */
/* Returns true if a target takes requests instead of tables. */
bool export_takes_spans(const char *target);
/* A kind of target, for help texts; built: supported by this build. */
struct export_target {
	const char *scheme, *operand, *description;  /* "csv:", "DIR", description for people */
	bool built;
};
/* Returns target i; scheme is NULL after the last one. */
struct export_target export_target(size_t i);

/* ---- Predefined queries over all runs in a database ------------------------------------------------------------ */

#define FLEET_COLUMNS 16  /* most columns of an answer */
struct fleet_column { char *name, *type; };  /* type: text, int, duration (ns), date (ns since the epoch), share */
struct fleet_question {
	const char *name;     /* "victims" */
	char *about;          /* description, one line */
	struct fleet_column *column;
	size_t columns;
};
/* Describes predefined query i. Returns false after the last one. Call fleet_question_release(). */
bool fleet_question(size_t i, struct fleet_question *out);
void fleet_question_release(struct fleet_question *q);

/* Runs the predefined query with this name. url: "sqlite:FILE", "postgresql://..." or "clickhouse://...". Calls begin()
 * once, then row() for every row with a text for each column (NULL: null). Read-only. Errors do not contain the
 * password. */
int fleet_query(const char *url, const char *question, void (*begin)(void *arg, const struct fleet_question *q),
              void (*row)(void *arg, const char *const *value), void *arg, struct error *err);
