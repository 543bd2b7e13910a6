/* Life of the viewer, and its work beside the keys. */
#include "ui/core/viewer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/clock.h"
#include "ui/core/bookmarks.h"
#include "ui/core/row_search.h"
#include "ui/core/follow_cause.h"
#include "ui/core/gap_search.h"
#include "ui/core/clock_offset.h"
#include "ui/panes/pane.h"
#include "ui/widgets/widgets.h"
#include "ui/widgets/status.h"
#include "ui/core/file_watch.h"

#define FIRST_SURVEY_NS 10000000  /* work on the survey before the first frame */
#define ANSWER_NS 4000000         /* a frame waits so long for answers, then it is drawn without */

/* Takes over what the configuration says and the command line does not. */
static void choose_habits(struct app *app, const struct ui_options *options, const struct config *config)
{
	static const char *const format[TIME_FORMATS] = { "wall", "relative", "trace" };
	const char *color = options->color ? options->color : config->color;
	app->mouse = config->mouse;
	for (int f = 0; f < TIME_FORMATS; f++)
		if (config->time && strcmp(config->time, format[f]) == 0)
			app->axis.format = (enum time_format)f;
	snprintf(app->look.color, sizeof app->look.color, "%s", color ? color : "");
}

static int choose_look(struct app *app, const struct ui_options *options, const struct config *config,
                       struct error *err)
{
	const char *theme = options->theme ? options->theme : config->theme;
	const char *glyphs = options->glyphs ? options->glyphs : config->glyphs;
	app->look.depth = DEPTH_256;
	app->look.tier = app->look.best_tier = TIER_BLOCKS;
	if (theme_load(&app->look.theme, theme, err) < 0)
		return -1;
	theme_palette(&app->look.theme, app->look.depth, &app->look.palette);
	for (int t = 0; glyphs && t < TIERS; t++)
		if (strcmp(glyphs, tier_name[t]) == 0)
			return app->look.tier = (enum tier)t, 0;
	if (glyphs)
		return error_set(err, STATUS_USAGE, "ascii, cells or blocks", "--glyphs %s: no such tier", glyphs);
	return 0;
}

static int configure(struct app *app, const struct ui_options *options, struct error *err)
{
	struct config config;
	int status = config_load(&config, &app->keymap, options->config, err);
	if (status == 0)
		status = choose_look(app, options, &config, err);
	choose_habits(app, options, &config);
	config_release(&config);
	return status;
}

static int open_topology(struct app *app, const struct ui_traces *traces, struct error *err)
{
	int64_t span;
	if (__builtin_sub_overflow(history_end(app->h), history_begin(app->h), &span) || span < 0 || span > INT64_MAX / 4)
		return error_set(err, STATUS_INPUT, "index the traces again", "%s: its time span makes no sense",
		                 history_file(app->h));
	if (topo_open(&app->topo, app->h, err) < 0)
		return -1;
	if (app->topo.machines == 0)
		return error_set(err, STATUS_INPUT, "build it from traces with stealscope index", "%s: holds no machines to show",
		                 history_file(app->h));
	app->asker = asker_open(&app->topo, traces);
	return app->asker ? 0 : error_system(err, NULL, "starting a thread");
}

static bool sees_whole(const struct app *app)
{
	return app->view.step > 0 && app->view.t0 <= app->ground.begin &&
	       view_last(&app->view, &app->ground) >= app->ground.end;
}

/* A history that was not shown before. */
static void meet(struct app *app)
{
	bool whole = sees_whole(app);
	look_learn(app);
	nudge_met(app);
	watch_begin(app);
	minimap_forget(app);
	app->ground.begin = history_begin(app->h);
	app->ground.end = history_end(app->h);
	app->axis.origin = app->axis.format == TIME_RELATIVE && app->view.a != VIEW_NONE ? app->view.a : app->ground.begin;
	viewer_resize(app, app->w, app->h_cells);
	if (whole)
		view_whole(&app->view, &app->ground);
}

int viewer_init(struct app *app, const struct history *h, const struct ui_options *options, struct error *err)
{
	*app = (struct app){ .h = h, .first = h,
		.w = options->width ? options->width : 80, .h_cells = options->height ? options->height : 24 };
	keymap_init(&app->keymap);
	find_init(app);
	hunt_init(app);
	follow_init(app);
	status_init(app);
	nudge_init(app, options->clocks);
	panes_init(app);
	watch_init(app);
	minimap_init(app);
	if (configure(app, options, err) < 0 || open_topology(app, options->traces, err) < 0) {
		viewer_release(app);
		return -1;
	}
	rows_init(&app->rows, &app->topo);
	app->view = (struct view){ .a = VIEW_NONE, .b = VIEW_NONE, .range = VIEW_NONE, .cursor = history_begin(h) };
	meet(app);
	view_whole(&app->view, &app->ground);
	bookmarks_load(app, options->bookmarks);
	rows_survey_start(&app->rows, app->ground.begin, app->ground.end);
	rows_build(&app->rows);
	app->view.row = rows_worst(&app->rows);
	bool changed;
	viewer_work(app, FIRST_SURVEY_NS, &changed);
	char keys[64];
	if (options->greeting)
		app_say(app, "%s (%s: all notes)", options->greeting,
		        keymap_text(&app->keymap, ACT_DETAILS, keys, sizeof keys));
	return 0;
}

