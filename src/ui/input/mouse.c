/* The first button of the mouse:
 *
 * - on a row: selects it and moves the cursor; dragging selects a range
 * - on the map of the whole trace: moves the window
 * - on a line of a pane: selects the line; again: goes to its row or time */
#include "ui/panes/pane.h"
#include "ui/widgets/widgets.h"
#include "ui/core/viewer.h"

static void press_on_pane(struct app *app, struct pane *p, int line)
{
	size_t at = p->top + (size_t)line;
	bool was_selected = app->focused && p->at == at;
	if (at >= p->lines)
		return;
	app->focused = true;
	if (was_selected && p->ops->follow)
		p->ops->follow(app, p, at);
	else
		pane_move(app, (int64_t)at - (int64_t)p->at);
}

static void press_on_minimap(struct app *app, int col)
{
	struct view before = app->view;
	int64_t t = minimap_time(app, col < 0 ? 0 : col >= app->bounds.cols ? app->bounds.cols - 1 : col);
	view_centre(&app->view, &app->bounds, t, t);
	app->row_chosen = true;
	undo_push(&app->undo, &before);
}

static void press_on_row(struct app *app, struct row_id row, int col, bool press)
{
	app->row_chosen = true;
	if (press) {
		app->focused = false;
		app->view.row = row;
		app->view.range = VIEW_NONE;
	}
	if (col < 0 || col >= app->bounds.cols)
		return;
	int64_t old = app->view.cursor, t = app->view.t0 + col * app->view.step;
	view_goto(&app->view, &app->bounds, t);
	if (!press && old != app->view.cursor)
		app->view.range = old;
}

void viewer_mouse(struct app *app, int x, int y, bool press)
{
	struct row_id row;
	struct pane *p = app->pane_below;
	int col = x - app->label_w - 1;
	if (!app_rows_have_keys(app))
		return;
	if (y == minimap_line(app))
		press_on_minimap(app, col);
	else if (p && y >= p->y && y < p->y + (int)p->page) {
		if (press)
			press_on_pane(app, p, y - p->y);
	} else if (rows_at(app, y, &row))
		press_on_row(app, row, col, press);
}
