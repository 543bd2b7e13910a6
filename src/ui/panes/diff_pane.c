/* The diff pane: what changed, and who explains it.  The markers' or the screen's window is what is after; what is before
 * is another history, or of this one the longer part beside the window.  It stays with both.
 *
 * Its first lines are the verdict, which scrolls as they do; a finding says how sure it is: the change lies between the two
 * last figures. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "ui/panes/pane.h"
#include "ui/panes/pane_export.h"

#define FIGURE 10        /* columns of one */
#define NAMES_MOST 70    /* columns */
#define MOST_GAPS 100000 /* that are looked at for the longest */

struct diff_pane {
	struct pane pane;
	char other[512];     /* history that was before; "": of this one */
	bool named;          /* just now, by a command; the key is about the rest */
	int64_t from, to;    /* ns, the window */
	int64_t other_from, other_to;  /* the rest */
	struct diff diff;
	struct origin before;
	struct notes doubts;
	char *verdict;
	size_t words;        /* lines of it; 0: a filter leaves findings alone */
	size_t *line;        /* index into diff.row */
	size_t shown;        /* findings */
};

static struct diff_pane *of(struct pane *pane)
{
	return (struct diff_pane *)pane;
}

/* Lines above the findings: the verdict and the headings, less the one that heading() draws. */
static size_t above(const struct diff_pane *p)
{
	return p->words + (p->shown > 0) - (p->words > 0 || p->shown > 0);
}

/* The finding of a line; that of the verdict is the first one.  NULL: there is none. */
static const struct diff_row *row_of(const struct pane *pane, size_t i)
{
	const struct diff_pane *p = (const struct diff_pane *)pane;
	const size_t before = above(p);
	return p->shown ? &p->diff.row[p->line[i > before ? i - before : 0]] : NULL;
}

/* ---- What is asked -------------------------------------------------------------------------------------------------- */

/* The longer part of the history beside the window: false, there is none that can be compared. */
static bool choose_rest(const struct app *app, struct diff_pane *p)
{
	const int64_t ahead = p->from - app->ground.begin, behind = app->ground.end - p->to;
	const bool is_ahead = ahead >= behind;
	p->other_from = is_ahead ? app->ground.begin : p->to + 1;
	p->other_to = is_ahead ? p->from - 1 : app->ground.end;
	return (is_ahead ? ahead : behind) >= DIFF_SHORTEST;
}

/* Then the window is what was before. */
static bool rest_is_later(const struct diff_pane *p)
{
	return !*p->other && p->other_from > p->from;
}

static void forget(struct pane *pane)
{
	struct diff_pane *p = of(pane);
	free(p->line);
	free(p->verdict);
	p->line = NULL;
	p->verdict = NULL;
	diff_release(&p->diff);
	notes_release(&p->doubts);
	origin_release(&p->before);
}

static bool begin(struct app *app, struct pane *pane)
{
	struct diff_pane *p = of(pane);
	if (!p->named)
		p->other[0] = '\0';
	p->named = false;
	pane_window(app, &p->from, &p->to);
	if (p->to - p->from + 1 < DIFF_SHORTEST) {
		app_refuse(app, "less than 6.4 ms cannot be compared: zoom out, or set markers A and B");
		return false;
	}
	if (!*p->other && !choose_rest(app, p)) {
		app_refuse(app, "nothing is left to compare it with: zoom in, mark A and B, or :diff HISTORY");
		return false;
	}
	forget(pane);
	pane->valid = false;
	pane->lines = pane->top = pane->at = 0;
	pane->filter[0] = '\0';
	app->focused = true;
	return true;
}

void pane_diff(struct app *app, const char *file)
{
	struct diff_pane *p = of(app->pane[PANE_DIFF]);
	if (strlen(file) >= sizeof p->other) {
		app_refuse(app, "the name is too long");
		return;
	}
	if (app->below == &p->pane)
		pane_close(app);
	snprintf(p->other, sizeof p->other, "%s", file);
	p->named = true;
	pane_open(app, PANE_DIFF);
}

static void question(const struct app *app, const struct pane *pane, struct question *q)
{
	const struct diff_pane *p = (const struct diff_pane *)pane;
	(void)app;
	snprintf(q->other, sizeof q->other, "%s", p->other);
	const bool later = rest_is_later(p);
	q->from = later ? p->other_from : p->from;
	q->to = later ? p->other_to : p->to;
	q->other_from = later ? p->from : p->other_from;
	q->other_to = later ? p->to : p->other_to;
}

static void take(struct app *app, struct pane *pane, struct answer *answer)
{
	struct diff_pane *p = of(pane);
	(void)app;
	p->diff = answer->diff;
	p->doubts = answer->doubts;
	p->before = answer->before;
	p->verdict = diff_verdict(&p->diff);
}

