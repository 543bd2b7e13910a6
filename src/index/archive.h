/* Unpacks compressed files and archives (gzip, zstd, xz, zip, tar ...) by libarchive, in a sandboxed child process.
 *
 * The child creates regular files and directories of its own below one directory. It leaves out links, special files and
 * names with "..", and stops at a size, so that neither the disk nor files elsewhere are at risk. */
#pragma once

#include "base/base.h"
#include "base/progress.h"

#define ARCHIVE_HEAD 264         /* bytes at the start of a file that archive_kind() needs */
#define ARCHIVE_FILES_MAX 100000 /* files in an archive */
#define ARCHIVE_NAME_MAX 1024    /* length of a name in an archive, bytes */

/* Returns the name of the format ("gzip") of a file that begins with these bytes; NULL: not packed. */
const char *archive_kind(const unsigned char *head, size_t len);

/* Writes the name of an entry to `clean`: relative, without ".", empty and trailing parts. Returns false for a name that
 * leaves the directory, or is empty or too long. */
bool archive_clean_name(const char *name, char clean[ARCHIVE_NAME_MAX]);

/* Unpacks the file that is open as fd into the directory `dir`. path: in messages; single: file name of a compressed file
 * that is no archive; max_bytes: limit of the unpacked size. *left_out: number of entries that were left out.
 * Returns 0 or -1. */
int archive_unpack(int fd, const char *path, const char *dir, const char *single, uint64_t max_bytes, uint64_t *left_out,
                   const struct progress *progress, struct error *err);
