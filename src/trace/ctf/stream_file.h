/* Data stream files of a CTF directory, and LTTng's index of their packets (index/NAME.idx). The index only confirms the
 * packet headers: the headers say where the packets are. */
#pragma once

#include "base/base.h"

/* The index's entry. */
struct packet {
	uint64_t offset, size;  /* bytes */
	uint64_t content;       /* bits */
	uint64_t begin, end;    /* cycles */
	uint64_t discarded;     /* events lost since the recording's start, at the packet's end */
};

struct stream_file {
	char *dir, *name;       /* directory and name of the file */
	uint64_t bytes;         /* the file's size */
	struct packet *packet;  /* contiguous packets by the index; none: there is no index */
	size_t packets, cap;
	bool index_damaged;
	uint64_t missing_bytes;  /* size of the packets' parts after the file's end, bytes */
	int read_errno;          /* errno of reading the index; 0: no error */
	uint64_t begin;          /* begin of the first valid packet, cycles */
};

/* Lists the data stream files of a trace directory by name. Returns -1 if the directory cannot be read (errno). */
int stream_files_list(const char *dir, struct stream_file **list, size_t *n);
void stream_file_read_index(struct stream_file *f);
/* Returns true if the name ends in a digit: tracers append the CPU number to a stream's name. */
bool stream_file_has_stream_name(const char *name);
/* Returns true if two directories have the same streams, judged by names, sizes and first bytes of the files. */
bool stream_files_same(const struct stream_file *a, size_t n, const struct stream_file *b, size_t m);
void stream_files_free(struct stream_file *list, size_t n);
