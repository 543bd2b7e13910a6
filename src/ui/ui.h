/* The viewer: shows the timeline of one history in a terminal, operated by keyboard and mouse. */
#pragma once

#include "base/base.h"
#include "base/event_text.h"
#include "base/progress.h"
#include "query/query.h"

/* Callbacks that set manual clock offsets of guests. The caller of the viewer provides them: the viewer itself has no
 * access to the traces. */
struct ui_clocks {
	void *arg;
	/* Builds a new version of the history `shown` in which the guest's clock has a total manual offset of ns, and writes
	 * a description of the change to result. Runs in a thread of its own. Returns the new history; NULL: error. The
	 * caller closes it unless it is the history that ui_run() was called with. */
	struct history *(*manual_offset)(void *arg, const struct history *shown, const char *guest, int64_t ns,
	                         struct progress progress, char *result, size_t size, struct error *err);
	/* Writes the manual offsets of the history as text: "Debian +3 us", or "" if there are none. */
	void (*list)(void *arg, const struct history *shown, char *buf, size_t size);
	/* Writes the offsets to a session file. file "": the session file in use, or a new file with a default name. Returns
	 * 0, or -1. */
	int (*save)(void *arg, const struct history *shown, const char *file, char *result, size_t size, struct error *err);
};

/* Callback that reads the events of a short interval from the traces. */
struct ui_traces {
	/* Reads the events within [from, to], ns, of the machine and of the machines that run it (its host, an outer guest);
	 * machine NULL: of all machines. Stops after `most` events. Runs in a thread of its own. Returns 0, or -1. */
	int (*read)(const struct history *shown, const char *machine, int64_t from, int64_t to, size_t most,
	            struct progress progress, struct event_list *out, struct error *err);
};

struct ui_options {
	const char *theme;        /* name or file of the theme; NULL: cvd-dark */
	const char *glyphs;       /* "ascii", "cells", "blocks"; NULL: chosen by locale and terminal */
	const char *color;        /* colour mode: "auto", "never", "8", "16", "256"; NULL: auto */
	const char *script;       /* file with keys and commands to run without a terminal; NULL: interactive */
	int width, height;        /* a scripted screen's size, cells; 0: 80 x 24 */
	unsigned bench;           /* frames to draw for a benchmark; 0: no benchmark */
	const struct ui_clocks *clocks;  /* callbacks for clock offsets; NULL: clock offsets cannot be changed */
	const struct ui_traces *traces;  /* callback that reads events; NULL: events cannot be read */
	const char *greeting;     /* warning, shown instead of the legend until the first key; NULL: none */
	const char *bookmarks;    /* file with the bookmarks of these traces; NULL: bookmarks are not saved */
	const char *longest;      /* row that the viewer shows first, at its longest gap: a name or a TID; NULL: none */
	const char *row, *at;     /* row and time that the viewer shows first; NULL: none */
	const char *view;         /* file with the saved view; NULL: the viewer starts with the overview */
	const char *config;       /* file with settings; NULL: $XDG_CONFIG_HOME/stealscope/config.yaml if it exists */
};

/* Checks that the terminal is usable, unless the viewer runs a script or a benchmark. Call before long work. Returns 0,
 * or -1. */
int ui_check(const struct ui_options *options, struct error *err);
/* Runs the viewer until the user quits. Restores the terminal even if a signal kills the program. Returns 0, or -1. */
int ui_run(const struct history *h, const struct ui_options *options, struct error *err);

/* Request for a picture of a window [from, to], ns, with the rows of the targets in `who` (whos entries; 0: the
 * overview). The suffix of the file name selects the format: .svg, .html, text for all others. Needs no terminal; the
 * width is that of the options. */
struct ui_picture {
	const char *file;
	const struct target *who;
	size_t target_count;
	int64_t from, to;
};
int ui_picture(const struct history *h, const struct ui_options *options, const struct ui_picture *p, struct error *err);

/* Recordings that the live screen starts. The caller of ui_top() provides them, because the screen itself starts no
 * programs. */
struct ui_top_actions {
	void *arg;
	/* Records 10 s and opens the viewer at the longest wait of a thread; tid -1: at the overview. The screen has left the
	 * terminal meanwhile. Returns 0, or -1. */
	int (*record)(void *arg, int32_t tid, struct error *err);
	/* Starts a flight recording with this trigger. Returns 0, or -1. */
	int (*arm)(void *arg, const char *trigger, struct error *err);
	/* Reads what the flight recording printed. Returns the saved recording count; *state: one line about the flight,
	 * "": there is none. Both texts stay valid until the next call. */
	size_t (*flight)(void *arg, const char **state);
	/* Returns the directory of saved recording i. */
	const char *(*snapshot)(void *arg, size_t i);
	/* Opens a saved recording in the viewer, like record(). */
	int (*open)(void *arg, size_t i, int32_t tid, struct error *err);
};

/* Shows live samples, one per period (ns), until the user quits, or for a number of rounds (0: no limit). Returns 0, or
 * -1. */
struct live;
int ui_top(struct live *live, int64_t period, unsigned long rounds, const struct ui_options *options,
           const struct ui_top_actions *actions, struct error *err);

/* A line of the list of recordings. Texts are escaped. */
struct ui_recording {
	const char *name, *who, *verdict;
	int64_t when, length;      /* start of the recording and its length, ns; length 0: unknown, `when` is its files' time */
	double share;              /* share of the verdict's loss; < 0: none */
	bool read, failed;         /* false: not read yet; true: unreadable, `verdict` is the reason */
};

/* A directory's recordings, and what the screen may ask for. The caller provides them, because the screen itself
 * reads no recordings and starts no programs. Functions with *err return 0, or -1. */
struct ui_recordings {
	void *arg;
	const char *dir;
	const struct ui_recording *row;  /* changes while step() reads */
	size_t rows;
	/* Goes on with reading, the rows in `wanted` first. Returns a descriptor to wait for; -1: all is read. */
	int (*step)(void *arg, const size_t *wanted, size_t n);
	int (*open)(void *arg, size_t row, struct error *err);
	int (*compare)(void *arg, size_t row, size_t other, struct error *err);
	int (*ticket)(void *arg, size_t row, char *file, size_t size, struct error *err);  /* *file: the page's name */
};

/* Shows the list until the user quits. Returns 0, or -1. */
int ui_recordings(const struct ui_recordings *list, const struct ui_options *options, struct error *err);
/* Writes the texts of a line's columns. */
void ui_recording_texts(const struct ui_recording *r, char when[TIME_TEXT], char length[TIME_TEXT], char share[16]);

/* Returns the name of shipped theme i; NULL: there are no more. */
const char *theme_shipped_name(unsigned i);

/* Prints the tables of keys, commands and settings as mdoc(7) source (for the man page) to stdout. */
void ui_print_keys_mdoc(void);
