/* Intervals that wait for their chunk: per attribute a chain of 32-byte slabs out of one region of memory.
 *
 * A slab holds whole records: a control byte (bytes of the duration | bytes of the value << 4; 15: null), the
 * duration in ns, the value in zigzag; a zero control byte ends a slab early.  Short records make a million
 * attributes affordable; the region is bounded, and the builder flushes when it is full. */
#ifndef STEALSCOPE_HISTORY_INTERVAL_POOL_H
#define STEALSCOPE_HISTORY_INTERVAL_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLAB_DATA 28

struct slab {
	uint32_t next;  /* in the chain, or in the list of free slabs; 0 = none */
	uint8_t data[SLAB_DATA];
};

struct chain {
	uint32_t head, tail;  /* slabs; 0 = none */
	uint8_t used;         /* bytes of the tail */
};

/* An interval.  It ends where the one behind it starts. */
struct kept { int64_t start, value; };

struct pool {
	struct slab *slab;    /* [0] is never used */
	size_t reserved;      /* slabs that fit the address range */
	size_t limit;         /* slabs that may be touched */
	size_t touched;
	size_t free_slabs;
	uint32_t free;
};

int pool_init(struct pool *p, size_t bytes);  /* -1: out of memory */
void pool_release(struct pool *p);
/* Gives the memory back to the system (no chain may be in use) and sets a new limit. */
void pool_reset(struct pool *p, size_t bytes);
static inline bool pool_is_full(const struct pool *p)
{
	return !p->free && p->touched >= p->limit;
}

/* Appends a record; the pool must not be full. */
void pool_push(struct pool *p, struct chain *c, uint64_t duration, int64_t value);
/* Takes all `n` records out of the chain and frees its slabs; the last one ends before `end`, which is row[n].start. */
void pool_take(struct pool *p, struct chain *c, struct kept *row, unsigned n, int64_t end);

#endif
