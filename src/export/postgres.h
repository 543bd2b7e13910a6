/* Connections to PostgreSQL.  Private to export/. */
#ifndef STEALSCOPE_EXPORT_POSTGRES_H
#define STEALSCOPE_EXPORT_POSTGRES_H

#include <libpq-fe.h>

#include "base/error.h"

/* target: behind "postgresql://".  NULL and *err on failure, which names no password. */
PGconn *postgres_connect(const char *target, struct error *err);
/* What the server said, as one line. */
int postgres_refuse(enum status status, const char *said, struct error *err);

#endif
