/* Groups the packets of a trace's stream files into streams, by the packets' headers. */
#pragma once

#include "trace/ctf/classes.h"
#include "trace/ctf/stream_file.h"

struct ctf_packet {
	const struct stream_file *file;
	uint64_t offset;         /* bytes */
	uint64_t size, content;  /* bits */
	uint64_t begin, end;     /* cycles */
	uint64_t discarded, sequence;
	const char *damage;      /* why the packet cannot be read; NULL: its header is valid */
};

struct ctf_data_stream {
	const struct ctf_stream_class *class;
	uint64_t instance;
	bool has_discarded, has_sequence;
	bool in_order;                    /* no packet begins before the previous one */
	const struct stream_file *first;  /* the first of the stream's files, in the order of names */
	struct ctf_packet *packet;
	size_t packets, cap;
	uint64_t bytes;
};

struct ctf_streams {
	struct ctf_data_stream *stream;
	size_t len, cap;
};

/* Adds a file's packets, valid and damaged ones. Returns 0, or -1 if the system cannot read it (errno). *reason: why
 * no packet of the file is valid; NULL: at least one is. */
int ctf_streams_add(struct ctf_streams *s, const struct ctf_classes *c, struct stream_file *f, const char **reason);
/* Moves the packets of *from to *s, with the same result as adding the files of *from to *s. *from is empty afterwards. */
void ctf_streams_join(struct ctf_streams *s, struct ctf_streams *from);
/* Sorts streams and packets. Call it after all files were added. */
void ctf_streams_sort(struct ctf_streams *s);
void ctf_streams_release(struct ctf_streams *s);

/* Returns true if the stream can be split before packet i, because no event was lost there. */
bool ctf_may_cut(const struct ctf_data_stream *s, size_t i);
