/* The options that say how a screen looks, of the viewer and of its pictures. */
#ifndef STEALSCOPE_CLI_DISPLAY_OPTIONS_H
#define STEALSCOPE_CLI_DISPLAY_OPTIONS_H

#include "cli/opts.h"
#include "ui/ui.h"

static const char *const looks_tiers[] = { "ascii", "cells", "blocks", NULL };

struct looks {
	const char *theme[17];  /* those shipped, NULL-terminated, for completion */
};

static inline struct looks looks_shipped(void)
{
	struct looks l = { { NULL } };
	for (unsigned i = 0; i + 1 < sizeof l.theme / sizeof *l.theme && (i == 0 || l.theme[i - 1]); i++)
		l.theme[i] = theme_shipped_name(i);
	return l;
}

/* `ui`: struct ui_options *; `l`: const struct looks * of looks_shipped(). */
#define LOOKS_OPTIONS(ui, l) \
	{ "theme", 0, OPT_TEXT, "THEME", "theme: a name or a file", &(ui)->theme, (l)->theme }, \
	{ "glyphs", 0, OPT_TEXT, "TIER", "ascii, cells or blocks", &(ui)->glyphs, looks_tiers }

#endif
