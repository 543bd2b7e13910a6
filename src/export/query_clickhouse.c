/* Runs predefined queries in ClickHouse; the answer has a line of tab-separated fields for each row. */
#include "base/base.h"
#include "export/clickhouse.h"
#include "export/export.h"
#include "export/fleet.h"

/* Read-only; joins as in standard SQL; errors are reported before the first row. */
#define SETTINGS "readonly=2&join_default_strictness=ALL&wait_end_of_query=1&"
#define LINE_MAX_BYTES (1 << 20)

struct row_parser {
	char *line;         /* the incomplete line */
	size_t used, cap;
	size_t columns;     /* expected number */
	void (*fn)(void *arg, const char *const *value);
	void *arg;
	bool malformed;     /* a line is too long or has a different column count */
};

/* Unescapes a field in place: "\\t" is a tab. Returns NULL for "\\N" (null). */
static const char *unescape_field(char *text)
{
	static const char from[] = "bfnrt0", to[] = "\b\f\n\r\t";  /* and NUL */
	if (strcmp(text, "\\N") == 0)
		return NULL;
	char *out = text;
	for (const char *at = text; *at; at++) {
		const char *known = at[0] == '\\' && at[1] ? strchr(from, at[1]) : NULL;
		at += at[0] == '\\' && at[1];
		*out++ = known ? to[known - from] : *at;
	}
	*out = '\0';
	return text;
}

static void parse_line(struct row_parser *l)
{
	const char *value[FLEET_COLUMNS];
	size_t n = 0;
	char *at = l->line;
	while (at && n < l->columns && n < FLEET_COLUMNS) {
		char *tab = strchr(at, '\t');
		if (tab)
			*tab = '\0';
		value[n++] = unescape_field(at);
		at = tab ? tab + 1 : NULL;
	}
	l->malformed |= at || n != l->columns;
	if (!l->malformed)
		l->fn(l->arg, value);
}

static void parse_bytes(void *arg, const char *bytes, size_t n)
{
	struct row_parser *l = arg;
	for (size_t i = 0; i < n && !l->malformed; i++) {
		*ARRAY_PUSH(l->line, l->used, l->cap) = bytes[i] == '\n' ? '\0' : bytes[i];
		if (bytes[i] == '\n') {
			parse_line(l);
			l->used = 0;
		}
		l->malformed |= l->used > LINE_MAX_BYTES;
	}
}

static int query(const char *target, bool tls, const char *sql, size_t columns,
                 void (*fn)(void *arg, const char *const *value), void *arg, struct error *err)
{
	struct clickhouse c;
	struct row_parser l = { .columns = columns, .fn = fn, .arg = arg };
	if (clickhouse_open(&c, target, tls, err))
		return -1;
	int rc = clickhouse_post(&c, SETTINGS, sql, parse_bytes, &l, err);
	if (rc == 0)
		rc = clickhouse_finish(&c, err);
	if (rc == 0 && (l.malformed || l.used))
		rc = error_set(err, STATUS_INPUT, NULL, CLICKHOUSE ": the answer has other columns than the query declares");
	free(l.line);
	clickhouse_release(&c);
	return rc;
}

static int query_plain(const char *target, const char *sql, size_t columns,
                       void (*fn)(void *arg, const char *const *value), void *arg, struct error *err)
{
	return query(target, false, sql, columns, fn, arg, err);
}

static int query_tls(const char *target, const char *sql, size_t columns,
                     void (*fn)(void *arg, const char *const *value), void *arg, struct error *err)
{
	return query(target, true, sql, columns, fn, arg, err);
}

const struct fleet_database query_clickhouse = { CLICKHOUSE "://", true, query_plain };
const struct fleet_database query_clickhouse_tls = { CLICKHOUSE "+https://", true, query_tls };
