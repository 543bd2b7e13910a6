/* The overview: the report of `summary`, each row with its lane on the time axis of the screen. It replaces the rows.
 *
 * The pane shows the sums first, while the gaps are being computed, unless the last answer with gaps was quick. Moving to
 * the longest gap of a line closes the overview; <BS> restores it. */
#include "ui/core/text_filter.h"
#include "ui/panes/overview.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "ui/panes/overview_state.h"
#include "ui/widgets/verdict_line.h"
#include "ui/widgets/widgets.h"

#define LANE_MIN 10     /* cells of a lane */
#define COLUMNS_MAX 144 /* cells of names and columns: wider screens have wider lanes */
#define OTHER_LINES 6  /* screen lines not available: header, ruler, title, headings, status line and legend; and the
                        * verdict and the map, if they are shown */

/* ---- Lines -------------------------------------------------------------------------------------------------------- */

size_t overview_row_number(const struct pane *pane, size_t i)
{
	const struct report_table *t = &((const struct overview *)pane)->table.table;
	return (size_t)t->field[(table_pane_row(pane, i) + 1) * t->shape.columns - 1].key;
}

/* Returns the line of the selected target; pane->lines: it has none yet. */
static size_t find_selected(const struct overview *p)
{
	size_t i = 0;
	const struct pane *pane = &p->table.pane;
	while (i < pane->lines && !target_same(&overview_line(pane, i)->target, &p->at))
		i++;
	return i;
}

void overview_arrange(struct app *app, struct pane *pane)
{
	struct overview *p = overview_state(pane);
	const size_t at = pane->at;
	pane->at = 0;
	table_pane_arrange(app, pane);
	if (p->has_target && p->table.table.has_more && find_selected(p) == pane->lines)
		table_pane_arrange_all(app, pane);
	const size_t selected = p->has_target ? find_selected(p) : 0;
	pane->at = selected < pane->lines ? selected : p->has_target && !pane->filter[0] ? at : 0;
	p->machines = 0;
	while (p->machines < pane->lines && overview_row_number(pane, p->machines) < p->s.machines)
		p->machines++;
}

/* Makes the lines again, of other rows or from more values. */
void overview_remake(struct app *app, struct pane *pane)
{
	overview_state(pane)->table.has_table = false;
	overview_arrange(app, pane);
}

/* Returns the number of lines on the screen. */
static size_t page_lines(const struct app *app, const struct pane *pane)
{
	const int page = app->h_cells - OTHER_LINES - (minimap_line(app) >= 0) - verdict_line_height(app);
	return pane->page ? pane->page : page > 0 ? (size_t)page : 0;
}

/* Returns the end of the lines that the next frame shows. */
static size_t shown_end(const struct app *app, const struct pane *pane)
{
	const size_t end = (pane->at < pane->top ? pane->at : pane->top) + page_lines(app, pane);
	return pane->at < end ? end : pane->at + 1;
}

/* Asks for the gaps of all rows if some that the next frame shows, or that the order needs, were not read. */
static void ask_for_all(struct app *app, struct pane *pane)
{
	struct overview *p = overview_state(pane);
	const bool by_gaps = summary_order_reads_gaps(p->by);
	bool lacks = false;
	for (size_t i = 0; i < p->s.rows && by_gaps; i++)
		lacks |= !p->s.row[i].has_gaps;
	for (size_t i = 0; i < pane->lines && i < shown_end(app, pane); i++)
		lacks |= !overview_line(pane, i)->has_gaps;
	if (!lacks || pane->pending || !p->has_gaps)
		return;
	p->wants_all = pane->preliminary = true;
	async_wake_viewer(app->queries);
}

/* Selects the line of the timeline's selected row, unless that line is below the first page. */
static void overview_select_line(struct app *app, struct overview *p)
{
	struct pane *pane = &p->table.pane;
	p->has_target = true;
	for (size_t i = 0; i < pane->lines && i < page_lines(app, pane); i++)
		if (row_same(overview_row(&overview_line(pane, i)->target), app->view.row))
			pane->at = i;
	if (pane->lines)
		p->at = overview_line(pane, pane->at)->target;
}

