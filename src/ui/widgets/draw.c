/* The frame: header, ruler, and what goes where. */
#include "ui/core/viewer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "ui/core/clock_offset.h"
#include "ui/widgets/widgets.h"
#include "ui/panes/pane.h"
#include "ui/widgets/status.h"
#include "ui/core/file_watch.h"

#define SMALLEST_W 40
#define SMALLEST_H 8

static const struct style *part(const struct app *app, enum part p)
{
	return &app->look.palette.part[p];
}

/* A time without what the window's begin and end say alike: ".541" within a second, "37.9" within a minute. */
static const char *short_time(const struct app *app, int64_t t, char buf[TIME_TEXT])
{
	char begin[TIME_TEXT], end[TIME_TEXT];
	size_t said = 0;
	ruler_time(buf, &app->axis, t, app->view.step);
	if (app->axis.format != TIME_WALL)
		return buf;
	time_clock(begin, app->view.t0, 1);
	time_clock(end, view_last(&app->view, &app->ground), 1);
	for (size_t i = 0; buf[i] && buf[i] == begin[i] && buf[i] == end[i]; i++)
		said = buf[i] == ':' ? i + 1 : buf[i] == '.' ? i : said;
	return buf + said;
}

/* "   A .541  B .720  d 179 ms", or without room for that "   A..B 179 ms" */
static void markers_text(const struct app *app, int room, char *buf, size_t size)
{
	const struct view *v = &app->view;
	char a[TIME_TEXT], b[TIME_TEXT], d[TIME_TEXT];
	bool has_a = v->a != VIEW_NONE, has_b = v->b != VIEW_NONE;
	int n = snprintf(buf, size, "%s%s%s%s%s%s", has_a ? "   A " : "", has_a ? short_time(app, v->a, a) : "",
	         has_b ? "  B " : "", has_b ? short_time(app, v->b, b) : "", has_a && has_b ? "  d " : "",
	         has_a && has_b ? time_duration(d, v->a < v->b ? v->b - v->a : v->a - v->b) : "");
	if (n > room && has_a && has_b)
		snprintf(buf, size, "   A..B %s", d);
}

/* What stands at the end of the first line; true when it must be known to read the rest. */
static bool header_note(const struct app *app, char *buf, size_t size)
{
	buf[0] = '\0';
	if (!rows_survey_done(&app->rows))
		snprintf(buf, size, "reading threads %u%% ", (unsigned)(100ULL * app->rows.survey.next / app->topo.threads));
	else if (app->rows.filter[0])
		return snprintf(buf, size, "filter: %.40s ", app->rows.filter), true;
	else if (watch_replaced(app))
		return snprintf(buf, size, "file replaced: :reload "), true;
	else if (nudge_list(app)[0])
		return snprintf(buf, size, "%.60s ", nudge_list(app)), true;
	else if (app->rows.hidden)
		snprintf(buf, size, "%zu idle hidden ", app->rows.hidden);
	return false;
}

/* "   12:03:04.100 .. .180   80 ms"; `dated` with day and zone, "   2026-11-20 12:03:04.100 .. .180 +0100   80 ms". */
static void window_text(const struct app *app, bool dated, char *buf, size_t size)
{
	char from[TIME_TEXT], to[TIME_TEXT], span[TIME_TEXT], day[TIME_TEXT], end[TIME_TEXT];
	const int64_t t0 = app->view.t0, last = view_last(&app->view, &app->ground);
	ruler_time(from, &app->axis, t0, app->view.step);
	ruler_time(to, &app->axis, last, app->view.step);
	time_date(day, t0, 0);
	time_date(end, last, 0);
	const bool wall = app->axis.format == TIME_WALL, same = wall && strcmp(day, end) == 0 && strlen(to) > 8;
	const int date = dated && wall ? TIME_DATE + 1 : 0;
	const int other = strncmp(day, end, TIME_DATE) == 0 ? 0 : date;
	snprintf(buf, size, "   %.*s%s .. %.*s%s%s   %s", date, day, from, other, end, same ? to + 8 : to,
	         date ? day + strlen(day) - TIME_ZONE : "", time_duration(span, last - t0 + 1));
}

static int machines_draw(const struct topo *topo, struct screen *s, struct style style)
{
	char name[64];
	unsigned vms = 0;
	for (uint32_t m = 0; m < topo->machines; m++)
		vms += topo->machine[m].kind == MACHINE_VM;
	text_escape(name, sizeof name, topo->machines ? topo->machine[0].name : "nothing");
	bool host = topo->machines && topo->machine[0].kind == MACHINE_HOST;
	return host ? screen_printf(s, 1, 0, s->w, style, "%s + %u VM%s", name, vms, vms == 1 ? "" : "s")
	            : screen_printf(s, 1, 0, s->w, style, "%u VM%s, no host", vms, vms == 1 ? "" : "s");
}

