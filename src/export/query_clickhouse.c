/* Asks ClickHouse: rows come as lines of fields between tabs. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "export/clickhouse.h"
#include "export/export.h"
#include "export/fleet.h"

/* Reads only, joins as SQL has them, and says that it failed before the first row rather than behind the last. */
#define SETTINGS "readonly=2&join_default_strictness=ALL&wait_end_of_query=1&"
#define LINE_MOST (1 << 20)  /* bytes */

struct lines {
	char *line;
	size_t used, cap, columns;
	void (*fn)(void *arg, const char *const *value);
	void *arg;
	bool broken;   /* a line is too long, or has other columns */
};

/* Where it stands: "\\N" is nothing, "\\t" a tab. */
static const char *unescape(char *text)
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

static void take_line(struct lines *l)
{
	const char *value[FLEET_COLUMNS];
	size_t n = 0;
	char *at = l->line;
	while (at && n < l->columns && n < FLEET_COLUMNS) {
		char *tab = strchr(at, '\t');
		if (tab)
			*tab = '\0';
		value[n++] = unescape(at);
		at = tab ? tab + 1 : NULL;
	}
	l->broken |= at || n != l->columns;
	if (!l->broken)
		l->fn(l->arg, value);
}

static void take(void *arg, const char *bytes, size_t n)
{
	struct lines *l = arg;
	for (size_t i = 0; i < n && !l->broken; i++) {
		*ARRAY_PUSH(l->line, l->used, l->cap) = bytes[i] == '\n' ? '\0' : bytes[i];
		if (bytes[i] == '\n') {
			take_line(l);
			l->used = 0;
		}
		l->broken |= l->used > LINE_MOST;
	}
}

static int ask(const char *target, const char *sql, size_t columns, void (*fn)(void *arg, const char *const *value),
               void *arg, struct error *err)
{
	struct clickhouse c;
	struct lines l = { .columns = columns, .fn = fn, .arg = arg };
	if (clickhouse_open(&c, target, err))
		return -1;
	int rc = clickhouse_post(&c, SETTINGS, sql, err);
	if (rc == 0)
		rc = http_hear(&c.http, take, &l, err);
	if (rc == 0 && (l.broken || l.used))
		rc = error_set(err, STATUS_INPUT, NULL, CLICKHOUSE ": the question has other columns than it says");
	free(l.line);
	clickhouse_release(&c);
	return rc;
}

const struct fleet_database ask_clickhouse = { "clickhouse://", true, ask };
