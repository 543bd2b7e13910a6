/* Returns the text of a screen's first row. */
#pragma once

#include "ui/terminal/screen.h"

/* Copies the first row as ASCII without trailing spaces. `to` has space for the width of the screen plus 1 byte. */
static inline void row_text(struct screen *s, char *to)
{
	int w = s->w;
	for (int x = 0; x < w; x++)
		to[x] = (char)screen_at(s, x, 0)->ch;
	while (w && (to[w - 1] == ' ' || !to[w - 1]))
		w--;
	to[w] = '\0';
}
