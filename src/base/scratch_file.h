/* A file without a name, for what does not fit into memory: nobody else sees it, and it ends with who made it. */
#ifndef STEALSCOPE_BASE_SCRATCH_FILE_H
#define STEALSCOPE_BASE_SCRATCH_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

int scratch_open(const char *dir, struct error *err);  /* NULL: $TMPDIR, or /tmp.  The file, or -1 */
/* All bytes, at that place; any number of threads at a time. */
int scratch_write(int fd, const void *data, size_t len, int64_t at, struct error *err);
int scratch_read(int fd, void *data, size_t len, int64_t at, struct error *err);

#endif
