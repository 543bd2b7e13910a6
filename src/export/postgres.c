#include "export/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct postgres_calls pq;

static int load(struct error *err)
{
	static const char *const name[] = { POSTGRES_CALLS(ON_DEMAND_NAME) NULL };
	return on_demand(POSTGRES_FILE, "libpq", name, &pq, err) ? error_wrap(err, "postgresql") : 0;
}

/* Messages of the server end in a line break, and may have several lines. */
int postgres_refuse(enum status status, const char *said, struct error *err)
{
	char line[512];
	snprintf(line, sizeof line, "%.*s", (int)strcspn(said, "\n"), said);
	return error_set(err, status, NULL, "postgresql: %s", *line ? line : "the connection failed");
}

static void hear_notice(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

/* What libpq says of a URL repeats parts of it.  Where a password was not written as a URL wants it, these may be the
 * password's: such a URL is refused here, and not told. */
static int check_url(const char *url, struct error *err)
{
	char *said = NULL;
	PQconninfoOption *options = pq.conninfoParse(url, &said);
	bool sound = options != NULL;
	for (PQconninfoOption *o = options; o && o->keyword; o++) {
		const char *value = o->val ? o->val : "";
		if (strcmp(o->keyword, "port") == 0)
			sound &= value[strspn(value, "0123456789,")] == '\0';
		if (strcmp(o->keyword, "host") == 0)
			sound &= !strchr(value, '@');
	}
	pq.freemem(said);
	pq.conninfoFree(options);
	return sound ? 0 : error_set(err, STATUS_USAGE, "as postgresql://user@host:port/database; in a password, @ is %40",
	                             "postgresql://...: not understood");
}

PGconn *postgres_connect(const char *target, struct error *err)
{
	PGconn *conn = NULL;
	if (load(err))
		return NULL;
	char *url = mem_printf("postgresql://%s", target);
	if (check_url(url, err) == 0) {
		conn = pq.connectdb(url);
		pq.setNoticeProcessor(conn, hear_notice, NULL);
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
