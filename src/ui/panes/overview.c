/* The overview: machines, then threads, sorted by the time they lost in the window, each with its lane on the time axis
 * of the screen. It replaces the rows.
 *
 * The pane shows the sums first, while the gaps are being computed. Moving to the longest gap of a line closes the
 * overview; <BS> restores it. */
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

#define NAME_MIN 18
#define NAME_MAX 34
#define CULPRIT_MIN 10
#define CULPRIT_MAX 30
#define TIME_COLUMNS 8
#define LONGEST_MAX 38
#define OTHER_LINES 6  /* screen lines not available: header, ruler, title, headings, status line and legend; and the
                        * verdict and the map, if they are shown */

static double share_of(int64_t part, int64_t whole)
{
	return whole > 0 ? (double)part / (double)whole : 0;
}

#define SPREAD_SHARE 0.1  /* a top culprit with a smaller share is one of many */

const char *overview_culprit_text(const struct app *app, const struct overview *p, const struct summary_row *r, char *buf,
                              size_t size)
{
	const struct actor *actor = &r->culprit;
	char name[ACTOR_TEXT] = "";
	if (r->gaps || r->culprit_ns)
		actor_text(&app->catalog, actor, actor->name < p->s.names ? p->s.name[actor->name] : NULL, ACTOR_SHOWN, &r->target,
		           name, sizeof name);
	const bool spread = r->gaps && flow_is_thread(actor->kind) &&
	                    (double)r->culprit_ns < SPREAD_SHARE * (double)r->demand.lost;
	snprintf(buf, size, "%s%s", spread ? "many, most " : "", name);
	return buf;
}

/* Returns a shorter name of the culprit for narrow columns: omits the machine, the thread served, or the reason for
 * "unknown". NULL: there is no shorter name. */
static const char *short_culprit_text(const struct app *app, const struct summary_row *r)
{
	const struct actor *actor = &r->culprit;

	if (culprit_is_own(&app->catalog, &r->target, actor))
		return r->target.kind == TARGET_MACHINE ? "own threads" : "other threads";
	return actor->kind == FLOW_HYPERVISOR ? "hypervisor" : actor->kind == FLOW_UNKNOWN ? "unknown" : NULL;
}

void overview_row_text(const struct app *app, const struct summary_row *r, char *buf, size_t size)
{
	char name[ACTOR_TEXT];
	if (r->group)
		snprintf(buf, size, "%s (%u)", summary_row_text(&app->catalog, r, true, name, sizeof name), (unsigned)r->threads);
	else
		row_title(&app->rows, overview_row(&r->target), buf, size);
}

/* ---- Lines -------------------------------------------------------------------------------------------------------- */

/* Makes the lines; omits threads that lost nothing. */
static void overview_make_lines(struct app *app, struct pane *pane)
{
	struct overview *p = overview_state(pane);
	char text[512];
	free(p->line);
	p->line = mem_new(p->s.rows, sizeof *p->line);
	pane->lines = p->machines = pane->at = 0;
	for (size_t i = 0; i < p->s.rows; i++) {
		const struct summary_row *r = &p->s.row[i];
		const bool is_thread = i >= p->s.machines;
		/* a hypervisor without host threads has no time of its own */
		const bool is_hypervisor = !is_thread && app->catalog.has_run_states &&
		                           app->catalog.machine[r->target.index].kind == MACHINE_HOST;
		if ((is_thread || is_hypervisor) && r->demand.lost == 0)
			continue;
		overview_row_text(app, r, text, sizeof text);
		if (pane->filter[0] && !filter_matches(text, pane->filter))
			continue;
		if (p->has_target && r->target.kind == p->at.kind && r->target.index == p->at.index)
			pane->at = pane->lines;
		p->machines += i < p->s.machines;
		p->line[pane->lines++] = i;
	}
}

/* Selects the line of the timeline's selected row, unless that line is below the first page. */
static void overview_select_line(struct app *app, struct overview *p)
{
	const int page = app->h_cells - OTHER_LINES - (minimap_line(app) >= 0) - verdict_line_height(app);
	p->has_target = true;
	for (size_t i = 0; i < p->pane.lines && (int)i < page; i++)
		if (row_same(overview_row(&overview_line(&p->pane, i)->target), app->view.row))
			p->pane.at = i;
	if (p->pane.lines)
		p->at = overview_line(&p->pane, p->pane.at)->target;
}

