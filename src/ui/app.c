/* Life of the viewer, its modes, and where keys go.  See app.h. */
#include "ui/app.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"

#define FIRST_SURVEY_NS 10000000  /* work on the survey before the first frame */
#define ANSWER_NS 4000000           /* a frame waits so long for answers, then it is drawn without */
#define PATIENCE_NS INT64_C(1000000000000)
#define LEAST_GAP_NS 100000       /* shorter gaps are not worth a stop */

const char *const tier_name[TIERS] = { [TIER_ASCII] = "ascii", [TIER_CELLS] = "cells", [TIER_BLOCKS] = "blocks" };

static int64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void app_say(struct app *app, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(app->message, sizeof app->message, fmt, ap);
	va_end(ap);
	app->message_is_error = false;
}

void app_fail(struct app *app, const struct error *err)
{
	app_say(app, "%.400s%s%.100s%s", err->text, err->mend[0] ? " (" : "", err->mend, err->mend[0] ? ")" : "");
	app->message_is_error = true;
}

bool app_answer(struct app *app, enum ask kind, struct answer *out)
{
	asker_wait(app->asker, kind, app->patient ? PATIENCE_NS : app->answer_by - now_ns());
	return asker_take(app->asker, kind, out);
}

bool app_cancel(struct app *app)
{
	bool flow = app->flow.asked, blame = app->blame.asked;
	if (flow)
		asker_drop(app->asker, ASK_FLOW);
	if (blame)
		asker_drop(app->asker, ASK_STEAL);
	app->flow.asked = app->blame.asked = false;
	if ((app->pane == PANE_FLOW && !app->flow.valid) || (app->pane == PANE_BLAME && !app->blame.valid))
		app->pane = PANE_NONE;
	return flow || blame;
}

/* Codes of the states of one attribute's state set, by their names. */
static void learn_states(const struct app *app, uint32_t attr, bool vcpu, struct vocabulary *v)
{
	unsigned n = attr == HISTORY_NONE ? 0 : history_state_count(app->h, attr);
	for (unsigned i = 0; i < HISTORY_STATES; i++) {
		enum vis code = i < n ? vis_of_name(history_state_name(app->h, attr, i)) : VIS_UNKNOWN;
		if (vcpu && code == VIS_PREEMPTED)
			code = VIS_VCPU_PREEMPTED;
		v->code[i] = (uint8_t)code;
	}
	v->code[HISTORY_STATES - 1] = VIS_NONE;
	for (int c = 0; c < VIS_COUNT; c++)
		v->severity[c] = app->theme.state[c].severity;
}

/* Owners: code 0 is idle, 1 the host, then the machines; null is HISTORY_STATES - 1. */
static void learn_owners(const struct app *app, uint32_t attr, struct vocabulary *v)
{
	unsigned n = attr == HISTORY_NONE ? 0 : history_state_count(app->h, attr), next = 2;
	v->owners = true;
	for (unsigned i = 0; i < HISTORY_STATES; i++) {
		const char *name = i < n ? history_state_name(app->h, attr, i) : "";
		bool idle = strcmp(name, "idle") == 0, host = strcmp(name, "host") == 0;
		bool unknown = i >= n || strcmp(name, "unknown") == 0, rest = strcmp(name, "other VM") == 0;
		unsigned code = idle ? 0 : host ? 1 : unknown ? OWNER_UNKNOWN : rest ? OWNER_OTHER : next;
		next += code == next && next < OWNER_OTHER - 1;
		v->code[i] = (uint8_t)code;
		v->severity[i] = 1;
	}
	v->severity[0] = 0;
	v->code[HISTORY_STATES - 1] = HISTORY_STATES - 1;
	v->severity[HISTORY_STATES - 1] = 0;
}

/* A request that is yielded waits for its thread to come back to it. */
static void learn_requests(const struct app *app, struct vocabulary *v)
{
	uint32_t attr = app->rows.requests ? app->rows.request[0].state : HISTORY_NONE;
	unsigned n = attr == HISTORY_NONE ? 0 : history_state_count(app->h, attr);
	*v = app->thread;
	for (unsigned i = 0; i + 1 < HISTORY_STATES; i++) {
		const char *name = i < n ? history_state_name(app->h, attr, i) : "";
		v->code[i] = strcmp(name, "running") == 0 ? VIS_RUNNING : strcmp(name, "yielded") == 0 ? VIS_BLOCKED : VIS_UNKNOWN;
	}
}

