/* What loading into ClickHouse and asking it share: one statement is one POST.  Private to export/. */
#ifndef STEALSCOPE_EXPORT_CLICKHOUSE_H
#define STEALSCOPE_EXPORT_CLICKHOUSE_H

#include "export/http.h"

#define CLICKHOUSE "clickhouse"

struct clickhouse {
	struct http_place place;
	char *headers;     /* who we are */
	struct http http;  /* the statement under way */
};

/* target: what stands behind "clickhouse://".  On failure there is nothing to release. */
int clickhouse_open(struct clickhouse *c, const char *target, struct error *err);
void clickhouse_release(struct clickhouse *c);
/* Begins a statement; http_send() its data, and hear the answer.  settings: "name=value&", or "". */
int clickhouse_post(struct clickhouse *c, const char *settings, const char *sql, struct error *err);

#endif
