/* Row and window of panes: those for which a pane was opened, and jumps to others. */
#include <stdio.h>

#include "ui/panes/pane.h"

bool pane_window(const struct app *app, int64_t *from, int64_t *to)
{
	const struct view *v = &app->view;
	const bool marked = v->a != VIEW_NONE && v->b != VIEW_NONE && v->a != v->b;
	if (marked) {
		*from = v->a < v->b ? v->a : v->b;
		*to = v->a < v->b ? v->b : v->a;
	} else {
		*from = v->t0;
		*to = view_last(v, &app->bounds);
	}
	return marked;
}

char *pane_window_text(const struct app *app, int64_t from, int64_t to, char buf[TIME_TEXT])
{
	char length[TIME_TEXT];
	int64_t a, b;
	const bool marked = pane_window(app, &a, &b) && a == from && b == to;
	snprintf(buf, TIME_TEXT, "%s%.30s", marked ? "A..B, " : "", time_duration(length, to - from + 1));
	return buf;
}

bool pane_scope_open(struct app *app, struct pane *p)
{
	struct target s;
	if (!row_target(&app->catalog, app->view.row, &s)) {
		app_message(app, "select a machine, a vCPU or a thread");
		return false;
	}
	app_layout(app, panes_label_w(app, p));  /* this pane's columns, because the window may depend on them */
	p->scope.row = app->view.row;
	pane_window(app, &p->scope.from, &p->scope.to);
	pane_drop_answer(p);
	p->valid = false;
	p->top = p->at = 0;
	p->filter[0] = '\0';
	app->focused = true;
	return true;
}

const struct target *pane_target(const struct app *app, const struct pane *p, struct target *s)
{
	row_target(&app->catalog, p->scope.row, s);
	return s;
}

bool pane_is_below(const struct app *app)
{
	return app->pane_below && !app->pane_below->ops->replaces_rows;
}

bool pane_can_follow(const struct pane *p)
{
	return p->lines && p->ops->follow;
}

void pane_go(struct app *app, struct row_id row, int64_t from, int64_t to)
{
	struct view before = app->view;
	app_show_row(app, row);
	view_goto(&app->view, &app->bounds, from);
	view_fit(&app->view, &app->bounds, from, to, 1, 3);
	undo_push(&app->undo, &before);
}
