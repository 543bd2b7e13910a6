/* The locks pane: who waited for a lock, who held it, and what was taken from the holder meanwhile, the longest waits
 * first.  It is what `gaps --locks` tells of the row and the window for which it was opened, and stays with these. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "ui/panes/pane.h"
#include "ui/panes/pane_export.h"

enum locks_order { BY_LENGTH, BY_TAKEN, BY_TIME, BY_HOLDER, BY_THIEF, ORDERS };

static const char *const order_name[ORDERS] = { "longest first", "most taken first", "by time", "by holder", "by thief" };

/* Cells whose width is that of what is in them. */
enum locks_cell { WHO, LOCK, HOLDER, TAKEN, THIEF, CELLS };

static const char *const heading_text[CELLS] = { "who", "lock", "held by", "taken", "by" };

struct locks_pane {
	struct pane pane;
	struct pane_scope scope;
	struct lock_list list;
	enum locks_order order;
	int widest[CELLS];          /* columns of the widest text; -1: not shown */
	bool own;                   /* of some waits the waiter itself lost what is shown, with a * */
	struct locks_line {
		size_t wait;            /* of the list */
		char *cell[CELLS];      /* escaped */
	} *line;
};

static struct locks_pane *of(struct pane *pane)
{
	return (struct locks_pane *)pane;
}

static const struct lock_wait *wait_of(const struct pane *pane, size_t i)
{
	const struct locks_pane *p = (const struct locks_pane *)pane;
	return &p->list.wait[p->line[i].wait];
}

static int64_t length_of(const struct lock_wait *w)
{
	return w->end - w->start + 1;
}

/* ---- Its lines ------------------------------------------------------------------------------------------------------ */

static void free_lines(struct locks_pane *p)
{
	for (size_t i = 0; i < p->pane.lines; i++)
		for (int c = 0; c < CELLS; c++)
			free(p->line[i].cell[c]);
	free(p->line);
	p->line = NULL;
	p->pane.lines = 0;
}

static bool passes(const struct pane *pane, const struct lock_cells *c)
{
	const char *filter = pane->filter;
	return !*filter || strcasestr(c->who, filter) || strcasestr(c->lock, filter) || strcasestr(c->holder, filter) ||
	       strcasestr(c->thief, filter);
}

/* A thread's pane need not say who waited. */
static bool is_shown(const struct locks_pane *p, int cell)
{
	return cell != WHO || p->scope.row.kind != ROW_THREAD;
}

static void add_line(struct locks_pane *p, size_t wait, const struct lock_cells *cells)
{
	struct locks_line *line = &p->line[p->pane.lines++];
	*line = (struct locks_line){ wait, { mem_dup(cells->who), mem_dup(cells->lock), mem_dup(cells->holder),
	                                     mem_dup(cells->taken), mem_dup(cells->thief) } };
	for (int c = 0; c < CELLS; c++) {
		int w = text_width(line->cell[c]);
		p->widest[c] = is_shown(p, c) && w > p->widest[c] ? w : p->widest[c];
	}
}

/* Where two are alike in what is sorted by, the longer wait first: so the list is. */
static int compare(const void *a, const void *b, void *arg)
{
	const struct locks_pane *p = arg;
	const struct locks_line *x = a, *y = b;
	const struct lock_wait *v = &p->list.wait[x->wait], *w = &p->list.wait[y->wait];
	int by = 0;
	if (p->order == BY_TAKEN)
		by = v->taken != w->taken ? (v->taken < w->taken) - (v->taken > w->taken)
		                          : (v->own_taken < w->own_taken) - (v->own_taken > w->own_taken);
	else if (p->order == BY_TIME)
		by = (v->start > w->start) - (v->start < w->start);
	else if (p->order != BY_LENGTH)
		by = strcmp(x->cell[p->order == BY_HOLDER ? HOLDER : THIEF], y->cell[p->order == BY_HOLDER ? HOLDER : THIEF]);
	return by ? by : (x->wait > y->wait) - (x->wait < y->wait);
}

