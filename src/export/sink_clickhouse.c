/* ClickHouse, through its HTTP interface: rows go as RowBinary into tables of this export's own, whose partitions are then
 * attached to those that are there, table after table, run last.
 *
 * Partitions are days, so that thousands of runs are no thousands of partitions.  What is there of a run stays if it is
 * the same; what differs (an export that died between two tables, another version of the program) is deleted: the
 * deletion is asked for first, and concerns what was there then.  Two exports of one run take turns for that: a table is
 * their lock.  An export that dies leaves nothing but its own tables, which the next one removes when they are a day old.
 * Nothing of a trace is part of a statement. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/mem.h"
#include "export/clickhouse.h"
#include "export/sink.h"

#define BUFFER (1 << 20)
#define WAIT_MOST 12000  /* naps of 50 ms */
#define DAY (86400 * INT64_C(1000000000))  /* ns */
#define LOCK_MOST 60     /* s */
#define UNSEEN_MOST 20   /* naps */

struct sink {
	struct clickhouse server;
	struct sink_run span;
	uint64_t load;                 /* in the names of the tables of this export */
	const struct export_shape *table;
	uint32_t filled;               /* TABLE_BIT() of those that hold the rows */
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
	/* By run, machine and time, as far as the table has them. */
	const struct table_field *machine = time == 1 ? &t->field[2] : t->field[1].nullable ? NULL : &t->field[1];
	char *day = time < 0 ? mem_dup("tuple()") : mem_printf("intDiv(\"%s\", 86400000000000)", t->field[time].name);
	int rc = run_sql(s, NULL, 0, err, "CREATE TABLE IF NOT EXISTS \"%s\" (%s) ENGINE = MergeTree PARTITION BY %s "
	                 "ORDER BY (run_id%s%s%s%s)", t->name, columns, day, machine ? ", " : "", machine ? machine->name : "",
	                 time < 0 ? "" : ", ", time < 0 ? "" : t->field[time].name);
	free(day);
	free(columns);
	return rc;
}

/* Tables of exports that died; one that is just being made has no time yet.  Where it fails, the next export does it: the
 * list of tables is refused when one of them goes meanwhile. */
static void sweep(struct sink *s)
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

static struct sink *refuse(struct sink *s)
{
	clickhouse_release(&s->server);
	free(s);
	return NULL;
}

static struct sink *open_clickhouse(const char *target, const struct sink_run *run, struct error *err)
{
	struct sink *s = mem_new(1, sizeof *s);
	s->span = *run;
	if (clickhouse_open(&s->server, target, err)) {
		free(s);
		return NULL;
	}
	if (getrandom(&s->load, sizeof s->load, 0) != sizeof s->load) {
		error_system(err, NULL, CLICKHOUSE ": random numbers");
		return refuse(s);
	}
	sweep(s);
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
	return s->used >= BUFFER ? flush(s, err) : 0;
}

static int end(struct sink *s, struct error *err)
{
	return flush(s, err) || http_answer(&s->server.http, NULL, 0, err) ? -1 : 0;
}

/* ---- What was loaded takes the place of what is there of the run */

/* Counts the rows of the run in a table of that shape, and sums up what they hold. */
static int digest(struct sink *s, const struct export_shape *t, const char *table, char answer[64], struct error *err)
{
	char *values = mem_dup("");
	const int time = table_time(t);
	for (size_t i = 0; i < t->fields; i++) {
		char *more = mem_printf("%s%sifNull(toString(\"%s\"), 'null')", values, i ? ", " : "", t->field[i].name);
		free(values);
		values = more;
	}
	char *span = time < 0 ? mem_dup("")  /* the days that are to be read; a bucket may begin before the run */
	           : mem_printf(" AND \"%s\" >= %" PRId64 " AND \"%s\" <= %" PRId64, t->field[time].name, s->span.begin - DAY,
	                        t->field[time].name, s->span.end);
	int rc = run_sql(s, answer, 64, err, "SELECT count(), sum(cityHash64(%s)) FROM \"%s\" WHERE run_id = %" PRId64 "%s",
	                 values, table, s->span.id, span);
	free(span);
	free(values);
	return rc;
}

