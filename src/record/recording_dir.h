/* The files of a recording, written below descriptors of its folders: what is made is new, and no link is followed. */
#ifndef STEALSCOPE_RECORD_RECORDING_DIR_H
#define STEALSCOPE_RECORD_RECORDING_DIR_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Makes a folder that is not there yet, or takes an empty one that is ours; returns a descriptor, or -1. */
int folder_make(const char *path, struct error *err);
/* Makes a folder NAME with pages, stats and events in it; returns a descriptor, or -1. */
int folder_make_machine(int parent, const char *name, struct error *err);

/* Writes a file of a machine's folder. */
int folder_put(int folder, const char *name, const void *data, size_t len, struct error *err);
/* The format of an event "system/name". */
int folder_put_format(int folder, const char *event, const char *text, size_t len, struct error *err);
/* saved_cmdlines ("TID NAME") and saved_tgids ("TID PROCESS"): first what /proc said when it began (lines "TID PROCESS
 * NAME"), then what the kernel wrote down of others.  Each may be NULL. */
int folder_put_threads(int folder, const char *threads, const char *cmdlines, const char *tgids, struct error *err);

/* The threads of this machine, as lines "TID PROCESS NAME".  The caller frees. */
char *folder_threads(const char *root);

/* Bytes that are free on its disk. */
uint64_t folder_room(int folder);

#endif
