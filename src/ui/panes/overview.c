/* The overview: who suffers.  Machines, then threads, by what was taken from them in the window, each with its lane on the
 * time axis of the screen; it takes the place of the rows.
 *
 * The sums are asked for first, and shown while the gaps are being read.  Going to a line's longest gap leaves the
 * overview; coming back finds it as it was. */
#include "ui/panes/overview.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "ui/panes/pane.h"
#include "ui/widgets/widgets.h"

#define WHO_LEAST 18
#define WHO_MOST 34
#define BY_MOST 30
#define AROUND 6  /* lines of the screen that are not its own: the first two, its title and headings, the last two */

struct overview {
	struct pane pane;
	struct summary s;
	size_t *line;               /* of the pane: index into s.row */
	size_t machines;            /* how many of them are machines */
	enum summary_order by;
	int64_t sums_from, sums_to; /* the window that the sums are of: the gaps are asked for next */
	bool detailed;              /* the gaps are there, too */
	struct subject at;          /* of the line of the cursor */
	bool placed, settled;       /* `at` is one; the cursor of the rows was put on its longest gap, or moved */
	struct view left;           /* when the overview was left for a gap; step 0: it was not */
};

static struct overview *of(struct pane *pane)
{
	return (struct overview *)pane;
}

static const struct summary_row *row_of(const struct pane *pane, size_t i)
{
	const struct overview *p = (const struct overview *)pane;
	return &p->s.row[p->line[i]];
}

static struct row_id id_of(const struct subject *s)
{
	static const uint8_t kind[] = { [SUBJECT_MACHINE] = ROW_MACHINE, [SUBJECT_CPU] = ROW_CPU,
		[SUBJECT_THREAD] = ROW_THREAD };
	return (struct row_id){ kind[s->kind], s->index };
}

static double share(int64_t part, int64_t whole)
{
	return whole > 0 ? (double)part / (double)whole : 0;
}

static const char *thief_text(const struct app *app, const struct overview *p, const struct summary_row *r, char *buf,
                              size_t size)
{
	const struct party *who = &r->thief;
	char name[PARTY_TEXT] = "";
	if (r->gaps)
		party_shown(&app->topo, who, who->name < p->s.names ? p->s.name[who->name] : NULL, name, sizeof name);
	snprintf(buf, size, "%s%s", thief_own(&app->topo, &r->who, who), name);
	return buf;
}

/* Where there is no room for what it worked for, why it is unknown, or of which machine; NULL: its name is not shorter. */
static const char *short_thief(const struct app *app, const struct summary_row *r)
{
	const struct party *who = &r->thief;
	const enum machine_kind kind = app->topo.machine[subject_machine(&app->topo, &r->who)].kind;
	if (*thief_own(&app->topo, &r->who, who))
		return r->who.kind == SUBJECT_MACHINE ? "its threads" : kind == MACHINE_VM ? "its own VM" : "its machine";
	return who->kind == FLOW_HYPERVISOR ? "hypervisor" : who->kind == FLOW_UNKNOWN ? "unknown" : NULL;
}

/* ---- Its lines ------------------------------------------------------------------------------------------------------ */

/* Threads that lost nothing are left out. */
static void arrange(struct app *app, struct pane *pane)
{
	struct overview *p = of(pane);
	char text[512];
	free(p->line);
	p->line = mem_new(p->s.rows, sizeof *p->line);
	pane->lines = p->machines = pane->at = 0;
	for (size_t i = 0; i < p->s.rows; i++) {
		const struct summary_row *r = &p->s.row[i];
		if (i >= p->s.machines && r->demand.lost == 0)
			continue;
		if (pane->filter[0] && !strcasestr(row_title(&app->rows, id_of(&r->who), text, sizeof text), pane->filter))
			continue;
		if (p->placed && r->who.kind == p->at.kind && r->who.index == p->at.index)
			pane->at = pane->lines;
		p->machines += i < p->s.machines;
		p->line[pane->lines++] = i;
	}
}

/* The row that the timeline stands on, unless it is so far down that nobody would see who suffers more. */
static void place(struct app *app, struct overview *p)
{
	const int page = app->h_cells - AROUND - (minimap_line(app) >= 0);
	p->placed = true;
	for (size_t i = 0; i < p->pane.lines && (int)i < page; i++)
		if (row_same(id_of(&row_of(&p->pane, i)->who), app->view.row))
			p->pane.at = i;
	if (p->pane.lines)
		p->at = row_of(&p->pane, p->pane.at)->who;
}

