/* Writes a recording's files, relative to its directories' descriptors. Symbolic links are not followed. */
#pragma once

#include "base/base.h"

/* Creates a directory, or uses an empty one that the user owns and to which nobody else can write. *created: whether it did
 * not exist before. Returns a descriptor, or -1 with *err. */
int dir_make(const char *path, bool *created, struct error *err);
/* Creates the directory of a machine with the subdirectories pages, stats and events. Returns a descriptor, or -1 with
 * *err. */
int dir_make_machine(int parent, const char *name, struct error *err);

/* Removes a directory with all its contents, as far as possible. */
void dir_remove(int parent, const char *name);

/* Writes a file in a directory; does nothing if dir is -1. */
int dir_put(int dir, const char *name, const void *data, size_t len, struct error *err);
/* Writes events/SYSTEM/NAME/format; event: "system/name". */
int dir_put_format(int dir, const char *event, const char *text, size_t len, struct error *err);
/* Writes the file header_page, which describes the layout of trace pages, if the reader of the recording accepts it. */
int dir_put_header_page(int dir, const char *text, struct error *err);
/* Writes the files saved_cmdlines ("TID NAME") and saved_tgids ("TID PROCESS"). They contain the threads from /proc at
 * the start (`threads`: lines "TID PROCESS NAME"), then other threads from the kernel's saved_cmdlines and saved_tgids.
 * Each text may be NULL. */
int dir_put_threads(int dir, const char *threads, const char *cmdlines, const char *tgids, struct error *err);

/* Lists this machine's threads as lines "TID PROCESS NAME". The caller frees. */
char *dir_threads(const char *root);

/* Lists the threads in pid or cgroup namespaces other than those of the host, as lines "TID PROCESS PIDNS CGROUPNS" with
 * the inode numbers of the namespaces. The caller frees. */
char *dir_namespaces(const char *root);

/* Returns the free bytes of the file system that contains the directory. */
uint64_t dir_free_bytes(int dir);
uint64_t dir_disk_size(int dir);  /* bytes of its file system; UINT64_MAX: unknown */
