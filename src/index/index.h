/* Indexing: finds the traces that the user named, synchronizes the clocks, runs the model, and writes one history file.
 * The file also contains the provenance. The functions print nothing and do not use the terminal. */
#pragma once

#include <json-c/json.h>

#include "base/base.h"
#include "base/event_text.h"
#include "base/notes.h"
#include "base/progress.h"
#include "base/control_groups.h"
#include "base/topology.h"
#include "history/history.h"
#include "sync/sync.h"
#include "trace/trace.h"

/* ---- Input as specified by the user; the strings and arrays are borrowed */

struct input_copy {
	char *path;                /* read in place of a pipe or a packed file */
	const char *named;         /* by the user */
};

struct input_options {
	char *const *what;         /* operands: trace directories, net://RELAY, session files */
	size_t whats;
	const char *host;          /* directory that contains the host's trace; NULL: not specified */
	const char *const *guest;  /* "NAME=DIR" of each guest */
	size_t guests;
	const char *layout;        /* name or file; NULL: chosen for each trace */
	const char *sync;          /* method as text; NULL: auto */
	const char *live;          /* time to read live sessions for, as text; NULL: until they end */
	bool paper_states;
	const char *tsc_hz;        /* frequency of TSCs of unknown frequency, Hz, as text; NULL: not specified */
	const char *const *domain; /* "ID=NAME" of domains of a Xen host */
	size_t domains;
	unsigned jobs;             /* thread count; 0: one per core */
	const struct input_copy *copy;
	size_t copies;
};

/* Replaces the paths of copies in the text of *err by what the user named. Returns -1. */
int input_name_copies(const struct input_options *o, struct error *err);

/* Returns true if the input is one history file, not traces or a session. */
bool input_is_history(const struct input_options *o);
/* Fails if an option is set that only affects indexing, because the input is a history already. Returns 0 or -1. */
int input_check_history_options(const struct input_options *o, struct error *err);

/* Returns the path that is read in place of a path that the user named, malloc'ed: a private copy of a packed file, an
 * archive, a pipe or standard input ("-"); otherwise the same path. Returns NULL, with *err set, on failure. */
char *packed_input_path(const char *named, const struct progress *progress, struct error *err);

/* ---- Recordings in a directory */

#define CACHE_NAME "stealscope.steal"  /* cached history beside the traces */

struct recording_entry {
	char *path;               /* owned */
	const char *name;         /* path without the directory */
	int64_t modified;         /* newest change of its files, ns since the epoch */
	uint64_t fingerprint;     /* changes with names, sizes and times of its files */
};
struct recordings { struct recording_entry *item; size_t len, cap; };

/* Lists the recordings in a directory, and in directories there that hold several, by name. None (len 0) if the directory
 * is a recording itself, or holds fewer than `at_least`. Returns 0, or -1 if the directory cannot be read. */
int recordings_find(struct recordings *out, const char *dir, size_t at_least, struct error *err);
void recordings_release(struct recordings *r);
bool recording_is_here(const char *dir);  /* true: the directory is a recording, or holds traces */

/* ---- Resolved input; owns all members; sync_options points to some of them */

struct model_groups;

struct input {
	struct trace_spec *spec;
	size_t specs;
	struct sync_hint *hint;    /* known clocks and vCPU threads, from a session file */
	size_t hints, hint_cap;
	struct trace_domain *domain;  /* names of the domains of a Xen host, given by the user or a session file */
	size_t domains, domain_cap;
	struct model_groups *group;  /* control groups, from a session file */
	size_t groups, group_cap;
	struct control_groups control_groups;  /* from a session file */
	struct topology topology;  /* of the host, from a session file */
	char *dir;                 /* the only operand, if it is a directory; NULL: other operands */
	char *layout, *sync;       /* as specified by the user or the session file; NULL: auto */
	int64_t live_for;          /* time to read live sessions for, ns; 0: until they end */
	bool paper_states;
	unsigned jobs;
	bool audit;                /* no clock is estimated: the clocks in hints, recorded by tracers and of the traces are
	                            * used */
	struct sync_options sync_options;
	struct notes notes;        /* notes about unreadable traces, which were skipped */
};

/* Finds the traces and reads the session files. Returns 0 or -1. Call input_release() in both cases. */
int input_resolve(struct input *in, const struct input_options *o, struct error *err);
void input_release(struct input *in);

/* Returns true if any trace is live. */
bool input_is_live(const struct input *in);

/* ---- Building */

/* Decoded and synchronized traces. */
struct loaded {
	struct json_object *files;  /* the traces' fingerprint, taken before decoding; only set by index_build() */
	struct trace **trace;       /* [in->specs] */
	size_t traces;
	struct sync_result sync;
	struct notes notes;
};

/* Wall time of the phases of a build, ns. */
enum build_phase { PHASE_DECODE, PHASE_SYNC, PHASE_MODEL, PHASE_WRITE, BUILD_PHASES };
extern const char *const build_phase_name[BUILD_PHASES];
struct build_times {
	enum build_phase phase;       /* current phase */
	int64_t begun;                /* start of the current phase, monotonic, ns */
	int64_t spent[BUILD_PHASES];
	uint64_t events;              /* decoded event count */
	char readers[128];            /* decoders, for example "native, trace-cmd" */
};

