/* WHAT: the operands and options of commands that read traces or a history, and opening it. */
#ifndef STEALSCOPE_CLI_TRACE_INPUT_H
#define STEALSCOPE_CLI_TRACE_INPUT_H

#include "cli/opts.h"
#include "index/index.h"

struct what {
	struct input_options named;
	struct opt_list guest;  /* what named.guest borrows */
};

extern const char *const what_syncs[], *const what_readers[];

/* The options of every command that reads traces; use in the initialiser of an opt table. */
#define WHAT_OPTIONS(w) \
	{ "host", 0, OPT_TEXT, "DIR", "the host's trace lies below DIR", &(w)->named.host, NULL }, \
	{ "guest", 0, OPT_LIST, "NAME=DIR", "the trace of guest NAME lies below DIR", &(w)->guest, NULL }, \
	{ "for", 0, OPT_TEXT, "DURATION", "read live sessions for so long, not to their end", &(w)->named.live, NULL }, \
	{ "layout", 0, OPT_TEXT, "LAYOUT", "layout (name or file) of all traces", &(w)->named.layout, NULL }, \
	{ "sync", 0, OPT_TEXT, "HOW", "auto, tsc, events, containment, offset=DURATION, none", &(w)->named.sync, what_syncs }, \
	{ "paper-states", 0, OPT_FLAG, NULL, "fold HOST_BLOCKED and WAKING as in the paper", &(w)->named.paper_states, NULL }, \
	{ "reader", 0, OPT_CHOICE, "READER", "of CTF: auto, native or babeltrace", &(w)->named.reader, what_readers }, \
	{ "jobs", 'j', OPT_COUNT, "N", "threads (default: one per core)", &(w)->named.jobs, NULL }

/* opts_parse() for these commands: what is not an option is WHAT.  Call what_release() in any case. */
int what_parse(struct what *w, const struct opts *o, int argc, char **argv, struct error *err);
void what_release(struct what *w);

/* Prints notes to stderr. */
void what_say(const struct notes *n);

/* Builds with a progress bar, and prints the notes to stderr.  times may be NULL. */
int what_build(struct input *in, const char *path, struct build_times *times, struct error *err);

/* Opens WHAT as a history: a history file as it is; traces from their cache, building it when it is missing or stale
 * (and saying why).  NULL and *err on failure. */
struct history *what_open(const struct input_options *named, struct error *err);

/* The same for one operand and default options. */
struct history *what_open_named(char *what, struct error *err);

/* Closes what these two opened (NULL is allowed).  Returns rc; but an answer that rests on a damaged part of the file
 * becomes a failure. */
int what_close(struct history *h, int rc, struct error *err);

#endif
