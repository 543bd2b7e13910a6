/* A trace's data stream files -> streams of packets, by the packets' own headers. */
#ifndef STEALSCOPE_TRACE_CTF_FILES_H
#define STEALSCOPE_TRACE_CTF_FILES_H

#include "trace/ctf/classes.h"
#include "trace/ctf/packets.h"

struct ctf_packet {
	const struct stream_file *file;
	uint64_t offset;        /* bytes */
	uint64_t size, content; /* bits */
	uint64_t begin, end;    /* cycles */
	uint64_t discarded, sequence;
};

struct ctf_flow {
	const struct ctf_stream_class *class;
	uint64_t instance;
	bool has_discarded, has_sequence;
	const struct stream_file *first;  /* of its files, by name */
	struct ctf_packet *packet;
	size_t packets, cap;
	uint64_t bytes;
};

struct ctf_streams {
	struct ctf_flow *stream;
	size_t len, cap;
};

/* Adds the packets of a file.  0; -1 when the system cannot read it, see errno; 1 and *why when they are not whole, one
 * behind the other, and as LTTng's index says: another reader knows more about damage. */
int ctf_streams_add(struct ctf_streams *s, const struct ctf_classes *c, struct stream_file *f, const char **why);
/* Adds all that is in `of`, as if its files had been added; it is empty then. */
void ctf_streams_join(struct ctf_streams *s, struct ctf_streams *of);
/* When all are there: puts them in order.  NULL, or why they are not read. */
const char *ctf_streams_sort(struct ctf_streams *s);
void ctf_streams_release(struct ctf_streams *s);

/* May the stream be cut before packet i: nothing is lost there. */
bool ctf_may_cut(const struct ctf_flow *s, size_t i);

#endif
