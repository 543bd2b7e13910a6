/* Opens files that users name, and files in untrusted directories. */
#pragma once

#include <errno.h>
#include <stdio.h>

#define FILE_NOT_REGULAR EMEDIUMTYPE  /* errno of file_open(); errors of error.h explain it */

/* Opens a regular file, or /dev/null, for reading. Returns NULL with errno, which is
 * FILE_NOT_REGULAR or EISDIR for other files: reading a pipe or a terminal may never end. */
FILE *file_open(const char *path);