/* As many words of the text as go into w columns, at least one; returns where the next line begins. */
static const char *fill_line(const char *text, int w, char *buf, size_t size)
{
	size_t taken = 0;
	for (size_t n = strcspn(text, " \n"); text[taken];) {
		snprintf(buf, size, "%.*s", (int)n, text);
		if (taken && text_width(buf) > w)
			break;
		taken = n;
		if (text[n] != ' ')
			break;
		n += 1 + strcspn(text + n + 1, " \n");
	}
	snprintf(buf, size, "%.*s", (int)taken, text);
	return text + taken + (text[taken] == ' ' || text[taken] == '\n');
}

static void arrange(struct app *app, struct pane *pane)
{
	struct diff_pane *p = of(pane);
	const size_t was = above(p), finding = p->shown && pane->at > was ? pane->at - was : 0;
	char buf[1024];
	free(p->line);
	p->line = mem_new(p->diff.found + 1, sizeof *p->line);
	p->shown = p->words = 0;
	for (size_t i = 0; i < p->diff.found; i++) {
		const struct diff_row *r = &p->diff.row[i];
		if (!pane->filter[0] || strcasestr(r->subject, pane->filter) || strcasestr(r->by, pane->filter))
			p->line[p->shown++] = i;
	}
	for (const char *at = pane->filter[0] ? "" : p->verdict; *at; p->words++)
		at = fill_line(at, app->w - 2, buf, sizeof buf);
	pane->lines = above(p) + p->shown;
	pane->least = p->words + (p->shown > 0);
	pane->leadless = !p->shown;
	pane->first = p->shown && !finding ? above(p) : 0;
	pane->at = finding ? above(p) + finding : 0;
}

/* ---- What it says --------------------------------------------------------------------------------------------------- */

static void name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	const struct diff_pane *p = (const struct diff_pane *)pane;
	const char *slash = strrchr(p->other, '/');
	char file[256], d[TIME_TEXT];
	(void)app;
	if (*p->other)
		snprintf(buf, size, "what changed since %s", text_escape(file, sizeof file, slash ? slash + 1 : p->other));
	else
		snprintf(buf, size, rest_is_later(p) ? "what changed in the %s after" : "what changed since the %s before",
		         time_duration(d, p->other_to - p->other_from + 1));
}

static void title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct diff_pane *p = (const struct diff_pane *)pane;
	char what[320], span[TIME_TEXT], doubt[48] = "";
	(void)w;
	name(app, pane, what, sizeof what);
	if (p->doubts.len)
		snprintf(doubt, sizeof doubt, ", %zu note%s", p->doubts.len, p->doubts.len == 1 ? "" : "s");
	snprintf(buf, size, " %s%s %s: %zu finding%s%s ", what, rest_is_later(p) ? ", from these" : ", in",
	         time_duration(span, p->to - p->from + 1), p->diff.found, p->diff.found == 1 ? "" : "s", doubt);
}

/* Before and after stand beside the change where there is room; where there is little, that stands alone. */
static int first_figure(int w)
{
	return w >= 100 ? 0 : 2;
}

static int end_of_figures(int w)
{
	return w < PANE_NARROW ? 3 : 6;
}

static int name_columns(int w)
{
	const int rest = w - 2 - (end_of_figures(w) - first_figure(w)) * FIGURE + 1;
	return rest > NAMES_MOST ? NAMES_MOST : rest;
}

static void draw_figures(struct screen *s, int y, const char *const text[6], struct style style)
{
	for (int i = first_figure(s->w), x = 1 + name_columns(s->w); i < end_of_figures(s->w); i++, x += FIGURE)
		screen_text(s, x + FIGURE - 1 - text_width(text[i]), y, FIGURE, style, text[i]);
}

/* Line i of the verdict, or the headings behind it. */
static void draw_above(const struct app *app, const struct diff_pane *p, struct screen *s, int y, size_t i,
                       struct style style)
{
	static const char *const heads[6] = { "before", "after", "change", "at least", "at most", "explains" };
	char line[1024] = "";
	if (i >= p->words) {
		style = app->look.palette.part[PART_RULER];
		screen_fill(s, 0, y, s->w, ' ', style);
		screen_text(s, 1, y, name_columns(s->w), style, "who and what");
		draw_figures(s, y, heads, style);
		return;
	}
	const char *text = p->verdict;
	for (size_t n = 0; n <= i; n++)
		text = fill_line(text, s->w - 2, line, sizeof line);
	screen_fill(s, 0, y, s->w, ' ', style);
	screen_text(s, 1, y, s->w - 2, style, line);
}

/* What stands above the first line that is shown; the headings stay. */
static void heading(const struct app *app, const struct pane *pane, struct screen *s, int y)
{
	const struct diff_pane *p = (const struct diff_pane *)pane;
	const size_t most = above(p);
	if (p->words || p->shown)
		draw_above(app, p, s, y, pane->top < most ? pane->top : most, app->look.palette.part[PART_NORMAL]);
}

