/* An open history: the mapped file, and checked access to its parts.
 *
 * Blocks are verified by their checksums before they are read, each block once (recorded in an atomic bitmap). In
 * addition every offset, count and width is checked, so that a maliciously made file causes an error at worst. Several
 * threads may use a history. */
#pragma once

#include <stdatomic.h>

#include "history/chunk.h"
#include "history/crc32c.h"
#include "history/format.h"
#include "history/history.h"

struct history {
	char *path;
	const uint8_t *map;
	uint64_t size;
	int64_t begin, end;                  /* span: all times in the file, ns */
	int64_t window_begin, window_end;  /* window that the history covers without its context, ns */
	uint64_t intervals, chunks;
	uint32_t attributes, sets, metas;
	unsigned block, block_shift;         /* block size in bytes, and its binary logarithm */
	struct { uint64_t offset, size; } section[SECTIONS];
	uint64_t blocks, sum_blocks;
	_Atomic uint64_t *verified;  /* one bit per block, then one bit per block of checksums */
	_Atomic uint64_t latest, jumps;  /* the block verified last, and number of those that did not follow the previous one */
	struct crc32c crc;
	atomic_int damaged;      /* 0: no damage found, 1: the damage is being recorded, 2: recorded in `damage` */
	struct error damage;
	struct {                 /* see history_watch() */
		int64_t from, to;
		void (*fn)(void *arg, uint32_t attr, int64_t start, int64_t end);  /* NULL: reads are not reported */
		void *arg;
	} watch;
};

/* Returns true if the reads are reported and the time t lies outside the watched window. */
static inline bool file_watches(const struct history *h, int64_t t)
{
	return h->watch.fn && (t < h->watch.from || t > h->watch.to);
}

/* Reports that [start, end] of an attribute was read. */
static inline void file_report_read(const struct history *h, uint32_t attr, int64_t start, int64_t end)
{
	if (file_watches(h, start) || file_watches(h, end))
		h->watch.fn(h->watch.arg, attr, start, end);
}

/* Sets *err to "FILE: damaged at offset N: why" and records the first damage. Returns -1. */
int file_fail_damaged(const struct history *h, uint64_t offset, const char *why, struct error *err);

/* Reads the history's window; without one, the window is the span. */
int file_read_window(struct history *h, struct error *err);

int file_verify_block(const struct history *h, uint64_t block, struct error *err);

static inline bool file_verified(const struct history *h, uint64_t block)
{
	return atomic_load_explicit(&h->verified[block / 64], memory_order_acquire) >> block % 64 & 1;
}

int file_check_blocks(const struct history *h, enum section s, uint64_t offset, uint64_t size, struct error *err);

/* Checks that [offset, offset + size) is within the section and undamaged. Returns 0, or -1 with *err. */
static inline int file_check(const struct history *h, enum section s, uint64_t offset, uint64_t size,
                             struct error *err)
{
	uint64_t at = offset - h->section[s].offset, len = h->section[s].size;
	uint64_t block = offset >> h->block_shift;
	/* Fast path: all bytes are in one verified block. */
	if (at < len && size <= len - at && size && (offset + size - 1) >> h->block_shift == block &&
	    file_verified(h, block))
		return 0;
	return file_check_blocks(h, s, offset, size, err);
}

/* An attribute opened for queries. */
struct attr {
	const struct history *h;
	const uint8_t *rows;
	uint64_t index;              /* file offset of its index rows */
	uint32_t id, parent, name, child, children, chunks;
	union { uint32_t mask, leader; };  /* mask: states that occur (HISTORY_STATE); leader: attribute that its
	                                    * CHUNK_LINKED chunks refer to (other types) */
	unsigned row;                /* bytes per index row */
	unsigned sums;               /* cumulative sums in a row */
	unsigned set;
	int type;                /* enum history_type; -1: inner node */
};

int attr_open(struct attr *a, const struct history *h, uint32_t id, struct error *err);
int attr_open_states(struct attr *a, const struct history *h, uint32_t id, struct error *err);  /* only HISTORY_STATE */

static inline int64_t attr_start(const struct attr *a, uint32_t chunk)
{
	return (int64_t)get64(a->rows + (uint64_t)a->row * chunk + ROW_START);
}

/* Finds the chunk that contains t; *chunk is `chunks` if t precedes the first change. Returns -1 on damage. */
int attr_seek(const struct attr *a, int64_t t, uint32_t *chunk, struct error *err);
/* The same, faster if the chunk is near `hint`. */
int attr_seek_hint(const struct attr *a, int64_t t, uint32_t hint, uint32_t *chunk, struct error *err);
/* Prefetches chunk i, and row `next` of the index. */
void attr_prefetch(const struct attr *a, uint32_t i, uint32_t next);
int attr_chunk(const struct attr *a, uint32_t i, struct chunk *c, struct error *err);
/* Sets *err to damage in a chunk. Returns -1. */
int attr_fail_damaged(const struct attr *a, uint32_t chunk, const char *why, struct error *err);

/* Returns the string at an offset of the strings section; NULL with *err if it is damaged. */
const char *file_string(const struct history *h, uint64_t id, struct error *err);