static void overview_window(const struct app *app, const struct pane *pane, int64_t *from, int64_t *to)
{
	(void)pane;
	*from = app->view.t0;
	*to = view_last(&app->view, &app->bounds);
}

static struct query *overview_open_query(struct app *app, struct pane *pane, struct error *err)
{
	const struct overview *p = overview_state(pane);
	const struct summary_options options = { .from = pane->from, .to = pane->to, .grouping = p->grouping,
		.gaps = app->waits_for_answers || (p->sums_from == pane->from && p->sums_to == pane->to) };
	(void)err;
	return summary_open(&app->catalog, &options);
}

static void overview_take_answer(struct app *app, struct pane *pane, struct query *q)
{
	struct overview *p = overview_state(pane);
	summary_take(q, &p->s);
	overview_forget_waits(p);
	p->has_gaps = p->s.gaps;
	p->sums_from = pane->from;
	p->sums_to = pane->to;
	summary_sort(&p->s, &app->catalog, p->by);
	overview_make_lines(app, pane);
	if (!p->has_target)
		overview_select_line(app, p);
	pane->preliminary = !p->has_gaps;
}

static void overview_drop_answer(struct pane *pane)
{
	struct overview *p = overview_state(pane);
	summary_release(&p->s);
	overview_forget_waits(p);
	free(p->line);
	p->line = NULL;
	p->machines = 0;
}

/* Selects the row of the line, so that keys for rows apply to this row. */
static void overview_select_row(struct app *app, struct pane *pane, size_t i)
{
	overview_state(pane)->follow = SIZE_MAX;  /* cancels a search for a wait */
	overview_state(pane)->at = overview_line(pane, i)->target;
	app->view.row = overview_row(&overview_state(pane)->at);
	app->row_chosen = true;
}

