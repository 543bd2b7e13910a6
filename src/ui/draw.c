/* The frame: header, ruler, rows, legend; and where the pane goes.  Draws the state, changes none of it but the
 * scroll position and the caches. */
#include "ui/app.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"

#define SMALLEST_W 40
#define SMALLEST_H 8

static const struct style *part(const struct app *app, enum part p)
{
	return &app->palette.part[p];
}

/* ".1139": a time without what the header says already. */
static const char *short_time(const struct app *app, int64_t t, char buf[TIME_TEXT])
{
	ruler_time(buf, &app->axis, t, app->view.step);
	const char *dot = strchr(buf, '.');
	return app->axis.format == TIME_WALL && dot ? dot : buf;
}

/* "   A .541  B .720  d 179 ms" */
static void markers_text(const struct app *app, char *buf, size_t size)
{
	const struct view *v = &app->view;
	char a[TIME_TEXT], b[TIME_TEXT], d[TIME_TEXT];
	bool has_a = v->a != VIEW_NONE, has_b = v->b != VIEW_NONE;
	snprintf(buf, size, "%s%s%s%s%s%s", has_a ? "   A " : "", has_a ? short_time(app, v->a, a) : "", has_b ? "  B " : "",
	         has_b ? short_time(app, v->b, b) : "", has_a && has_b ? "  d " : "",
	         has_a && has_b ? time_duration(d, v->a < v->b ? v->b - v->a : v->a - v->b) : "");
}

/* What stands at the end of the first line; true when it must be known to read the rest. */
static bool header_note(const struct app *app, char *buf, size_t size)
{
	buf[0] = '\0';
	if (!rows_survey_done(&app->rows))
		snprintf(buf, size, "reading threads %u%% ", (unsigned)(100ULL * app->rows.survey.next / app->topo.threads));
	else if (app->rows.filter[0])
		return snprintf(buf, size, "filter: %.40s ", app->rows.filter), true;
	else if (app->nudged[0])
		return snprintf(buf, size, "%.60s ", app->nudged), true;
	else if (app->rows.hidden)
		snprintf(buf, size, "%zu idle hidden ", app->rows.hidden);
	return false;
}

static void draw_header(struct app *app, struct screen *s)
{
	const struct topo *topo = &app->topo;
	char name[64], from[TIME_TEXT], to[TIME_TEXT], span[TIME_TEXT], step[TIME_TEXT];
	int64_t last = view_last(&app->view, &app->ground);
	struct style style = *part(app, PART_HEADER);
	unsigned vms = 0;
	for (uint32_t m = 0; m < topo->machines; m++)
		vms += topo->machine[m].kind == MACHINE_VM;
	screen_fill(s, 0, 0, s->w, ' ', style);
	text_escape(name, sizeof name, topo->machines ? topo->machine[0].name : "nothing");
	ruler_time(from, &app->axis, app->view.t0, app->view.step);
	ruler_time(to, &app->axis, last, app->view.step);
	bool same = app->axis.format == TIME_WALL && strncmp(from, to, 9) == 0 && strlen(to) > 8;
	bool host = topo->machines && topo->machine[0].kind == MACHINE_HOST;
	int x = host ? screen_printf(s, 1, 0, s->w, style, "%s + %u VM%s", name, vms, vms == 1 ? "" : "s")
	             : screen_printf(s, 1, 0, s->w, style, "%u VM%s, no host", vms, vms == 1 ? "" : "s");
	char window[128], cell[TIME_TEXT + 16], markers[128], note[64];
	bool needed = header_note(app, note, sizeof note);
	int tail = note[0] ? text_width(note) + 2 : 0;
	int room = s->w - x - 2;
	snprintf(window, sizeof window, "   %s .. %s   %s", from, same ? to + 8 : to,
	         time_duration(span, last - app->view.t0 + 1));
	snprintf(cell, sizeof cell, "   %s/cell", time_duration(step, app->view.step));
	markers_text(app, markers, sizeof markers);
	/* Where the line is short, markers and filter are worth more than the length of a cell. */
	bool fits = text_width(window) + text_width(cell) + text_width(markers) + (needed ? tail : 0) <= room;
	x += 1 + screen_printf(s, x + 1, 0, s->w, style, "%s%s%s", window, fits ? cell : "", markers);
	if (tail < s->w - x)
		screen_text(s, s->w - tail + 2, 0, s->w, *part(app, PART_DIM), note);
}

