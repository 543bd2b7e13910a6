/* Finds the packets of a CTF data stream file.
 *
 * Reads them from LTTng's index (index/NAME.idx), or finds them by the magic number and trace UUID of packet headers.
 * With an index, a stream can be read in parts (ctf_subset.h).
 *
 * Detects damaged packet headers, because libbabeltrace2 2.0 aborts on some of them. */
#ifndef STEALSCOPE_TRACE_CTF_PACKETS_H
#define STEALSCOPE_TRACE_CTF_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packet {
	uint64_t offset, size;  /* bytes */
	uint64_t content;       /* bits; 0: no index */
	uint64_t begin, end;    /* cycles; 0: no index */
	uint64_t discarded;     /* number of events lost since the start of the recording, at the end of the packet */
	uint64_t sequence;
};

struct stream_file {
	char *dir, *name;       /* directory and name of the file */
	uint64_t bytes;         /* size of the file */
	struct packet *packet;  /* contiguous packets of the file; the last one may extend beyond the end of the file */
	size_t packets, cap;
	bool has_index;        /* LTTng's index exists: times, counters and ids are known */
	bool index_damaged;  /* the index is damaged */
	bool has_sizes;      /* there is no index, but the sizes in the packet headers agree with the offsets */
	uint64_t stream_class, instance;
	uint64_t missing_bytes;  /* number of bytes that are in the index but not in the file */
	uint64_t extra_bytes;    /* number of bytes after the last packet of the index */
	int read_errno;          /* errno of reading the file or its index; 0: no error */
	size_t damaged_packets;  /* number of packets with an invalid header, which are not in packet[] */
};

/* Lists the data stream files of a trace directory by name. Their packets are found later, by any thread. Returns -1 if
 * the directory cannot be read (errno). */
int stream_files_list(const char *dir, struct stream_file **list, size_t *n);
void stream_file_find_packets(struct stream_file *f);
void stream_file_read_index(struct stream_file *f);  /* reads LTTng's index; does nothing without an index */
/* Returns true if the name ends in a digit: tracers append the CPU number to the name of a stream. */
bool stream_file_has_stream_name(const char *name);
/* Returns true if two directories have the same streams, judged by names, sizes and first bytes of the files. */
bool stream_files_same(const struct stream_file *a, size_t n, const struct stream_file *b, size_t m);
void stream_files_free(struct stream_file *list, size_t n);

/* Returns true if the stream can be split before packet[first], because no event was lost there. */
bool packets_may_cut(const struct stream_file *f, size_t first);

#endif
