#include "export/clickhouse.h"

#include "base/base.h"

int clickhouse_open(struct clickhouse *c, const char *target, bool tls, struct error *err)
{
	*c = (struct clickhouse){ 0 };
	if (http_location_parse(&c->location, tls ? CLICKHOUSE "+https://" : CLICKHOUSE "://", target, tls ? "8443" : "8123",
	                        err)) {
		clickhouse_release(c);
		return -1;
	}
	c->location.tls = tls;
	const char *password = *c->location.password ? c->location.password : getenv("CLICKHOUSE_PASSWORD");
	if (password && strpbrk(password, "\r\n"))
		password = NULL;
	c->header[0] = mem_printf("X-ClickHouse-User: %s", *c->location.user ? c->location.user : "default");
	c->header[1] = password && *password ? mem_printf("X-ClickHouse-Key: %s", password) : NULL;
	return 0;
}

void clickhouse_release(struct clickhouse *c)
{
	http_cancel(c->http);
	http_location_release(&c->location);
	free(c->header[0]);
	free(c->header[1]);
	*c = (struct clickhouse){ 0 };
}

int clickhouse_post(struct clickhouse *c, const char *settings, const char *sql, http_body_fn *on_body, void *arg,
                    struct error *err)
{
	char *query = http_quote(sql), *database = http_quote(*c->location.database ? c->location.database : "default");
	char *path = mem_printf("/?%sdatabase=%s&query=%s", settings, database, query);
	http_cancel(c->http);
	c->http = http_post(CLICKHOUSE, &c->location, path, (const char *const *)c->header, on_body, arg, err);
	free(query);
	free(database);
	free(path);
	return c->http ? 0 : -1;
}

int clickhouse_finish(struct clickhouse *c, struct error *err)
{
	const int rc = http_finish(c->http, err);
	c->http = NULL;
	return rc;
}
