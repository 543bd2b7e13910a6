/* The path pane: the critical path of a thread or vCPU, through all threads and machines that it waited for; summed by
 * thread, machine or kind, or as single steps. While the pane is open, arrows in the timeline lead from each thread of
 * the path to the thread that it woke. The pane keeps the row and the window for which it was opened. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "ui/core/text_filter.h"
#include "ui/widgets/arrows.h"
#include "ui/panes/pane.h"
#include "ui/panes/pane_export.h"

enum path_view { SUM_THREADS, SUM_MACHINES, SUM_KINDS, BY_TIME, BY_LENGTH, VIEWS };

static const char *const view_name[VIEWS] = { "by thread", "by machine", "by kind", "by time", "longest first" };

struct path_pane {
	struct pane pane;
	struct path path;
	struct arrows arrows;
	enum path_view view;
	struct path_line {
		size_t step;        /* index of the step in path.interval; of a sum, the longest step */
		int64_t ns;
		size_t steps;
	} *line;
	size_t lines_cap;
};

static struct path_pane *path_pane_state(struct pane *pane)
{
	return (struct path_pane *)pane;
}

static const struct path_interval *step_of(const struct pane *pane, size_t i)
{
	const struct path_pane *p = (const struct path_pane *)pane;
	return &p->path.interval[p->line[i].step];
}

static int64_t length_of(const struct path_interval *e)
{
	return e->end - e->start + 1;
}

/* ---- Descriptions */

static bool is_handler(const struct actor *actor)
{
	return actor->tid < 0 && (actor->kind == FLOW_WAITING || actor->kind == FLOW_IRQ);
}

/* Writes the name of an actor: "Debian/3525 critical_task", "Debian/vCPU0", "host timer interrupt". */
static char *actor_plain(const struct app *app, const struct path *p, struct actor actor, char *buf, size_t size)
{
	if (actor.kind != FLOW_CURRENT && actor.kind != FLOW_LIMITED)
		actor.kind = is_handler(&actor) ? FLOW_IRQ : FLOW_RUNNING;
	return actor_text(&app->catalog, &actor, actor.name < p->names ? p->name[actor.name] : NULL,
	                  ACTOR_PLAIN, NULL, buf, size);
}

/* Writes the activity of a step: "ran", "waited: host/240 burnP6". */
static char *activity_text(const struct app *app, const struct path *p, const struct path_interval *e, char *buf,
                           size_t size)
{
	static const char *const text[FLOW_KIND_COUNT] = { [FLOW_RUNNING] = "ran", [FLOW_PREEMPTING] = "waited for a CPU",
		[FLOW_HYPERVISOR] = "in the hypervisor", [FLOW_IRQ] = "interrupt handler", [FLOW_WAITING] = "blocked on",
		[FLOW_IDLE_CPU] = "woken, CPU still idle", [FLOW_LIMITED] = "throttled", [FLOW_UNKNOWN] = "slept, reason unknown",
		[FLOW_CURRENT] = "waited for its vCPU" };
	char culprit[512];
	if (actor_is_known(&e->culprit))
		snprintf(buf, size, "waited for %s", actor_plain(app, p, e->culprit, culprit, sizeof culprit));
	else
		snprintf(buf, size, "%s", e->actor.kind < FLOW_KIND_COUNT ? text[e->actor.kind] : "");
	return buf;
}

/* Writes how the step led to the next step: "wake", "inject ~12 us". */
static char *format_link(const struct path_interval *e, char *buf, size_t size)
{
	char d[TIME_TEXT];
	*buf = '\0';
	if (e->edge != EDGE_START && e->evidence >= 0)
		snprintf(buf, size, "%s ~%s", path_edge_name[e->edge], time_duration(d, e->evidence));
	else if (e->edge != EDGE_START)
		snprintf(buf, size, "%s", path_edge_name[e->edge]);
	return buf;
}

/* Writes the actor of a step, or the group of a sum. */
static char *group_text(const struct app *app, const struct path_pane *p, const struct path_interval *e, char *buf,
                        size_t size)
{
	if (p->view == SUM_MACHINES)
		return text_escape(buf, size, e->actor.machine < 0 ? "unattributed" : app->catalog.machine[e->actor.machine].name);
	if (p->view == SUM_KINDS) {
		snprintf(buf, size, "%s", e->actor.kind == FLOW_WAITING ? PATH_WAIT : flow_kind_name[e->actor.kind]);
		return buf;
	}
	return actor_plain(app, &p->path, e->actor, buf, size);
}