/* Nobody has looked elsewhere yet: the timeline stands where its worst row waited longest. */
static void settle(struct app *app, struct overview *p)
{
	for (size_t i = 0; i < p->s.rows && !app->moved && app->undo.len == 0; i++)
		if (row_same(id_of(&p->s.row[i].who), app->view.row) && p->s.row[i].gaps)
			view_goto(&app->view, &app->ground, p->s.row[i].longest.start);
	p->settled = true;
}

static void question(const struct app *app, const struct pane *pane, struct question *q)
{
	const struct overview *p = (const struct overview *)pane;
	q->from = app->view.t0;
	q->to = view_last(&app->view, &app->ground);
	q->gaps = app->patient || (p->sums_from == q->from && p->sums_to == q->to);
}

static void take(struct app *app, struct pane *pane, struct answer *answer)
{
	struct overview *p = of(pane);
	p->s = answer->summary;
	p->detailed = p->s.gaps;
	p->sums_from = pane->from;
	p->sums_to = pane->to;
	summary_sort(&p->s, &app->topo, p->by);
	arrange(app, pane);
	if (!p->placed)
		place(app, p);
	if (p->detailed && !p->settled)
		settle(app, p);
	pane->stale = !p->detailed;
}

static void forget(struct pane *pane)
{
	struct overview *p = of(pane);
	summary_release(&p->s);
	free(p->line);
	p->line = NULL;
	p->machines = 0;
}

/* What is on the line is what keys for a row are about. */
static void come(struct app *app, struct pane *pane, size_t i)
{
	of(pane)->at = row_of(pane, i)->who;
	app->view.row = id_of(&of(pane)->at);
	app->moved = true;
}

static void sort(struct app *app, struct pane *pane, int by)
{
	struct overview *p = of(pane);
	p->by = (enum summary_order)(((int)p->by + by + SUMMARY_ORDER_COUNT) % SUMMARY_ORDER_COUNT);
	summary_sort(&p->s, &app->topo, p->by);
	p->placed = false;
	arrange(app, pane);
	p->placed = pane->lines > 0;
	if (p->placed)
		come(app, pane, 0);
}

/* ---- Columns -------------------------------------------------------------------------------------------------------- */

enum overview_column { LIFE, RAN, LOST, SHARE, LONGEST, P99, GAPS, BY, COLUMNS };

/* rank: which go first where there is no room for all. */
static const struct { const char *heading; int width, rank; enum summary_order order; } columns[COLUMNS] = {
	[LIFE] = { "life", 8, 7, SUMMARY_BY_LIFE }, [RAN] = { "ran", 8, 6, SUMMARY_BY_RAN },
	[LOST] = { "lost", 8, 0, SUMMARY_BY_LOST }, [SHARE] = { "lost%", 5, 1, SUMMARY_BY_SHARE },
	[LONGEST] = { "longest", 8, 2, SUMMARY_BY_LONGEST }, [P99] = { "p99", 8, 4, SUMMARY_BY_P99 },
	[GAPS] = { "gaps", 6, 5, SUMMARY_BY_GAPS }, [BY] = { "mostly to", 13, 3, SUMMARY_ORDER_COUNT },
};

struct widths { int who, column[COLUMNS]; };

/* What the lines are sorted by takes the place of the longest gap, if it comes behind that. */
static int rank_of(int c, enum summary_order by)
{
	int key = 0;
	while (key < COLUMNS && columns[key].order != by)
		key++;
	if (key == COLUMNS || columns[key].rank <= columns[LONGEST].rank || (c != key && c != LONGEST))
		return columns[c].rank;
	return columns[c == key ? LONGEST : key].rank;
}

static struct widths fit(int room, enum summary_order by)
{
	struct widths w = { .who = WHO_LEAST };
	room -= WHO_LEAST + 1;
	for (int rank = 0; rank < COLUMNS; rank++)
		for (int c = 0; c < COLUMNS; c++)
			if (rank_of(c, by) == rank && room > columns[c].width) {
				w.column[c] = columns[c].width;
				room -= columns[c].width + 1;
			}
	for (bool who = true; room > 0 && (w.who < WHO_MOST || (w.column[BY] && w.column[BY] < BY_MOST)); who = !who) {
		int *one = who ? &w.who : &w.column[BY];
		if (*one && *one < (who ? WHO_MOST : BY_MOST)) {
			++*one;
			room--;
		}
	}
	return w;
}

/* The lane has a quarter of the screen, and what the columns have no use for. */
static int wide(int w)
{
	int lane = w / 4 < 12 ? 12 : w / 4, most = WHO_MOST + 1;
	for (int c = 0; c < COLUMNS; c++)
		most += (c == BY ? BY_MOST : columns[c].width) + 1;
	return w - lane - 1 < most ? w - lane - 1 : most;
}

