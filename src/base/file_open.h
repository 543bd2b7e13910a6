/* Files to be read that somebody else made. */
#ifndef STEALSCOPE_BASE_FILE_OPEN_H
#define STEALSCOPE_BASE_FILE_OPEN_H

#include <stdio.h>

/* Opens a regular file.  NULL and errno when it is none: one would wait at a pipe for somebody to write, and hang. */
FILE *file_open(const char *path);

#endif
