/* Terminal, screen, theme and signals of a full-screen program besides the viewer. The program draws into `screen`, then
 * waits for keys; a fatal signal restores the terminal. */
#pragma once

#include <signal.h>
#include <time.h>

#include "ui/terminal/term.h"
#include "ui/ui.h"

struct screen_loop {
	struct terminal *term;
	struct screen screen;
	struct theme theme;
	struct palette palette;
	bool blocks;       /* the terminal shows block characters */
	bool follows_background;  /* no theme was named: a light background chooses the light one */
	bool quit;         /* set by screen_loop_wait() at SIGINT, by a lost terminal, or by the program */
	bool resized, interrupted;  /* set by SIGWINCH, and by SIGINT; the program clears them */
	sigset_t during;   /* signal mask while the loop waits */
	int empty_reads;   /* reads without a key in a row */
};

/* Opens the terminal, without a theme. Returns 0, or -1 with nothing to close. */
int screen_loop_open(struct screen_loop *l, struct error *err);
/* The same, with the options' theme, and the mouse on. */
int screen_loop_begin(struct screen_loop *l, const struct ui_options *options, struct error *err);
void screen_loop_end(struct screen_loop *l);
/* Waits for a key, a signal or bytes of `fd` (-1: none), for the time of `limit` at most (NULL: no limit). Returns bits. */
enum { LOOP_KEYS = 1, LOOP_FD = 2, LOOP_TIMEOUT = 4 };
unsigned screen_loop_sleep(struct screen_loop *l, int fd, const struct timespec *limit);
/* Shows the screen and waits for a key, a signal or bytes of `fd` (-1: none), `wait` ns at most (-1: no limit). Returns
 * true if keys may be pending: then read them with screen_loop_key() until it returns 0. */
bool screen_loop_wait(struct screen_loop *l, int fd, int64_t wait);
/* Returns the next key (KEY_CODE_MOUSE: fills *mouse); 0: none. Handles ^L. */
uint32_t screen_loop_key(struct screen_loop *l, struct term_mouse *mouse);
/* Leaves the terminal to another program, and takes it back. */
void screen_loop_leave(struct screen_loop *l);
void screen_loop_return(struct screen_loop *l);
