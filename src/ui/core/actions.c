/* Applies actions (keys.h) to the state of the viewer. */
#include "base/base.h"
#include "ui/core/bookmarks.h"
#include "ui/input/command.h"
#include "ui/core/row_search.h"
#include "ui/core/follow_cause.h"
#include "ui/core/gap_search.h"
#include "ui/panes/overview.h"
#include "ui/panes/pane.h"
#include "ui/widgets/widgets.h"
#include "ui/widgets/status.h"
#include "ui/widgets/verdict_line.h"
#include "ui/widgets/window_sums.h"

static void select_relative(struct app *app, int64_t by)
{
	int64_t at = (int64_t)rows_find_near(&app->rows, app->view.row) + by;
	app_select(app, at < 0 ? 0 : (size_t)at);
	app->row_chosen = true;
}

/* Runs an action that selects a row. Returns false if the action is of another kind. */
static bool run_row_action(struct app *app, enum action action, int64_t n)
{
	int64_t page = app->rows_shown > 2 ? app->rows_shown - 1 : 1;
	switch (action) {
	case ACT_DOWN: select_relative(app, n); return true;
	case ACT_UP: select_relative(app, -n); return true;
	case ACT_PAGE_DOWN: select_relative(app, n * page); return true;
	case ACT_PAGE_UP: select_relative(app, -n * page); return true;
	case ACT_HALF_DOWN: select_relative(app, (n * page + 1) / 2); return true;
	case ACT_HALF_UP: select_relative(app, -(n * page + 1) / 2); return true;
	case ACT_FIRST: app_select(app, 0); app->row_chosen = true; return true;
	case ACT_LAST: app_select(app, app->rows.len); app->row_chosen = true; return true;
	default: return false;
	}
}

static void toggle_fold(struct app *app)
{
	struct row_id id = app->view.row;
	size_t at = rows_find_near(&app->rows, id);
	if (!rows_toggle(&app->rows, at)) {  /* the row does not fold: fold or unfold its parent */
		int32_t home = id.kind == ROW_THREAD ? app->rows.info[id.index].home : -1;
		uint32_t m = row_machine(&app->rows, id);
		struct row_id whole = { ROW_MACHINE, m };
		if (id.kind == ROW_PROVIDER)
			home = (int32_t)id.index;
		struct row_id holder = { home >= 0 ? ROW_CPU : id.kind == ROW_REQUEST ? ROW_REQUESTS : ROW_GROUP,
			home >= 0 ? (uint32_t)home : m };
		if (id.kind == ROW_THREAD && app->rows.info[id.index].slept)
			holder = (struct row_id){ ROW_SLEEPERS, home >= 0 ? (uint32_t)home : app->catalog.cpus + m };
		at = rows_find(&app->rows, holder);
		if (!rows_toggle(&app->rows, at) && !rows_toggle(&app->rows, rows_find(&app->rows, whole)))
			app_message(app, "nothing to fold here");
	}
	app_select(app, rows_find_near(&app->rows, id));
}

static void toggle_all_folds(struct app *app)
{
	if (!rows_toggle_all(&app->rows))
		app_message(app, "machines stay unfolded while a filter is set (Esc clears it)");
	app_select(app, rows_find_near(&app->rows, app->view.row));
}

static void sort_next(struct app *app)
{
	static const char *const name[SORT_COUNT] = { "lost time", "time lost in this window", "name", "id" };
	enum row_sort next = (enum row_sort)((app->rows.sort + 1) % SORT_COUNT);
	app_message(app, "sorted by %s", name[next]);
	if (next == SORT_WINDOW || next == SORT_LOST) {
		bool window = next == SORT_WINDOW;
		app->rows.sort = next;
		app->row_chosen = true;
		rows_scan_start(&app->rows, window ? app->view.t0 : app->bounds.begin,
		                  window ? view_last(&app->view, &app->bounds) : app->bounds.end);
		return;
	}
	rows_sort(&app->rows, next);
	rows_build(&app->rows);
}

void action_hide_idle(struct app *app, bool hide)
{
	app->rows.hide_idle = hide;
	rows_build(&app->rows);
	app_select(app, rows_find_near(&app->rows, app->view.row));
	if (app->rows.hide_idle)
		app_message(app, "threads hidden: %zu (idle: less than 10 ms, or 0.1 %%; or not alive here)", app->rows.hidden);
	else
		app_message(app, "all threads are shown");
}

static void toggle_pin(struct app *app)
{
	for (size_t i = 0; i < app->pins; i++) {
		if (row_same(app->pin[i], app->view.row)) {
			memmove(app->pin + i, app->pin + i + 1, (app->pins - i - 1) * sizeof *app->pin);
			app->pins--;
			return;
		}
	}
	if (app->pins == sizeof app->pin / sizeof *app->pin)
		app_message(app, "%zu rows are pinned already; p on one of them unpins it", app->pins);
	else
		app->pin[app->pins++] = app->view.row;
}

static void open_search_prompt(struct app *app, enum prompt_kind kind, const char *initial)
{
	row_search_begin(app);
	app_prompt(app, kind, initial);
}

