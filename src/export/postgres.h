/* Connections to PostgreSQL.  Private to export/. */
#ifndef STEALSCOPE_EXPORT_POSTGRES_H
#define STEALSCOPE_EXPORT_POSTGRES_H

#include <libpq-fe.h>

#include "base/error.h"

/* libpq, loaded with the first connection: it brings two dozen libraries along, and every command would wait for these. */
#define POSTGRES_CALLS(CALL) \
	CALL(clear) CALL(connectdb) CALL(conninfoFree) CALL(conninfoParse) CALL(errorMessage) CALL(exec) CALL(finish) \
	CALL(freemem) CALL(getResult) CALL(getisnull) CALL(getvalue) CALL(nfields) CALL(ntuples) CALL(putCopyData) \
	CALL(putCopyEnd) CALL(resultErrorMessage) CALL(resultStatus) CALL(setClientEncoding) CALL(setNoticeProcessor) \
	CALL(status)
struct postgres_calls {
#define POSTGRES_CALL(name) __typeof__(PQ##name) *name;
	POSTGRES_CALLS(POSTGRES_CALL)
#undef POSTGRES_CALL
};
extern struct postgres_calls pq;  /* whole once postgres_connect() has given a connection */

/* target: behind "postgresql://".  NULL and *err on failure, which names no password. */
PGconn *postgres_connect(const char *target, struct error *err);
/* What the server said, as one line. */
int postgres_refuse(enum status status, const char *said, struct error *err);

#endif
