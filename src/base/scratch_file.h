/* Unlinked temporary files for data that does not fit into memory. They vanish with the process. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Opens a file in dir (NULL: $TMPDIR, or /tmp). Returns its descriptor, or -1 with *err. */
int scratch_open(const char *dir, struct error *err);
/* Reads or writes all bytes at an offset. Thread-safe. */
int scratch_write(int fd, const void *data, size_t len, int64_t at, struct error *err);
int scratch_read(int fd, void *data, size_t len, int64_t at, struct error *err);
