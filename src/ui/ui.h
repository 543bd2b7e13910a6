/* The viewer: a keyboard-driven timeline of one history in a terminal. */
#ifndef STEALSCOPE_UI_UI_H
#define STEALSCOPE_UI_UI_H

#include "base/error.h"
#include "base/event_text.h"
#include "base/progress.h"
#include "query/query.h"

/* Moves the clocks of guests by hand.  The viewer knows no traces: who starts it does. */
struct ui_clocks {
	void *arg;
	/* The history that is shown, made anew with the guest's clock nudged by ns in all; `said`: what that did.  Runs in a
	 * thread of its own.  The caller closes what it gets unless it is the history that ui_run() was given. */
	struct history *(*nudge)(void *arg, const struct history *shown, const char *guest, int64_t ns,
	                         struct progress progress, char *said, size_t size, struct error *err);
	/* Which clocks are nudged: "Debian +3 us", or "". */
	void (*list)(void *arg, const struct history *shown, char *buf, size_t size);
	/* Writes them to a session file: to the one in use, or to a new one; file "": a name is found. */
	int (*save)(void *arg, const struct history *shown, const char *file, char *said, size_t size, struct error *err);
};

/* Reads the events of a short time from the traces. */
struct ui_traces {
	/* Those of the machine and of the machines that run it (NULL: of all) within [from, to], ns; the first `most` of them.
	 * Runs in a thread of its own. */
	int (*read)(const struct history *shown, const char *machine, int64_t from, int64_t to, size_t most,
	            struct progress progress, struct event_list *out, struct error *err);
};

struct ui_options {
	const char *theme;        /* name or file; NULL = cvd-dark */
	const char *glyphs;       /* "ascii", "cells", "blocks"; NULL = from locale and terminal */
	const char *color;        /* "auto", "never", "8", "16", "256"; NULL = auto */
	const char *script;       /* keys and commands to run without a terminal; NULL = interactive */
	int width, height;        /* cells, of the scripted screen; 0 = 80 x 24 */
	unsigned bench;           /* draw that many frames, print ms and bytes */
	const struct ui_clocks *clocks;  /* NULL: they cannot be moved */
	const struct ui_traces *traces;  /* NULL: they cannot be read */
	const char *greeting;     /* a doubt, shown instead of the legend until the first key; NULL: there is none */
	const char *bookmarks;    /* file that keeps the bookmarks of these traces; NULL: they are not kept */
	const char *view;         /* file that keeps how the viewer was left; NULL: it begins with the overview */
	const char *config;       /* config.yaml, or NULL: $XDG_CONFIG_HOME/stealscope/config.yaml if it exists */
};

/* Is there a terminal for it, unless the options say that none is needed?  To be asked before long work.  0, or -1. */
int ui_check(const struct ui_options *options, struct error *err);
/* Runs until the user quits.  Restores the terminal, also when a signal kills the program. */
int ui_run(const struct history *h, const struct ui_options *options, struct error *err);

/* A picture of a window [from, to], ns: of these rows, or of the overview when none are named.  The file's ending tells
 * its kind: .svg, .html, else text.  Needs no terminal; the width is that of the options. */
struct ui_picture {
	const char *file;
	const struct subject *who;
	size_t whos;
	int64_t from, to;
};
int ui_picture(const struct history *h, const struct ui_options *options, const struct ui_picture *p, struct error *err);

/* The name of a shipped theme; NULL past the last. */
const char *theme_shipped_name(unsigned i);

/* Prints the tables of keys, commands and settings as mdoc(7) source (for the man page) on stdout. */
void ui_print_keys_mdoc(void);

#endif