static int attach(struct sink *s, const struct export_shape *t, struct error *err)
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

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
}

/* Until what was to be deleted is. */
static int wait_deleted(struct sink *s, const struct export_shape *t, struct error *err)
{
	char left[64] = "1";
	for (int i = 0; i < WAIT_MOST && *left != '0'; i++) {
		if (run_sql(s, left, sizeof left, err, "SELECT count() FROM system.mutations WHERE database = "
		            "currentDatabase() AND table = '%s' AND NOT is_done AND position(command, '%" PRId64 "') > 0",
		            t->name, s->span.id))
			return -1;
		if (*left != '0')
			nap();
	}
	return *left == '0' ? 0 : error_set(err, STATUS_SYSTEM, "see system.mutations", CLICKHOUSE ": %s: the server does not "
	                                    "delete the rows that were there of the run", t->name);
}

static int swap(struct sink *s, const struct export_shape *t, struct error *err)
{
	char own[64], there[64], *load = mem_printf("load_%016" PRIx64 "_%s", s->load, t->name);
	int rc = digest(s, t, load, own, err) || digest(s, t, t->name, there, err) ? -1 : 0;
	free(load);
	if (rc || strcmp(own, there) == 0)
		return rc;
	const bool is_new = strncmp(there, "0\t", 2) == 0;
	if (!is_new && run_sql(s, NULL, 0, err, "ALTER TABLE \"%s\" DELETE WHERE run_id = %" PRId64, t->name, s->span.id))
		return -1;
	if (attach(s, t, err))
		return -1;
	return is_new ? 0 : wait_deleted(s, t, err);
}

static int unlock(struct sink *s, struct error *err)
{
	return run_sql(s, NULL, 0, err, "DROP TABLE IF EXISTS load_%016" PRIx64 "_lock", (uint64_t)s->span.id);
}

/* One export of a run at a time gets here.  Who held the lock for LOCK_MOST seconds is dead. */
static int lock(struct sink *s, struct error *err)
{
	int unseen = 0;  /* how often, one after the other, it was refused and nobody was seen to hold it */
	for (int i = 0; i < WAIT_MOST; i++) {
		if (run_sql(s, NULL, 0, err, "CREATE TABLE load_%016" PRIx64 "_lock (x UInt8) ENGINE = Memory",
		            (uint64_t)s->span.id) == 0)
			return 0;
		char held[64] = "";
		struct error ignored;
		if (run_sql(s, held, sizeof held, &ignored, "SELECT toUInt32(metadata_modification_time) > 0 AND "
		            "now() - metadata_modification_time >= %d FROM system.tables WHERE database = currentDatabase() AND "
		            "name = 'load_%016" PRIx64 "_lock'", LOCK_MOST, (uint64_t)s->span.id))
			*held = '\0';  /* a table went while they were listed */
		unseen = *held ? 0 : unseen + 1;
		if (unseen > UNSEEN_MOST)  /* it is refused for another reason */
			return -1;
		if (*held == '1' && unlock(s, err))
			return -1;
		nap();
	}
	return error_set(err, STATUS_SYSTEM, "try again", CLICKHOUSE ": another export loads the same run all the time");
}

static int swap_all(struct sink *s, struct error *err)
{
	struct error ignored;
	int rc = lock(s, err);
	if (rc)
		return rc;
	for (size_t i = 0; rc == 0 && i < TABLE_COUNT; i++)
		if (s->filled & TABLE_BIT(i))
			rc = swap(s, &tables[i], err);
	unlock(s, &ignored);
	return rc;
}

static int close_clickhouse(struct sink *s, int status, struct error *err)
{
	struct error ignored;
	http_close(&s->server.http);
	if (status == 0)
		status = swap_all(s, err);
	for (size_t i = 0; i < TABLE_COUNT; i++)
		if (s->filled & TABLE_BIT(i))
			run_sql(s, NULL, 0, &ignored, "DROP TABLE IF EXISTS load_%016" PRIx64 "_%s", s->load, tables[i].name);
	refuse(s);
	return status;
}

const struct sink_ops sink_clickhouse = { TABLE_ALL, open_clickhouse, begin, row, end, close_clickhouse };
