/* The picture: a grid of cells that pure code draws into.  A terminal shows it, a file keeps it, a test reads it.
 *
 * Drawing outside the grid is cut, never an error.  A wide character takes two cells: the second has ch == 0.
 * Combining characters are kept with the character they belong to.  Characters that the locale cannot show become '?'. */
#ifndef STEALSCOPE_UI_TERMINAL_SCREEN_H
#define STEALSCOPE_UI_TERMINAL_SCREEN_H

#include <stdint.h>
#include <stdio.h>

enum text_attr { ATTR_BOLD = 1, ATTR_REVERSE = 2, ATTR_UNDERLINE = 4, ATTR_DIM = 8 };

struct style {
	int16_t fg, bg;  /* palette index; -1 = the terminal's own */
	uint16_t attr;   /* bits of enum text_attr */
};

#define MARKS 4          /* combining characters of a cell: as many as curses shows */

struct glyph {
	uint32_t ch;     /* Unicode; 0 = right half of the wide character to the left */
	struct style style;
	uint32_t mark[MARKS];  /* what combines with ch; 0: no more */
};

struct screen {
	int w, h;        /* cells */
	struct glyph *cell;
	int cursor_x, cursor_y;  /* where the terminal's cursor is shown; -1 = hidden */
};

void screen_resize(struct screen *s, int w, int h);
void screen_release(struct screen *s);
void screen_clear(struct screen *s, struct style style);
struct glyph *screen_at(struct screen *s, int x, int y);  /* NULL outside */
void screen_put(struct screen *s, int x, int y, uint32_t ch, struct style style);
void screen_fill(struct screen *s, int x, int y, int width, uint32_t ch, struct style style);
/* Draws UTF-8 text cut at `width` columns; returns the columns used.  A number that is cut ends in "~": 14 of 149 would
 * be another thread. */
int screen_text(struct screen *s, int x, int y, int width, struct style style, const char *text);
/* The same, but all that is cut ends in "~": of a sentence, half would be another one. */
int screen_clip(struct screen *s, int x, int y, int width, struct style style, const char *text);
int screen_printf(struct screen *s, int x, int y, int width, struct style style, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));
/* Of phrases that two spaces part, draws those that fit whole: half a figure is another figure. */
int screen_phrases(struct screen *s, int x, int y, int width, struct style style, const char *text);
/* Writes the characters, line by line, trailing spaces left out. */
int screen_dump(const struct screen *s, FILE *f);

#endif
