/* Excerpts: part of a CTF trace, as a trace folder of its own that libbabeltrace2 can read.
 *
 * An excerpt is a temporary folder of symbolic links to the metadata and the stream files, with index files of its own
 * that name just the packets wanted; nothing is copied.  libbabeltrace2 reads the packets that an index names, at
 * the places that it names.  It takes an index only when the sizes add up to the file's, so the last entry's
 * size says more than is there; nothing else looks at it.  An index that is not taken would mean that the whole
 * stream is read: who decodes an excerpt must check what comes out (struct expect in graph.h). */
#ifndef STEALSCOPE_TRACE_BABELTRACE_CTF_SUBSET_H
#define STEALSCOPE_TRACE_BABELTRACE_CTF_SUBSET_H

#include <stddef.h>

#include "base/error.h"
#include "trace/ctf/packets.h"

struct excerpt {
	char *dir;
	char **made;  /* files and folders in it, in the order in which they were made */
	size_t len, cap;
};

/* A temporary folder to make excerpts in: what a process that died left in it goes with it.  malloc'ed; NULL: *err says
 * why.  where is the folder for temporary files, NULL = $TMPDIR. */
char *excerpts_open(const char *where, struct error *err);
void excerpts_close(char *folder);  /* removes all of it; NULL is allowed */

/* An empty excerpt of the trace in `dir`: its metadata alone.  where: as above. */
int excerpt_open(struct excerpt *v, const char *dir, const char *where, struct error *err);
/* Adds packets [first, end) of a stream. */
int excerpt_add(struct excerpt *v, const struct stream_file *f, size_t first, size_t end, struct error *err);
void excerpt_close(struct excerpt *v);  /* removes it; a zeroed one is allowed */

#endif
