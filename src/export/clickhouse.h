/* ClickHouse connections for export and queries; each statement is one HTTP POST. Private to export/. */
#ifndef STEALSCOPE_EXPORT_CLICKHOUSE_H
#define STEALSCOPE_EXPORT_CLICKHOUSE_H

#include "export/http.h"

#define CLICKHOUSE "clickhouse"

struct clickhouse {
	struct http_location location;
	char *headers;     /* HTTP headers with user and password */
	struct http http;  /* connection of the current statement */
};

/* Parses target, the text after "clickhouse://"; connects later, for each statement. On failure there is nothing to
 * release. */
int clickhouse_open(struct clickhouse *c, const char *target, struct error *err);
void clickhouse_release(struct clickhouse *c);
/* Starts a statement; the caller then sends its data with http_send() and reads the answer. settings: "name=value&", or
 * "". */
int clickhouse_post(struct clickhouse *c, const char *settings, const char *sql, struct error *err);

#endif
