/* stealscope fleet: runs predefined queries over all runs in a database. */
#include <time.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/opts.h"
#include "cli/password_file.h"
#include "export/export.h"
#include "report/report.h"

static const struct { const char *name; enum column_type type; } types[] = {
	{ "text", COL_TEXT }, { "int", COL_INT }, { "duration", COL_DURATION }, { "share", COL_SHARE },
	{ "date", COL_CLOCK },  /* the text report shows dates instead */
};

struct fleet {
	struct report_how how;
	struct column *column;
	size_t columns;
	unsigned dates;         /* text: columns with dates, one bit each */
	char *name;             /* the report's name, "fleet-QUERY" */
	struct report_shape shape;
	struct report *r;
};

static enum column_type type_named(const char *name)
{
	size_t i = 0;
	while (i + 1 < sizeof types / sizeof *types && strcmp(types[i].name, name) != 0)
		i++;
	return types[i].type;
}

static void begin_table(void *arg, const struct fleet_question *q)
{
	struct fleet *f = arg;
	f->columns = q->columns;
	f->column = mem_new(q->columns, sizeof *f->column);
	for (size_t i = 0; i < q->columns; i++) {
		char *name = mem_dup(q->column[i].name);
		f->column[i] = (struct column){ name, name, type_named(q->column[i].type) };
		if (f->how.format == FORMAT_TEXT && strcmp(q->column[i].type, "date") == 0) {
			f->column[i].type = COL_UNCUT;
			f->dates |= 1U << i;
		}
	}
	f->name = mem_printf("fleet-%s", q->name);
	f->shape = (struct report_shape){ f->name, f->column, f->columns, "", NULL };
	f->r = report_begin(stdout, f->how, &f->shape, NULL);
}

/* Formats a time; full days (UTC) without the time of day. */
static char *date_text(char buf[TIME_TEXT], int64_t ns)
{
	const time_t s = (time_t)(ns / NS_PER_S);
	struct tm day;
	if (ns % (86400 * NS_PER_S) || !gmtime_r(&s, &day))
		return time_date(buf, ns, 0);
	strftime(buf, TIME_TEXT, "%Y-%m-%d", &day);
	return buf;
}

/* Adds a row of the answer to the report. Texts were escaped by the export. */
static void add_row(void *arg, const char *const *value)
{
	struct fleet *f = arg;
	char date[FLEET_COLUMNS][TIME_TEXT];
	struct value v[FLEET_COLUMNS];
	for (size_t i = 0; i < f->columns; i++) {
		if (!value[i])
			v[i] = VAL_NONE;
		else if (f->dates >> i & 1)
			v[i] = VAL_SHOWN(date_text(date[i], strtoll(value[i], NULL, 10)));
		else if (f->column[i].type == COL_TEXT)
			v[i] = VAL_SHOWN(value[i]);
		else if (f->column[i].type == COL_SHARE)
			v[i] = VAL_REAL(strtod(value[i], NULL));
		else
			v[i] = VAL_INT(strtoll(value[i], NULL, 10));
	}
	report_row(f->r, v);
}

static int finish_table(struct fleet *f, int rc, struct error *err)
{
	struct error ignored;
	if (f->r && report_end(f->r, rc ? &ignored : err))
		rc = -1;
	for (size_t i = 0; i < f->columns; i++)
		free((char *)f->column[i].name);
	free(f->column);
	free(f->name);
	return rc;
}

static int list_questions(void)
{
	struct fleet_question q;
	for (size_t i = 0; fleet_question(i, &q); i++) {
		printf("%-10s %s\n", q.name, q.about);
		fleet_question_release(&q);
	}
	return 0;
}

/* Returns the names of all queries for a message; the caller frees. */
static char *all_questions(void)
{
	struct fleet_question q, next;
	char *all = mem_dup("");
	for (size_t i = 0; fleet_question(i, &q); i++) {
		const bool last = !fleet_question(i + 1, &next);
		char *more = mem_printf("%s%s%s", all, i == 0 ? "" : last ? " or " : ", ", q.name);
		free(all);
		all = more;
		fleet_question_release(&q);
		if (!last)
			fleet_question_release(&next);
	}
	return all;
}

static bool is_question(const char *word)
{
	struct fleet_question q;
	bool found = false;
	for (size_t i = 0; !found && fleet_question(i, &q); i++) {
		found = strcmp(q.name, word) == 0;
		fleet_question_release(&q);
	}
	return found;
}

/* Returns -1 with *err if operands are missing or swapped. Errors contain no URL, since it may contain a password. */
static int check_operands(char **operand, int operands, struct error *err)
{
	const bool swapped = is_question(operand[0]) && (operands == 1 || !is_question(operand[1]));
	if (operands == 2 && !swapped)
		return 0;
	char *all = all_questions();
	char *remedy = swapped ? mem_printf("specify the database first: stealscope fleet sqlite:FILE %s", operand[0])
	                     : mem_printf("stealscope fleet URL %s", all);
	int rc = swapped ? error_set(err, STATUS_USAGE, remedy, "%s: is the name of a query, not a database", operand[0])
	                 : error_set(err, STATUS_USAGE, remedy, "fleet: the name of the query is missing");
	free(remedy);
	free(all);
	return rc;
}

int cmd_fleet(int argc, char **argv, struct error *err)
{
	struct fleet f = { 0 };
	struct report_how how = REPORT_HOW;
	int first;
	const char *password = NULL;
	const struct opt opt[] = {
		{ "password-file", 0, OPT_TEXT, "FILE", "file with the database password in its first line", &password, NULL },
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "fleet [URL QUESTION]",
	                           "Query all runs in a database; without operands: list the queries.", opt,
	                           sizeof opt / sizeof *opt, 0, 2 };
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	if (first == argc)
		return list_questions();
	if (check_operands(argv + first, argc - first, err))
		return -1;
	f.how = how;
	char *url = password_hide(argv[first]);
	int rc = password ? password_read_file(password, err) : 0;
	if (rc == 0)
		rc = fleet_query(url, argv[first + 1], begin_table, add_row, &f, err);
	free(url);
	return finish_table(&f, rc, err);
}
