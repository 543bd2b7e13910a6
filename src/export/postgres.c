#include "export/postgres.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define LIBRARY "libpq.so.5"

struct postgres_calls pq;

static int load(struct error *err)
{
	static const struct { const char *name; size_t at; } calls[] = {
#define POSTGRES_CALL(name) { "PQ" #name, offsetof(struct postgres_calls, name) },
		POSTGRES_CALLS(POSTGRES_CALL)
#undef POSTGRES_CALL
	};
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; library && i < sizeof calls / sizeof *calls; i++) {
		void *call = dlsym(library, calls[i].name);
		if (!call)
			library = NULL;
		memcpy((char *)&pq + calls[i].at, &call, sizeof call);
	}
	return library ? 0 : error_set(err, STATUS_SYSTEM, "install libpq", "postgresql: %s", dlerror());
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
