/* Draws a frame: the header, the ruler, and then all other parts at their positions. */
#include "base/base.h"
#include "ui/core/viewer.h"

#include "ui/core/clock_offset.h"
#include "ui/widgets/lane_names.h"
#include "ui/widgets/verdict_line.h"
#include "ui/widgets/widgets.h"
#include "ui/widgets/window_sums.h"
#include "ui/panes/pane.h"
#include "ui/widgets/status.h"
#include "ui/core/file_watch.h"

#define MIN_W 40
#define MIN_H 8

static const struct style *part_style(const struct app *app, enum part p)
{
	return &app->appearance.palette.part[p];
}

/* Formats a time without the parts that are the same in the whole window: ".541" within a second, "37.9" within a
 * minute. */
static const char *short_time(const struct app *app, int64_t t, char buf[TIME_TEXT])
{
	char begin[TIME_TEXT], end[TIME_TEXT];
	size_t shared = 0;
	ruler_time(buf, &app->axis, t, app->view.step);
	if (app->axis.format != TIME_WALL)
		return buf;
	time_clock(begin, app->view.t0, 1);
	time_clock(end, view_last(&app->view, &app->bounds), 1);
	for (size_t i = 0; buf[i] && buf[i] == begin[i] && buf[i] == end[i]; i++)
		shared = buf[i] == ':' ? i + 1 : buf[i] == '.' ? i : shared;
	return buf + shared;
}

/* Writes "   A .541 B .720 B-A 179 ms"; if that does not fit, "   A..B 179 ms". */
static void markers_text(const struct app *app, int space, char *buf, size_t size)
{
	const struct view *v = &app->view;
	char a[TIME_TEXT], b[TIME_TEXT], d[TIME_TEXT];
	bool has_a = v->a != VIEW_NONE, has_b = v->b != VIEW_NONE;
	int n = snprintf(buf, size, "%s%s%s%s%s%s", has_a ? "   A " : "", has_a ? short_time(app, v->a, a) : "",
	         has_b ? " B " : "", has_b ? short_time(app, v->b, b) : "", has_a && has_b ? " B-A " : "",
	         has_a && has_b ? time_duration(d, v->a < v->b ? v->b - v->a : v->a - v->b) : "");
	if (n > space && has_a && has_b)
		snprintf(buf, size, "   A..B %s", d);
}

/* Writes the note at the header's end. Returns true if it is important: the screen is misleading without it. */
static bool header_note(const struct app *app, char *buf, size_t size)
{
	buf[0] = '\0';
	if (!rows_scan_done(&app->rows))
		snprintf(buf, size, "reading threads %u%% ", (unsigned)(100ULL * app->rows.scan.next / app->catalog.threads));
	else if (app->rows.filter[0])
		return snprintf(buf, size, "filter: %.40s ", app->rows.filter), true;
	else if (file_watch_is_replaced(app))
		return snprintf(buf, size, "file replaced: :reload "), true;
	else if (manual_offset_list(app)[0])
		return snprintf(buf, size, "%.60s ", manual_offset_list(app)), true;
	else if (app->rows.hidden)
		snprintf(buf, size, "%zu hidden (H) ", app->rows.hidden);
	return false;
}

/* Writes "   12:03:04.100 .. .180   80 ms"; if `dated`, with day and time zone: "   2026-11-20 12:03:04.100 .. .180
 * +0100   80 ms". */
static void window_text(const struct app *app, bool dated, char *buf, size_t size)
{
	char from[TIME_TEXT], to[TIME_TEXT], length[TIME_TEXT], day[TIME_TEXT], end[TIME_TEXT];
	const int64_t t0 = app->view.t0, last = view_last(&app->view, &app->bounds);
	ruler_time(from, &app->axis, t0, app->view.step);
	ruler_time(to, &app->axis, last, app->view.step);
	time_date(day, t0, 0);
	time_date(end, last, 0);
	/* times on different days have dates, or the window would seem to end before it begins */
	dated |= app->axis.format == TIME_WALL && strncmp(day, end, TIME_DATE) != 0;
	const bool wall = app->axis.format == TIME_WALL, same = wall && strcmp(day, end) == 0 && strlen(to) > 8;
	const int date = dated && wall ? TIME_DATE + 1 : 0;
	const int other = strncmp(day, end, TIME_DATE) == 0 ? 0 : date;
	snprintf(buf, size, "   %.*s%s .. %.*s%s%s   %s", date, day, from, other, end, same ? to + 8 : to,
	         date ? day + strlen(day) - TIME_ZONE : "", ruler_duration(length, last - t0 + 1));
}

