/* The path pane: what made a thread or vCPU last, through those it waited for, in whatever machine; by time, or added up.
 * While it is open arrows in the timeline go from each thread of the path to the one that it woke.  It stays with the row
 * and the window for which it was opened. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "ui/widgets/arrows.h"
#include "ui/panes/pane.h"
#include "ui/panes/pane_export.h"

enum path_view { BY_TIME, BY_LENGTH, SUM_THREADS, SUM_MACHINES, SUM_KINDS, VIEWS };

static const char *const view_name[VIEWS] = { "by time", "longest first", "by thread", "by machine", "by kind" };

struct path_pane {
	struct pane pane;
	struct pane_scope scope;
	struct path path;
	struct arrows arrows;
	enum path_view view;
	struct path_line {
		size_t piece;       /* of the path; of several the longest */
		int64_t ns;
		size_t pieces;
	} *line;
	size_t lines_cap;
};

static struct path_pane *of(struct pane *pane)
{
	return (struct path_pane *)pane;
}

static const struct path_piece *piece_of(const struct pane *pane, size_t i)
{
	const struct path_pane *p = (const struct path_pane *)pane;
	return &p->path.piece[p->line[i].piece];
}

static int64_t length_of(const struct path_piece *e)
{
	return e->end - e->start + 1;
}

/* ---- In words */

static bool is_handler(const struct party *who)
{
	return who->tid < 0 && (who->kind == FLOW_WAITING || who->kind == FLOW_IRQ);
}

/* "Debian/3525 critical_task", "Debian/vCPU0", "host timer interrupt". */
static char *party_plain(const struct app *app, const struct path *p, struct party who, char *buf, size_t size)
{
	who.kind = is_handler(&who) ? FLOW_IRQ : FLOW_RUNNING;
	return party_text(&app->topo, &who, who.name < p->names ? p->name[who.name] : NULL, buf, size);
}

/* What it did, or had to wait for. */
static char *deed(const struct app *app, const struct path *p, const struct path_piece *e, char *buf, size_t size)
{
	static const char *const text[FLOW_KIND_COUNT] = { [FLOW_RUNNING] = "ran", [FLOW_PREEMPTING] = "waited for a CPU",
		[FLOW_HYPERVISOR] = "hypervisor", [FLOW_IRQ] = "was handled", [FLOW_WAITING] = "was waited for",
		[FLOW_IDLE_CPU] = "was being woken", [FLOW_LIMITED] = "was held back", [FLOW_UNKNOWN] = "slept: nobody knows why" };
	char thief[512];
	if (e->thief.system >= 0)
		snprintf(buf, size, "waited: %s", party_plain(app, p, e->thief, thief, sizeof thief));
	else
		snprintf(buf, size, "%s", e->who.kind < FLOW_KIND_COUNT ? text[e->who.kind] : "");
	return buf;
}

/* "wake", "inject ~12 us": what it did for whoever comes next. */
static char *link_of(const struct path_piece *e, char *buf, size_t size)
{
	char d[TIME_TEXT];
	*buf = '\0';
	if (e->edge != EDGE_START && e->evidence >= 0)
		snprintf(buf, size, "%s ~%s", path_edge_name[e->edge], time_duration(d, e->evidence));
	else if (e->edge != EDGE_START)
		snprintf(buf, size, "%s", path_edge_name[e->edge]);
	return buf;
}

/* What a line is about: of sums what they are of. */
static char *subject_of(const struct app *app, const struct path_pane *p, const struct path_piece *e, char *buf,
                        size_t size)
{
	if (p->view == SUM_MACHINES)
		return text_escape(buf, size, e->who.system < 0 ? "nobody" : app->topo.machine[e->who.system].name);
	if (p->view == SUM_KINDS) {
		snprintf(buf, size, "%s", e->who.kind == FLOW_WAITING ? PATH_WAIT : flow_kind_name[e->who.kind]);
		return buf;
	}
	return party_plain(app, &p->path, e->who, buf, size);
}

