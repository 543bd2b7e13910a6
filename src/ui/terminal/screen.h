/* A grid of character cells: the viewer draws into it, a terminal or file shows it, tests read it.
 *
 * - Drawing outside the grid is clipped, never an error.
 * - A wide character takes two cells; the second has ch == 0.
 * - Combining characters are stored with their base character.
 * - Characters that the locale cannot show become '?'. */
#pragma once

#include "base/base.h"

enum text_attr { ATTR_BOLD = 1, ATTR_REVERSE = 2, ATTR_UNDERLINE = 4, ATTR_DIM = 8 };

struct style {
	int16_t fg, bg;  /* palette indices; -1: default colour of the terminal */
	uint16_t attr;   /* bits of enum text_attr */
};

#define COMBINING_MAX 4  /* largest number of combining characters in a cell; as in curses */

struct glyph {
	uint32_t ch;     /* Unicode; 0: right half of the wide character to the left */
	struct style style;
	uint32_t combining[COMBINING_MAX];  /* combining characters of ch; 0: end */
};

struct screen {
	int w, h;        /* columns and lines */
	struct glyph *cell;
	int cursor_x, cursor_y;  /* position of the terminal's cursor; -1: hidden */
};

void screen_resize(struct screen *s, int w, int h);
void screen_release(struct screen *s);
void screen_clear(struct screen *s, struct style style);
struct glyph *screen_at(struct screen *s, int x, int y);  /* cell at column x, line y; NULL: outside the grid */
void screen_put(struct screen *s, int x, int y, uint32_t ch, struct style style);
void screen_fill(struct screen *s, int x, int y, int width, uint32_t ch, struct style style);
/* Draws UTF-8 text, clipped at `width` columns. Returns the columns used. If a number is clipped, its last digit becomes
 * "~", so that 149 does not read as 14. */
int screen_text(struct screen *s, int x, int y, int width, struct style style, const char *text);
/* Like screen_text(), but all clipped text ends in "~". */
int screen_clip(struct screen *s, int x, int y, int width, struct style style, const char *text);
int screen_printf(struct screen *s, int x, int y, int width, struct style style, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));
/* Draws the phrases of the text (separated by two spaces) that fit completely. Returns the columns used. */
int screen_phrases(struct screen *s, int x, int y, int width, struct style style, const char *text);
/* Writes the characters line by line, without trailing spaces. Returns 0, or -1. */
int screen_dump(const struct screen *s, FILE *f);
