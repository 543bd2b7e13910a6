/* Operands and options of commands that read traces or a history; opens the history. */
#pragma once

#include "cli/opts.h"
#include "index/index.h"

struct trace_input {
	struct input_options named;
	struct opt_list guest, domain;  /* values of --guest and --domain; named.guest and named.domain point to them */
	struct { struct input_copy *item; size_t len, cap; } copied;  /* with paths that are owned */
};

extern const char *const sync_method_choices[];

/* Rows of an option table, for commands that read traces; w: struct trace_input *. */
#define TRACE_INPUT_OPTIONS(w) \
	{ "host", 0, OPT_TEXT, "DIR", "directory with the host's trace", &(w)->named.host, NULL }, \
	{ "guest", 0, OPT_LIST, "NAME=DIR", "directory with the trace of guest NAME", &(w)->guest, NULL }, \
	{ "for", 0, OPT_TEXT, "DURATION", "read live sessions for this long", &(w)->named.live, NULL }, \
	{ "layout", 0, OPT_TEXT, "LAYOUT", "layout (name or file) for all traces", &(w)->named.layout, NULL }, \
	{ "sync", 0, OPT_TEXT, "HOW", "auto, tsc, events, containment, offset=DURATION, none", \
	  &(w)->named.sync, sync_method_choices }, \
	{ "tsc-hz", 0, OPT_TEXT, "N", "frequency of a TSC of unknown frequency, Hz", &(w)->named.tsc_hz, NULL }, \
	{ "domain", 0, OPT_LIST, "ID=NAME", "name of a domain of a Xen host", &(w)->domain, NULL }, \
	{ "paper-states", 0, OPT_FLAG, NULL, "fold HOST_BLOCKED and WAKING as in the paper", &(w)->named.paper_states, NULL }, \
	{ "jobs", 'j', OPT_COUNT, "N", "threads (default: one per core)", &(w)->named.jobs, NULL }

/* Parses a command line with these options; operands are traces or a history. Always call trace_input_release(). */
int trace_input_parse(struct trace_input *w, const struct opts *o, int argc, char **argv, struct error *err);
void trace_input_release(struct trace_input *w);

/* After the history was built: writes session.yaml to a directory that the user named as the only machine, a host, unless
 * it has one. The next command knows then that the machine is physical. */
void trace_input_remember_host(const struct input_options *named);

/* Returns the path that is read in place of a named one, see packed_input_path(); with a progress bar. The caller frees. */
char *trace_input_path(const char *named, struct error *err);

/* Builds the history of traces at `path` with a progress bar, and prints notes to stderr. times: the phases' times;
 * may be NULL. */
int trace_input_build(struct input *in, const char *path, struct build_times *times, struct error *err);

/* Opens a history file, or the cached history of traces. If the cache is missing or stale, builds it and prints the
 * reason. NULL with *err on failure. */
struct history *trace_input_open(const struct input_options *named, struct error *err);

/* The same for one operand and default options. */
struct history *trace_input_open_named(char *recording, struct error *err);

/* Closes a history of these two functions (NULL is allowed). Returns rc, or -1 with *err if rc is 0 but damaged parts of
 * the history were read. */
int trace_input_close(struct history *h, int rc, struct error *err);
