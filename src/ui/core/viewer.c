/* Life cycle of the viewer: start, end, the history's change, and background work between keys. */
#include "ui/core/viewer.h"

#include "base/base.h"
#include "ui/core/bookmarks.h"
#include "ui/core/row_search.h"
#include "ui/core/follow_cause.h"
#include "ui/core/gap_search.h"
#include "ui/core/clock_offset.h"
#include "ui/panes/pane.h"
#include "ui/widgets/lane_names.h"
#include "ui/widgets/verdict_line.h"
#include "ui/widgets/window_sums.h"
#include "ui/widgets/widgets.h"
#include "ui/widgets/status.h"
#include "ui/core/file_watch.h"

#define FIRST_SCAN_NS 10000000  /* time slice of the thread scan before the first frame, ns */
#define ANSWER_WAIT_NS 4000000    /* longest time that a frame waits for answers, ns */

/* Applies the settings of the configuration that the command line does not override. */
static void apply_config(struct app *app, const struct ui_options *options, const struct config *config)
{
	static const char *const format[TIME_FORMATS] = { "wall", "relative", "trace" };
	const char *color = options->color ? options->color : config->color;
	app->mouse = config->mouse;
	for (int f = 0; f < TIME_FORMATS; f++)
		if (config->time && strcmp(config->time, format[f]) == 0)
			app->axis.format = (enum time_format)f;
	snprintf(app->appearance.color, sizeof app->appearance.color, "%s", color ? color : "");
}

static int choose_appearance(struct app *app, const struct ui_options *options, const struct config *config,
                       struct error *err)
{
	const char *theme = options->theme ? options->theme : config->theme;
	const char *glyphs = options->glyphs ? options->glyphs : config->glyphs;
	app->appearance.depth = DEPTH_256;
	app->appearance.tier = app->appearance.best_tier = TIER_BLOCKS;
	if (theme_load(&app->appearance.theme, theme, err) < 0)
		return -1;
	app->appearance.follows_background = !theme;
	theme_palette(&app->appearance.theme, app->appearance.depth, &app->appearance.palette);
	for (int t = 0; glyphs && t < TIERS; t++)
		if (strcmp(glyphs, tier_name[t]) == 0)
			return app->appearance.tier = (enum tier)t, 0;
	if (glyphs)
		return error_set(err, STATUS_USAGE, "choose from ascii, cells, blocks", "--glyphs %s: invalid value", glyphs);
	return 0;
}

static int load_config(struct app *app, const struct ui_options *options, struct error *err)
{
	struct config config;
	int status = config_load(&config, &app->keymap, options->config, err);
	if (status == 0)
		status = choose_appearance(app, options, &config, err);
	apply_config(app, options, &config);
	config_release(&config);
	return status;
}

static int open_catalog(struct app *app, const struct ui_traces *traces, struct error *err)
{
	int64_t duration;
	if (__builtin_sub_overflow(history_end(app->h), history_begin(app->h), &duration) || duration < 0 ||
	    duration > INT64_MAX / 4)
		return error_set(err, STATUS_INPUT, "index the traces again", "%s: invalid time range",
		                 history_file(app->h));
	if (catalog_open(&app->catalog, app->h, err) < 0)
		return -1;
	if (app->catalog.machines == 0)
		return error_set(err, STATUS_INPUT, "build it with stealscope index", "%s: contains no machines",
		                 history_file(app->h));
	app->traces = traces;
	app->queries = async_open();
	return app->queries ? 0 : error_system(err, NULL, "cannot start a thread");
}

static bool shows_whole_trace(const struct app *app)
{
	return app->view.step > 0 && app->view.t0 <= app->bounds.begin &&
	       view_last(&app->view, &app->bounds) >= app->bounds.end;
}

/* Reads states, clock offsets and bounds of a history that replaces the previous one. */
static void prepare_history(struct app *app)
{
	bool was_whole = shows_whole_trace(app);
	appearance_read_states(app);
	manual_offset_update_list(app);
	file_watch_begin(app);
	minimap_forget(app);
	lane_names_forget(app);
	verdict_line_forget(app);
	app->bounds.begin = history_begin(app->h);
	app->bounds.end = history_end(app->h);
	app->axis.origin = app->axis.format == TIME_RELATIVE && app->view.a != VIEW_NONE ? app->view.a : app->bounds.begin;
	viewer_resize(app, app->w, app->h_cells);
	if (was_whole)
		view_whole(&app->view, &app->bounds);
}

int viewer_init(struct app *app, const struct history *h, const struct ui_options *options, struct error *err)
{
	*app = (struct app){ .h = h, .first = h,
		.w = options->width ? options->width : 80, .h_cells = options->height ? options->height : 24 };
	keymap_init(&app->keymap);
	row_search_init(app);
	gap_search_init(app);
	follow_init(app);
	status_init(app);
	manual_offset_init(app, options->clocks);
	panes_init(app);
	file_watch_init(app);
	minimap_init(app);
	lane_names_init(app);
	verdict_line_init(app);
	app->window_sums = window_sums_new();
	if (load_config(app, options, err) < 0 || open_catalog(app, options->traces, err) < 0) {
		viewer_release(app);
		return -1;
	}
	rows_init(&app->rows, &app->catalog);
	app->view = (struct view){ .a = VIEW_NONE, .b = VIEW_NONE, .range = VIEW_NONE, .cursor = history_begin(h) };
	prepare_history(app);
	view_whole(&app->view, &app->bounds);
	bookmarks_load(app, options->bookmarks);
	rows_scan_start(&app->rows, app->bounds.begin, app->bounds.end);
	rows_build(&app->rows);
	app->view.row = app->rows.len ? app->rows.row[0].id : (struct row_id){ ROW_THREAD, 0 };
	bool changed;
	viewer_work(app, FIRST_SCAN_NS, &changed);
	char keys[64];
	if (options->greeting)
		app_message(app, "%s (%s: all notes)", options->greeting,
		        keymap_text(&app->keymap, ACT_DETAILS, keys, sizeof keys));
	return 0;
}