static void overview_sort_next(struct app *app, struct pane *pane, int by)
{
	struct overview *p = overview_state(pane);
	overview_forget_waits(p);
	p->by = (enum summary_order)(((int)p->by + by + SUMMARY_ORDER_COUNT) % SUMMARY_ORDER_COUNT);
	summary_sort(&p->s, &app->catalog, p->by);
	p->has_target = false;
	overview_make_lines(app, pane);
	p->has_target = pane->lines > 0;
	if (p->has_target)
		overview_select_row(app, pane, 0);
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

/* ---- Columns ------------------------------------------------------------------------------------------------------ */

enum overview_column { LIFE, RAN, LOST, SHARE, CULPRIT, PART, LONGEST, P99, GAPS, COLUMNS };

/* Columns. rank: order in which the columns are fitted into the screen, 0 first; order: sort order of the column. */
static const struct { const char *heading; int width, rank; enum summary_order order; } columns[COLUMNS] = {
	[LIFE] = { "life", 8, 8, SUMMARY_BY_LIFE }, [RAN] = { "ran", 8, 7, SUMMARY_BY_RAN },
	[LOST] = { "lost", 8, 0, SUMMARY_BY_LOST }, [SHARE] = { "lost%", 5, 1, SUMMARY_BY_SHARE },
	[CULPRIT] = { "top culprit", 15, 2, SUMMARY_ORDER_COUNT }, [PART] = { "share", 5, 3, SUMMARY_ORDER_COUNT },
	[LONGEST] = { "max wait", 22, 4, SUMMARY_BY_LONGEST }, [P99] = { "p99", 8, 5, SUMMARY_BY_P99 },
	[GAPS] = { "gaps", 6, 6, SUMMARY_BY_GAPS },
};

static bool is_left_aligned(int c)
{
	return c == CULPRIT || c == LONGEST;
}

struct widths { int name, column[COLUMNS]; };

/* Returns the rank of a column. The column by which the lines are sorted comes before the culprit. */
static int rank_of(int c, enum summary_order by)
{
	int key = 0;
	while (key < COLUMNS && columns[key].order != by)
		key++;
	const int first = columns[CULPRIT].rank;
	if (key == COLUMNS || columns[key].rank <= first || columns[c].rank < first || columns[c].rank > columns[key].rank)
		return columns[c].rank;
	return c == key ? first : columns[c].rank + 1;
}

/* Width of the labels and columns: the lane gets an eighth of the screen, or more if the columns need less. */
static int overview_label_width(const struct pane *pane, int w)
{
	(void)pane;
	int lane = w / 8 < 10 ? 10 : w / 8, max_width = NAME_MAX + 1;
	for (int c = 0; c < COLUMNS; c++)
		max_width += (c == CULPRIT ? CULPRIT_MAX : columns[c].width) + 1;
	return w - lane - 1 < max_width ? w - lane - 1 : max_width;
}

/* Writes the longest wait and its culprit: "360 ms (migration)". always: also if it is the row's top culprit. */
static const char *longest_text(const struct app *app, const struct overview *p, const struct summary_row *r, bool always,
                                char *buf, size_t size)
{
	const size_t row = (size_t)(r - p->s.row);
	char time[TIME_TEXT], by[ACTOR_TEXT] = "";
	buf[0] = '\0';
	if (!r->gaps)
		return buf;
	if (p->has_waits && p->has_waits[row] && p->waits[row].found) {
		const struct culprit_waits *w = &p->waits[row];
		const struct actor *a = &w->longest_by, *top = &r->culprit;
		if (!always && a->machine == top->machine && a->tid == top->tid && a->kind == top->kind)
			by[0] = '\0';
		else if (culprit_is_own(&app->catalog, &r->target, &w->longest_by))
			snprintf(by, sizeof by, "%s", "other threads");
		else if (w->longest_by.kind != FLOW_RUNNING)
			actor_text(&app->catalog, &w->longest_by, w->longest_name, ACTOR_SHOWN, NULL, by, sizeof by);
	}
	snprintf(buf, size, "%7s%s%s", time_duration(time, r->longest.end - r->longest.start + 1), by[0] ? " " : "", by);
	return buf;
}

static void cell_text(const struct app *app, const struct overview *p, const struct summary_row *r,
                      enum overview_column c, char *buf, size_t size)
{
	const struct demand *d = &r->demand;
	char time[TIME_TEXT];
	if (c >= CULPRIT && !p->has_gaps) {
		snprintf(buf, size, "..");
		return;
	}
	if ((c == LOST || c == SHARE || c == GAPS) && !catalog_has_host_trace(&app->catalog, &r->target)) {
		snprintf(buf, size, "?");
		return;
	}
	switch (c) {
	case LIFE: snprintf(buf, size, "%s", time_duration(time, r->end - r->start + 1)); break;
	case RAN: snprintf(buf, size, "%s", time_duration(time, d->ran)); break;
	case LOST: snprintf(buf, size, "%s", time_duration(time, d->lost)); break;
	case SHARE: snprintf(buf, size, "%.*f%s", share_of(d->lost, d->ran + d->lost) < 0.0995,
	                     100 * share_of(d->lost, d->ran + d->lost), lost_share_unit(d)); break;
	case LONGEST: longest_text(app, p, r, false, buf, size); break;
	case PART:
		buf[0] = '\0';
		if (r->culprit_ns)
			snprintf(buf, size, "%.0f%%", 100 * share_of(r->culprit_ns, d->lost));
		break;
	case P99: snprintf(buf, size, "%s", r->gaps ? time_duration(time, r->p99) : ""); break;
	case GAPS: snprintf(buf, size, "%llu", (unsigned long long)r->gaps); break;
	case CULPRIT: overview_culprit_text(app, p, r, buf, size); break;
	case COLUMNS: break;
	}
}

#define FIRST_PAGE 20  /* lines measured before the first frame */

/* Widens the columns of texts to the longest text on the screen. */
static struct widths measure_texts(const struct app *app, const struct pane *pane)
{
	const struct overview *p = (const struct overview *)pane;
	struct widths need = { .name = NAME_MIN };
	char text[512];
	for (int c = 0; c < COLUMNS; c++)
		need.column[c] = c == LONGEST ? TIME_COLUMNS : columns[c].width;
	for (size_t i = pane->top; i < pane->lines && i < pane->top + (pane->page ? pane->page : FIRST_PAGE); i++) {
		const struct summary_row *r = overview_line(pane, i);
		overview_row_text(app, r, text, sizeof text);
		need.name = text_width(text) + 1 > need.name ? text_width(text) + 1 : need.name;
		for (int c = CULPRIT; c <= LONGEST; c += LONGEST - CULPRIT) {
			cell_text(app, p, r, (enum overview_column)c, text, sizeof text);
			if (c == CULPRIT && text_width(text) > CULPRIT_MAX && short_culprit_text(app, r))
				continue;
			need.column[c] = text_width(text) > need.column[c] ? text_width(text) : need.column[c];
		}
	}
	need.name = need.name < NAME_MAX ? need.name : NAME_MAX;
	need.column[CULPRIT] = need.column[CULPRIT] < CULPRIT_MAX ? need.column[CULPRIT] : CULPRIT_MAX;
	need.column[LONGEST] = need.column[LONGEST] < LONGEST_MAX ? need.column[LONGEST] : LONGEST_MAX;
	return need;
}

/* Names before numbers: the other columns get what the names and culprits leave, the most important first. */
static struct widths fit_columns(const struct app *app, const struct pane *pane)
{
	const enum summary_order by = ((const struct overview *)pane)->by;
	struct widths need = measure_texts(app, pane), w = { 0 };
	/* where name and culprit do not fit beside the columns before them, they share the space */
	int both = app->label_w - 2;
	for (int c = 0; c < COLUMNS; c++)
		both -= rank_of(c, by) < rank_of(CULPRIT, by) ? columns[c].width + 1 : 0;
	if (both < NAME_MIN + CULPRIT_MIN) {
		need.name = NAME_MIN;  /* the culprit is left out */
	} else if (need.name + need.column[CULPRIT] > both) {
		const int half = both / 2;
		const int most = need.name < half ? both - need.name : half;
		need.column[CULPRIT] = need.column[CULPRIT] < most ? need.column[CULPRIT] : most;
		need.name = both - need.column[CULPRIT];
	}
	w.name = need.name;
	int space = app->label_w - need.name - 1;
	bool full = false;  /* a column did not fit: no less important one is shown */
	for (int rank = 0; rank < COLUMNS && !full; rank++)
		for (int c = 0; c < COLUMNS; c++) {
			if (rank_of(c, by) != rank)
				continue;
			full = space <= need.column[c] && w.column[LOST];
			/* without space for the culprit of the longest wait, its time is shown alone */
			const int width = full && c == LONGEST ? TIME_COLUMNS : need.column[c];
			if (space > width) {
				w.column[c] = width;
				space -= width + 1;
			}
		}
	w.name += space > 0 && w.name < NAME_MAX ? (space < NAME_MAX - w.name ? space : NAME_MAX - w.name) : 0;
	return w;
}

static void overview_draw_headings(const struct app *app, const struct pane *pane, struct screen *s, int y)
{
	const struct overview *p = (const struct overview *)pane;
	struct widths w = fit_columns(app, pane);
	struct style style = app->appearance.palette.part[PART_RULER], marked = style;
	marked.attr |= ATTR_UNDERLINE | ATTR_BOLD;
	screen_fill(s, 0, y, s->w, ' ', style);
	screen_text(s, 1, y, w.name - 1, style, "name");
	for (int c = 0, x = w.name + 1; c < COLUMNS; c++) {
		if (!w.column[c])
			continue;
		int pad = is_left_aligned(c) ? 0 : w.column[c] - (int)strlen(columns[c].heading);
		screen_text(s, x + pad, y, w.column[c], columns[c].order == p->by ? marked : style, columns[c].heading);
		x += w.column[c] + 1;
	}
	screen_text(s, app->label_w + 1, y, s->w, style, "over time");
}

/* Sorts by the column of the heading at column x of the screen. */
static void overview_press_heading(struct app *app, struct pane *pane, int x)
{
	struct overview *p = overview_state(pane);
	const struct widths w = fit_columns(app, pane);
	int left = w.name + 1, by = x < left ? (int)SUMMARY_BY_ID : (int)SUMMARY_BY_LOST;
	for (int c = 0; c < COLUMNS; c++) {
		if (w.column[c] && x >= left && x <= left + w.column[c] && columns[c].order < SUMMARY_ORDER_COUNT)
			by = (int)columns[c].order;
		left += w.column[c] ? w.column[c] + 1 : 0;
	}
	overview_sort_next(app, pane, by - (int)p->by);
}

static void overview_draw_line(struct app *app, struct pane *pane, struct screen *s, int y, size_t i, bool selected)
{
	struct overview *p = overview_state(pane);
	const struct summary_row *r = overview_line(pane, i);
	struct widths w = fit_columns(app, pane);
	struct style style = pane_style(app, r->target.kind == TARGET_MACHINE ? PART_TITLE : PART_NORMAL, selected);
	struct style steal = selected ? style : app->appearance.palette.part[PART_STEAL];
	char text[512];
	overview_row_text(app, r, text, sizeof text);
	/* one style for the whole line: most bytes sent to the terminal are style changes */
	screen_fill(s, 0, y, app->label_w, ' ', style);
	screen_text(s, 1, y, w.name - 1, style, text_shorten_machine(text, w.name - 1));
	for (int c = 0, x = w.name + 1; c < COLUMNS; c++) {
		if (!w.column[c])
			continue;
		cell_text(app, p, r, (enum overview_column)c, text, sizeof text);
		if (c == CULPRIT && text_width(text) > w.column[c] && short_culprit_text(app, r))
			snprintf(text, sizeof text, "%s", short_culprit_text(app, r));
		text_shorten_machine(text, w.column[c]);
		int pad = is_left_aligned(c) ? 0 : w.column[c] - text_width(text);
		screen_text(s, x + (pad > 0 ? pad : 0), y, w.column[c], c == LOST || c == SHARE ? steal : style, text);
		x += w.column[c] + 1;
	}
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
	const size_t threads = pane->lines - p->machines;
	int m = snprintf(all, sizeof all, ": %zu machine%s, %zu %s%s", p->machines, p->machines == 1 ? "" : "s", threads,
	                 what[p->grouping], threads == 1 ? "" : p->grouping == GROUP_BY_PROCESS ? "es" : "s");
	snprintf(buf + n, size - (size_t)n, "%s ", n + m + 4 < w ? all : "");
}

static void overview_get_status_text(const struct app *app, const struct pane *pane, size_t i, char *buf, size_t size)
{
	const struct overview *p = (const struct overview *)pane;
	const struct summary_row *r = overview_line(pane, i);
	const struct demand *d = &r->demand;
	char title[256], by[300], lost[TIME_TEXT], runnable[TIME_TEXT], longest[200];
	overview_row_text(app, r, title, sizeof title);
	if (!catalog_has_host_trace(&app->catalog, &r->target)) {
		snprintf(buf, size, "%s: time taken by its host is unknown (no host trace)", title);
		return;
	}
	int n = snprintf(buf, size, "%s lost %s of %s runnable time", title, time_duration(lost, d->lost),
	                 time_duration(runnable, d->ran + d->lost));
	if (p->has_gaps && r->gaps && n > 0 && (size_t)n < size)
		snprintf(buf + n, size - (size_t)n, ", %.0f %% taken by %s; longest wait %s",
		         100 * share_of(r->culprit_ns, r->demand.lost), overview_culprit_text(app, p, r, by, sizeof by),
		         longest_text(app, p, r, false, longest, sizeof longest) + strspn(longest, " "));
}

static void overview_get_file_name(const struct app *app, const struct pane *pane, char *buf, size_t size)
{
	(void)app;
	(void)pane;
	snprintf(buf, size, "summary");
}

static int overview_export(struct app *app, struct pane *pane, FILE *f, enum report_format format, struct error *err)
{
	struct origin o;
	if (!overview_state(pane)->has_gaps)
		return error_set(err, STATUS_USAGE, "wait until they are complete", "the gaps are still being computed");
	export_origin(app, pane, NULL, &o);
	const struct summary_parts parts = { .s = &overview_state(pane)->s };
	int rc = report_summary(f, REPORT_WHOLE(format), &app->catalog, &parts, &o, err);
	origin_release(&o);
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
	if (app->pane_below == &p->pane) {
		pane_close(app);
		return;
	}
	struct view before = app->view;
	if (p->return_view.step > 0) {
		/* the columns for which the window of return_view was chosen */
		app_layout(app, overview_label_width(&p->pane, app->w));
		app->view = p->return_view;
		app_refit(app);
		undo_push(&app->undo, &before);
	}
	pane_open(app, PANE_OVERVIEW);
}

const struct pane_ops overview_pane = {
	.size = sizeof(struct overview), .replaces_rows = true, .open = overview_open, .closed = overview_closed,
	.refresh = overview_refresh,
	.window = overview_window, .query = overview_open_query, .take = overview_take_answer, .arrange = overview_make_lines,
	.sort = overview_sort_next, .group = overview_group_next, .name = overview_get_name, .title = overview_get_title,
	.label_width = overview_label_width, .heading = overview_draw_headings,
	.press_heading = overview_press_heading,
	.line = overview_draw_line, .follow = overview_follow_line, .cursor_moved = overview_select_row,
	.tab = overview_jump_group, .status_text = overview_get_status_text, .file = overview_get_file_name,
	.export = overview_export, .remap = overview_remap_rows, .drop_answer = overview_drop_answer,
};