void viewer_release(struct app *app)
{
	nudge_release(app);
	asker_close(app->asker);
	panes_release(app);
	find_release(app);
	hunt_release(app);
	follow_release(app);
	status_release(app);
	watch_release(app);
	minimap_release(app);
	prompt_release(&app->prompt);
	rows_release(&app->rows);
	topo_release(&app->topo);
	keymap_release(&app->keymap);
	if (app->h != app->first)
		history_close((struct history *)(uintptr_t)app->h);
	free(app->look.owner);
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
	app_layout(app, panes_label_w(app, app->below));
	status_forget(app);
}

/* The row that lost most; and where it is not alive yet when the trace begins, the moment when its life begins, unless
 * the user looks elsewhere already. */
static void choose_row(struct app *app)
{
	struct row_id best = rows_worst(&app->rows);
	rows_reveal(&app->rows, best);
	app->view.row = best;
	uint32_t attr = row_attr(&app->rows, best);
	struct interval iv;
	if (app->view.cursor == app->ground.begin && attr != HISTORY_NONE &&
	    history_stab(app->h, attr, app->view.cursor, &iv, NULL) == 0 && iv.value == HISTORY_NULL &&
	    iv.end < app->ground.end)
		view_goto(&app->view, &app->ground, iv.end + 1);
}

static bool survey(struct app *app, int64_t budget_ns, bool *changed)
{
	struct error err = ERROR_INIT;
	if (rows_survey_done(&app->rows))
		return false;
	int done = rows_survey_step(&app->rows, budget_ns, &err);
	if (done < 0) {
		app_fail(app, &err);
		app->rows.survey.next = app->topo.threads;
	}
	*changed |= done != 0;
	if (done > 0 && !app->moved)
		choose_row(app);
	return !rows_survey_done(&app->rows);
}

static void carry_rows(struct app *app, const struct rows *is)
{
	const struct rows *was = &app->rows;
	app->view.row = row_again(was, is, app->view.row);
	for (size_t i = 0; i < app->pins; i++)
		app->pin[i] = row_again(was, is, app->pin[i]);
	for (size_t i = 0; i < app->undo.len; i++)
		app->undo.past[i].row = row_again(was, is, app->undo.past[i].row);
	find_carry(app, was, is);
	follow_carry(app, was, is);
	panes_carry(app, was, is);
}

/* Another history of the same machines, at the same place. */
static void adopt(struct app *app, struct history *h, const struct topo *topo, struct rows *rows)
{
	const struct history *old = app->h;
	size_t at = rows_find_near(&app->rows, app->view.row), line = at > app->top ? at - app->top : 0;
	rows_carry(&app->rows, rows);
	carry_rows(app, rows);
	follow_drop(app);
	hunt_stop(app);
	asker_rest(app->asker);
	rows_release(&app->rows);
	topo_release(&app->topo);
	app->h = h;
	app->topo = *topo;
	app->rows = *rows;
	app->rows.topo = &app->topo;
	if (old != app->first && old != h)
		history_close((struct history *)(uintptr_t)old);
	rows_build(&app->rows);
	at = rows_find_near(&app->rows, app->view.row);
	app->top = at > line ? at - line : 0;
	app->moved = true;
	status_forget(app);
	meet(app);
}

bool viewer_work(struct app *app, int64_t budget_ns, bool *changed)
{
	struct history *h;
	struct topo topo;
	struct rows rows;
	*changed = false;
	if (watch_torn(app))
		return false;
	if (nudge_take(app, &h, &topo, &rows, changed))
		adopt(app, h, &topo, &rows);
	struct view before = app->view;
	if (follow_work(app)) {
		undo_push(&app->undo, &before);
		*changed = true;
	}
	return hunt_work(app, budget_ns, changed) || survey(app, budget_ns, changed) ||
	       minimap_work(app, budget_ns, changed);
}

void viewer_reload(struct app *app)
{
	struct error err = ERROR_INIT;
	struct topo topo;
	struct rows rows;
	struct history *h = history_open(history_file(app->h), &err);
	if (!h || topo_open(&topo, h, &err) < 0 || topo.machines == 0) {
		if (h && !err.text[0])
			error_set(&err, STATUS_INPUT, NULL, "%s: holds no machines to show", history_file(h));
		history_close(h);
		app_fail(app, &err);
		return;
	}
	rows_init(&rows, &topo);
	rows.sort = app->rows.sort;
	rows_survey_start(&rows, history_begin(h), history_end(h));
	nudge_end(app);  /* it knows the history that was opened first */
	adopt(app, h, &topo, &rows);
	app_say(app, "read again");
}

void viewer_begin_frame(struct app *app)
{
	if (app->answer_by < now_ns())
		app->answer_by = now_ns() + ANSWER_NS;
}
