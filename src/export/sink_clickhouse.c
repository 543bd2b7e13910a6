/* Sink clickhouse: uses the HTTP interface of ClickHouse. Rows are sent as RowBinary into temporary tables of this
 * export. At the end their partitions are attached to the permanent tables, one table after the other, the table `run`
 * last.
 *
 * - Tables are partitioned by day, so that thousands of runs do not create thousands of partitions.
 * - If a table already has equal rows of the same run, they stay. Different rows (of an export that was killed between
 *   two tables, or of another version of stealscope) are deleted. The deletion is requested before the new rows are
 *   attached and affects only rows that exist then.
 * - A lock table serializes two exports of the same run.
 * - An export that is killed leaves its temporary tables; a later export removes them when they are a day old.
 * - Statements never contain data of a trace. */
#include <stdarg.h>
#include <sys/random.h>
#include <time.h>

#include "base/base.h"
#include "export/clickhouse.h"
#include "export/sink.h"

#define BUFFER (1 << 20)
#define WAITS_MAX 12000  /* most waits of 50 ms for a lock or a deletion */
#define LOCK_MAX 60      /* s after which a lock is stale */
#define UNSEEN_MAX 20    /* waits without a visible lock after which the refusal has another reason */

struct sink {
	struct clickhouse server;
	struct sink_run run;
	uint64_t load;                 /* random number in the temporary tables' names: load_NUMBER_TABLE */
	const struct export_shape *table;
	uint32_t filled;               /* TABLE_BIT() of tables with a temporary table */
	size_t used;
	char buf[BUFFER + TABLE_FIELDS_MAX * (CELL_TEXT_MAX + 12)];
};

