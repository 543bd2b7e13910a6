/* Runs predefined queries in an SQLite database. */
#include "export/export.h"
#include "export/fleet.h"
#include "export/sqlite.h"

static int refuse_query(sqlite3 *db, const char *path, struct error *err)
{
	return error_set(err, STATUS_INPUT, "use a database created by stealscope export", "%s: %s", path,
	                 db ? sqlite.errmsg(db) : "out of memory");
}

static int each_row(sqlite3 *db, sqlite3_stmt *q, size_t columns, void (*fn)(void *arg, const char *const *value),
                    void *arg, const char *path, struct error *err)
{
	const char *value[FLEET_COLUMNS];
	int rc;
	if ((size_t)sqlite.column_count(q) != columns || columns > FLEET_COLUMNS)
		return error_set(err, STATUS_INPUT, NULL, "%s: the answer has other columns than the query declares", path);
	while ((rc = sqlite.step(q)) == SQLITE_ROW) {
		for (size_t i = 0; i < columns; i++)
			value[i] = (const char *)sqlite.column_text(q, (int)i);
		fn(arg, value);
	}
	return rc == SQLITE_DONE ? 0 : refuse_query(db, path, err);
}

static int sqlite_query(const char *target, const char *sql, size_t columns,
                        void (*fn)(void *arg, const char *const *value), void *arg, struct error *err)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *q = NULL;
	if (sqlite_load(err))
		return -1;
	int rc = sqlite.open_v2(target, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite.prepare_v2(db, sql, -1, &q, NULL);
	rc = rc == SQLITE_OK ? each_row(db, q, columns, fn, arg, target, err) : refuse_query(db, target, err);
	sqlite.finalize(q);
	sqlite.close(db);
	return rc;
}

const struct fleet_database query_sqlite = { "sqlite:", false, sqlite_query };
