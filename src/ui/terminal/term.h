/* The terminal: shows a struct screen through ncurses and reads keys.  Only term.c includes <curses.h>. */
#ifndef STEALSCOPE_UI_TERMINAL_TERM_H
#define STEALSCOPE_UI_TERMINAL_TERM_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "ui/terminal/screen.h"
#include "ui/widgets/theme.h"

struct terminal;

/* Can it be used?  type NULL: $TERM.  It must move its cursor.  0, or -1. */
int term_check(const char *type, int fd, struct error *err);
/* Takes the terminal over.  `type` NULL: $TERM.  Refuses one that cannot move its cursor. */
struct terminal *term_open(FILE *out, FILE *in, const char *type, struct error *err);
void term_close(struct terminal *t);        /* leaves the terminal as it was; NULL is allowed */

enum depth term_depth(const struct terminal *t);
bool term_has_blocks(const struct terminal *t);  /* the locale is UTF-8 and the font has eighths */

void term_size(const struct terminal *t, int *w, int *h);
void term_resize(struct terminal *t, int w, int h);
void term_measure(int fd, int *w, int *h);   /* asks the system; leaves them alone when it does not know */

void term_show(struct terminal *t, const struct screen *s);
void term_redraw(struct terminal *t);       /* the next term_show() sends everything */
void term_mouse(struct terminal *t, bool on);
void term_copy(struct terminal *t, const char *text);  /* to the clipboard, OSC 52 */

struct term_mouse {
	int x, y;
	enum { MOUSE_PRESS, MOUSE_RELEASE } what;
};
#define KEY_CODE_MOUSE 0x200200  /* a button: see the struct */
/* The next pending key; 0 when there is none. */
uint32_t term_key(struct terminal *t, struct term_mouse *mouse);

void term_suspend(struct terminal *t);      /* before stopping */
void term_resume(struct terminal *t);       /* after going on */
/* The bytes that bring the terminal back, for a signal handler. */
const char *term_restore_text(const struct terminal *t);

#endif
