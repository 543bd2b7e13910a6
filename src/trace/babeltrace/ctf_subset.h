/* Subsets of a CTF trace: temporary trace directories that libbabeltrace2 can read.
 *
 * A subset contains symbolic links to the metadata and to stream files, and its own index files, which list only the
 * wanted packets. No trace data is copied. libbabeltrace2 reads the packets that an index lists, at the listed offsets.
 *
 * Limit: libbabeltrace2 accepts an index only if its packet sizes add up to the size of the file. So the size in the
 * last entry is larger than the packet; nothing else uses that size. If the library rejects the index, it reads the
 * whole stream: the caller must check the decoded packets (struct decode_request in graph.h, `must_match`). */
#ifndef STEALSCOPE_TRACE_BABELTRACE_CTF_SUBSET_H
#define STEALSCOPE_TRACE_BABELTRACE_CTF_SUBSET_H

#include <stddef.h>

#include "base/error.h"
#include "trace/ctf/packets.h"

struct ctf_subset {
	char *dir;
	char **created;  /* paths of the files and directories in it, in order of creation */
	size_t len, cap;
};

/* Creates a temporary directory for subsets in `parent` (NULL: $TMPDIR). temp_dir_remove() also removes files that a
 * crashed child left in it. Returns the path, malloc'ed; NULL, with *err set, on failure. */
char *temp_dir_make(const char *parent, struct error *err);
void temp_dir_remove(char *dir);  /* removes the directory and its contents, frees the path; dir may be NULL */

/* Creates a subset of the trace in `dir`, with its metadata and no streams. parent: as in temp_dir_make(). Returns 0 or
 * -1. */
int ctf_subset_open(struct ctf_subset *v, const char *dir, const char *parent, struct error *err);
/* Adds packets [first, end) of a stream. Returns 0 or -1. */
int ctf_subset_add(struct ctf_subset *v, const struct stream_file *f, size_t first, size_t end, struct error *err);
void ctf_subset_close(struct ctf_subset *v);  /* removes the subset; a zeroed one is allowed */

#endif