static void overview_window(const struct app *app, const struct pane *pane, int64_t *from, int64_t *to)
{
	(void)pane;
	*from = app->view.t0;
	*to = view_last(&app->view, &app->bounds);
}

#define QUICK_NS 100000000  /* after an answer with gaps that took less, the next one is asked for at once, ns */
#define VERDICT_LINES 2  /* the page grows by so many lines while the verdict is unknown */

static struct summary_options summary_wanted(const struct app *app, const struct pane *pane)
{
	const struct overview *p = (const struct overview *)pane;
	const size_t lines = shown_end(app, pane) + VERDICT_LINES;
	const bool all = p->wants_all || app->waits_for_answers;
	return (struct summary_options){ .from = pane->from, .to = pane->to, .grouping = p->grouping, .by = p->by,
		.top = all ? 0 : lines > p->machines ? lines - p->machines : 1,
		.gaps = app->waits_for_answers || p->is_quick || (p->sums_from == pane->from && p->sums_to == pane->to) };
}

static struct query *overview_open_query(struct app *app, struct pane *pane, struct error *err)
{
	const struct summary_options options = summary_wanted(app, pane);
	(void)err;
	return summary_open(&app->catalog, &options);
}

/* Selects the row of the line, so that keys for rows apply to this row. */
static void overview_select_row(struct app *app, struct pane *pane, size_t i)
{
	overview_state(pane)->follow = SIZE_MAX;  /* cancels a search for a wait */
	overview_state(pane)->at = overview_line(pane, i)->target;
	app->view.row = overview_row(&overview_state(pane)->at);
	app->row_chosen = true;
}

static void overview_take_answer(struct app *app, struct pane *pane, struct query *q)
{
	struct overview *p = overview_state(pane);
	query_take(q, &p->s);
	overview_forget_waits(p);
	p->has_gaps = p->s.gaps;
	p->wants_all = false;
	p->is_quick = p->has_gaps ? pane->cost < QUICK_NS : p->is_quick;
	p->sums_from = pane->from;
	p->sums_to = pane->to;
	summary_sort(&p->s, &app->catalog, p->by);
	overview_remake(app, pane);
	if (!p->has_target)
		overview_select_line(app, p);
	if (p->has_gaps && p->selects_first && pane->lines)
		overview_select_row(app, pane, pane->at = 0);
	p->selects_first = false;
	pane->preliminary = !p->has_gaps;
}

static void overview_drop_answer(struct pane *pane)
{
	struct overview *p = overview_state(pane);
	summary_release(&p->s);
	overview_forget_waits(p);
	p->machines = 0;
}

static void overview_sort_next(struct app *app, struct pane *pane, int by)
{
	struct overview *p = overview_state(pane);
	overview_forget_waits(p);
	p->by = (enum summary_order)(((int)p->by + by + SUMMARY_ORDER_COUNT) % SUMMARY_ORDER_COUNT);
	summary_sort(&p->s, &app->catalog, p->by);
	p->has_target = false;
	overview_remake(app, pane);
	p->has_target = pane->lines > 0;
	if (p->has_target)
		overview_select_row(app, pane, 0);
	ask_for_all(app, pane);
	p->selects_first = p->wants_all;
}

static void overview_refresh(struct app *app, struct pane *pane)
{
	ask_for_all(app, pane);
	overview_refresh_waits(app, pane);
}

/* Groups the threads by the next key. */
static void overview_group_next(struct app *app, struct pane *pane)
{
	struct overview *p = overview_state(pane);
	p->grouping = (enum thread_grouping)((p->grouping + 1) % THREAD_GROUPINGS);
	p->sums_from = p->sums_to = 0;
	p->has_target = p->has_gaps = false;
	pane->preliminary = true;  /* asks again */
	overview_forget_waits(p);
	if (p->grouping == GROUP_NONE)
		app_message(app, "one line for each thread");
	else
		app_message(app, "one line for the threads of a machine with the same %s", thread_grouping_name[p->grouping]);
}

/* ---- Drawing ------------------------------------------------------------------------------------------------------ */

/* The columns of the report; its lane has the rest of the screen, at least an eighth. */
static int overview_label_width(const struct pane *pane, int w)
{
	(void)pane;
	const int lane = w / 8 < LANE_MIN ? LANE_MIN : w / 8;
	return w - lane - 1 < COLUMNS_MAX ? w - lane - 1 : COLUMNS_MAX;
}