static void learn(struct app *app)
{
	uint32_t vcpu = HISTORY_NONE, thread = HISTORY_NONE;
	for (uint32_t c = 0; c < app->topo.cpus; c++)
		if (vcpu == HISTORY_NONE)
			vcpu = app->topo.cpu[c].status;
	for (uint32_t t = 0; t < app->topo.threads && thread == HISTORY_NONE; t++)
		thread = app->topo.thread[t].status;
	learn_states(app, vcpu, true, &app->vcpu);
	learn_states(app, thread, false, &app->thread);
	learn_requests(app, &app->request_states);
	for (uint32_t c = 0; c < app->topo.cpus; c++)
		learn_owners(app, app->topo.cpu[c].owner, &app->owner[c]);
}

void app_set_theme(struct app *app, const struct theme *theme)
{
	app->theme = *theme;
	theme_palette(&app->theme, app->depth, &app->palette);
	learn(app);
}

void app_set_depth(struct app *app, enum depth depth)
{
	app->depth = depth;
	theme_palette(&app->theme, app->depth, &app->palette);
}

/* Takes over what the configuration says and the command line does not. */
static void choose_habits(struct app *app, const struct ui_options *options, const struct config *config)
{
	static const char *const format[TIME_FORMATS] = { "wall", "relative", "trace" };
	app->mouse = config->mouse;
	for (int f = 0; f < TIME_FORMATS; f++)
		if (config->time && strcmp(config->time, format[f]) == 0)
			app->axis.format = (enum time_format)f;
	if (!options->color && config->color)
		snprintf(app->color, sizeof app->color, "%s", config->color);
	else if (options->color)
		snprintf(app->color, sizeof app->color, "%s", options->color);
}

static int choose_looks(struct app *app, const struct ui_options *options, const struct config *config,
                        struct error *err)
{
	const char *theme = options->theme ? options->theme : config->theme;
	const char *glyphs = options->glyphs ? options->glyphs : config->glyphs;
	if (theme_load(&app->theme, theme, err) < 0)
		return -1;
	app->tier = app->best_tier = TIER_BLOCKS;
	for (int t = 0; glyphs && t < TIERS; t++)
		if (strcmp(glyphs, tier_name[t]) == 0)
			return app->tier = (enum tier)t, 0;
	if (glyphs)
		return error_set(err, STATUS_USAGE, "ascii, cells or blocks", "--glyphs %s: no such tier", glyphs);
	return 0;
}

static int open_topology(struct app *app, struct error *err)
{
	if (topo_open(&app->topo, app->h, err) < 0)
		return -1;
	if (app->topo.machines > 0)
		return 0;
	topo_release(&app->topo);
	return error_set(err, STATUS_INPUT, "build it from traces with stealscope index", "%s: holds no machines to show",
	                 history_file(app->h));
}

static bool sees_whole(const struct app *app)
{
	return app->view.step > 0 && app->view.t0 <= app->ground.begin &&
	       view_last(&app->view, &app->ground) >= app->ground.end;
}

int app_init(struct app *app, const struct history *h, const struct ui_options *options, struct error *err)
{
	*app = (struct app){ .h = h, .first = h, .clocks = options->clocks, .evidence = options->evidence,
		.depth = DEPTH_256, .least_gap = LEAST_GAP_NS };
	int64_t span;
	if (__builtin_sub_overflow(history_end(h), history_begin(h), &span) || span < 0 || span > INT64_MAX / 4)
		return error_set(err, STATUS_INPUT, "index the traces again", "%s: its time span makes no sense",
		                 history_file(h));
	struct config config;
	keymap_init(&app->keymap);
	int status = config_load(&config, &app->keymap, options->config, err);
	if (status == 0)
		status = choose_looks(app, options, &config, err);
	choose_habits(app, options, &config);
	config_release(&config);
	if (status < 0 || open_topology(app, err) < 0) {
		keymap_release(&app->keymap);
		return -1;
	}
	app->asker = asker_open(&app->topo);
	if (!app->asker) {
		topo_release(&app->topo);
		keymap_release(&app->keymap);
		return error_system(err, NULL, "starting a thread");
	}
	theme_palette(&app->theme, app->depth, &app->palette);
	rows_init(&app->rows, &app->topo);
	app->view = (struct view){ .a = VIEW_NONE, .b = VIEW_NONE, .range = VIEW_NONE, .cursor = history_begin(h) };
	app->w = options->width ? options->width : 80;
	app->h_cells = options->height ? options->height : 24;
	app_meet(app);
	view_whole(&app->view, &app->ground);
	bookmarks_load(app, options->bookmarks);
	rows_survey_start(&app->rows, app->ground.begin, app->ground.end);
	rows_build(&app->rows);
	app->view.row = rows_most_stolen(&app->rows);
	bool changed;
	app_work(app, FIRST_SURVEY_NS, &changed);
	if (options->greeting)
		app_say(app, "%s", options->greeting);
	return 0;
}