static void arrange(struct app *app, struct pane *pane)
{
	struct locks_pane *p = of(pane);
	struct lock_cells cells;
	free_lines(p);
	p->own = false;
	p->line = mem_new(p->list.waits, sizeof *p->line);
	for (int c = 0; c < CELLS; c++)
		p->widest[c] = is_shown(p, c) ? (int)strlen(heading_text[c]) : -1;
	for (size_t i = 0; i < p->list.waits; i++) {
		lock_cells(&app->topo, &p->list, &p->list.wait[i], false, &cells);
		if (passes(pane, &cells)) {
			add_line(p, i, &cells);
			p->own = p->own || lock_takes_own(&p->list.wait[i]);
		}
	}
	if (pane->lines)
		qsort_r(p->line, pane->lines, sizeof *p->line, compare, p);
}

static void question(const struct app *app, const struct pane *pane, struct question *q)
{
	pane_scope_ask(app, &((const struct locks_pane *)pane)->scope, q);
}

static void take(struct app *app, struct pane *pane, struct answer *answer)
{
	(void)app;
	of(pane)->list = answer->locks;
}

static void forget(struct pane *pane)
{
	struct locks_pane *p = of(pane);
	free_lines(p);
	locks_release(&p->list);
}

static void sort(struct app *app, struct pane *pane, int by)
{
	struct locks_pane *p = of(pane);
	p->order = (enum locks_order)(((int)p->order + by + ORDERS) % ORDERS);
	pane->at = pane->top = 0;
	arrange(app, pane);
}

static bool begin(struct app *app, struct pane *pane)
{
	return pane_scope_open(app, pane, &of(pane)->scope);
}

/* ---- What it says --------------------------------------------------------------------------------------------------- */

static void name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	char who[512];
	snprintf(buf, size, "lock waits of %s",
	         row_title(&app->rows, ((const struct locks_pane *)pane)->scope.row, who, sizeof who));
}

/* Does no event name a lock in its machine? */
static bool is_silent(const struct app *app, const struct locks_pane *p)
{
	struct subject s;
	row_subject(&app->topo, p->scope.row, &s);
	return p->list.waits == 0 && !locks_are_named(&app->topo, subject_machine(&app->topo, &s));
}

static void none(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	const struct locks_pane *p = (const struct locks_pane *)pane;
	if (is_silent(app, p))
		snprintf(buf, size, "%s", "No event names a lock there: record lock:contention_begin and _end, or "
		         "system calls futex, of its kernel.");
	else if (p->scope.row.kind == ROW_CPU)
		snprintf(buf, size, "%s", "None of its exits tells of spinning. What its threads waited for: b at their machine.");
	else if (p->list.waits == 0)
		snprintf(buf, size, "%s", "None that an event names. Who spins in a lock of its own looks as if it computed.");
}

static void title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct locks_pane *p = (const struct locks_pane *)pane;
	char who[512], waited[TIME_TEXT], span[TIME_TEXT], taken[TIME_TEXT];
	int64_t all = 0, lost = 0;
	row_title(&app->rows, p->scope.row, who, sizeof who);
	if (pane->lines == 0) {
		snprintf(buf, size, " no lock waits of %s in %s ", who, pane_span_text(app, pane->from, pane->to, span));
		return;
	}
	for (size_t i = 0; i < pane->lines; i++) {
		all += length_of(wait_of(pane, i));
		lost += wait_of(pane, i)->taken;
	}
	pane_span_text(app, pane->from, pane->to, span);
	int n = snprintf(buf, size, " %zu lock wait%s of %s in %s: %s ", pane->lines, pane->lines == 1 ? "" : "s", who, span,
	                 time_duration(waited, all));
	if (lost && n + 35 < w)
		n += snprintf(buf + n - 1, size - (size_t)n + 1, ", %s taken from holders ", time_duration(taken, lost)) - 1;
	if (n + 25 < w)
		snprintf(buf + n - 1, size - (size_t)n + 1, ", %s ", order_name[p->order]);
}

