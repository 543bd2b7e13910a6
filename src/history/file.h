/* An open history: the mapped file, and checked access to its parts.
 *
 * Nothing is read from the map before the checksums of its blocks are verified, each block once (an atomic bitmap
 * remembers).  Checksums find damage; every offset, count and width is checked besides, so that a file made
 * to deceive costs an error at worst.  A history may be used by several threads. */
#ifndef STEALSCOPE_HISTORY_FILE_H
#define STEALSCOPE_HISTORY_FILE_H

#include <stdatomic.h>

#include "history/chunk.h"
#include "history/crc32c.h"
#include "history/format.h"
#include "history/history.h"

struct history {
	char *path;
	const uint8_t *map;
	uint64_t size;
	int64_t begin, end;                  /* of all that there is */
	int64_t window_begin, window_end;    /* of what it is about */
	uint64_t intervals, chunks;
	uint32_t attributes, sets, metas;
	unsigned block, block_shift;         /* bytes, and their binary logarithm */
	struct { uint64_t offset, size; } section[SECTIONS];
	uint64_t blocks, sum_blocks;
	_Atomic uint64_t *verified;          /* bit per block, then bit per block of sums */
	struct crc32c crc;
	atomic_int damaged;                  /* 1: damage is being written, 2: it stands */
	struct error damage;
};

/* Sets *err to "FILE: damaged at offset N: why", remembers the first; returns -1. */
int file_damaged(const struct history *h, uint64_t offset, const char *why, struct error *err);

int file_verify_block(const struct history *h, uint64_t block, struct error *err);

static inline bool file_verified(const struct history *h, uint64_t block)
{
	return atomic_load_explicit(&h->verified[block / 64], memory_order_acquire) >> block % 64 & 1;
}

int file_check_slowly(const struct history *h, enum section s, uint64_t offset, uint64_t size, struct error *err);

/* Makes sure that [offset, offset + size) lies in the section and is undamaged. */
static inline int file_check(const struct history *h, enum section s, uint64_t offset, uint64_t size,
                             struct error *err)
{
	uint64_t at = offset - h->section[s].offset, len = h->section[s].size;
	uint64_t block = offset >> h->block_shift;
	/* The usual case: within one block that is known to be sound. */
	if (at < len && size <= len - at && size && (offset + size - 1) >> h->block_shift == block &&
	    file_verified(h, block))
		return 0;
	return file_check_slowly(h, s, offset, size, err);
}

/* An attribute, opened for queries. */
struct attr {
	const struct history *h;
	const uint8_t *rows;
	uint64_t index;              /* file offset of the rows */
	uint32_t id, parent, name, child, children, chunks;
	union { uint32_t mask, leader; };  /* leader: if its type is not HISTORY_STATE */
	unsigned row;                /* bytes of an index row */
	unsigned sums;               /* cumulative sums in a row */
	unsigned set;
	int type;                    /* enum history_type or -1 */
};

int attr_open(struct attr *a, const struct history *h, uint32_t id, struct error *err);
int attr_open_states(struct attr *a, const struct history *h, uint32_t id, struct error *err);  /* HISTORY_STATE only */

static inline int64_t attr_start(const struct attr *a, uint32_t chunk)
{
	return (int64_t)get64(a->rows + (uint64_t)a->row * chunk + ROW_START);
}

/* The chunk that holds t, or `chunks` (none) when t precedes the first change.  -1 on damage. */
int attr_seek(const struct attr *a, int64_t t, uint32_t *chunk, struct error *err);
/* The same, fast when the chunk is near `guess`. */
int attr_seek_near(const struct attr *a, int64_t t, uint32_t guess, uint32_t *chunk, struct error *err);
/* Has the processor fetch chunk i, and row `next` of the index, which are not needed before some others. */
void attr_prefetch(const struct attr *a, uint32_t i, uint32_t next);
int attr_chunk(const struct attr *a, uint32_t i, struct chunk *c, struct error *err);
/* The damage is in the chunk. */
int attr_damaged(const struct attr *a, uint32_t chunk, const char *why, struct error *err);

/* The string at an offset of the strings section; NULL and *err. */
const char *file_string(const struct history *h, uint64_t id, struct error *err);

#endif
