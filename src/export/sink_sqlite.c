/* Sink sqlite: writes the tables to a database file in one transaction per run, which first deletes older data of the
 * run. Values are bound to prepared statements: statements never contain data of a trace. */
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/base.h"
#include "export/sink.h"
#include "export/sqlite.h"

#define MAGIC "SQLite format 3"
#define WAIT_MS 60000  /* ms to wait for another writer */

struct sink {
	sqlite3 *db;
	char *path;
	int64_t run;
	const struct export_shape *table;
	sqlite3_stmt *insert;
};

static int sqlite_refuse(struct sink *s, struct error *err)
{
	int code = sqlite.errcode(s->db);
	bool input = code == SQLITE_ERROR || code == SQLITE_NOTADB || code == SQLITE_CORRUPT;
	const char *remedy = code == SQLITE_BUSY ? "another program is writing to it: try again" : "choose another file";
	return error_set(err, input ? STATUS_INPUT : STATUS_SYSTEM, remedy, "%s: %s", s->path, sqlite.errmsg(s->db));
}

static int run_sql(struct sink *s, struct error *err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static int run_sql(struct sink *s, struct error *err, const char *fmt, ...)
{
	char sql[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(sql, sizeof sql, fmt, ap);
	va_end(ap);
	return sqlite.exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : sqlite_refuse(s, err);
}

static bool is_database(const char *path)
{
	return file_begins_with(path, MAGIC, sizeof MAGIC);
}

static void release_sink(struct sink *s)
{
	sqlite.finalize(s->insert);
	sqlite.close(s->db);
	free(s->path);
	free(s);
}

static struct sink *open_sqlite(const char *target, const struct sink_run *run, struct error *err)
{
	if (sqlite_load(err) || refuse_overwrite(target, is_database, "an SQLite database", err))
		return NULL;
	struct sink *s = mem_new(1, sizeof *s);
	s->run = run->id;
	s->path = mem_dup(target);
	/* In a directory of others, a link may appear at any time: only one that was there already is followed. */
	const int fd = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd >= 0)
		close(fd);
	char *real = realpath(target, NULL);
	int rc = sqlite.open_v2(real ? real : target, &s->db,
	                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, NULL);
	free(real);
	rc = rc == SQLITE_OK ? 0
	   : s->db           ? sqlite_refuse(s, err)
	                     : error_set(err, STATUS_SYSTEM, NULL, "%s: out of memory", target);
	if (rc == 0) {
		sqlite.busy_timeout(s->db, WAIT_MS);
		rc = run_sql(s, err, "PRAGMA cache_size = -32768; BEGIN IMMEDIATE");
	}
	if (rc == 0)
		return s;
	release_sink(s);
	return NULL;
}

static void insert_text(const struct export_shape *t, char *sql, size_t size)
{
	size_t n = (size_t)snprintf(sql, size, "INSERT INTO \"%s\" VALUES (?", t->name);
	for (size_t i = 1; i < t->fields; i++)
		n += (size_t)snprintf(sql + n, size - n, ", ?");
	snprintf(sql + n, size - n, ")");
}

static int sqlite_begin(struct sink *s, const struct export_shape *t, struct error *err)
{
	static const struct column_syntax syntax = {
		.type = { [FIELD_INT] = "INTEGER", [FIELD_TIME] = "INTEGER", [FIELD_REAL] = "REAL", [FIELD_TEXT] = "TEXT" },
		.required = { "", " NOT NULL" }, .nullable = { "", "" } };
	char sql[1024], *columns = table_columns(t, &syntax);
	s->table = t;
	const int rc = run_sql(s, err, "CREATE TABLE IF NOT EXISTS \"%s\" (%s)", t->name, columns);
	free(columns);
	if (rc || run_sql(s, err, "CREATE INDEX IF NOT EXISTS \"%s_by_run\" ON \"%s\" (run_id)", t->name, t->name) ||
	    run_sql(s, err, "DELETE FROM \"%s\" WHERE run_id = %lld", t->name, (long long)s->run))
		return -1;
	insert_text(t, sql, sizeof sql);
	return sqlite.prepare_v2(s->db, sql, -1, &s->insert, NULL) == SQLITE_OK ? 0 : sqlite_refuse(s, err);
}

static int sqlite_row(struct sink *s, const struct table_cell *cell, struct error *err)
{
	sqlite.reset(s->insert);
	for (size_t i = 0; i < s->table->fields; i++) {
		int at = (int)i + 1;
		enum field_type type = s->table->field[i].type;
		if (cell[i].absent)
			sqlite.bind_null(s->insert, at);
		else if (type == FIELD_TEXT)
			sqlite.bind_text(s->insert, at, cell[i].text, -1, SQLITE_STATIC);
		else if (type == FIELD_REAL)
			sqlite.bind_double(s->insert, at, cell[i].real);
		else
			sqlite.bind_int64(s->insert, at, cell[i].number);
	}
	return sqlite.step(s->insert) == SQLITE_DONE ? 0 : sqlite_refuse(s, err);
}

static int sqlite_end(struct sink *s, struct error *err)
{
	(void)err;
	sqlite.finalize(s->insert);
	s->insert = NULL;
	return 0;
}

static int close_sqlite(struct sink *s, int status, struct error *err)
{
	if (status == 0)
		status = run_sql(s, err, "COMMIT");
	release_sink(s);  /* uncommitted data is rolled back */
	return status;
}

const struct sink_ops sink_sqlite = { TABLE_ALL, open_sqlite, sqlite_begin, sqlite_row, sqlite_end, close_sqlite };
