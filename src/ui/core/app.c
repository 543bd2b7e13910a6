#include "ui/core/app.h"

#include <stdarg.h>

#include "base/base.h"
#include "ui/panes/pane.h"

#define PATIENCE_NS INT64_C(1000000000000)

void app_message(struct app *app, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(app->message, sizeof app->message, fmt, ap);
	va_end(ap);
	app->message_is_error = false;
}

void app_refuse(struct app *app, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(app->message, sizeof app->message, fmt, ap);
	va_end(ap);
	app->message_is_error = true;
}

void app_fail(struct app *app, const struct error *err)
{
	app_message(app, "%.300s%s%.200s%s", err->text, err->remedy[0] ? " (" : "", err->remedy, err->remedy[0] ? ")" : "");
	app->message_is_error = true;
}

int app_take_answer(struct app *app, struct question *q, struct query **query, int64_t *cost, struct error *err)
{
	async_wait(app->queries, q, app->waits_for_answers ? PATIENCE_NS : app->answer_deadline - now_ns());
	return async_take(app->queries, q, query, cost, err);
}

bool app_rows_have_keys(const struct app *app)
{
	return !app->prompting && !app->list_over;
}

void app_prompt(struct app *app, enum prompt_kind kind, const char *initial)
{
	app->prompting = true;
	prompt_open(&app->prompt, kind, initial);
}

bool app_window_is_unchanged(const struct app *app)
{
	return app->view.t0 == app->fitted_window.t0 && app->view.step == app->fitted_window.step &&
		app->bounds.cols == app->fitted_window.cols;
}

void app_layout(struct app *app, int label_w)
{
	int cols = app->w - label_w - 1;
	if (!app_window_is_unchanged(app))
		app->chosen_window = (struct window_layout){ app->view.t0, app->view.step, app->bounds.cols };
	app->label_w = label_w;
	app->bounds.cols = cols < 1 ? 1 : cols;
	if (app->view.step > 0)
		view_refit(&app->view, &app->bounds, app->chosen_window.t0, app->chosen_window.step, app->chosen_window.cols);
	app->fitted_window = (struct window_layout){ app->view.t0, app->view.step, app->bounds.cols };
	app->view.cols = app->bounds.cols;
}

void app_refit(struct app *app)
{
	struct view *v = &app->view;
	if (v->cols == 0 || v->cols == app->bounds.cols)
		return;
	app->chosen_window = (struct window_layout){ v->t0, v->step, v->cols };
	view_refit(v, &app->bounds, v->t0, v->step, v->cols);
	app->fitted_window = (struct window_layout){ v->t0, v->step, app->bounds.cols };
	v->cols = app->bounds.cols;
}

void app_copy(struct app *app, const char *text)
{
	free(app->clipboard);
	app->clipboard = mem_dup(text);
	app_message(app, "copied (if the terminal supports OSC 52): %s", text);
}

void app_select(struct app *app, size_t row)
{
	if (app->rows.len == 0)
		return;
	if (row >= app->rows.len)
		row = app->rows.len - 1;
	app->view.row = app->rows.row[row].id;
}

void app_show_row(struct app *app, struct row_id id)
{
	if (rows_find(&app->rows, id) == app->rows.len)
		rows_reveal(&app->rows, id);
	app_select(app, rows_find_near(&app->rows, id));
	app->row_chosen = true;
	if (app->pane_below && app->pane_below->ops->replaces_rows)
		pane_close(app);
}

bool app_interval(struct app *app, struct row_id row, int64_t t, struct interval *iv)
{
	struct error err = ERROR_INIT;
	uint32_t attr = row_attr(&app->rows, row);
	if (attr == HISTORY_NONE) {
		app_message(app, "this row has no intervals of its own: select a CPU or a thread");
		return false;
	}
	if (history_stab(app->h, attr, t, iv, &err) < 0) {
		app_fail(app, &err);
		return false;
	}
	return true;
}
