/* PostgreSQL connections through libpq, which is loaded at run time. Private to export/. */
#pragma once

#include <libpq-fe.h>

#include "base/dlopen_library.h"

/* Functions of libpq. */
#define POSTGRES_CALLS(CALL) \
	CALL(PQ, clear) CALL(PQ, connectdb) CALL(PQ, conninfoFree) CALL(PQ, conninfoParse) CALL(PQ, errorMessage) \
	CALL(PQ, exec) CALL(PQ, finish) CALL(PQ, freemem) CALL(PQ, getResult) CALL(PQ, getisnull) CALL(PQ, getvalue) \
	CALL(PQ, nfields) CALL(PQ, ntuples) CALL(PQ, putCopyData) CALL(PQ, putCopyEnd) CALL(PQ, resultErrorMessage) \
	CALL(PQ, resultStatus) CALL(PQ, setClientEncoding) CALL(PQ, setNoticeProcessor) CALL(PQ, status)
struct postgres_calls { POSTGRES_CALLS(LIBRARY_POINTER) };
extern struct postgres_calls pq;  /* set by postgres_connect() */

/* Connects. target: the text after "postgresql://". NULL with *err on failure; errors do not contain the password. */
PGconn *postgres_connect(const char *target, struct error *err);
/* Sets *err to the first line of the server's message and returns -1. */
int postgres_refuse(enum status status, const char *message, struct error *err);
