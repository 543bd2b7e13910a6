/* Predefined queries (share/sql): SQL files; the first line is a comment with the description, the second one with the
 * columns. */
#include "export/fleet.h"

#include "base/suggest.h"
#include "export/export.h"
#include "export/questions.h"

static const struct fleet_database *const databases[] = {
#ifdef HAVE_SQLITE
	&query_sqlite,
#endif
#ifdef HAVE_POSTGRES
	&query_postgres,
#endif
#ifdef HAVE_CURL
	&query_clickhouse,
	&query_clickhouse_tls,
#endif
	NULL
};

#define QUESTIONS (sizeof shipped / sizeof *shipped)

/* Returns line number `line` of a question without its comment sign; the caller frees. */
static char *find_line(size_t question, size_t line)
{
	const char *text = shipped[question].text;
	for (; line; line--)
		text = strchr(text, '\n') + 1;
	text += strspn(text, "- ");
	return mem_printf("%.*s", (int)strcspn(text, "\n"), text);
}

/* Prefix of a line that replaces the line before it in ClickHouse. */
#define CLICKHOUSE_LINE "-- clickhouse: "

static char *make_sql(size_t question, bool clickhouse)
{
	const size_t prefix = strlen(CLICKHOUSE_LINE);
	char *sql = mem_new(shipped[question].bytes + 1, 1), *end = sql;
	for (const char *line = shipped[question].text, *next; *line; line = next) {
		next = line + strcspn(line, "\n");
		next += *next == '\n';
		if (clickhouse && strncmp(next, CLICKHOUSE_LINE, prefix) == 0)
			continue;
		const size_t skip = clickhouse && strncmp(line, CLICKHOUSE_LINE, prefix) == 0 ? prefix : 0;
		end = mempcpy(end, line + skip, (size_t)(next - line) - skip);
	}
	*end = '\0';
	return sql;
}

bool fleet_question(size_t i, struct fleet_question *out)
{
	if (i >= QUESTIONS)
		return false;
	*out = (struct fleet_question){ shipped[i].name, find_line(i, 0), NULL, 0 };
	char *columns = find_line(i, 1), *save = NULL;
	size_t cap = 0;
	for (char *word = strtok_r(columns, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		size_t n = strcspn(word, ":");
		*ARRAY_PUSH(out->column, out->columns, cap) =
			(struct fleet_column){ mem_printf("%.*s", (int)n, word), mem_dup(word[n] ? word + n + 1 : "") };
	}
	free(columns);
	return true;
}

void fleet_question_release(struct fleet_question *q)
{
	for (size_t i = 0; i < q->columns; i++) {
		free(q->column[i].name);
		free(q->column[i].type);
	}
	free(q->column);
	free(q->about);
	*q = (struct fleet_question){ 0 };
}

static int find_question(const char *name, size_t *at, struct error *err)
{
	char remedy[80] = "stealscope fleet lists them";
	struct suggestion suggestion = SUGGESTION(name);
	for (*at = 0; *at < QUESTIONS; ++*at) {
		if (strcmp(shipped[*at].name, name) == 0)
			return 0;
		suggest(&suggestion, shipped[*at].name);
	}
	if (suggestion.nearest)
		snprintf(remedy, sizeof remedy, "did you mean %s?", suggestion.nearest);
	return error_set(err, STATUS_USAGE, remedy, "%s: no such query", name);
}

static const struct fleet_database *find_database(const char *url)
{
	for (const struct fleet_database *const *a = databases; *a; a++)
		if (strncmp(url, (*a)->scheme, strlen((*a)->scheme)) == 0)
			return *a;
	return NULL;
}

/* An answer's state: begin() is called at the first row, or at an empty answer's end, so not after an early error. */
struct fleet_answer {
	const struct fleet_question *q;
	void (*begin)(void *arg, const struct fleet_question *q);
	void (*row)(void *arg, const char *const *value);
	void *arg;
	bool begun;
};

static void begin_rows(struct fleet_answer *a)
{
	if (!a->begun)
		a->begin(a->arg, a->q);
	a->begun = true;
}

static void add_row(void *arg, const char *const *value)
{
	struct fleet_answer *a = arg;
	begin_rows(a);
	a->row(a->arg, value);
}

int fleet_query(const char *url, const char *question, void (*begin)(void *arg, const struct fleet_question *q),
              void (*row)(void *arg, const char *const *value), void *arg, struct error *err)
{
	size_t at;
	struct fleet_question q;
	const struct fleet_database *a = find_database(url);
	if (!a)  /* the text after the colon may contain a password: print only the scheme */
		return error_set(err, STATUS_USAGE,
		                 "use sqlite:FILE, postgresql://USER@HOST/DATABASE, clickhouse://USER@HOST/DATABASE or "
		                 "clickhouse+https://USER@HOST/DATABASE, as far as this build supports them",
		                 "unknown kind of database: '%.*s'", (int)strcspn(url, ":"), url);
	if (find_question(question, &at, err))
		return -1;
	fleet_question(at, &q);
	char *sql = make_sql(at, a->is_clickhouse);
	struct fleet_answer rows = { &q, begin, row, arg, false };
	int rc = a->query(url + strlen(a->scheme), sql, q.columns, add_row, &rows, err);
	if (rc == 0)
		begin_rows(&rows);
	free(sql);
	fleet_question_release(&q);
	return rc;
}
