/* The diff pane: changes between two windows, and their explanations.
 *
 * One side is the window (A..B, or the window on the screen); the other side is another history, or the longer part of
 * this history before or after the window. Both stay fixed while the pane is open. The first lines of the pane are the
 * verdict; it scrolls together with the findings. "at least" and "at most" of a finding are the confidence interval of
 * its change. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "compare/compare.h"
#include "ui/core/text_filter.h"
#include "ui/panes/pane.h"
#include "ui/panes/pane_export.h"

#define VALUE_COLUMNS 10  /* width of a value */
#define NAME_COLUMNS_MAX 70  /* largest width of a name */
#define MAX_GAPS 100000  /* number of gaps that are searched for the longest gap */

struct diff_pane {
	struct pane pane;
	char other[512];     /* file of the history to compare with; "": this history */
	bool is_from_command;  /* `other` was just set by :diff; without it the pane compares with the rest of this history */
	int64_t from, to;    /* window of the pane, ns */
	int64_t other_from, other_to;  /* window of the other side if it is this history, ns */
	struct diff diff;
	struct origin other_origin;
	struct notes notes;
	char *verdict;
	size_t verdict_lines;  /* number of lines of the verdict; 0: a filter is set, only findings are shown */
	size_t *line;        /* findings that pass the filter, indices into diff.row */
	size_t shown;        /* number of findings that pass the filter */
};

static struct diff_pane *diff_pane_state(struct pane *pane)
{
	return (struct diff_pane *)pane;
}

/* Returns the number of lines above the findings: verdict and headings, without the line of diff_pane_draw_headings(). */
static size_t lines_above(const struct diff_pane *p)
{
	return p->verdict_lines + (p->shown > 0) - (p->verdict_lines > 0 || p->shown > 0);
}

/* Returns the finding of a line; for lines of the verdict the first finding; NULL: there are no findings. */
static const struct diff_row *row_of(const struct pane *pane, size_t i)
{
	const struct diff_pane *p = (const struct diff_pane *)pane;
	const size_t before = lines_above(p);
	return p->shown ? &p->diff.row[p->line[i > before ? i - before : 0]] : NULL;
}

/* ---- The question ---------------------------------------------------------------------------------------------------- */

/* Chooses the longer part of the history before or after the window. Returns false if that part is too short to compare. */
static bool choose_other_side(const struct app *app, struct diff_pane *p)
{
	const int64_t before_ns = p->from - app->bounds.begin, after_ns = app->bounds.end - p->to;
	const bool is_before = before_ns >= after_ns;
	p->other_from = is_before ? app->bounds.begin : p->to + 1;
	p->other_to = is_before ? p->from - 1 : app->bounds.end;
	return (is_before ? before_ns : after_ns) >= DIFF_WINDOW_MIN;
}

/* Returns true if the other side is a later part of this history: then the window is "before". */
static bool other_side_is_later(const struct diff_pane *p)
{
	return !*p->other && p->other_from > p->from;
}

static void diff_pane_drop_answer(struct pane *pane)
{
	struct diff_pane *p = diff_pane_state(pane);
	free(p->line);
	free(p->verdict);
	p->line = NULL;
	p->shown = p->verdict_lines = 0;
	p->verdict = NULL;
	diff_release(&p->diff);
	notes_release(&p->notes);
	origin_release(&p->other_origin);
}

static bool diff_pane_open(struct app *app, struct pane *pane)
{
	struct diff_pane *p = diff_pane_state(pane);
	if (!p->is_from_command)
		p->other[0] = '\0';
	p->is_from_command = false;
	pane_window(app, &p->from, &p->to);
	if (p->to - p->from + 1 < DIFF_WINDOW_MIN) {
		app_refuse(app, "window too short to compare (at least 6.4 ms): zoom out, or set markers A and B");
		return false;
	}
	if (!*p->other && !choose_other_side(app, p)) {
		app_refuse(app, "too little of the trace is outside this window: zoom in, set markers, or use :diff HISTORY");
		return false;
	}
	diff_pane_drop_answer(pane);
	pane->valid = false;
	pane->lines = pane->top = pane->at = 0;
	pane->filter[0] = '\0';
	app->focused = true;
	return true;
}

void pane_diff(struct app *app, const char *file)
{
	struct diff_pane *p = diff_pane_state(app->pane[PANE_DIFF]);
	if (strlen(file) >= sizeof p->other) {
		app_refuse(app, "the file name is too long");
		return;
	}
	if (app->pane_below == &p->pane)
		pane_close(app);
	snprintf(p->other, sizeof p->other, "%s", file);
	p->is_from_command = true;
	pane_open(app, PANE_DIFF);
}

struct diff_query {
	const struct catalog *catalog;
	char other[512];
	int64_t from, to, other_from, other_to;
	struct diff diff;
	struct notes notes;
	struct origin origin;
};

