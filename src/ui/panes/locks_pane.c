/* The locks pane: lock waits with waiter, holder, and the time that others took from the holder; longest first. It shows
 * the answer of `gaps --locks` for the row and window for which it was opened. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "ui/core/text_filter.h"
#include "ui/panes/pane.h"
#include "ui/panes/pane_export.h"

enum locks_order { BY_LENGTH, BY_TAKEN, BY_TIME, BY_HOLDER, BY_CULPRIT, ORDERS };

static const char *const order_name[ORDERS] = { "longest first", "most taken first", "by time", "by holder", "by culprit" };

/* Cells of a line; the width of their columns depends on the texts. */
enum locks_cell { WHO, LOCK, HOLDER, TAKEN, CULPRIT, CELLS };

static const char *const heading_text[CELLS] = { "waiter", "lock", "holder", "taken", "by" };

struct locks_pane {
	struct scoped_pane scoped;
	struct lock_list list;
	int widest[CELLS];          /* columns of the widest text; -1: not shown */
	bool own;                   /* some waits show the time taken from the waiter itself, marked with * */
	struct locks_line {
		size_t wait;            /* index into list.wait */
		char *cell[CELLS];      /* texts, escaped */
	} *line;
};

static struct locks_pane *locks_pane_state(struct pane *pane)
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

/* ---- Lines -------------------------------------------------------------------------------------------------------- */

static void free_lines(struct locks_pane *p)
{
	for (size_t i = 0; i < p->scoped.pane.lines; i++)
		for (int c = 0; c < CELLS; c++)
			free(p->line[i].cell[c]);
	free(p->line);
	p->line = NULL;
	p->scoped.pane.lines = 0;
}

static bool passes_filter(const struct pane *pane, const struct lock_cells *c)
{
	const char *filter = pane->filter;
	return !*filter || filter_matches(c->waiter, filter) || filter_matches(c->lock, filter) ||
	       filter_matches(c->holder, filter) ||
	       filter_matches(c->culprit, filter);
}

/* Returns true if the column is shown. The pane of a thread omits the waiter. */
static bool is_shown(const struct locks_pane *p, int cell)
{
	return cell != WHO || p->scoped.pane.scope.row.kind != ROW_THREAD;
}

static void add_line(struct locks_pane *p, size_t wait, const struct lock_cells *cells)
{
	struct locks_line *line = &p->line[p->scoped.pane.lines++];
	*line = (struct locks_line){ wait, { mem_dup(cells->waiter), mem_dup(cells->lock), mem_dup(cells->holder),
	                                     mem_dup(cells->taken), mem_dup(cells->culprit) } };
	for (int c = 0; c < CELLS; c++) {
		int w = text_width(line->cell[c]);
		p->widest[c] = is_shown(p, c) && w > p->widest[c] ? w : p->widest[c];
	}
}

/* Compares two lines by the chosen order, then by position in the list (longest first). */
static int compare(const void *a, const void *b, void *arg)
{
	const struct locks_pane *p = arg;
	const struct locks_line *x = a, *y = b;
	const struct lock_wait *v = &p->list.wait[x->wait], *w = &p->list.wait[y->wait];
	int by = 0;
	if (p->scoped.order == BY_TAKEN)
		by = v->culprit_ns != w->culprit_ns ? (v->culprit_ns < w->culprit_ns) - (v->culprit_ns > w->culprit_ns)
		                          : (v->waiter_lost_ns < w->waiter_lost_ns) - (v->waiter_lost_ns > w->waiter_lost_ns);
	else if (p->scoped.order == BY_TIME)
		by = (v->start > w->start) - (v->start < w->start);
	else if (p->scoped.order != BY_LENGTH)
		by = strcmp(x->cell[p->scoped.order == BY_HOLDER ? HOLDER : CULPRIT],
		            y->cell[p->scoped.order == BY_HOLDER ? HOLDER : CULPRIT]);
	return by ? by : (x->wait > y->wait) - (x->wait < y->wait);
}

