/* A CTF trace for libbabeltrace2: one directory, or the directories that a rotating tracer wrote.
 *
 * A child process first opens the trace (probe.h) to find its ports (data streams). If that fails because a stream is
 * damaged, the trace is read through subsets (ctf_subset.h) without the damaged packets. */
#ifndef STEALSCOPE_TRACE_CTF_CTF_TRACE_SET_H
#define STEALSCOPE_TRACE_CTF_CTF_TRACE_SET_H

#include "trace/babeltrace/graph.h"
#include "trace/babeltrace/ctf_subset.h"

struct ctf_port {
	char *name;
	uint64_t bytes;
	const struct stream_file *file;  /* file of the port; NULL: several files, or the packets are unknown */
	const char *file_name;           /* name of the port's file; NULL: several files */
	uint64_t lost_first;             /* number of events lost before the first packet, from an index; 0: none, or unknown */
};

struct ctf_trace_set {
	struct event_mapping *mapping;
	struct notes *notes;  /* destination of notes about skipped parts */
	char *temp_dir;       /* temporary directory that contains the subsets */
	char **dir;           /* directories of the trace */
	size_t dirs;
	uint64_t bytes;
	struct stream_file **file;  /* files of each directory */
	size_t *files;
	struct ctf_subset *subset;  /* damaged traces: subset of each directory, and the paths of the subsets; NULL:
	                             * undamaged */
	char **subset_dir;
	struct ctf_port *port;
	size_t ports;
};

/* Lists the files of the trace; their packets are not read yet. Removes directories that are copies of another one.
 * Returns 0 or -1. */
int ctf_trace_set_list(struct ctf_trace_set *g, struct error *err);
/* Opens the trace and finds its ports. Forks: no other thread may run. Returns 0 or -1. */
int ctf_trace_set_open(struct ctf_trace_set *g, struct error *err);
/* Opens a decoder; only in child processes. Returns NULL, with *err set, on failure. */
struct decoder *ctf_trace_set_decoder(const struct ctf_trace_set *g, struct error *err);
void ctf_trace_set_release(struct ctf_trace_set *g);

#endif