static void put_mark(struct app *app, struct screen *s, int64_t t, char letter)
{
	int col = t == VIEW_NONE ? -1 : view_column(&app->view, t);
	if (col >= 0 && col < app->ground.cols)
		screen_put(s, app->label_w + 1 + col, 1, (uint32_t)(unsigned char)letter, *part(app, PART_MARK));
}

static void draw_ruler(struct app *app, struct screen *s)
{
	const struct view *v = &app->view;
	int x = app->label_w + 1;
	screen_fill(s, 0, 1, s->w, ' ', *part(app, PART_RULER));
	ruler_draw(s, 0, x, 1, app->ground.cols, &app->axis, v->t0, v->step, *part(app, PART_RULER));
	if (v->range != VIEW_NONE) {
		int a = view_column(v, v->range < v->cursor ? v->range : v->cursor);
		int b = view_column(v, v->range < v->cursor ? v->cursor : v->range);
		for (int c = a < 0 ? 0 : a; c <= b && c < app->ground.cols; c++) {
			struct glyph *g = screen_at(s, x + c, 1);
			if (g)
				g->style = *part(app, PART_SELECTED);
		}
	}
	put_mark(app, s, v->a, 'A');
	put_mark(app, s, v->b, 'B');
	put_mark(app, s, v->cursor, 'v');
}

/* "!12%": the share of the window that was stolen from the row, "" where that has no meaning. */
static void steal_text(struct app *app, struct row_id row, char *buf, size_t size)
{
	struct error err = ERROR_INIT;
	struct subject s;
	int64_t last = view_last(&app->view, &app->ground), ns, total = 0, window = last - app->view.t0 + 1;
	buf[0] = '\0';
	if (!row_subject(&app->topo, row, &s))
		return;
	if (row.kind == ROW_MACHINE) {
		const struct topo_machine *m = &app->topo.machine[row.index];
		if (m->kind != MACHINE_VM || m->cpus == 0)
			return;
		for (uint32_t c = m->cpu; c < m->cpu + m->cpus; c++) {
			struct subject cpu = { SUBJECT_CPU, c };
			if (app->topo.cpu[c].status != HISTORY_NONE &&
			    steal_time(&app->topo, &cpu, app->view.t0, last, &ns, &err) == 0)
				total += ns;
		}
		window *= m->cpus;
	} else if (app_row_attr(app, row) != HISTORY_NONE &&
	           steal_time(&app->topo, &s, app->view.t0, last, &ns, &err) == 0) {
		total = ns;
	}
	double share = window > 0 ? 100.0 * (double)total / (double)window : 0;
	if (total == 0 && row.kind != ROW_CPU)
		return;
	if (share >= 9.95 || share == 0)
		snprintf(buf, size, "!%.0f%%", share);
	else if (share >= 0.05)
		snprintf(buf, size, "!%.1f%%", share);
	else
		snprintf(buf, size, "!~0%%");
}

