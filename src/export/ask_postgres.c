/* Asks PostgreSQL. */
#include "export/export.h"
#include "export/fleet.h"
#include "export/postgres.h"

static int each_row(PGresult *r, size_t columns, void (*fn)(void *arg, const char *const *value), void *arg,
                    struct error *err)
{
	const char *value[FLEET_COLUMNS];
	if (PQresultStatus(r) != PGRES_TUPLES_OK)
		return postgres_refuse(STATUS_INPUT, PQresultErrorMessage(r), err);
	if ((size_t)PQnfields(r) != columns || columns > FLEET_COLUMNS)
		return error_set(err, STATUS_INPUT, NULL, "postgresql: the question has other columns than it says");
	for (int row = 0; row < PQntuples(r); row++) {
		for (int i = 0; i < (int)columns; i++)
			value[i] = PQgetisnull(r, row, i) ? NULL : PQgetvalue(r, row, i);
		fn(arg, value);
	}
	return 0;
}

static int ask(const char *target, const char *sql, size_t columns, void (*fn)(void *arg, const char *const *value),
               void *arg, struct error *err)
{
	PGconn *conn = postgres_connect(target, err);
	if (!conn)
		return -1;
	PQclear(PQexec(conn, "SET default_transaction_read_only = on"));
	PGresult *r = PQexec(conn, sql);
	int rc = each_row(r, columns, fn, arg, err);
	PQclear(r);
	PQfinish(conn);
	return rc;
}

const struct fleet_database ask_postgres = { "postgresql://", false, ask };