/* Writes "   cursor .1697"; "" in the overview, where no cursor is drawn. */
static void cursor_text(const struct app *app, char *buf, size_t size)
{
	char t[TIME_TEXT];
	const bool overview = app->pane_below && app->pane_below->ops->replaces_rows;
	buf[0] = '\0';
	if (!overview && !app->is_picture)
		snprintf(buf, size, "   cursor %s", short_time(app, app->view.cursor, t));
}

static int draw_machines(const struct catalog *catalog, struct screen *s, struct style style)
{
	char name[64];
	unsigned vms = 0, groups = 0;
	for (uint32_t m = 0; m < catalog->machines; m++) {
		vms += catalog->machine[m].kind == MACHINE_VM;
		groups += catalog->machine[m].kind == MACHINE_CONTAINER;
	}
	text_escape(name, sizeof name, catalog->machines ? catalog->machine[0].name : "nothing");
	bool host = catalog->machines && catalog->machine[0].kind == MACHINE_HOST;
	if (host && !vms && groups)
		return screen_printf(s, 1, 0, s->w, style, "%s + %u group%s", name, groups, groups == 1 ? "" : "s");
	return host ? screen_printf(s, 1, 0, s->w, style, "%s + %u VM%s", name, vms, vms == 1 ? "" : "s")
	            : screen_printf(s, 1, 0, s->w, style, "%u VM%s, no host", vms, vms == 1 ? "" : "s");
}

/* Drops the last parts of the text (separated by three spaces) until the others fit into `space` columns. */
static void drop_parts_that_overflow(char *text, int space)
{
	while (text_width(text) > space) {
		char *last = NULL;
		for (char *p = text + 1; (p = strstr(p, "   ")); p += 3)
			last = p;
		if (!last)
			return;
		*last = '\0';
	}
}

static void draw_header(struct app *app, struct screen *s)
{
	char window[160], dated[160], cell[TIME_TEXT + 16], cursor[TIME_TEXT + 16], markers[128], note[64];
	char step[TIME_TEXT], text[512];
	struct style style = *part_style(app, PART_HEADER);
	screen_fill(s, 0, 0, s->w, ' ', style);
	int x = draw_machines(&app->catalog, s, style);
	bool note_is_important = header_note(app, note, sizeof note);
	int note_w = note[0] ? text_width(note) + 2 : 0;
	window_text(app, false, window, sizeof window);
	snprintf(text, sizeof text, "%s", window);
	drop_parts_that_overflow(text, s->w - x - 1);
	if (text_width(text) > s->w - x - 1) {  /* the times are more important than the machines' names */
		screen_fill(s, 0, 0, s->w, ' ', style);
		x = -3;
	}
	int space = s->w - x - 2;
	window_text(app, true, dated, sizeof dated);
	snprintf(cell, sizeof cell, "   %s/cell", ruler_duration(step, app->view.step));
	markers_text(app, space - text_width(window), markers, sizeof markers);
	cursor_text(app, cursor, sizeof cursor);
	if (text_width(window) + text_width(markers) + text_width(cursor) + (note_is_important ? note_w : 0) > space)
		cursor[0] = '\0';  /* a filter is more important, and the status line shows a time, too */
	/* on a narrow screen markers and filter are more important than a cell's length; the date is the least
	 * important */
	int optional_w = text_width(cell) + text_width(markers);
	const int needed_w = text_width(cursor) + note_w;
	bool optional_fits = text_width(window) + optional_w + needed_w <= space;
	bool dated_fits = text_width(dated) + optional_w + text_width(cursor) + note_w <= space;
	snprintf(text, sizeof text, "%s%s%s%s", dated_fits ? dated : window, optional_fits ? cell : "", markers, cursor);
	drop_parts_that_overflow(text, s->w - x - 1);
	x += 1 + screen_text(s, x + 1, 0, s->w - x, style, text);
	if (note_w < s->w - x)
		screen_text(s, s->w - note_w + 2, 0, s->w, *part_style(app, PART_DIM), note);
}

struct letter_mark {
	int64_t t;
	char letter;
};

/* Returns the column of the mark in the window; -1: outside. */
static int mark_column(const struct app *app, const struct letter_mark *m)
{
	int col = m->t == VIEW_NONE ? -1 : view_column(&app->view, m->t);
	return col < app->bounds.cols ? col : -1;
}

