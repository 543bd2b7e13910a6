/* Output file: buffered, with checksums by block, and unnamed until it is complete.
 *
 * If the file system supports it, the file has no name at all (O_TMPFILE), so that nothing is left if the process is
 * killed; otherwise its name is ".NAME.PID-N.tmp" in the same directory. After fsync() the file gets its name by a link,
 * or by a rename if it replaces a file (then it briefly has a temporary name). If two builders write one file, both
 * complete it and the later one stays; a reader keeps the file that it opened. */
#pragma once

#include "base/base.h"
#include "history/crc32c.h"

struct out {
	char *path, *dir, *temp;  /* temp: temporary name to remove; NULL: none */
	int fd, dir_fd;
	uint8_t *buf;            /* the file's buffer, starting at offset `base` */
	size_t cap, len;
	uint64_t base;           /* file offset of the buffer, a multiple of the block size */
	uint64_t write_started;  /* offset up to which writing to the disk was started */
	unsigned block;           /* block size in bytes, a power of two */
	struct crc32c crc;
	uint32_t *sum;           /* the finished blocks' checksums */
	size_t sums, sums_cap;
};

/* Opens the file. named: use a temporary name instead of an unnamed file. */
int out_open(struct out *o, const char *path, unsigned block, bool named, struct error *err);
void out_discard(struct out *o);  /* closes the file and leaves nothing */

static inline uint64_t out_offset(const struct out *o)
{
	return o->base + o->len;
}

/* Returns space for `size` bytes, at most OUT_RESERVE; NULL on failure. out_commit() appends the bytes written there. */
#define OUT_RESERVE 65536u
uint8_t *out_reserve(struct out *o, size_t size, struct error *err);
static inline void out_commit(struct out *o, size_t size)
{
	o->len += size;
}

int out_write(struct out *o, const void *data, size_t size, struct error *err);
int out_flush(struct out *o, struct error *err);  /* writes the buffer, which stays open for more */
int out_align(struct out *o, struct error *err);  /* appends zeros up to a multiple of 8 */
/* Writes the buffer and completes the last block. Later bytes have no checksum in `sum`. */
int out_seal(struct out *o, struct error *err);
/* Writes at an offset of the file, without the buffer. */
int out_write_at(struct out *o, const void *data, size_t size, uint64_t offset, struct error *err);
/* Syncs the file, names it, and closes it. */
int out_publish(struct out *o, struct error *err);

/* Sets *err for a failed write, with errno and a remedy. Returns -1. */
int out_cannot_write(const struct out *o, struct error *err);

/* Opens an unnamed scratch file in the output file's directory. Returns its descriptor; -1 with *err. */
int out_scratch(const struct out *o, struct error *err);
/* Writes all bytes at the file's position, or at `offset` if it is not negative, with SIGXFSZ blocked. Returns 0, or -1
 * with errno. */
int write_all(int fd, const void *data, size_t size, int64_t offset);
