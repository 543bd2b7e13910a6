/* A CTF trace as libbabeltrace2 is to see it: one folder, or those into which a rotating tracer split it.
 *
 * It is opened once, in a child process (probe.h), to learn its ports (data streams); if that fails because a stream is
 * damaged, it is opened through excerpts that leave out what cannot be read. */
#ifndef STEALSCOPE_TRACE_CTF_CTF_TRACE_SET_H
#define STEALSCOPE_TRACE_CTF_CTF_TRACE_SET_H

#include "trace/babeltrace/graph.h"
#include "trace/babeltrace/ctf_subset.h"

struct port {
	char *name;
	uint64_t bytes;
	const struct stream_file *file;  /* when it is one file whose packets are known, else NULL */
	const char *file_name;           /* when it is one file, else NULL */
	uint64_t lost_first;     /* events that its first packet counts as lost, when an index tells */
};

struct group {
	struct meaning *meaning;
	struct notes *notes;        /* what had to be left out */
	char *temporary;            /* a folder in which excerpts are made */
	char **dir;                 /* the folders */
	size_t dirs;
	uint64_t bytes;
	struct stream_file **file;  /* of each folder */
	size_t *files;
	struct excerpt *excerpt;    /* of each folder, when the trace is damaged; dir then is where they are */
	char **excerpt_dir;
	struct port *port;
	size_t ports;
};

/* Lists the trace's files, whose packets are then to be found; copies of folders are left out. */
int group_list(struct group *g, struct error *err);
/* Opens the trace and finds its ports.  No thread may be at work: it forks. */
int group_open(struct group *g, struct error *err);
/* In a child process. */
struct decoder *group_decoder(const struct group *g, struct error *err);
void group_release(struct group *g);

#endif