/* ---- Lines */

static bool same_group(const struct path_pane *p, const struct path_interval *a, const struct path_interval *b)
{
	switch (p->view) {
	case SUM_THREADS: return actor_same(&a->actor, &b->actor) && actor_same(&a->culprit, &b->culprit);
	case SUM_MACHINES: return a->actor.machine == b->actor.machine;
	case SUM_KINDS: return a->actor.kind == b->actor.kind;
	default: return false;
	}
}

static bool passes_filter(const struct app *app, const struct path_pane *p, const struct path_interval *e)
{
	char title[512], activity[600];
	return !p->pane.filter[0] || filter_matches(group_text(app, p, e, title, sizeof title), p->pane.filter) ||
	       filter_matches(activity_text(app, &p->path, e, activity, sizeof activity), p->pane.filter);
}

/* Adds a step to its line. The search is linear because a path has few threads. */
static void add_line(struct path_pane *p, size_t step)
{
	const struct path_interval *e = &p->path.interval[step];
	size_t i = p->view >= BY_TIME ? p->pane.lines : 0;
	while (i < p->pane.lines && !same_group(p, &p->path.interval[p->line[i].step], e))
		i++;
	if (i == p->pane.lines)
		*ARRAY_PUSH(p->line, p->pane.lines, p->lines_cap) = (struct path_line){ step, 0, 0 };
	struct path_line *line = &p->line[i];
	line->ns += length_of(e);
	line->steps++;
	if (length_of(e) > length_of(&p->path.interval[line->step]))
		line->step = step;
}

static int longest_first(const void *a, const void *b)
{
	const struct path_line *x = a, *y = b;
	return x->ns != y->ns ? (x->ns < y->ns) - (x->ns > y->ns) : (x->step > y->step) - (x->step < y->step);
}

static void path_pane_make_lines(struct app *app, struct pane *pane)
{
	struct path_pane *p = path_pane_state(pane);
	pane->lines = 0;
	for (size_t i = 0; i < p->path.intervals; i++)
		if (passes_filter(app, p, &p->path.interval[i]))
			add_line(p, i);
	if (p->view != BY_TIME && pane->lines)
		qsort(p->line, pane->lines, sizeof *p->line, longest_first);
}

static struct query *path_pane_open_query(struct app *app, struct pane *pane, struct error *err)
{
	struct target s;
	return path_open(&app->catalog, pane_target(app, pane, &s), pane->from, pane->to, err);
}

static void path_pane_take_answer(struct app *app, struct pane *pane, struct query *q)
{
	struct path_pane *p = path_pane_state(pane);
	path_take(q, &p->path);
	arrows_make(&p->arrows, app, &p->path);
}

static void path_pane_drop_answer(struct pane *pane)
{
	struct path_pane *p = path_pane_state(pane);
	path_release(&p->path);
	arrows_release(&p->arrows);
	free(p->line);
	p->line = NULL;
	p->lines_cap = 0;
}

static void path_pane_sort_next(struct app *app, struct pane *pane, int by)
{
	struct path_pane *p = path_pane_state(pane);
	p->view = (enum path_view)(((int)p->view + by + VIEWS) % VIEWS);
	pane->at = pane->top = 0;
	path_pane_make_lines(app, pane);
}

static bool path_pane_open(struct app *app, struct pane *pane)
{
	struct target s;
	const struct row_id row = app->view.row;
	uint32_t thread;
	if (row.kind == ROW_REQUEST && !request_thread(app, row, &thread))
		return false;
	if (row.kind != ROW_REQUEST && (!row_target(&app->catalog, row, &s) || s.kind == TARGET_MACHINE)) {
		app_message(app, "select a vCPU or a thread");
		return false;
	}
	if (row.kind == ROW_REQUEST)
		app->view.row = (struct row_id){ ROW_THREAD, thread };
	bool opened = pane_scope_open(app, pane);
	app->view.row = row;
	return opened;
}

