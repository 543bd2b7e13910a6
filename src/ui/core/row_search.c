#include "ui/core/row_search.h"

#include "base/base.h"

struct row_search {
	char text[64];          /* last text searched */
	struct row_id from;     /* selection, filter and hiding at the time the prompt was opened */
	bool hide_idle;
	char filter[64];
};

void row_search_init(struct app *app)
{
	app->row_search = mem_new(1, sizeof *app->row_search);
}

void row_search_release(struct app *app)
{
	free(app->row_search);
}

void row_search_remap(struct app *app, const struct rows *old, const struct rows *new)
{
	app->row_search->from = row_remap(old, new, app->row_search->from);
}

void row_search_begin(struct app *app)
{
	struct row_search *f = app->row_search;
	f->from = app->view.row;
	f->hide_idle = app->rows.hide_idle;
	memcpy(f->filter, app->rows.filter, sizeof f->filter);
}

/* Hides the rows again that the search made visible. */
static void restore_rows(struct app *app)
{
	app->rows.hide_idle = app->row_search->hide_idle;
	rows_set_filter(&app->rows, app->row_search->filter);
	rows_build(&app->rows);
}

void row_search_typed(struct app *app, const char *text)
{
	struct row_search *f = app->row_search;
	struct row_id found;
	restore_rows(app);
	snprintf(f->text, sizeof f->text, "%.63s", text);
	if (!f->text[0])
		app_show_row(app, f->from);
	else if (rows_search(&app->rows, f->text, f->from, 1, true, &found))
		app_show_row(app, found);
	else
		app_message(app, "no row contains \"%s\"", f->text);
}

void row_search_cancelled(struct app *app)
{
	restore_rows(app);
	app_show_row(app, app->row_search->from);
}

void row_search_next(struct app *app, int direction)
{
	const char *text = app->row_search->text;
	struct row_id found;
	if (!text[0])
		app_refuse(app, "no previous search (use /)");
	else if (rows_search(&app->rows, text, app->view.row, direction, false, &found)) {
		if (row_same(found, app->view.row))
			app_message(app, "no other row contains \"%s\"", text);
		app_show_row(app, found);
	} else
		app_refuse(app, "no row contains \"%s\"", text);
}

void row_search_set(struct app *app, const char *text)
{
	snprintf(app->row_search->text, sizeof app->row_search->text, "%s", text);
}

/* Filters the rows. If the filter hides the selected row, selects the next thread that is shown. */
static void apply_filter(struct app *app, const char *text, struct row_id from)
{
	struct rows *r = &app->rows;
	rows_set_filter(r, text);
	rows_build(r);
	size_t at = rows_find_near(r, from), i = 0;
	if (r->filter[0] && rows_find(r, from) == r->len) {
		while (i < r->len && r->row[(at + i) % r->len].id.kind != ROW_THREAD)
			i++;
		if (i == r->len)
			app_message(app, "no thread or machine name contains \"%s\"", r->filter);
	}
	app_select(app, r->len ? (at + i) % r->len : 0);
}

void row_filter_typed(struct app *app, const char *text)
{
	apply_filter(app, text, app->row_search->from);
}

void row_filter_set(struct app *app, const char *text)
{
	apply_filter(app, text, app->view.row);
}
