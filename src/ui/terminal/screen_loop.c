#include "ui/terminal/screen_loop.h"

#include <errno.h>
#include <sys/select.h>
#include <unistd.h>

#include "base/base.h"
#include "ui/terminal/signals.h"

#define EMPTY_READS 50  /* reads without a key after which the terminal counts as gone */

static void resize(struct screen_loop *l)
{
	int w = l->screen.w, h = l->screen.h;
	term_measure(STDOUT_FILENO, &w, &h);
	term_resize(l->term, w, h);
	screen_resize(&l->screen, w, h);
	l->resized = true;
}

static void handle_signals(struct screen_loop *l)
{
	if (signals_take(SIGTSTP)) {
		term_suspend(l->term);
		signals_stop_self();
		signals_take(SIGCONT);
		screen_loop_return(l);
	}
	if (signals_take(SIGCONT))
		screen_loop_return(l);
	if (signals_take(SIGWINCH))
		resize(l);
	if (signals_take(SIGINT))
		l->interrupted = true;
}

int screen_loop_open(struct screen_loop *l, struct error *err)
{
	int w = 80, h = 24;
	*l = (struct screen_loop){ 0 };
	signals_begin(&l->during);
	l->term = term_open(stdout, stdin, NULL, err);
	if (!l->term) {
		signals_end();
		return -1;
	}
	signals_guard(STDOUT_FILENO, term_restore_text(l->term));
	term_size(l->term, &w, &h);
	screen_resize(&l->screen, w, h);
	return 0;
}

int screen_loop_begin(struct screen_loop *l, const struct ui_options *options, struct error *err)
{
	struct theme theme;
	if (theme_load(&theme, options->theme, err) < 0 || screen_loop_open(l, err))
		return -1;
	const char *no_color = getenv("NO_COLOR");
	l->theme = theme;
	l->follows_background = !options->theme;
	theme_palette(&l->theme, no_color && *no_color ? DEPTH_MONO : term_depth(l->term), &l->palette);
	l->blocks = term_has_blocks(l->term) && !(options->glyphs && strcmp(options->glyphs, "blocks") != 0);
	term_mouse(l->term, true);
	return 0;
}

void screen_loop_end(struct screen_loop *l)
{
	term_close(l->term);
	screen_release(&l->screen);
	signals_end();
}

unsigned screen_loop_sleep(struct screen_loop *l, int fd, const struct timespec *limit)
{
	fd_set in;
	FD_ZERO(&in);
	FD_SET(STDIN_FILENO, &in);
	if (fd >= 0)
		FD_SET(fd, &in);
	const int n = pselect((fd > STDIN_FILENO ? fd : STDIN_FILENO) + 1, &in, NULL, NULL, limit, &l->during);
	if (n < 0 && errno != EINTR)
		l->quit = true;
	handle_signals(l);
	const bool has_keys = n > 0 && FD_ISSET(STDIN_FILENO, &in);
	l->empty_reads += has_keys;
	return (has_keys ? LOOP_KEYS : 0) | (n > 0 && fd >= 0 && FD_ISSET(fd, &in) ? LOOP_FD : 0) | (n == 0 ? LOOP_TIMEOUT : 0);
}

bool screen_loop_wait(struct screen_loop *l, int fd, int64_t wait)
{
	const struct timespec limit = timespec_of(wait > 0 ? wait : 0);
	term_show(l->term, &l->screen);
	const unsigned events = screen_loop_sleep(l, fd, wait < 0 ? NULL : &limit);
	l->quit |= l->interrupted;
	return events & LOOP_KEYS;
}

uint32_t screen_loop_key(struct screen_loop *l, struct term_mouse *mouse)
{
	const uint32_t key = l->quit ? 0 : term_key(l->term, mouse);
	if (key)
		l->empty_reads = 0;
	if (key == KEY_CODE_LIGHT && l->follows_background && theme_load(&l->theme, THEME_LIGHT, NULL) == 0)
		theme_palette(&l->theme, l->palette.depth, &l->palette);
	if (l->empty_reads > EMPTY_READS)  /* the terminal hung up */
		l->quit = true;
	if (key == ('l' & 31))
		term_redraw(l->term);
	return key;
}

void screen_loop_leave(struct screen_loop *l)
{
	term_suspend(l->term);
}

void screen_loop_return(struct screen_loop *l)
{
	term_resume(l->term);
	resize(l);
}