/* ---- Its lines */

static bool belongs(const struct path_pane *p, const struct path_piece *a, const struct path_piece *b)
{
	switch (p->view) {
	case SUM_THREADS: return party_same(&a->who, &b->who) && party_same(&a->thief, &b->thief);
	case SUM_MACHINES: return a->who.system == b->who.system;
	case SUM_KINDS: return a->who.kind == b->who.kind;
	default: return false;
	}
}

static bool passes(const struct app *app, const struct path_pane *p, const struct path_piece *e)
{
	char who[512], what[600];
	return !p->pane.filter[0] || strcasestr(subject_of(app, p, e, who, sizeof who), p->pane.filter) ||
	       strcasestr(deed(app, &p->path, e, what, sizeof what), p->pane.filter);
}

/* Sums are few: a path goes through a handful of threads. */
static void add_line(struct path_pane *p, size_t piece)
{
	const struct path_piece *e = &p->path.piece[piece];
	size_t i = p->view < SUM_THREADS ? p->pane.lines : 0;
	while (i < p->pane.lines && !belongs(p, &p->path.piece[p->line[i].piece], e))
		i++;
	if (i == p->pane.lines)
		*ARRAY_PUSH(p->line, p->pane.lines, p->lines_cap) = (struct path_line){ piece, 0, 0 };
	struct path_line *line = &p->line[i];
	line->ns += length_of(e);
	line->pieces++;
	if (length_of(e) > length_of(&p->path.piece[line->piece]))
		line->piece = piece;
}

static int longest_first(const void *a, const void *b)
{
	const struct path_line *x = a, *y = b;
	return x->ns != y->ns ? (x->ns < y->ns) - (x->ns > y->ns) : (x->piece > y->piece) - (x->piece < y->piece);
}

static void arrange(struct app *app, struct pane *pane)
{
	struct path_pane *p = of(pane);
	pane->lines = 0;
	for (size_t i = 0; i < p->path.pieces; i++)
		if (passes(app, p, &p->path.piece[i]))
			add_line(p, i);
	if (p->view != BY_TIME && pane->lines)
		qsort(p->line, pane->lines, sizeof *p->line, longest_first);
}

static void question(const struct app *app, const struct pane *pane, struct question *q)
{
	pane_scope_ask(app, &((const struct path_pane *)pane)->scope, q);
}

static void take(struct app *app, struct pane *pane, struct answer *answer)
{
	struct path_pane *p = of(pane);
	p->path = answer->path;
	arrows_make(&p->arrows, app, &p->path);
}

static void forget(struct pane *pane)
{
	struct path_pane *p = of(pane);
	path_release(&p->path);
	arrows_release(&p->arrows);
	free(p->line);
	p->line = NULL;
	p->lines_cap = 0;
}

static void sort(struct app *app, struct pane *pane, int by)
{
	struct path_pane *p = of(pane);
	p->view = (enum path_view)(((int)p->view + by + VIEWS) % VIEWS);
	pane->at = pane->top = 0;
	arrange(app, pane);
}

static bool begin(struct app *app, struct pane *pane)
{
	struct subject s;
	const struct row_id row = app->view.row;
	uint32_t thread;
	if (row.kind == ROW_REQUEST && !request_thread(app, row, &thread))
		return false;
	if (row.kind != ROW_REQUEST && (!row_subject(&app->topo, row, &s) || s.kind == SUBJECT_MACHINE)) {
		app_say(app, "choose a vCPU or a thread");
		return false;
	}
	if (row.kind == ROW_REQUEST)
		app->view.row = (struct row_id){ ROW_THREAD, thread };
	bool opened = pane_scope_open(app, pane, &of(pane)->scope);
	app->view.row = row;
	return opened;
}

/* ---- What it says */

static void name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	char who[512];
	snprintf(buf, size, "path of %s", row_title(&app->rows, ((const struct path_pane *)pane)->scope.row, who, sizeof who));
}

