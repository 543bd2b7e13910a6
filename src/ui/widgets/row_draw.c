/* The rows of the window: labels with their figures, and cells. */
#include "ui/widgets/widgets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const struct style *part(const struct app *app, enum part p)
{
	return &app->look.palette.part[p];
}

static void draw_label(struct app *app, struct screen *s, int y, const struct row *row, bool pinned)
{
	bool selected = row_same(row->id, app->view.row);
	struct style style = *part(app, selected ? PART_SELECTED : PART_LABEL);
	char label[512], figure[TIME_TEXT];
	int x = row->depth * (app->label_w >= 30 ? 2 : 1), end = app->label_w;
	screen_fill(s, 0, y, app->label_w, ' ', style);
	figure_text(app, row->id, figure, sizeof figure);
	if (figure[0]) {
		end -= (int)strlen(figure);
		screen_text(s, end, y, app->label_w - end, selected ? style : *part(app, PART_STEAL), figure);
		end--;
	}
	screen_put(s, x, y, row->folds ? row->open ? 'v' : '>' : pinned ? '=' : ' ', style);
	if (pinned)
		row_title(&app->rows, row->id, label, sizeof label);
	else
		row_label(&app->rows, row->id, label, sizeof label);
	screen_text(s, x + 2, y, end - x - 2, style, label);
	screen_put(s, app->label_w, y, selected ? '*' : '|', *part(app, selected ? PART_STEAL : PART_LABEL));
}

void rows_draw_lane(struct app *app, struct screen *s, int y, struct row_id row, bool selected)
{
	struct error err = ERROR_INIT;
	struct cell_source src;
	uint32_t *attrs;
	int n = app->ground.cols, cursor = selected ? view_column(&app->view, app->view.cursor) : -1;
	struct cell *cell = mem_new((size_t)n, sizeof *cell);
	look_source(app, row, &src, &attrs);
	if (cells_row(&src, app->view.t0, app->view.step, n, cell, &err) < 0) {
		screen_text(s, app->label_w + 1, y, n, *part(app, PART_ERROR), err.text);
		n = 0;
	}
	for (int i = 0; i < n; i++) {
		struct glyph g = look_glyph(app, cell[i], src.minority);
		if (i == cursor)
			g.style.attr ^= ATTR_REVERSE;
		screen_put(s, app->label_w + 1 + i, y, g.ch, g.style);
	}
	free(attrs);
	free(cell);
}

static void draw_row(struct app *app, struct screen *s, int y, const struct row *row, bool pinned)
{
	if (y >= 0 && y < app->h_cells)
		app->line_row[y] = row->id;
	draw_label(app, s, y, row, pinned);
	rows_draw_lane(app, s, y, row->id, row_same(row->id, app->view.row));
}

bool rows_at(const struct app *app, int y, struct row_id *id)
{
	if (y < 0 || y >= app->h_cells || app->line_row[y].kind == ROW_KINDS)
		return false;
	*id = app->line_row[y];
	return true;
}

static int draw_pins(struct app *app, struct screen *s, int y, int height)
{
	int pins = (int)app->pins < height / 2 ? (int)app->pins : height / 2;
	for (int i = 0; i < pins; i++) {
		struct row row = { .id = app->pin[i] };
		draw_row(app, s, y + i, &row, true);
	}
	return pins;
}

/* The rows that hold row `at`, outermost first: its machine, its vCPU or group.  Returns how many there are. */
static int parents_of(const struct rows *r, size_t at, size_t parent[2])
{
	int depth = at < r->len ? r->row[at].depth : 0;
	for (size_t i = at; i-- > 0 && depth > 0;)
		if (r->row[i].depth < depth && r->row[i].depth < 2)
			parent[depth = r->row[i].depth] = i;
	return at < r->len ? r->row[at].depth < 2 ? r->row[at].depth : 2 : 0;
}

/* The first row shown, so that the selected one is on the page; a jump shows what is around it. */
static size_t scroll_to(const struct app *app, size_t at, size_t page)
{
	size_t top = app->top, len = app->rows.len;
	bool far = at + page < top || at >= top + 2 * page;
	if (far)
		top = at > page / 2 ? at - page / 2 : 0;
	if (at < top)
		top = at;
	if (at >= top + page)
		top = at - page + 1;
	if (top + page > len)
		top = len > page ? len - page : 0;
	return top;
}

/* Parents that have scrolled off take the first lines; the selected row is not among what they cover. */
static int stick(struct app *app, size_t at, int height, size_t parent[2])
{
	int parents = parents_of(&app->rows, at, parent), sticky;
	if (height < parents + 1)
		return 0;
	for (;;) {
		sticky = 0;
		while (sticky < parents && parent[sticky] < app->top + (size_t)sticky)
			sticky++;
		if (at >= app->top + (size_t)sticky || app->top == 0)
			return sticky;
		app->top--;
	}
}

void rows_draw(struct app *app, struct screen *s, int y, int height)
{
	struct rows *r = &app->rows;
	size_t parent[2], at = rows_find_near(r, app->view.row);
	for (int i = 0; i < app->h_cells; i++)
		app->line_row[i].kind = ROW_KINDS;
	if (height == 0)
		return;
	int pins = draw_pins(app, s, y, height);
	y += pins;
	height -= pins;
	app->rows_shown = height;
	if (at < r->len && rows_survey_done(r))  /* before that, its row may still come */
		app->view.row = r->row[at].id;
	app->top = scroll_to(app, at, (size_t)height);
	int sticky = stick(app, at, height, parent);
	for (int i = 0; i < height && app->top + (size_t)i < r->len; i++)
		draw_row(app, s, y + i, &r->row[i < sticky ? parent[i] : app->top + (size_t)i], false);
}
