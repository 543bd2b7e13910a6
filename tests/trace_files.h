/* Copies of the fibonacci recording in a temporary directory, which tests change and damage. */
#pragma once

#include <stddef.h>

int files_begin(void **state);  /* group setup: makes the temporary directory */
int files_end(void **state);    /* group teardown: removes it */

char *path_of(const char *name);  /* returns a path in the temporary directory, malloc'ed */
void write_file(const char *path, const void *data, size_t len);
char *read_whole(const char *path, size_t *len);  /* returns the contents, malloc'ed, with a zero byte at the end */

/* Copies the trace of one machine ("host", "guest-Debian") to the directory `name`. Returns its path, malloc'ed. */
char *copy_trace(const char *name, const char *machine);
void damage(const char *dir, const char *file, long offset, size_t len);  /* overwrites with noise */
void cut(const char *dir, const char *file, long len);
void delete(const char *dir, const char *file);
