/* The text of a screen's first row, for tests of what draws one. */
#ifndef STEALSCOPE_TESTS_UI_ROW_H
#define STEALSCOPE_TESTS_UI_ROW_H

#include "ui/terminal/screen.h"

/* ASCII, without the blanks behind it; to: room for one more than the screen is wide. */
static inline void row_text(struct screen *s, char *to)
{
	int w = s->w;
	for (int x = 0; x < w; x++)
		to[x] = (char)screen_at(s, x, 0)->ch;
	while (w && (to[w - 1] == ' ' || !to[w - 1]))
		w--;
	to[w] = '\0';
}

#endif
