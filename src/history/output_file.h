/* The file while it is written: buffered, checksummed block by block, and nameless until it is complete.
 *
 * Where the file system can, the file has no name at all (O_TMPFILE), so that not even kill -9 leaves anything
 * behind; elsewhere it is ".NAME.PID-N.tmp" beside its final name.  It takes its name after fsync, by link, or by
 * rename when it replaces a file (it then has the temporary name for a moment): two builders of one file each
 * finish whole, the later one stays; a reader keeps the file that it opened. */
#ifndef STEALSCOPE_HISTORY_OUTPUT_FILE_H
#define STEALSCOPE_HISTORY_OUTPUT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "history/crc32c.h"

struct out {
	char *path, *dir, *temp;  /* temp: the name to remove, or NULL */
	int fd, dir_fd;
	uint8_t *buf;             /* holds the file from `base` on */
	size_t cap, len;
	uint64_t base;            /* file offset, a multiple of the block */
	uint64_t behind;          /* up to here the disk was asked to take it */
	unsigned block;           /* bytes, a power of two */
	struct crc32c crc;
	uint32_t *sum;            /* of every finished block */
	size_t sums, sums_cap;
};

/* named: do not even try to do without a name. */
int out_open(struct out *o, const char *path, unsigned block, bool named, struct error *err);
void out_discard(struct out *o);  /* closes and leaves nothing behind */

static inline uint64_t out_tell(const struct out *o)
{
	return o->base + o->len;
}

/* At least `size` (at most OUT_RESERVE) writable bytes; out_commit() says how many are meant.  NULL on failure. */
#define OUT_RESERVE 65536u
uint8_t *out_reserve(struct out *o, size_t size, struct error *err);
static inline void out_commit(struct out *o, size_t size)
{
	o->len += size;
}

int out_write(struct out *o, const void *data, size_t size, struct error *err);
int out_align(struct out *o, struct error *err);  /* zeros up to a multiple of 8 */
/* Writes all that is buffered and closes the last block: what follows is not summed. */
int out_seal(struct out *o, struct error *err);
/* Writes at an absolute offset, past the buffer. */
int out_write_at(struct out *o, const void *data, size_t size, uint64_t offset, struct error *err);
/* Syncs, gives the file its name, and closes. */
int out_publish(struct out *o, struct error *err);

/* Says that writing failed, by errno, and what would mend it; returns -1. */
int out_cannot_write(const struct out *o, struct error *err);

/* A nameless scratch file in the folder of `o`; -1 on failure. */
int out_scratch(const struct out *o, struct error *err);
/* write(2) of everything at the file's position (or at `offset` when it is >= 0), without dying of SIGXFSZ.
 * 0, or -1 and errno. */
int write_all(int fd, const void *data, size_t size, int64_t offset);
/* Blocks of the disk for bytes [from, to) of the file, which becomes that long; as above. */
int reserve_all(int fd, size_t from, size_t to);

#endif
