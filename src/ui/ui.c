/* ui_run(): one pselect() loop around the viewer.  It drains all pending keys, then draws once; without keys,
 * signals or work to do it sleeps without end. */
#include "ui/ui.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <unistd.h>

#include "base/clock.h"
#include "ui/panes/pane.h"
#include "ui/widgets/widgets.h"
#include "ui/core/session_state.h"
#include "ui/input/script.h"
#include "ui/terminal/signals.h"
#include "ui/terminal/term.h"
#include "ui/core/viewer.h"

#define WORK_NS 8000000       /* of long work between two looks at the keyboard */
#define REPEAT_NS 80000000    /* keys closer than that repeat: coarse frames; then a pause of it refines */
#define REPEATS 3             /* that many in a row make a repeat */
#define BACKLOG 8192          /* bytes waiting in the terminal above which a frame is put off */

struct loop {
	struct app *app;
	struct terminal *term;
	struct screen screen;
	sigset_t during;          /* mask while waiting */
	int64_t last_key;         /* ns */
	int repeats, dead_reads;
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
	return error_set(err, STATUS_USAGE, "auto, never, 8, 16 or 256", "--color %s: no such choice", color);
}

static void resize(struct loop *l)
{
	int w = l->app->w, h = l->app->h_cells;
	term_measure(STDOUT_FILENO, &w, &h);
	term_resize(l->term, w, h);
	screen_resize(&l->screen, w, h);
	viewer_resize(l->app, w, h);
	l->draw = true;
}

static void take_signals(struct loop *l)
{
	if (signals_take(SIGTSTP)) {
		term_suspend(l->term);
		signals_stop_self();
		signals_take(SIGCONT);
		term_resume(l->term);
		resize(l);
	}
	if (signals_take(SIGCONT)) {  /* stopped by another way: whoever stopped us may have used the terminal */
		term_resume(l->term);
		resize(l);
	}
	if (signals_take(SIGWINCH))
		resize(l);
	if (signals_take(SIGINT)) {
		const bool at_rows = app_at_rows(l->app);  /* there was no prompt or list to leave */
		viewer_key(l->app, 'c' & 31);
		if (at_rows && strcmp(l->app->message, "cancelled") != 0)
			app_say(l->app, "q %s", pane_is_beside(l->app) ? "closes the pane, and then quits" : "quits");
		l->draw = true;
	}
}

static void take_keys(struct loop *l)
{
	struct term_mouse m = { 0, 0, MOUSE_PRESS };
	uint32_t key;
	int n = 0;
	while (!l->app->quit && (key = term_key(l->term, &m)) != 0) {
		n++;
		if (key == KEY_CODE_MOUSE)
			viewer_mouse(l->app, m.x, m.y, m.what == MOUSE_PRESS);
		else
			viewer_key(l->app, key);
	}
	if (n == 0) {  /* readable, yet nothing to read: the terminal may be gone */
		struct pollfd p = { STDIN_FILENO, POLLIN, 0 };
		if (poll(&p, 1, 0) > 0 && ((p.revents & (POLLHUP | POLLERR)) || ++l->dead_reads > 50))
			l->app->quit = true;
		return;
	}
	l->dead_reads = 0;
	int64_t now = now_ns();
	l->repeats = now - l->last_key < REPEAT_NS ? l->repeats + 1 : 0;
	l->last_key = now;
	l->app->look.coarse = l->repeats >= REPEATS;
	l->draw = true;
}

/* Draws unless the terminal is still busy with the last frame; true when a frame waits. */
static bool draw(struct loop *l)
{
	struct app *app = l->app;
	int backlog = 0;
	if (!l->draw)
		return false;
	if (ioctl(STDOUT_FILENO, TIOCOUTQ, &backlog) == 0 && backlog > BACKLOG)
		return true;
	l->draw = false;
	if (app->redraw)
		term_redraw(l->term);
	app->redraw = false;
	term_mouse(l->term, app->mouse);
	viewer_draw(app, &l->screen);
	term_show(l->term, &l->screen);
	if (app->clipboard)
		term_copy(l->term, app->clipboard);
	free(app->clipboard);
	app->clipboard = NULL;
	return false;
}

static void wait_and_take(struct loop *l, const struct timespec *timeout)
{
	fd_set in;
	FD_ZERO(&in);
	FD_SET(STDIN_FILENO, &in);
	int answers = asker_fd(l->app->asker);
	FD_SET(answers, &in);
	int n = pselect(answers + 1, &in, NULL, NULL, timeout, &l->during);
	if (n < 0 && errno != EINTR)
		l->app->quit = true;
	take_signals(l);
	if (n > 0 && FD_ISSET(answers, &in)) {
		asker_seen(l->app->asker);
		l->draw = true;
	}
	if (n > 0 && FD_ISSET(STDIN_FILENO, &in))
		take_keys(l);
	else if (n == 0 && l->app->look.coarse) {  /* the keys rest: refine */
		l->app->look.coarse = false;
		l->draw = true;
	}
}

static void loop_run(struct loop *l)
{
	l->draw = true;
	while (!l->app->quit) {
		bool put_off = draw(l);
		bool changed, more = viewer_work(l->app, WORK_NS, &changed);
		l->draw |= changed;
		if (l->draw && !put_off)
			continue;
		struct timespec now = { 0, 0 }, soon = { 0, 15000000 }, rest = { 0, REPEAT_NS };
		wait_and_take(l, more ? &now : put_off ? &soon : l->app->look.coarse ? &rest : NULL);
	}
}

static int run_on_terminal(struct app *app, const struct ui_options *options, enum depth depth, struct error *err)
{
	struct loop l = { .app = app };
	signals_begin(&l.during);
	l.term = term_open(stdout, stdin, NULL, err);
	if (!l.term) {
		signals_end();
		return -1;
	}
	signals_guard(STDOUT_FILENO, term_restore_text(l.term));
	enum depth most = term_depth(l.term);
	enum tier best = term_has_blocks(l.term) ? TIER_BLOCKS : most == DEPTH_MONO ? TIER_ASCII : TIER_CELLS;
	look_set_depth(app, depth > most ? most : depth);  /* DEPTH_COUNT: what it can */
	app->look.best_tier = best;
	if (!options->glyphs && app->look.tier > best)
		app->look.tier = best;
	int w = 80, h = 24;
	term_size(l.term, &w, &h);
	screen_resize(&l.screen, w, h);
	viewer_resize(app, w, h);
	if (!options->view || !remember_load(app, options->view))
		pane_open(app, PANE_OVERVIEW);
	loop_run(&l);
	term_close(l.term);
	signals_end();
	screen_release(&l.screen);
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

int ui_run(const struct history *h, const struct ui_options *options, struct error *err)
{
	struct app app;
	enum depth depth = DEPTH_COUNT;
	if (ui_check(options, err) < 0 || viewer_init(&app, h, options, err) < 0)
		return -1;
	if (parse_depth(app.look.color, &depth, err) < 0) {
		viewer_release(&app);
		return -1;
	}
	if (options->script || options->bench)
		look_set_depth(&app, depth == DEPTH_COUNT ? DEPTH_256 : depth);
	int status = 0;
	if (options->script && options->view)
		remember_load(&app, options->view);
	if (options->script)
		status = script_run(&app, options->script, err);
	else if (options->bench)
		status = bench_run(&app, options->bench, err);
	else
		status = run_on_terminal(&app, options, depth, err);
	if (options->view && status == 0)
		remember_save(&app, options->view);
	viewer_release(&app);
	return status;
}
