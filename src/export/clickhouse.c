#include "export/clickhouse.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

int clickhouse_open(struct clickhouse *c, const char *target, struct error *err)
{
	*c = (struct clickhouse){ .http.fd = -1 };
	if (http_location_parse(&c->location, CLICKHOUSE "://", target, "8123", err)) {
		clickhouse_release(c);
		return -1;
	}
	const char *password = *c->location.password ? c->location.password : getenv("CLICKHOUSE_PASSWORD");
	if (password && strpbrk(password, "\r\n"))
		password = NULL;
	c->headers = mem_printf("X-ClickHouse-User: %s\r\n%s%s%s", *c->location.user ? c->location.user : "default",
	                        password ? "X-ClickHouse-Key: " : "", password ? password : "", password ? "\r\n" : "");
	return 0;
}

void clickhouse_release(struct clickhouse *c)
{
	http_close(&c->http);
	http_location_release(&c->location);
	free(c->headers);
	*c = (struct clickhouse){ .http.fd = -1 };
}

int clickhouse_post(struct clickhouse *c, const char *settings, const char *sql, struct error *err)
{
	char *query = http_quote(sql), *database = http_quote(*c->location.database ? c->location.database : "default");
	char *path = mem_printf("/?%sdatabase=%s&query=%s", settings, database, query);
	int rc = http_post(&c->http, CLICKHOUSE, &c->location, path, c->headers, err);
	free(query);
	free(database);
	free(path);
	return rc;
}
