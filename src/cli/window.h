/* Options --from and --to: a window of a history. */
#pragma once

#include "cli/opts.h"
#include "history/history.h"

struct window_options {
	const char *from, *to;  /* option arguments; NULL: start and end of the history */
	const char *named;      /* operand that contains both times, for errors; NULL: they are options */
};

#define WINDOW_OPTIONS(w) \
	{ "from", 0, OPT_TEXT, "TIME", "start of the window: 12:03:04.5, +3ms, -3ms, 50%", &(w)->from, NULL }, \
	{ "to", 0, OPT_TEXT, "TIME", "end of the window (inclusive)", &(w)->to, NULL }

struct window {
	int64_t from, to;  /* ns, both included */
};

/* Returns the unit of the last digit of a time, ns: time_precision() also of MACHINE@TIME. */
int64_t window_time_precision(const char *text);
/* Parses an option's time; MACHINE@TIME is a time on the clock of that VM. Returns -1 with *err if it lies outside of
 * the history; a time of day may lie before its start by less than the unit of its last digit. */
int window_parse_time(const char *option, const char *text, const struct history *h, int64_t *t, struct error *err);
/* Parses both options. Returns -1 with *err if the window is empty. */
int window_parse(struct window *w, const struct window_options *o, const struct history *h, struct error *err);