static void title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct path_pane *p = (const struct path_pane *)pane;
	char whose[600], span[TIME_TEXT], ns[TIME_TEXT], unknown[64] = "";
	name(app, pane, whose, sizeof whose);
	if (p->path.unknown)
		snprintf(unknown, sizeof unknown, ", %s unknown", time_duration(ns, p->path.unknown));
	int n = snprintf(buf, size, " %s in %s%s ", whose, pane_span_text(app, p->path.start, p->path.end, span), unknown);
	if (n + 20 < w)
		snprintf(buf + n - 1, size - (size_t)n + 1, ", %s ", view_name[p->view]);
}

/* Columns: when or what part, how long, who, what it did, what for whoever comes next. */
#define WHEN_COLUMNS 15
#define LENGTH_COLUMNS 8
#define LINK_COLUMNS 15

static int length_at(int w)
{
	return w < PANE_NARROW ? 1 : 1 + WHEN_COLUMNS;
}

static int who_at(int w)
{
	return length_at(w) + LENGTH_COLUMNS + 2;
}

static int link_columns(int w)
{
	return w >= 100 ? LINK_COLUMNS : 0;
}

static int who_columns(int w)
{
	return (w - who_at(w) - link_columns(w)) * 9 / 20;
}

static void heading(const struct app *app, const struct pane *pane, struct screen *s, int y)
{
	const struct path_pane *p = (const struct path_pane *)pane;
	struct style style = app->look.palette.part[PART_RULER];
	const int who = who_columns(s->w), link = link_columns(s->w), length = length_at(s->w), at = who_at(s->w);
	screen_fill(s, 0, y, s->w, ' ', style);
	screen_text(s, 1, y, length - 1, style, p->view < SUM_THREADS ? "at" : " share  pieces");
	screen_printf(s, length, y, LENGTH_COLUMNS, style, "%*s", LENGTH_COLUMNS, "time");
	screen_text(s, at, y, who, style, p->view == SUM_KINDS ? "kind" : p->view == SUM_MACHINES ? "machine" : "who");
	if (p->view <= SUM_THREADS)
		screen_text(s, at + who, y, s->w, style, "what");
	if (link && p->view < SUM_THREADS)
		screen_text(s, s->w - link, y, link, style, "for the next");
}

static void draw_line(struct app *app, struct pane *pane, struct screen *s, int y, size_t i, bool selected)
{
	const struct path_pane *p = of(pane);
	const struct path_line *line = &p->line[i];
	const struct path_piece *e = piece_of(pane, i);
	struct style style = pane_style(app, PART_NORMAL, selected), steal = pane_style(app, PART_STEAL, selected);
	char text[600], d[TIME_TEXT], part[16];
	const int who = who_columns(s->w), link = link_columns(s->w), length = length_at(s->w), at = who_at(s->w);
	if (p->view < SUM_THREADS)
		screen_text(s, 1, y, length - 1, style, ruler_time(d, &app->axis, e->start, 1000));
	else
		screen_printf(s, 1, y, length - 1, style, "%6s %7zu",
		              text_share(part, (double)line->ns / ((double)(p->path.end - p->path.start) + 1)), line->pieces);
	screen_printf(s, length, y, LENGTH_COLUMNS, style, "%*s", LENGTH_COLUMNS, time_duration(d, line->ns));
	subject_of(app, p, e, text, sizeof text);
	screen_clip(s, at, y, who - 1, style, text_squeeze(text, who - 1));
	if (p->view > SUM_THREADS)
		return;
	screen_clip(s, at + who, y, s->w - at - who - link - (link > 0), e->thief.system >= 0 ? steal : style,
	            deed(app, &p->path, e, text, sizeof text));
	if (link && p->view < SUM_THREADS)
		screen_text(s, s->w - link, y, link, style, link_of(e, text, sizeof text));
}