void app_meet(struct app *app)
{
	bool whole = sees_whole(app);
	free(app->owner);
	app->owner = mem_new(app->topo.cpus, sizeof *app->owner);
	learn(app);
	app->ground.begin = history_begin(app->h);
	app->ground.end = history_end(app->h);
	app->axis.origin = app->axis.format == TIME_RELATIVE && app->view.a != VIEW_NONE ? app->view.a : app->ground.begin;
	app->nudged[0] = '\0';
	if (app->clocks)
		app->clocks->list(app->clocks->arg, app->h, app->nudged, sizeof app->nudged);
	app_resize(app, app->w, app->h_cells);
	if (whole)
		view_whole(&app->view, &app->ground);
}

void app_release(struct app *app)
{
	nudge_release(app);
	asker_close(app->asker);
	flow_pane_release(&app->flow);
	blame_release(&app->blame);
	pager_release(&app->pager);
	prompt_release(&app->prompt);
	rows_release(&app->rows);
	topo_release(&app->topo);
	keymap_release(&app->keymap);
	if (app->h != app->first)
		history_close((struct history *)(uintptr_t)app->h);
	free(app->owner);
	free(app->bookmark);
	free(app->bookmark_file);
	free(app->request);
	free(app->clipboard);
}

void app_resize(struct app *app, int w, int h)
{
	app->w = w;
	app->h_cells = h;
	app->label_w = w * 3 / 10 < 18 ? 18 : w * 3 / 10 > 40 ? 40 : w * 3 / 10;
	int cols = w - app->label_w - 1;
	bool whole = sees_whole(app);
	app->ground.cols = cols < 1 ? 1 : cols;
	if (whole)
		view_whole(&app->view, &app->ground);
	else if (app->view.step > 0)
		view_resize(&app->view, &app->ground);
	app->flow.stale = app->blame.stale = true;
	app->status.valid = false;
}

/* The row that lost most; and where it is not alive yet when the trace begins, the moment when its life begins, unless
 * the user looks elsewhere already. */
static void choose_row(struct app *app)
{
	struct row_id best = rows_most_stolen(&app->rows);
	rows_reveal(&app->rows, best);
	app->view.row = best;
	uint32_t attr = app_row_attr(app, best);
	struct interval iv;
	if (app->view.cursor == app->ground.begin && attr != HISTORY_NONE &&
	    history_stab(app->h, attr, app->view.cursor, &iv, NULL) == 0 && iv.value == HISTORY_NULL &&
	    iv.end < app->ground.end)
		view_goto(&app->view, &app->ground, iv.end + 1);
}

bool app_work(struct app *app, int64_t budget_ns, bool *changed)
{
	struct error err = ERROR_INIT;
	*changed = false;
	nudge_work(app, changed);
	struct view before = app->view;
	if (cause_work(app)) {
		undo_push(&app->undo, &before);
		*changed = true;
	}
	if (hunt_work(app, budget_ns, changed))
		return true;
	if (rows_survey_done(&app->rows))
		return false;
	int done = rows_survey_step(&app->rows, budget_ns, &err);
	if (done < 0) {
		app_fail(app, &err);
		app->rows.survey.next = app->topo.threads;
		*changed = true;
	} else if (done > 0) {
		*changed = true;
		if (!app->moved)
			choose_row(app);
	}
	return !rows_survey_done(&app->rows);
}

/* Hides again what a search has brought up so far. */
static void search_undo(struct app *app)
{
	app->rows.hide_idle = app->typed_from.hide_idle;
	memcpy(app->rows.filter, app->typed_from.filter, sizeof app->rows.filter);
	rows_build(&app->rows);
}

/* Search as you type: from the row where it began. */
static void search_typed(struct app *app)
{
	struct row_id found;
	search_undo(app);
	snprintf(app->search, sizeof app->search, "%.63s", app->prompt.text);
	if (!app->search[0])
		app_show_row(app, app->typed_from.row);
	else if (rows_search(&app->rows, app->search, app->typed_from.row, 1, true, &found))
		app_show_row(app, found);
	else
		app_say(app, "no row contains \"%s\"", app->search);
}

/* A cursor whose row is gone goes to the next thread that is left. */
void app_filter(struct app *app, const char *text, struct row_id from)
{
	struct rows *r = &app->rows;
	snprintf(r->filter, sizeof r->filter, "%.63s", text);
	rows_build(r);
	size_t at = rows_find_near(r, from), i = 0;
	if (r->filter[0] && rows_find(r, from) == r->len) {
		while (i < r->len && r->row[(at + i) % r->len].id.kind != ROW_THREAD)
			i++;
		if (i == r->len)
			app_say(app, "no thread's name contains \"%s\"", r->filter);
	}
	app_select(app, r->len ? (at + i) % r->len : 0);
}