/* Leaves out the last of the text's parts, three spaces apart, until the others go into `room` columns. */
static void whole_parts(char *text, int room)
{
	while (text_width(text) > room) {
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
	char window[160], dated[160], cell[TIME_TEXT + 16], markers[128], note[64], step[TIME_TEXT], text[512];
	struct style style = *part(app, PART_HEADER);
	screen_fill(s, 0, 0, s->w, ' ', style);
	int x = machines_draw(&app->topo, s, style);
	bool needed = header_note(app, note, sizeof note);
	int tail = note[0] ? text_width(note) + 2 : 0;
	window_text(app, false, window, sizeof window);
	snprintf(text, sizeof text, "%s", window);
	whole_parts(text, s->w - x - 1);
	if (text_width(text) > s->w - x - 1) {  /* when that is is worth more than where */
		screen_fill(s, 0, 0, s->w, ' ', style);
		x = -3;
	}
	int room = s->w - x - 2;
	window_text(app, true, dated, sizeof dated);
	snprintf(cell, sizeof cell, "   %s/cell", time_duration(step, app->view.step));
	markers_text(app, room - text_width(window), markers, sizeof markers);
	/* Where the line is short, markers and filter are worth more than the length of a cell, and all than the date. */
	int rest = text_width(cell) + text_width(markers);
	bool fits = text_width(window) + rest + (needed ? tail : 0) <= room;
	bool whole = text_width(dated) + rest + tail <= room;
	snprintf(text, sizeof text, "%s%s%s", whole ? dated : window, fits ? cell : "", markers);
	whole_parts(text, s->w - x - 1);
	x += 1 + screen_text(s, x + 1, 0, s->w - x, style, text);
	if (tail < s->w - x)
		screen_text(s, s->w - tail + 2, 0, s->w, *part(app, PART_DIM), note);
}

struct letter {
	int64_t t;
	char letter;
};

/* Its column in the window, -1 outside of that. */
static int mark_column(const struct app *app, const struct letter *m)
{
	int col = m->t == VIEW_NONE ? -1 : view_column(&app->view, m->t);
	return col < app->ground.cols ? col : -1;
}

static void put_mark(struct app *app, struct screen *s, int y, const struct letter *m)
{
	int col = mark_column(app, m);
	if (col >= 0)
		screen_put(s, app->label_w + 1 + col, y, (uint32_t)(unsigned char)m->letter, *part(app, PART_MARK));
}

static void draw_ruler(struct app *app, struct screen *s, int y)
{
	const struct view *v = &app->view;
	const char *heading = app->below && app->below->ops->full ? "" : figure_heading(app);
	const struct letter mark[] = { { v->a, 'A' }, { v->b, 'B' }, { v->cursor, 'v' } };
	struct ruler_marks marks = { 0 };
	int x = app->label_w + 1;
	for (size_t i = 0; i < sizeof mark / sizeof *mark; i++)
		marks.col[marks.n++] = mark_column(app, &mark[i]);
	screen_fill(s, 0, y, s->w, ' ', *part(app, PART_RULER));
	ruler_draw(s, 1, x, y, app->ground.cols, &app->axis, v->t0, v->step, &marks, *part(app, PART_RULER));
	screen_text(s, app->label_w - (int)strlen(heading), y, s->w, *part(app, PART_RULER), heading);
	if (v->range != VIEW_NONE) {
		int a = view_column(v, v->range < v->cursor ? v->range : v->cursor);
		int b = view_column(v, v->range < v->cursor ? v->cursor : v->range);
		for (int c = a < 0 ? 0 : a; c <= b && c < app->ground.cols; c++) {
			struct glyph *g = screen_at(s, x + c, y);
			if (g)
				g->style = *part(app, PART_SELECTED);
		}
	}
	for (size_t i = 0; i < sizeof mark / sizeof *mark; i++)
		put_mark(app, s, y, &mark[i]);
}

static void draw_all(struct app *app, struct screen *s)
{
	screen_clear(s, *part(app, PART_NORMAL));
	if (app->over) {
		list_draw(app, s, 0, s->h - 1);
		return;
	}
	if (app->below)
		pane_refresh(app, app->below);
	int head = minimap_line(app) < 0 ? 1 : 2, room = s->h - head - 3, pane = pane_height(app, room);
	draw_header(app, s);
	if (head > 1)
		minimap_draw(app, s, minimap_line(app));
	draw_ruler(app, s, head);
	rows_draw(app, s, head + 1, room - pane > 0 ? room - pane : 0);
	if (app->below && app->below->valid && app->below->ops->overlay)
		app->below->ops->overlay(app, app->below, s);
	if (app->below && pane > 0)
		pane_draw(app, s, head + 1 + room - pane, pane);
	status_draw(app, s, s->h - 2);
}

/* A history that changes while it is drawn gives nonsense: then the frame stays what it was. */
void viewer_draw(struct app *app, struct screen *s)
{
	size_t cells = (size_t)s->w * (size_t)s->h;
	viewer_begin_frame(app);
	if (s->w < SMALLEST_W || s->h < SMALLEST_H) {
		screen_clear(s, *part(app, PART_NORMAL));
		screen_printf(s, 0, 0, s->w, *part(app, PART_NORMAL), "at least %dx%d", SMALLEST_W, SMALLEST_H);
		return;
	}
	watch_look(app);
	if (!watch_torn(app)) {
		struct glyph *before = mem_new(cells, sizeof *before);
		memcpy(before, s->cell, cells * sizeof *before);
		draw_all(app, s);
		watch_look(app);
		if (watch_torn(app))
			memcpy(s->cell, before, cells * sizeof *before);
		free(before);
	}
	s->cursor_x = s->cursor_y = -1;
	foot_draw(app, s);
}
