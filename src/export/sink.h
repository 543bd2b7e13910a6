/* Where rows go.  One file for each, described by one row of the table in sinks.c.  Private to export/. */
#ifndef STEALSCOPE_EXPORT_SINK_H
#define STEALSCOPE_EXPORT_SINK_H

#include <stdbool.h>

#include "base/error.h"
#include "export/tables.h"

struct sink;

/* What a sink needs to know before it sees a row. */
struct sink_run {
	int64_t id;
	int64_t begin, end;    /* ns: the span of the history */
};

struct sink_ops {
	uint32_t tables;       /* those that it takes: TABLE_BIT() of each */
	/* target: behind the scheme, all of it for an URL.  NULL and *err on failure; then nothing is left behind. */
	struct sink *(*open)(const char *target, const struct sink_run *run, struct error *err);
	/* Tables come one after the other, in their order; a row has a cell for each field.  -1 and *err on failure. */
	int (*begin)(struct sink *s, const struct export_shape *t, struct error *err);
	int (*row)(struct sink *s, const struct table_cell *cell, struct error *err);
	int (*end)(struct sink *s, struct error *err);
	/* status 0: what was written takes effect; else the run is not among those that count, though files of tables that
	 * were whole may stay, and *err stays.  Frees in any case. */
	int (*close)(struct sink *s, int status, struct error *err);
};

struct sink_kind {
	const char *scheme;          /* "csv:" */
	const char *operand;         /* "DIR" */
	const char *what;            /* for people */
	const struct sink_ops *ops;  /* NULL: built without ... */
	const char *library;         /* ... this */
	bool (*is_one)(const char *path);  /* a file that it may replace; NULL: it replaces none */
};
extern const struct sink_kind sink_kinds[];  /* scheme NULL behind the last */

extern const struct sink_ops sink_csv, sink_avro, sink_sqlite, sink_postgres, sink_clickhouse, sink_folded, sink_metrics,
	sink_chrome, sink_perfetto;

static inline enum table_code table_code(const struct export_shape *t)
{
	return (enum table_code)(t - tables);
}

#endif