#define WHEN_COLUMNS 14
#define LENGTH_COLUMNS 8
#define NAME_LEAST 8  /* columns of a name, with the space behind it */
#define OWN "* from itself"

/* In columns; a width of 0: not shown. */
struct locks_layout {
	int when, cells;    /* of the time; where the cells begin */
	int width[CELLS];   /* with a space behind each */
};

static int overflow(const struct locks_layout *l, int w)
{
	int n = l->cells - w;
	for (int c = 0; c < CELLS; c++)
		n += l->width[c];
	return n;
}

/* As wide as the texts, and a space more if there is room.  Where there is too little, names are cut, the longest ones
 * most; then the kind of the lock goes, then when it was. */
static void lay_out(const struct locks_pane *p, int w, struct locks_layout *l)
{
	static const enum locks_cell name[] = { WHO, HOLDER, THIEF };
	int least = 0;
	*l = (struct locks_layout){ WHEN_COLUMNS, 1 + WHEN_COLUMNS + LENGTH_COLUMNS + 2, { 0 } };
	for (int c = 0; c < CELLS; c++)
		l->width[c] = p->widest[c] + 1;
	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		least += l->width[name[i]] > NAME_LEAST ? l->width[name[i]] - NAME_LEAST : 0;
	if (overflow(l, w) > least)
		l->width[LOCK] = 0;
	if (overflow(l, w) > least) {
		l->cells -= l->when;
		l->when = 0;
	}
	const int spare = -overflow(l, w);
	for (int c = 0; c < CELLS && spare >= CELLS; c++)
		l->width[c] += l->width[c] > 0;
	for (int over = -spare; over > 0; over--) {
		int most = WHO;
		most = l->width[HOLDER] > l->width[most] ? HOLDER : most;
		most = l->width[THIEF] > l->width[most] ? THIEF : most;
		if (l->width[most] <= NAME_LEAST)
			return;
		l->width[most]--;
	}
}

static void heading(const struct app *app, const struct pane *pane, struct screen *s, int y)
{
	const struct locks_pane *p = (const struct locks_pane *)pane;
	struct style style = app->look.palette.part[PART_RULER];
	struct locks_layout l;
	lay_out(p, s->w, &l);
	screen_fill(s, 0, y, s->w, ' ', style);
	screen_text(s, 1, y, l.when, style, "at");
	screen_printf(s, 1 + l.when, y, LENGTH_COLUMNS, style, "%*s", LENGTH_COLUMNS, "waited");
	int x = l.cells;
	for (int c = 0; c < CELLS; x += l.width[c++])
		screen_text(s, x, y, l.width[c] - 1, style, heading_text[c]);
	x += 4 - l.width[THIEF];  /* behind "by" */
	if (p->own && s->w - x >= (int)strlen(OWN))
		screen_text(s, x, y, s->w - x, style, OWN);
}

static void draw_line(struct app *app, struct pane *pane, struct screen *s, int y, size_t i, bool selected)
{
	const struct locks_pane *p = of(pane);
	const struct lock_wait *wait = wait_of(pane, i);
	struct style style = pane_style(app, PART_NORMAL, selected), steal = pane_style(app, PART_STEAL, selected);
	char when[TIME_TEXT], d[TIME_TEXT];
	struct locks_layout l;
	lay_out(p, s->w, &l);
	screen_text(s, 1, y, l.when, style, ruler_time(when, &app->axis, wait->start, 100000));
	screen_printf(s, 1 + l.when, y, LENGTH_COLUMNS, style, "%*s", LENGTH_COLUMNS, time_duration(d, length_of(wait)));
	int x = l.cells;
	for (int c = 0; c < CELLS; x += l.width[c++])
		screen_clip(s, x, y, l.width[c] - 1, c >= TAKEN && wait->thief.system >= 0 ? steal : style, p->line[i].cell[c]);
}