static void cell_text(const struct app *app, const struct overview *p, const struct summary_row *r,
                      enum overview_column c, char *buf, size_t size)
{
	const struct demand *d = &r->demand;
	char time[TIME_TEXT];
	if (c >= LONGEST && !p->detailed) {
		snprintf(buf, size, "..");
		return;
	}
	if ((c == LOST || c == SHARE || c == GAPS) && !topo_is_watched(&app->topo, &r->who)) {
		snprintf(buf, size, "?");
		return;
	}
	switch (c) {
	case LIFE: snprintf(buf, size, "%s", time_duration(time, r->end - r->start + 1)); break;
	case RAN: snprintf(buf, size, "%s", time_duration(time, d->ran)); break;
	case LOST: snprintf(buf, size, "%s", time_duration(time, d->lost)); break;
	case SHARE: snprintf(buf, size, "%.*f%s", share(d->lost, d->ran + d->lost) < 0.0995,
	                     100 * share(d->lost, d->ran + d->lost), figure_per(d)); break;
	case LONGEST: snprintf(buf, size, "%s", r->gaps ? time_duration(time, r->longest.end - r->longest.start + 1) : "");
		break;
	case P99: snprintf(buf, size, "%s", r->gaps ? time_duration(time, r->p99) : ""); break;
	case GAPS: snprintf(buf, size, "%llu", (unsigned long long)r->gaps); break;
	case BY: thief_text(app, p, r, buf, size); break;
	case COLUMNS: break;
	}
}

static void heading(const struct app *app, const struct pane *pane, struct screen *s, int y)
{
	const struct overview *p = (const struct overview *)pane;
	struct widths w = fit(app->label_w, p->by);
	struct style style = app->look.palette.part[PART_RULER], marked = style;
	marked.attr |= ATTR_UNDERLINE | ATTR_BOLD;
	screen_fill(s, 0, y, s->w, ' ', style);
	screen_text(s, 1, y, w.who - 1, style, "who");
	for (int c = 0, x = w.who + 1; c < COLUMNS; c++) {
		if (!w.column[c])
			continue;
		int pad = c == BY ? 0 : w.column[c] - (int)strlen(columns[c].heading);
		screen_text(s, x + pad, y, w.column[c], columns[c].order == p->by ? marked : style, columns[c].heading);
		x += w.column[c] + 1;
	}
	screen_text(s, app->label_w + 1, y, s->w, style, "over time");
}

static void draw_line(struct app *app, struct pane *pane, struct screen *s, int y, size_t i, bool selected)
{
	struct overview *p = of(pane);
	const struct summary_row *r = row_of(pane, i);
	struct widths w = fit(app->label_w, p->by);
	struct style style = pane_style(app, r->who.kind == SUBJECT_MACHINE ? PART_TITLE : PART_NORMAL, selected);
	struct style steal = selected ? style : app->look.palette.part[PART_STEAL];
	char text[512];
	row_title(&app->rows, id_of(&r->who), text, sizeof text);
	screen_fill(s, 0, y, app->label_w, ' ', style);  /* one style all along: changes of it are most of what is sent */
	screen_text(s, 1, y, w.who - 1, style, text_squeeze(text, w.who - 1));
	for (int c = 0, x = w.who + 1; c < COLUMNS; c++) {
		if (!w.column[c])
			continue;
		cell_text(app, p, r, (enum overview_column)c, text, sizeof text);
		if (c == BY && text_width(text) > w.column[c] && short_thief(app, r))
			snprintf(text, sizeof text, "%s", short_thief(app, r));
		text_squeeze(text, w.column[c]);
		int pad = c == BY ? 0 : w.column[c] - text_width(text);
		screen_text(s, x + (pad > 0 ? pad : 0), y, w.column[c], c == LOST || c == SHARE ? steal : style, text);
		x += w.column[c] + 1;
	}
	screen_put(s, app->label_w, y, selected ? '*' : '|', app->look.palette.part[selected ? PART_STEAL : PART_LABEL]);
	rows_draw_lane(app, s, y, id_of(&r->who), false);
}

/* ---- What it says --------------------------------------------------------------------------------------------------- */

static void name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	(void)app;
	(void)pane;
	snprintf(buf, size, "who suffers");
}