void viewer_release(struct app *app)
{
	manual_offset_release(app);
	async_close(app->queries);
	panes_release(app);
	row_search_release(app);
	gap_search_release(app);
	follow_release(app);
	status_release(app);
	file_watch_release(app);
	minimap_release(app);
	lane_names_release(app);
	verdict_line_release(app);
	window_sums_free(app->window_sums);
	prompt_release(&app->prompt);
	rows_release(&app->rows);
	catalog_release(&app->catalog);
	keymap_release(&app->keymap);
	if (app->h != app->first)
		history_close((struct history *)(uintptr_t)app->h);
	free(app->appearance.owner);
	free(app->line_row);
	free(app->clipboard);
}

void viewer_resize(struct app *app, int w, int h)
{
	app->w = w;
	app->h_cells = h;
	free(app->line_row);
	app->line_row = mem_new((size_t)(h > 0 ? h : 1), sizeof *app->line_row);
	for (int i = 0; i < h; i++)
		app->line_row[i].kind = ROW_KINDS;
	app_layout(app, panes_label_w(app, app->pane_below));
	status_forget(app);
}

static bool scan_threads(struct app *app, int64_t budget_ns, bool *changed)
{
	struct error err = ERROR_INIT;
	if (rows_scan_done(&app->rows))
		return false;
	int done = rows_scan_step(&app->rows, budget_ns, &err);
	if (done < 0) {
		app_fail(app, &err);
		app->rows.scan.next = app->catalog.threads;
	}
	*changed |= done != 0;
	return !rows_scan_done(&app->rows);
}

static void remap_rows(struct app *app, const struct rows *new)
{
	const struct rows *old = &app->rows;
	app->view.row = row_remap(old, new, app->view.row);
	for (size_t i = 0; i < app->pins; i++)
		app->pin[i] = row_remap(old, new, app->pin[i]);
	for (size_t i = 0; i < app->undo.len; i++)
		app->undo.past[i].row = row_remap(old, new, app->undo.past[i].row);
	row_search_remap(app, old, new);
	follow_remap(app, old, new);
	panes_remap(app, old, new);
}

/* Replaces the history by another history of the same machines; keeps the view. */
static void replace_history(struct app *app, struct history *h, const struct catalog *catalog, struct rows *rows)
{
	const struct history *old = app->h;
	size_t at = rows_find_near(&app->rows, app->view.row), line = at > app->top ? at - app->top : 0;
	rows_copy_state(&app->rows, rows);
	remap_rows(app, rows);
	rows->kept = app->view.row;
	follow_drop(app);
	gap_search_stop(app);
	async_drain(app->queries);
	window_sums_drop(app);
	rows_release(&app->rows);
	catalog_release(&app->catalog);
	app->h = h;
	app->catalog = *catalog;
	app->rows = *rows;
	app->rows.catalog = &app->catalog;
	if (old != app->first && old != h)
		history_close((struct history *)(uintptr_t)old);
	rows_build(&app->rows);
	at = rows_find_near(&app->rows, app->view.row);
	app->top = at > line ? at - line : 0;
	app->row_chosen = true;
	status_forget(app);
	prepare_history(app);
}

bool viewer_work(struct app *app, int64_t budget_ns, bool *changed)
{
	struct history *h;
	struct catalog catalog;
	struct rows rows;
	*changed = false;
	if (file_watch_is_changed(app))
		return false;
	if (manual_offset_take(app, &h, &catalog, &rows, changed))
		replace_history(app, h, &catalog, &rows);
	struct view before = app->view;
	if (follow_work(app)) {
		undo_push(&app->undo, &before);
		*changed = true;
	}
	return gap_search_work(app, budget_ns, changed) || scan_threads(app, budget_ns, changed) ||
	       lane_names_work(app, budget_ns, changed) || minimap_work(app, budget_ns, changed);
}

void viewer_reload(struct app *app)
{
	struct error err = ERROR_INIT;
	struct catalog catalog;
	struct rows rows;
	struct history *h = history_open(history_file(app->h), &err);
	if (!h || catalog_open(&catalog, h, &err) < 0 || catalog.machines == 0) {
		if (h && !err.text[0])
			error_set(&err, STATUS_INPUT, NULL, "%s: contains no machines", history_file(h));
		history_close(h);
		app_fail(app, &err);
		return;
	}
	rows_init(&rows, &catalog);
	rows.sort = app->rows.sort;
	rows_scan_start(&rows, history_begin(h), history_end(h));
	manual_offset_end(app);  /* the manual offsets apply to the history that ui_run() opened */
	replace_history(app, h, &catalog, &rows);
	app_message(app, "reloaded");
}

void viewer_begin_frame(struct app *app)
{
	if (app->answer_deadline < now_ns())
		app->answer_deadline = now_ns() + ANSWER_WAIT_NS;
}
