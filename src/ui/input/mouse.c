/* The first button of the mouse.  On a row: the row and the moment under it; held and moved, a range.  On the line of the
 * whole trace: the window goes there.  On a line of a pane: its cursor; again: to what the line is about. */
#include "ui/panes/pane.h"
#include "ui/widgets/widgets.h"
#include "ui/core/viewer.h"

static void on_pane(struct app *app, struct pane *p, int line)
{
	size_t at = p->top + (size_t)line;
	bool again = app->focused && p->at == at;
	if (at >= p->lines)
		return;
	app->focused = true;
	if (again && p->ops->go)
		p->ops->go(app, p, at);
	else
		pane_move(app, (int64_t)at - (int64_t)p->at);
}

static void on_minimap(struct app *app, int col)
{
	struct view before = app->view;
	int64_t t = minimap_time(app, col < 0 ? 0 : col >= app->ground.cols ? app->ground.cols - 1 : col);
	view_centre(&app->view, &app->ground, t, t);
	app->moved = true;
	undo_push(&app->undo, &before);
}

static void on_row(struct app *app, struct row_id row, int col, bool press)
{
	app->moved = true;
	if (press) {
		app->focused = false;
		app->view.row = row;
		app->view.range = VIEW_NONE;
	}
	if (col < 0 || col >= app->ground.cols)
		return;
	int64_t was = app->view.cursor, t = app->view.t0 + col * app->view.step;
	view_goto(&app->view, &app->ground, t);
	if (!press && was != app->view.cursor)
		app->view.range = was;
}

void viewer_mouse(struct app *app, int x, int y, bool press)
{
	struct row_id row;
	struct pane *p = app->below;
	int col = x - app->label_w - 1;
	if (!app_at_rows(app))
		return;
	if (y == minimap_line(app))
		on_minimap(app, col);
	else if (p && y >= p->y && y < p->y + (int)p->page) {
		if (press)
			on_pane(app, p, y - p->y);
	} else if (rows_at(app, y, &row))
		on_row(app, row, col, press);
}