/* ---- Texts */

static void path_pane_get_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	char title[512];
	snprintf(buf, size, "path of %s", row_title(&app->rows, pane->scope.row, title,
	                                            sizeof title));
}

static void path_pane_get_title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct path_pane *p = (const struct path_pane *)pane;
	char name[600], length[TIME_TEXT], ns[TIME_TEXT], unknown[64] = "";
	path_pane_get_name(app, pane, name, sizeof name);
	if (p->path.unknown)
		snprintf(unknown, sizeof unknown, ", %s unknown", time_duration(ns, p->path.unknown));
	int n = snprintf(buf, size, " %s in %s%s ", name, pane_window_text(app, p->path.start, p->path.end, length), unknown);
	if (n + 20 < w)
		snprintf(buf + n - 1, size - (size_t)n + 1, ", %s ", view_name[p->view]);
}

/* Widths of the columns: start or share, length, link to the next step; actor and activity share the rest. */
#define WHEN_COLUMNS 15
#define LENGTH_COLUMNS 8
#define LINK_COLUMNS 15

static int length_at(int w)
{
	return w < PANE_NARROW ? 1 : 1 + WHEN_COLUMNS;
}

static int actor_at(int w)
{
	return length_at(w) + LENGTH_COLUMNS + 2;
}

static int link_columns(int w)
{
	return w >= 100 ? LINK_COLUMNS : 0;
}

static int actor_columns(int w)
{
	return (w - actor_at(w) - link_columns(w)) * 9 / 20;
}

static void path_pane_draw_headings(const struct app *app, const struct pane *pane, struct screen *s, int y)
{
	const struct path_pane *p = (const struct path_pane *)pane;
	struct style style = app->appearance.palette.part[PART_RULER];
	const int actor = actor_columns(s->w), link = link_columns(s->w), length = length_at(s->w), at = actor_at(s->w);
	screen_fill(s, 0, y, s->w, ' ', style);
	screen_text(s, 1, y, length - 1, style, p->view >= BY_TIME ? "at" : " share   steps");
	screen_printf(s, length, y, LENGTH_COLUMNS, style, "%*s", LENGTH_COLUMNS, "time");
	screen_text(s, at, y, actor, style, p->view == SUM_KINDS ? "kind" : p->view == SUM_MACHINES ? "machine" : "actor");
	if (p->view == SUM_THREADS || p->view >= BY_TIME)
		screen_text(s, at + actor, y, s->w, style, "activity");
	if (link && p->view >= BY_TIME)
		screen_text(s, s->w - link, y, link, style, "next step by");
}

static void path_pane_draw_line(struct app *app, struct pane *pane, struct screen *s, int y, size_t i, bool selected)
{
	const struct path_pane *p = path_pane_state(pane);
	const struct path_line *line = &p->line[i];
	const struct path_interval *e = step_of(pane, i);
	struct style style = pane_style(app, PART_NORMAL, selected), steal = pane_style(app, PART_STEAL, selected);
	char text[600], d[TIME_TEXT], part[16];
	const int actor = actor_columns(s->w), link = link_columns(s->w), length = length_at(s->w), at = actor_at(s->w);
	if (p->view >= BY_TIME)
		screen_text(s, 1, y, length - 1, style, ruler_time(d, &app->axis, e->start, 1000));
	else
		screen_printf(s, 1, y, length - 1, style, "%6s %7zu",
		              text_share(part, (double)line->ns / ((double)(p->path.end - p->path.start) + 1)), line->steps);
	screen_printf(s, length, y, LENGTH_COLUMNS, style, "%*s", LENGTH_COLUMNS, time_duration(d, line->ns));
	group_text(app, p, e, text, sizeof text);
	screen_clip(s, at, y, actor - 1, style, text_shorten_machine(text, actor - 1));
	if (p->view == SUM_MACHINES || p->view == SUM_KINDS)
		return;
	screen_clip(s, at + actor, y, s->w - at - actor - link - (link > 0), actor_is_known(&e->culprit) ? steal : style,
	            activity_text(app, &p->path, e, text, sizeof text));
	if (link && p->view >= BY_TIME)
		screen_text(s, s->w - link, y, link, style, format_link(e, text, sizeof text));
}

