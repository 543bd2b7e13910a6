/* ClickHouse, through its HTTP interface: rows go as RowBinary into tables of this export's own, which take effect by a
 * swap of partitions, run last.
 *
 * A run is a partition of each table: a run that is loaded again replaces itself, whatever else is loaded meanwhile, and
 * an export that dies leaves nothing but its own tables, which the next one removes when they are a day old.  Nothing of
 * a trace is part of a statement. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "export/clickhouse.h"
#include "export/sink.h"

#define BUFFER (1 << 20)

struct sink {
	struct clickhouse server;
	int64_t run;
	uint64_t load;                 /* in the names of the tables of this export */
	const struct export_shape *table;
	uint32_t filled;               /* TABLE_BIT() of those that hold the rows */
	uint64_t rows[TABLE_COUNT];
	size_t used;
	char buf[BUFFER + TABLE_MOST_FIELDS * (CELL_TEXT_MOST + 12)];
};

static int run_sql(struct sink *s, char *answer, size_t size, struct error *err, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
static int run_sql(struct sink *s, char *answer, size_t size, struct error *err, const char *fmt, ...)
{
	char *sql = NULL;
	va_list ap;
	va_start(ap, fmt);
	int n = vasprintf(&sql, fmt, ap), rc = n < 0 ? error_set(err, STATUS_SYSTEM, NULL, CLICKHOUSE ": out of memory") : 0;
	va_end(ap);
	if (rc == 0)
		rc = clickhouse_post(&s->server, "", sql, err) || http_answer(&s->server.http, answer, size, err) ? -1 : 0;
	free(n < 0 ? NULL : sql);
	return rc;
}

/* ---- Tables */

static int make_table(struct sink *s, const struct export_shape *t, struct error *err)
{
	static const char *const type[] = { [FIELD_INT] = "Int64", [FIELD_TIME] = "Int64", [FIELD_REAL] = "Float64",
		[FIELD_TEXT] = "String" };
	char *columns = mem_dup("");
	int time = table_time(t);
	for (size_t i = 0; i < t->fields; i++) {
		const struct table_field *f = &t->field[i];
		char *more = mem_printf(f->nullable ? "%s%s\"%s\" Nullable(%s)" : "%s%s\"%s\" %s", columns, i ? ", " : "", f->name,
		                        type[f->type]);
		free(columns);
		columns = more;
	}
	/* By machine and time, as far as the table has them; a partition is one run, so one host. */
	const struct table_field *machine = &t->field[time == 1 ? 2 : t->field[1].nullable ? 0 : 1];
	int rc = run_sql(s, NULL, 0, err, "CREATE TABLE IF NOT EXISTS \"%s\" (%s) ENGINE = MergeTree PARTITION BY run_id "
	                 "ORDER BY (\"%s\"%s%s)", t->name, columns, machine->name, time < 0 ? "" : ", ",
	                 time < 0 ? "" : t->field[time].name);
	free(columns);
	return rc;
}

/* Tables of exports that died. */
static int sweep(struct sink *s, struct error *err)
{
	char names[4096], *save = NULL;
	if (run_sql(s, names, sizeof names, err, "SELECT name FROM system.tables WHERE database = currentDatabase() AND "
	            "match(name, '^load_[0-9a-f]{16}_[a-z_]+$') AND metadata_modification_time < now() - 86400"))
		return -1;
	for (char *name = strtok_r(names, "\n", &save); name; name = strtok_r(NULL, "\n", &save))
		if (name[strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789")] == '\0' &&
		    run_sql(s, NULL, 0, err, "DROP TABLE IF EXISTS \"%s\"", name))
			return -1;
	return 0;
}

static struct sink *refuse(struct sink *s)
{
	clickhouse_release(&s->server);
	free(s);
	return NULL;
}

static struct sink *open_clickhouse(const char *target, const struct sink_run *run, struct error *err)
{
	struct sink *s = mem_new(1, sizeof *s);
	s->run = run->id;
	if (clickhouse_open(&s->server, target, err)) {
		free(s);
		return NULL;
	}
	if (getrandom(&s->load, sizeof s->load, 0) != sizeof s->load) {
		error_system(err, NULL, CLICKHOUSE ": random numbers");
		return refuse(s);
	}
	if (sweep(s, err))
		return refuse(s);
	for (size_t i = 0; i < TABLE_COUNT; i++)
		if (make_table(s, &tables[i], err))
			return refuse(s);
	return s;
}

/* ---- Rows */

static int begin(struct sink *s, const struct export_shape *t, struct error *err)
{
	char *sql = mem_printf("INSERT INTO load_%016" PRIx64 "_%s FORMAT RowBinary", s->load, t->name);
	s->table = t;
	s->filled |= TABLE_BIT(table_code(t));
	int rc = run_sql(s, NULL, 0, err, "CREATE TABLE load_%016" PRIx64 "_%s AS \"%s\"", s->load, t->name, t->name);
	if (rc == 0)
		rc = clickhouse_post(&s->server, "", sql, err);
	free(sql);
	return rc;
}

static int flush(struct sink *s, struct error *err)
{
	int rc = http_send(&s->server.http, s->buf, s->used, err);
	s->used = 0;
	return rc == 0 ? 0 : http_answer(&s->server.http, NULL, 0, err) ? -1
	                   : error_set(err, STATUS_SYSTEM, NULL, CLICKHOUSE ": hung up");
}

static char *put64(char *to, uint64_t v)
{
	for (unsigned i = 0; i < 8; i++)
		*to++ = (char)(v >> 8 * i);
	return to;
}

static char *put_text(char *to, const char *text)
{
	size_t n = strnlen(text, CELL_TEXT_MOST - 1), left = n;
	for (; left > 127; left >>= 7)
		*to++ = (char)(left | 128);
	*to++ = (char)left;
	memcpy(to, text, n);
	return to + n;
}

static int row(struct sink *s, const struct table_cell *cell, struct error *err)
{
	char *to = s->buf + s->used;
	for (size_t i = 0; i < s->table->fields; i++) {
		const struct table_field *f = &s->table->field[i];
		uint64_t bits = (uint64_t)cell[i].number;
		if (f->nullable)
			*to++ = cell[i].absent;
		if (cell[i].absent)
			continue;
		if (f->type == FIELD_REAL)
			memcpy(&bits, &cell[i].real, sizeof bits);
		to = f->type == FIELD_TEXT ? put_text(to, cell[i].text) : put64(to, bits);
	}
	s->used = (size_t)(to - s->buf);
	s->rows[table_code(s->table)]++;
	return s->used >= BUFFER ? flush(s, err) : 0;
}

static int end(struct sink *s, struct error *err)
{
	return flush(s, err) || http_answer(&s->server.http, NULL, 0, err) ? -1 : 0;
}

/* What was loaded takes the place of what is there of the run. */
static int swap(struct sink *s, const struct export_shape *t, struct error *err)
{
	if (s->rows[table_code(t)] == 0)
		return run_sql(s, NULL, 0, err, "ALTER TABLE \"%s\" DROP PARTITION %" PRId64, t->name, s->run);
	return run_sql(s, NULL, 0, err, "ALTER TABLE \"%s\" REPLACE PARTITION %" PRId64 " FROM load_%016" PRIx64 "_%s", t->name,
	               s->run, s->load, t->name);
}

static int close_clickhouse(struct sink *s, int status, struct error *err)
{
	struct error ignored;
	http_close(&s->server.http);
	for (size_t i = 0; status == 0 && i < TABLE_COUNT; i++)
		if (s->filled & TABLE_BIT(i))
			status = swap(s, &tables[i], err);
	for (size_t i = 0; i < TABLE_COUNT; i++)
		if (s->filled & TABLE_BIT(i))
			run_sql(s, NULL, 0, &ignored, "DROP TABLE IF EXISTS load_%016" PRIx64 "_%s", s->load, tables[i].name);
	refuse(s);
	return status;
}

const struct sink_ops sink_clickhouse = { TABLE_ALL, open_clickhouse, begin, row, end, close_clickhouse };
