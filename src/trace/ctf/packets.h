/* Where the packets of a CTF data stream file lie.
 *
 * Read from LTTng's index (index/NAME.idx), else found by looking for the packet header's magic number and trace UUID.
 * With it a stream can be read in parts: see ctf_subset.h.  It also tells damaged headers from good ones, which matters
 * because libbabeltrace2 2.0 aborts the process on some. */
#ifndef STEALSCOPE_TRACE_CTF_PACKETS_H
#define STEALSCOPE_TRACE_CTF_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packet {
	uint64_t offset, size;  /* bytes */
	uint64_t content;       /* bits; 0 when not indexed */
	uint64_t begin, end;    /* clock cycles; 0 when not indexed */
	uint64_t discarded;     /* running count of lost events, at the end of the packet */
	uint64_t sequence;
};

struct stream_file {
	char *dir, *name;       /* of the file */
	uint64_t bytes;         /* of the file */
	struct packet *packet;  /* those that begin in the file, back to back; the last may be cut short by its end */
	size_t packets, cap;
	bool indexed;           /* by LTTng: times, counts and ids are known */
	bool misled;            /* it has an index, and that is damaged */
	bool sized;             /* not indexed, but the packets' headers agree with where the packets lie */
	uint64_t stream_class, instance;
	uint64_t missing;       /* bytes that the index says should be there and are not */
	uint64_t extra;         /* bytes behind the last packet that the index knows */
	int why;                /* it, or its index, could not be read: errno; else 0 */
	size_t damaged;         /* packets whose header is wrong, as far as can be told; not among packet[] */
};

/* The data stream files of a trace folder, by name; of each the packets are still to be found, by any thread.  -1: the
 * folder cannot be read, see errno. */
int stream_files_list(const char *dir, struct stream_file **list, size_t *n);
void stream_file_read(struct stream_file *f);
void stream_file_index(struct stream_file *f);  /* only if LTTng's index tells them */
/* Is it called as tracers call streams, whose names end in the number of a CPU? */
bool stream_file_name(const char *name);
/* Are the streams of two folders the same, by their files' names, sizes and first bytes? */
bool stream_files_same(const struct stream_file *a, size_t n, const struct stream_file *b, size_t m);
void stream_files_free(struct stream_file *list, size_t n);

/* Does packets[first..] begin where nothing is lost, so that a stream may be cut there? */
bool packets_may_cut(const struct stream_file *f, size_t first);

#endif
