/* Sink postgresql: loads the rows of a run by binary COPY in one transaction. Tables with a time are partitioned by the
 * day of the host's clock.
 *
 * Tables and partitions are created before, in a separate transaction under a lock, since concurrent exports would
 * conflict. Different runs are loaded in parallel. Statements never contain data of a trace. */
#include <stdarg.h>
#include <time.h>

#include "base/base.h"
#include "export/postgres.h"
#include "export/sink.h"

#define MAX_DAYS 400      /* a run's maximum days; if there are more, the clock is wrong, and rows go to the default
                           * partition */
#define LOCK_SCHEMA 7305808868230393957  /* arbitrary number of the lock for creating tables */
#define BUFFER (1 << 16)

struct sink {
	PGconn *conn;
	struct sink_run run;
	const struct export_shape *table;
	char buf[BUFFER + TABLE_FIELDS_MAX * (CELL_TEXT_MAX + 4)];
	size_t used;
};

static int run_sql(struct sink *s, struct error *err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static int run_sql(struct sink *s, struct error *err, const char *fmt, ...)
{
	char *sql = NULL;
	va_list ap;
	va_start(ap, fmt);
	int n = vasprintf(&sql, fmt, ap);
	va_end(ap);
	if (n < 0)
		return error_set(err, STATUS_SYSTEM, NULL, "postgresql: out of memory");
	PGresult *r = pq.exec(s->conn, sql);
	ExecStatusType done = pq.resultStatus(r);
	int rc = done == PGRES_COMMAND_OK || done == PGRES_TUPLES_OK || done == PGRES_COPY_IN
	         ? 0 : postgres_refuse(STATUS_SYSTEM, pq.errorMessage(s->conn), err);
	pq.clear(r);
	free(sql);
	return rc;
}

/* ---- Tables */

/* Creates a partition if it does not exist; the check avoids a lock on the parent table. */
static int make_partition(struct sink *s, const char *table, const char *suffix, const char *bounds, struct error *err)
{
	return run_sql(s, err, "DO $$ BEGIN IF to_regclass('%s_%s') IS NULL THEN "
	               "CREATE TABLE \"%s_%s\" PARTITION OF \"%s\" %s; END IF; END $$",
	               table, suffix, table, suffix, table, bounds);
}

/* Returns the day that contains t, counted from the epoch. */
static int64_t day_number(int64_t t)
{
	return t / NS_PER_DAY - (t % NS_PER_DAY < 0);
}

static int make_partitions(struct sink *s, const struct export_shape *t, struct error *err)
{
	int64_t first = day_number(s->run.begin), last = day_number(s->run.end);
	if (last - first > MAX_DAYS || first < -MAX_DAYS || last > INT64_MAX / NS_PER_DAY - 1)
		return 0;
	for (int64_t day = first; day <= last; day++) {
		char suffix[24], bounds[96];
		time_t at = (time_t)(day * 86400);
		struct tm tm;
		gmtime_r(&at, &tm);
		strftime(suffix, sizeof suffix, "%Y%m%d", &tm);
		snprintf(bounds, sizeof bounds, "FOR VALUES FROM (%lld) TO (%lld)", (long long)(day * NS_PER_DAY),
		         (long long)((day + 1) * NS_PER_DAY));
		if (make_partition(s, t->name, suffix, bounds, err))
			return -1;
	}
	return 0;
}

static int make_table(struct sink *s, const struct export_shape *t, struct error *err)
{
	static const struct column_syntax syntax = {
		.type = { [FIELD_INT] = "bigint", [FIELD_TIME] = "bigint", [FIELD_REAL] = "double precision",
			[FIELD_TEXT] = "text" },
		.required = { "", " NOT NULL" }, .nullable = { "", "" } };
	char *columns = table_columns(t, &syntax);
	int time = table_time(t);
	char by[64] = "";
	if (time >= 0)
		snprintf(by, sizeof by, " PARTITION BY RANGE (\"%s\")", t->field[time].name);
	int rc = run_sql(s, err, "CREATE TABLE IF NOT EXISTS \"%s\" (%s)%s", t->name, columns, by);
	if (rc == 0)
		rc = run_sql(s, err, "CREATE INDEX IF NOT EXISTS \"%s_by_run\" ON \"%s\" (run_id)", t->name, t->name);
	if (rc == 0 && t == &tables[TABLE_GAP])  /* for `fleet ... gaps`: about an eighth of the rows */
		rc = run_sql(s, err, "CREATE INDEX IF NOT EXISTS gap_of_machine ON gap (run_id, machine, dur) "
		             "WHERE of_machine = 1");
	if (rc == 0 && time >= 0)
		rc = make_partition(s, t->name, "other", "DEFAULT", err) || make_partitions(s, t, err) ? -1 : 0;
	free(columns);
	return rc;
}

static int make_tables(struct sink *s, struct error *err)
{
	if (run_sql(s, err, "BEGIN; SELECT pg_advisory_xact_lock(%lld)", (long long)LOCK_SCHEMA))
		return -1;
	for (size_t i = 0; i < TABLE_COUNT; i++)
		if (make_table(s, &tables[i], err))
			return -1;
	return run_sql(s, err, "COMMIT");
}

/* ---- A run */

static struct sink *open_postgres(const char *target, const struct sink_run *run, struct error *err)
{
	struct sink *s = mem_new(1, sizeof *s);
	s->run = *run;
	s->conn = postgres_connect(target, err);
	if (s->conn && make_tables(s, err) == 0 &&
	    run_sql(s, err, "BEGIN; SELECT pg_advisory_xact_lock(%lld)", (long long)run->id) == 0)
		return s;
	if (s->conn)
		pq.finish(s->conn);
	free(s);
	return NULL;
}

static int send_copy_data(struct sink *s, struct error *err)
{
	int rc = pq.putCopyData(s->conn, s->buf, (int)s->used);
	s->used = 0;
	return rc == 1 ? 0 : postgres_refuse(STATUS_SYSTEM, pq.errorMessage(s->conn), err);
}

static void put_number(struct sink *s, uint64_t number, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		s->buf[s->used + i] = (char)(number >> 8 * (bytes - 1 - i));
	s->used += bytes;
}

static int postgres_begin(struct sink *s, const struct export_shape *t, struct error *err)
{
	static const char head[19] = "PGCOPY\n\377\r\n";  /* signature, then flags and length of the extension: 0 */
	s->table = t;
	if (run_sql(s, err, "DELETE FROM \"%s\" WHERE run_id = %lld", t->name, (long long)s->run.id) ||
	    run_sql(s, err, "COPY \"%s\" FROM STDIN (FORMAT binary)", t->name))
		return -1;
	memcpy(s->buf, head, sizeof head);
	s->used = sizeof head;
	return 0;
}

static int postgres_row(struct sink *s, const struct table_cell *cell, struct error *err)
{
	put_number(s, s->table->fields, 2);
	for (size_t i = 0; i < s->table->fields; i++) {
		uint64_t bits = (uint64_t)cell[i].number;
		if (cell[i].absent) {
			put_number(s, UINT32_MAX, 4);
		} else if (s->table->field[i].type == FIELD_TEXT) {
			size_t n = strnlen(cell[i].text, CELL_TEXT_MAX - 1);
			put_number(s, n, 4);
			memcpy(s->buf + s->used, cell[i].text, n);
			s->used += n;
		} else {
			if (s->table->field[i].type == FIELD_REAL)
				memcpy(&bits, &cell[i].real, sizeof bits);
			put_number(s, 8, 4);
			put_number(s, bits, 8);
		}
	}
	return s->used >= BUFFER ? send_copy_data(s, err) : 0;
}

static int postgres_end(struct sink *s, struct error *err)
{
	put_number(s, UINT16_MAX, 2);
	if (send_copy_data(s, err))
		return -1;
	if (pq.putCopyEnd(s->conn, NULL) != 1)
		return postgres_refuse(STATUS_SYSTEM, pq.errorMessage(s->conn), err);
	int rc = 0;
	for (PGresult *r; (r = pq.getResult(s->conn)); pq.clear(r))
		if (pq.resultStatus(r) != PGRES_COMMAND_OK && rc == 0)
			rc = postgres_refuse(STATUS_SYSTEM, pq.resultErrorMessage(r), err);
	return rc;
}

static int close_postgres(struct sink *s, int status, struct error *err)
{
	if (status == 0)
		status = run_sql(s, err, "COMMIT");
	pq.finish(s->conn);  /* uncommitted data is rolled back */
	free(s);
	return status;
}

const struct sink_ops sink_postgres = {
	TABLE_ALL, open_postgres, postgres_begin, postgres_row, postgres_end, close_postgres
};
