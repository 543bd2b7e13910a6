/* Lists the target kinds, and recognizes their output files, which an export may replace. */
#include "export/otlp.h"

#include <string.h>

#include "base/file_open.h"
#include "base/atomic_file.h"

#define HEAD 4096  /* bytes read from a file to recognize it */

static void read_head(const char *path, char head[HEAD])
{
	FILE *f = file_open(path);
	head[f ? fread(head, 1, HEAD - 1, f) : 0] = '\0';
	if (f)
		fclose(f);
}

static bool is_metrics(const char *path)
{
	static const char begin[] = "# TYPE stealscope_";
	return file_begins_with(path, begin, sizeof begin - 1);
}

/* Returns true if the file begins with a packet that contains a sequence number and then a track descriptor. */
static bool is_perfetto(const char *path)
{
	static const char inside[] = { 0x50, 1, (char)0xe2, 3 };
	char head[HEAD] = { 0 };
	read_head(path, head);
	return head[0] == 0x0a && memmem(head + 2, sizeof inside + 1, inside, sizeof inside);
}

/* Returns true if the first line is "FRAME;FRAME... NUMBER". */
static bool is_folded(const char *path)
{
	char head[HEAD];
	read_head(path, head);
	char *end = strchr(head, '\n');
	if (!end)
		return false;
	*end = '\0';
	const char *number = strrchr(head, ' ');
	return number && number[1] && strspn(number + 1, "0123456789") == strlen(number + 1) && strchr(head, ';');
}

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

#ifdef HAVE_CURL
#define CLICKHOUSE &sink_clickhouse
#define CLICKHOUSE_TLS &sink_clickhouse_tls
#define OTLP_HTTP &sink_no_tables
#define OTLP_SEND otlp_send
#define OTLP_SEND_TLS otlp_send_tls
#else
#define CLICKHOUSE NULL
#define CLICKHOUSE_TLS NULL
#define OTLP_HTTP NULL
#define OTLP_SEND NULL
#define OTLP_SEND_TLS NULL
#endif

static bool is_otlp(const char *path)
{
	static const char begin[] = "{\"resourceSpans\":";
	return file_begins_with(path, begin, sizeof begin - 1);
}

const struct sink_ops sink_no_tables = { 0 };

const struct sink_kind sink_kinds[] = {
	{ "csv:", "DIR", "a directory per table with a file per run", &sink_csv, NULL, NULL, NULL },
	{ "sqlite:", "FILE", "SQLite database", SQLITE, "libsqlite3", NULL, NULL },
	{ "postgresql://", "USER@HOST/DATABASE", "PostgreSQL", POSTGRES, "libpq", NULL, NULL },
	{ "clickhouse://", "USER@HOST:8123/DATABASE", "ClickHouse, through HTTP", CLICKHOUSE, "libcurl", NULL, NULL },
	{ "clickhouse+https://", "USER@HOST/DATABASE", "the same, encrypted", CLICKHOUSE_TLS, "libcurl", NULL, NULL },
	{ "perfetto:", "FILE", "for Perfetto's viewer and trace_processor", &sink_perfetto, NULL, is_perfetto, NULL },
	{ "folded:", "FILE", "flame graphs: frames, then the ns", &sink_folded, NULL, is_folded, NULL },
	{ "openmetrics:", "FILE", "metrics for Prometheus, by node_exporter", &sink_metrics, NULL,
	  is_metrics, NULL },
	{ "otlp:", "FILE", "requests as spans: OTLP, JSON lines", &sink_no_tables, NULL, is_otlp, otlp_write_file },
	{ "otlp+http://", "HOST:4318/v1/traces", "the same, sent to a collector", OTLP_HTTP, "libcurl", NULL, OTLP_SEND },
	{ "otlp+https://", "HOST:4318/v1/traces", "the same, encrypted", OTLP_HTTP, "libcurl", NULL, OTLP_SEND_TLS },
	{ 0 },
};