static void prompt_changed(struct app *app)
{
	switch (app->prompt.kind) {
	case PROMPT_SEARCH: search_typed(app); break;
	case PROMPT_FILTER: app_filter(app, app->prompt.text, app->typed_from.row); break;
	case PROMPT_PAGER: snprintf(app->pager.filter, sizeof app->pager.filter, "%.63s", app->prompt.text); break;
	default: break;
	}
}

static void prompt_done(struct app *app)
{
	char line[PROMPT_LONGEST];
	snprintf(line, sizeof line, "%s", app->prompt.text);
	app->mode = app->prompt.kind == PROMPT_PAGER ? MODE_PAGER : MODE_ROWS;
	if (app->prompt.kind == PROMPT_COMMAND)
		command_run(app, line);
	else if (app->prompt.kind == PROMPT_EXPORT && line[0])
		export_pane(app, line);
	else if (app->prompt.kind == PROMPT_SEARCH || app->prompt.kind == PROMPT_FILTER)
		prompt_changed(app);  /* says it again when nothing was found */
}

static void prompt_cancelled(struct app *app)
{
	app->mode = app->prompt.kind == PROMPT_PAGER ? MODE_PAGER : MODE_ROWS;
	app->prompt.text[0] = '\0';
	if (app->prompt.kind == PROMPT_SEARCH) {
		search_undo(app);
		app_show_row(app, app->typed_from.row);
	} else {
		prompt_changed(app);
	}
}

static void key_in_prompt(struct app *app, uint32_t key)
{
	if (key == KEY_CODE_TAB && app->prompt.kind == PROMPT_COMMAND) {
		command_complete(app);
		return;
	}
	switch (prompt_key(&app->prompt, key)) {
	case PROMPT_CHANGED: prompt_changed(app); break;
	case PROMPT_DONE: prompt_done(app); break;
	case PROMPT_CANCELLED: prompt_cancelled(app); break;
	default: break;
	}
}

static void key_in_pager(struct app *app, uint32_t key)
{
	int64_t tag = -1;
	switch (pager_key(&app->pager, key, app->h_cells - 1, &tag)) {
	case PAGER_CLOSED:
		app->mode = MODE_ROWS;
		details_drop(app);
		break;
	case PAGER_PICKED:
		app->mode = MODE_ROWS;
		lists_picked(app, tag);
		break;
	case PAGER_DROPPED:
		lists_dropped(app, tag);
		break;
	case PAGER_MOVED:
		lists_moved(app, tag);
		break;
	case PAGER_SEARCH:
		app->mode = MODE_PROMPT;
		prompt_open(&app->prompt, PROMPT_PAGER, "");
		break;
	case PAGER_UNKNOWN:
		if (keymap_find(&app->keymap, key) == ACT_REDRAW)
			app->redraw = true;
		else
			app_say(app, "q closes this list, / searches it");
		break;
	default:
		break;
	}
}

static void key_in_rows(struct app *app, uint32_t key)
{
	if ((key >= '1' && key <= '9') || (key == '0' && app->count > 0)) {
		app->count = app->count < 100000 ? app->count * 10 + (key - '0') : app->count;
		app_say(app, "%u", app->count);
		return;
	}
	if (key == KEY_CODE_ESC || key == ('c' & 31)) {
		bool asked = app_cancel(app), nudged = nudge_cancel(app);
		if (asked || nudged) {
			app_say(app, "cancelled");
			return;
		}
	}
	enum action action = keymap_find(&app->keymap, key);
	char text[32], help[64];
	if (action == ACT_NONE)
		app_say(app, "%s does nothing: %s is help", key_text(key, text, sizeof text),
		        keymap_text(&app->keymap, ACT_HELP, help, sizeof help));
	else
		app_do(app, action);
	app->count = 0;
	app->last = action;
}

void app_begin_frame(struct app *app)
{
	if (app->answer_by < now_ns())
		app->answer_by = now_ns() + ANSWER_NS;
}

void app_key(struct app *app, uint32_t key)
{
	app->message[0] = '\0';
	app->message_is_error = false;
	app->hunt.on = false;
	cause_drop(app);
	app->answer_by = now_ns() + ANSWER_NS;
	if (app->mode == MODE_PROMPT)
		key_in_prompt(app, key);
	else if (app->mode == MODE_PAGER)
		key_in_pager(app, key);
	else
		key_in_rows(app, key);
}
