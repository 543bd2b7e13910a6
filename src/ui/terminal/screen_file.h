/* A screen as a file: text, or a picture with its colours for a ticket or a page. */
#ifndef STEALSCOPE_UI_TERMINAL_SCREEN_FILE_H
#define STEALSCOPE_UI_TERMINAL_SCREEN_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "ui/terminal/screen.h"

enum paint { PAINT_TEXT, PAINT_HTML, PAINT_SVG };

enum paint paint_of(const char *file);  /* told by its ending; text unless .html or .svg */
/* light: what the terminal's own colours are taken for.  Pictures need no fonts but a monospaced one for letters: bars
 * and lines are drawn. */
void paint_screen(const struct screen *s, enum paint format, bool light, const char *title, FILE *f);

#endif
