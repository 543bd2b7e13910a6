/* ClickHouse connections for export and queries; each statement is one HTTP POST. Private to export/. */
#pragma once

#include "export/http.h"

#define CLICKHOUSE "clickhouse"

struct clickhouse {
	struct http_location location;
	char *header[3];      /* HTTP headers with user and password, up to NULL */
	struct http *http;    /* the current statement; NULL: none */
};

/* Parses target, the text after "clickhouse://", or after "clickhouse+https://" (tls); connects later, for each statement.
 * On failure there is nothing to release. */
int clickhouse_open(struct clickhouse *c, const char *target, bool tls, struct error *err);
void clickhouse_release(struct clickhouse *c);
/* Starts a statement: the caller then sends its data with http_send(), and calls clickhouse_finish(). settings:
 * "name=value&", or ""; on_body, arg: as for http_post(). */
int clickhouse_post(struct clickhouse *c, const char *settings, const char *sql, http_body_fn *on_body, void *arg,
                    struct error *err);
int clickhouse_finish(struct clickhouse *c, struct error *err);  /* ends the statement; returns 0 if it was successful */