static int overview_report(struct app *app, struct pane *pane, FILE *f, struct report_how how, struct origin *o,
                           struct error *err)
{
	const struct overview *p = overview_state(pane);
	const struct summary_parts parts = { .s = &p->s };
	return report_summary(f, how, &app->catalog, &parts, o, err);
}

static enum part overview_line_part(const struct pane *pane, size_t i)
{
	return overview_line(pane, i)->target.kind == TARGET_MACHINE ? PART_TITLE : PART_NORMAL;
}

static void overview_draw_headings(const struct app *app, const struct pane *pane, struct screen *s, int y)
{
	table_pane_draw_headings(app, pane, s, y);
	screen_text(s, app->label_w + 1, y, s->w, app->appearance.palette.part[PART_RULER], "over time");
}

static void overview_draw_line(struct app *app, struct pane *pane, struct screen *s, int y, size_t i, bool selected)
{
	const struct overview *p = overview_state(pane);
	const struct summary_row *r = overview_line(pane, i);
	table_pane_draw_line(app, pane, s, y, i, selected);
	screen_put(s, app->label_w, y, selected ? '*' : '|', app->appearance.palette.part[selected ? PART_STEAL : PART_LABEL]);
	if (r->group)
		rows_draw_group_lane(app, s, y, p->s.member + r->first, r->threads);
	else
		rows_draw_lane(app, s, y, overview_row(&r->target), LANE_LISTED);
}

/* ---- Texts -------------------------------------------------------------------------------------------------------- */

static void overview_get_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	(void)app;
	(void)pane;
	snprintf(buf, size, "most delayed");
}

static void overview_get_title(const struct app *app, const struct pane *pane, int w, char *buf, size_t size)
{
	const struct overview *p = (const struct overview *)pane;
	char d[TIME_TEXT], all[64];
	(void)app;
	int n = snprintf(buf, size, " most delayed in %s, by %s", time_duration(d, p->s.end - p->s.start + 1),
	                 p->by == SUMMARY_BY_LOST ? "time lost" : summary_order_name[p->by]);
	const char *what[THREAD_GROUPINGS] = { "thread", "thread name", "process", "cgroup" };
	const size_t threads = pane->filter[0] ? pane->lines - p->machines : summary_delayed_threads(&p->s);
	int m = snprintf(all, sizeof all, ": %zu machine%s, %zu %s%s", p->machines, p->machines == 1 ? "" : "s", threads,
	                 what[p->grouping], threads == 1 ? "" : p->grouping == GROUP_BY_PROCESS ? "es" : "s");
	snprintf(buf + n, size - (size_t)n, "%s ", n + m + 4 < w ? all : "");
}

static void overview_get_status_text(const struct app *app, const struct pane *pane, size_t i, char *buf, size_t size)
{
	const struct overview *p = (const struct overview *)pane;
	const struct summary_row *r = overview_line(pane, i);
	const struct demand *d = &r->demand;
	char title[ACTOR_TEXT], by[ACTOR_TEXT], lost[TIME_TEXT], runnable[TIME_TEXT], longest[TIME_TEXT];
	summary_row_text(&app->catalog, r, false, title, sizeof title);
	if (!catalog_has_host_trace(&app->catalog, &r->target)) {
		snprintf(buf, size, "%s: time taken by its host is unknown (no host trace)", title);
		return;
	}
	size_t n = (size_t)snprintf(buf, size, "%s lost %s of %s runnable time", title, time_duration(lost, d->lost),
	                            time_duration(runnable, d->ran + d->lost));
	if (p->has_gaps && r->gaps && n < size)
		n += (size_t)snprintf(buf + n, size - n, ", %.0f %% taken by %s; longest wait %s",
		                      100 * (double)r->culprit_ns / (double)(d->lost > 0 ? d->lost : 1),
		                      report_culprit_text(&app->catalog, &p->s, r, FORMAT_TEXT, by),
		                      time_duration(longest, r->longest.end - r->longest.start + 1));
	if (p->waits_of == (size_t)(r - p->s.row) && *report_longest_by(&app->catalog, r, &p->waits, by) && n < size)
		snprintf(buf + n, size - n, " by %s", by);
}

