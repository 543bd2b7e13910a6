#include "export/postgres.h"

#include "base/base.h"

struct postgres_calls pq;

static int load_libpq(struct error *err)
{
	static const char *const name[] = { POSTGRES_CALLS(LIBRARY_NAME) NULL };
	return library_load(POSTGRES_FILE, "libpq", name, &pq, err) ? error_wrap(err, "postgresql") : 0;
}

int postgres_refuse(enum status status, const char *message, struct error *err)
{
	char line[512];
	snprintf(line, sizeof line, "%.*s", (int)strcspn(message, "\n"), message);
	return error_set(err, status, NULL, "postgresql: %s", *line ? line : "connection failed");
}

static void ignore_notice(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

/* Returns -1 for a malformed URL. The error messages of libpq contain parts of such a URL, which may belong to a
 * password that is not percent-encoded, so these URLs must not reach libpq. */
static int check_url(const char *url, struct error *err)
{
	char *message = NULL;
	PQconninfoOption *options = pq.conninfoParse(url, &message);
	bool valid = options != NULL;
	for (PQconninfoOption *o = options; o && o->keyword; o++) {
		const char *value = o->val ? o->val : "";
		if (strcmp(o->keyword, "port") == 0)
			valid &= value[strspn(value, "0123456789,")] == '\0';
		if (strcmp(o->keyword, "host") == 0)
			valid &= !strchr(value, '@');
	}
	pq.freemem(message);
	pq.conninfoFree(options);
	return valid ? 0 : error_set(err, STATUS_USAGE,
	                             "use postgresql://user@host:port/database; write @ in a password as %40",
	                             "postgresql://...: malformed URL");
}

PGconn *postgres_connect(const char *target, struct error *err)
{
	PGconn *conn = NULL;
	if (load_libpq(err))
		return NULL;
	char *url = mem_printf("postgresql://%s", target);
	if (check_url(url, err) == 0) {
		conn = pq.connectdb(url);
		pq.setNoticeProcessor(conn, ignore_notice, NULL);
	}
	free(url);
	if (!conn)
		return NULL;
	if (pq.status(conn) == CONNECTION_OK && pq.setClientEncoding(conn, "UTF8") == 0)
		return conn;
	postgres_refuse(STATUS_INPUT, pq.errorMessage(conn), err);
	pq.finish(conn);
	return NULL;
}
