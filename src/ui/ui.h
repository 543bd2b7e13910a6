/* The viewer: a keyboard-driven timeline of one history in a terminal. */
#ifndef STEALSCOPE_UI_UI_H
#define STEALSCOPE_UI_UI_H

#include "base/error.h"
#include "history/history.h"

struct ui_options {
	const char *theme;        /* name or file; NULL = cvd-dark */
	const char *glyphs;       /* "ascii", "cells", "blocks"; NULL = from locale and terminal */
	const char *color;        /* "auto", "never", "8", "16", "256"; NULL = auto */
	const char *script;       /* keys and commands to run without a terminal; NULL = interactive */
	int width, height;        /* cells, of the scripted screen; 0 = 80 x 24 */
	unsigned bench;           /* draw that many frames, print ms and bytes */
	const char *config;       /* config.yaml, or NULL: $XDG_CONFIG_HOME/stealscope/config.yaml if it exists */
};

/* Runs until the user quits.  Restores the terminal, also when a signal kills the program. */
int ui_run(const struct history *h, const struct ui_options *options, struct error *err);

/* Prints the key table as mdoc(7) source (for the man page) on stdout. */
void ui_print_keys_mdoc(void);

#endif
