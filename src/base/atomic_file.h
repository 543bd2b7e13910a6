/* Atomic files: a file gets its name when it is complete. It is written without a name (or under a temporary name if the
 * file system has no unnamed files), synced and renamed. A replaced file's permissions are kept, and a symbolic link to
 * it stays a link. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

/* Creates a path's missing directories, accessible to the user only. Errors are not reported: opening the file will
 * fail. */
void make_parent_dirs(const char *path);

/* Returns the path of a file in the user's directory $VARIABLE/stealscope/, or ~/BENEATH_HOME/stealscope/ if the
 * variable is unset; NULL: $HOME is unset, too. Root ignores directories of other users. The caller frees the path. */
char *user_file_path(const char *variable, const char *beneath_home, const char *name);

/* Returns true if the file begins with these bytes; false if not, or if it cannot be read. */
bool file_begins_with(const char *path, const char *magic, size_t n);
/* Protects files from mistyped names: fails if an existing file is neither empty nor replaceable. kind: the replaceable
 * kind of file, for the message ("a history"). */
int refuse_overwrite(const char *path, bool (*is_replaceable)(const char *path), const char *kind, struct error *err);

struct save {
	FILE *f;                 /* stream for the new content */
	char *path, *temp;       /* final path; temporary path, NULL: the file has no name; private */
};

/* Opens the new file. Fails for existing files that are not regular, dangling links, and links to open files
 * (/dev/stdout): the rename would replace them. After a failure do not call atomic_file_end(). */
int atomic_file_begin(struct save *s, const char *path, struct error *err);
/* Publishes the file if status is 0; otherwise drops the new file and keeps the old one, and *err stays as it is.
 * Returns -1 if status is -1, or with *err if writing failed. */
int atomic_file_end(struct save *s, int status, struct error *err);