static void put_mark(struct app *app, struct screen *s, int y, const struct letter_mark *m)
{
	int col = mark_column(app, m);
	if (col >= 0)
		screen_put(s, app->label_w + 1 + col, y, (uint32_t)(unsigned char)m->letter, *part_style(app, PART_MARK));
}

static void draw_ruler(struct app *app, struct screen *s, int y)
{
	const struct view *v = &app->view;
	const char *heading = app->pane_below && app->pane_below->ops->replaces_rows ? "" : lost_heading(app);
	const struct letter_mark mark[] = { { v->a, 'A' }, { v->b, 'B' },
		{ app->is_picture ? VIEW_NONE : v->cursor, 'v' } };
	struct ruler_marks marks = { 0 };
	int x = app->label_w + 1;
	for (size_t i = 0; i < sizeof mark / sizeof *mark; i++)
		marks.col[marks.n++] = mark_column(app, &mark[i]);
	screen_fill(s, 0, y, s->w, ' ', *part_style(app, PART_RULER));
	ruler_draw(s, 1, x, y, app->bounds.cols, &app->axis, v->t0, v->step, &marks, *part_style(app, PART_RULER));
	screen_text(s, app->label_w - (int)strlen(heading), y, s->w, *part_style(app, PART_RULER), heading);
	if (v->range != VIEW_NONE) {
		int a = view_column(v, v->range < v->cursor ? v->range : v->cursor);
		int b = view_column(v, v->range < v->cursor ? v->cursor : v->range);
		for (int c = a < 0 ? 0 : a; c <= b && c < app->bounds.cols; c++) {
			struct glyph *g = screen_at(s, x + c, y);
			if (g)
				g->style = *part_style(app, PART_SELECTED);
		}
	}
	for (size_t i = 0; i < sizeof mark / sizeof *mark; i++)
		put_mark(app, s, y, &mark[i]);
}

static void draw_all(struct app *app, struct screen *s)
{
	screen_clear(s, *part_style(app, PART_NORMAL));
	app->states_shown = 0;
	lane_names_begin_frame(app);
	if (app->list_over) {
		list_draw(app, s, 0, s->h - 1);
		return;
	}
	if (app->pane_below)
		pane_refresh(app, app->pane_below);
	window_sums_refresh(app);
	if (verdict_line_height(app) || !app->row_chosen)
		verdict_line_get(app);
	const int verdict = verdict_line_height(app);
	int head = 1 + verdict + (minimap_line(app) >= 0), space = s->h - head - 3, pane = pane_height(app, space);
	draw_header(app, s);
	if (verdict)
		verdict_line_draw(app, s, 1);
	if (minimap_line(app) >= 0)
		minimap_draw(app, s, minimap_line(app));
	draw_ruler(app, s, head);
	if (!app->is_picture)  /* a picture has chosen its rows */
		rows_set_window(&app->rows, app->view.t0, view_last(&app->view, &app->bounds), app->view.row);
	const int end = head + 1 + (space - pane > 0 ? space - pane : 0);
	const int free_line = rows_draw(app, s, head + 1, end - head - 1);
	window_sums_draw(app, s, free_line, end);
	if (app->pane_below && app->pane_below->valid && app->pane_below->ops->overlay)
		app->pane_below->ops->overlay(app, app->pane_below, s);
	if (app->pane_below && pane > 0)
		pane_draw(app, s, head + 1 + space - pane, pane);
	status_draw(app, s, s->h - 2);
}

/* Draws the whole screen. If the history file changes during that, restores the previous frame. */
void viewer_draw(struct app *app, struct screen *s)
{
	size_t cells = (size_t)s->w * (size_t)s->h;
	viewer_begin_frame(app);
	if (s->w < MIN_W || s->h < MIN_H) {
		screen_clear(s, *part_style(app, PART_NORMAL));
		screen_printf(s, 0, 0, s->w, *part_style(app, PART_NORMAL), "needs %dx%d", MIN_W, MIN_H);
		return;
	}
	file_watch_check(app);
	if (!file_watch_is_changed(app)) {
		struct glyph *before = mem_new(cells, sizeof *before);
		memcpy(before, s->cell, cells * sizeof *before);
		draw_all(app, s);
		file_watch_check(app);
		if (file_watch_is_changed(app))
			memcpy(s->cell, before, cells * sizeof *before);
		free(before);
	}
	s->cursor_x = s->cursor_y = -1;
	footer_draw(app, s);
}
