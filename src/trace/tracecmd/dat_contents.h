/* Contents of a trace-cmd file for decoding: descriptions of events, and pages, uncompressed. Private to tracecmd/.
 *
 * Formats: trace-cmd.dat.v6(5), trace-cmd.dat.v7(5). */
#pragma once

#include "trace/tracecmd/dat_descriptions.h"
#include "trace/tracecmd/tracecmd_file.h"

struct dat_contents {
	int fd;
	uint64_t size;           /* the file's size, bytes */
	bool big_endian;
	char compression[16];    /* "none", "zlib", "zstd" */
	struct dat_descriptions descriptions;  /* set by the caller */
};

/* Opens the file and passes on its descriptions; the caller has set the receiver. Returns 0, or -1 with *err set. */
int dat_contents_open(struct dat_contents *c, const char *path, struct error *err);

/* Pages of one CPU. */
struct dat_pages {
	const struct dat_contents *contents;
	const struct tracecmd_file_cpu *cpu;
	uint64_t at, left;       /* offset in the file; number of bytes of pages not yet read */
	uint32_t chunks;         /* chunks not yet read */
	unsigned char *chunk;    /* uncompressed chunk */
	size_t chunk_at, chunk_size;
	bool is_open;
};

/* Reads the next page of `size` bytes. Returns 1; 0 at the end; -1 if the page cannot be read, with *why: a constant
 * text, or NULL and errno. */
int dat_pages_read(struct dat_pages *p, unsigned char *page, size_t size, const char **why);
void dat_pages_close(struct dat_pages *p);