static void overview_get_file_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	(void)app;
	(void)pane;
	snprintf(buf, size, "summary");
}

/* Writes what the command prints about the window, with columns and a verdict that the pane does not have. */
static int overview_export(struct app *app, struct pane *pane, FILE *f, enum report_format format, struct error *err)
{
	struct origin o;
	struct core_share cores = { 0 };
	struct summary_options options = summary_wanted(app, pane);
	struct summary s;
	struct summary_parts parts = { .s = &s, .findings = verdict_line_get(app), .file = history_file(app->first),
		.top = REPORT_SUMMARY_TOP };
	if (!overview_state(pane)->has_gaps || !parts.findings)
		return error_set(err, STATUS_USAGE, "wait until they are complete", "the gaps are still being computed");
	options.top = 0;
	if (query_answer(summary_open(&app->catalog, &options), &s, err) < 0)
		return -1;
	struct query *q = core_share_open_summary(&app->catalog, &s);
	int rc = q ? query_answer(q, &cores, err) : 0;
	parts.cores = q && rc == 0 ? &cores : NULL;
	export_origin(app, pane, NULL, &o);
	if (rc == 0)
		rc = report_summary(f, REPORT_WHOLE(format), &app->catalog, &parts, &o, err);
	origin_release(&o);
	core_share_release(&cores);
	summary_release(&s);
	return rc;
}

/* ---- Jumps --------------------------------------------------------------------------------------------------------- */

/* Moves the cursor from the machines to the threads, or back. */
static void overview_jump_group(struct app *app, struct pane *pane)
{
	struct overview *p = overview_state(pane);
	pane->at = pane->at < p->machines && p->machines < pane->lines ? p->machines : 0;
	if (pane->lines)
		overview_select_row(app, pane, pane->at);
}

static bool overview_open(struct app *app, struct pane *pane)
{
	pane->at = pane->top = 0;
	overview_state(pane)->has_target = false;
	overview_state(pane)->follow = SIZE_MAX;
	if (pane->lines)
		overview_select_line(app, overview_state(pane));
	return true;
}

static void overview_remap_rows(struct app *app, struct pane *pane, const struct rows *old, const struct rows *new)
{
	struct overview *p = overview_state(pane);
	(void)app;
	(void)old;
	(void)new;
	p->has_target = false;
	p->return_view.step = 0;
	p->sums_from = p->sums_to = 0;
}

void overview_closed(struct app *app, struct pane *pane)
{
	const struct overview *p = overview_state(pane);
	if (!app->row_chosen && p->has_target && app->view.row.kind == ROW_MACHINE)
		app->view.row = rows_of_victim(&app->rows, &p->at);
}

void overview_back(struct app *app)
{
	struct overview *p = overview_state(app->pane[PANE_OVERVIEW]);
	if (app->pane_below == &p->table.pane) {
		pane_close(app);
		return;
	}
	struct view before = app->view;
	if (p->return_view.step > 0) {
		/* the columns for which the window of return_view was chosen */
		app_layout(app, overview_label_width(&p->table.pane, app->w));
		app->view = p->return_view;
		app_refit(app);
		undo_push(&app->undo, &before);
	}
	pane_open(app, PANE_OVERVIEW);
}

const struct pane_ops overview_pane = {
	.size = sizeof(struct overview), .is_table = true, .is_ordered = true, .replaces_rows = true, .open = overview_open,
	.closed = overview_closed, .refresh = overview_refresh, .window = overview_window, .query = overview_open_query,
	.take = overview_take_answer, .arrange = overview_arrange, .arrange_all = table_pane_arrange_all,
	.report = overview_report, .marked = "lost_ns lost_share", .line_part = overview_line_part,
	.sort = overview_sort_next, .group = overview_group_next, .name = overview_get_name, .title = overview_get_title,
	.label_width = overview_label_width, .heading = overview_draw_headings, .press_heading = table_pane_press_heading,
	.line = overview_draw_line, .follow = overview_follow_line, .cursor_moved = overview_select_row,
	.tab = overview_jump_group, .status_text = overview_get_status_text, .file = overview_get_file_name,
	.export = overview_export, .remap = overview_remap_rows, .drop_answer = overview_drop_answer,
};