static int run_sql(struct sink *s, char *answer, size_t size, struct error *err, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
static int run_sql(struct sink *s, char *answer, size_t size, struct error *err, const char *fmt, ...)
{
	char *sql = NULL;
	struct http_text text = { answer, size, 0 };
	if (answer)
		*answer = '\0';
	va_list ap;
	va_start(ap, fmt);
	int n = vasprintf(&sql, fmt, ap), rc = n < 0 ? error_set(err, STATUS_SYSTEM, NULL, CLICKHOUSE ": out of memory") : 0;
	va_end(ap);
	if (rc == 0)
		rc = clickhouse_post(&s->server, "", sql, answer ? http_append_text : NULL, &text, err) ||
			clickhouse_finish(&s->server, err) ? -1 : 0;
	free(n < 0 ? NULL : sql);
	return rc;
}

/* ---- Tables */

static int make_table(struct sink *s, const struct export_shape *t, struct error *err)
{
	static const struct column_syntax syntax = {
		.type = { [FIELD_INT] = "Int64", [FIELD_TIME] = "Int64", [FIELD_REAL] = "Float64", [FIELD_TEXT] = "String" },
		.required = { "", "" }, .nullable = { "Nullable(", ")" } };
	char *columns = table_columns(t, &syntax);
	int time = table_time(t);
	/* The sort key is of_machine, run, machine and time, if the table has these columns. The few rows with of_machine 1
	 * are adjacent. */
	const char *first = "";
	for (size_t i = 0; i < t->fields; i++)
		if (strcmp(t->field[i].name, "of_machine") == 0)
			first = "of_machine, ";
	const struct table_field *machine = time == 1 ? &t->field[2] : t->field[1].nullable ? NULL : &t->field[1];
	char *day = time < 0 ? mem_dup("tuple()") : mem_printf("intDiv(\"%s\", 86400000000000)", t->field[time].name);
	int rc = run_sql(s, NULL, 0, err, "CREATE TABLE IF NOT EXISTS \"%s\" (%s) ENGINE = MergeTree PARTITION BY %s "
	                 "ORDER BY (%srun_id%s%s%s%s)", t->name, columns, day, first, machine ? ", " : "",
	                 machine ? machine->name : "", time < 0 ? "" : ", ", time < 0 ? "" : t->field[time].name);
	free(day);
	free(columns);
	return rc;
}

/* Removes temporary tables that are older than a day; a table that is being created has the time 0. Errors are ignored,
 * since the listing fails if a table is removed concurrently; the next export tries again. */
static void sweep_stale_tables(struct sink *s)
{
	char names[4096], *save = NULL;
	struct error ignored;
	if (run_sql(s, names, sizeof names, &ignored, "SELECT name FROM system.tables WHERE database = currentDatabase() AND "
	            "match(name, '^load_[0-9a-f]{16}_[a-z_]+$') AND toUInt32(metadata_modification_time) > 0 AND "
	            "metadata_modification_time < now() - 86400"))
		return;
	for (char *name = strtok_r(names, "\n", &save); name; name = strtok_r(NULL, "\n", &save))
		if (name[strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789")] == '\0')
			run_sql(s, NULL, 0, &ignored, "DROP TABLE IF EXISTS \"%s\"", name);
}

static struct sink *release_sink(struct sink *s)
{
	clickhouse_release(&s->server);
	free(s);
	return NULL;
}

static struct sink *open_server(const char *target, const struct sink_run *run, bool tls, struct error *err)
{
	struct sink *s = mem_new(1, sizeof *s);
	s->run = *run;
	if (clickhouse_open(&s->server, target, tls, err)) {
		free(s);
		return NULL;
	}
	if (getrandom(&s->load, sizeof s->load, 0) != sizeof s->load) {
		error_system(err, NULL, CLICKHOUSE ": cannot draw a random number");
		return release_sink(s);
	}
	sweep_stale_tables(s);
	for (size_t i = 0; i < TABLE_COUNT; i++)
		if (make_table(s, &tables[i], err))
			return release_sink(s);
	return s;
}

static struct sink *open_plain(const char *target, const struct sink_run *run, struct error *err)
{
	return open_server(target, run, false, err);
}

static struct sink *open_tls(const char *target, const struct sink_run *run, struct error *err)
{
	return open_server(target, run, true, err);
}

/* ---- Rows */

static int clickhouse_begin(struct sink *s, const struct export_shape *t, struct error *err)
{
	char *sql = mem_printf("INSERT INTO load_%016" PRIx64 "_%s FORMAT RowBinary", s->load, t->name);
	s->table = t;
	s->filled |= TABLE_BIT(table_code(t));
	int rc = run_sql(s, NULL, 0, err, "CREATE TABLE load_%016" PRIx64 "_%s AS \"%s\"", s->load, t->name, t->name);
	if (rc == 0)
		rc = clickhouse_post(&s->server, "", sql, NULL, NULL, err);
	free(sql);
	return rc;
}

static int flush_rows(struct sink *s, struct error *err)
{
	struct error closed = ERROR_INIT;
	int rc = http_send(s->server.http, s->buf, s->used, &closed);
	s->used = 0;
	if (rc && clickhouse_finish(&s->server, err) == 0)
		*err = closed;  /* an answer without a refusal: the rows were not read */
	return rc;
}

static char *put_uint64(char *to, uint64_t v)
{
	for (unsigned i = 0; i < 8; i++)
		*to++ = (char)(v >> 8 * i);
	return to;
}

static char *put_text(char *to, const char *text)
{
	size_t n = strnlen(text, CELL_TEXT_MAX - 1), remaining = n;
	for (; remaining > 127; remaining >>= 7)
		*to++ = (char)(remaining | 128);
	*to++ = (char)remaining;
	memcpy(to, text, n);
	return to + n;
}

static int clickhouse_row(struct sink *s, const struct table_cell *cell, struct error *err)
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
		to = f->type == FIELD_TEXT ? put_text(to, cell[i].text) : put_uint64(to, bits);
	}
	s->used = (size_t)(to - s->buf);
	return s->used >= BUFFER ? flush_rows(s, err) : 0;
}

static int clickhouse_end(struct sink *s, struct error *err)
{
	return flush_rows(s, err) || clickhouse_finish(&s->server, err) ? -1 : 0;
}

/* ---- Replacing the run's rows in the permanent tables */

/* Computes the number of rows of the run in `table`, and a checksum. */
static int digest_table(struct sink *s, const struct export_shape *t, const char *table, char answer[64], struct error *err)
{
	char *values = mem_dup("");
	const int time = table_time(t);
	for (size_t i = 0; i < t->fields; i++) {
		char *more = mem_printf("%s%sifNull(toString(\"%s\"), 'null')", values, i ? ", " : "", t->field[i].name);
		free(values);
		values = more;
	}
	/* Limits the days that are read; a bucket of the table steal may begin before the run. */
	char *day_filter = time < 0 ? mem_dup("")
	                            : mem_printf(" AND \"%s\" >= %" PRId64 " AND \"%s\" <= %" PRId64, t->field[time].name,
	                                         s->run.begin - NS_PER_DAY, t->field[time].name, s->run.end);
	int rc = run_sql(s, answer, 64, err, "SELECT count(), sum(cityHash64(%s)) FROM \"%s\" WHERE run_id = %" PRId64 "%s",
	                 values, table, s->run.id, day_filter);
	free(day_filter);
	free(values);
	return rc;
}

static int attach_partitions(struct sink *s, const struct export_shape *t, struct error *err)
{
	char days[1 << 14], *save = NULL;
	if (run_sql(s, days, sizeof days, err, "SELECT DISTINCT partition FROM system.parts WHERE database = currentDatabase() "
	            "AND active AND table = 'load_%016" PRIx64 "_%s'", s->load, t->name))
		return -1;
	for (char *day = strtok_r(days, "\n", &save); day; day = strtok_r(NULL, "\n", &save))
		if (day[strspn(day, "-0123456789tuple()")] == '\0' &&
		    run_sql(s, NULL, 0, err, "ALTER TABLE \"%s\" ATTACH PARTITION %s FROM load_%016" PRIx64 "_%s", t->name, day,
		            s->load, t->name))
			return -1;
	return 0;
}

static void wait_briefly(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
}

/* Waits until the server has deleted the old rows of the run. */
static int wait_deleted(struct sink *s, const struct export_shape *t, struct error *err)
{
	char remaining[64] = "1";
	for (int i = 0; i < WAITS_MAX && *remaining != '0'; i++) {
		if (run_sql(s, remaining, sizeof remaining, err, "SELECT count() FROM system.mutations WHERE database = "
		            "currentDatabase() AND table = '%s' AND NOT is_done AND position(command, '%" PRId64 "') > 0",
		            t->name, s->run.id))
			return -1;
		if (*remaining != '0')
			wait_briefly();
	}
	return *remaining == '0' ? 0
	                         : error_set(err, STATUS_SYSTEM, "see system.mutations", CLICKHOUSE ": %s: the server did not "
	                                    "delete the old rows of the run within 10 minutes", t->name);
}

/* Replaces the run's rows in a permanent table by the temporary table's rows. */
static int replace_rows(struct sink *s, const struct export_shape *t, struct error *err)
{
	char digest[64], stored_digest[64], *load = mem_printf("load_%016" PRIx64 "_%s", s->load, t->name);
	int rc = digest_table(s, t, load, digest, err) || digest_table(s, t, t->name, stored_digest, err) ? -1 : 0;
	free(load);
	if (rc || strcmp(digest, stored_digest) == 0)
		return rc;
	const bool is_new = strncmp(stored_digest, "0\t", 2) == 0;
	if (!is_new && run_sql(s, NULL, 0, err, "ALTER TABLE \"%s\" DELETE WHERE run_id = %" PRId64, t->name, s->run.id))
		return -1;
	if (attach_partitions(s, t, err))
		return -1;
	return is_new ? 0 : wait_deleted(s, t, err);
}

static int unlock_run(struct sink *s, struct error *err)
{
	return run_sql(s, NULL, 0, err, "DROP TABLE IF EXISTS load_%016" PRIx64 "_lock", (uint64_t)s->run.id);
}

/* Creates the lock table of the run; waits while another export holds the lock. A lock older than LOCK_MAX is stale and
 * removed. */
static int lock_run(struct sink *s, struct error *err)
{
	int unseen = 0;  /* consecutive refusals without a visible lock table */
	for (int i = 0; i < WAITS_MAX; i++) {
		if (run_sql(s, NULL, 0, err, "CREATE TABLE load_%016" PRIx64 "_lock (x UInt8) ENGINE = Memory",
		            (uint64_t)s->run.id) == 0)
			return 0;
		char locked[64] = "";
		struct error ignored;
		if (run_sql(s, locked, sizeof locked, &ignored, "SELECT toUInt32(metadata_modification_time) > 0 AND "
		            "now() - metadata_modification_time >= %d FROM system.tables WHERE database = currentDatabase() AND "
		            "name = 'load_%016" PRIx64 "_lock'", LOCK_MAX, (uint64_t)s->run.id))
			*locked = '\0';  /* a table was removed during the listing */
		unseen = *locked ? 0 : unseen + 1;
		if (unseen > UNSEEN_MAX)  /* the statement was refused for another reason */
			return -1;
		if (*locked == '1' && unlock_run(s, err))
			return -1;
		wait_briefly();
	}
	return error_set(err, STATUS_SYSTEM, "try again",
	                 CLICKHOUSE ": another export of the same run held the lock for 10 minutes");
}

static int replace_all_rows(struct sink *s, struct error *err)
{
	struct error ignored;
	int rc = lock_run(s, err);
	if (rc)
		return rc;
	for (size_t i = 0; rc == 0 && i < TABLE_COUNT; i++)
		if (s->filled & TABLE_BIT(i))
			rc = replace_rows(s, &tables[i], err);
	unlock_run(s, &ignored);
	return rc;
}

static int close_clickhouse(struct sink *s, int status, struct error *err)
{
	struct error ignored;
	http_cancel(s->server.http);
	s->server.http = NULL;
	if (status == 0)
		status = replace_all_rows(s, err);
	for (size_t i = 0; i < TABLE_COUNT; i++)
		if (s->filled & TABLE_BIT(i))
			run_sql(s, NULL, 0, &ignored, "DROP TABLE IF EXISTS load_%016" PRIx64 "_%s", s->load, tables[i].name);
	release_sink(s);
	return status;
}

const struct sink_ops sink_clickhouse = {
	TABLE_ALL, open_plain, clickhouse_begin, clickhouse_row, clickhouse_end, close_clickhouse
};
const struct sink_ops sink_clickhouse_tls = {
	TABLE_ALL, open_tls, clickhouse_begin, clickhouse_row, clickhouse_end, close_clickhouse
};
