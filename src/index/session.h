/* Session files: which traces belong together and how to read them, in YAML (stealscope-session(5)). */
#ifndef STEALSCOPE_INDEX_SESSION_H
#define STEALSCOPE_INDEX_SESSION_H

#include <stdbool.h>

#include "index/index.h"

/* Is this operand a session file, by its name? */
bool session_is_one(const char *path);
/* The session file of a folder that has one, session.yaml, as recordings do; NULL: none.  The caller frees. */
char *session_in(const char *folder);

/* Adds what the session file says to `in`: trace specifications, sync method, hints.  Options that the user gave on
 * the command line win over the file.  Folders in it are relative to the file's own. */
int session_load(struct input *in, const char *path, struct error *err);
/* The same of text that stands in the file `path`, or as if it did. */
int session_parse(struct input *in, const char *text, size_t size, const char *path, struct error *err);

/* ---- Writing (session_write.c) */

/* The text of a session file at `path` that names host and guests as they were found (trace[], in order of in->spec, one
 * of them the host's, or none; trace NULL: the specifications have names and roles), and what the user knows of them.
 * Folders below that of the file are
 * relative.  The caller frees; NULL when a name or path is not UTF-8. */
char *session_text(const struct input *in, struct trace *const *trace, const struct trace *host, const char *path,
                   struct error *err);

/* Makes the nudges in a session file those of in->hint; nothing else of its text changes. */
int session_set_nudges(const char *path, const struct input *in, struct error *err);

#endif
