/* Files that appear under their name when they are whole: written without one (where the file system cannot do that, beside
 * it under a temporary one), synced, renamed.  A file that is replaced keeps its permissions, and a symbolic link to it
 * stays a link. */
#ifndef STEALSCOPE_BASE_ATOMIC_FILE_H
#define STEALSCOPE_BASE_ATOMIC_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

/* Makes the folders of a path that are missing, for the user alone; what fails shows when the file is made. */
void save_folders(const char *path);

/* The file of that name in the user's folder for such things, $VARIABLE/stealscope/ or else ~/BENEATH_HOME/stealscope/;
 * NULL: the user has no home.  The caller frees. */
char *save_user_file(const char *variable, const char *beneath_home, const char *name);

/* Does the file begin with this?  False when it cannot be read. */
bool save_begins_with(const char *path, const char *magic, size_t n);
/* A name given by mistake, perhaps that of a trace, costs no file: refuses one that exists, is not empty, and is not
 * of the kind ("a history") that is to be written. */
int save_spares(const char *path, bool (*is_one)(const char *path), const char *kind, struct error *err);

struct save {
	FILE *f;           /* to write to */
	char *path, *temp; /* where it goes; where it is, NULL: without a name; private */
};

/* Refuses what exists and is no regular file, a link that leads nowhere, and what leads to an open file (/dev/stdout):
 * these would be replaced themselves.  On failure there is nothing to end. */
int save_begin(struct save *s, const char *path, struct error *err);
/* status: 0, or -1 (with *err filled) when what should be written could not be: then the old file stays.  Returns -1 if
 * status is, or if the system refuses. */
int save_end(struct save *s, int status, struct error *err);

#endif
