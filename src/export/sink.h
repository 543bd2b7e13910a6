/* Sinks: write rows to a kind of target. Each sink is implemented in sink_*.c and listed in sinks.c. Private to export/. */
#pragma once

#include "base/base.h"
#include "export/export.h"
#include "export/tables.h"

struct sink;

/* The run that is exported. */
struct sink_run {
	int64_t id;
	int64_t begin, end;    /* time range of the history, ns */
};

struct sink_ops {
	uint32_t tables;       /* accepted tables, TABLE_BIT() of each */
	/* Opens a target, the text after the scheme. NULL with *err on failure; nothing remains to be closed. */
	struct sink *(*open)(const char *target, const struct sink_run *run, struct error *err);
	/* Start a table, write a row with a cell for each field, end the table. Tables come in the order of enum table_code.
	 * Return -1 with *err on failure. */
	int (*begin)(struct sink *s, const struct export_shape *t, struct error *err);
	int (*row)(struct sink *s, const struct table_cell *cell, struct error *err);
	int (*end)(struct sink *s, struct error *err);
	/* Commits the data if status is 0. Otherwise discards the data (complete table files may remain) and leaves *err
	 * unchanged. Returns the status or -1. Always frees the sink. */
	int (*close)(struct sink *s, int status, struct error *err);
};

struct sink_kind {
	const char *scheme;          /* "csv:" */
	const char *operand;         /* "DIR" */
	const char *description;     /* for people */
	const struct sink_ops *ops;  /* NULL: not in this build */
	const char *library;         /* library that the sink needs; NULL: none */
	/* Returns true for an earlier output of this sink, which may be replaced. NULL: the sink checks this itself, or
	 * writes to directories. */
	bool (*is_replaceable)(const char *path);
	/* Writes requests as spans, instead of tables; NULL: tables. run: the run's id. */
	int (*write_spans)(const struct catalog *catalog, const struct export_spans *spans, int64_t run, const char *target,
	                   struct export_result *out, struct error *err);
};
extern const struct sink_kind sink_kinds[];  /* ends with scheme NULL */

/* Returns the kind of a target of this build, or NULL with *err set. */
const struct sink_kind *sink_kind_find(const char *target, struct error *err);

extern const struct sink_ops sink_csv, sink_sqlite, sink_postgres, sink_clickhouse, sink_clickhouse_tls,
	sink_folded, sink_metrics, sink_perfetto;
extern const struct sink_ops sink_no_tables;  /* of targets of spans */

/* Returns the code of a table in tables[]. */
static inline enum table_code table_code(const struct export_shape *t)
{
	return (enum table_code)(t - tables);
}
