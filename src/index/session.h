/* Session files (YAML, stealscope-session(5)): which traces belong together, and how to read them. */
#pragma once

#include <stdbool.h>

#include "index/index.h"

/* Returns true if the file name is a session file's name: it ends in .yaml or .yml. */
bool is_session_file_name(const char *path);
/* Returns the path of session.yaml in a directory, where recordings write it; NULL: there is none. The caller frees it. */
char *find_session_file(const char *dir);

/* Adds the contents of the session file to *in: trace specifications, sync method, hints. Options of the command line
 * take precedence. Directories in the file are relative to the file's directory. was_found:
 * in a directory that the user named: guests of which the trace cannot be read are skipped. Returns 0 or -1. */
int session_load(struct input *in, const char *path, bool was_found, struct error *err);
/* As session_load(), for a text. path: file that contains the text, or would contain it. */
int session_parse(struct input *in, const char *text, size_t size, const char *path, struct error *err);

/* ---- Writing (session_write.c) */

/* Returns the text of a session file for `path`: the host, the guests, and the user's hints. trace: traces in the order
 * of in->spec, from which names and roles are taken; NULL: the specifications contain them. host: one of trace[], or
 * NULL. Directories below the file's directory are relative. The caller frees the text. Returns NULL if a name or
 * path is not UTF-8. */
char *session_text(const struct input *in, struct trace *const *trace, const struct trace *host, const char *path,
                   struct error *err);

/* Sets the manual offsets in a session file to those in in->hint; the rest of the text stays unchanged. Returns 0 or -1. */
int session_set_manual_offsets(const char *path, const struct input *in, struct error *err);
