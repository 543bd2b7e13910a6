/* Hides passwords of databases from `ps`. */
#pragma once

#include "base/error.h"

/* Returns a copy of a URL, which the caller frees, and overwrites the password in the original, which is an argument of
 * the process. url NULL: returns NULL. */
char *password_hide(const char *url);

/* Sets the environment variables with database passwords from the first line of a file; a password in the URL has
 * precedence. Returns -1 if other users may read the file. */
int password_read_file(const char *file, struct error *err);