/* "Debian/164 mutex-0 waited 12 ms for a futex that 165 mutex-1 held; 5 ms of it due to host/240 burnP6". */
static void tell(const struct app *app, const struct pane *pane, size_t i, char *buf, size_t size)
{
	const struct locks_pane *p = (const struct locks_pane *)pane;
	const struct locks_line *line = &p->line[i];
	const struct lock_wait *w = wait_of(pane, i);
	char d[TIME_TEXT], taken[TIME_TEXT], who[640], kind[64], holder[640] = "";
	const bool named = strcmp(line->cell[LOCK], "pause") != 0;
	text_escape(kind, sizeof kind, p->list.name[w->kind]);
	if (w->suspicion > 0)
		snprintf(holder, sizeof holder, "; suspected: %s", line->cell[HOLDER]);
	else if (w->holder.system >= 0)
		snprintf(holder, sizeof holder, " that %s held", line->cell[HOLDER]);
	party_text(&app->topo, &w->waiter, p->list.name[w->waiter.name], who, sizeof who);
	int n = snprintf(buf, size, "%s %s %s%s%s%s", who, w->spins ? "spun" : "waited", time_duration(d, length_of(w)),
	                 named ? " for a " : "", named ? kind : "", holder);
	if (w->thief.system < 0 || n < 0 || (size_t)n >= size)
		return;
	if (w->taken)
		snprintf(buf + n, size - (size_t)n, "; %s of it due to %s", time_duration(taken, w->taken),
		         line->cell[THIEF]);
	else
		snprintf(buf + n, size - (size_t)n, "; %s were taken from itself, mostly by %s", time_duration(taken, w->own_taken),
		         line->cell[THIEF]);
}

static void file_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	char who[512];
	snprintf(buf, size, "locks-%s", row_title(&app->rows, ((const struct locks_pane *)pane)->scope.row, who, sizeof who));
}

/* All of them, filter or not: the command's answer. */
static int write_to(struct app *app, struct pane *pane, FILE *f, enum report_format format, struct error *err)
{
	const struct locks_pane *p = of(pane);
	struct subject s;
	struct origin o;
	row_subject(&app->topo, p->scope.row, &s);
	export_origin(app, pane, &s, &o);
	int rc = report_locks(f, REPORT_WHOLE(format), &app->topo, &p->list, 0, &o, err);
	origin_release(&o);
	return rc;
}

/* ---- Where it leads ------------------------------------------------------------------------------------------------- */

static void go(struct app *app, struct pane *pane, size_t i)
{
	const struct lock_wait w = *wait_of(pane, i);
	int thread = w.waiter.tid > 0 ? topo_find_thread(&app->topo, (uint32_t)w.waiter.system, w.waiter.tid) : -1;
	pane_go(app, thread >= 0 ? (struct row_id){ ROW_THREAD, (uint32_t)thread }
	           : w.vcpu >= 0 ? (struct row_id){ ROW_CPU, (uint32_t)w.vcpu }
	                         : (struct row_id){ ROW_MACHINE, (uint32_t)w.waiter.system }, w.start, w.end);
}

static void carry(struct app *app, struct pane *pane, const struct rows *was, const struct rows *is)
{
	(void)app;
	of(pane)->scope.row = row_again(was, is, of(pane)->scope.row);
}

const struct pane_ops locks_pane = {
	.size = sizeof(struct locks_pane), .open = begin, .ask = ASK_LOCKS, .question = question, .answer = take,
	.arrange = arrange, .sort = sort, .name = name, .title = title, .none = none, .headings = 1, .heading = heading,
	.line = draw_line, .go = go, .tell = tell, .file = file_name, .export = write_to, .carry = carry, .forget = forget,
};
