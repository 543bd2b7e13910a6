/* Interval pool: intervals before they become chunks; per attribute a chain of 32-byte slabs in one region of memory.
 *
 * A slab contains whole records: a control byte (bytes of the duration | bytes of the value << 4; 15: null), the
 * duration in ns, the value in zigzag; a zero control byte ends a slab early. Records are short, so that a million
 * attributes fit into memory. The region is bounded; the builder writes chunks when it is full. */
#pragma once

#include "base/base.h"

#define SLAB_DATA 28

struct slab {
	uint32_t next;  /* next slab in the chain or in the free list; 0: none */
	uint8_t data[SLAB_DATA];
};

struct chain {
	uint32_t head, tail;     /* first and last slab; 0: none */
	uint8_t used;         /* used bytes of the tail */
};

/* A change of value: an interval's start, which ends before the next change. */
struct change { int64_t start, value; };

struct pool {
	struct slab *slab;       /* slab[0] is not used */
	size_t reserved;         /* slabs in the address range */
	size_t limit;            /* most slabs in use */
	size_t slabs_touched;
	size_t free_slabs;
	uint32_t free;
};

int pool_init(struct pool *p, size_t bytes);  /* returns -1 if memory runs out */
void pool_release(struct pool *p);
/* Returns the memory to the system and sets a new limit. All chains must be empty. */
void pool_reset(struct pool *p, size_t bytes);
static inline bool pool_is_full(const struct pool *p)
{
	return !p->free && p->slabs_touched >= p->limit;
}

/* Appends a record. The pool must not be full. */
void pool_push(struct pool *p, struct chain *c, uint64_t duration, int64_t value);
/* Moves the n records of the chain to row[] and frees its slabs. The last interval ends before `end`, which becomes
 * row[n].start. */
void pool_take(struct pool *p, struct chain *c, struct change *row, unsigned n, int64_t end);
