/* What turns traces into a history: WHAT the user named -> trace specifications -> clocks -> model -> one file; and what
 * that file says of where it comes from.  Nothing is printed here, and nothing is asked of a terminal. */
#ifndef STEALSCOPE_INDEX_INDEX_H
#define STEALSCOPE_INDEX_INDEX_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/event_text.h"
#include "base/notes.h"
#include "base/progress.h"
#include "history/history.h"
#include "sync/sync.h"
#include "trace/trace.h"

/* ---- What is to be read, as the user wrote it; all borrowed */

struct input_options {
	char *const *what;         /* operands: trace folders, net://RELAY, session files */
	size_t whats;
	const char *host;          /* the host's trace lies below */
	const char *const *guest;  /* NAME=DIR */
	size_t guests;
	const char *layout;        /* name or file; NULL = each trace's own */
	const char *sync;          /* NULL = auto */
	int reader;                /* enum trace_reading */
	const char *live;          /* how long live sessions are read; NULL = to their end */
	bool paper_states;
	unsigned jobs;             /* threads, 0 = one per core */
};

/* Is that one history file, rather than traces or a session? */
bool input_names_history(const struct input_options *o);
/* Refuses the options that shape a history, since that one is made already. */
int input_refuse_shape(const struct input_options *o, struct error *err);

/* ---- What that comes to; owns all but what sync_options borrows from it */

struct model_groups;

struct input {
	struct trace_spec *spec;
	size_t specs;
	struct sync_hint *hint;    /* from a session file */
	size_t hints, hint_cap;
	struct model_groups *group;  /* from a session file, too */
	size_t groups, group_cap;
	char *folder;              /* the one folder that all of it was named by; NULL: there is none */
	char *layout, *sync;       /* as written, by the user or the session file; NULL = auto */
	int64_t live_for;          /* ns, 0 = to the end */
	bool paper_states;
	enum trace_reading reader;
	unsigned jobs;
	bool audit;                /* nothing is estimated: clocks as hints, tracers or the traces have them */
	struct sync_options sync_options;
	struct notes notes;        /* what lay beside the traces and could not be read */
};

/* Finds the traces and reads the session files.  Call input_release() in any case. */
int input_resolve(struct input *in, const struct input_options *o, struct error *err);
void input_release(struct input *in);

/* Is any of the traces live? */
bool input_is_live(const struct input *in);

/* ---- Building */

/* Traces decoded and synchronized. */
struct loaded {
	struct json_object *files;  /* their fingerprint, of before they were decoded; index_build()'s alone */
	struct trace **trace;       /* [in->specs] */
	size_t traces;
	struct sync_result sync;
	struct notes notes;
};

/* Where the wall time of a build went, ns. */
enum build_phase { PHASE_DECODE, PHASE_SYNC, PHASE_MODEL, PHASE_WRITE, BUILD_PHASES };
extern const char *const build_phase_name[BUILD_PHASES];
struct build_times {
	enum build_phase phase;       /* that runs */
	int64_t begun;                /* monotonic: when it did */
	int64_t spent[BUILD_PHASES];
	uint64_t events;              /* decoded */
	char readers[128];            /* what decoded them: "native, libtracecmd" */
};

/* times may be NULL.  Call loaded_release() in any case. */
int load_traces(struct loaded *l, struct input *in, struct progress progress, struct build_times *times,
                struct error *err);
void loaded_release(struct loaded *l);

/* Builds the history of `in` at `path`.  Leaves nothing behind when it fails or is cancelled.  What is to be said of the
 * input goes to *notes as well as into the history; times and notes may be NULL. */
int index_build(struct input *in, const char *path, struct progress progress, struct build_times *times,
                struct notes *notes, struct error *err);

/* ---- A part of a history, as a history */

struct cut_options {
	int64_t from, to;             /* ns, closed; cut to the history's span */
	const char *const *machine;   /* unescaped; the host always stays.  None: all */
	size_t machines;
	bool aliases;                 /* no name of a machine, thread, device, request or file stays */
	const char *key;              /* file whose bytes make the aliases; NULL: they are never the same again */
	struct progress progress;     /* tick may be NULL */
};

/* Writes it to `path`.  Leaves nothing behind when it fails. */
int cut_history(const struct history *h, const char *path, const struct cut_options *o, struct error *err);

/* ---- The cache */

/* Where the history of these inputs is kept: beside the traces, or under $XDG_CACHE_HOME when that is read-only or there
 * is no one place.  The caller frees. */
char *cache_path(const struct input *in, struct error *err);

/* 1: the history there fits; 0: it is to be built, in `why` the reason, or "" where there is none yet; -1: error. */
int cache_fits(const char *path, const struct input *in, char *why, size_t size, struct error *err);

/* ---- What a history says of where it comes from: one JSON document, read with base/json_field.h */

/* json_object_put() it.  NULL and *err when it has none. */
struct json_object *provenance_load(const struct history *h, struct error *err);

/* The clock report: one row per guest and piece, as `sync` prints it and `info` keeps it. */
struct json_object *provenance_sync_rows(const struct sync_result *sync);

/* The notes on its input.  false: they are damaged; what was sound is added. */
bool provenance_notes(const struct history *h, struct notes *notes);

/* A number that is the same for all histories of the same traces, whatever their clocks and options; 0 = not known. */
uint64_t provenance_traces(const struct history *h);

/* ---- Snippets: the events of a short time, read from the traces where these are as they were for the history */

struct snippet_options {
	int64_t from, to;             /* ns, closed, on the host's clock */
	const char *machine;          /* as the history calls it, "host": of it and of those that run it; NULL: of all */
	unsigned jobs;                /* threads, 0 = one per core */
	struct progress progress;     /* tick may be NULL */
};

struct snippet;
/* NULL and *err when the traces are gone or have changed, or cannot be read: one line that says so. */
struct snippet *snippet_open(const struct history *h, const struct snippet_options *o, struct error *err);
/* The events of all machines in the order of time.  1, 0 = end, -1.  The texts hold until the next call. */
int snippet_next(struct snippet *m, struct event_text *out, struct error *err);
void snippet_close(struct snippet *m);  /* NULL is allowed */

/* The first `most` of them. */
int snippet_read(const struct history *h, const struct snippet_options *o, size_t most, struct event_list *out,
                 struct error *err);

/* ---- Clocks moved by hand while the viewer shows them: each time another history, made of the same traces */

struct nudger {
	struct history *first;        /* what the viewer began with */
	char *session;                /* the session file in use, or NULL */
	unsigned jobs;
};

/* o is what the user asked for, h what was opened for it; h is borrowed until nudger_release(). */
void nudger_init(struct nudger *n, struct history *h, const struct input_options *o);
void nudger_release(struct nudger *n);

/* As the viewer calls them (ui_clocks in ui/ui.h); nudger: a struct nudger. */
struct history *nudger_nudge(void *nudger, const struct history *shown, const char *guest, int64_t ns,
                             struct progress progress, char *said, size_t size, struct error *err);
void nudger_list(void *nudger, const struct history *shown, char *buf, size_t size);
int nudger_save(void *nudger, const struct history *shown, const char *file, char *said, size_t size,
                struct error *err);

#endif