static void draw_label(struct app *app, struct screen *s, int y, const struct row *row, bool pinned)
{
	bool selected = row_same(row->id, app->view.row);
	struct style style = *part(app, selected ? PART_SELECTED : PART_LABEL);
	char label[512], steal[16];
	int x = row->depth * (app->label_w >= 30 ? 2 : 1), end = app->label_w;
	screen_fill(s, 0, y, app->label_w, ' ', style);
	steal_text(app, row->id, steal, sizeof steal);
	if (steal[0]) {
		end -= (int)strlen(steal);
		struct style strong = selected ? style : *part(app, PART_STEAL);
		screen_text(s, end, y, app->label_w - end, strong, steal);
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

static void draw_row(struct app *app, struct screen *s, int y, const struct row *row, bool pinned)
{
	struct error err = ERROR_INIT;
	struct cell_source src;
	uint32_t *attrs;
	int n = app->ground.cols;
	struct cell *cell = mem_new((size_t)n, sizeof *cell);
	draw_label(app, s, y, row, pinned);
	app_source(app, row->id, &src, &attrs);
	if (cells_row(&src, app->view.t0, app->view.step, n, cell, &err) < 0) {
		screen_text(s, app->label_w + 1, y, n, *part(app, PART_ERROR), err.text);
		n = 0;
	}
	bool selected = row_same(row->id, app->view.row);
	for (int i = 0; i < n; i++) {
		struct glyph g = app_glyph(app, cell[i], src.minority);
		if (selected && i == view_column(&app->view, app->view.cursor))
			g.style.attr ^= ATTR_REVERSE;
		screen_put(s, app->label_w + 1 + i, y, g.ch, g.style);
	}
	free(attrs);
	free(cell);
}

static void draw_rows(struct app *app, struct screen *s, int y, int height)
{
	struct rows *r = &app->rows;
	int pins = (int)app->pins < height / 2 ? (int)app->pins : height / 2;
	for (int i = 0; i < pins; i++) {
		struct row row = { .id = app->pin[i] };
		draw_row(app, s, y + i, &row, true);
	}
	y += pins;
	height -= pins;
	app->rows_shown = height;
	size_t at = rows_find_near(r, app->view.row), page = (size_t)height;
	if (at < r->len)
		app->view.row = r->row[at].id;
	bool far = at + page < app->top || at >= app->top + 2 * page;
	if (far)  /* a jump: show what is around it */
		app->top = at > page / 2 ? at - page / 2 : 0;
	if (at < app->top)
		app->top = at;
	if (at >= app->top + page)
		app->top = at - page + 1;
	if (app->top + page > r->len)
		app->top = r->len > page ? r->len - page : 0;
	for (int i = 0; i < height && app->top + (size_t)i < r->len; i++)
		draw_row(app, s, y + i, &r->row[app->top + (size_t)i], false);
}

/* Draws the states order[*at ..] as far as they fit before `end`; *at moves on.  Returns the next column. */
static int draw_states(struct app *app, struct screen *s, int x, int y, int end, const uint8_t *order, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct theme_state *state = &app->theme.state[order[i]];
		int need = 2 + text_width(state->label);
		if (x + need >= end)
			break;
		struct glyph g = app_glyph(app, (struct cell){ CELL_PURE, order[i], order[i], 1, false }, false);
		screen_put(s, x, y, g.ch == ' ' ? (uint32_t)(unsigned char)state->letter : g.ch,
		           app->palette.depth == DEPTH_MONO ? g.style : app->palette.state[order[i]]);
		screen_text(s, x + 2, y, s->w, *part(app, PART_NORMAL), state->label);
		x += need + 1;
	}
	return x;
}

/* The states that people look for, then keys as many as fit, then the rarer states. */
static void draw_legend(struct app *app, struct screen *s, int y)
{
	static const uint8_t common[] = { VIS_RUNNING, VIS_BLOCKED, VIS_PREEMPTED, VIS_VIRT_PREEMPTED, VIS_VMM, VIS_IDLE };
	static const uint8_t rare[] = { VIS_HOST_BLOCKED, VIS_WAKING, VIS_UNKNOWN };
	static const struct { enum action action; const char *text; } hints[] = {
		{ ACT_HELP, "help" }, { ACT_FLOW, "flow" }, { ACT_NEXT_GAP, "gap" }, { ACT_EXPORT, "export" },
		{ ACT_ZOOM_IN, "zoom" }, { ACT_PAN_RIGHT, "pan" }, { ACT_BLAME, "who took it" },
	};
	char tail[160] = "", keys[64];
	bool list = app->mode == MODE_PAGER;  /* whose keys are others, told above it */
	keymap_text(&app->keymap, ACT_HELP, keys, sizeof keys);
	int help = list ? 0 : (int)strcspn(keys, ",") + 6;  /* the hint that the smallest screen shows, too */
	int x = draw_states(app, s, 0, y, s->w - help, common, sizeof common);
	for (size_t i = 0; !list && i < sizeof hints / sizeof *hints; i++) {
		char one[240];
		keymap_text(&app->keymap, hints[i].action, keys, sizeof keys);
		keys[strcspn(keys, ",")] = '\0';
		size_t n = strlen(keys);
		bool named = n > 2 && keys[0] == '<' && keys[n - 1] == '>';
		if (named)
			keys[n - 1] = '\0';
		snprintf(one, sizeof one, "%s %s%s%s", keys + named, hints[i].text, tail[0] ? "  " : "", tail);
		if (x + (int)strlen(one) >= s->w || strlen(one) >= sizeof tail)
			break;
		snprintf(tail, sizeof tail, "%.159s", one);
	}
	draw_states(app, s, x, y, s->w - (int)strlen(tail) - 2, rare, sizeof rare);
	screen_text(s, s->w - (int)strlen(tail) - 1, y, s->w, *part(app, PART_DIM), tail);
}

/* In the last line; what is too long for that takes the line above as well. */
static void draw_message(struct screen *s, int y, struct style style, const char *text)
{
	int room = s->w - 2;
	if (text_width(text) > room) {
		size_t fits = text_fit(text, room), n = fits;
		while (n > fits / 2 && text[n] != ' ')
			n--;
		n = text[n] == ' ' ? n : fits;
		screen_fill(s, 0, y - 1, s->w, ' ', style);
		screen_printf(s, 1, y - 1, s->w - 1, style, "%.*s", (int)n, text);
		text += n + (text[n] == ' ');
	}
	screen_fill(s, 0, y, s->w, ' ', style);
	screen_text(s, 1, y, s->w - 1, style, text);
}

static void draw_foot(struct app *app, struct screen *s)
{
	int y = s->h - 1;
	char text[512];
	if (app->mode == MODE_PROMPT) {
		prompt_draw(&app->prompt, s, y, *part(app, PART_NORMAL));
		int room = s->w - s->cursor_x - 3;  /* beside what is typed: what it finds */
		if (app->message[0] && text_width(app->message) <= room)
			screen_text(s, s->w - 1 - text_width(app->message), y, s->w, *part(app, PART_DIM), app->message);
	} else if (app->message[0]) {
		struct style style = *part(app, app->message_is_error ? PART_ERROR : PART_STATUS);
		draw_message(s, y, style, app->message);
	} else if (nudge_text(app, text, sizeof text)) {
		draw_message(s, y, *part(app, PART_STATUS), text);
	} else {
		draw_legend(app, s, y);
	}
}

/* Brings the pane up to date; it may close itself. */
static int draw_pane_height(struct app *app, int room)
{
	if (app->pane == PANE_FLOW)
		flow_pane_refresh(app);
	if (app->pane == PANE_BLAME)
		blame_refresh(app);
	if (app->pane == PANE_FLOW)
		return flow_pane_height(app, room);
	size_t lines = app->blame.valid ? app->blame.lines : app->blame.room;
	int want = app->pane == PANE_BLAME ? (int)(lines < 200 ? lines : 200) + 1 : 0;
	return want > room / 2 ? room / 2 : want;
}

void app_draw(struct app *app, struct screen *s)
{
	app_begin_frame(app);
	screen_clear(s, *part(app, PART_NORMAL));
	if (s->w < SMALLEST_W || s->h < SMALLEST_H) {
		screen_printf(s, 0, 0, s->w, *part(app, PART_NORMAL), "at least %dx%d", SMALLEST_W, SMALLEST_H);
		return;
	}
	bool list = app->mode == MODE_PAGER || (app->mode == MODE_PROMPT && app->prompt.kind == PROMPT_PAGER);
	if (list) {
		details_refresh(app);
		pager_draw(&app->pager, s, 0, s->h - 1, &app->palette);
		draw_foot(app, s);
		return;
	}
	int room = s->h - 4, pane = draw_pane_height(app, room);
	draw_header(app, s);
	draw_ruler(app, s);
	draw_rows(app, s, 2, room - pane);
	if (app->pane == PANE_FLOW && pane > 0)
		flow_pane_draw(app, s, 2 + room - pane, pane);
	else if (app->pane == PANE_BLAME)
		blame_draw(app, s, 2 + room - pane, pane);
	status_draw(app, s, s->h - 2);
	draw_foot(app, s);
}