struct diff_texts { char before[40], after[40], change[40], low[40], high[40], explains[16]; };

static void texts_of(const struct diff_row *r, struct diff_texts *t)
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

/* "Debian lost"; below it "  to host/burnP6". */
static void what_text(const struct pane *pane, size_t i, char *buf, size_t size)
{
	const struct diff_row *r = row_of(pane, i);
	const struct diff_row *last = i > above((const struct diff_pane *)pane) ? row_of(pane, i - 1) : NULL;
	const bool follows = last && last->kind == r->kind && last->quantity == r->quantity &&
	                     !strcmp(last->subject, r->subject);
	if (!*r->by)
		snprintf(buf, size, "%s %s", r->subject, diff_quantity_name[r->quantity]);
	else if (follows)
		snprintf(buf, size, "  %s%s", r->quantity == DIFF_LOST ? "to " : "", r->by);
	else
		snprintf(buf, size, "%s %s %s%s", r->subject, diff_quantity_name[r->quantity],
		         r->quantity == DIFF_LOST ? "to " : "", r->by);
}

static void draw_line(struct app *app, struct pane *pane, struct screen *s, int y, size_t i, bool selected)
{
	const struct style style = pane_style(app, PART_NORMAL, selected);
	struct diff_texts t;
	char what[700];
	if (i < above(of(pane))) {
		draw_above(app, of(pane), s, y, i + 1, style);
		return;
	}
	texts_of(row_of(pane, i), &t);
	what_text(pane, i, what, sizeof what);
	screen_clip(s, 1, y, name_columns(s->w), style, what);
	draw_figures(s, y, (const char *const[6]){ t.before, t.after, t.change, t.low, t.high, t.explains }, style);
}

static void tell(const struct app *app, const struct pane *pane, size_t i, char *buf, size_t size)
{
	const struct diff_row *r = row_of(pane, i);
	struct diff_texts t;
	(void)app;
	*buf = '\0';
	if (!r)
		return;
	texts_of(r, &t);
	snprintf(buf, size, "%s %s%s%s: %s, before %s: %s (%s to %s)%s%s", r->subject, diff_quantity_name[r->quantity],
	         !*r->by ? "" : r->quantity == DIFF_LOST ? " to " : " ", r->by, t.after, t.before, t.change, t.low, t.high,
	         *t.explains ? ", explains " : "", t.explains);
}

static void file_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	(void)app;
	(void)pane;
	snprintf(buf, size, "diff");
}

static int write_to(struct app *app, struct pane *pane, FILE *f, enum report_format format, struct error *err)
{
	struct diff_pane *p = of(pane);
	struct origin after, both = { 0 };
	struct notes doubts = { 0 };
	export_origin(app, pane, NULL, &after);
	origin_add(&both, &p->before);
	origin_add(&both, &after);
	origin_release(&after);
	for (size_t i = 0; i < p->doubts.len; i++)
		notes_copy(&doubts, &p->doubts.item[i], p->doubts.item[i].machine);
	origin_doubt(&both, &doubts);
	if (format == FORMAT_TEXT) {
		origin_write_head(&both, f);
		fprintf(f, "%s%s", p->verdict, p->diff.found ? "\n" : "");
	}
	int rc = report_diff(f, REPORT_WHOLE(format), &p->diff, false, format == FORMAT_TEXT ? NULL : &both, err);
	origin_release(&both);
	return rc;
}

/* ---- Where it leads ------------------------------------------------------------------------------------------------- */

/* To whom the line is about: its longest gap in the window, or the window. */
static void go(struct app *app, struct pane *pane, size_t i)
{
	const struct diff_pane *p = of(pane);
	struct subject s;
	struct gap gap, longest = { .start = p->from, .end = p->from - 1 };
	if (!row_of(pane, i)) {
		app_say(app, "there is no finding to go to");
		return;
	}
	if (!diff_find(&app->topo, row_of(pane, i), p->from, p->to, &s)) {
		app_say(app, "%s is not in this history", row_of(pane, i)->subject);
		return;
	}
	const struct row_id row = { s.kind == SUBJECT_MACHINE ? ROW_MACHINE : ROW_THREAD, s.index };
	const int64_t from = p->from, to = p->to;
	int64_t t = from;
	for (int n = 0; s.kind == SUBJECT_THREAD && n < MOST_GAPS; n++, t = gap.end) {
		if (gap_find(&app->topo, &s, t, 1, &gap, NULL) <= 0 || gap.start > to)
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
	.size = sizeof(struct diff_pane), .open = begin, .ask = ASK_DIFF, .question = question, .answer = take,
	.arrange = arrange, .name = name, .title = title, .headings = 1, .heading = heading,
	.line = draw_line, .go = go, .tell = tell, .file = file_name, .export = write_to, .forget = forget,
};
