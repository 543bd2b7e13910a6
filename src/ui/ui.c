/* ui_run(): a pselect() loop that drives the viewer in a terminal. Each round handles all pending keys, then draws one
 * frame; without keys, signals or background work the loop sleeps. */
#include "ui/ui.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "ui/panes/pane.h"
#include "ui/core/session_state.h"
#include "ui/core/longest_gap.h"
#include "ui/input/script.h"
#include "ui/terminal/screen_loop.h"
#include "ui/core/viewer.h"

#define WORK_NS 8000000       /* time slice of background work between two checks of the keyboard, ns */
/* keys that follow within this time count as a repeated key and get coarse frames; after a pause of this length a
 * detailed frame is drawn, ns */
#define REPEAT_NS 80000000
#define REPEATS 3             /* such keys in a row after which frames are coarse */
#define BACKLOG 8192          /* unsent output in the terminal's queue above which a frame is postponed, bytes */

struct loop {
	struct app *app;
	struct screen_loop on;
	int64_t last_key;         /* time of the last key, ns */
	int repeats;
	bool draw;
};

static int parse_depth(const char *color, enum depth *depth, struct error *err)
{
	static const struct { const char *name; enum depth depth; } names[] = {
		{ "never", DEPTH_MONO }, { "8", DEPTH_8 }, { "16", DEPTH_16 }, { "256", DEPTH_256 },
	};
	const char *no_color = getenv("NO_COLOR");
	if (!*color || strcmp(color, "auto") == 0) {
		*depth = no_color && *no_color ? DEPTH_MONO : DEPTH_COUNT;
		return 0;
	}
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (strcmp(color, names[i].name) == 0) {
			*depth = names[i].depth;
			return 0;
		}
	}
	return error_set(err, STATUS_USAGE, "choose from auto, never, 8, 16, 256", "--color %s: invalid value", color);
}

/* Reacts to signals: to a new size, to SIGINT, and to the terminal's end. */
static void handle_signals(struct loop *l)
{
	if (l->on.resized)
		viewer_resize(l->app, l->on.screen.w, l->on.screen.h);
	if (l->on.interrupted) {
		const bool at_rows = app_rows_have_keys(l->app);  /* true: ^C closes no prompt or list */
		viewer_key(l->app, 'c' & 31);
		if (at_rows && strcmp(l->app->message, "cancelled") != 0)
			app_message(l->app, pane_is_below(l->app) ? "q closes the pane, Q quits" :
			            l->app->pane_below ? "q quits" : "q goes back to the overview, Q quits");
	}
	l->draw |= l->on.resized || l->on.interrupted;
	l->app->quit |= l->on.quit;
	l->on.resized = l->on.interrupted = false;
}

static void handle_keys(struct loop *l)
{
	struct term_mouse m = { 0, 0, MOUSE_PRESS };
	uint32_t key;
	bool has_key = false;
	while (!l->app->quit && (key = screen_loop_key(&l->on, &m)) != 0) {
		has_key = true;
		if (key == KEY_CODE_MOUSE)
			viewer_mouse(l->app, m.x, m.y, (int)m.event);
		else if (key == KEY_CODE_LIGHT)
			appearance_follow_light(l->app);
		else
			viewer_key(l->app, key);
	}
	l->app->quit |= l->on.quit;
	if (!has_key)
		return;
	int64_t now = now_ns();
	l->repeats = now - l->last_key < REPEAT_NS ? l->repeats + 1 : 0;
	l->last_key = now;
	l->app->appearance.coarse = l->repeats >= REPEATS;
	l->draw = true;
}

/* Draws a frame unless the terminal is still busy with the previous frame; returns true if a frame is postponed. */
static bool draw_frame(struct loop *l)
{
	struct app *app = l->app;
	int backlog = 0;
	if (!l->draw)
		return false;
	if (ioctl(STDOUT_FILENO, TIOCOUTQ, &backlog) == 0 && backlog > BACKLOG)
		return true;
	l->draw = false;
	if (app->redraw)
		term_redraw(l->on.term);
	app->redraw = false;
	term_mouse(l->on.term, app->mouse);
	viewer_draw(app, &l->on.screen);
	term_show(l->on.term, &l->on.screen);
	if (app->clipboard)
		term_copy(l->on.term, app->clipboard);
	free(app->clipboard);
	app->clipboard = NULL;
	return false;
}

