/* Copies of the fibonacci recording to change and damage, in a temporary folder. */
#ifndef STEALSCOPE_TESTS_TRACE_FILES_H
#define STEALSCOPE_TESTS_TRACE_FILES_H

#include <stddef.h>

int files_begin(void **state);  /* makes the temporary folder: a group setup */
int files_end(void **state);    /* removes it: the teardown */

char *path_of(const char *name);  /* in the temporary folder; malloc'ed */
void write_file(const char *path, const void *data, size_t len);
char *read_whole(const char *path, size_t *len);  /* malloc'ed, a zero byte behind it */

/* A copy of one machine's trace of the recording ("host", "guest-Debian") as the folder NAME; its path, malloc'ed. */
char *copy_trace(const char *name, const char *machine);
void damage(const char *dir, const char *file, long offset, size_t len);  /* overwrites with noise */
void cut(const char *dir, const char *file, long len);
void delete(const char *dir, const char *file);

#endif
