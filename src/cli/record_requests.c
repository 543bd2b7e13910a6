#include "cli/record_requests.h"

#include "base/base.h"
#include "record/record.h"

static const struct column table_columns[] = {
	{ "table", "table", COL_TEXT },
	{ "program", "program", COL_TEXT },
	{ "requests", "requests", COL_TEXT },
};

static int print_tables(struct report_how how, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE("record-request-tables", table_columns);
	struct report *report = report_begin(stdout, how, &shape, NULL);
	struct record_request_table t;
	for (size_t i = 0; record_request_table(i, &t); i++) {
		report_row(report, (struct value[]){ VAL_TEXT(t.name), VAL_TEXT(t.program), VAL_TEXT(t.about) });
		free(t.program);
		free(t.about);
	}
	return report_end(report, err);
}

static const struct column place_columns[] = {
	{ "kind", "kind", COL_TEXT },
	{ "name", "name", COL_UNCUT },
	{ "sites", "sites", COL_INT },
	{ "semaphore", NULL, COL_TEXT },
	{ "arguments", "arguments", COL_TEXT },
};

struct place_table {
	struct report_how how;
	struct report *report;  /* NULL until the first place is known, so that an error prints no table */
};

static const struct report_shape place_shape = REPORT_SHAPE("record-request-places", place_columns);

static void add_place(void *arg, const struct record_place *p)
{
	struct place_table *t = arg;
	if (!t->report)
		t->report = report_begin(stdout, t->how, &place_shape, NULL);
	char *name = p->provider ? mem_printf("%s:%s", p->provider, p->name) : mem_dup(p->name);
	report_row(t->report, (struct value[]){ VAL_TEXT(p->provider ? "usdt" : "function"), VAL_TEXT(name),
	                                        VAL_INT((int64_t)p->sites), VAL_TEXT(p->has_semaphore ? "yes" : "no"),
	                                        p->args ? VAL_TEXT(p->args) : VAL_NONE });
	free(name);
}

int record_requests_print(const char *path, struct report_how how, struct error *err)
{
	struct place_table t = { .how = how };
	if (!*path)
		return print_tables(how, err);
	if (record_list_places(path, add_place, &t, err))
		return -1;  /* the file was refused before the first place */
	if (!t.report)
		t.report = report_begin(stdout, how, &place_shape, NULL);
	return report_end(t.report, err);
}
