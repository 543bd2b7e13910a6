/* Passwords of databases, which others must not see: `ps` shows everybody's arguments. */
#ifndef STEALSCOPE_CLI_PASSWORD_FILE_H
#define STEALSCOPE_CLI_PASSWORD_FILE_H

#include "base/error.h"

/* A copy of the URL, which the caller frees; where it stands, among the arguments of the process, its password is
 * overwritten.  NULL for NULL. */
char *secret_take(const char *url);

/* The first line of the file is the password of the database, unless the URL has one: as if the environment had it.  A
 * file that others may read is refused. */
int secret_read(const char *file, struct error *err);

#endif
