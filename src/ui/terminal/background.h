/* The terminal's background colour (OSC 11): the question, and its answer among the keys. */
#pragma once

#include "base/base.h"

/* Asks for the background, then for the terminal's type (DA1), which every terminal answers: after that answer none to the
 * first question will come. */
#define BACKGROUND_QUESTION "\033]11;?\033\\\033[c"

#define OSC_MAX 64  /* characters after which a sequence counts as ended */

/* An OSC sequence that is being read, without "ESC ]". */
struct osc { char text[OSC_MAX + 1]; size_t len; bool has_escape; };

/* Adds a character. Returns true at the sequence's end: BEL, the character after ESC, or too many characters, which
 * leave an empty text. */
bool osc_add(struct osc *o, uint32_t c);
/* Returns true if the text is the answer "11;rgb:RRRR/GGGG/BBBB" with a light colour. */
bool osc_is_light_background(const struct osc *o);