static void locks_pane_make_lines(struct app *app, struct pane *pane)
{
	struct locks_pane *p = locks_pane_state(pane);
	struct lock_cells cells;
	free_lines(p);
	p->own = false;
	p->line = mem_new(p->list.waits, sizeof *p->line);
	for (int c = 0; c < CELLS; c++)
		p->widest[c] = is_shown(p, c) ? (int)strlen(heading_text[c]) : -1;
	for (size_t i = 0; i < p->list.waits; i++) {
		lock_cells(&app->catalog, &p->list, &p->list.wait[i], false, &cells);
		if (passes_filter(pane, &cells)) {
			add_line(p, i, &cells);
			p->own = p->own || lock_taken_is_waiters(&p->list.wait[i]);
		}
	}
	if (pane->lines)
		qsort_r(p->line, pane->lines, sizeof *p->line, compare, p);
}

static struct query *locks_pane_open_query(struct app *app, struct pane *pane, struct error *err)
{
	struct target s;
	(void)err;
	return locks_open(&app->catalog, pane_target(app, pane, &s), pane->from, pane->to);
}

static void locks_pane_take_answer(struct app *app, struct pane *pane, struct query *q)
{
	(void)app;
	locks_take(q, &locks_pane_state(pane)->list);
}

static void locks_pane_drop_answer(struct pane *pane)
{
	struct locks_pane *p = locks_pane_state(pane);
	free_lines(p);
	locks_release(&p->list);
}

/* ---- Texts -------------------------------------------------------------------------------------------------------- */

/* Returns true if no recorded event names a lock of the machine. */
static bool is_silent(const struct app *app, const struct locks_pane *p)
{
	struct target s;
	row_target(&app->catalog, p->scoped.pane.scope.row, &s);
	return p->list.waits == 0 && !locks_have_events(&app->catalog, target_machine(&app->catalog, &s));
}

static void locks_pane_get_empty_text(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	const struct locks_pane *p = (const struct locks_pane *)pane;
	if (is_silent(app, p))
		snprintf(buf, size, "%s", "No recorded event names a lock there: record lock:contention_begin and _end, or "
		         "the futex system calls, of its kernel.");
	else if (p->scoped.pane.scope.row.kind == ROW_CPU)
		snprintf(buf, size, "%s", "No VM exit shows spinning. For the lock waits of its threads press b on their machine.");
	else if (p->list.waits == 0)
		snprintf(buf, size, "%s", "None in the recorded events. Spinning on a lock in user space looks like computing.");
}

static void locks_pane_get_title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct locks_pane *p = (const struct locks_pane *)pane;
	char title[512], waited[TIME_TEXT], length[TIME_TEXT], taken[TIME_TEXT];
	int64_t all = 0, lost = 0;
	row_title(&app->rows, p->scoped.pane.scope.row, title, sizeof title);
	if (pane->lines == 0) {
		snprintf(buf, size, " no lock waits of %s in %s ", title, pane_window_text(app, pane->from, pane->to, length));
		return;
	}
	for (size_t i = 0; i < pane->lines; i++) {
		all += length_of(wait_of(pane, i));
		lost += wait_of(pane, i)->culprit_ns;
	}
	pane_window_text(app, pane->from, pane->to, length);
	int n = snprintf(buf, size, " %zu lock wait%s of %s in %s: %s ", pane->lines, pane->lines == 1 ? "" : "s", title,
	                 length,
	                 time_duration(waited, all));
	if (lost && n + 35 < w)
		n += snprintf(buf + n - 1, size - (size_t)n + 1, ", %s taken from holders ", time_duration(taken, lost)) - 1;
	if (n + 25 < w)
		snprintf(buf + n - 1, size - (size_t)n + 1, ", %s ", order_name[p->scoped.order]);
}

#define WHEN_COLUMNS 14
#define LENGTH_COLUMNS 8
#define NAME_MIN 8  /* smallest width of a name, including the space after it */
#define OWN "* from waiter"

