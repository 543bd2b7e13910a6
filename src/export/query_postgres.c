/* Runs predefined queries in PostgreSQL. */
#include "export/export.h"
#include "export/fleet.h"
#include "export/postgres.h"

static int each_row(PGresult *r, size_t columns, void (*fn)(void *arg, const char *const *value), void *arg,
                    struct error *err)
{
	const char *value[FLEET_COLUMNS];
	if (pq.resultStatus(r) != PGRES_TUPLES_OK)
		return postgres_refuse(STATUS_INPUT, pq.resultErrorMessage(r), err);
	if ((size_t)pq.nfields(r) != columns || columns > FLEET_COLUMNS)
		return error_set(err, STATUS_INPUT, NULL, "postgresql: the answer has other columns than the query declares");
	for (int row = 0; row < pq.ntuples(r); row++) {
		for (int i = 0; i < (int)columns; i++)
			value[i] = pq.getisnull(r, row, i) ? NULL : pq.getvalue(r, row, i);
		fn(arg, value);
	}
	return 0;
}

static int postgres_query(const char *target, const char *sql, size_t columns,
                          void (*fn)(void *arg, const char *const *value), void *arg, struct error *err)
{
	PGconn *conn = postgres_connect(target, err);
	if (!conn)
		return -1;
	pq.clear(pq.exec(conn, "SET default_transaction_read_only = on"));
	PGresult *r = pq.exec(conn, sql);
	int rc = each_row(r, columns, fn, arg, err);
	pq.clear(r);
	pq.finish(conn);
	return rc;
}

const struct fleet_database query_postgres = { "postgresql://", false, postgres_query };
