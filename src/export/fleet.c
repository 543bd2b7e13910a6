/* The questions that ship: texts of SQL whose first two lines say what is asked, and what columns come. */
#include "export/fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/suggest.h"
#include "export/export.h"
#include "export/questions.h"

static const struct fleet_database *const askers[] = {
#ifdef HAVE_SQLITE
	&ask_sqlite,
#endif
#ifdef HAVE_POSTGRES
	&ask_postgres,
#endif
	&ask_clickhouse,
	NULL
};

#define QUESTIONS (sizeof shipped / sizeof *shipped)

static char *line_of(size_t question, size_t line)
{
	const char *text = shipped[question].line[line];
	text += strspn(text, "- ");
	return mem_printf("%.*s", (int)strcspn(text, "\n"), text);
}

/* What ClickHouse says in another way stands as a comment behind the line that it replaces. */
#define DIALECT "-- clickhouse: "

static char *sql_of(size_t question, bool dialect)
{
	char *sql = mem_dup("");
	for (const char *const *line = shipped[question].line; *line; line++) {
		const bool replaced = dialect && line[1] && strncmp(line[1], DIALECT, strlen(DIALECT)) == 0;
		line += replaced;
		char *more = mem_printf("%s%s", sql, *line + (replaced ? strlen(DIALECT) : 0));
		free(sql);
		sql = more;
	}
	return sql;
}

bool fleet_question(size_t i, struct fleet_question *out)
{
	if (i >= QUESTIONS)
		return false;
	*out = (struct fleet_question){ shipped[i].name, line_of(i, 0), NULL, 0 };
	char *columns = line_of(i, 1), *save = NULL;
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
	char mend[80] = "stealscope fleet lists them";
	struct suggestion near = SUGGESTION(name);
	for (*at = 0; *at < QUESTIONS; ++*at) {
		if (strcmp(shipped[*at].name, name) == 0)
			return 0;
		suggest(&near, shipped[*at].name);
	}
	if (near.nearest)
		snprintf(mend, sizeof mend, "did you mean %s?", near.nearest);
	return error_set(err, STATUS_USAGE, mend, "%s: no such question", name);
}

static const struct fleet_database *find_asker(const char *url)
{
	for (const struct fleet_database *const *a = askers; *a; a++)
		if (strncmp(url, (*a)->scheme, strlen((*a)->scheme)) == 0)
			return *a;
	return NULL;
}

/* The answer begins with its first row, or its end: not where there is none. */
struct fleet_answer {
	const struct fleet_question *q;
	void (*begin)(void *arg, const struct fleet_question *q);
	void (*row)(void *arg, const char *const *value);
	void *arg;
	bool begun;
};

static void begin_answer(struct fleet_answer *a)
{
	if (!a->begun)
		a->begin(a->arg, a->q);
	a->begun = true;
}

static void add_row(void *arg, const char *const *value)
{
	struct fleet_answer *a = arg;
	begin_answer(a);
	a->row(a->arg, value);
}

int fleet_ask(const char *url, const char *question, void (*begin)(void *arg, const struct fleet_question *q),
              void (*row)(void *arg, const char *const *value), void *arg, struct error *err)
{
	size_t at;
	struct fleet_question q;
	const struct fleet_database *a = find_asker(url);
	if (!a)  /* what stands behind a colon may be a password */
		return error_set(err, STATUS_USAGE,
		                 "sqlite:FILE, postgresql://USER@HOST/DATABASE or clickhouse://USER@HOST/DATABASE, "
		                 "if this program was built with it",
		                 "no database that can be asked: '%.*s'", (int)strcspn(url, ":"), url);
	if (find_question(question, &at, err))
		return -1;
	fleet_question(at, &q);
	char *sql = sql_of(at, a->dialect);
	struct fleet_answer answer = { &q, begin, row, arg, false };
	int rc = a->ask(url + strlen(a->scheme), sql, q.columns, add_row, &answer, err);
	if (rc == 0)
		begin_answer(&answer);
	free(sql);
	fleet_question_release(&q);
	return rc;
}
