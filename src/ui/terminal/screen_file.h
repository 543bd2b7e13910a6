/* Writes a screen to a file: as text, or as a picture with colours. */
#pragma once

#include "base/base.h"
#include "ui/terminal/screen.h"

enum paint { PAINT_TEXT, PAINT_HTML, PAINT_SVG };

struct rgb { unsigned r, g, b; };
struct rgb screen_colour(int index);  /* colour of a palette index below 256 */

/* Returns the format for the file name's suffix: .html, .svg, text for all others. */
enum paint paint_format_of(const char *file);
/* Writes the screen. light: the default colours are dark on light. Pictures need only a monospaced font for letters:
 * bars and lines are drawn as shapes. */
void paint_screen(const struct screen *s, enum paint format, bool light, const char *title, FILE *f);
