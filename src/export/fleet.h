/* Questions about all runs in a database: SQL that ships as files of its own (share/sql), asked through one of the
 * databases that runs are exported to. */
#ifndef STEALSCOPE_EXPORT_FLEET_H
#define STEALSCOPE_EXPORT_FLEET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* A database that can be asked; one file for each.  Private to export/. */
struct fleet_database {
	const char *scheme;   /* "sqlite:" */
	bool dialect;         /* it takes the lines of a question that are for ClickHouse */
	/* Calls fn for every row, whose values are texts, NULL where there is none.  target: what stands behind the scheme.
	 * Nothing is written. */
	int (*ask)(const char *target, const char *sql, size_t columns, void (*fn)(void *arg, const char *const *value),
	           void *arg, struct error *err);
};
extern const struct fleet_database ask_clickhouse, ask_sqlite, ask_postgres;

#endif
