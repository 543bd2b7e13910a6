/* WHAT the user named, and the options that shape how it is read: -> trace specifications. */
#ifndef STEALSCOPE_CLI_INPUT_H
#define STEALSCOPE_CLI_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/opts.h"
#include "model/model.h"
#include "sync/sync.h"
#include "trace/trace.h"

struct input {
	/* filled by the options */
	const char *host;         /* --host DIR */
	struct opt_list guest;    /* --guest NAME=DIR */
	const char *layout;       /* --layout */
	const char *sync;         /* --sync, as written; NULL = auto */
	bool paper_states;        /* --paper-states */
	unsigned jobs;            /* --jobs, 0 = one per core */
	const char *live;         /* --for, as written; NULL = to the end */
	/* the operands */
	char **what;
	int whats;
	/* filled by input_resolve() */
	struct trace_spec *spec;
	size_t specs;
	struct sync_hint *hint;   /* from a session file */
	size_t hints, hint_cap;
	int64_t live_for;         /* ns, 0 = to the end */
	char *session_sync;       /* owns what `sync` borrows from a session file */
	struct sync_options sync_options;
};

/* The options of every command that reads traces; use in the initialiser of an opt table. */
#define INPUT_OPTIONS(in) \
	{ "host", 0, OPT_TEXT, "DIR", "the host's trace lies below DIR", &(in)->host, NULL }, \
	{ "guest", 0, OPT_LIST, "NAME=DIR", "the trace of guest NAME lies below DIR", &(in)->guest, NULL }, \
	{ "for", 0, OPT_TEXT, "DURATION", "read live sessions for so long, not to their end", &(in)->live, NULL }, \
	{ "layout", 0, OPT_TEXT, "LAYOUT", "layout (name or file) of all traces", &(in)->layout, NULL }, \
	{ "sync", 0, OPT_TEXT, "HOW", "auto, events, containment, offset=DURATION or none", &(in)->sync, NULL }, \
	{ "paper-states", 0, OPT_FLAG, NULL, "fold HOST_BLOCKED and WAKING as in the paper", &(in)->paper_states, NULL }, \
	{ "jobs", 'j', OPT_COUNT, "N", "threads (default: one per core)", &(in)->jobs, NULL }

/* Finds the traces and parses --sync.  Call input_release() in any case. */
int input_resolve(struct input *in, struct error *err);
void input_release(struct input *in);
/* The last part of input_resolve(): the options that are for all machines. */
int input_finish(struct input *in, struct error *err);

/* Adds the one machine whose traces lie below dir (name and layout may be NULL; copied). */
int input_add_machine(struct input *in, const char *dir, const char *name, enum trace_role role, const char *layout,
                      struct error *err);
/* A new hint about the guest of that name; the pointer holds until the next one is added. */
struct sync_hint *input_add_hint(struct input *in, const char *guest);

/* Is any of the traces live? */
bool input_is_live(const struct input *in);

/* The options that shape a history, as one line: two histories of the same traces are alike when it is equal. */
char *input_shape(const struct input *in);  /* the caller frees */

#endif