static void wait_for_input(struct loop *l, const struct timespec *timeout)
{
	const unsigned events = screen_loop_sleep(&l->on, async_fd(l->app->queries), timeout);
	handle_signals(l);
	if (events & LOOP_FD) {
		async_clear_wakeup(l->app->queries);
		l->draw = true;
	}
	if (events & LOOP_KEYS)
		handle_keys(l);
	else if ((events & LOOP_TIMEOUT) && l->app->appearance.coarse) {  /* no key for REPEAT_NS: draw the detailed frame */
		l->app->appearance.coarse = false;
		l->draw = true;
	}
}

static void loop_run(struct loop *l)
{
	l->draw = true;
	while (!l->app->quit) {
		bool postponed = draw_frame(l);
		bool changed, more = viewer_work(l->app, WORK_NS, &changed);
		l->draw |= changed;
		if (l->draw && !postponed)
			continue;
		struct timespec now = { 0, 0 }, soon = { 0, 15000000 }, pause = { 0, REPEAT_NS };
		wait_for_input(l, more ? &now : postponed ? &soon : l->app->appearance.coarse ? &pause : NULL);
	}
}

/* Goes to the place that the options name. */
static void show_place(struct app *app, const struct ui_options *options)
{
	if (options->longest)
		longest_gap_show(app, options->longest);
	if (options->row || options->at)
		gap_place_show(app, options->row, options->at);
}

static int run_on_terminal(struct app *app, const struct ui_options *options, enum depth depth, struct error *err)
{
	struct loop l = { .app = app };
	if (screen_loop_open(&l.on, err))
		return -1;
	enum depth terminal_depth = term_depth(l.on.term);
	enum tier best_tier = term_has_blocks(l.on.term) ? TIER_BLOCKS : terminal_depth == DEPTH_MONO ? TIER_ASCII : TIER_CELLS;
	/* DEPTH_COUNT: use the depth of the terminal */
	appearance_set_depth(app, depth > terminal_depth ? terminal_depth : depth);
	app->appearance.best_tier = best_tier;
	if (!options->glyphs && app->appearance.tier > best_tier)
		app->appearance.tier = best_tier;
	viewer_resize(app, l.on.screen.w, l.on.screen.h);
	if (!options->view || !session_state_load(app, options->view))
		pane_open(app, PANE_OVERVIEW);
	show_place(app, options);
	loop_run(&l);
	screen_loop_end(&l.on);
	return 0;
}

int ui_check(const struct ui_options *options, struct error *err)
{
	if (options->script || options->bench)
		return 0;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return error_set(err, STATUS_SYSTEM, "use the commands flow, gaps and steal, or view --script",
		                 "the viewer: standard input and output must be a terminal");
	return term_check(NULL, STDOUT_FILENO, err);
}

static int run_viewer(struct app *app, const struct ui_options *options, struct error *err)
{
	enum depth depth = DEPTH_COUNT;
	if (parse_depth(app->appearance.color, &depth, err) < 0)
		return -1;
	if (options->script || options->bench)
		appearance_set_depth(app, depth == DEPTH_COUNT ? DEPTH_256 : depth);
	int status = 0;
	if (options->script && options->view)
		session_state_load(app, options->view);
	if (options->script)
		show_place(app, options);
	if (options->script)
		status = script_run(app, options->script, err);
	else if (options->bench)
		status = bench_run(app, options->bench, err);
	else
		status = run_on_terminal(app, options, depth, err);
	if (options->view && status == 0)
		session_state_save(app, options->view);
	return status;
}

int ui_run(const struct history *h, const struct ui_options *options, struct error *err)
{
	if (ui_check(options, err) < 0)
		return -1;
	struct app *app = mem_new(1, sizeof *app);  /* too large for a small stack */
	int status = viewer_init(app, h, options, err);
	if (status == 0) {
		status = run_viewer(app, options, err);
		viewer_release(app);
	}
	free(app);
	return status;
}