static bool run_row_list_action(struct app *app, enum action action)
{
	switch (action) {
	case ACT_FOLD: toggle_fold(app); return true;
	case ACT_FOLD_ALL: toggle_all_folds(app); return true;
	case ACT_SORT: sort_next(app); return true;
	case ACT_IDLE: action_hide_idle(app, !app->rows.hide_idle); return true;
	case ACT_PIN: toggle_pin(app); return true;
	case ACT_SEARCH: open_search_prompt(app, PROMPT_SEARCH, ""); return true;
	case ACT_SEARCH_NEXT: row_search_next(app, 1); return true;
	case ACT_SEARCH_PREV: row_search_next(app, -1); return true;
	case ACT_FILTER: open_search_prompt(app, PROMPT_FILTER, app->rows.filter); return true;
	default: return false;
	}
}

static bool run_time_action(struct app *app, enum action action, int64_t n)
{
	struct view *v = &app->view;
	const struct view_bounds *g = &app->bounds;
	int64_t quarter = g->cols > 4 ? g->cols / 4 : 1;
	switch (action) {
	case ACT_LEFT: view_move(v, g, -n); return true;
	case ACT_RIGHT: view_move(v, g, n); return true;
	case ACT_PAN_LEFT: view_pan(v, g, -n * quarter); return true;
	case ACT_PAN_RIGHT: view_pan(v, g, n * quarter); return true;
	case ACT_WINDOW_LEFT: view_pan(v, g, -n * g->cols); return true;
	case ACT_WINDOW_RIGHT: view_pan(v, g, n * g->cols); return true;
	case ACT_ZOOM_IN: view_zoom(v, g, 1, INT64_C(1) << (n < 40 ? n : 40)); return true;
	case ACT_ZOOM_OUT: view_zoom(v, g, INT64_C(1) << (n < 40 ? n : 40), 1); return true;
	case ACT_ZOOM_IN_8: view_zoom(v, g, 1, 8); return true;
	case ACT_ZOOM_OUT_8: view_zoom(v, g, 8, 1); return true;
	case ACT_WHOLE: view_whole(v, g); return true;
	case ACT_START: view_goto(v, g, g->begin); return true;
	case ACT_END: view_goto(v, g, g->end); return true;
	default: return false;
	}
}

static void move_to_interval(struct app *app, int direction, int64_t n)
{
	struct interval iv;
	for (int64_t i = 0; i < n && app_interval(app, app->view.row, app->view.cursor, &iv); i++) {
		if (direction > 0 && iv.end < app->bounds.end)
			view_goto(&app->view, &app->bounds, iv.end + 1);
		else if (direction < 0 && iv.start > app->bounds.begin) {
			if (!app_interval(app, app->view.row, iv.start - 1, &iv))
				return;
			view_goto(&app->view, &app->bounds, iv.start);
		} else {
			app_message(app, "this is the %s interval of the row", direction > 0 ? "last" : "first");
			return;
		}
	}
}

static void centre_interval(struct app *app)
{
	struct interval iv;
	if (!app_interval(app, app->view.row, app->view.cursor, &iv))
		return;
	if (app->last == ACT_CENTRE)
		view_fit(&app->view, &app->bounds, iv.start, iv.end, 1, 1);
	else
		view_centre(&app->view, &app->bounds, iv.start, iv.end);
}

static void zoom_markers(struct app *app)
{
	const bool range = app->view.range != VIEW_NONE && app->view.range != app->view.cursor;
	int64_t a = range ? app->view.range : app->view.a, b = range ? app->view.cursor : app->view.b;
	app->view.range = range ? VIEW_NONE : app->view.range;
	if (a == VIEW_NONE || b == VIEW_NONE)
		app_message(app, "select a range with v or the mouse, or set marker A with ( and B with )");
	else
		view_fit(&app->view, &app->bounds, a < b ? a : b, a < b ? b : a, 1, 1);
}

static void set_marker(struct app *app, int64_t *marker)
{
	*marker = *marker == app->view.cursor ? VIEW_NONE : app->view.cursor;
}

/* Goes back one level: from a pane to the timeline, from the timeline to the overview, from there out. */
static void action_go_back(struct app *app)
{
	if (pane_is_below(app))
		pane_close(app);
	else if (app->pane_below)
		app->quit = true;
	else
		overview_back(app);
}

static void clear_selection(struct app *app)
{
	if (app->view.range == VIEW_NONE && !app->rows.filter[0]) {
		action_go_back(app);
		return;
	}
	app->view.range = VIEW_NONE;
	if (app->rows.filter[0])
		row_filter_set(app, "");
}