/* Widths of the columns; 0: not shown. */
struct locks_layout {
	int when, cells;    /* when: width of the start time; cells: column where the cells begin */
	int width[CELLS];   /* width of each cell, including the space after it */
};

static int layout_overflow(const struct locks_layout *l, int w)
{
	int n = l->cells - w;
	for (int c = 0; c < CELLS; c++)
		n += l->width[c];
	return n;
}

/* Computes the layout: columns as wide as their texts, and wider by one if there is space. Without space, first cuts
 * names, the longest first; then omits the kind of lock, then the start time. */
static void compute_layout(const struct locks_pane *p, int w, struct locks_layout *l)
{
	static const enum locks_cell name[] = { WHO, HOLDER, CULPRIT };
	int least = 0;
	*l = (struct locks_layout){ WHEN_COLUMNS, 1 + WHEN_COLUMNS + LENGTH_COLUMNS + 2, { 0 } };
	for (int c = 0; c < CELLS; c++)
		l->width[c] = p->widest[c] + 1;
	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		least += l->width[name[i]] > NAME_MIN ? l->width[name[i]] - NAME_MIN : 0;
	if (layout_overflow(l, w) > least)
		l->width[LOCK] = 0;
	if (layout_overflow(l, w) > least) {
		l->cells -= l->when;
		l->when = 0;
	}
	const int spare = -layout_overflow(l, w);
	for (int c = 0; c < CELLS && spare >= CELLS; c++)
		l->width[c] += l->width[c] > 0;
	for (int over = -spare; over > 0; over--) {
		int most = WHO;
		most = l->width[HOLDER] > l->width[most] ? HOLDER : most;
		most = l->width[CULPRIT] > l->width[most] ? CULPRIT : most;
		if (l->width[most] <= NAME_MIN)
			return;
		l->width[most]--;
	}
}

static void locks_pane_draw_headings(const struct app *app, const struct pane *pane, struct screen *s, int y)
{
	const struct locks_pane *p = (const struct locks_pane *)pane;
	struct style style = app->appearance.palette.part[PART_RULER];
	struct locks_layout l;
	compute_layout(p, s->w, &l);
	screen_fill(s, 0, y, s->w, ' ', style);
	screen_text(s, 1, y, l.when, style, "at");
	screen_printf(s, 1 + l.when, y, LENGTH_COLUMNS, style, "%*s", LENGTH_COLUMNS, "waited");
	int x = l.cells;
	for (int c = 0; c < CELLS; x += l.width[c++])
		screen_text(s, x, y, l.width[c] - 1, style, heading_text[c]);
	x += 4 - l.width[CULPRIT];  /* column after the heading "by" */
	if (p->own && s->w - x >= (int)strlen(OWN))
		screen_text(s, x, y, s->w - x, style, OWN);
}

static void locks_pane_draw_line(struct app *app, struct pane *pane, struct screen *s, int y, size_t i, bool selected)
{
	const struct locks_pane *p = locks_pane_state(pane);
	const struct lock_wait *wait = wait_of(pane, i);
	struct style style = pane_style(app, PART_NORMAL, selected), steal = pane_style(app, PART_STEAL, selected);
	char when[TIME_TEXT], d[TIME_TEXT];
	struct locks_layout l;
	compute_layout(p, s->w, &l);
	screen_text(s, 1, y, l.when, style, ruler_time(when, &app->axis, wait->start, 100000));
	screen_printf(s, 1 + l.when, y, LENGTH_COLUMNS, style, "%*s", LENGTH_COLUMNS, time_duration(d, length_of(wait)));
	int x = l.cells;
	for (int c = 0; c < CELLS; x += l.width[c++])
		screen_clip(s, x, y, l.width[c] - 1, c >= TAKEN && actor_is_known(&wait->culprit) ? steal : style,
		            p->line[i].cell[c]);
}

