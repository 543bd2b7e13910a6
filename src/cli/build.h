/* The loader: traces -> clocks -> model -> state history file. */
#ifndef STEALSCOPE_CLI_BUILD_H
#define STEALSCOPE_CLI_BUILD_H

#include "cli/input.h"
#include "history/history.h"

/* Traces decoded and synchronized. */
struct load {
	struct trace **trace;  /* [in->specs] */
	size_t traces;
	struct sync_result sync;
	struct notes notes;
};

/* Where the wall time of a build went, ns. */
enum build_phase { PHASE_DECODE, PHASE_SYNC, PHASE_MODEL, PHASE_WRITE, BUILD_PHASES };
extern const char *const build_phase_name[BUILD_PHASES];
struct build_times {
	int64_t begun;                /* monotonic: of the phase that runs */
	int64_t spent[BUILD_PHASES];
	uint64_t events;              /* decoded */
};

/* times may be NULL. */
int load_traces(struct load *l, struct input *in, struct progress progress, struct build_times *times,
                struct error *err);
void load_release(struct load *l);

/* Builds the history of `in` at `path`.  Leaves nothing behind when it fails or is cancelled. */
int build_quietly(struct input *in, const char *path, struct progress progress, struct error *err);
/* The same with a progress bar; prints the notes to stderr.  times may be NULL. */
int build_history(struct input *in, const char *path, struct build_times *times, struct error *err);

/* Is WHAT one history file, rather than traces or a session? */
bool names_history(const struct input *in);
/* Refuses the options that shape a history, since that one is made already. */
int refuse_shape(const struct input *in, struct error *err);

/* Opens WHAT as a history: a history file as it is; traces from their cache, building it when it is missing or stale
 * (and saying why).  NULL and *err on failure. */
struct history *open_what(struct input *in, struct error *err);

/* The same for one operand and default options. */
struct history *open_named(char *what, struct error *err);

/* Closes what these two opened (NULL is allowed).  Returns rc; but an answer that rests on a damaged part of the file
 * becomes a failure. */
int close_what(struct history *h, int rc, struct error *err);

/* The file of that name in the user's folder for such things, $VARIABLE/stealscope/ or the default; NULL: the user
 * has no home.  The caller frees. */
char *user_file(const char *variable, const char *beneath_home, const char *name);

/* Where the history of these inputs is cached: beside the traces, or under $XDG_CACHE_HOME when that is read-only. */
char *cache_path(const struct input *in, struct error *err);  /* the caller frees */

#endif
