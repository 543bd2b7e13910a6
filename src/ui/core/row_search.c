#include "ui/core/row_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct find {
	char text[64];          /* searched for last */
	struct row_id from;     /* how it was when a search, or a filter, began to be typed */
	bool hide_idle;
	char filter[64];
};

void find_init(struct app *app)
{
	app->find = mem_new(1, sizeof *app->find);
}

void find_release(struct app *app)
{
	free(app->find);
}

void find_carry(struct app *app, const struct rows *was, const struct rows *is)
{
	app->find->from = row_again(was, is, app->find->from);
}

void find_begin(struct app *app)
{
	struct find *f = app->find;
	f->from = app->view.row;
	f->hide_idle = app->rows.hide_idle;
	memcpy(f->filter, app->rows.filter, sizeof f->filter);
}

/* Hides again what a search has brought up so far. */
static void undo(struct app *app)
{
	app->rows.hide_idle = app->find->hide_idle;
	rows_set_filter(&app->rows, app->find->filter);
	rows_build(&app->rows);
}

void find_typed(struct app *app, const char *text)
{
	struct find *f = app->find;
	struct row_id found;
	undo(app);
	snprintf(f->text, sizeof f->text, "%.63s", text);
	if (!f->text[0])
		app_show_row(app, f->from);
	else if (rows_search(&app->rows, f->text, f->from, 1, true, &found))
		app_show_row(app, found);
	else
		app_say(app, "no row contains \"%s\"", f->text);
}

void find_cancelled(struct app *app)
{
	undo(app);
	app_show_row(app, app->find->from);
}

void find_again(struct app *app, int direction)
{
	const char *text = app->find->text;
	struct row_id found;
	if (!text[0])
		app_refuse(app, "nothing was searched for yet: / searches");
	else if (rows_search(&app->rows, text, app->view.row, direction, false, &found)) {
		if (row_same(found, app->view.row))
			app_say(app, "no other row contains \"%s\"", text);
		app_show_row(app, found);
	} else
		app_refuse(app, "no row contains \"%s\"", text);
}

void find_set(struct app *app, const char *text)
{
	snprintf(app->find->text, sizeof app->find->text, "%s", text);
}

/* A cursor whose row is gone goes to the next thread that is left. */
static void filter(struct app *app, const char *text, struct row_id from)
{
	struct rows *r = &app->rows;
	rows_set_filter(r, text);
	rows_build(r);
	size_t at = rows_find_near(r, from), i = 0;
	if (r->filter[0] && rows_find(r, from) == r->len) {
		while (i < r->len && r->row[(at + i) % r->len].id.kind != ROW_THREAD)
			i++;
		if (i == r->len)
			app_say(app, "no thread's or machine's name contains \"%s\"", r->filter);
	}
	app_select(app, r->len ? (at + i) % r->len : 0);
}

void find_filter_typed(struct app *app, const char *text)
{
	filter(app, text, app->find->from);
}

void find_filter(struct app *app, const char *text)
{
	filter(app, text, app->view.row);
}