static bool run_interval_action(struct app *app, enum action action, int64_t n)
{
	switch (action) {
	case ACT_NEXT_GAP: gap_search_start(app, 1, n, false); return true;
	case ACT_PREV_GAP: gap_search_start(app, -1, n, false); return true;
	case ACT_NEXT_GAP_FIT: gap_search_start(app, 1, n, true); return true;
	case ACT_PREV_GAP_FIT: gap_search_start(app, -1, n, true); return true;
	case ACT_NEXT_INTERVAL: move_to_interval(app, 1, n); return true;
	case ACT_PREV_INTERVAL: move_to_interval(app, -1, n); return true;
	case ACT_CAUSE: follow_cause(app); return true;
	case ACT_CAUSE_BACK: follow_back(app); return true;
	case ACT_CENTRE: centre_interval(app); return true;
	case ACT_MARK_A: set_marker(app, &app->view.a); return true;
	case ACT_MARK_B: set_marker(app, &app->view.b); return true;
	case ACT_ZOOM_MARKERS: zoom_markers(app); return true;
	case ACT_RANGE: app->view.range = app->view.range == VIEW_NONE ? app->view.cursor : VIEW_NONE; return true;
	case ACT_CLEAR: clear_selection(app); return true;
	case ACT_BOOKMARK: bookmarks_add(app, ""); return true;
	default: return false;
	}
}

void action_time_format(struct app *app, enum time_format format)
{
	static const char *const name[TIME_FORMATS] = { "wall clock", "seconds from marker A", "seconds from the start" };
	app->axis.format = format;
	status_forget(app);
	char day[TIME_TEXT];
	time_date(day, app->view.cursor, 0);
	const bool wall = app->axis.format == TIME_WALL;  /* the date, because the header may be too narrow for it */
	app_message(app, "times: %s%s%.*s%s", name[app->axis.format], wall ? ", " : "", wall ? TIME_DATE : 0, day,
	        wall ? day + strlen(day) - TIME_ZONE : "");
}

static enum time_format next_time_format(const struct app *app)
{
	const enum time_format next = (enum time_format)((app->axis.format + 1) % TIME_FORMATS);
	return next == TIME_RELATIVE && app->view.a == VIEW_NONE ? TIME_TRACE : next;
}

static void run_pane_action(struct app *app, enum action action, int64_t n)
{
	switch (action) {
	case ACT_FLOW:
		if (row_folds(app->view.row))
			toggle_fold(app);
		else
			pane_open(app, PANE_FLOW);
		break;
	case ACT_PANE_DOWN: pane_move(app, n); break;
	case ACT_PANE_UP: pane_move(app, -n); break;
	case ACT_FOCUS:
		if (!window_sums_next(app))
			pane_focus(app);
		break;
	case ACT_GROUP:
		if (pane_open(app, PANE_OVERVIEW))
			app->pane_below->ops->group(app, app->pane_below);
		break;
	case ACT_BACK: overview_back(app); break;
	case ACT_EXPORT: export_prompt(app); break;
	case ACT_COPY: app_copy(app, verdict_line_sentence(app, NULL, status_sentence(app))); break;
	case ACT_COMMAND: app_prompt(app, PROMPT_COMMAND, ""); break;
	case ACT_FINDING_1: case ACT_FINDING_2: case ACT_FINDING_3:
		verdict_line_go(app, (size_t)(action - ACT_FINDING_1));
		break;
	case ACT_TIME_FORMAT: action_time_format(app, next_time_format(app)); break;
	case ACT_UNIT: lost_next_unit(app); break;
	case ACT_TIER: appearance_next_tier(app); break;
	case ACT_REDRAW: app->redraw = true; break;
	case ACT_QUIT:
		action_go_back(app);
		break;
	case ACT_EXIT: app->quit = true; break;
	default: pane_action(app, action); break;
	}
}

/* Returns true if the change needs no undo entry: the views are equal, or differ only in cursor and row after a small
 * step. */
static bool needs_no_undo(const struct view *a, const struct view *b, bool small)
{
	if (a->t0 != b->t0 || a->step != b->step || a->a != b->a || a->b != b->b || a->range != b->range)
		return false;
	return small || (a->cursor == b->cursor && row_same(a->row, b->row));
}

void action_do(struct app *app, enum action action)
{
	struct view before = app->view;
	const int cols = app->bounds.cols;
	int64_t n = app->count ? app->count : 1;
	if (action == ACT_UNDO || action == ACT_REDO) {
		if (!(action == ACT_UNDO ? undo_back : undo_forward)(&app->undo, &app->view)) {
			app_message(app, "nothing to %s", action == ACT_UNDO ? "undo" : "redo");
		} else {
			app_refit(app);
			app_show_row(app, app->view.row);
		}
	} else {
		bool small = run_row_action(app, action, n) || action == ACT_LEFT || action == ACT_RIGHT;
		if (!run_time_action(app, action, n) && !small && !run_row_list_action(app, action) &&
		    !run_interval_action(app, action, n))
			run_pane_action(app, action, n);
		if (app->bounds.cols != cols && app_window_is_unchanged(app)) {
			before.t0 = app->view.t0;
			before.step = app->view.step;
			before.cols = app->view.cols;
		}
		if (!needs_no_undo(&before, &app->view, small))
			undo_push(&app->undo, &before);
	}
	app->axis.origin = app->axis.format == TIME_RELATIVE && app->view.a != VIEW_NONE ? app->view.a : app->bounds.begin;
}