/* Decodes and synchronizes the traces. times may be NULL. Returns 0 or -1. Call loaded_release() in both cases. */
int load_traces(struct loaded *l, struct input *in, struct progress progress, struct build_times *times,
                struct error *err);
void loaded_release(struct loaded *l);

/* Builds the history of `in` at `path`. Leaves no file if it fails or is cancelled. Adds notes to *notes and to the
 * history; times and notes may be NULL. Returns 0 or -1. */
int index_build(struct input *in, const char *path, struct progress progress, struct build_times *times,
                struct notes *notes, struct error *err);

/* ---- Cut: part of a history, stored as another history */

struct cut_options {
	int64_t from, to;             /* window, ns, both ends included; limited to the history's time */
	const char *const *machine;   /* the machines' names, unescaped; the host is always included; machines == 0: all
	                               * machines */
	size_t machines;
	bool aliases;                 /* replaces the machine names, threads, devices, requests and files */
	const char *key;              /* path of the key file for the aliases; NULL: a random key, so aliases differ each
	                               * time */
	struct progress progress;     /* tick may be NULL */
};

/* Writes the cut to `path`. Leaves no file if it fails. Returns 0 or -1. No other thread may read h meanwhile. */
int cut_history(struct history *h, const char *path, const struct cut_options *o, struct error *err);
/* Returns the alias of an escaped name in a cut with this key file, allocated; NULL with *err set. */
char *cut_alias(const char *key, const char *name, struct error *err);

/* ---- The cache */

/* Returns the path of the history for these inputs: next to the traces; in $XDG_CACHE_HOME if that directory is
 * read-only, or if the traces are in several directories. The caller frees it. Returns NULL, with *err set, on failure. */
char *cache_path(const struct input *in, struct error *err);
/* The same, always in the user's cache directory. */
char *cache_path_of_user(const struct input *in, struct error *err);

/* Returns 1: the history at `path` is current; 0: it must be built, for the reason in `why` ("": it does not exist); -1:
 * failure. */
int cache_is_current(const char *path, const struct input *in, char *why, size_t size, struct error *err);

/* ---- Provenance: origin of a history as one JSON document, read with base/json_field.h */

/* Returns the provenance, which the caller releases with json_object_put(); NULL, with *err set, if there is none. */
struct json_object *provenance_load(const struct history *h, struct error *err);

/* Returns the clock report, one row per guest and clock segment, as printed by `sync` and `info`. */
struct json_object *provenance_sync_rows(const struct sync_result *sync);

/* Adds the notes that were stored when the history was built. Returns false if they are damaged; the notes before the
 * damage are added. */
bool provenance_notes(const struct history *h, struct notes *notes);

/* Returns a number that is equal for all histories of the same traces, whatever their clocks and options; 0: unknown. */
uint64_t provenance_traces_hash(const struct history *h);

/* ---- Raw events of a short window, read from the traces of a history (if the traces are unchanged) */

struct raw_events_options {
	int64_t from, to;             /* window, ns on the host's clock, both ends included */
	const char *machine;          /* name of a machine in the history ("host" for the host): only events of this machine,
	                               * its host and outer guests; NULL: all machines */
	unsigned jobs;                /* thread count; 0: one per core */
	struct progress progress;     /* tick may be NULL */
};

struct raw_events;
/* Opens the traces of the history and decodes the window. Returns NULL, with *err set, if the traces are missing,
 * changed or unreadable. */
struct raw_events *raw_events_open(const struct history *h, const struct raw_events_options *o, struct error *err);
/* Reads the next event of all machines in time order. Returns 1, 0 = end, or -1. The texts in *out are valid until the
 * next call. */
int raw_events_next(struct raw_events *m, struct event_text *out, struct error *err);
void raw_events_close(struct raw_events *m);  /* m may be NULL */

/* Reads the first max_events events of the window; sets out->more if there are further ones. Returns 0 or -1. */
int raw_events_read(const struct history *h, const struct raw_events_options *o, size_t max_events, struct event_list *out,
                 struct error *err);

/* ---- Manual clock offsets in the viewer: each change builds another history of the same traces */

struct offset_editor {
	struct history *first;        /* history with which the viewer was started */
	char *session;                /* path of the session file for saving; NULL: none yet */
	unsigned jobs;
};

/* o: the user's input; h: the history opened for it, borrowed until offset_editor_release(). */
void offset_editor_init(struct offset_editor *n, struct history *h, const struct input_options *o);
void offset_editor_release(struct offset_editor *n);

/* Callbacks of the viewer (ui_clocks in ui/ui.h). offset_editor: a struct offset_editor; message: result for the user. */
struct history *offset_editor_move(void *offset_editor, const struct history *shown, const char *guest, int64_t ns,
                             struct progress progress, char *message, size_t size, struct error *err);
void offset_editor_list(void *offset_editor, const struct history *shown, char *buf, size_t size);
int offset_editor_save(void *offset_editor, const struct history *shown, const char *file, char *message, size_t size,
                struct error *err);