/* Is it the thread itself that comes next, awake, so that the piece tells of its wakeup? */
static bool is_own_wakeup(const struct path *p, size_t piece)
{
	const struct party *who = &p->piece[piece].who;
	size_t i = piece;
	while (i < p->pieces && (p->piece[i].edge == EDGE_INJECT || p->piece[i].edge == EDGE_IPI) &&
	       p->piece[i].who.tid == who->tid && p->piece[i].who.system == who->system)
		i++;
	return who->tid > 0 && i > piece && i < p->pieces && p->piece[i].who.tid == who->tid &&
	       p->piece[i].who.system == who->system;
}

static void tell(const struct app *app, const struct pane *pane, size_t i, char *buf, size_t size)
{
	static const char *const led[PATH_EDGE_COUNT] = { [EDGE_START] = "", [EDGE_WAKE] = "; it woke the next one",
		[EDGE_IRQ] = "; that ended the sleep", [EDGE_INJECT] = "; its interrupt woke the next one",
		[EDGE_REQUEST] = "; it asked the next one for that", [EDGE_IPI] = "; on the way to the next one" };
	const struct path_pane *p = (const struct path_pane *)pane;
	const struct path_piece *e = piece_of(pane, i);
	char who[512], what[600], d[TIME_TEXT], near[TIME_TEXT];
	if (p->view >= SUM_THREADS) {
		snprintf(buf, size, "%s in %zu piece%s: %s", time_duration(d, p->line[i].ns), p->line[i].pieces,
		         p->line[i].pieces == 1 ? "" : "s", subject_of(app, p, e, who, sizeof who));
		return;
	}
	int n = snprintf(buf, size, "%s %s %s%s", party_plain(app, &p->path, e->who, who, sizeof who),
	                 time_duration(d, length_of(e)), deed(app, &p->path, e, what, sizeof what),
	                 is_own_wakeup(&p->path, p->line[i].piece) ? "" : led[e->edge]);
	if (e->evidence >= 0 && n > 0 && (size_t)n < size)
		snprintf(buf + n, size - (size_t)n, " (as nearest in time, %s)", time_duration(near, e->evidence));
}

static void file_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	char who[512];
	snprintf(buf, size, "path-%s", row_title(&app->rows, ((const struct path_pane *)pane)->scope.row, who, sizeof who));
}

/* All of it, filter or not: the command's answer, pieces or sums as they are shown. */
static int write_to(struct app *app, struct pane *pane, FILE *f, enum report_format format, struct error *err)
{
	const struct path_pane *p = of(pane);
	struct subject s;
	struct origin o;
	row_subject(&app->topo, p->scope.row, &s);
	export_origin(app, pane, &s, &o);
	int rc = report_path(f, REPORT_WHOLE(format), &app->topo, &p->path, p->view >= SUM_THREADS, &o, err);
	origin_release(&o);
	return rc;
}

/* ---- Where it leads */

static void go(struct app *app, struct pane *pane, size_t i)
{
	const struct path_piece e = *piece_of(pane, i);
	struct row_id row = of(pane)->scope.row;
	arrows_row(app, &of(pane)->path, &e.who, &row);
	pane_go(app, row, e.start, e.end);
}

static void overlay(struct app *app, const struct pane *pane, struct screen *s)
{
	arrows_draw(&((const struct path_pane *)pane)->arrows, app, s);
}

static void carry(struct app *app, struct pane *pane, const struct rows *was, const struct rows *is)
{
	(void)app;
	of(pane)->scope.row = row_again(was, is, of(pane)->scope.row);
}

const struct pane_ops path_pane = {
	.size = sizeof(struct path_pane), .open = begin, .ask = ASK_PATH, .question = question, .answer = take,
	.arrange = arrange, .sort = sort, .name = name, .title = title, .headings = 1, .heading = heading, .line = draw_line,
	.go = go, .overlay = overlay, .tell = tell, .file = file_name, .export = write_to, .carry = carry, .forget = forget,
};
