/* --from and --to: a window of a history. */
#ifndef STEALSCOPE_CLI_WINDOW_H
#define STEALSCOPE_CLI_WINDOW_H

#include "cli/opts.h"
#include "history/history.h"

struct window_options {
	const char *from, *to;  /* as written; NULL = the history's begin and end */
	const char *named;      /* what told both, if no options did */
};

#define WINDOW_OPTIONS(w) \
	{ "from", 0, OPT_TEXT, "TIME", "from here: 12:03:04.5, +3ms, -3ms (from its end), 50%", &(w)->from, NULL }, \
	{ "to", 0, OPT_TEXT, "TIME", "to here, included", &(w)->to, NULL }

struct window {
	int64_t from, to;  /* ns, both included */
};

/* The moment of the history that `option` tells; a time of day may begin before it does, as its last digit says. */
int window_moment(const char *option, const char *text, const struct history *h, int64_t *t, struct error *err);
int window_parse(struct window *w, const struct window_options *o, const struct history *h, struct error *err);

#endif