/* Compares two windows in one step, which cannot be cancelled. */
static int diff_step(void *state, int64_t until, struct error *err)
{
	struct diff_query *q = state;
	const struct diff_options options = { DIFF_LEVEL, &q->notes };
	struct catalog other = { 0 };
	struct history *h = *q->other ? history_open(q->other, err) : NULL;
	struct diff_side side[2] = { { q->catalog, q->other_from, q->other_to }, { q->catalog, q->from, q->to } };
	const bool open = h && catalog_open(&other, h, err) == 0;
	int rc = *q->other && !open ? -1 : 0;
	(void)until;
	if (open)
		side[0] = (struct diff_side){ &other, history_begin(h), history_end(h) };
	if (rc == 0)
		rc = diff_of(side, &options, &q->diff, err);
	if (rc == 0)
		origin_load(&q->origin, side[0].catalog, NULL, side[0].from, side[0].to);
	if (open)
		catalog_release(&other);
	history_close(h);
	return rc < 0 ? -1 : 1;
}

static void diff_query_release(void *state)
{
	struct diff_query *q = state;
	diff_release(&q->diff);
	notes_release(&q->notes);
	origin_release(&q->origin);
	free(q);
}

static void diff_pane_window(const struct app *app, const struct pane *pane, int64_t *from, int64_t *to)
{
	const struct diff_pane *p = (const struct diff_pane *)pane;
	const bool later = other_side_is_later(p);
	(void)app;
	*from = later ? p->other_from : p->from;
	*to = later ? p->other_to : p->to;
}

static struct query *diff_pane_open_query(struct app *app, struct pane *pane, struct error *err)
{
	static const struct task_kind kind = { diff_step, diff_query_release };
	const struct diff_pane *p = (const struct diff_pane *)pane;
	const bool later = other_side_is_later(p);
	struct diff_query *q = mem_new(1, sizeof *q);
	(void)err;
	*q = (struct diff_query){ .catalog = &app->catalog, .from = pane->from, .to = pane->to,
		.other_from = later ? p->from : p->other_from, .other_to = later ? p->to : p->other_to };
	snprintf(q->other, sizeof q->other, "%s", p->other);
	return query_task_open(&kind, q);
}

static void diff_pane_take_answer(struct app *app, struct pane *pane, struct query *query)
{
	struct diff_pane *p = diff_pane_state(pane);
	struct diff_query *q = query_task_state(query);
	(void)app;
	p->diff = q->diff;
	p->notes = q->notes;
	p->other_origin = q->origin;
	q->diff = (struct diff){ 0 };
	q->notes = (struct notes){ 0 };
	q->origin = (struct origin){ 0 };
	p->verdict = diff_verdict(&p->diff);
}

/* Copies the words of the text that fit into w columns, at least one, to buf. Returns the start of the next line. */
static const char *fill_line(const char *text, int w, char *buf, size_t size)
{
	size_t used = 0;
	for (size_t n = strcspn(text, " \n"); text[used];) {
		snprintf(buf, size, "%.*s", (int)n, text);
		if (used && text_width(buf) > w)
			break;
		used = n;
		if (text[n] != ' ')
			break;
		n += 1 + strcspn(text + n + 1, " \n");
	}
	snprintf(buf, size, "%.*s", (int)used, text);
	return text + used + (text[used] == ' ' || text[used] == '\n');
}

static void diff_pane_make_lines(struct app *app, struct pane *pane)
{
	struct diff_pane *p = diff_pane_state(pane);
	const size_t old = lines_above(p), finding = p->shown && pane->at > old ? pane->at - old : 0;
	char buf[1024];
	free(p->line);
	p->line = mem_new(p->diff.found + 1, sizeof *p->line);
	p->shown = p->verdict_lines = 0;
	for (size_t i = 0; i < p->diff.found; i++) {
		const struct diff_row *r = &p->diff.row[i];
		if (!pane->filter[0] || filter_matches(r->target, pane->filter) || filter_matches(r->by, pane->filter))
			p->line[p->shown++] = i;
	}
	for (const char *at = pane->filter[0] || !p->verdict ? "" : p->verdict; *at; p->verdict_lines++)
		at = fill_line(at, app->w - 2, buf, sizeof buf);
	pane->lines = lines_above(p) + p->shown;
	pane->min_lines = p->verdict_lines + (p->shown > 0);
	pane->no_follow = !p->shown;
	pane->initial_line = p->shown && !finding ? lines_above(p) : 0;
	pane->at = finding ? lines_above(p) + finding : 0;
}

/* ---- Texts -------------------------------------------------------------------------------------------------------- */

