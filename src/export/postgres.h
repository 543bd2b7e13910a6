/* Connections to PostgreSQL.  Private to export/. */
#ifndef STEALSCOPE_EXPORT_POSTGRES_H
#define STEALSCOPE_EXPORT_POSTGRES_H

#include <libpq-fe.h>

#include "base/dlopen_library.h"

/* libpq, loaded with the first connection. */
#define POSTGRES_CALLS(CALL) \
	CALL(PQ, clear) CALL(PQ, connectdb) CALL(PQ, conninfoFree) CALL(PQ, conninfoParse) CALL(PQ, errorMessage) \
	CALL(PQ, exec) CALL(PQ, finish) CALL(PQ, freemem) CALL(PQ, getResult) CALL(PQ, getisnull) CALL(PQ, getvalue) \
	CALL(PQ, nfields) CALL(PQ, ntuples) CALL(PQ, putCopyData) CALL(PQ, putCopyEnd) CALL(PQ, resultErrorMessage) \
	CALL(PQ, resultStatus) CALL(PQ, setClientEncoding) CALL(PQ, setNoticeProcessor) CALL(PQ, status)
struct postgres_calls { POSTGRES_CALLS(ON_DEMAND_POINTER) };
extern struct postgres_calls pq;  /* whole once postgres_connect() has given a connection */

/* target: behind "postgresql://".  NULL and *err on failure, which names no password. */
PGconn *postgres_connect(const char *target, struct error *err);
/* What the server said, as one line. */
int postgres_refuse(enum status status, const char *said, struct error *err);

#endif