/* Writes "Debian/164 mutex-0 waited 12 ms for a futex, held by 165 mutex-1; 5 ms of it taken by host/240 burnP6". */
static void locks_pane_get_status_text(const struct app *app, const struct pane *pane, size_t i, char *buf, size_t size)
{
	const struct locks_pane *p = (const struct locks_pane *)pane;
	const struct locks_line *line = &p->line[i];
	const struct lock_wait *w = wait_of(pane, i);
	char d[TIME_TEXT], taken[TIME_TEXT], title[640], kind[64], holder[640] = "";
	const bool named = strcmp(line->cell[LOCK], "pause") != 0;
	text_escape(kind, sizeof kind, p->list.name[w->kind]);
	if (w->suspicion > 0)
		snprintf(holder, sizeof holder, "; suspected holder: %s", line->cell[HOLDER]);
	else if (w->holder.machine >= 0)
		snprintf(holder, sizeof holder, ", held by %s", line->cell[HOLDER]);
	actor_text(&app->catalog, &w->waiter, p->list.name[w->waiter.name], ACTOR_PLAIN, NULL, title, sizeof title);
	int n = snprintf(buf, size, "%s %s %s%s%s%s", title, w->spins ? "spun" : "waited", time_duration(d, length_of(w)),
	                 named ? " for a " : "", named ? kind : "", holder);
	if (!actor_is_known(&w->culprit) || n < 0 || (size_t)n >= size)
		return;
	if (w->culprit_ns)
		snprintf(buf + n, size - (size_t)n, "; %s of it taken by %s", time_duration(taken, w->culprit_ns),
		         line->cell[CULPRIT]);
	else
		snprintf(buf + n, size - (size_t)n, "; %s taken from the waiter itself, mostly by %s",
		         time_duration(taken, w->waiter_lost_ns), line->cell[CULPRIT]);
}

/* Writes all lock waits, regardless of the filter, as the command does. */
static int locks_pane_export(struct app *app, struct pane *pane, FILE *f, enum report_format format, struct error *err)
{
	const struct locks_pane *p = locks_pane_state(pane);
	struct target s;
	struct origin o;
	export_origin(app, pane, pane_target(app, pane, &s), &o);
	int rc = report_locks(f, REPORT_WHOLE(format), &app->catalog, &p->list, 0, &o, err);
	origin_release(&o);
	return rc;
}

/* ---- Jumps --------------------------------------------------------------------------------------------------------- */

static void locks_pane_follow_line(struct app *app, struct pane *pane, size_t i)
{
	const struct lock_wait w = *wait_of(pane, i);
	int thread = w.waiter.tid > 0 ? catalog_find_thread(&app->catalog, (uint32_t)w.waiter.machine, w.waiter.tid) : -1;
	pane_go(app, thread >= 0 ? (struct row_id){ ROW_THREAD, (uint32_t)thread }
	           : w.vcpu >= 0 ? (struct row_id){ ROW_CPU, (uint32_t)w.vcpu }
	                         : (struct row_id){ ROW_MACHINE, (uint32_t)w.waiter.machine }, w.start, w.end);
}

const struct pane_ops locks_pane = {
	.size = sizeof(struct locks_pane), .is_scoped = true, .open = pane_scope_open,
	.query = locks_pane_open_query, .take = locks_pane_take_answer, .arrange = locks_pane_make_lines,
	.sort = scoped_pane_sort_next, .name = scoped_pane_get_name, .title = locks_pane_get_title,
	.empty_text = locks_pane_get_empty_text, .headings = 1, .heading = locks_pane_draw_headings,
	.line = locks_pane_draw_line, .follow = locks_pane_follow_line, .status_text = locks_pane_get_status_text,
	.file = scoped_pane_get_file_name, .export = locks_pane_export,
	.drop_answer = locks_pane_drop_answer, .orders = ORDERS,
	.name_prefix = "lock waits of ", .file_prefix = "locks-",
};
