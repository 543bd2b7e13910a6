/* The table of targets. */
#include "export/sink.h"

#ifdef HAVE_SQLITE
#define SQLITE &sink_sqlite
#else
#define SQLITE NULL
#endif

#ifdef HAVE_POSTGRES
#define POSTGRES &sink_postgres
#else
#define POSTGRES NULL
#endif

const struct sink_kind sink_kinds[] = {
	{ "csv:", "DIR", "a folder for each table, in it a file for each run", &sink_csv, NULL },
	{ "sqlite:", "FILE", "SQLite database", SQLITE, "libsqlite3" },
	{ "postgresql://", "USER@HOST/DATABASE", "PostgreSQL", POSTGRES, "libpq" },
	{ "clickhouse://", "USER@HOST:8123/DATABASE", "ClickHouse, through HTTP", &sink_clickhouse, NULL },
	{ "perfetto:", "FILE", "for Perfetto's viewer and trace_processor", &sink_perfetto, NULL },
	{ "chrome:", "FILE", "json for chrome://tracing and Perfetto's viewer", &sink_chrome, NULL },
	{ "folded:", "FILE", "stacks for flame graphs: machine;thread;kind;thief ns", &sink_folded, NULL },
	{ "openmetrics:", "FILE", "figures for Prometheus, as node_exporter takes them from files", &sink_metrics, NULL },
	{ 0 },
};
