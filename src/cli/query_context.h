/* Query context of a command: the open history, its catalog, the window, and the answer's provenance. */
#pragma once

#include <limits.h>

#include "cli/window.h"
#include "query/query.h"
#include "report/report.h"

struct query_context {
	const char *named;       /* recording, as the user wrote it */
	struct history *h;
	struct catalog catalog;
	struct window window;
	struct origin origin;  /* set by query_context_about() */
};

/* Opens the history or traces and parses the window. Always call query_context_close(): it returns rc, or -1 if the
 * answer depends on a damaged history. */
int query_context_open(struct query_context *s, char *recording, const struct window_options *when, struct error *err);
int query_context_close(struct query_context *s, int rc, struct error *err);
/* Parses the command line (a recording and an optional target) and opens it. After -1 there is nothing to close. */
int query_context_begin(struct query_context *s, const struct opts *opts, int argc, char **argv,
                        const struct window_options *when, const char **target_text, struct error *err);

/* query_answer() with progress on a terminal; Ctrl-C cancels it. */
#define query_context_answer(q, out, err) query_context_answer_bytes((q), (out), sizeof *(out), (err))
int query_context_answer_bytes(struct query *q, void *answer, size_t bytes, struct error *err);

/* Sets the target of the answer (NULL: all) and loads its provenance and warnings into s->origin. For csv, which cannot
 * contain warnings, prints them to stderr. */
void query_context_about(struct query_context *s, const struct target *target, struct report_how how);
/* Call after query_context_about(): adds a note to csv and json if rows are omitted. (In text, the table itself shows
 * that.) rows: what the rows are, for the note. */
void query_context_note_omitted(struct query_context *s, uint64_t shown, uint64_t all, const char *rows,
                                struct report_how how);
/* Default of --top in cmd_*.c: as many rows as the terminal shows. */
#define TOP_FIT UINT_MAX
/* Call after query_context_about(): returns the number of rows to print (0: all). That is top, or for TOP_FIT `most`; less
 * if stdout is a terminal and its height does not suffice for the answer's head, that many rows, and `other` lines
 * (the table's heading, other rows, lines after the table), but at least 5. */
size_t query_context_fit_rows(const struct query_context *s, unsigned top, size_t most, size_t other,
                              struct report_how how);
/* Prints a target's longest interval with the command that shows it, as each finding ends:
 * "Longest: 12.0 ms (stealscope view FILE --row Debian/CPU0 --at 05:30:51.462798)." */
void query_context_print_place(const struct query_context *s, const struct target *target, int64_t start, int64_t end);
/* Call after query_context_about(): returns the provenance of the history as JSON, owned by the context; NULL with *err:
 * none. */
struct json_object *query_context_provenance(const struct query_context *s, struct error *err);
