/* Databases that can run the predefined queries (share/sql). Private to export/. */
#pragma once

#include "base/base.h"

/* A kind of database; implemented in query_*.c. */
struct fleet_database {
	const char *scheme;   /* "sqlite:" */
	bool is_clickhouse;   /* uses the lines for ClickHouse */
	/* Calls fn() for every row with a text for each column (NULL: null). target: the text after the scheme. Read-only. */
	int (*query)(const char *target, const char *sql, size_t columns, void (*fn)(void *arg, const char *const *value),
	           void *arg, struct error *err);
};
extern const struct fleet_database query_clickhouse, query_clickhouse_tls, query_sqlite, query_postgres;
