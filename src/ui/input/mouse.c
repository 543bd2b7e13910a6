/* The first button of the mouse:
 *
 * - on a row: selects it and moves the cursor; dragging selects a range; on its triangle: folds or unfolds it
 * - on a key hint: presses the key; on a pane's headings: sorts by the column
 * - on the map of the whole trace: moves the window
 * - on a line of a pane: selects the line; again: goes to its row or time */
#include "ui/panes/pane.h"
#include "ui/terminal/term.h"
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

/* Folds or unfolds the row if column x of the screen is its triangle; false: it is not. */
static bool press_on_triangle(struct app *app, struct row_id row, int x)
{
	const size_t at = rows_find(&app->rows, row);
	if (at == app->rows.len || !app->rows.row[at].folds)
		return false;
	const int triangle = app->rows.row[at].depth * (app->label_w >= 30 ? 2 : 1);
	if (x < triangle || x > triangle + 1)
		return false;
	app->view.row = row;
	return rows_toggle(&app->rows, at);
}

static bool press_on_hint(struct app *app, int x)
{
	for (size_t i = 0; i < app->hints; i++) {
		const struct key_hint *h = &app->hint[i];
		const uint32_t key = x >= h->x && x < h->x + h->w ? keymap_key(&app->keymap, h->action) : 0;
		if (key) {
			viewer_key(app, key);
			return true;
		}
	}
	return false;
}

static void press_on_row(struct app *app, struct row_id row, int col, bool press)
{
	app->row_chosen = true;
	if (press) {
		app->focused = false;
		app->view.row = row;
		app->view.range = VIEW_NONE;
		app->dragging = true;
	}
	if (col < 0 || col >= app->bounds.cols)
		return;
	int64_t old = app->view.cursor, t = app->view.t0 + col * app->view.step;
	view_goto(&app->view, &app->bounds, t);
	if (!press && app->view.range == VIEW_NONE && old != app->view.cursor)
		app->view.range = old;
}

/* Handles a press on a pane that shows lines below its headings. Returns false if it is elsewhere. */
static bool press_on_pane_area(struct app *app, int x, int y)
{
	struct pane *p = app->pane_below;
	if (p && p->ops->heading && y == p->y - 1 && p->page) {
		if (p->ops->press_heading)
			p->ops->press_heading(app, p, x);
		else if (p->ops->sort)
			p->ops->sort(app, p, 1);
		return true;
	}
	if (!p || y < p->y || y >= p->y + (int)p->page)
		return false;
	press_on_pane(app, p, y - p->y);
	return true;
}

void viewer_mouse(struct app *app, int x, int y, int event)
{
	struct row_id row;
	int col = x - app->label_w - 1;
	const bool press = event == MOUSE_PRESS, dragged = app->dragging;
	if (press)
		app->message[0] = '\0';
	app->dragging = dragged && event == MOUSE_DRAG;
	if (y == app->h_cells - 1 && press && press_on_hint(app, x))
		return;
	if (!app_rows_have_keys(app) || (!press && !dragged))
		return;
	if (y == minimap_line(app) && press)
		press_on_minimap(app, col);
	else if (press && press_on_pane_area(app, x, y))
		return;
	else if (rows_at(app, y, &row) && !(press && press_on_triangle(app, row, x)))
		press_on_row(app, row, col, press);
}