static void diff_pane_get_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	const struct diff_pane *p = (const struct diff_pane *)pane;
	const char *slash = strrchr(p->other, '/');
	char file[256], d[TIME_TEXT];
	(void)app;
	if (*p->other)
		snprintf(buf, size, "changes since %s", text_escape(file, sizeof file, slash ? slash + 1 : p->other));
	else
		snprintf(buf, size, other_side_is_later(p) ? "changes in the %s after" : "changes since the %s before",
		         time_duration(d, p->other_to - p->other_from + 1));
}

static void diff_pane_get_title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct diff_pane *p = (const struct diff_pane *)pane;
	char text[320], length[TIME_TEXT], notes_text[48] = "";
	(void)w;
	diff_pane_get_name(app, pane, text, sizeof text);
	if (p->notes.len)
		snprintf(notes_text, sizeof notes_text, ", %zu note%s", p->notes.len, p->notes.len == 1 ? "" : "s");
	snprintf(buf, size, " %s%s %s: %zu finding%s%s ", text, other_side_is_later(p) ? ", compared with" : ", in",
	         time_duration(length, p->to - p->from + 1), p->diff.found, p->diff.found == 1 ? "" : "s", notes_text);
}

/* First and last value shown: wide screens show before and after besides the change, narrow ones only the change. */
static int first_value(int w)
{
	return w >= 100 ? 0 : 2;
}

static int end_of_values(int w)
{
	return w < PANE_NARROW ? 3 : 6;
}

static int name_columns(int w)
{
	const int name_w = w - 2 - (end_of_values(w) - first_value(w)) * VALUE_COLUMNS + 1;
	return name_w > NAME_COLUMNS_MAX ? NAME_COLUMNS_MAX : name_w;
}

static void draw_values(struct screen *s, int y, const char *const text[6], struct style style)
{
	for (int i = first_value(s->w), x = 1 + name_columns(s->w); i < end_of_values(s->w); i++, x += VALUE_COLUMNS)
		screen_text(s, x + VALUE_COLUMNS - 1 - text_width(text[i]), y, VALUE_COLUMNS, style, text[i]);
}

/* Draws line i of the verdict, or the headings, which follow the verdict. */
static void draw_verdict_line(const struct app *app, const struct diff_pane *p, struct screen *s, int y, size_t i,
                       struct style style)
{
	static const char *const heading_texts[6] = { "before", "after", "change", "at least", "at most", "explains" };
	char line[1024] = "";
	if (i >= p->verdict_lines) {
		style = app->appearance.palette.part[PART_RULER];
		screen_fill(s, 0, y, s->w, ' ', style);
		screen_text(s, 1, y, name_columns(s->w), style, "quantity");
		draw_values(s, y, heading_texts, style);
		return;
	}
	const char *text = p->verdict;
	for (size_t n = 0; n <= i; n++)
		text = fill_line(text, s->w - 2, line, sizeof line);
	screen_fill(s, 0, y, s->w, ' ', style);
	screen_text(s, 1, y, s->w - 2, style, line);
}

/* Draws the line before the first line shown, so that the headings of the findings stay in view. */
static void diff_pane_draw_headings(const struct app *app, const struct pane *pane, struct screen *s, int y)
{
	const struct diff_pane *p = (const struct diff_pane *)pane;
	const size_t last_line = lines_above(p);
	if (p->verdict_lines || p->shown)
		draw_verdict_line(app, p, s, y, pane->top < last_line ? pane->top : last_line,
		                  app->appearance.palette.part[PART_NORMAL]);
}

struct diff_texts { char before[40], after[40], change[40], low[40], high[40], explains[16]; };

static void format_values(const struct diff_row *r, struct diff_texts *t)
{
	diff_value_text(t->before, sizeof t->before, r->quantity, r->before, false);
	diff_value_text(t->after, sizeof t->after, r->quantity, r->after, false);
	diff_value_text(t->change, sizeof t->change, r->quantity, r->change, true);
	diff_value_text(t->low, sizeof t->low, r->quantity, r->low, true);
	diff_value_text(t->high, sizeof t->high, r->quantity, r->high, true);
	t->explains[0] = '\0';
	if (!isnan(r->explains))
		snprintf(t->explains, sizeof t->explains, "%.0f%%", 100 * r->explains);
}

/* Writes "Debian lost", and for the following lines of the same target "  to host/burnP6". */
static void quantity_text(const struct pane *pane, size_t i, char *buf, size_t size)
{
	const struct diff_row *r = row_of(pane, i);
	const struct diff_row *last = i > lines_above((const struct diff_pane *)pane) ? row_of(pane, i - 1) : NULL;
	const bool follows = last && last->kind == r->kind && last->quantity == r->quantity &&
	                     !strcmp(last->target, r->target);
	if (!*r->by)
		snprintf(buf, size, "%s %s", r->target, diff_quantity_name[r->quantity]);
	else if (follows)
		snprintf(buf, size, "  %s%s", r->quantity == DIFF_LOST ? "to " : "", r->by);
	else
		snprintf(buf, size, "%s %s %s%s", r->target, diff_quantity_name[r->quantity],
		         r->quantity == DIFF_LOST ? "to " : "", r->by);
}