static void title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct overview *p = (const struct overview *)pane;
	char d[TIME_TEXT], all[64];
	(void)app;
	int n = snprintf(buf, size, " who suffers in these %s, by %s", time_duration(d, p->s.end - p->s.start + 1),
	                 summary_order_name[p->by]);
	int m = snprintf(all, sizeof all, ": %zu machine%s, %zu thread%s", p->machines, p->machines == 1 ? "" : "s",
	                 pane->lines - p->machines, pane->lines - p->machines == 1 ? "" : "s");
	snprintf(buf + n, size - (size_t)n, "%s ", n + m + 4 < w ? all : "");
}

static void tell(const struct app *app, const struct pane *pane, size_t i, char *buf, size_t size)
{
	const struct overview *p = (const struct overview *)pane;
	const struct summary_row *r = row_of(pane, i);
	const struct demand *d = &r->demand;
	char who[256], by[300], lost[TIME_TEXT], wanted[TIME_TEXT], longest[TIME_TEXT];
	row_title(&app->rows, id_of(&r->who), who, sizeof who);
	if (!topo_is_watched(&app->topo, &r->who)) {
		snprintf(buf, size, "%s: what its host took from it is not known", who);
		return;
	}
	int n = snprintf(buf, size, "%s lost %s of %s wanted", who, time_duration(lost, d->lost),
	                 time_duration(wanted, d->ran + d->lost));
	if (p->detailed && r->gaps && n > 0 && (size_t)n < size)
		snprintf(buf + n, size - (size_t)n, ", %.0f %% of it to %s; longest wait %s",
		         100 * share(r->thief_ns, r->demand.lost),
		         thief_text(app, p, r, by, sizeof by),
		         time_duration(longest, r->longest.end - r->longest.start + 1));
}

static void file_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	(void)app;
	(void)pane;
	snprintf(buf, size, "summary");
}

static int write_to(struct app *app, struct pane *pane, FILE *f, enum report_format format, struct error *err)
{
	struct origin o;
	if (!of(pane)->detailed)
		return error_set(err, STATUS_USAGE, "wait until it is there", "the gaps are still being read");
	export_origin(app, pane, NULL, &o);
	int rc = report_summary(f, REPORT_WHOLE(format), &app->topo, &of(pane)->s, 0, &o, err);
	origin_release(&o);
	return rc;
}

/* ---- Where it leads -------------------------------------------------------------------------------------------------- */

static void go(struct app *app, struct pane *pane, size_t i)
{
	struct overview *p = of(pane);
	const struct summary_row *r = row_of(pane, i);
	struct gap gap = r->longest;
	bool gaps = p->detailed && r->gaps > 0;
	p->at = r->who;
	p->left = app->view;
	if (gaps) {
		pane_go(app, id_of(&gap.subject), gap.start, gap.end);
		return;
	}
	app_show_row(app, id_of(&r->who));
	undo_push(&app->undo, &p->left);
	app_say(app, p->detailed ? "it had no gap in this window" : "its gaps are still being read");
}

/* From the machines to the threads, and back. */
static void round_trip(struct app *app, struct pane *pane)
{
	struct overview *p = of(pane);
	pane->at = pane->at < p->machines && p->machines < pane->lines ? p->machines : 0;
	if (pane->lines)
		come(app, pane, pane->at);
}

static bool begin(struct app *app, struct pane *pane)
{
	pane->at = pane->top = 0;
	of(pane)->placed = false;
	if (pane->lines)
		place(app, of(pane));
	return true;
}

static void carry(struct app *app, struct pane *pane, const struct rows *was, const struct rows *is)
{
	struct overview *p = of(pane);
	(void)app;
	(void)was;
	(void)is;
	p->placed = false;
	p->left.step = 0;
	p->sums_from = p->sums_to = 0;
}

void overview_back(struct app *app)
{
	struct overview *p = of(app->pane[PANE_OVERVIEW]);
	if (app->below == &p->pane) {
		pane_close(app);
		return;
	}
	struct view before = app->view;
	if (p->left.step > 0) {
		app_layout(app, wide(app->w));  /* the columns that its window was of */
		app->view = p->left;
		app_refit(app);
		undo_push(&app->undo, &before);
	}
	pane_open(app, PANE_OVERVIEW);
}

const struct pane_ops overview_pane = {
	.size = sizeof(struct overview), .full = true, .open = begin, .ask = ASK_SUMMARY, .question = question, .answer = take,
	.arrange = arrange, .sort = sort, .name = name, .title = title, .wide = wide, .headings = 1, .heading = heading,
	.line = draw_line, .go = go, .come = come, .round = round_trip, .tell = tell, .file = file_name, .export = write_to,
	.carry = carry, .forget = forget,
};
