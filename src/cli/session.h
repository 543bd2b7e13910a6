/* Session files: which traces belong together and how to read them, in YAML (stealscope-session(5)). */
#ifndef STEALSCOPE_CLI_SESSION_H
#define STEALSCOPE_CLI_SESSION_H

#include <stdbool.h>

#include "cli/input.h"

/* Is this operand a session file, by its name? */
bool session_is_one(const char *path);

/* Adds what the session file says to `in`: trace specifications, sync method, hints.  Options that the user gave on
 * the command line win over the file.  Folders in it are relative to the file's own. */
int session_load(struct input *in, const char *path, struct error *err);

#endif