static void diff_pane_draw_line(struct app *app, struct pane *pane, struct screen *s, int y, size_t i, bool selected)
{
	const struct style style = pane_style(app, PART_NORMAL, selected);
	struct diff_texts t;
	char text[700];
	if (i < lines_above(diff_pane_state(pane))) {
		draw_verdict_line(app, diff_pane_state(pane), s, y, i + 1, style);
		return;
	}
	format_values(row_of(pane, i), &t);
	quantity_text(pane, i, text, sizeof text);
	screen_clip(s, 1, y, name_columns(s->w), style, text);
	draw_values(s, y, (const char *const[6]){ t.before, t.after, t.change, t.low, t.high, t.explains }, style);
}

static void diff_pane_get_status_text(const struct app *app, const struct pane *pane, size_t i, char *buf, size_t size)
{
	const struct diff_row *r = row_of(pane, i);
	struct diff_texts t;
	(void)app;
	*buf = '\0';
	if (!r)
		return;
	format_values(r, &t);
	snprintf(buf, size, "%s %s%s%s: %s, before %s: %s (%s to %s)%s%s", r->target, diff_quantity_name[r->quantity],
	         !*r->by ? "" : r->quantity == DIFF_LOST ? " to " : " ", r->by, t.after, t.before, t.change, t.low, t.high,
	         *t.explains ? ", explains " : "", t.explains);
}

static void diff_pane_get_file_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	(void)app;
	(void)pane;
	snprintf(buf, size, "diff");
}

static int diff_pane_export(struct app *app, struct pane *pane, FILE *f, enum report_format format, struct error *err)
{
	struct diff_pane *p = diff_pane_state(pane);
	struct origin after, both = { 0 };
	struct notes notes = { 0 };
	export_origin(app, pane, NULL, &after);
	origin_add(&both, &p->other_origin);
	origin_add(&both, &after);
	origin_release(&after);
	for (size_t i = 0; i < p->notes.len; i++)
		notes_copy(&notes, &p->notes.item[i], p->notes.item[i].machine);
	origin_add_warnings(&both, &notes);
	if (format == FORMAT_TEXT) {
		origin_write_head(&both, f);
		fprintf(f, "%s%s", p->verdict ? p->verdict : "", p->diff.found ? "\n" : "");
	}
	int rc = report_diff(f, REPORT_WHOLE(format), &p->diff, false, format == FORMAT_TEXT ? NULL : &both, err);
	origin_release(&both);
	return rc;
}

/* ---- Jumps --------------------------------------------------------------------------------------------------------- */

/* Moves to the target of the line: to its longest gap in the window, or to the window if it has no gap. */
static void diff_pane_follow_line(struct app *app, struct pane *pane, size_t i)
{
	const struct diff_pane *p = diff_pane_state(pane);
	struct target s;
	struct gap gap, longest = { .start = p->from, .end = p->from - 1 };
	if (!row_of(pane, i)) {
		app_message(app, "no finding on this line");
		return;
	}
	if (!diff_find(&app->catalog, row_of(pane, i), p->from, p->to, &s)) {
		app_message(app, "%s is not in this history", row_of(pane, i)->target);
		return;
	}
	const struct row_id row = { s.kind == TARGET_MACHINE ? ROW_MACHINE : ROW_THREAD, s.index };
	const int64_t from = p->from, to = p->to;
	int64_t t = from;
	for (int n = 0; s.kind == TARGET_THREAD && n < MAX_GAPS; n++, t = gap.end) {
		if (gap_find(&app->catalog, &s, t, 1, &gap, NULL) <= 0 || gap.start > to)
			break;
		if (gap.end - gap.start > longest.end - longest.start)
			longest = gap;
	}
	if (longest.start <= longest.end)
		pane_go(app, row, longest.start, longest.end);
	else
		pane_go(app, row, from, to);
}

const struct pane_ops diff_pane = {
	.size = sizeof(struct diff_pane), .open = diff_pane_open, .window = diff_pane_window,
	.query = diff_pane_open_query, .is_long = true, .take = diff_pane_take_answer, .arrange = diff_pane_make_lines,
	.name = diff_pane_get_name,
	.title = diff_pane_get_title, .headings = 1, .heading = diff_pane_draw_headings, .line = diff_pane_draw_line,
	.follow = diff_pane_follow_line, .status_text = diff_pane_get_status_text, .file = diff_pane_get_file_name,
	.export = diff_pane_export, .drop_answer = diff_pane_drop_answer,
};
