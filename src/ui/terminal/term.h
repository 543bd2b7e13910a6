/* The terminal: shows a struct screen through ncurses, and reads keys. Only term.c includes <curses.h>. */
#pragma once

#include "base/base.h"
#include "ui/terminal/screen.h"
#include "ui/widgets/theme.h"

struct terminal;

/* Checks that the terminal can move its cursor. type NULL: $TERM. Returns 0, or -1. */
int term_check(const char *type, int fd, struct error *err);
/* Starts to use the terminal. type NULL: $TERM. Returns NULL, with an error, if the terminal cannot move its cursor. */
struct terminal *term_open(FILE *out, FILE *in, const char *type, struct error *err);
void term_close(struct terminal *t);  /* restores the terminal; NULL is allowed */

enum depth term_depth(const struct terminal *t);
bool term_has_blocks(const struct terminal *t);  /* true: UTF-8 locale and a terminal that shows eighth blocks */

void term_size(const struct terminal *t, int *w, int *h);
void term_resize(struct terminal *t, int w, int h);
void term_measure(int fd, int *w, int *h);  /* size from the kernel; unchanged if unknown */

void term_show(struct terminal *t, const struct screen *s);
void term_redraw(struct terminal *t);  /* makes the next term_show() send all cells */
void term_mouse(struct terminal *t, bool on);
void term_copy(struct terminal *t, const char *text);  /* copies the text to the clipboard (OSC 52) */

struct term_mouse {
	int x, y;
	enum { MOUSE_PRESS, MOUSE_DRAG, MOUSE_RELEASE } event;
};
#define KEY_CODE_MOUSE 0x200200  /* pseudo key for a mouse button, with details in struct term_mouse */
#define KEY_CODE_LIGHT 0x200201  /* pseudo key: the terminal answered that its background is light */
/* Returns the next pending key; 0: none. */
uint32_t term_key(struct terminal *t, struct term_mouse *mouse);

void term_suspend(struct terminal *t);  /* call before the process stops (SIGTSTP) */
void term_resume(struct terminal *t);  /* call after the process continues (SIGCONT) */
/* Returns the escape sequences that restore the terminal, for a signal handler. */
const char *term_restore_text(const struct terminal *t);