/* Returns true if the same thread continues after interrupts that it waited for: then the step woke no other thread. */
static bool is_own_wakeup(const struct path *p, size_t step)
{
	const struct actor *actor = &p->interval[step].actor;
	size_t i = step;
	while (i < p->intervals && (p->interval[i].edge == EDGE_INJECT || p->interval[i].edge == EDGE_IPI) &&
	       p->interval[i].actor.tid == actor->tid && p->interval[i].actor.machine == actor->machine)
		i++;
	return actor->tid > 0 && i > step && i < p->intervals && p->interval[i].actor.tid == actor->tid &&
	       p->interval[i].actor.machine == actor->machine;
}

static void path_pane_get_status_text(const struct app *app, const struct pane *pane, size_t i, char *buf, size_t size)
{
	static const char *const link_phrase[PATH_EDGE_COUNT] = { [EDGE_START] = "",
		                                                      [EDGE_WAKE] = "; then woke the next thread",
		                                                      [EDGE_IRQ] = "; it ended the sleep",
		                                                      [EDGE_INJECT] = "; its interrupt woke the next thread",
		                                                      [EDGE_REQUEST] = "; it requested the next step",
		                                                      [EDGE_IPI] = "; its IPI led to the next step" };
	const struct path_pane *p = (const struct path_pane *)pane;
	const struct path_interval *e = step_of(pane, i);
	char title[512], activity[600], d[TIME_TEXT], distance[TIME_TEXT];
	if (p->view < BY_TIME) {
		snprintf(buf, size, "%s in %zu step%s: %s", time_duration(d, p->line[i].ns), p->line[i].steps,
		         p->line[i].steps == 1 ? "" : "s", group_text(app, p, e, title, sizeof title));
		return;
	}
	int n = snprintf(buf, size, "%s %s %s%s", actor_plain(app, &p->path, e->actor, title, sizeof title),
	                 time_duration(d, length_of(e)), activity_text(app, &p->path, e, activity, sizeof activity),
	                 is_own_wakeup(&p->path, p->line[i].step) ? "" : link_phrase[e->edge]);
	if (e->evidence >= 0 && n > 0 && (size_t)n < size)
		snprintf(buf + n, size - (size_t)n, " (inferred: nearest in time, %s)", time_duration(distance, e->evidence));
}

static void path_pane_get_file_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	char title[512];
	snprintf(buf, size, "path-%s", row_title(&app->rows, pane->scope.row, title, sizeof title));
}

/* Writes the whole path, regardless of the filter, as the command `path` does: steps, or sums if the pane shows sums. */
static int path_pane_export(struct app *app, struct pane *pane, FILE *f, enum report_format format, struct error *err)
{
	const struct path_pane *p = path_pane_state(pane);
	struct target s;
	struct origin o;
	export_origin(app, pane, pane_target(app, pane, &s), &o);
	int rc = report_path(f, REPORT_WHOLE(format), &app->catalog, &p->path, p->view < BY_TIME, &o, err);
	origin_release(&o);
	return rc;
}

/* ---- Jumps */

static void path_pane_follow_line(struct app *app, struct pane *pane, size_t i)
{
	const struct path_interval e = *step_of(pane, i);
	struct row_id row = pane->scope.row;
	arrows_row(app, &path_pane_state(pane)->path, &e.actor, &row);
	pane_go(app, row, e.start, e.end);
}

static void path_pane_draw_arrows(struct app *app, const struct pane *pane, struct screen *s)
{
	arrows_draw(&((const struct path_pane *)pane)->arrows, app, s);
}

const struct pane_ops path_pane = {
	.size = sizeof(struct path_pane), .is_scoped = true, .open = path_pane_open,
	.query = path_pane_open_query, .take = path_pane_take_answer, .arrange = path_pane_make_lines,
	.sort = path_pane_sort_next,
	.name = path_pane_get_name, .title = path_pane_get_title, .headings = 1, .heading = path_pane_draw_headings,
	.line = path_pane_draw_line, .follow = path_pane_follow_line, .overlay = path_pane_draw_arrows,
	.status_text = path_pane_get_status_text, .file = path_pane_get_file_name, .export = path_pane_export,
	.drop_answer = path_pane_drop_answer,
};
