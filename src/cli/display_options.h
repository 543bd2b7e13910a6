/* Display options common to stealscope view and stealscope picture. */
#pragma once

#include "cli/opts.h"
#include "ui/ui.h"

static const char *const glyph_tiers[] = { "ascii", "cells", "blocks", NULL };

struct theme_names {
	const char *theme[17];  /* shipped themes, NULL-terminated, for completion */
};

static inline struct theme_names display_options_themes(void)
{
	struct theme_names l = { { NULL } };
	for (unsigned i = 0; i + 1 < sizeof l.theme / sizeof *l.theme && (i == 0 || l.theme[i - 1]); i++)
		l.theme[i] = theme_shipped_name(i);
	return l;
}

/* Rows of an option table. ui: struct ui_options *; l: struct theme_names *, from display_options_themes(). */
#define DISPLAY_OPTIONS(ui, l) \
	{ "theme", 0, OPT_TEXT, "THEME", "theme: a name or a file", &(ui)->theme, (l)->theme }, \
	{ "glyphs", 0, OPT_TEXT, "TIER", "ascii, cells or blocks", &(ui)->glyphs, glyph_tiers }
