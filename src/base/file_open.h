/* Opens files in untrusted directories. */
#ifndef STEALSCOPE_BASE_FILE_OPEN_H
#define STEALSCOPE_BASE_FILE_OPEN_H

#include <stdio.h>

/* Opens a regular file for reading. Returns NULL with errno if it is not a regular file: opening a pipe without a writer
 * would block. */
FILE *file_open(const char *path);

#endif
